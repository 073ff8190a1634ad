"""Muon where bf16 is fast: all matrices of one shape are orthogonalized together, in bf16, as its author does."""

import torch
from torch import Tensor

from engine.training.muon import Muon


def orthogonalize(updates: Tensor, steps: int = 5) -> Tensor:
    """Return matrices [n, rows, columns] near the closest semi-orthogonal ones; see muon.orthogonalize."""
    tall = updates.shape[1] > updates.shape[2]
    result = (updates.mT if tall else updates).bfloat16()
    result = result / (result.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = result @ result.mT
        polynomial = torch.baddbmm(gram, gram, gram, beta=-4.7750, alpha=2.0315)
        result = torch.baddbmm(result, polynomial, result, beta=3.4445)
    orthogonal: Tensor = result.mT if tall else result
    return orthogonal


class BatchedMuon(Muon):
    """Muon in a few calls a step. Its state is Muon's, so a run may continue with either."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient; `closure` is not used."""
        for group in self.param_groups:
            shapes: dict[torch.Size, list[Tensor]] = {}
            for matrix in group["params"]:
                if matrix.grad is not None:
                    shapes.setdefault(matrix.shape, []).append(matrix)
            for shape, matrices in shapes.items():
                gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
                for matrix in matrices:
                    if "momentum" not in self.state[matrix]:
                        self.state[matrix]["momentum"] = torch.zeros_like(matrix)
                momenta = [self.state[matrix]["momentum"] for matrix in matrices]
                torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
                nesterov = torch.stack(torch._foreach_lerp(gradients, momenta, group["momentum"]))
                updates = orthogonalize(nesterov).to(nesterov.dtype).unbind()
                scale = max(1.0, shape[0] / shape[1]) ** 0.5
                torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_add_(matrices, updates, alpha=-group["lr"] * scale)
