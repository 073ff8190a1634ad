"""lookup.py's hints for whole training sequences: the same answers, in a tenth of the time.

The engine looks up a few new rows of a text at a time; training looks up all rows of a text that it sees once, and all
canvases behind it. So runs are told apart by sorting 16-bit numbers (numpy's radix sort) instead of 64-bit hashes, and
the canvases of a sequence are answered together.
"""

import numpy as np
from numpy.typing import NDArray

from engine.models.embedded.layout import SpecialTokens
from engine.models.embedded.ngram_lookup import REACHES, RUNS, Hints, Ids, Lookup

_Ranks = NDArray[np.uint16]
_MADE_OF = {2: (1, 1), 3: (2, 1), 4: (2, 2), 6: (4, 2), 8: (4, 4)}
"""Each run as two shorter ones."""
assert tuple(_MADE_OF) == RUNS[1:], "a run that lookup.py looks for cannot be put together"


class BatchLookup(Lookup):
    """Lookup of a whole stream of less than 65,536 tokens, all of them under 65,536."""

    def __init__(self, stream: list[int] | Ids, marks: SpecialTokens, buckets: int) -> None:
        super().__init__(stream, marks, buckets, since=len(stream))
        self._since = 0
        self._found, self._length = _repeats(self._text)

    def canvases(self, anchors: Ids, offsets: Ids, shown: Ids) -> Hints:
        """Return the hints of canvas rows [R], canvas behind canvas: anchor, place in the canvas, and shown token."""
        at = self._index[anchors]
        narrowed = anchors == self._narrowed
        source = np.where(narrowed, self._narrow_match[0], self._found[at]) + 2 + offsets
        length = np.where(narrowed, self._narrow_match[1], self._length[at])
        known = (at >= 0) & (length > 0) & (source <= at)
        tokens = np.where(known, self._text[np.minimum(source, at)], 0)
        reach = 1 + np.searchsorted(REACHES, offsets + 1)
        strengths = reach * (len(RUNS) + 1) + np.where(known, length, 0)
        grams = self.canvas(0, shown).grams
        grams[offsets == 0] = 0
        grams[offsets == 1, 1] = 0
        return Hints(tokens, strengths, grams)


def _repeats(text: Ids) -> tuple[Ids, Ids]:
    """Return for each place of a text [n] where the latest earlier run like the one that ends there ends [n], and that
    run's number in RUNS counted from 1, or 0 [n]."""
    size = len(text)
    found, length = np.zeros(size, np.int64), np.zeros(size, np.int64)
    ranks: dict[int, _Ranks] = {1: text.astype(np.uint16)}
    for number, run in enumerate(RUNS, 1):
        if run > size:
            break
        if run == 1:
            keys = ranks[1]
            order = np.argsort(keys, kind="stable")
            again = keys[order[1:]] == keys[order[:-1]]
        else:
            head, tail = _MADE_OF[run]
            last = ranks[tail][head : head + size - run + 1]
            keys = ranks[head][: len(last)]
            order = np.argsort(last, kind="stable")
            order = order[np.argsort(keys[order], kind="stable")]
            again = (keys[order[1:]] == keys[order[:-1]]) & (last[order[1:]] == last[order[:-1]])
            rank = np.zeros(len(order), np.uint16)
            rank[order[1:]] = np.cumsum(~again)
            ranks[run] = rank
        places = order[1:][again] + run - 1
        found[places], length[places] = order[:-1][again] + run - 1, number
    return found, length
