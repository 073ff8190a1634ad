"""The network of a masked model in our kernel: passes.MaskedNetwork for processors, in int8 or int4.

The kernel's canvas rows see each other and all that is before them in their slabs. So the fixed rows, prefix and
suffix, come first in the slabs, each at its own position, and the live rows after them.
"""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from engine.models.embedded.numpy_pass import SLAB, Hole, HostPass, SlabContext
from engine.models.embedded.shape import Floats, Shape, rope_angles
from engine.models.masked.rows import MaskedPass, MiddleSegment, segments_of
from engine.models.masked.surrounding_cache import SurroundingCache


class KernelMaskedNetwork:
    """Has what MaskedModel asks of a passes.MaskedNetwork on a CPU."""

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
