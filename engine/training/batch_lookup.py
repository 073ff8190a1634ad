"""Hints of ngram_lookup.py for whole training sequences: the same answers in a tenth of the time.

The engine looks up a few new rows of a text at a time. Training looks up all rows of a text at once, and all canvases
that follow it. So runs are compared by sorting 16-bit numbers (numpy's radix sort) instead of 64-bit hashes, and the
canvases of a sequence are looked up together.
"""

import numpy as np
from numpy.typing import NDArray

from engine.models.embedded.layout import SpecialTokens
from engine.models.embedded.ngram_lookup import REACHES, RUNS, Hints, Ids, Lookup

_Ranks = NDArray[np.uint16]
_MADE_OF = {2: (1, 1), 3: (2, 1), 4: (2, 2), 6: (4, 2), 8: (4, 4)}
"""Each run as two shorter ones."""
assert tuple(_MADE_OF) == RUNS[1:], "a run of ngram_lookup.py has no two parts here"


class BatchLookup(Lookup):
    """Lookup of a whole stream of fewer than 65,536 tokens, with ids below 65,536."""

    def __init__(self, stream: list[int] | Ids, special_tokens: SpecialTokens, buckets: int) -> None:
        super().__init__(stream, special_tokens, buckets, since=len(stream))
        self._since = 0
        self._found, self._length = _latest_repeats(self._text)

    def canvases(self, anchors: Ids, offsets: Ids, shown: Ids) -> Hints:
        """Return the hints of canvas rows [R]: each row's anchor, its index in its canvas, and its shown token."""
        index = self._index[anchors]
        is_narrowed = anchors == self._narrowed
        source = np.where(is_narrowed, self._narrow_match[0], self._found[index]) + 2 + offsets
        length = np.where(is_narrowed, self._narrow_match[1], self._length[index])
        has_hint = (index >= 0) & (length > 0) & (source <= index)
        tokens = np.where(has_hint, self._text[np.minimum(source, index)], 0)
        reach = 1 + np.searchsorted(REACHES, offsets + 1)
        strengths = reach * (len(RUNS) + 1) + np.where(has_hint, length, 0)
        grams = self.canvas(0, shown).grams
        grams[offsets == 0] = 0
        grams[offsets == 1, 1] = 0
        return Hints(tokens, strengths, grams)


def _latest_repeats(text: Ids) -> tuple[Ids, Ids]:
    """Return where the longest run that ends at each position occurred last, and which run it is, both [n].

    The first array holds the position where the earlier copy ends. The second holds the run's number in RUNS, counted
    from 1, or 0 if no run occurred before.
    """
    size = len(text)
    source, length = np.zeros(size, np.int64), np.zeros(size, np.int64)
    ranks: dict[int, _Ranks] = {1: text.astype(np.uint16)}
    for number, run in enumerate(RUNS, 1):
        if run > size:
            break
        if run == 1:
            keys = ranks[1]
            order = np.argsort(keys, kind="stable")
            is_repeat = keys[order[1:]] == keys[order[:-1]]
        else:
            head, tail = _MADE_OF[run]
            last = ranks[tail][head : head + size - run + 1]
            keys = ranks[head][: len(last)]
            order = np.argsort(last, kind="stable")
            order = order[np.argsort(keys[order], kind="stable")]
            is_repeat = (keys[order[1:]] == keys[order[:-1]]) & (last[order[1:]] == last[order[:-1]])
            rank = np.zeros(len(order), np.uint16)
            rank[order[1:]] = np.cumsum(~is_repeat)
            ranks[run] = rank
        positions = order[1:][is_repeat] + run - 1
        source[positions], length[positions] = order[:-1][is_repeat] + run - 1, number
    return source, length
