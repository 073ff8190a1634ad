"""The memory as one fill uses it: which tokens may follow, in the fill's own terms."""

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.memory.followers import Followers
from engine.memory.gate import MemoryGate
from engine.memory.mixture import Mixture, restrict
from engine.memory.row_memory import RowFollowers, RowMemory

LEAST_RUN = 3
"""Tokens. A shorter run says too little about how its occurrence goes on."""


class GatedMemory:
    """Implements fill.interface.FillMemory.

    In a hole of one line, a token that breaks the line ends the fill as the model's end token does. So such followers
    count as the end token: otherwise the line's end would be two tokens with half of the probability each.
    """

    def __init__(self, memory: RowMemory, gate: MemoryGate, line_breaks: NDArray[np.int64], end: int) -> None:
        self._memory, self._gate, self._line_breaks, self._end = memory, gate, line_breaks, end

    def rows(self, histories: Sequence[Sequence[int]], compatible: Sequence[int]) -> Mixture:
        first, *others = self._memory.followers_of_rows(histories)
        # Typed text is never a line's end, so the first row's tokens keep their names while there is some.
        first = restrict(first, np.sort(np.asarray(compatible, np.int64))) if len(compatible) else self._with_end(first)
        return Mixture.of([first, *(self._with_end(row) for row in others)], self._gate)

    def continuation(self, history: Sequence[int], most: int) -> list[tuple[int, float]]:
        """Return the followers of the longest run, one after the other, while that run is LEAST_RUN tokens or
        longer."""
        written, tokens = list(history), []
        for _ in range(most):
            row = self._with_end(self._memory.followers(written))
            runs = max(row.scopes, key=lambda scope: scope[-1].run if scope else 0)
            if not runs or runs[-1].run < LEAST_RUN:
                break
            best = runs[-1]
            token = int(best.tokens[best.top])
            tokens.append((token, float(best.counts[best.top] / best.total)))
            if token == self._end:
                break
            written.append(token)
        return tokens

    def _with_end(self, row: RowFollowers) -> RowFollowers:
        if not len(self._line_breaks):
            return row
        return RowFollowers(*([self._ended(followers) for followers in runs] for runs in row.scopes))

    def _ended(self, followers: Followers) -> Followers:
        breaks = np.isin(followers.tokens, self._line_breaks)
        if not breaks.any():
            return followers
        return renamed(followers, np.where(breaks, self._end, followers.tokens))


def renamed(followers: Followers, tokens: NDArray[np.int64]) -> Followers:
    """Return followers under other tokens [n]. Those that get the same token are counted together."""
    names, index = np.unique(tokens, return_inverse=True)
    counts, places = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    np.add.at(counts, index, followers.counts)
    np.maximum.at(places, index, followers.places)
    return attrs.evolve(
        followers,
        tokens=names,
        counts=counts,
        places=places,
    )
