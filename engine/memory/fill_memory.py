"""The memory as one fill uses it: which tokens may follow, in the fill's own terms."""

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.memory.followers import SLOTS, FollowerCounts
from engine.memory.gate import MemoryGate
from engine.memory.mixture import Mixture
from engine.memory.row_memory import RowFollowers, RowMemory

LEAST_RUN = 3
"""Tokens. A shorter run says too little about how its occurrence goes on."""


class GatedMemory:
    """Implements fill.interface.FillMemory.

    In a hole of one line, a token that breaks the line, or that stands behind the cursor already, ends the fill as the
    model's end token does. So such followers count as the end token: otherwise the end of a line would be two tokens
    with half of the probability each, and within a line the memory would go on with what follows the cursor.

    ends: bool [vocabulary], True for these tokens; None for a hole of several lines. continuing: fp32 [vocabulary],
    see Mixture.of.
    """

    def __init__(
        self,
        memory: RowMemory,
        gate: MemoryGate,
        ends: NDArray[np.bool_] | None,
        end: int,
        continuing: NDArray[np.float32] | None = None,
    ) -> None:
        self._memory, self._gate, self._ends, self._end = memory, gate, ends, end
        self._continuing = continuing

    def rows(self, histories: Sequence[Sequence[int]], compatible: Sequence[int]) -> Mixture:
        found = self._memory.followers_of_rows(histories, compatible)
        return Mixture.of(self._with_end(found, int(len(compatible) > 0)), self._gate, continuing=self._continuing)

    def followers(self, history: Sequence[int], compatible: Sequence[int] = ()) -> RowFollowers:
        """Return what the memory knows of the next token, without the model. compatible: see rows."""
        found = self._memory.followers_of_rows([history], compatible)
        return self._with_end(found, int(len(compatible) > 0))

    def continuation(
        self, history: Sequence[int], most: int, compatible: Sequence[int] = ()
    ) -> Iterator[tuple[int, float]]:
        """Yield the most frequent followers one by one, while the longest run has LEAST_RUN tokens or more."""
        written = list(history)
        for number in range(most):
            found = self.followers(written, () if number else compatible)
            best = found.longest_run(0)
            if best is None or best.run < LEAST_RUN:
                break
            index = best.likeliest
            token = int(best.tokens[index])
            yield token, float(best.counts[index] / best.total)
            if token == self._end:
                break
            written.append(token)

    def _with_end(self, found: RowFollowers, typed_rows: int) -> RowFollowers:
        """Return followers with the end token in place of those that end the fill.

        typed_rows: how many of the first rows write typed text, which is never a line's end.
        """
        if self._ends is None:
            return found
        ends = self._ends
        return RowFollowers(
            *(
                self._ended(counts, ends[counts.tokens] & (counts.groups >= typed_rows * SLOTS))
                for counts in found.scopes
            )
        )

    def _ended(self, counts: FollowerCounts, ends: NDArray[np.bool_]) -> FollowerCounts:
        return renamed(counts, np.where(ends, self._end, counts.tokens)) if ends.any() else counts


def renamed(counts: FollowerCounts, tokens: NDArray[np.int64]) -> FollowerCounts:
    """Return followers under other tokens [entries]. Those of a run that get the same token are counted together."""
    order = np.lexsort((tokens, counts.groups))
    groups, tokens = counts.groups[order], tokens[order]
    firsts = np.flatnonzero(np.append(True, (groups[1:] != groups[:-1]) | (tokens[1:] != tokens[:-1])))
    return attrs.evolve(
        counts,
        groups=groups[firsts],
        tokens=tokens[firsts],
        counts=np.add.reduceat(counts.counts[order], firsts),
        places=np.maximum.reduceat(counts.places[order], firsts),
    )
