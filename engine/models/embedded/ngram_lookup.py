"""What the text itself says about each row, without any weights: its n-grams, and what followed them last time.

Code repeats itself. A small model that must learn to copy spends most of its training on that. So every row gets a
hint: the token that followed the latest earlier occurrence of the longest run of tokens that ends at the row (prompt
lookup, used for drafts elsewhere, is an input here). A canvas row gets how that occurrence went on. Rows also get
hashes of their last two and last three tokens; the network has an embedding for each hash, so it can look up what
usually follows. All of this depends only on tokens at or before the row, so it can be cached as keys and values are.
"""

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.models.embedded.layout import SpecialTokens

Ids = NDArray[np.int64]

RUNS = (1, 2, 3, 4, 6, 8)
"""The lengths of runs that are looked for."""
REACHES = (2, 6)
"""The largest distance from the anchor at which a canvas row is near, and middling. Beyond it is far."""
STRENGTHS = (len(RUNS) + 1) * (2 + len(REACHES))
"""How many kinds of hint there are: each length of run, for stream rows and for near, middling and far canvas rows."""


@attrs.frozen
class Hints:
    """For n rows: the hinted token, the kind of the hint, and the hashes of the row's n-grams.

    tokens, strengths: int64 [n]; a row without a hint has the token 0 and the kind for "no hint"
    grams: int64 [n, 2], from 0 to `buckets` - 1; 0 where the row's text is unknown or too short
    """

    tokens: Ids
    strengths: Ids
    grams: Ids

    def part(self, rows: slice) -> "Hints":
        """Return the hints of some of the rows."""
        return Hints(self.tokens[rows], self.strengths[rows], self.grams[rows])


class Lookup:
    """The hints of one stream's rows, and of a canvas after any of them.

    The rest of the cursor's line comes between the code above and <middle>, but is not part of the text before the
    cursor. So rows after <tail> get no hint, <middle> gets the hint of the last row above, and runs continue across the
    gap. Only rows from `since` on are looked up."""

    def __init__(self, stream: list[int] | Ids, special: SpecialTokens, buckets: int, since: int = 0) -> None:
        tokens = np.asarray(stream, np.int64)
        self._mask, self._buckets, self._since = special.mask, buckets, since
        tail, middle = _last(tokens, special.tail), _last(tokens, special.middle)
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
        """Hint one row only at occurrences that went on with a compatible token (see token_healing.py).

        Hints of a canvas after that row go on from there.
        """
        at = int(self._index[row])
        if at >= 0:
            self._narrowed, self._narrow_match = row, _narrow(self._text[: at + 1], compatible_tokens)

    def _match(self, row: int) -> tuple[int, int]:
        """Return where the earlier occurrence of a row's run ends, and the run's number in RUNS counted from 1, or
        0."""
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
        """Return the hints of a canvas [n] of tokens and masks that comes after row `anchor` of the stream."""
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
    """Return where the latest earlier occurrence of the longest run at the end of a text [n] ends, and the run's number
    in RUNS counted from 1, or 0. Only occurrences that went on with one of `compatible_tokens` [m] count."""
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


def _last(tokens: Ids, token: int) -> int | None:
    places = np.flatnonzero(tokens == token)
    return int(places[-1]) if len(places) else None


FACTOR, SPREAD, SHIFT = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 29
"""How runs are hashed, modulo 2**64. Trained weights are looked up under these hashes: do not change them."""
_FACTOR, _SPREAD, _SHIFT = np.uint64(FACTOR), np.uint64(SPREAD), np.uint64(SHIFT)
FEW_ROWS = 16
"""Up to this many rows are searched for one by one. More are sorted."""


def _look_up(text: Ids, first: int, buckets: int) -> tuple[Ids, Ids, Ids]:
    """Return, for each position of a text [n]: where the latest earlier occurrence of its run ends [n], the run's
    number in RUNS counted from 1, or 0 [n], and the grams [n, 2]. Occurrences only for positions from `first` on, and
    if these are few, their grams only."""
    size = len(text)
    if size - first <= FEW_ROWS and first < size:
        return _look_up_few(text, first, buckets)
    found, length, grams = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros((size, 2), np.int64)
    keys = values = text.astype(np.uint64)
    for run in range(1, RUNS[-1] + 1):
        if run > size:
            break
        if run > 1:  # keys[i] is the hash of the run that starts at i
            keys = keys[:-1] * _FACTOR + values[run - 1 :]
            keys ^= keys >> _SHIFT
        if run in (2, 3):
            grams[run - 1 :, run - 2] = 1 + ((keys * _SPREAD) >> np.uint64(32)).astype(np.int64) % (buckets - 1)
        if run not in RUNS or first >= size:
            continue
        number = RUNS.index(run) + 1
        order = np.argsort(keys, kind="stable")
        again = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
        places = order[again + 1] + run - 1
        found[places], length[places] = order[again] + run - 1, number
    return found, length, grams


def _look_up_few(text: Ids, first: int, buckets: int) -> tuple[Ids, Ids, Ids]:
    """Return what `_look_up` does, for the positions from `first` on; zeros before them."""
    size = len(text)
    found, length, grams = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros((size, 2), np.int64)
    written = text.astype(np.int32).tobytes()
    for at in range(first, size):
        found[at], length[at] = latest_run(written[: (at + 1) * _TOKEN_BYTES])
        grams[at] = grams_of(text[max(0, at - 2) : at + 1].tolist(), buckets)
    return found, length, grams


_TOKEN_BYTES = 4


def latest_run(written: bytes) -> tuple[int, int]:
    """Return where the latest earlier occurrence of the longest run at the end of a text ends, and the run's number in
    RUNS counted from 1, or 0. `written` holds the tokens as int32."""
    stop = len(written) - _TOKEN_BYTES
    for number in range(len(RUNS), 0, -1):
        size = RUNS[number - 1] * _TOKEN_BYTES
        if size > stop:
            continue
        sought, end = written[-size:], stop
        while (start := written.rfind(sought, 0, end)) % _TOKEN_BYTES:  # -1 is no multiple of the size either
            if start < 0:
                break
            end = start + size - 1
        if start >= 0:
            return start // _TOKEN_BYTES + RUNS[number - 1] - 1, number
    return 0, 0


_ALL_BITS = (1 << 64) - 1


def grams_of(text: list[int], buckets: int) -> tuple[int, int]:
    """Return the hashes of the last two and the last three of at most three tokens; 0 where the text is too short."""
    return (_gram(text[-2:], buckets) if len(text) > 1 else 0, _gram(text, buckets) if len(text) > 2 else 0)


def _gram(run: list[int], buckets: int) -> int:
    key = run[0]
    for token in run[1:]:
        key = (key * FACTOR + token) & _ALL_BITS
        key ^= key >> SHIFT
    return 1 + ((key * SPREAD & _ALL_BITS) >> 32) % (buckets - 1)
