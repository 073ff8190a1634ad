"""The page of `midspan play` in a headless Chromium: keys go in, what is on the screen comes out."""

import itertools
import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Seen = TypeVar("Seen")
ROOT = Path(__file__).parent.parent.parent
HOME = ROOT / ".editors" / "play"
PATIENCE_S = 60.0


def chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def what_is_missing() -> str | None:
    """Return what the tests of the page lack here, as one line that says how to get it."""
    if chromium() is None:
        return "no Chromium to show the page in; `apt-get install chromium` as root, then `make editors`"
    if not (HOME / "node_modules" / "playwright-core").exists():
        return "the driver of the page's tests is not here; `make editors` fetches it"
    return None


class Browser:
    """Windows of one Chromium, by name. Each has a profile of its own."""

    def __init__(self) -> None:
        # Node looks for packages beside the script, so the driver is copied to where they are installed.
        driver = Path(__file__).parent / "chromium" / "driver.mjs"
        (HOME / driver.name).write_text(driver.read_text("utf-8"), "utf-8")
        self._numbers = itertools.count(1)
        self._driver = subprocess.Popen(
            ["node", driver.name], cwd=HOME, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ask("launch", chromium=chromium())

    def close(self) -> None:
        if self._driver.poll() is None:
            self.ask("close")
            self._driver.wait(20)

    def ask(self, method: str, **params: Any) -> Any:
        """Have the driver do something; raises AssertionError with its reason when it could not."""
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        number = next(self._numbers)
        self._driver.stdin.write(json.dumps({"id": number, "method": method, "params": params}) + "\n")
        self._driver.stdin.flush()
        line = self._driver.stdout.readline()
        assert line, f"the driver has ended while it was to {method}"
        answer = json.loads(line)
        assert "error" not in answer, f"cannot {method} {params}: {answer.get('error')}"
        return answer["result"]

    def value(self, expression: str, name: str = "first") -> Any:
        """Return what an expression is in the page."""
        return self.ask("value", expression=expression, name=name)

    def text(self, selector: str, name: str = "first") -> str:
        """Return the text of the first element that matches, "" for none."""
        return str(self.value(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''", name))

    def count(self, selector: str, name: str = "first") -> int:
        """Return how many elements match."""
        return int(self.value(f"document.querySelectorAll({json.dumps(selector)}).length", name))

    def settle(self, name: str = "first") -> None:
        """Wait until the hole where the cursor rests now is filled in all ways."""
        eventually(
            lambda: self.value("document.body.dataset.settled === document.body.dataset.edit", name),
            "the hole filled in all ways",
        )


def eventually(look: Callable[[], Seen], what: str, seconds: float = PATIENCE_S) -> Seen:
    """Return what `look` returns as soon as that is true; fails naming `what` when it does not come."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain for {what}"
        time.sleep(0.03)
    return seen
