"""Runs steps over cached surroundings as captured steps. A step that reads the surroundings takes the plain path: it
has so many rows that launches do not count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engine.models.cuda_graphs.attention import Sight, SlotAttention
from engine.models.cuda_graphs.graphs import Graphs, RowBucket, rounded, synchronize
from engine.models.cuda_graphs.slots import LEAST_CAPACITY, Slots, affordable_slots, capacity_for
from engine.models.masked.passes import MaskedNetwork
from engine.models.masked.rows import MaskedPass

MOST_SLOTS = 16
MOST_CAPACITY = 8192
"""Positions of a hole that a graph serves. Larger holes take the plain path."""
ENOUGH_CAPACITY = 4096
"""Positions that every hole should have: masked models read 2,048 tokens on a GPU."""
MOST_ROWS = 128
LEAST_ROWS = 8


class MiddleStep:
    """Implements graphs.Step. One step gives the logits [slots * wanted, vocabulary] in fp32."""

    def __init__(self, network: MaskedNetwork, slots: Slots, bucket: RowBucket) -> None:
        self._network, self._slots, self._bucket = network, slots, bucket
        rows = bucket.slots * bucket.rows
        self._sizes = [rows, rows, rows, rows, bucket.slots, bucket.slots * bucket.wanted]
        self._inputs = torch.zeros(sum(self._sizes), dtype=torch.long, device=network.device)

    def fill(self, passes: Sequence[MaskedPass], slots: Sequence[int]) -> None:
        """Copy the rows of each pass into its slot. Padding is token 0 and sees all rows of its slot."""
        bucket = self._bucket
        tokens, positions, begins = np.zeros((3, bucket.slots, bucket.rows), np.int64)
        ends = np.full((bucket.slots, bucket.rows), bucket.rows, np.int64)
        lengths = np.zeros(bucket.slots, np.int64)
        wanted = np.zeros((bucket.slots, bucket.wanted), np.int64)
        for each, slot in zip(passes, slots, strict=True):
            (middle,) = each.middles
            fixed, rows = len(each.surrounding.fixed), each.rows
            _, live = each.surrounding.positions(len(middle))
            tokens[slot, :rows] = [*each.surrounding.anchor, *middle]
            positions[slot, :rows] = live
            lengths[slot] = begins[slot] = fixed
            ends[slot, :rows] = fixed + rows
            ends[slot, rows:] = fixed + bucket.rows
            wanted[slot, : len(each.wanted)] = [slot * bucket.rows + row for row in each.wanted]
        inputs = np.concatenate([part.ravel() for part in (tokens, positions, begins, ends, lengths, wanted)])
        self._inputs.copy_(torch.from_numpy(inputs))

    def compute(self) -> Tensor:
        bucket = self._bucket
        tokens, positions, begins, ends, lengths, wanted = torch.split(self._inputs, self._sizes)
        shape = (bucket.slots, bucket.rows)
        begins = begins.view(shape)
        attention = SlotAttention(self._slots, Sight(lengths, begins, ends.view(shape), begins), bucket.capacity)
        return self._network.logits(self._network.layers(tokens, positions, attention.mix)[wanted])


class CapturedMiddles:
    """Runs steps over cached surroundings as captured steps, if they fit a bucket."""

    def __init__(self, network: MaskedNetwork) -> None:
        shapes, device = network.slot_shapes, network.device
        wanted = min(network.window, MOST_CAPACITY)
        count, capacity = affordable_slots(shapes, MOST_SLOTS, ENOUGH_CAPACITY, wanted, network.dtype, device)
        self._network = network
        self._slots = Slots(shapes, count, capacity, network.dtype, device)
        self._graphs: Graphs[MiddleStep] = Graphs(device, self._slots.forget)

    @torch.inference_mode()
    def run(self, passes: Sequence[MaskedPass]) -> list[Tensor] | None:
        """Return each pass's logits [wanted, vocabulary] on the device; None if no graph serves these passes."""
        bucket = self._bucket(passes)
        if bucket is None:
            return None
        captured = self._graphs.of(bucket, lambda: MiddleStep(self._network, self._slots, bucket))
        if captured is None:
            return None
        self._network.prepare(passes)
        names = [[each.surrounding.reading] * len(each.surrounding.fixed) for each in passes]
        slots = self._slots.assign(names, bucket.slots)
        for each, context_names, slot in zip(passes, names, slots, strict=True):
            assert each.surrounding.buffer is not None
            self._slots.load(slot, context_names, each.surrounding.buffer.unbind(0))
        captured.step.fill(passes, slots)
        logits = captured.run().view(bucket.slots, bucket.wanted, -1)
        results = [logits[slot, : len(each.wanted)].clone() for each, slot in zip(passes, slots, strict=True)]
        synchronize(self._network.device)
        return results

    def _bucket(self, passes: Sequence[MaskedPass]) -> RowBucket | None:
        if any(each.reads_surrounding or len(each.middles) > 1 for each in passes) or len(passes) > self._slots.count:
            return None
        rows = rounded(max(each.rows for each in passes), LEAST_ROWS)
        longest = max(len(each.surrounding.fixed) for each in passes) + rows
        capacity = capacity_for(longest, LEAST_CAPACITY, self._slots.capacity)
        wanted = rounded(max(len(each.wanted) for each in passes), LEAST_ROWS)
        return None if capacity is None or rows > MOST_ROWS else RowBucket(rounded(len(passes)), rows, capacity, wanted)
