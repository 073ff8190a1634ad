"""The rows of several passes of the embedded family, one behind the other, as the host lays them out."""

from collections.abc import Sequence

import attrs
import numpy as np
import torch
from numpy.typing import NDArray

from engine.fill.stream import StreamPass
from engine.models.embedded.layout import SpecialTokens
from engine.models.embedded.network import Rows
from engine.models.embedded.ngram_lookup import Hints, Lookup

FIELDS = 6
"""Tokens, positions, hints, strengths and two grams."""


@attrs.frozen
class PackedRows:
    """`numbers` int64 [FIELDS, rows]: a network.Rows before it goes to the device."""

    numbers: NDArray[np.int64]

    @classmethod
    def of(
        cls, passes: Sequence[StreamPass], starts: Sequence[int], marks: SpecialTokens, buckets: int
    ) -> "PackedRows":
        """Return the rows of `passes`, which stand behind `starts` tokens of their contexts."""
        found: list[Hints] = []
        for item, start in zip(passes, starts, strict=True):
            stream = [*item.context.tokens, *item.append]
            anchor = len(stream) - 1
            lookup = Lookup(stream, marks, buckets, min(start, anchor))
            if item.query.compatible_tokens:
                lookup.narrow(anchor, np.array(item.query.compatible_tokens))
            hints = lookup.stream()
            found.append(hints if start <= anchor else hints.part(slice(1, None)))  # nothing to append: only the anchor
            if item.canvas:
                found.append(lookup.canvas(anchor, item.canvas))
        numbers = (
            np.array([token for item in passes for token in (*item.append, *item.canvas)], np.int64),
            np.concatenate([np.arange(start, start + item.rows) for item, start in zip(passes, starts, strict=True)]),
            np.concatenate([hints.tokens for hints in found]),
            np.concatenate([hints.strengths for hints in found]),
            *np.concatenate([hints.grams for hints in found]).T,
        )
        return cls(np.stack(numbers))

    def on(self, device: torch.device) -> Rows:
        return rows_of(torch.from_numpy(self.numbers).to(device))


def rows_of(numbers: torch.Tensor) -> Rows:
    """Return the network's input from numbers [FIELDS, rows]."""
    tokens, positions, hints, strengths = numbers[:4]
    return Rows(tokens, positions, hints, strengths, numbers[4:].T)
