"""The experts of a mixture with quantized matrices. These are stacks of matrices, not linear layers."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.models.quantization.matrix import Matrix

GATE_UP, DOWN = "gate_up_proj", "down_proj"


class QuantizedExperts(nn.Module):
    """Replaces the gated experts of transformers. The stacks are set after they have been read."""

    def __init__(self, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.activation = activation
        self.gate_up_proj: Matrix | None = None
        self.down_proj: Matrix | None = None

    @property
    def stacks(self) -> tuple[Matrix, Matrix]:
        """[experts, 2 * inner, width] and [experts, width, inner]."""
        assert self.gate_up_proj is not None
        assert self.down_proj is not None
        return self.gate_up_proj, self.down_proj

    def forward(self, hidden: Tensor, chosen: Tensor, shares: Tensor) -> Tensor:
        """Return [rows, width]: for each row of hidden [rows, width] the sum of its experts' outputs.

        Row i goes through the experts `chosen` [rows, k], weighted by `shares` [rows, k]. On a GPU nothing here waits
        for the host, so a graph can capture it.
        """
        count = chosen.shape[-1]
        order = chosen.flatten().argsort(stable=True)
        rows = hidden[order // count]
        outputs = self.grouped(rows, chosen) if hidden.device.type == "cuda" else self.one_by_one(rows, chosen)
        weighted = outputs * shares.flatten()[order, None].to(outputs.dtype)
        inverse = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        return weighted[inverse].view(len(hidden), count, -1).sum(1)

    def one_by_one(self, rows: Tensor, chosen: Tensor) -> Tensor:
        """Return the experts' outputs for `rows`, sorted by expert, with the matrices of one expert at a time."""
        gates, downs = self.stacks
        sizes = torch.bincount(chosen.flatten(), minlength=gates.shape[0]).tolist()
        outputs, start = [], 0
        for expert, size in enumerate(sizes):
            if size:
                gate, up = gates.part(expert).product(rows[start : start + size]).chunk(2, dim=-1)
                outputs.append(downs.part(expert).product(self.activation(gate) * up))
                start += size
        return torch.cat(outputs) if outputs else torch.empty_like(rows)

    def grouped(self, rows: Tensor, chosen: Tensor) -> Tensor:
        """Return the same outputs from grouped products over the unpacked matrices of all experts.

        The rows of one step use nearly all experts, so little of the unpacking is wasted.
        """
        gates, downs = self.stacks
        numbers = torch.arange(gates.shape[0], device=rows.device)
        ends = (chosen.flatten()[None] <= numbers[:, None]).sum(1, dtype=torch.int32)
        gate, up = F.grouped_mm(rows, gates.dense(rows.dtype).transpose(1, 2), offs=ends).chunk(2, dim=-1)
        return F.grouped_mm(self.activation(gate) * up, downs.dense(rows.dtype).transpose(1, 2), offs=ends)
