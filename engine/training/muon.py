"""Muon: momentum whose matrix updates are orthogonalized (Keller Jordan, 2024), in the parameters' own precision.

torch.optim.Muon does the same in bf16, which processors without bf16 instructions run many times slower than fp32.
"""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim import Optimizer


def orthogonalize(update: Tensor, steps: int = 5) -> Tensor:
    """Return a matrix [rows, columns] near the closest semi-orthogonal one, by Newton-Schulz iteration.

    Every iterate is a polynomial in X X^T times X. So the polynomial alone is iterated, on the shorter side squared,
    and the long side is multiplied twice instead of ten times; the result is the same up to rounding.
    """
    tall = update.shape[0] > update.shape[1]
    wide = update.T if tall else update
    size = wide.norm() + 1e-7
    gram = wide @ wide.T / size.square()
    whole = part = _part(gram)
    for _ in range(steps - 1):
        gram = part @ gram @ part
        part = _part(gram)
        whole = whole @ part
    result = whole @ wide / size
    orthogonal: Tensor = result.T if tall else result
    return orthogonal


def _part(gram: Tensor) -> Tensor:
    """Return what one iteration multiplies by."""
    part = torch.addmm(gram, gram, gram, beta=-4.7750, alpha=2.0315)
    part.diagonal().add_(3.4445)
    return part


class Muon(Optimizer):
    """For the matrices inside the network; embeddings and the head want Adam."""

    def __init__(
        self, matrices: Iterable[Tensor], lr: float, momentum: float = 0.95, weight_decay: float = 0.0
    ) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                buffer = self.state[matrix].setdefault("momentum", torch.zeros_like(matrix))
                buffer.lerp_(matrix.grad, 1 - group["momentum"])
                update = orthogonalize(matrix.grad.lerp(buffer, group["momentum"]))
                scale = max(1.0, matrix.shape[0] / matrix.shape[1]) ** 0.5
                matrix.mul_(1 - group["lr"] * group["weight_decay"])
                matrix.add_(update, alpha=-group["lr"] * scale)
