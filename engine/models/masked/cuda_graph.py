"""Steps over kept sides as captured steps; a step that reads the sides has rows enough to take the plain way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from engine.models.cuda_graphs.attention import Sight, SlotAttention
from engine.models.cuda_graphs.graphs import Graphs
from engine.models.cuda_graphs.sizes import RowBucket, capacity_for, rounded
from engine.models.cuda_graphs.slots import LEAST_CAPACITY, Slots, affordable_capacity
from engine.models.masked.rows import MaskedPass

if TYPE_CHECKING:
    from engine.models.masked.passes import MaskedNetwork

MOST_SLOTS = 16
MOST_CAPACITY = 8192
"""Positions of a hole that a graph serves; larger holes take the plain way."""
MOST_ROWS = 128
LEAST_ROWS = 8


class MiddleStep:
    """Implements graphs.Step: the logits [slots * wanted, vocabulary] in fp32 of one step."""

    def __init__(self, network: MaskedNetwork, slots: Slots, bucket: RowBucket) -> None:
        self._network, self._slots, self._bucket = network, slots, bucket
        rows = bucket.slots * bucket.rows
        self._sizes = [rows, rows, rows, rows, bucket.slots, bucket.slots * bucket.wanted]
        self._numbers = torch.zeros(sum(self._sizes), dtype=torch.long, device=network.device)

    def fill(self, passes: Sequence[MaskedPass], places: Sequence[int]) -> None:
        """Take the rows of passes that stand in slots `places`. Padding sees all rows of its slot and is token 0."""
        bucket = self._bucket
        tokens, positions, begins = np.zeros((3, bucket.slots, bucket.rows), np.int64)
        ends = np.full((bucket.slots, bucket.rows), bucket.rows, np.int64)
        lengths = np.zeros(bucket.slots, np.int64)
        wanted = np.zeros((bucket.slots, bucket.wanted), np.int64)
        for item, place in zip(passes, places, strict=True):
            (middle,) = item.middles
            fixed, rows = len(item.sides.fixed), item.rows
            _, live = item.sides.positions(len(middle))
            tokens[place, :rows] = [*item.sides.anchor, *middle]
            positions[place, :rows] = live
            lengths[place] = begins[place] = fixed
            ends[place, :rows] = fixed + rows
            ends[place, rows:] = fixed + bucket.rows
            wanted[place, : len(item.wanted)] = [place * bucket.rows + row for row in item.wanted]
        told = np.concatenate([part.ravel() for part in (tokens, positions, begins, ends, lengths, wanted)])
        self._numbers.copy_(torch.from_numpy(told))

    def compute(self) -> Tensor:
        bucket = self._bucket
        tokens, positions, begins, ends, lengths, wanted = torch.split(self._numbers, self._sizes)
        shape = (bucket.slots, bucket.rows)
        begins = begins.view(shape)
        attention = SlotAttention(self._slots, Sight(lengths, begins, ends.view(shape), begins), bucket.capacity)
        return self._network.logits(self._network.layers(tokens, positions, attention.mix)[wanted])


class CapturedMiddles:
    """Runs steps over kept sides as captured steps where they fit a bucket."""

    def __init__(self, network: MaskedNetwork) -> None:
        shapes, device = network.slot_shapes, network.device
        capacity = affordable_capacity(shapes, MOST_SLOTS, min(network.window, MOST_CAPACITY), network.dtype, device)
        self._network = network
        self._slots = Slots(shapes, MOST_SLOTS, capacity, network.dtype, device)
        self._graphs: Graphs[MiddleStep] = Graphs(device, self._slots.forget)

    def run(self, passes: Sequence[MaskedPass]) -> list[Tensor] | None:
        """Return each pass's logits [wanted, vocabulary] on the device; None where no graph serves these passes."""
        bucket = self._bucket(passes)
        if bucket is None:
            return None
        captured = self._graphs.of(bucket, lambda: MiddleStep(self._network, self._slots, bucket))
        if captured is None:
            return None
        names = [[item.sides.reading] * len(item.sides.fixed) for item in passes]
        places = self._slots.assign(names, bucket.slots)
        for item, own, place in zip(passes, names, places, strict=True):
            assert item.sides.buffer is not None
            self._slots.load(place, own, item.sides.buffer.unbind(0))
        captured.step.fill(passes, places)
        logits = captured.run().view(bucket.slots, bucket.wanted, -1)
        return [logits[place, : len(item.wanted)].clone() for item, place in zip(passes, places, strict=True)]

    def _bucket(self, passes: Sequence[MaskedPass]) -> RowBucket | None:
        if any(item.reads_sides or len(item.middles) > 1 for item in passes) or len(passes) > self._slots.count:
            return None
        rows = rounded(max(item.rows for item in passes), LEAST_ROWS)
        longest = max(len(item.sides.fixed) for item in passes) + rows
        capacity = capacity_for(longest, LEAST_CAPACITY, self._slots.capacity)
        wanted = rounded(max(len(item.wanted) for item in passes), LEAST_ROWS)
        return None if capacity is None or rows > MOST_ROWS else RowBucket(rounded(len(passes)), rows, capacity, wanted)
