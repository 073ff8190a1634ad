"""What the memory knows for the rows of one fill."""

from collections.abc import Callable, Sequence
from typing import Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.memory.file_scan import BELOW, FileScan
from engine.memory.followers import FollowerCounts, Place
from engine.memory.index import RunIndex

SCOPES = 2
"""This file and the other files of the workspace."""

Part = Literal["above", "below", "workspace"]
"""The code above the cursor, the code below it, the other files."""


@attrs.frozen(eq=False)
class RowFollowers:
    """What followed the last tokens of rows, in this file and in the other files of the workspace."""

    file: FollowerCounts
    workspace: FollowerCounts

    @property
    def scopes(self) -> tuple[FollowerCounts, FollowerCounts]:
        return self.file, self.workspace

    def __len__(self) -> int:
        return self.file.rows

    def __bool__(self) -> bool:
        """Whether any row has followers."""
        return bool(len(self.file.groups) or len(self.workspace.groups))

    @property
    def of_workspace(self) -> "RowFollowers":
        """These followers without those of this file."""
        return RowFollowers(FollowerCounts.nothing(len(self)), self.workspace)

    @property
    def joined(self) -> FollowerCounts:
        """All counts in one: row `scope * len(self) + row` is of that scope."""
        return FollowerCounts.joined(self.scopes)

    def only(self, row: int, tokens: Sequence[int]) -> "RowFollowers":
        """Return these followers with a row that has none but `tokens`. For a query's compatible tokens."""
        named = np.asarray(tokens, np.int64)
        return RowFollowers(self.file.only(row, named), self.workspace.only(row, named))


@attrs.frozen(eq=False)
class Source:
    """Where a token was seen after the longest run that it followed.

    path: its file; empty for the edited one. part: which code.
    tokens_before: int32 [n], the tokens of that code up to the place. They give the line.
    run: the length of the run. count: how often the token followed it, `total`: how often any did.
    """

    path: str
    part: Part
    tokens_before: NDArray[np.int32]
    run: int
    count: int
    total: int


@attrs.frozen(eq=False)
class KnownFiles:
    """An index of files with their names."""

    index: RunIndex
    path_of: Callable[[int], str]


class RowMemory:
    """The memory as one fill sees it: the edited file as it is now, and the workspace without that file."""

    def __init__(self, scan: FileScan, known: KnownFiles | None, edited: int | None) -> None:
        self._scan, self._known, self._edited = scan, known, edited

    def followers(self, history: Sequence[int]) -> RowFollowers:
        """Return what followed the last tokens of `history`, as one row."""
        return self.followers_of_rows([history])

    def followers_of_rows(self, histories: Sequence[Sequence[int]]) -> RowFollowers:
        """Return one row a history. Several together take less time than one after the other."""
        in_file = self._scan.followers_of_rows(histories)
        if self._known is None:
            return RowFollowers(in_file, FollowerCounts.nothing(len(histories)))
        return RowFollowers(in_file, self._known.index.followers_of_rows(histories, self._edited))

    def where_from(self, found: RowFollowers, row: int, token: int) -> Source | None:
        """Return where `token` followed the longest run of a row, this file first; None if it never did."""
        best: Source | None = None
        for scope, counts in enumerate(found.scopes):
            for followers in counts.row(row):
                index = int(followers.tokens.searchsorted(token))
                if index == len(followers.tokens) or followers.tokens[index] != token:
                    continue
                if best is None or followers.run > best.run:
                    place, count = followers.latest_of(index), int(followers.counts[index])
                    path, part, before = self._name(scope, place)
                    best = Source(path, part, before, followers.run, count, followers.total)
        return best

    def _name(self, scope: int, place: Place) -> tuple[str, Part, NDArray[np.int32]]:
        if scope == 0 or self._known is None:
            return "", "below" if place.file == BELOW else "above", self._scan.tokens_before(place)
        return self._known.path_of(place.file), "workspace", self._known.index.tokens_before(place)
