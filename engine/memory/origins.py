"""The origins of a fill: which parts of its text stand in known files too, and where."""

import math
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from engine.fill.interface import HISTORY, Committed, Layout, Vocabulary
from engine.fill.sampler import TokenSource
from engine.memory.row_memory import RowMemory, Source
from engine.protocol.messages import Fill, Origin


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

    def __init__(self, rows: RowMemory, vocabulary: Vocabulary, fill: Fill, layout: Layout) -> None:
        self._rows, self._vocabulary, self._fill, self._layout = rows, vocabulary, fill, layout

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
        path = self._fill.path if place.part != "workspace" else place.path
        if line < 1 or not path:
            return None
        least = min((token.seen for token in part if token.seen is not None), key=lambda seen: seen.count / seen.total)
        alone = round(math.prod(token.source.alone for token in part), 6)
        return Origin(max(0, start - typed), text, path, line, least.count, least.total, alone)

    def _first_line(self, place: Source) -> int:
        """Return the line in its file at which the code of a place begins."""
        hole = self._fill.line or 1 + self._fill.prefix.count("\n")
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
