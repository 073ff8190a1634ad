"""Training with the weights as int4 will round them (quantization-aware training, arXiv 1712.05877)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.models.embedded.network import Network
from engine.models.embedded.shape import GROUP

SHRINK = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75)
"""Scales that are tried for a group, as shares of the one that keeps its largest number: most groups lose less by
clipping it."""


def int4_scales(weight: Tensor) -> Tensor:
    """Return the scale [outputs, inputs / 64, 1] of each group that loses least, in fp16 steps.

    Numbers are -8 to 7 times the scale, which is negative where the largest number of a group is positive.
    """
    groups = weight.detach().reshape(len(weight), -1, GROUP)
    largest = groups.gather(2, groups.abs().argmax(2, keepdim=True))
    best, least = torch.zeros_like(largest), torch.full_like(largest, torch.inf)
    for shrink in SHRINK:
        scale = (largest * (-shrink / 8)).half().float()
        scale = torch.where(scale.abs() < 1e-7, torch.full_like(scale, 1e-4), scale)
        lost = ((groups / scale).round_().clamp_(-8, 7) * scale - groups).square_().sum(2, keepdim=True)
        best, least = torch.where(lost < least, scale, best), torch.minimum(lost, least)
    return best


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
