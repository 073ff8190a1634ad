"""What the memory knows for the rows of one fill: from the edited file, and from the other files of the workspace."""

from collections.abc import Mapping, Sequence
from typing import Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.memory.candidates import MOST_ROWS, REACH, SEPARATOR, pattern_of, token_counts, windows_of
from engine.memory.followers import GROUP_SHIFT, GROUPS_A_ROW, PLACE_BITS, RUN_LENGTHS, FollowerCounts, Followers, Place
from engine.memory.index import RunIndex

BELOW, ABOVE = 0, 1
"""What a Place of a scan calls the code below and above the cursor."""


class FileScan:
    """The runs of tokens around the cursor, found by a scan: they change with every key, so an index is not worth it.

    What is nearest above the cursor counts as the latest. A place is as in RunIndex.
    """

    def __init__(self, above: Sequence[int], below: Sequence[int]) -> None:
        separators = np.full(REACH, SEPARATOR, np.int32)
        parts = (separators, np.asarray(below, np.int32), separators, np.asarray(above, np.int32))
        self._array = np.concatenate(parts)
        self._above = len(self._array) - len(above)
        self._windows = windows_of(self._array)
        # The token before the follower of each window; none before a separator.
        self._last = np.where(self._array[REACH:] == SEPARATOR, SEPARATOR, self._array[REACH - 1 : -1])

    def followers_of_rows(
        self, histories: Sequence[Sequence[int]], above: Sequence[int] | None = None
    ) -> FollowerCounts:
        """Return what followed the last tokens of each history. All occurrences of a run count.

        above: for each row, how many tokens above the cursor count, the first ones; by default all.
        """
        if len(histories) > MOST_ROWS:
            halves = (slice(0, MOST_ROWS), slice(MOST_ROWS, None))
            return FollowerCounts.joined(
                [self.followers_of_rows(histories[half], None if above is None else above[half]) for half in halves]
            )
        rows, parts = [], []
        for row, history in enumerate(histories):
            if not history:
                continue
            last = self._last if above is None else self._last[: self._above - REACH + above[row]]
            (places,) = (last == history[-1]).nonzero()
            if len(places):
                rows.append(row)
                parts.append(places)
        if not parts:
            return FollowerCounts.nothing(len(histories))
        places = np.concatenate(parts)
        row_of = np.array(rows).repeat([len(part) for part in parts])
        seen = self._windows[places].view(np.int32).reshape(-1, REACH + 1)
        patterns = np.array([pattern_of(history) for history in histories], np.int32)
        differs = seen != (patterns if len(histories) == 1 else patterns[row_of])
        lengths = differs[:, -2::-1].argmax(1)
        codes = (row_of * GROUPS_A_ROW << GROUP_SHIFT) | (seen[:, REACH].astype(np.int64) << PLACE_BITS) | places
        found = [codes]
        for rank in range(1, GROUPS_A_ROW):
            (longer,) = (lengths >= RUN_LENGTHS[rank]).nonzero()
            if not len(longer):
                break
            codes, lengths = codes[longer] + (1 << GROUP_SHIFT), lengths[longer]
            found.append(codes)
        return FollowerCounts.count(np.concatenate(found), len(histories), self._locate)

    def occurrences(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how often each of `tokens` occurs, int64 [n]. tokens: int64 [n]."""
        return token_counts(self._array[self._array != SEPARATOR], int(tokens.max(initial=0)) + 1)[tokens]

    def tokens_before(self, place: Place) -> NDArray[np.int32]:
        """Return the tokens of the code below or above, up to a place."""
        first = REACH if place.file == BELOW else self._above
        return self._array[first : first + place.position]

    def _locate(self, place: int) -> Place:
        position = place + REACH
        if position < self._above:
            return Place(BELOW, position - REACH)
        return Place(ABOVE, position - self._above)


SCOPES = 3
"""This file, the other files of the workspace, and the words of both."""
FILE_SCOPE, WORD_SCOPE = 0, 2
OTHER_WORDS, FILE_WORDS = 0, 1
"""Ranks of the words: those of the other files, and those of this file."""

Part = Literal["above", "below", "workspace"]
"""The code above the cursor, the code below it, the other files."""


@attrs.frozen(eq=False)
class RowFollowers:
    """What followed the last tokens of rows, in this file and in the other files of the workspace.

    words: for a row whose token is begun, how often the tokens that fit occur at all. Rank 0 is of the other files,
    rank 1 of this file.
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


class KnownFiles:
    """The files of one workspace: their index, and their numbers in it."""

    def __init__(self, name: str = "") -> None:
        self.name, self.index = name, RunIndex()
        self.highest = 0
        """The highest token of its files, or of those that it had."""
        self.numbers: dict[str, int] = {}
        self.paths: dict[int, str] = {}
        self._next = 0

    def add(self, path: str, tokens: NDArray[np.int32]) -> None:
        """Add a file with its tokens [n], in place of what was known of it."""
        self.highest = max(self.highest, int(tokens.max(initial=0)))
        number = self.numbers.get(path)
        if number is None:
            number = self.numbers[path] = self._next
            self.paths[number] = path
            self._next += 1
        self.index.add(number, tokens)

    def extend(self, path: str, tokens: NDArray[np.int32]) -> None:
        """Add tokens [n] to the end of the file that was added last."""
        self.index.extend(self.numbers[path], tokens)

    def remove(self, path: str) -> None:
        """Remove a file, if it is known."""
        number = self.numbers.pop(path, None)
        if number is not None:
            del self.paths[number]
            self.index.remove(number)


class RowMemory:
    """The memory as one fill sees it: the edited file as it is now, and the workspace without that file."""

    def __init__(self, scan: FileScan, known: KnownFiles | None, path: str) -> None:
        """`path`: the edited file, of which nothing that is known counts."""
        self._scan, self._known = scan, known
        self._edited = None if known is None else known.numbers.get(path)

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
        return self._known.paths[place.file], "workspace", self._known.index.tokens_before(place)


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
            words.append((row * GROUPS_A_ROW + OTHER_WORDS, named, index.occurrences(named, edited)))
        words.append((row * GROUPS_A_ROW + FILE_WORDS, named, scan.occurrences(named)))
    return RowFollowers(in_file, in_index, FollowerCounts.of_words(words, len(histories)))
