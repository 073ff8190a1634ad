"""Runs the embedded model's passes with torch: on a GPU, and in fp32 or bf16 on the CPU as the kernel's reference.

On a GPU they are captured steps. All inputs of a step go to the device in one copy.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.fill.interface import expect_type
from engine.fill.sampler import Predictions
from engine.fill.stream import StreamPass
from engine.library.precision_names import PrecisionSetting
from engine.models.cuda_graphs.graphs import Graphs, RowBucket, rounded, synchronize
from engine.models.cuda_graphs.slots import (
    LEAST_CAPACITY,
    LayerShape,
    Sight,
    SlotAttention,
    Slots,
    affordable_capacity,
    capacity_for,
)
from engine.models.embedded.adapter import Adapter
from engine.models.embedded.network import CanvasAdapter, Network
from engine.models.embedded.runner import FIELDS, pack_rows, wanted_rows
from engine.models.embedded.shape import Floats, Shape
from engine.models.embedded.slabs import Ids
from engine.models.embedded.weights import Weights
from engine.models.predict import predict
from engine.models.stock.attention import KeyValues

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
        self._sizes = [FIELDS * rows, rows, rows, rows, bucket.slots, bucket.slots * bucket.wanted]
        self._numbers = torch.zeros(sum(self._sizes), dtype=torch.long, device=slots.layers[0].device)

    def fill(self, rows: Ids, passes: Sequence[StreamPass], starts: Sequence[int], places: Sequence[int]) -> None:
        """Take the rows of passes, whose contexts are in slots `places`. Padding is token 0 and sees all rows of its
        slot."""
        bucket = self._bucket
        fields = np.zeros((FIELDS, bucket.slots, bucket.rows), np.int64)
        begins = np.zeros((bucket.slots, bucket.rows), np.int64)
        ends = np.full((bucket.slots, bucket.rows), bucket.rows, np.int64)
        canvas, lengths = np.zeros((bucket.slots, bucket.rows), np.int64), np.zeros(bucket.slots, np.int64)
        wanted = np.zeros((bucket.slots, bucket.wanted), np.int64)
        at = 0
        for item, start, place in zip(passes, starts, places, strict=True):
            fields[:, place, : item.rows] = rows[:, at : at + item.rows]
            lengths[place] = begins[place] = start
            ends[place] = start + item.rows
            ends[place, : len(item.append)] = np.arange(start + 1, start + 1 + len(item.append))
            ends[place, item.rows :] = start + bucket.rows
            canvas[place, len(item.append) : item.rows] = 1
            wanted[place, : len(item.wanted)] = [place * bucket.rows + row for row in item.wanted]
            at += item.rows
        numbers = np.concatenate([part.ravel() for part in (fields, begins, ends, canvas, lengths, wanted)])
        self._numbers.copy_(torch.from_numpy(numbers))

    def compute(self) -> Tensor:
        bucket = self._bucket
        fields, begins, ends, canvas, lengths, wanted = torch.split(self._numbers, self._sizes)
        shape = (bucket.slots, bucket.rows)
        network = self._network
        on_canvas = None if network.adapter is None else canvas[:, None].to(network.embed.weight.dtype)
        begins, ends = begins.view(shape), ends.view(shape)
        attention = SlotAttention(self._slots, Sight(lengths, begins, ends, begins), bucket.capacity)
        tokens, positions = fields.view(FIELDS, -1)

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            return attention.mix(layer, query, key, value, None)

        return network.logits(network.trunk(tokens, positions, attend, on_canvas)[wanted])


class CapturedStreams:
    """Runs passes as captured steps, if they fit a bucket."""

    def __init__(self, network: Network, device: torch.device) -> None:
        shape = network.shape
        shapes = [LayerShape(shape.key_heads, shape.head_width)] * shape.layers
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


QUERY_BLOCK, KEY_BLOCK = 16, 64
"""In bf16, how torch rounds a row depends on how many rows and keys are together. In blocks of these sizes, with what
is beyond masked out, it does not: measured on AVX-512 bf16, 0 of 600 rows differ, 115 without blocks. In fp32 what
differs is a millionth, and no choice of a token depends on it."""


class TorchRunner:
    """Implements runner.Runner.

    Rows of all holes share the matrix products. Attention is each hole's own, so nothing is padded and what else is in
    the batch changes no answer.
    """

    def __init__(
        self, network: Network, device: torch.device, forbidden: Sequence[int], continuing: Sequence[int]
    ) -> None:
        self.network, self._device = network, device
        self._dtype = network.embed.weight.dtype
        # In bf16 the rounding of a product depends on its number of rows: see QUERY_BLOCK.
        self._block = QUERY_BLOCK if device.type == "cpu" and self._dtype == torch.bfloat16 else 1
        self.device, self.dtype = device.type, str(self._dtype).removeprefix("torch.")
        self._forbidden = torch.tensor(forbidden, device=device)
        self._continuing = torch.zeros(network.shape.vocabulary, device=device)
        self._continuing[list(continuing)] = 1
        self.captured = CapturedStreams(network, device) if device.type == "cuda" else None
        """Runs passes as CUDA graphs, where there is CUDA."""

    @classmethod
    def load(
        cls,
        weights: Weights,
        shape: Shape,
        device: str,
        precision: PrecisionSetting,
        forbidden: Sequence[int],
        continuing: Sequence[int],
    ) -> "TorchRunner":
        """Return a runner: on a GPU in bf16 unless `precision` is "fp32", on the CPU in bf16 if that is asked for."""
        with torch.device("meta"):
            network = Network(shape)
        network = network.to_empty(device="cpu")
        network.load_state_dict({name: torch.from_numpy(weights.dense(name)) for name in weights.names})
        bf16 = precision == "bf16" or (device == "cuda" and precision != "fp32")
        network = network.to(device=torch.device(device), dtype=torch.bfloat16 if bf16 else torch.float32).eval()
        network.reset_tables()
        _store_by_columns(network)
        return cls(network, torch.device(device), forbidden, continuing)

    def adapt(self, adapter: Adapter) -> None:
        """Let canvas rows take an adapter's additions from now on."""
        weight = self.network.embed.weight
        module = CanvasAdapter(self.network.shape, adapter.rank)
        module.take(adapter)
        self.network.adapter = module.to(weight.device, weight.dtype).requires_grad_(False)

    def new_context(self) -> KeyValues:
        shape = self.network.shape
        size = (shape.layers, 2, shape.key_heads, shape.positions, shape.head_width)
        # Zeros: masked keys are read as well, and NaN would spread.
        return KeyValues(torch.zeros(size, dtype=self._dtype, device=self._device))

    @torch.inference_mode()
    def logits(self, passes: Sequence[StreamPass]) -> Floats:
        numbers: Floats = self._run(passes).float().cpu().numpy()
        return numbers

    @torch.inference_mode()
    def predict(self, passes: Sequence[StreamPass]) -> list[Predictions]:
        queries, counts = [item.query for item in passes], [len(item.wanted) for item in passes]
        predictions = predict(self._run(passes), queries, counts, self._forbidden, self._continuing)
        synchronize(self._device)
        return predictions

    def _run(self, passes: Sequence[StreamPass]) -> Tensor:
        """Return the logits [wanted, vocabulary] of the wanted rows of all passes, on the device."""
        contexts = [expect_type(item.context, KeyValues) for item in passes]
        numbers = pack_rows(passes)
        captured = None if self.captured is None else self.captured.run(passes, contexts, numbers)
        return self._run_uncaptured(passes, contexts, numbers) if captured is None else torch.cat(captured)

    def _run_uncaptured(self, passes: Sequence[StreamPass], contexts: Sequence[KeyValues], numbers: Ids) -> Tensor:
        """Run passes with shapes as they come."""
        count = numbers.shape[1]
        tokens, positions = F.pad(torch.from_numpy(numbers), (0, -count % self._block)).to(self._device)
        attention = ContextAttention(passes, contexts, self._dtype, self._device)

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            mixed = attention.attend(layer, query[:count], key[:count], value[:count])
            return F.pad(mixed, (0, 0, 0, 0, 0, len(query) - count))

        on_canvas = None
        if any(item.canvas for item in passes):
            flags = [float(row >= len(item.append)) for item in passes for row in range(item.rows)]
            padded = F.pad(torch.tensor(flags, dtype=self._dtype), (0, -count % self._block))
            on_canvas = padded[:, None].to(self._device)
        rows = self.network.trunk(tokens, positions, attend, on_canvas)
        wanted = wanted_rows(passes)
        chosen = torch.tensor(wanted + [0] * (-len(wanted) % self._block), dtype=torch.long, device=self._device)
        return self.network.logits(rows[chosen])[: len(wanted)]


def _store_by_columns(network: Network) -> None:
    """Store each matrix column by column: products of few rows are then 2 to 7 times faster on a CPU."""
    for module in network.modules():
        if isinstance(module, torch.nn.Linear):
            module.weight.data = module.weight.data.t().contiguous().t()


class ContextAttention:
    """Writes the keys and values of the passes' rows after their contexts, and attends over them.

    contexts[i].tokens must not hold the rows of passes[i] yet.
    """

    def __init__(
        self, passes: Sequence[StreamPass], contexts: Sequence[KeyValues], dtype: torch.dtype, device: torch.device
    ) -> None:
        self._contexts, self._device, self._dtype = contexts, device, dtype
        self._counts = [item.rows for item in passes]
        self._starts = [len(context.tokens) for context in contexts]
        in_blocks = dtype == torch.bfloat16 and device.type == "cpu"
        self._query_block, self._key_block = (QUERY_BLOCK, KEY_BLOCK) if in_blocks else (1, 1)
        self._masks = [
            self._mask(start, len(item.append), len(item.canvas), context.capacity)
            for start, item, context in zip(self._starts, passes, contexts, strict=True)
        ]

    def _mask(self, start: int, append: int, canvas: int, capacity: int) -> Tensor | None:
        """Return what to add to each row's scores, [rows, keys] in whole blocks: 0 for a key that it sees, else -inf.

        None where all rows see all keys.
        """
        rows = append + canvas
        if self._query_block == 1 and (append == 0 or rows == 1):
            return None
        seen = np.ones(_whole(rows, self._query_block), np.int64)  # A padding row that saw nothing would be NaN.
        seen[:append] = np.arange(start + 1, start + 1 + append)
        seen[append:rows] = start + rows
        keys = np.arange(min(_whole(start + rows, self._key_block), capacity))
        mask = np.where(keys < seen[:, None], np.float32(0), np.float32(-np.inf))
        return torch.from_numpy(mask).to(self._device, self._dtype)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return the mixed values [rows, heads, head_width] of all rows, see network.Attend."""
        mixed, first = [], 0
        for context, start, count, mask in zip(self._contexts, self._starts, self._counts, self._masks, strict=True):
            own = slice(first, first + count)
            keys, values = context.buffer[layer].unbind(0)
            keys[:, start : start + count] = key[own].transpose(0, 1)
            values[:, start : start + count] = value[own].transpose(0, 1)
            seen = start + count if mask is None else mask.shape[1]
            asked = query[own].transpose(0, 1)
            if mask is not None and mask.shape[0] > count:
                asked = F.pad(asked, (0, 0, 0, mask.shape[0] - count))
            shared = asked.shape[0] // keys.shape[0]
            keys, values = (part[None, :, :seen].repeat_interleave(shared, 1) for part in (keys, values))
            rows = F.scaled_dot_product_attention(asked[None], keys, values, mask)
            mixed.append(rows[0, :, :count].transpose(0, 1))
            first += count
        return torch.cat(mixed) if len(mixed) > 1 else mixed[0]


def _whole(length: int, block: int) -> int:
    """Return `length` rounded up to whole blocks."""
    return -(-length // block) * block
