"""What a part of the soak gets, and what it gives back: rows of the table of docs/reliability.md."""

import time
from collections.abc import Callable
from pathlib import Path

import attrs


@attrs.frozen
class Row:
    """What was tried, how often, and what was lost: one line each. `seen` is a figure or a remark."""

    tried: str
    times: int
    lost: list[str] = attrs.field(factory=list)
    seen: str = ""

    @property
    def markdown(self) -> str:
        lost = "; ".join(line.replace("|", "\\|") for line in self.lost) or "nothing"
        return f"| {self.tried} | {self.times:,} | {lost} | {self.seen} |"


@attrs.define
class Work:
    """A folder of the part's own, a seed, the seconds it may take, and `say` for one line of progress."""

    folder: Path
    seed: int
    seconds: float
    share: float
    say: Callable[[str], None]
    _began: float = attrs.field(factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._began + self.seconds - time.monotonic()

    def of_hour(self, count: int) -> int:
        """Return how much of a count that belongs to a whole hour this soak is to do, at least one."""
        return max(1, round(count * self.share))


Part = Callable[[Work], list[Row]]


def told(error: BaseException) -> str:
    """Return an error in one short line; of several that hypothesis found, the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}".partition("\n")[0][:200]
