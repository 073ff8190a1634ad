"""The 4-bit numbers that a network ships in, and layers that compute with them.

A weight is a whole number from 0 to 15, less 7.5, times a scale, plus a centre; 32 inputs of an output share these two.
A parent in Q4_1, such as SmolLM2's GGUF, has weights of exactly this kind, and is rounded without loss. Training moves
exact weights; rounding.py rounds what it has learned. Scales and centres get gradients here, and so would the numbers,
as if there were no rounding (straight through: Bengio et al., arXiv 1308.3432).
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from engine.models.embedded.network import Network
from engine.models.embedded.shape import Shape
from engine.models.embedded.weights import HALF, MIDDLE, Packed, Weights, quantize_int4, unpacked_pairs

NUMBERS, SCALE, CENTRE = "numbers", "scale", "centre"


class _Straight(torch.autograd.Function):
    """The matrix [outputs, inputs] of numbers, scales and centres; the gradient takes the rounding for none."""

    @staticmethod
    def forward(ctx: Any, numbers: Tensor, scale: Tensor, centre: Tensor) -> Tensor:
        ctx.save_for_backward(numbers, scale)
        grouped = numbers.round().sub_(MIDDLE).view(*scale.shape, HALF)
        return grouped.mul_(scale[..., None]).add_(centre[..., None]).flatten(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        numbers, scale = ctx.saved_tensors
        gradient = gradients[0].float().view(*scale.shape, HALF)
        of_scale = numbers.round().sub_(MIDDLE).view_as(gradient).mul_(gradient).sum(-1)
        return (gradient * scale[..., None]).flatten(1), of_scale, gradient.sum(-1)


class RoundedLinear(nn.Linear):
    """A linear layer of 4-bit `numbers` fp32 [outputs, inputs], and `scale` and `centre` [outputs, inputs / 32]."""

    numbers: nn.Parameter
    scale: nn.Parameter
    centre: nn.Parameter

    def forward(self, rows: Tensor) -> Tensor:
        """Return rows [..., outputs]."""
        return nn.functional.linear(rows, self.matrix(), self.bias)

    def matrix(self) -> Tensor:
        """Return the rounded matrix [outputs, inputs]."""
        matrix: Tensor = _Straight.apply(self.numbers, self.scale, self.centre)  # type: ignore[no-untyped-call]
        return matrix


def round_linears(network: Network) -> None:
    """Make the matrices of the blocks 4-bit numbers, in place, each weight rounded to the nearest."""
    for linear in network.blocks.modules():
        if isinstance(linear, nn.Linear) and not isinstance(linear, RoundedLinear):
            _make_rounded(linear, Packed(*quantize_int4(linear.weight.detach().float().cpu().numpy())))


def rounded_network(shape: Shape, weights: Weights) -> Network:
    """Return the network of weights that an export wrote, with exactly their numbers, to train it on."""
    network = Network(shape)
    network.load_state_dict({name: torch.from_numpy(weights.dense(name)) for name in weights.names})
    for name, linear in network.blocks.named_modules(prefix="blocks"):
        if isinstance(linear, nn.Linear) and (packed := weights.packed(f"{name}.weight")).offsets is not None:
            _make_rounded(linear, packed)
    round_linears(network)
    return network


def _make_rounded(linear: nn.Linear, packed: Packed) -> None:
    """Make a layer a RoundedLinear of these numbers, which are in 4 bits with offsets."""
    assert packed.offsets is not None
    device, scale = linear.weight.device, packed.scales.astype(np.float32)
    numbers = unpacked_pairs(packed.values.astype(np.uint8, copy=False)).astype(np.float32)
    centre = packed.offsets + MIDDLE * scale
    del linear.weight
    linear.__class__ = RoundedLinear
    for name, values in ((NUMBERS, numbers), (SCALE, scale), (CENTRE, centre)):
        linear.register_parameter(name, nn.Parameter(torch.from_numpy(values).to(device)))


def rounded_linears(network: Network) -> dict[str, RoundedLinear]:
    """Return the layers that `round_linears` has made, by the names of their weights."""
    return {f"{name}.weight": module for name, module in network.named_modules() if isinstance(module, RoundedLinear)}


def weights_of(network: Network) -> int:
    """Return how many weights a network has; scales and centres are parts of them."""
    parts = (f".{SCALE}", f".{CENTRE}")
    return sum(each.numel() for name, each in network.named_parameters() if not name.endswith(parts))


def make_exact(network: Network) -> None:
    """Make the layers that are rounded plain linear layers with the same weights, in place."""
    for linear in rounded_linears(network).values():
        weight = linear.matrix().detach()
        for name in (NUMBERS, SCALE, CENTRE):
            delattr(linear, name)
        linear.__class__ = nn.Linear  # type: ignore[assignment]
        linear.weight = nn.Parameter(weight)
