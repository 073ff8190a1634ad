"""Muon: momentum whose matrix updates are orthogonalized (Keller Jordan, 2024), in the parameters' own precision.

torch.optim.Muon works in bf16, which is many times slower than fp32 on processors without bf16 instructions.
"""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim import Optimizer


def orthogonalize(update: Tensor, steps: int = 5) -> Tensor:
    """Return a matrix [rows, columns] near the closest semi-orthogonal one, by Newton-Schulz iteration.

    Every iterate is a polynomial in X X^T times X. So only the polynomial is iterated, on the square of the shorter
    side, and the long side is multiplied twice instead of ten times. The result is the same up to rounding.
    """
    tall = update.shape[0] > update.shape[1]
    wide = update.T if tall else update
    size = wide.norm() + 1e-7
    gram = wide @ wide.T / size.square()
    product = factor = _factor(gram)
    for _ in range(steps - 1):
        gram = factor @ gram @ factor
        factor = _factor(gram)
        product = product @ factor
    result = product @ wide / size
    orthogonal: Tensor = result.T if tall else result
    return orthogonal


def _factor(gram: Tensor) -> Tensor:
    """Return the matrix that one iteration multiplies by."""
    factor = torch.addmm(gram, gram, gram, beta=-4.7750, alpha=2.0315)
    factor.diagonal().add_(3.4445)
    return factor


class Muon(Optimizer):
    """The optimizer of the matrices inside the network; embeddings and the head use Adam."""

    def __init__(
        self, matrices: Iterable[Tensor], lr: float, momentum: float = 0.95, weight_decay: float = 0.0
    ) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient; `closure` is not used."""
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
