"""The page of `midspan play` in a headless Chromium: keys go in, what is on the screen comes out."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.browser_driver import Driver, eventually

ROOT = Path(__file__).parent.parent.parent
HOME = ROOT / ".editors" / "play"


def chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def what_is_missing() -> str | None:
    """Return what the tests of the page lack here, as one line that says how to get it."""
    if chromium() is None:
        return "no Chromium to show the page in; `apt-get install chromium` as root, then `make editors`"
    if not (HOME / "node_modules" / "playwright-core").exists():
        return "the driver of the page's tests is not here; `make editors` fetches it"
    return None


@contextmanager
def started(*arguments: str | Path, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `midspan play` without its own browser. Yield its address and its process, which is ended."""
    command = [sys.executable, "-P", "-m", "engine.cli", "play", *map(str, arguments), "--no-browser"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    assert process.stderr is not None
    try:
        found = re.search(r"http\S+", process.stderr.readline())
        assert found is not None
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield found[0], process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


class Browser(Driver):
    """Windows of one Chromium, by name. Each has a profile of its own."""

    def __init__(self) -> None:
        super().__init__("node", Path(__file__).parent / "chromium" / "driver.mjs", HOME, chromium())

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

    def ghost(self, name: str = "first") -> str:
        """Return the ghost at the cursor, asked for again until there is one."""

        def asked_again() -> str:
            # On a busy machine a suggestion may miss its time, and nobody asks twice at the same place. One that is
            # ignored twice does not come back.
            self.value("document.querySelector('.cm-content').focus()", name)
            if not self.text(".ghost", name):
                for key in ("ArrowLeft", "ArrowRight"):
                    self.ask("press", key=key, name=name)
                self.settle(name)
            return self.text(".ghost", name)

        return eventually(asked_again, "the ghost")

    def is_open(self, name: str) -> bool:
        """Return whether there is a window of this name."""
        return bool(self.ask("opened", name=name))

    def tab_to(self, selector: str, name: str = "first", key: str = "Tab") -> bool:
        """Press Tab (or Shift+Tab) until an element that matches has the focus; fails when none gets it."""
        for _ in range(80):
            self.ask("press", key=key, name=name)
            if self.value(f"document.activeElement.matches({json.dumps(selector)})", name):
                return True
        raise AssertionError(f"80 times Tab did not reach {selector}")
