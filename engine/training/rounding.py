"""Rounds a trained network to the 4-bit numbers that it ships in, so that little of what it learned is lost.

Rounding each weight to the nearest gives back what training moved by less than a half step, which is nearly all of it.
So the parent's scales and centres are moved first, layer by layer, by least squares over rows of the corpus. Each
column's error of the numbers is made up for by the columns after it (GPTQ, arXiv 2210.17323). Then scales, centres,
gains and embedding, which have no 4-bit numbers, are tuned end to end until the rounded network predicts what the exact
one does (as in arXiv 2305.14152).
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.models.embedded.network import Network
from engine.models.embedded.weights import HALF, MIDDLE
from engine.training.averaging import EVERY, Averaging
from engine.training.batch import Batch
from engine.training.checkpoint import NEWEST, PARENT, load_network, restore, save
from engine.training.config import Config, Rounding
from engine.training.loader import batches
from engine.training.objective import attention, cpu_has_bf16, forward
from engine.training.rounded import RoundedLinear, make_exact, round_linears, rounded_linears
from engine.training.train import PAUSE

ROUNDED = "rounded.pt"
_RIDGE = 0.01
"""Share by which the least squares of scales and centres hold these back."""
_LEAST = 1e-6
_CHUNK = 256
"""Outputs at a time."""
_CANVAS = 0.1
"""Weight of a row of a canvas: there are more of them than rows of middles."""
_NOTED = 20
"""Steps between two lines of progress."""
_DAMPING = 5e-4
"""Share of the mean square of the inputs that is added to each input's: few rows must not decide alone."""


def round_checkpoint(config: Config, work: Path, beside: Path | None = None) -> Path:
    """Round a run's newest checkpoint, and tune it as long as the config says; return the path of the result.

    That is ROUNDED in `work`. It goes on from there where it was stopped, and begins again if the checkpoint is newer.
    `beside` is the folder of a run that does the same from a copy of both files; their weights are averaged. Raises
    CheckpointError.
    """
    target, numbers = work / ROUNDED, config.rounding
    minutes = numbers.minutes
    exact = load_network(work / NEWEST)
    make_exact(exact)
    exact.requires_grad_(False)
    in_bf16 = cpu_has_bf16()
    if not target.exists() or target.stat().st_mtime < (work / NEWEST).stat().st_mtime:
        network = load_network(work / PARENT)
        round_linears(network)
        drawn = batches(config, work, "train", config.optimizer.seed + 1)
        with torch.autocast("cpu", torch.bfloat16, enabled=in_bf16):
            round_to(network, exact, [next(drawn) for _ in range(numbers.batches)])
        save(target, network)
    network = load_network(target)
    optimizer = adam(network, numbers)
    progress = restore(target, network, optimizer)
    drawn = batches(config, work, "train", config.optimizer.seed + 1 + 1009 * (1 + progress.step))
    averaging = Averaging(work, beside) if beside is not None else None
    before, distances = time.monotonic(), list[float]()
    while progress.minutes < minutes:
        for group in optimizer.param_groups:
            group["lr"] = numbers.rate * group["size"] * (1 - progress.minutes / minutes)
        with torch.autocast("cpu", torch.bfloat16, enabled=in_bf16):
            distances.append(tuning_step(network, exact, optimizer, [next(drawn) for _ in range(numbers.step_batches)]))
        progress.step += 1
        now = time.monotonic()
        progress.minutes += min(now - before, PAUSE) / 60
        before = now
        if averaging is not None and progress.step % EVERY == 0:
            averaging.average(network)
        if progress.step % _NOTED == 0:
            mean = sum(distances[-_NOTED:]) / _NOTED
            print(f"{progress.minutes:6.1f} min  step {progress.step}  {mean:.4f} nats a token away", flush=True)
            save(target, network, optimizer, progress)
    save(target, network, optimizer, progress)
    return target


@torch.no_grad()
def round_to(network: Network, exact: Network, drawn: Sequence[Batch]) -> None:
    """Give a rounded network the weights of `exact`, in its own scales and centres, the first block first.

    Each block is rounded for the rows that the rounded blocks before it give. `drawn`: batches of the corpus.
    """
    states = {name: each for name, each in exact.state_dict().items() if each.dim() == 1 or name == "embed.weight"}
    network.load_state_dict(states, strict=False)
    shape = exact.shape
    turns = [[table[batch.positions][..., None, :] for table in (exact.cosine, exact.sine)] for batch in drawn]
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
    attends = [attention(batch, dtype, shape.key_heads, shape.heads) for batch in drawn]
    rows = [exact.embed(batch.tokens) for batch in drawn]
    for layer, (block, target) in enumerate(zip(exact.blocks, network.blocks, strict=True)):

        def run(index: int, block: nn.Module, layer: int = layer) -> Tensor:
            after: Tensor = block(layer, rows[index], *turns[index], attends[index])
            return after.float()

        moments = _moments(block, [batch.tokens != 0 for batch in drawn], run)
        for name, linear in target.named_children():
            if isinstance(linear, RoundedLinear):
                weight = block.get_parameter(f"{name}.weight").detach()
                _fit(weight, linear, moments[name])
                linear.numbers.copy_(_numbers(weight, linear, moments[name]))
                _fit(weight, linear, moments[name])
        rows[:] = [run(index, target) for index in range(len(drawn))]


def _moments(block: nn.Module, counted: Sequence[Tensor], run: Callable[[int, nn.Module], Tensor]) -> dict[str, Tensor]:
    """Return the second moments [inputs, inputs] of the inputs of each linear layer of a block, by its name."""
    linears = {name: module for name, module in block.named_children() if isinstance(module, nn.Linear)}
    moments = {name: torch.zeros(linear.in_features, linear.in_features) for name, linear in linears.items()}
    wanted = counted[0]

    def watch(name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def note(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            found = inputs[0][wanted].float()
            with torch.autocast("cpu", enabled=False):
                moments[name].addmm_(found.t(), found)

        return note

    handles = [linear.register_forward_pre_hook(watch(name)) for name, linear in linears.items()]
    for index, wanted in enumerate(counted):  # noqa: B007
        run(index, block)
    for handle in handles:
        handle.remove()
    return moments


def _fit(weight: Tensor, linear: RoundedLinear, moments: Tensor) -> None:
    """Move scales and centres to where the rows of `moments` come out most like `weight`'s.

    That is a least-squares problem for each output, with two unknowns for each group of inputs.
    """
    groups, old = linear.scale.shape[1], linear.matrix()
    of_centres = moments.view(groups, HALF, groups, HALF).sum((1, 3))
    with torch.autocast("cpu", enabled=False):
        for first in range(0, len(weight), _CHUNK):
            some = slice(first, first + _CHUNK)
            numbers = linear.numbers[some] - MIDDLE
            missing = (weight[some] - old[some]) @ moments
            grouped = numbers.view(-1, groups, HALF)
            halves = (grouped.transpose(0, 1) @ moments.view(groups, HALF, -1)).transpose(0, 1)
            of_both = _sums(halves)
            of_scales = _sums(halves * numbers[:, None])
            upper = torch.cat((of_scales, of_both), 2)
            lower = torch.cat((of_both.mT, of_centres.expand(len(numbers), -1, -1)), 2)
            whole = torch.cat((upper, lower), 1)
            wanted = torch.cat((_sums(missing * numbers), _sums(missing)), 1)
            # Where no row has an input, there is nothing to solve.
            whole.diagonal(dim1=1, dim2=2).mul_(1 + _RIDGE).add_(whole.diagonal(dim1=1, dim2=2).mean() * _LEAST)
            moved = torch.linalg.solve(whole, wanted)
            linear.scale[some] += moved[:, :groups]
            linear.centre[some] += moved[:, groups:]
    linear.scale.clamp_(min=0)


def _sums(values: Tensor) -> Tensor:
    """Return the sums [..., inputs / 32] of values [..., inputs]."""
    return values.reshape(*values.shape[:-1], -1, HALF).sum(-1)


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


def adam(network: Network, numbers: Rounding) -> torch.optim.Optimizer:
    """Return Adam for all but the numbers of a rounded network; `size` of a group is the mean size of its tensor."""
    for linear in rounded_linears(network).values():
        linear.numbers.requires_grad_(False)
    trained = [each for each in network.parameters() if each.requires_grad]
    groups = [{"params": [each], "size": float(each.detach().abs().mean())} for each in trained]
    return torch.optim.Adam(groups, numbers.rate, betas=(0.9, 0.98))


def tuning_step(network: Network, exact: Network, optimizer: torch.optim.Optimizer, drawn: Sequence[Batch]) -> float:
    """Take one step of `optimizer` towards the exact network; return the distance before it."""
    total = 0.0
    for batch in drawn:
        loss = distance(network, exact, batch) / len(drawn)
        torch.autograd.backward(loss)
        total += float(loss.detach())
    torch.nn.utils.clip_grad_norm_([each for each in network.parameters() if each.requires_grad], 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return total


def distance(network: Network, exact: Network, batch: Batch) -> Tensor:
    """Return the mean of the rows' Kullback-Leibler divergences in nats, from the exact network's predictions.

    Rows count as they do in training: those of holes in full, those of the code above and of canvases less.
    """
    weights = batch.weights.clone()
    weights[:, batch.stream_rows :] *= _CANVAS
    counted = weights > 0
    weights = weights[counted]
    with torch.no_grad():
        wanted = exact.logits(forward(exact, batch)[counted]).log_softmax(-1)
    found = network.logits(forward(network, batch)[counted]).log_softmax(-1)
    each = F.kl_div(found, wanted, reduction="none", log_target=True).sum(-1)
    return (each * weights).sum() / weights.sum()
