"""A process that drives a headless Chromium through playwright-core, and waiting for what it shows.

The drivers are scripts of Node: tests/play/chromium/driver.mjs for the page of `midspan play`, and
tests/editors/vscode/driver.mjs for VS Code's window.
"""

import itertools
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Seen = TypeVar("Seen")


class Driver:
    """A running driver. One JSON request a line, {id, method, params}; one answer a line, {id, result} or {id, error}.

    node: the program. script: the driver. home: where playwright-core is installed; Node looks for packages beside the
    script, so it is copied there.
    """

    def __init__(self, node: str, script: Path, home: Path, chromium: str | None) -> None:
        (home / script.name).write_text(script.read_text("utf-8"), "utf-8")
        self._numbers = itertools.count(1)
        self._process = subprocess.Popen(
            [node, script.name], cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ask("launch", chromium=chromium)

    def close(self) -> None:
        """Close the browser and end the driver."""
        if self._process.poll() is None:
            self.ask("close")
            self._process.wait(20)

    def ask(self, method: str, **params: Any) -> Any:
        """Have the driver do something; raises AssertionError with its reason when it could not."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        number = next(self._numbers)
        self._process.stdin.write(json.dumps({"id": number, "method": method, "params": params}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the driver has ended while it was to {method}"
        answer = json.loads(line)
        assert answer["id"] == number
        assert "error" not in answer, f"cannot {method} {params}: {answer.get('error')}"
        return answer["result"]


def eventually(look: Callable[[], Seen], what: str, seconds: float = 60.0) -> Seen:
    """Return what `look` returns as soon as that is true; fails naming `what` when it does not come."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain for {what}"
        time.sleep(0.03)
    return seen
