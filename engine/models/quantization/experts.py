"""The experts of a mixture, whose matrices are quantized or are not multiplied well by torch on this device."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.models.quantization.matrix import Matrix

GATE_UP, DOWN = "gate_up_proj", "down_proj"
Way = Literal["stock", "packed", "padded", "one by one"]
"""How experts are computed.

stock: transformers' experts, with torch's grouped products
packed: a Triton kernel that reads the chosen experts only, as they are held
padded: batched products of all rows with the chosen experts, some experts at a time
one by one: an expert at a time, with its own rows only; the host waits for the device to count them
"""
FEW_ROWS = 512
"""More rows than a captured step has are read one by one: then the products take far longer than the wait."""
EXPERTS_AT_ONCE = 16
"""Experts whose matrices are unpacked at once: 190 MB for DiffusionGemma, in bf16."""
_GROUPED_CAPABILITIES = (9, 10)
"""For all others torch's grouped product copies the offsets to the host and loops over the groups
(ATen/native/GroupedMMUtils.h), which no graph can capture."""


def has_grouped_products(capability: tuple[int, int]) -> bool:
    """Tell whether torch, from 2.10 on, multiplies groups in one kernel on a GPU of this compute capability."""
    return capability[0] in _GROUPED_CAPABILITIES and torch.version.hip is None and hasattr(F, "grouped_mm")


class StackedExperts(nn.Module):
    """Replaces the gated experts of transformers. The stacks are set after they have been read."""

    def __init__(self, activation: Callable[[Tensor], Tensor], way: Way = "one by one") -> None:
        super().__init__()
        self.activation, self.way = activation, way
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

        Row i goes through the experts `chosen` [rows, k], weighted by `shares` [rows, k]. At most FEW_ROWS rows never
        wait for the host, unless the way is "one by one", so a graph can capture them.
        """
        if self.way == "padded" and len(hidden) <= FEW_ROWS:
            return self._padded(hidden, chosen, shares)
        count = chosen.shape[-1]
        order = chosen.flatten().argsort(stable=True)
        few = self.way == "packed" and len(hidden) <= FEW_ROWS
        outputs = (self._packed if few else self._one_by_one)(hidden, order // count, chosen.flatten()[order])
        weighted = outputs * shares.flatten()[order, None].to(outputs.dtype)
        inverse = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        return weighted[inverse].view(len(hidden), count, -1).sum(1)

    def _packed(self, hidden: Tensor, source: Tensor, chosen: Tensor) -> Tensor:
        """Return the outputs of experts `chosen` [n] for rows `source` [n], sorted by expert."""
        from engine.models.quantization.packed_product import Blocks, stacked_product

        gates, downs = self.stacks
        blocks = Blocks.of_stack(chosen, gates.shape[0])
        gate, up = stacked_product(hidden, source, gates, blocks).chunk(2, dim=-1)
        inner = self.activation(gate) * up
        return stacked_product(inner, torch.arange(len(inner), device=inner.device), downs, blocks)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _one_by_one(self, hidden: Tensor, source: Tensor, chosen: Tensor) -> Tensor:
        """As _packed, with the matrices of one expert at a time."""
        gates, downs = self.stacks
        sizes = torch.bincount(chosen, minlength=gates.shape[0]).tolist()
        rows = hidden[source]
        outputs, start = [], 0
        for expert, size in enumerate(sizes):
            if size:
                gate, up = gates.part(expert).product(rows[start : start + size]).chunk(2, dim=-1)
                outputs.append(downs.part(expert).product(self.activation(gate) * up))
                start += size
        return torch.cat(outputs) if outputs else torch.empty_like(rows)

    def _padded(self, hidden: Tensor, chosen: Tensor, shares: Tensor) -> Tensor:
        """Return the same as `forward`: every row through every chosen expert, weighted by 0 where it is not its own.

        A row chooses an expert at most once, so the rows themselves are the batch of each expert. Few rows multiply in
        less time than it takes to read the weights.
        """
        gates, downs = self.stacks
        experts, rows = gates.shape[0], len(hidden)
        weights = torch.zeros(experts, rows, dtype=torch.float32, device=hidden.device)
        weights.scatter_(0, chosen.t(), shares.t().float())
        # Chosen experts first. How many they are stays on the device; there are at most as many as choices.
        order = (weights != 0).any(1).to(torch.uint8).argsort(descending=True, stable=True)
        wanted = min(experts, chosen.numel())
        result = torch.zeros(hidden.shape, dtype=torch.float32, device=hidden.device)
        for start in range(0, wanted, EXPERTS_AT_ONCE):
            stop = min(start + EXPERTS_AT_ONCE, wanted)
            part = slice(start, stop) if wanted == experts else order[start:stop]
            gate, up = (hidden @ gates.part(part).dense(hidden.dtype).transpose(1, 2)).chunk(2, dim=-1)
            outputs = (self.activation(gate) * up) @ downs.part(part).dense(hidden.dtype).transpose(1, 2)
            share = weights[part][..., None]
            result += torch.where(share != 0, outputs.float() * share, 0.0).sum(0)
        return result.to(hidden.dtype)
