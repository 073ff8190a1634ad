"""Items that lie between two offsets, found by what they touch."""

import bisect
from typing import Generic, Protocol, TypeVar

import attrs


class Ranged(Protocol):
    """What lies between two offsets."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


_Item = TypeVar("_Item", bound=Ranged)


@attrs.define
class Ranges(Generic[_Item]):
    """Items by their start. None is longer than `longest`, so what begins earlier than that cannot reach a range."""

    items: list[_Item] = attrs.field(factory=list)
    longest: int = 0

    def add(self, item: _Item) -> None:
        """Keep an item, after those with the same start."""
        bisect.insort_right(self.items, item, key=_start)
        self.longest = max(self.longest, item.end - item.start)

    def touching(self, start: int, end: int) -> list[_Item]:
        """Return the items that share an offset with a range, or end or begin at its ends, by their start."""
        first = bisect.bisect_left(self.items, start - self.longest, key=_start)
        last = bisect.bisect_right(self.items, end, key=_start)
        return [item for item in self.items[first:last] if item.end >= start]


def _start(item: Ranged) -> int:
    return item.start
