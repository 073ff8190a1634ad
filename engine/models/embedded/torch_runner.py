"""Runs the embedded model's passes with torch: on a GPU, and in fp32 or bf16 on the CPU as the kernel's reference."""

from collections.abc import Sequence

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.fill.interface import expect_type
from engine.fill.predictions import Predictions, Query
from engine.fill.stream import StreamPass
from engine.library.precision_names import PrecisionSetting
from engine.models.cuda_graphs.graphs import synchronize
from engine.models.embedded.attention import QUERY_BLOCK, ContextAttention
from engine.models.embedded.cuda_graph import CapturedStreams
from engine.models.embedded.network import Network
from engine.models.embedded.rows import PackedRows
from engine.models.embedded.shape import Floats, Shape
from engine.models.embedded.weights import Weights
from engine.models.predict import predict
from engine.models.stock.key_values import KeyValues


@attrs.frozen(eq=False)
class TorchRan:
    """Implements runner.Ran."""

    tensor: Tensor
    forbidden: Tensor
    continuing: Tensor

    def logits(self) -> Floats:
        numbers: Floats = self.tensor.float().cpu().numpy()
        return numbers

    def predict(self, queries: Sequence[Query], counts: Sequence[int]) -> list[Predictions]:
        predictions = predict(self.tensor, queries, counts, self.forbidden, self.continuing)
        synchronize(self.tensor.device)
        return predictions


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
        # In bf16 the rounding of a product depends on its number of rows: see attention.QUERY_BLOCK.
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

    def new_context(self) -> KeyValues:
        shape = self.network.shape
        size = (shape.layers, 2, shape.key_heads, shape.positions, shape.head_width)
        # Zeros: masked keys are read as well, and NaN would spread.
        return KeyValues(torch.zeros(size, dtype=self._dtype, device=self._device))

    @torch.inference_mode()
    def run(self, passes: Sequence[StreamPass], packed: PackedRows) -> TorchRan:
        contexts = [expect_type(item.context, KeyValues) for item in passes]
        captured = None if self.captured is None else self.captured.run(passes, contexts, packed)
        if captured is not None:
            return TorchRan(torch.cat(captured), self._forbidden, self._continuing)
        return self._run_uncaptured(passes, contexts, packed)

    def _run_uncaptured(
        self, passes: Sequence[StreamPass], contexts: Sequence[KeyValues], packed: PackedRows
    ) -> TorchRan:
        """Run passes with shapes as they come."""
        count = packed.numbers.shape[1]
        tokens, positions = F.pad(torch.from_numpy(packed.numbers), (0, -count % self._block)).to(self._device)
        attention = ContextAttention(passes, contexts, self._dtype, self._device)

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            mixed = attention.attend(layer, query[:count], key[:count], value[:count])
            return F.pad(mixed, (0, 0, 0, 0, 0, len(query) - count))

        rows = self.network.trunk(tokens, positions, attend)
        wanted: list[int] = []
        first = 0
        for item in passes:
            wanted += [first + row for row in item.wanted]
            first += item.rows
        chosen = torch.tensor(wanted + [0] * (-len(wanted) % self._block), dtype=torch.long, device=self._device)
        logits = self.network.logits(rows[chosen])[: len(wanted)]
        return TorchRan(logits, self._forbidden, self._continuing)


def _store_by_columns(network: Network) -> None:
    """Store each matrix column by column: products of few rows are then 2 to 7 times faster on a CPU."""
    for module in network.modules():
        if isinstance(module, torch.nn.Linear):
            module.weight.data = module.weight.data.t().contiguous().t()
