"""The rows of several passes, concatenated. Does not import torch."""

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.fill.stream import StreamPass
from engine.models.embedded.layout import SpecialTokens
from engine.models.embedded.ngram_lookup import Hints, Lookup

FIELDS = 6
"""Tokens, positions, hints, strengths and two grams."""


@attrs.frozen
class PackedRows:
    """`numbers`, int64 [FIELDS, rows]: the fields of network.Rows."""

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
                lookup.narrow(start + item.wanted[0], np.array(item.query.compatible_tokens))
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
