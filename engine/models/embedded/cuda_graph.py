"""Passes of the embedded model as captured steps. All inputs of a step go to the device in one copy."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engine.fill.stream import StreamPass
from engine.models.cuda_graphs.attention import Sight, SlotAttention
from engine.models.cuda_graphs.graphs import Graphs, RowBucket, rounded
from engine.models.cuda_graphs.slots import LEAST_CAPACITY, Slots, SlotShape, affordable_capacity, capacity_for
from engine.models.embedded.network import Network
from engine.models.embedded.numpy_pass import Ids
from engine.models.embedded.runner import FIELDS
from engine.models.stock.key_values import KeyValues

MOST_SLOTS = 16
"""The most holes that the scheduler runs together. A larger batch, as with several candidates, runs uncaptured."""
MOST_ROWS = 128
"""The most rows of one hole. A pass with more reads a context, and its launches no longer count."""
LEAST_ROWS = 8


class StreamStep:
    """Implements graphs.Step: the logits [slots * wanted, vocabulary] in fp32 of one pass."""

    def __init__(self, network: Network, slots: Slots, bucket: RowBucket) -> None:
        self._network, self._slots, self._bucket = network, slots, bucket
        rows = bucket.slots * bucket.rows
        self._sizes = [FIELDS * rows, rows, rows, bucket.slots, bucket.slots * bucket.wanted]
        self._numbers = torch.zeros(sum(self._sizes), dtype=torch.long, device=slots.layers[0].device)

    def fill(self, rows: Ids, passes: Sequence[StreamPass], starts: Sequence[int], places: Sequence[int]) -> None:
        """Take the rows of passes, whose contexts are in slots `places`. Padding is token 0 and sees all rows of its
        slot."""
        bucket = self._bucket
        fields = np.zeros((FIELDS, bucket.slots, bucket.rows), np.int64)
        begins = np.zeros((bucket.slots, bucket.rows), np.int64)
        ends = np.full((bucket.slots, bucket.rows), bucket.rows, np.int64)
        lengths = np.zeros(bucket.slots, np.int64)
        wanted = np.zeros((bucket.slots, bucket.wanted), np.int64)
        at = 0
        for item, start, place in zip(passes, starts, places, strict=True):
            fields[:, place, : item.rows] = rows[:, at : at + item.rows]
            lengths[place] = begins[place] = start
            ends[place] = start + item.rows
            ends[place, : len(item.append)] = np.arange(start + 1, start + 1 + len(item.append))
            ends[place, item.rows :] = start + bucket.rows
            wanted[place, : len(item.wanted)] = [place * bucket.rows + row for row in item.wanted]
            at += item.rows
        numbers = np.concatenate([part.ravel() for part in (fields, begins, ends, lengths, wanted)])
        self._numbers.copy_(torch.from_numpy(numbers))

    def compute(self) -> Tensor:
        bucket = self._bucket
        fields, begins, ends, lengths, wanted = torch.split(self._numbers, self._sizes)
        shape = (bucket.slots, bucket.rows)
        begins = begins.view(shape)
        attention = SlotAttention(self._slots, Sight(lengths, begins, ends.view(shape), begins), bucket.capacity)
        tokens, positions = fields.view(FIELDS, -1)

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            return attention.mix(layer, query, key, value, None)

        return self._network.logits(self._network.trunk(tokens, positions, attend)[wanted])


class CapturedStreams:
    """Runs passes as captured steps, if they fit a bucket."""

    def __init__(self, network: Network, device: torch.device) -> None:
        shape = network.shape
        shapes = [SlotShape(shape.key_heads, shape.head_width)] * shape.layers
        self._dtype = network.embed.weight.dtype
        capacity = affordable_capacity(shapes, MOST_SLOTS, network.cosine.shape[0], self._dtype, device)
        self._network = network
        self._slots = Slots(shapes, MOST_SLOTS, capacity, self._dtype, device)
        self._graphs: Graphs[StreamStep] = Graphs(device, self._slots.forget)

    def run(self, passes: Sequence[StreamPass], contexts: Sequence[KeyValues], rows: Ids) -> list[Tensor] | None:
        """Return each pass's logits [wanted, vocabulary] on the device; None if no graph serves these passes."""
        starts = [len(context.tokens) for context in contexts]
        bucket = self._bucket(passes, starts)
        if bucket is None:
            return None
        captured = self._graphs.of(bucket, lambda: StreamStep(self._network, self._slots, bucket))
        if captured is None:
            return None
        names = [context.tokens for context in contexts]
        places = self._slots.assign(names, bucket.slots)
        for context, place in zip(contexts, places, strict=True):
            self._slots.load(place, context.tokens, context.buffer.unbind(0))
        captured.step.fill(rows, passes, starts, places)
        logits = captured.run().view(bucket.slots, bucket.wanted, -1)
        for item, context, place in zip(passes, contexts, places, strict=True):
            self._slots.store(place, item.append, context.buffer.unbind(0))
        return [logits[place, : len(item.wanted)].clone() for item, place in zip(passes, places, strict=True)]

    def _bucket(self, passes: Sequence[StreamPass], starts: Sequence[int]) -> RowBucket | None:
        rows = rounded(max(item.rows for item in passes), LEAST_ROWS)
        wanted = max(len(item.wanted) for item in passes)
        capacity = capacity_for(max(starts) + rows, LEAST_CAPACITY, self._slots.capacity)
        if capacity is None or rows > MOST_ROWS or len(passes) > self._slots.count or not wanted:
            return None
        return RowBucket(rounded(len(passes)), rows, capacity, rounded(wanted, LEAST_ROWS))
