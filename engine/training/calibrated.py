"""Rounds a trained network to int4, matrix by matrix, so that its rows change least (GPTQ, arXiv 2210.17323).

Rounding each number to the nearest loses a tenth of what the model knows. Here each column's error is made up for by
the columns after it, as far as the matrix's own inputs allow: these are read from rows of the corpus.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engine.models.embedded.network import Block, Network
from engine.models.embedded.shape import GROUP
from engine.models.embedded.weights import SHRINK, Scales
from engine.training.batch import Batch
from engine.training.objective import attention

Matrices = dict[str, tuple[NDArray[np.uint8], Scales]]
"""The int4 matrices of a network's blocks, packed as on disk (see weights.Packed), by their names."""

_DAMPING = 0.01
"""Share of the mean square of the inputs that is added to each input's: few rows must not decide alone."""
_SMALLEST = 1e-7


@torch.no_grad()
def round_to_int4(network: Network, batches: Sequence[Batch], pad: int) -> Matrices:
    """Round all matrices of the blocks, in place, first block first: each sees what those before it write.

    batches: of the corpus, on the network's device. Rows of the token `pad` do not count.
    """
    matrices: Matrices = {}
    with torch.autocast(network.embed.weight.device.type, torch.bfloat16):
        states = [network.embed(batch.tokens).float() for batch in batches]
        turns = [
            [table[batch.positions][..., None, :] for table in (network.cosine, network.sine)] for batch in batches
        ]
        attends = [attention(batch, torch.bfloat16) for batch in batches]
        counted = [batch.tokens != pad for batch in batches]
        for layer, block in enumerate(network.blocks):
            assert isinstance(block, Block)

            def run(index: int, layer: int = layer, block: Block = block) -> Tensor:
                cosine, sine = turns[index]
                rows: Tensor = block(layer, states[index], cosine, sine, attends[index])
                return rows.float()

            moments = _input_moments(block, counted, run)
            for name, linear in _linears(block).items():
                matrices[f"blocks.{layer}.{name}.weight"] = _round(linear.weight, moments[name])
            states[:] = [run(index) for index in range(len(batches))]
    return matrices


def _linears(block: Block) -> dict[str, nn.Linear]:
    return {name: module for name, module in block.named_children() if isinstance(module, nn.Linear)}


def _input_moments(block: Block, counted: Sequence[Tensor], run: Callable[[int], Tensor]) -> dict[str, Tensor]:
    """Return the second moments [inputs, inputs] of the inputs of each linear layer of a block, by its name."""
    linears = _linears(block)
    moments = {name: torch.zeros(linear.in_features, linear.in_features) for name, linear in linears.items()}
    wanted = counted[0]

    def watch(name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def note(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            rows = inputs[0][wanted].float()
            with torch.autocast(rows.device.type, enabled=False):
                moments[name] += (rows.t() @ rows).cpu()

        return note

    handles = [linear.register_forward_pre_hook(watch(name)) for name, linear in linears.items()]
    for index, wanted in enumerate(counted):  # noqa: B007
        run(index)
    for handle in handles:
        handle.remove()
    return moments


def _round(weight: Tensor, moments: Tensor) -> tuple[NDArray[np.uint8], Scales]:
    """Round a matrix [outputs, inputs] in place, and return it packed, with its scales."""
    columns = weight.detach().float().cpu().clone()
    inputs = columns.shape[1]
    importance = moments.diagonal().clone()
    moments = moments + torch.eye(inputs) * (_DAMPING * importance.mean())
    with torch.autocast("cpu", enabled=False):
        # The upper Cholesky factor of the inverse: row i says how the columns after i make up for the error of i.
        factor = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(moments)), upper=True)
        whole = torch.empty_like(columns)
        scales = torch.empty(len(columns), inputs // GROUP)
        for first in range(0, inputs, GROUP):
            last = first + GROUP
            group, errors = columns[:, first:last], torch.empty(len(columns), GROUP)
            scale = _best_scales(group, importance[first:last])[:, 0]
            scales[:, first // GROUP] = scale
            for at in range(GROUP):
                column, row = group[:, at], factor[first + at, first + at : last]
                whole[:, first + at] = (column / scale).round().clamp(-8, 7)
                errors[:, at] = (column - whole[:, first + at] * scale) / row[0]
                group[:, at:] -= errors[:, at : at + 1] * row
            columns[:, last:] -= errors @ factor[first:last, last:]
    weight.copy_((whole.view(len(whole), -1, GROUP) * scales[..., None]).flatten(1))
    codes = (whole + 8).to(torch.uint8).numpy().reshape(len(whole), -1, 2)
    packed = (codes[..., 0] | codes[..., 1] << 4).astype(np.uint8, copy=False)
    return packed, scales.numpy().astype(np.float16)


def _best_scales(groups: Tensor, importance: Tensor) -> Tensor:
    """Return the scale [..., 1] of each group [..., 64] that loses least, in fp16 steps.

    Numbers are -8 to 7 times the scale; a group's largest one becomes -8 or 8.
    importance: how much the error of each input counts, [64].
    """
    largest = groups.gather(-1, groups.abs().argmax(-1, keepdim=True))
    best, least = torch.ones_like(largest), torch.full_like(largest, torch.inf)
    for shrink in SHRINK.tolist():
        for number in (-8, 8):
            scale = (largest * (shrink / number)).half().float()
            scale = torch.where(scale.abs() < _SMALLEST, torch.full_like(scale, 1e-4), scale)
            error = (groups / scale).round_().clamp_(-8, 7).mul_(scale).sub_(groups)
            lost = error.square_().mul_(importance).sum(-1, keepdim=True)
            best, least = torch.where(lost < least, scale, best), torch.minimum(lost, least)
    return best
