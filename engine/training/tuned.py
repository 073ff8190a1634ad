"""Trains what rounding leaves free, scales and gains, until the rounded network predicts what the exact one does.

The int4 numbers stay as they were rounded. Each has a scale shared by 64, and these few, with the gains of the norms,
make up for a part of what the rounding lost (as in arXiv 2305.14152). The exact network's predictions are the target.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from engine.models.embedded.network import Network
from engine.models.embedded.shape import GROUP
from engine.training.batch import Batch
from engine.training.calibrated import Matrices
from engine.training.objective import forward

_CLIP = 1.0


class _Scaled(torch.autograd.Function):
    """Whole numbers int8 [outputs, inputs] times scales [outputs, inputs / 64], which alone get a gradient."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, scales: Tensor) -> Tensor:
        ctx.save_for_backward(whole)
        return (whole.view(len(whole), -1, GROUP) * scales[..., None]).flatten(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        (whole,) = ctx.saved_tensors
        groups = (len(whole), -1, GROUP)
        return None, (gradients[0].view(groups) * whole.view(groups)).sum(-1)


def scaled(whole: Tensor, scales: Tensor) -> Tensor:
    """Return the matrix [outputs, inputs] of whole numbers and scales."""
    matrix: Tensor = _Scaled.apply(whole, scales)  # type: ignore[no-untyped-call]
    return matrix


class ScaledLinear(nn.Linear):
    """A linear layer of fixed int4 numbers, and scales that are trained."""

    whole: Tensor
    scales: nn.Parameter

    def forward(self, rows: Tensor) -> Tensor:
        return nn.functional.linear(rows, scaled(self.whole, self.scales))


def tune(
    network: Network, matrices: Matrices, exact: Network, batches: Iterator[Batch], steps: int, rate: float
) -> Matrices:
    """Train the scales and the gains of a rounded network; return its matrices with the new scales.

    network: as `round_to_int4` left it; afterwards it computes with the new scales and gains.
    rate: of Adam, as a share of the mean size of what is trained; it falls linearly to zero.
    """
    device = network.embed.weight.device
    linears = _with_scales(network, matrices)
    gains = [weight for weight in network.parameters() if weight.dim() == 1]
    trained = [linear.scales for linear in linears.values()] + gains
    groups = [{"params": [each], "size": float(each.detach().abs().mean())} for each in trained]
    optimizer = torch.optim.Adam(groups, betas=(0.9, 0.95))
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * group["size"] * (1 - step / steps)
        batch = next(batches).to(device)
        with torch.autocast(device.type, torch.bfloat16):
            torch.autograd.backward(distance(network, exact, batch))
        torch.nn.utils.clip_grad_norm_(trained, _CLIP)
        optimizer.step()
        optimizer.zero_grad()
    tuned: Matrices = {}
    with torch.no_grad():
        for name, linear in linears.items():
            scales = linear.scales.half()
            linear.weight.copy_(scaled(linear.whole, scales.float()))
            tuned[name] = (matrices[name][0], scales.cpu().numpy())
            del linear.scales, linear.whole
            linear.__class__ = nn.Linear  # type: ignore[assignment]
    return tuned


def distance(network: Network, exact: Network, batch: Batch) -> Tensor:
    """Return the mean of the rows' Kullback-Leibler divergences in nats, from the exact network's predictions.

    Rows count as they do in training: those of holes in full, those of the code above less.
    """
    with torch.no_grad():
        counted = batch.weights > 0
        wanted = exact.logits(forward(exact, batch)[counted]).log_softmax(-1)
    found = network.logits(forward(network, batch)[counted]).log_softmax(-1)
    weights = batch.weights[counted]
    each = nn.functional.kl_div(found, wanted, reduction="none", log_target=True).sum(-1)
    return (each * weights).sum() / weights.sum()


def _with_scales(network: Network, matrices: Matrices) -> dict[str, ScaledLinear]:
    """Split the weights of the rounded matrices into whole numbers and trained scales; freeze all but these."""
    modules, linears = dict(network.named_modules()), {}
    network.embed.weight.requires_grad_(False)
    for name, (packed, scales) in matrices.items():
        linear = modules[name.removesuffix(".weight")]
        assert isinstance(linear, nn.Linear)
        linear.weight.requires_grad_(False)
        linear.__class__ = ScaledLinear
        assert isinstance(linear, ScaledLinear)
        halves = np.stack((packed & 15, packed >> 4), axis=-1).reshape(len(packed), -1).astype(np.int8) - 8
        device = linear.weight.device
        linear.whole = torch.from_numpy(halves).to(device)
        linear.scales = nn.Parameter(torch.from_numpy(scales.astype(np.float32)).to(device))
        linears[name] = linear
    return linears
