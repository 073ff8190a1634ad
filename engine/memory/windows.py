"""The parts of known files that share the rarest and longest runs of tokens with a query.

A query is the code around a hole. Each of its tokens ends several runs (index.py). A place of a known file scores the
information of the rarest run that ends there. A window scores the sum over the tokens of the query, each counted once
with its best place in the window, and at most the sum over its places. So a long common run scores high, because all
its tokens end rare runs, and what the query repeats scores no higher than what the window repeats.

RelatedWindows chooses windows for a model that reads related code in its prompt: of the other files, and of the edited
file where it lies too far from the cursor to be read anyway.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.fill.interface import HISTORY
from engine.memory.followers import GROUPS_A_ROW, MOST_ROWS
from engine.memory.index import MOST_PLACES, RunPlaces
from engine.memory.row_memory import KnownFiles
from engine.protocol.messages import HoleRequest, Snippet

LINES = 20
"""Lines of a window, at most."""
LINES_BEFORE = 3
"""Lines of a window before its first shared run."""
MOST_TOKENS = 640
"""A window of longer lines has fewer lines. A longer line is not code that anybody wrote, and gives no window."""
MOST_WINDOWS = 4
LEAST_SCORE = 10.0
"""Nats. About three runs that occur once or twice; windows that share less are as good as chosen at random."""
LEAST_SHARE = 0.2
"""A share of the best window's score. In a small workspace every run is rare, and LEAST_SCORE holds nothing back."""
MOST_QUERY_TOKENS = MOST_ROWS
_LOOKED_AT = 16
"""Pairs of blocks whose lines are looked at. Without a bound, long minified files would cost time and give nothing."""
_BLOCK = 128
"""Tokens. Places are first grouped by two neighbouring blocks of their file, some 20 lines together."""
_BLOCK_BITS, _NAME_BITS = 24, 10


LINES_ABOVE = 8
"""Lines above the cursor that are part of the query, the cursor's own line included."""
LINES_BELOW = 3
HELD_LINES = 12
"""Windows are held until the cursor has moved up or down by about as many lines."""
_ANCHOR = 2
"""Lines that say where the cursor is: the last ones above it."""
HELD_FILES = 64
GROWTH = 1.125
"""Windows are chosen again once the workspace has so many times the tokens."""
_QUERY_CHARACTERS = 4000
READ_ABOVE, READ_BELOW = 1_400, 500
"""Characters of the edited file around the cursor that the model reads anyway, so no window is of them."""
_FARTHEST = 24_000
"""Characters above the cursor, and half as many below, that windows of the edited file are looked for in."""


@attrs.frozen
class Window:
    """Some whole lines of a known file, as they are there but for line ends, which are "\\n". `score` in nats."""

    path: str
    text: str
    score: float


@attrs.frozen(eq=False)
class LineTexts:
    """Finds the lines of a file by its tokens, and their text.

    breaks: bool [vocabulary], whether the token's text has a newline. bytes_of: a token's text.
    """

    breaks: NDArray[np.bool_]
    bytes_of: Callable[[int], bytes]

    def breaks_of(self, tokens: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the indices of the tokens that break a line."""
        return np.flatnonzero(self.breaks[tokens])

    def text(self, tokens: NDArray[np.int32], first: int, stop: int) -> str:
        """Return the whole lines between tokens `first` and `stop`.

        `first` is 0 or breaks a line. `stop - 1` breaks a line, or is the file's last token. A tokenizer that
        normalizes text (NFC, say) gives the normalized form; it would read the file's own form as the same tokens.
        """
        parts = [self.bytes_of(token) for token in tokens[first:stop].tolist()]
        if first and parts:
            parts[0] = parts[0].rpartition(b"\n")[2]
        text = b"".join(parts)
        if stop < len(tokens):
            text = text[: text.rfind(b"\n") + 1]
        return text.decode("utf-8", "replace")


@attrs.frozen(eq=False)
class _Hits:
    """Places that share a run with the query: int64 [n] but for `weights`, fp64 [n], in nats."""

    rows: NDArray[np.int64]
    files: NDArray[np.int64]
    positions: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, places: RunPlaces) -> "_Hits":
        """Weigh places of runs that occur less than MOST_PLACES times. Single tokens are left out.

        In a small workspace every comma is rare.
        """
        weights = np.log(MOST_PLACES / places.counts)
        kept = places.groups % GROUPS_A_ROW > 0
        return cls(places.rows[kept], places.files[kept], places.positions[kept], weights[kept])

    def part(self, kept: NDArray[np.bool_]) -> "_Hits":
        return _Hits(self.rows[kept], self.files[kept], self.positions[kept], self.weights[kept])

    def ranked(self) -> Iterator[tuple[float, "_Hits"]]:
        """Yield the hits of two neighbouring blocks of a file, best first, with their score."""
        if not len(self.rows):
            return
        blocks = (self.files << _BLOCK_BITS) | (self.positions // _BLOCK + 1)
        # Each hit counts for the pair that begins with its block, and for the pair before.
        pairs, pair_of = np.unique(np.concatenate((blocks, blocks - 1)), return_inverse=True)
        by_row = self._sums(pair_of, self.rows)
        scores = np.minimum(by_row, self._sums(pair_of, self.positions % (2 * _BLOCK)))
        for index in np.argsort(-scores, kind="stable").tolist():
            first = pairs[index]
            yield float(scores[index]), self.part((blocks == first) | (blocks == first + 1))

    def _sums(self, pair_of: NDArray[np.int64], names: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return for each pair the sum over names of the largest weight of a name's hits.

        pair_of: int64 [2 n], of all hits and of all hits again. names: int64 [n], less than 1 << _NAME_BITS.
        """
        keys = (pair_of << _NAME_BITS) | np.tile(names, 2)
        order = np.lexsort((np.tile(self.weights, 2), keys))
        keys = keys[order]
        last = order[np.append(keys[1:] != keys[:-1], True)]
        return np.asarray(np.bincount(pair_of[last], self.weights[last % len(self.weights)]), np.float64)


def best_windows(
    known: KnownFiles, path: str, query: Sequence[Sequence[int]], lines: LineTexts, most: int = MOST_WINDOWS
) -> list[Window]:
    """Return the windows that are most like a query, best first. No two of them overlap.

    path: the edited file, which no window may be of. query: the tokens of each part of the code around the hole, at
    most MOST_QUERY_TOKENS together.
    """
    histories = [part[max(0, end - HISTORY) : end] for part in query for end in range(1, len(part) + 1)]
    windows: list[Window] = []
    taken: dict[int, list[range]] = {}
    places = known.index.rare_places_of_rows(histories, known.numbers.get(path))
    for score, hits in islice(_Hits.of(places).ranked(), _LOOKED_AT):
        least = max(LEAST_SCORE, LEAST_SHARE * windows[0].score if windows else 0.0)
        if score < least or len(windows) == most:
            break
        file = int(hits.files[0])
        tokens = known.index.tokens_of(file)
        extent = _extent(hits, lines.breaks_of(tokens), len(tokens))
        others = taken.setdefault(file, [])
        if len(extent) > MOST_TOKENS or any(_overlap(extent, other) for other in others):
            continue
        others.append(extent)
        if (text := lines.text(tokens, extent.start, extent.stop)).strip():
            windows.append(Window(known.paths[file], text, score))
    return windows


def _extent(hits: _Hits, breaks: NDArray[np.int64], length: int) -> range:
    """Return the tokens of the LINES lines that have the most of `hits`, or of the first of them if they are long.

    breaks: the indices of the file's tokens that break a line. length: of the file, in tokens.
    """
    order = np.argsort(hits.positions, kind="stable")
    lines = breaks.searchsorted(hits.positions[order] - 1)
    sums = np.concatenate(([0.0], hits.weights[order].cumsum()))
    stops = lines.searchsorted(lines + LINES - LINES_BEFORE)
    first = max(0, int(lines[(sums[stops] - sums[:-1]).argmax()]) - LINES_BEFORE)
    start = int(breaks[first - 1]) if first else 0
    ends = [*(breaks[first : first + LINES] + 1).tolist(), length][:LINES]
    return range(start, next((end for end in reversed(ends) if end - start <= MOST_TOKENS), length))


def _overlap(first: range, second: range) -> bool:
    return max(first.start, second.start) < min(first.stop, second.stop)


@attrs.frozen
class _Held:
    """The windows for a file. `lines`: those above the cursor when they were chosen. `tokens`: of the workspace.

    windows: of other files. own: of the file itself.
    """

    lines: list[str]
    tokens: int
    windows: list[Window]
    own: list[Window]

    def holds(self, request: HoleRequest, lines: list[str]) -> bool:
        """Return whether the cursor, with `lines` above it, is near the place of the choice, and its own windows are
        still in the file."""
        is_near = _contains(lines, self.lines[-_ANCHOR:]) or _contains(self.lines, lines[-_ANCHOR:])
        return is_near and all(window.text in request.prefix or window.text in request.suffix for window in self.own)


class RelatedWindows:
    """Chooses windows for holes, and holds the choice while the cursor stays near.

    Models read related code before the code above the cursor, and keep what they have read. So another choice for each
    line would make them read everything again. All methods belong on one thread.
    """

    def __init__(
        self,
        files_of: Callable[[str], KnownFiles | None],
        tokenize: Callable[[str], Sequence[int]],
        lines: LineTexts,
        most_own: int = 0,
    ) -> None:
        """files_of: returns what is known of a workspace, if anything. most_own: windows of the edited file."""
        self._files_of, self._tokenize, self._lines, self._most_own = files_of, tokenize, lines, most_own
        self._held: OrderedDict[tuple[str, str], _Held] = OrderedDict()

    def snippets(self, request: HoleRequest) -> list[Snippet]:
        """Return windows as snippets, the best first. The fill's own snippets are not repeated."""
        workspace = request.workspace if request.memory == "workspace" else ""
        known = self._files_of(workspace) if workspace else None
        if request.memory == "off" or (known is None and not self._most_own):
            return []
        held = self._hold(request, workspace, known)
        others = [
            window
            for window in held.windows
            if not any(window.path == given.path and window.text in given.text for given in request.snippets)
        ]
        ordered = [*held.own[:1], *others, *held.own[1:]]
        return [Snippet(window.path, window.text) for window in ordered]

    def drop(self, workspace: str, paths: Sequence[str] | None) -> None:
        """Drop choices that have windows of these files of a workspace, or none at all; by default all.

        Windows of the edited file itself stay: that file is learned again after every key.
        """
        for key, held in list(self._held.items()):
            has_these = paths is None or not held.windows or any(window.path in paths for window in held.windows)
            if key[0] == workspace and has_these:
                self._held[key] = attrs.evolve(held, windows=[], tokens=0)

    def _hold(self, request: HoleRequest, workspace: str, known: KnownFiles | None) -> _Held:
        """Return the windows that are held for the file, or a new choice; only of the other files if those changed."""
        key, lines = (workspace, request.path), _lines_above(request.prefix)
        held, tokens = self._held.pop(key, None), 0 if known is None else known.index.tokens
        if held is not None and not held.holds(request, lines):
            held = None
        if held is None or tokens > GROWTH * held.tokens:
            query = self._query(request)
            windows = [] if known is None else best_windows(known, request.path, query, self._lines)
            # Another choice of the other files does not make the own windows or their place any newer.
            first = held or _Held(lines, tokens, windows, self._own_windows(request, query))
            held = attrs.evolve(first, tokens=tokens, windows=windows)
        self._held[key] = held
        while len(self._held) > HELD_FILES:
            self._held.popitem(last=False)
        return held

    def _query(self, request: HoleRequest) -> list[Sequence[int]]:
        """Return the tokens of the lines around the cursor: those above, and those below."""
        above = "".join(request.prefix[-_QUERY_CHARACTERS:].splitlines(keepends=True)[-LINES_ABOVE:])
        below = "".join(request.suffix[:_QUERY_CHARACTERS].splitlines(keepends=True)[:LINES_BELOW])
        after = self._tokenize(below)[: MOST_QUERY_TOKENS // 4]
        return [self._tokenize(above)[len(after) - MOST_QUERY_TOKENS :], after]

    def _own_windows(self, request: HoleRequest, query: Sequence[Sequence[int]]) -> list[Window]:
        """Return windows of the edited file, as it is now, that the model would not read anyway."""
        if not self._most_own:
            return []
        above = request.prefix[-_FARTHEST:-READ_ABOVE].rpartition("\n")[0]
        below = request.suffix[READ_BELOW : _FARTHEST // 2].partition("\n")[2]
        known = KnownFiles()
        for part, text in (("above", above), ("below", below)):
            if text.strip():
                known.add(part, np.array(self._tokenize(text), np.int32))
        found = best_windows(known, "", query, self._lines, self._most_own) if known.numbers else []
        return [attrs.evolve(window, path=request.path) for window in found]


def _lines_above(prefix: str) -> list[str]:
    """Return the last lines that end above the cursor, without empty ones."""
    lines = prefix[-2 * _QUERY_CHARACTERS :].splitlines()
    if not prefix.endswith("\n"):
        lines = lines[:-1]
    return [line for line in lines if line.strip()][-HELD_LINES:]


def _contains(lines: list[str], part: list[str]) -> bool:
    """Return whether `part` are neighbouring items of `lines`. An empty part is contained in no lines only."""
    if not part:
        return not lines
    return any(lines[at : at + len(part)] == part for at in range(len(lines) - len(part) + 1))
