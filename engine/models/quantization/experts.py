"""A mixture's experts, whose matrices are held in few bits: stacks, not linear layers."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.models.quantization.matrix import Matrix

GATE_UP, DOWN = "gate_up_proj", "down_proj"


class QuantizedExperts(nn.Module):
    """Stands where transformers' experts with a gate stood. The stacks are set once they have been read."""

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
        """Return the sum [rows, width] of what the `chosen` experts [rows, k] make of hidden [rows, width], by their
        `shares` [rows, k].

        On a GPU without a wait for the host, so that it can be captured in a graph.
        """
        count = chosen.shape[-1]
        order = chosen.flatten().argsort(stable=True)
        rows = hidden[order // count]
        found = self.whole(rows, chosen) if hidden.device.type == "cuda" else self.one_by_one(rows, chosen)
        weighted = found * shares.flatten()[order, None].to(found.dtype)
        back = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        return weighted[back].view(len(hidden), count, -1).sum(1)

    def one_by_one(self, rows: Tensor, chosen: Tensor) -> Tensor:
        """Return what the experts make of `rows`, which are sorted by expert: one expert's matrices at a time."""
        gates, downs = self.stacks
        sizes = torch.bincount(chosen.flatten(), minlength=gates.shape[0]).tolist()
        found, start = [], 0
        for expert, size in enumerate(sizes):
            if size:
                gate, up = gates.part(expert).product(rows[start : start + size]).chunk(2, dim=-1)
                found.append(downs.part(expert).product(self.activation(gate) * up))
                start += size
        return torch.cat(found) if found else torch.empty_like(rows)

    def whole(self, rows: Tensor, chosen: Tensor) -> Tensor:
        """The same with grouped products of all experts' unpacked matrices: a step's rows use nearly all of them."""
        gates, downs = self.stacks
        numbers = torch.arange(gates.shape[0], device=rows.device)
        ends = (chosen.flatten()[None] <= numbers[:, None]).sum(1, dtype=torch.int32)
        gate, up = F.grouped_mm(rows, gates.dense(rows.dtype).transpose(1, 2), offs=ends).chunk(2, dim=-1)
        return F.grouped_mm(self.activation(gate) * up, downs.dense(rows.dtype).transpose(1, 2), offs=ends)
