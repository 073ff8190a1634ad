"""The progress of a pull in the terminal."""

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn


class PullView:
    """One bar for all files with the name of the current file. A context manager; shows nothing outside a terminal."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
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
