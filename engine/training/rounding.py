"""Rounds a trained network to the 4-bit numbers that it ships in, so that little of what it learned is lost.

Rounding each weight to the nearest gives back what training moved by less than a half step, which is most of it. So
each column's error is made up for by the columns after it (GPTQ, arXiv 2210.17323), in the parent's own scales and
centres: a weight that did not move is exact in them. Then scales, centres, gains and embedding, which have no 4-bit
numbers, are trained until the rounded network predicts what the exact one does (as in arXiv 2305.14152).
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.models.embedded.network import Block, Network
from engine.models.embedded.weights import HALF, MIDDLE
from engine.training.batch import Batch
from engine.training.checkpoint import NEWEST, PARENT, load_network, save
from engine.training.config import Config
from engine.training.loader import batches
from engine.training.objective import attention, forward
from engine.training.rounded import RoundedLinear, make_exact, round_linears, rounded_linears

ROUNDED = "rounded.pt"
_NOTED = 20
"""Steps between two lines of progress."""
_DAMPING = 0.01
"""Share of the mean square of the inputs that is added to each input's: few rows must not decide alone."""


def round_checkpoint(config: Config, work: Path) -> Path:
    """Round a run's newest checkpoint, print how far it is from the exact one, and return the path of the result.

    What was rounded before is kept until there is a newer checkpoint. Raises CheckpointError.
    """
    target, numbers = work / ROUNDED, config.rounding
    if target.exists() and target.stat().st_mtime > (work / NEWEST).stat().st_mtime:
        return target
    exact, network = load_network(work / NEWEST), load_network(work / PARENT)
    make_exact(exact)
    exact.requires_grad_(False)
    round_linears(network)
    drawn = batches(config, work, "train", config.optimizer.seed + 1)
    with torch.autocast("cpu", torch.bfloat16, enabled=torch.cpu._is_avx512_bf16_supported()):
        round_to(network, exact, [next(drawn) for _ in range(numbers.batches)])
        tune(network, exact, drawn, numbers.steps, numbers.rate)
    save(target, network)
    return target


@torch.no_grad()
def round_to(network: Network, exact: Network, drawn: Sequence[Batch]) -> None:
    """Give a rounded network the weights of `exact`, in its own scales and centres, the first block first.

    Each block is rounded for the rows that the rounded blocks before it give. `drawn`: batches of the corpus.
    """
    states = {name: each for name, each in exact.state_dict().items() if each.dim() == 1 or name == "embed.weight"}
    network.load_state_dict(states, strict=False)
    shape = exact.shape
    rows = [network.embed(batch.tokens) for batch in drawn]
    turns = [[table[batch.positions][..., None, :] for table in (exact.cosine, exact.sine)] for batch in drawn]
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
    attends = [attention(batch, dtype, shape.key_heads, shape.heads) for batch in drawn]
    counted = [batch.tokens != 0 for batch in drawn]
    for layer, (block, target) in enumerate(zip(exact.blocks, network.blocks, strict=True)):

        def run(index: int, block: nn.Module, layer: int = layer) -> Tensor:
            after: Tensor = block(layer, rows[index], *turns[index], attends[index])
            return after.float()

        moments = _moments(block, counted, run)
        for name, linear in target.named_children():
            if isinstance(linear, RoundedLinear):
                linear.numbers.copy_(_numbers(block.get_parameter(f"{name}.weight"), linear, moments[name]))
        rows[:] = [run(index, target) for index in range(len(drawn))]


def _moments(block: nn.Module, counted: Sequence[Tensor], run: Callable[[int, nn.Module], Tensor]) -> dict[str, Tensor]:
    """Return the second moments [inputs, inputs] of the inputs of each linear layer of a block, by its name."""
    assert isinstance(block, Block)
    linears = {name: module for name, module in block.named_children() if isinstance(module, nn.Linear)}
    moments = {name: torch.zeros(linear.in_features, linear.in_features) for name, linear in linears.items()}
    wanted = counted[0]

    def watch(name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def note(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            rows = inputs[0][wanted].float()
            with torch.autocast("cpu", enabled=False):
                moments[name].addmm_(rows.t(), rows)

        return note

    handles = [linear.register_forward_pre_hook(watch(name)) for name, linear in linears.items()]
    for index, wanted in enumerate(counted):  # noqa: B007
        run(index, block)
    for handle in handles:
        handle.remove()
    return moments


def _numbers(weight: Tensor, grid: RoundedLinear, moments: Tensor) -> Tensor:
    """Return the numbers [outputs, inputs], 0 to 15, of a weight in the scales and centres of `grid`."""
    columns = weight.detach().float().clone()
    inputs = columns.shape[1]
    moments = moments + torch.eye(inputs) * (_DAMPING * moments.diagonal().mean())
    numbers = torch.empty_like(columns)
    with torch.autocast("cpu", enabled=False):
        # The upper Cholesky factor of the inverse: row i says how the columns after i make up for the error of i.
        factor = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(moments)), upper=True)
        for first in range(0, inputs, HALF):
            last = first + HALF
            group, errors = columns[:, first:last], torch.empty(len(columns), HALF)
            scale, centre = (each[:, first // HALF] for each in (grid.scale, grid.centre))
            step = torch.where(scale == 0, torch.ones_like(scale), scale)
            for at in range(HALF):
                column, row = group[:, at], factor[first + at, first + at : last]
                number = ((column - centre) / step + MIDDLE).round().clamp(0, 15)
                numbers[:, first + at] = number
                errors[:, at] = (column - (number - MIDDLE) * scale - centre) / row[0]
                group[:, at:] -= errors[:, at : at + 1] * row
            columns[:, last:] -= errors @ factor[first:last, last:]
    return numbers


def tune(network: Network, exact: Network, drawn: Iterator[Batch], steps: int, rate: float) -> list[float]:
    """Train all but the numbers of a rounded network, in place; return each step's distance from the exact one.

    `rate`: of Adam, as a share of the mean size of what is trained; it falls linearly to zero.
    """
    for linear in rounded_linears(network).values():
        linear.numbers.requires_grad_(False)
    trained = [each for each in network.parameters() if each.requires_grad]
    groups = [{"params": [each], "size": float(each.detach().abs().mean())} for each in trained]
    optimizer = torch.optim.Adam(groups, betas=(0.9, 0.98))
    distances = []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * group["size"] * (1 - step / steps)
        loss = distance(network, exact, next(drawn))
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        distances.append(float(loss.detach()))
        if len(distances) % _NOTED == 0:
            mean = sum(distances[-_NOTED:]) / _NOTED
            print(f"step {step + 1} of {steps}: {mean:.4f} nats a token from the exact network", flush=True)
    return distances


def distance(network: Network, exact: Network, batch: Batch) -> Tensor:
    """Return the mean of the rows' Kullback-Leibler divergences in nats, from the exact network's predictions.

    Rows count as they do in training: those of holes in full, those of the code above less.
    """
    counted = batch.weights > 0
    weights = batch.weights[counted]
    with torch.no_grad():
        wanted = exact.logits(forward(exact, batch)[counted]).log_softmax(-1)
    found = network.logits(forward(network, batch)[counted]).log_softmax(-1)
    each = F.kl_div(found, wanted, reduction="none", log_target=True).sum(-1)
    return (each * weights).sum() / weights.sum()
