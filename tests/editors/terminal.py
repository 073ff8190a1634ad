"""A terminal for tests, with a screen that can be read: tmux."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.lsp_editor import PATIENCE_S

PROGRAM = Path(__file__).parents[2] / ".editors" / "debian" / "root" / "usr" / "bin" / "tmux"

_SIZE = ("-x", "100", "-y", "20")


class Terminal:
    """A tmux of its own, of which nobody else's tmux knows."""

    def __init__(self, home: Path) -> None:
        self._tmux = [str(PROGRAM), "-S", str(home / "tmux"), "-f", "/dev/null"]

    def start(self, command: list[str], environment: dict[str, str]) -> None:
        # Without these two a program takes it for a terminal of few colours.
        colours = ["env", "TERM=tmux-256color", "COLORTERM=truecolor"]
        subprocess.run([*self._tmux, "new-session", "-d", *_SIZE, *colours, *command], env=environment, check=True)

    def keys(self, *keys: str) -> None:
        """Press keys, in the notation of tmux."""
        subprocess.run([*self._tmux, "send-keys", *keys], check=True)

    def screen(self) -> str:
        """Return the text on the screen."""
        return self._capture()

    def coloured(self) -> str:
        """Return the screen with its escape sequences."""
        return self._capture("-e")

    def _capture(self, *how: str) -> str:
        command = [*self._tmux, "capture-pane", "-p", *how]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def eventually(self, true: Callable[[str], Any]) -> Any:
        """Wait until `true` of the screen is, and return what it is."""
        deadline = time.monotonic() + PATIENCE_S
        while not (value := true(self.screen())):
            assert time.monotonic() < deadline, f"what the test waits for is not on the screen:\n{self.screen()}"
            time.sleep(0.05)
        return value

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)
