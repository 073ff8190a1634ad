"""What the memory knows for the rows of one fill."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.memory.file_scan import BELOW, FileScan
from engine.memory.followers import SLOTS, FollowerCounts, Followers, Place
from engine.memory.index import RunIndex

SCOPES = 3
"""This file, the other files of the workspace, and the words of both."""
FILE_SCOPE, WORD_SCOPE = 0, 2
OTHER_WORDS, FILE_WORDS = 0, 1
"""Slots of the words: those of the other files, and those of this file."""

Part = Literal["above", "below", "workspace"]
"""The code above the cursor, the code below it, the other files."""


@attrs.frozen(eq=False)
class RowFollowers:
    """What followed the last tokens of rows, in this file and in the other files of the workspace.

    words: for a row whose token is begun, how often the tokens that fit occur at all. Slot 0 is of the other files,
    slot 1 of this file.
    """

    file: FollowerCounts
    workspace: FollowerCounts
    words: FollowerCounts

    @property
    def scopes(self) -> tuple[FollowerCounts, FollowerCounts, FollowerCounts]:
        return self.file, self.workspace, self.words

    def __len__(self) -> int:
        return self.file.rows

    def __bool__(self) -> bool:
        """Whether any row has followers."""
        return bool(len(self.file.groups) or len(self.workspace.groups))

    @property
    def of_workspace(self) -> "RowFollowers":
        """These followers without those of this file."""
        nothing = FollowerCounts.nothing(len(self))
        return RowFollowers(nothing, self.workspace, nothing)

    def only(self, row: int, tokens: Sequence[int]) -> "RowFollowers":
        """Return these followers with a row that has none but `tokens`."""
        named = np.asarray(tokens, np.int64)
        return attrs.evolve(self, file=self.file.only(row, named), workspace=self.workspace.only(row, named))

    def longest_run(self, row: int) -> Followers | None:
        """Return what followed the longest run of a row, in this file or the others; None if nothing did."""
        runs = [followers for counts in (self.file, self.workspace) for followers in counts.row(row)[-1:]]
        return max(runs, key=lambda followers: followers.run, default=None)

    @property
    def joined(self) -> FollowerCounts:
        """All counts in one: row `scope * len(self) + row` is of that scope."""
        return FollowerCounts.joined(self.scopes)


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

    def followers_of_rows(self, histories: Sequence[Sequence[int]], compatible: Sequence[int] = ()) -> RowFollowers:
        """Return one row a history. Several together take less time than one after the other.

        compatible: the tokens that the first row may have, if some of its text is typed; by default all.
        """
        index = None if self._known is None else self._known.index
        begun = {0: compatible} if len(compatible) else {}
        return followers_of_rows(self._scan, index, self._edited, histories, begun)

    def where_from(self, found: RowFollowers, row: int, token: int) -> Source | None:
        """Return where `token` followed the longest run of a row, this file first; None if it never did."""
        best: Source | None = None
        for scope, counts in enumerate((found.file, found.workspace)):
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


def followers_of_rows(
    scan: FileScan,
    index: RunIndex | None,
    edited: int | None,
    histories: Sequence[Sequence[int]],
    compatible: Mapping[int, Sequence[int]],
    above: Sequence[int] | None = None,
) -> RowFollowers:
    """Return the followers of rows, one a history.

    index: the other files. edited: a file of it that does not count. compatible: rows with the tokens that they may
    have. above: see FileScan.followers_of_rows.
    """
    in_file = scan.followers_of_rows(histories, above)
    in_index = FollowerCounts.nothing(len(histories)) if index is None else index.followers_of_rows(histories, edited)
    words = []
    for row, tokens in compatible.items():
        named = np.unique(np.asarray(tokens, np.int64))
        in_file, in_index = in_file.only(row, named), in_index.only(row, named)
        if index is not None:
            words.append((row * SLOTS + OTHER_WORDS, named, index.occurrences(named, edited)))
        words.append((row * SLOTS + FILE_WORDS, named, scan.occurrences(named)))
    return RowFollowers(in_file, in_index, FollowerCounts.of_words(words, len(histories)))
