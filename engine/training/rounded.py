"""Training with the weights as int4 will round them (quantization-aware training, arXiv 1712.05877)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.models.embedded.network import Network
from engine.models.embedded.shape import GROUP
from engine.models.embedded.weights import SHRINK

_SMALLEST = 1e-7


def best_scales(groups: Tensor, most: tuple[int, ...], importance: Tensor | float = 1.0) -> Tensor:
    """Return the scale [..., 1] of each group [..., 64] that loses least, in fp16 steps.

    Numbers are -8 to 7 times the scale. `most`, of -8 and 8, are the numbers that a group's largest one may become.
    importance: how much the error of each input counts, [64].
    """
    largest = groups.gather(-1, groups.abs().argmax(-1, keepdim=True))
    best, least = torch.ones_like(largest), torch.full_like(largest, torch.inf)
    for shrink in SHRINK.tolist():
        for number in most:
            scale = (largest * (shrink / number)).half().float()
            scale = torch.where(scale.abs() < _SMALLEST, torch.full_like(scale, 1e-4), scale)
            error = (groups / scale).round_().clamp_(-8, 7).mul_(scale).sub_(groups)
            lost = error.square_().mul_(importance).sum(-1, keepdim=True)
            best, least = torch.where(lost < least, scale, best), torch.minimum(lost, least)
    return best


def int4_scales(weight: Tensor) -> Tensor:
    """Return the scales [outputs, inputs / 64, 1] of a matrix, negative where a group's largest number is positive."""
    return best_scales(weight.detach().reshape(len(weight), -1, GROUP), (-8,))


def rounded(weight: Tensor, scales: Tensor) -> Tensor:
    """Return a weight [outputs, inputs] as int4 with these scales holds it."""
    groups = weight.reshape(len(weight), -1, GROUP)
    return ((groups / scales).round_().clamp_(-8, 7) * scales).flatten(1)


class RoundedLinear(nn.Linear):
    """A linear layer that multiplies with its rounded weights and passes gradients on to the exact ones."""

    scales: Tensor

    def forward(self, rows: Tensor) -> Tensor:
        with torch.no_grad():
            error = rounded(self.weight, self.scales).sub_(self.weight)
        return F.linear(rows, self.weight + error)


def use_rounded(network: Network) -> None:
    """Make the linear layers round their weights from now on, and measure their scales anew."""
    for module in network.blocks.modules():
        if isinstance(module, nn.Linear):
            module.__class__ = RoundedLinear
            module.scales = int4_scales(module.weight)
