"""What the memory knows for the rows of one fill."""

from collections.abc import Callable, Sequence
from typing import Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.memory.file_scan import BELOW, FileScan
from engine.memory.followers import Followers, Place
from engine.memory.index import MOST_PLACES, RunIndex

SCOPES = 2
"""This file and the other files of the workspace."""

Part = Literal["above", "below", "workspace"]
"""The code above the cursor, the code below it, the other files."""


@attrs.frozen(eq=False)
class RowFollowers:
    """What followed the last tokens of a row: the Followers of each run that occurs, in this file and in the others."""

    file: list[Followers]
    workspace: list[Followers]

    @property
    def scopes(self) -> tuple[list[Followers], list[Followers]]:
        return self.file, self.workspace

    def __bool__(self) -> bool:
        return bool(self.file or self.workspace)


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
        """Return what followed the last tokens of `history`."""
        return self.followers_of_rows([history])[0]

    def followers_of_rows(self, histories: Sequence[Sequence[int]]) -> list[RowFollowers]:
        """Return `followers` of each history, in less time than one after the other."""
        in_file = [self._scan.followers(history, MOST_PLACES) for history in histories]
        known: list[list[Followers]] = [[] for _ in histories]
        if self._known is not None:
            known = self._known.index.followers_of_rows(histories, self._edited)
        return [RowFollowers(*row) for row in zip(in_file, known, strict=True)]

    def where_from(self, row: RowFollowers, token: int) -> Source | None:
        """Return where `token` followed the longest run, this file first; None if it never did."""
        best: Source | None = None
        for scope, found in enumerate(row.scopes):
            for followers in found:
                index = int(np.searchsorted(followers.tokens, token))
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
