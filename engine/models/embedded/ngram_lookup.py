"""What the text itself says about each row, before any weight is asked: its n-grams, and what followed them last time.

Code repeats itself, and a small model that has to learn how to copy spends most of its training on that. So every row
is told which token followed the latest earlier occurrence of the longest run of tokens that ends at it (prompt lookup,
as drafting does it, here as an input), and every row of a canvas how that occurrence went on. Rows also get hashes of
the two and the three tokens that end at them, under which the network keeps an embedding each: what usually follows
those is then a matter of looking it up. All of it depends only on tokens at or before the row, so it can be cached as
keys and values are.
"""

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.models.embedded.layout import SpecialTokens

Ids = NDArray[np.int64]

RUNS = (1, 2, 3, 4, 6, 8)
"""Lengths of the runs that are looked for."""
REACHES = (2, 6)
"""Up to which distances behind the anchor a canvas row counts as near, and as middling; the rest is far."""
STRENGTHS = (len(RUNS) + 1) * (2 + len(REACHES))
"""How many kinds of hint there are: by length of run, for stream rows and for near, middling and far canvas rows."""


@attrs.frozen
class Hints:
    """For n rows: the token expected next, the kind of that expectation, and the hashes of the row's n-grams.

    tokens, strengths: int64 [n]; a row without an expectation has the token 0 and a strength that says so
    grams: int64 [n, 2], under 0 to `buckets` - 1; 0 where the row's text is unknown or too short
    """

    tokens: Ids
    strengths: Ids
    grams: Ids

    def part(self, rows: slice) -> "Hints":
        """Return the hints of some of the rows."""
        return Hints(self.tokens[rows], self.strengths[rows], self.grams[rows])


class Lookup:
    """The hints of one stream's rows, and of canvases behind any of them.

    The rest of the cursor's line stands between code above and middle but is no part of what was written up to the
    cursor: the rows after <tail> get no hint, <middle> gets that of the last row above, and runs go on over the gap.
    Only rows from `since` on are looked up.
    """

    def __init__(self, stream: list[int] | Ids, marks: SpecialTokens, buckets: int, since: int = 0) -> None:
        tokens = np.asarray(stream, np.int64)
        self._mask, self._buckets, self._since = marks.mask, buckets, since
        tail, middle = _last(tokens, marks.tail), _last(tokens, marks.middle)
        tail = len(tokens) if tail is None else tail
        self._text = tokens[:tail] if middle is None else np.concatenate((tokens[:tail], tokens[middle + 1 :]))
        self._index = np.arange(len(tokens))
        if middle is None:
            self._index[tail:] = -1
        else:
            self._index[tail:middle] = -1
            self._index[middle:] = np.arange(tail - 1, len(self._text))
        rows = self._index[since:]
        rows = rows[rows >= 0]
        first = int(rows[0]) if len(rows) else len(self._text)
        self._found, self._length, self._grams = _look_up(self._text, first, buckets)
        self._narrowed, self._narrow_match = -1, (0, 0)

    def narrow(self, row: int, compatible_tokens: Ids) -> None:
        """Tell one row only of occurrences that went on with a token that agrees with what is typed (see healing.py).

        Hints of a canvas behind that row go on from there.
        """
        at = int(self._index[row])
        if at >= 0:
            self._narrowed, self._narrow_match = row, _narrow(self._text[: at + 1], compatible_tokens)

    def _match(self, row: int) -> tuple[int, int]:
        """Return where the earlier run like the one at a row ends, and its number in RUNS, or 0."""
        at = self._index[row]
        return self._narrow_match if row == self._narrowed else (int(self._found[at]), int(self._length[at]))

    def stream(self) -> Hints:
        """Return the hints of all rows from `since` on."""
        at = self._index[self._since :]
        known = (at >= 0) & (self._length[at] > 0)
        tokens = np.where(known, self._text[np.minimum(self._found[at] + 1, len(self._text) - 1)], 0)
        strengths = np.where(known, self._length[at], 0)
        row = self._narrowed - self._since
        if row >= 0:
            found, strengths[row] = self._narrow_match
            tokens[row] = self._text[found + 1] if strengths[row] else 0
        return Hints(tokens, strengths, np.where((at >= 0)[:, None], self._grams[at], 0))

    def canvas(self, anchor: int, canvas: list[int] | Ids) -> Hints:
        """Return the hints of a canvas [n] of tokens and masks that stands behind row `anchor` of the stream."""
        shown = np.asarray(canvas, np.int64)
        at = self._index[anchor]
        found, length = self._match(anchor)
        source = found + 2 + np.arange(len(shown))
        known = (at >= 0) & (length > 0) & (source <= at)
        tokens = np.where(known, self._text[np.minimum(source, at)], 0)
        reach = 1 + np.searchsorted(REACHES, np.arange(1, len(shown) + 1))
        strengths = reach * (len(RUNS) + 1) + np.where(known, length, 0)
        hidden = shown == self._mask
        if hidden.all():
            return Hints(tokens, strengths, np.zeros((len(shown), 2), np.int64))
        _, _, grams = _look_up(shown, len(shown), self._buckets)
        grams[hidden] = 0
        grams[1:][hidden[:-1]] = 0
        grams[2:, 1][hidden[:-2]] = 0
        return Hints(tokens, strengths, grams)


def _narrow(text: Ids, compatible_tokens: Ids) -> tuple[int, int]:
    """Return where the latest earlier occurrence of the longest run at the end of a text [n] ends that went on with one
    of the `compatible_tokens` tokens [m], and that run's number in RUNS counted from 1, or 0."""
    ends = np.flatnonzero(np.isin(text[1:], compatible_tokens))
    found = (0, 0)
    for run in range(1, RUNS[-1] + 1):
        ends = ends[ends >= run - 1]
        ends = ends[text[ends - run + 1] == text[len(text) - run]] if run <= len(text) else ends[:0]
        if not len(ends):
            break
        if run in RUNS:
            found = int(ends[-1]), RUNS.index(run) + 1
    return found


def _last(tokens: Ids, mark: int) -> int | None:
    places = np.flatnonzero(tokens == mark)
    return int(places[-1]) if len(places) else None


FACTOR, SPREAD, SHIFT = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 29
"""How runs are hashed, modulo 2**64; trained weights are looked up under these hashes."""
_FACTOR, _SPREAD, _SHIFT = np.uint64(FACTOR), np.uint64(SPREAD), np.uint64(SHIFT)
_FEW = 4
"""Up to how many rows are searched for one by one; more are sorted."""


def _look_up(text: Ids, first: int, buckets: int) -> tuple[Ids, Ids, Ids]:
    """Return, for each place of a text [n], where the latest earlier run like the one that ends there ends [n], that
    run's number in RUNS counted from 1, or 0 [n], and the grams [n, 2]; matches only for places from `first` on."""
    size = len(text)
    found, length, grams = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros((size, 2), np.int64)
    keys = values = text.astype(np.uint64)
    for run in range(1, RUNS[-1] + 1):
        if run > size:
            break
        if run > 1:  # keys[i] stands for the run that starts at i
            keys = keys[:-1] * _FACTOR + values[run - 1 :]
            keys ^= keys >> _SHIFT
        if run in (2, 3):
            grams[run - 1 :, run - 2] = 1 + ((keys * _SPREAD) >> np.uint64(32)).astype(np.int64) % (buckets - 1)
        if run not in RUNS or first >= size:
            continue
        number, start = RUNS.index(run) + 1, max(0, first - run + 1)
        if len(keys) - start <= _FEW:
            for at in range(start, len(keys)):
                same = np.flatnonzero(keys[:at] == keys[at])
                if len(same):
                    found[at + run - 1], length[at + run - 1] = same[-1] + run - 1, number
        else:
            order = np.argsort(keys, kind="stable")
            again = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
            places = order[again + 1] + run - 1
            found[places], length[places] = order[again] + run - 1, number
    return found, length, grams
