"""Where committed tokens come from: the model, the edited file, or the other files of the workspace."""

from collections.abc import Sequence
from typing import get_args

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.protocol.messages import SourceName

SOURCES: tuple[SourceName, ...] = get_args(SourceName)
"""The sources in the order of a mixture's weights."""


@attrs.frozen
class TokenSource:
    """How a committed token came about.

    alone: the probability that the model alone gave it.
    shares: the part of its mixed probability that each of SOURCES gave. They sum to 1.
    """

    alone: float
    shares: tuple[float, ...] = (1.0, 0.0, 0.0)

    @property
    def is_remembered(self) -> bool:
        """Whether the memory gave the larger part."""
        return self.shares[0] < 0.5


@attrs.frozen(eq=False)
class RowSources:
    """The same for the first k rows of a pass. alone: fp32 [k]. shares: fp32 [k, len(SOURCES)]."""

    alone: NDArray[np.float32]
    shares: NDArray[np.float32]

    def each(self) -> list[TokenSource]:
        """Return one TokenSource a row."""
        pairs = zip(self.alone.tolist(), self.shares.tolist(), strict=True)
        return [TokenSource(alone, tuple(shares)) for alone, shares in pairs]


def main_source(sources: Sequence[TokenSource]) -> SourceName:
    """Return the source with the largest share of all tokens together; "model" without tokens."""
    sums = [sum(shares) for shares in zip(*(each.shares for each in sources), strict=True)]
    return SOURCES[sums.index(max(sums))] if sums else "model"
