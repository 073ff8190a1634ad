"""The network of a masked model: the layers of transformers, also as captured steps, or our kernel in int8 or int4.

The kernel's canvas rows see each other and all that is before them in their slabs. So the fixed rows, prefix and
suffix, come first in the slabs, each at its own position, and the live rows after them. On a GPU steps over cached
surroundings are captured. A step that reads the surroundings takes the plain path: it has so many rows that launches do
not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from engine.models.cuda_graphs.graphs import Graphs, RowBucket, fused, rounded, synchronize
from engine.models.cuda_graphs.slots import (
    LEAST_CAPACITY,
    LayerShape,
    Sight,
    SlotAttention,
    Slots,
    affordable_slots,
    capacity_for,
)
from engine.models.embedded.shape import Floats, Shape, rope_angles
from engine.models.embedded.slabs import SLAB, Hole, HostPass, SlabContext
from engine.models.masked.rows import MaskedPass, MiddleSegment, SurroundingCache, segments_of
from engine.models.stock.attention import StockLayers, after_attention, attend, before_attention, rotate


class MaskedNetwork(StockLayers):
    """Each middle has its own attention."""

    def __init__(self, stock: Any) -> None:
        super().__init__(stock)
        self.slot_shapes = [LayerShape(self._key_heads, self._head_width)] * len(self._layers)
        self._before, self._after = fused(before_attention, self.device), fused(after_attention, self.device)

    @torch.inference_mode()
    def run(self, passes: Sequence[MaskedPass]) -> list[Tensor]:
        """Return for each pass the logits [wanted, vocabulary] of its wanted rows, in fp32 and not shifted."""
        self.prepare(passes)
        segments = [segments_of(each) for each in passes]
        flat = [segment for group in segments for segment in group]

        def mix(layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
            return self._mix(layer, flat, query, key, value, scale)

        rows = self.layers(
            self._integers([token for segment in flat for token in segment.tokens]),
            self._integers([position for segment in flat for position in segment.positions]),
            mix,
        )
        return self._wanted_logits(rows, passes, [group[0].fixed for group in segments])

    def prepare(self, passes: Sequence[MaskedPass]) -> None:
        """Make the buffers of the passes ready for the length of their first middle."""
        for each in passes:
            self._prepare(each)

    def _mix(
        self, layer: int, segments: list[MiddleSegment], query: Tensor, key: Tensor, value: Tensor, scale: float
    ) -> Tensor:
        """Return the mixed values [rows, heads, width]. The rows of a middle attend to its surroundings and itself."""
        query, key, value = (heads.transpose(0, 1) for heads in (query, key, value))
        mixed, start = [], 0
        for segment in segments:
            rows = slice(start, start + len(segment.tokens))
            keys, values = self._visible(layer, segment, key[:, rows], value[:, rows])
            mixed.append(attend(query[:, rows], keys, values, scale))
            start = rows.stop
        return torch.cat(mixed)

    def _visible(self, layer: int, segment: MiddleSegment, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values [heads, seen, width] that the rows of a middle see, including their own."""
        surrounding = segment.surrounding
        assert surrounding.buffer is not None
        keys, values = surrounding.buffer[layer].unbind(0)
        fixed = len(surrounding.fixed)
        if segment.moves_suffix:
            suffix = self._moved(keys[:, surrounding.suffix], segment.length - surrounding.length)
            prefix = keys[:, : surrounding.suffix.start]
            return torch.cat((prefix, suffix, key), 1), torch.cat((values[:, :fixed], value), 1)
        start = fixed - segment.fixed
        stop = start + key.shape[1]
        keys[:, start:stop], values[:, start:stop] = key, value
        return keys[:, :stop], values[:, :stop]

    def _prepare(self, item: MaskedPass) -> None:
        surrounding, length = item.surrounding, len(item.middles[0])
        if surrounding.buffer is None:
            capacity = len(surrounding.fixed) + 1 + surrounding.room
            surrounding.buffer = self.buffer(capacity)
        elif surrounding.length != length and not item.reads_surrounding:
            keys = surrounding.buffer[:, 0]
            distance = length - surrounding.length
            keys[:, :, surrounding.suffix] = self._moved(keys[:, :, surrounding.suffix], distance)
            surrounding.renew()
        if item.reads_surrounding:
            surrounding.renew()
        surrounding.length = length

    def _moved(self, keys: Tensor, distance: int) -> Tensor:
        """Return keys [..., head width] rotated to a position `distance` further on."""
        wide = keys.float()
        cosine, sine = self._rotary(wide[..., :1, :], self._integers([distance]))
        scaling = float(self._trunk.rotary_emb.attention_scaling)
        return rotate(wide, cosine[0] / scaling, sine[0] / scaling).to(keys.dtype)


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


class KernelMaskedNetwork:
    """Has what MaskedModel asks of a MaskedNetwork, on a CPU."""

    device = torch.device("cpu")

    def __init__(self, host: HostPass, shape: Shape, parameters: int) -> None:
        self._host, self._shape = host, shape
        self.vocabulary, self.window, self.parameters = shape.vocabulary, shape.context_tokens, parameters
        self._slabs: WeakKeyDictionary[SurroundingCache, SlabContext] = WeakKeyDictionary()

    def run(self, passes: Sequence[MaskedPass]) -> list[Tensor]:
        """Return for each pass the logits [wanted, vocabulary] of its wanted rows, in fp32 and not shifted."""
        segments = [segments_of(each) for each in passes]
        first = [(group[0], self._prepared(item)) for item, group in zip(passes, segments, strict=True)]
        live = [[logits] for logits in self._logits(first)]
        # Other middles need the fixed rows that the first one has read, so they run after it.
        others = [
            (number, (segment, self._moved(segment, first[number][1])))
            for number, group in enumerate(segments)
            for segment in group[1:]
        ]
        for (number, _), logits in zip(others, self._logits([each for _, each in others]), strict=True):
            live[number].append(logits)
        chosen = (np.concatenate(parts)[list(each.wanted)] for each, parts in zip(passes, live, strict=True))
        return [torch.from_numpy(logits) for logits in chosen]

    def _logits(self, segments: Sequence[tuple[MiddleSegment, SlabContext]]) -> list[Floats]:
        """Run middles together. Return the logits [live rows, vocabulary] of each."""
        if not segments:
            return []
        holes, numbers, wanted, bounds = list[Hole](), list[tuple[Sequence[int], Sequence[int]]](), list[int](), [0]
        for segment, context in segments:
            rows, start = len(segment.tokens), len(segment.surrounding.fixed) - segment.fixed
            context.reserve(start + rows)
            first = sum(hole.rows for hole in holes)
            holes.append(Hole(rows, 0, start, context.slabs))
            numbers.append((segment.tokens, segment.positions))
            wanted += range(first + segment.fixed, first + rows)
            bounds.append(len(wanted))
        packed = np.concatenate([np.array(each, np.int64) for each in numbers], 1)
        logits = self._host.run(np.ascontiguousarray(packed), holes, np.array(wanted, np.int64))
        return np.split(logits, bounds[1:-1])

    def _prepared(self, item: MaskedPass) -> SlabContext:
        """Return the slabs of a hole, with the suffix's keys where the first middle needs them."""
        surrounding, length = item.surrounding, len(item.middles[0])
        context = self._slabs.get(surrounding)
        if context is None:
            context = self._slabs[surrounding] = SlabContext(self._shape, self._host.dtype)
        elif surrounding.length != length and not item.reads_surrounding:
            self._rotate(context, surrounding.suffix, length - surrounding.length)
        surrounding.length = length
        return context

    def _moved(self, segment: MiddleSegment, read: SlabContext) -> SlabContext:
        """Return a copy of the fixed rows, with the suffix's keys for a middle of this length."""
        surrounding = segment.surrounding
        copied = read.fork(len(surrounding.fixed))
        self._rotate(copied, surrounding.suffix, segment.length - surrounding.length)
        return copied

    def _rotate(self, context: SlabContext, rows: slice, distance: int) -> None:
        """Rotate the keys of some rows to positions that are `distance` further on."""
        shape = self._shape
        cosine, sine = (table[-1][:, None] for table in rope_angles(shape, abs(distance) + 1))
        if distance < 0:
            sine = -sine
        for number in range(rows.start // SLAB, -(-rows.stop // SLAB)):
            places = slice(max(rows.start - number * SLAB, 0), min(rows.stop - number * SLAB, SLAB))
            slab = context.slabs[number]
            keys = slab[:, :, 0].reshape(shape.layers, shape.key_heads, 2, shape.head_width // 2, SLAB)[..., places]
            one, other = keys[:, :, 0].astype(np.float32), keys[:, :, 1].astype(np.float32)
            turned = np.stack((one * cosine - other * sine, other * cosine + one * sine), 2)
            whole = slab[:, :, 0].reshape(shape.layers, shape.key_heads, 2, shape.head_width // 2, SLAB)
            whole[..., places] = turned
            slab[:, :, 0] = whole.reshape(shape.layers, shape.key_heads, -1)
