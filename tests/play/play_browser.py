"""The page of `midspan play` in a headless Chromium: keys go in, what is on the screen comes out."""

import json
import shutil
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
