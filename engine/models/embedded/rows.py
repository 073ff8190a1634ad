"""The rows of several passes, concatenated, as the CPU prepares them."""

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
    """`numbers`, int64 [FIELDS, rows]: network.Rows before they go to the device."""

    numbers: NDArray[np.int64]

    @classmethod
    def of(
        cls, passes: Sequence[StreamPass], starts: Sequence[int], special: SpecialTokens, buckets: int
    ) -> "PackedRows":
        """Return the rows of `passes`, which come after `starts` tokens of their contexts."""
        parts: list[Hints] = []
        for item, start in zip(passes, starts, strict=True):
            stream = [*item.context.tokens, *item.append]
            anchor = len(stream) - 1
            lookup = Lookup(stream, special, buckets, min(start, anchor))
            if item.query.compatible_tokens:
                lookup.narrow(anchor, np.array(item.query.compatible_tokens))
            hints = lookup.stream()
            # Without rows to append, the lookup still gives the anchor's, which the context has already.
            parts.append(hints if start <= anchor else hints.part(slice(1, None)))
            if item.canvas:
                parts.append(lookup.canvas(anchor, item.canvas))
        numbers = (
            np.array([token for item in passes for token in (*item.append, *item.canvas)], np.int64),
            np.concatenate([np.arange(start, start + item.rows) for item, start in zip(passes, starts, strict=True)]),
            np.concatenate([hints.tokens for hints in parts]),
            np.concatenate([hints.strengths for hints in parts]),
            *np.concatenate([hints.grams for hints in parts]).T,
        )
        return cls(np.stack(numbers))

    def on(self, device: torch.device) -> Rows:
        return rows_of(torch.from_numpy(self.numbers).to(device))


def rows_of(numbers: torch.Tensor) -> Rows:
    """Return the network's input from numbers [FIELDS, rows]."""
    tokens, positions, hints, strengths = numbers[:4]
    return Rows(tokens, positions, hints, strengths, numbers[4:].T)
