"""What the memory knows for the rows of one fill: from the edited file, and from the other files of the workspace.

The origins of a fill say which parts of its text are in known files too, and where.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.fill.interface import HISTORY, Committed, Layout, Vocabulary
from engine.fill.sampler import TokenSource
from engine.memory.followers import (
    GROUP_SHIFT,
    GROUPS_A_ROW,
    MOST_ROWS,
    PLACE_BITS,
    REACH,
    RUN_LENGTHS,
    SEPARATOR,
    FollowerCounts,
    Followers,
    Place,
    pattern_of,
    token_counts,
    windows_of,
)
from engine.memory.index import RunIndex
from engine.protocol.messages import HoleRequest, Origin

BELOW, ABOVE = 0, 1
"""What a Place of a scan calls the code below and above the cursor."""


class FileScan:
    """The runs of tokens around the cursor, found by a scan: they change with every key, so an index is not worth it.

    The code nearest above the cursor counts as the latest. A place is as in RunIndex.
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

    def followers_of_rows(self, histories: Sequence[Sequence[int]], compatible: Sequence[int] = ()) -> RowFollowers:
        """Return what followed the last tokens of each history, a row each.

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


@attrs.frozen
class _Token:
    """A committed token with its text, and where it was seen after the tokens before it. `end`: in the text of all."""

    token: int
    text: str
    end: int
    source: TokenSource
    seen: Source | None


class Origins:
    """Finds the origins of the candidates of one fill. `rows` is the memory of that fill."""

    def __init__(self, rows: RowMemory, vocabulary: Vocabulary, request: HoleRequest, layout: Layout) -> None:
        self._rows, self._vocabulary, self._request, self._layout = rows, vocabulary, request, layout

    def of(self, committed: Committed) -> list[Origin]:
        """Return the origins of a candidate in the order of its text.

        A part has an origin if the memory gave more of its first and of its last token than the model did. A place in
        a cell above that of a notebook has no line, and is left out.
        """
        tokens = self._tokens(committed)
        found = [self._origin(part) for part in _parts(tokens)]
        return [origin for origin in found if origin is not None]

    def _tokens(self, committed: Committed) -> list[_Token]:
        """Return the tokens that reach beyond the typed text."""
        typed, texts = len(self._layout.typed), self._vocabulary.texts_of(committed.tokens)
        ends = np.cumsum([len(text) for text in texts]).tolist()
        seen = self._seen(committed)
        each = zip(committed.tokens, texts, ends, committed.sources, seen, strict=True)
        return [_Token(*fields) for fields in each if fields[2] > typed]

    def _seen(self, committed: Committed) -> list[Source | None]:
        """Return where each token was seen last: in the source of the memory that gave more to it."""
        tokens = committed.tokens
        written = [*self._layout.above[-HISTORY:], *tokens]
        first = len(written) - len(tokens)
        histories = [written[max(0, end - HISTORY) : end] for end in range(first, len(written))]
        found = self._rows.followers_of_rows(histories)
        typed = self._layout.typed.encode()
        for row, token in enumerate(tokens):
            if not typed:
                break
            followers = {int(each) for scope in found.scopes for run in scope.row(row) for each in run.tokens}
            found = found.only(row, [each for each in followers if self._is_compatible(each, typed)])
            typed = typed[len(self._vocabulary.bytes_of(token)) :]
        elsewhere = found.of_workspace
        sides = [elsewhere if each.shares[2] > each.shares[1] else found for each in committed.sources]
        return [
            self._rows.where_from(side, row, token) for row, (side, token) in enumerate(zip(sides, tokens, strict=True))
        ]

    def _is_compatible(self, token: int, typed: bytes) -> bool:
        text = self._vocabulary.bytes_of(token)
        return bool(text) and (text.startswith(typed) or typed.startswith(text))

    def _origin(self, part: Sequence[_Token]) -> Origin | None:
        place = part[-1].seen
        assert place is not None
        raw, typed = "".join(token.text for token in part), len(self._layout.typed)
        start = part[-1].end - len(raw)
        text = raw[max(0, typed - start) :]
        skipped = raw[: len(raw) - len(text)] + text[: len(text) - len(text.lstrip())]
        before = self._lines(place.tokens_before[: len(place.tokens_before) - len(part) + 1].tolist())
        line = self._first_line(place) + before + skipped.count("\n")
        path = self._request.path if place.part != "workspace" else place.path
        if line < 1 or not path:
            return None
        least = min((token.seen for token in part if token.seen is not None), key=lambda seen: seen.count / seen.total)
        alone = round(math.prod(token.source.alone for token in part), 6)
        return Origin(max(0, start - typed), text, path, line, least.count, least.total, alone)

    def _first_line(self, place: Source) -> int:
        """Return the line in its file at which the code of a place begins."""
        hole = self._request.line or 1 + self._request.prefix.count("\n")
        match place.part:
            case "workspace":
                return 1
            case "below":
                return hole  # The code below begins with the end of the hole's line.
            case "above":
                return hole - self._layout.typed.count("\n") - self._lines(self._layout.above)

    def _lines(self, tokens: Sequence[int]) -> int:
        return "".join(self._vocabulary.texts_of(tokens)).count("\n")


def _parts(tokens: Sequence[_Token]) -> Iterator[Sequence[_Token]]:
    """Yield the parts that have an origin, the first one first. Tokens that are neighbours at one place are one part.

    The place of a part is that of its last token: it followed the longest run, so it is the most certain one.
    """
    parts, last = [], len(tokens) - 1
    while last >= 0:
        place = tokens[last].seen
        if place is None or not tokens[last].source.is_remembered:
            last -= 1
            continue
        before, first = place.tokens_before.tolist(), last
        while first > 0 and tokens[first - 1].seen is not None and before and before.pop() == tokens[first - 1].token:
            first -= 1
        while not tokens[first].source.is_remembered:
            first += 1
        parts.append(tokens[first : last + 1])
        last = first - 1
    return reversed(parts)
