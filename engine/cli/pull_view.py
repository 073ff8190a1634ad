"""The progress of a pull: in the terminal, or as lines for a program."""

import json
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn


class PullView:
    """One bar for all files with the name of the current file. A context manager; shows nothing outside a terminal."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("asking the hub", total=None)

    def __enter__(self) -> "PullView":
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def begin(self, total: int, present: int) -> None:
        """Like the other methods, see library.pull.PullProgress."""
        self._progress.update(self._task, total=total, completed=present)

    def fetch(self, name: str) -> None:
        self._progress.update(self._task, description=name)

    def check(self, name: str) -> None:
        self._progress.update(self._task, description=f"checking {name}")

    def advance(self, count: int) -> None:
        self._progress.update(self._task, advance=count)


class PullLines:
    """Writes a line of JSON for each file and each percent: `{"doing": ..., "present": bytes, "total": bytes}`."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._doing = "asking the hub"
        self._total = self._present = self._written = 0

    def begin(self, total: int, present: int) -> None:
        """Like the other methods, see library.pull.PullProgress."""
        self._total, self._present = total, present
        self._line()

    def fetch(self, name: str) -> None:
        self._doing = name
        self._line()

    def check(self, name: str) -> None:
        self._doing = f"checking {name}"
        self._line()

    def advance(self, count: int) -> None:
        self._present += count
        if abs(self._present - self._written) * 100 >= self._total:
            self._line()

    def _line(self) -> None:
        self._written = self._present
        self._write(json.dumps({"doing": self._doing, "present": self._present, "total": self._total}))
