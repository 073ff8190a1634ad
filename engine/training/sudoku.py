"""`midspan train sudoku`: a masked diffusion network for Sudoku, trained from nothing on one core.

The objective is that of any masked diffusion model: some cells are given, of the others a random share is shown and the
rest is masked, and the network says what belongs into each. Some shown digits are wrong (uniform noise beside masks, as
in GIDD, arXiv 2503.04482), so the network learns to doubt what it has written. engine/models/sudoku/model.py has
the network and says what it knows of the rules.

The block is run again and again. A step of training runs it SEGMENT times from where the last step left each board
(deep supervision with a carried state, arXiv 2506.21734). So a step is cheap, and the network learns to go on.
"""

import asyncio
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from engine.models.sudoku.model import CELLS, EMBEDDINGS, EPSILON, LOOPS, NAMES, SudokuModel, SudokuNetwork, kinds_of
from engine.protocol.messages import Fill, Filled, RuleName
from engine.schedule.scheduler import Scheduler
from engine.training.checkpoint import write_state
from engine.training.sudoku_puzzles import Digits, puzzles

SEGMENT, SEGMENTS = 4, 5
"""Loops in a step of training, and steps that a board stays for on average."""
HELD_OUT_SEED, JUDGED_SEED = 7, 11
POOL = 512
"""Puzzles that are generated at once."""


@attrs.frozen
class Recipe:
    """Sizes and numbers of a run. `shown`: share of boards with digits on the canvas; `doubted`: of those, share with
    wrong ones, up to `most_wrong` of the digits."""

    width: int = 32
    hidden: int = 64
    boards: int = 32
    rate: float = 4e-3
    warmup_steps: int = 100
    weight_decay: float = 0.01
    averaged: float = 0.998
    shown: float = 0.5
    doubted: float = 0.5
    most_wrong: float = 0.3
    seed: int = 1


class LoopedNetwork(nn.Module):
    """The network of engine/models/sudoku/model.py in torch. The same names, the same arithmetic."""

    row_part: nn.Parameter
    column_part: nn.Parameter
    row: nn.Parameter
    column: nn.Parameter
    box: nn.Parameter
    own: nn.Parameter
    cell: nn.Parameter

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.embed = nn.Parameter(torch.randn(EMBEDDINGS, width) * 0.5)
        for name in NAMES:
            self.register_parameter(name, nn.Parameter(torch.randn(width, 2 * hidden) / width**0.5 / 2))
        self.bias = nn.Parameter(torch.zeros(2 * hidden))
        self.down = nn.Parameter(torch.randn(hidden, width) / hidden**0.5 / 2)
        self.gain = nn.Parameter(torch.ones(width))
        self.head = nn.Parameter(torch.randn(width) / width**0.5)

    def loop(self, state: Tensor, shown: Tensor) -> Tensor:
        """Return the state after one loop. state, shown: [boards, 81, 9, width]."""
        boards, width = state.shape[0], state.shape[-1]
        rows = state + shown
        cells = rows.view(boards, 3, 3, 3, 3, 9, width)  # band, row, stack, column
        in_row, in_column = cells.mean(4), cells.mean(2)
        row_part = in_row @ self.row_part + (in_row.mean(3) @ self.row)[:, :, :, None]
        row_part = row_part + (in_row.mean(2) @ self.box)[:, :, None]
        column_part = in_column @ self.column_part + (in_column.mean(1) @ self.column)[:, None]
        mixed = (rows.reshape(-1, width) @ self.own + self.bias).view(*cells.shape[:-1], -1)
        mixed = mixed + row_part[:, :, :, :, None] + column_part[:, :, None]
        mixed = mixed + (cells.mean(5) @ self.cell)[..., None, :]
        gate, up = mixed.chunk(2, -1)
        state = state + ((F.silu(gate) * up) @ self.down).view(state.shape)
        return state * torch.rsqrt(state.square().mean(-1, keepdim=True) + EPSILON) * self.gain

    def logits(self, state: Tensor) -> Tensor:
        """Return logits [boards, 81, 9]."""
        return state @ self.head


@attrs.define
class Boards:
    """Boards in training. kinds: int64 [boards, 81, 9]. targets: int64 [boards, 81], -1 where the digit is given."""

    kinds: Tensor
    targets: Tensor
    state: Tensor


class Examples:
    """Draws boards: a puzzle, and a canvas on which some digits are shown, some of them wrong."""

    def __init__(self, recipe: Recipe, seed: int) -> None:
        self._recipe, self._draw = recipe, np.random.default_rng(seed)
        self._puzzles = self._pairs()

    def _pairs(self) -> Iterator[tuple[Digits, Digits]]:
        while True:
            given, solutions = puzzles(POOL, self._draw)
            for _ in range(2):  # each with two canvases, on average one of them empty
                for index in self._draw.permutation(POOL):
                    yield given[index], solutions[index]

    def take(self, count: int) -> tuple[Tensor, Tensor]:
        """Return kinds and targets of `count` new boards."""
        given, solutions = (np.stack(each) for each in zip(*(next(self._puzzles) for _ in range(count)), strict=True))
        draw, recipe = self._draw, self._recipe
        share = draw.random((count, 1)) * (draw.random((count, 1)) < recipe.shown)
        canvas = np.where((given == 0) & (draw.random(given.shape) < share), solutions, 0)
        wrong = draw.random((count, 1)) * recipe.most_wrong * (draw.random((count, 1)) < recipe.doubted)
        noise = (draw.random(given.shape) < wrong) & (canvas > 0)
        canvas = np.where(noise, draw.integers(1, 10, given.shape), canvas)
        targets = np.where(given > 0, -1, solutions.astype(np.int64) - 1)
        return torch.from_numpy(kinds_of(given, canvas)), torch.from_numpy(targets)


class SudokuRun:
    """A training run. Continues from the checkpoint in `work`, if there is one."""

    def __init__(self, work: Path, recipe: Recipe) -> None:
        self.recipe, self.path = recipe, work / "sudoku.pt"
        torch.manual_seed(recipe.seed)
        self.network = LoopedNetwork(recipe.width, recipe.hidden)
        self.averaged = {name: weight.detach().clone() for name, weight in self.network.named_parameters()}
        self.optimizer = torch.optim.AdamW(
            self.network.parameters(), recipe.rate, betas=(0.9, 0.98), weight_decay=recipe.weight_decay
        )
        self.step, self.minutes = 0, 0.0
        if self.path.exists():
            saved = torch.load(self.path, weights_only=True)
            self.network.load_state_dict(saved["network"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.averaged, self.step, self.minutes = saved["averaged"], saved["step"], saved["minutes"]
        self._loop = self.network.loop
        if shutil.which("c++"):  # A third faster. Without a compiler the same, step by step.
            self._loop = torch.compile(self.network.loop, dynamic=False)
        self._examples = Examples(recipe, recipe.seed + 1 + self.step)
        self._boards = self._new(recipe.boards)

    def _new(self, count: int) -> Boards:
        kinds, targets = self._examples.take(count)
        return Boards(kinds, targets, torch.zeros(count, 81, 9, self.recipe.width))

    def train_step(self, done: float) -> tuple[float, float]:
        """Take a step at `done` (0 to 1) of the run. Return the loss, and the share of boards that are all right."""
        recipe, boards = self.recipe, self._boards
        rate = recipe.rate * min(1.0, (self.step + 1) / recipe.warmup_steps, (1.0 - done) / 0.5)
        for group in self.optimizer.param_groups:
            group["lr"] = max(rate, recipe.rate * 0.01)
        state, shown = boards.state, self.network.embed[boards.kinds]
        losses: list[Tensor] = []
        for number in range(SEGMENT):
            state = self._loop(state, shown)
            if number % 2:
                logits = self.network.logits(state)
                losses.append(F.cross_entropy(logits.flatten(0, 1), boards.targets.flatten(), ignore_index=-1))
        loss = torch.stack(losses).mean()
        self.optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        kept = min(recipe.averaged, self.step / (self.step + 10))
        for name, weight in self.network.named_parameters():
            self.averaged[name].lerp_(weight.detach(), 1 - kept)
        right = ((logits.argmax(-1) == boards.targets) | (boards.targets < 0)).all(-1)
        self._renew(state.detach())
        return loss.item(), float(right.float().mean())

    def _renew(self, state: Tensor) -> None:
        """Keep the boards' states, and replace one board in SEGMENTS by a new one."""
        boards = self._boards
        boards.state = state
        leaving = torch.nonzero(torch.rand(len(state)) < 1 / SEGMENTS)[:, 0]
        if len(leaving):
            new = self._new(len(leaving))
            boards.kinds[leaving], boards.targets[leaving], boards.state[leaving] = new.kinds, new.targets, new.state

    @torch.no_grad()
    def solved_at_once(self, given: Digits, solutions: Digits, loops: int) -> float:
        """Return the share of puzzles whose every cell is right after one pass, with the averaged weights."""
        network = LoopedNetwork(self.recipe.width, self.recipe.hidden)
        network.load_state_dict(self.averaged)
        shown = network.embed[torch.from_numpy(kinds_of(given, np.zeros_like(given)))]
        state = torch.zeros_like(shown)
        for _ in range(loops):
            state = network.loop(state, shown)
        digits = network.logits(state).argmax(-1) + 1
        right = (digits == torch.from_numpy(solutions)) | (torch.from_numpy(given) > 0)
        return float(right.all(-1).float().mean())

    def save(self) -> None:
        """Write the checkpoint."""
        state = {
            "network": self.network.state_dict(),
            "averaged": self.averaged,
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "minutes": self.minutes,
        }
        write_state(self.path, state)


def hard_puzzles(count: int, seed: int) -> tuple[Digits, Digits]:
    """Return `count` puzzles of 22 to 26 givens from which no digit can be taken away, and their solutions."""
    draw = np.random.default_rng((seed, 22, 26))
    given, solutions = puzzles(count + count // 4 + 16, draw)
    kept = np.flatnonzero((given > 0).sum(1) <= 26)[:count]
    return given[kept], solutions[kept]


def train_sudoku(work: Path, target: Path, minutes: float, recipe: Recipe | None = None) -> None:
    """Train for `minutes` in all, continuing from the checkpoint in `work`, and write the weights to `target`."""
    work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    run = SudokuRun(work, recipe or Recipe())
    given, solutions = hard_puzzles(200, HELD_OUT_SEED)
    last = saved = time.monotonic()
    sums = np.zeros(2)
    while run.minutes < minutes:
        sums += run.train_step(run.minutes / minutes)
        now = time.monotonic()
        run.minutes, last = run.minutes + min(now - last, 60.0) / 60, now
        if run.step % 100 == 0:
            loss, right = sums / 100
            print(f"{run.minutes:6.1f} min  step {run.step}  loss {loss:.4f}  boards right {right:.3f}", flush=True)
            sums[:] = 0
        if now - saved > 180:
            saved = now
            run.save()
            rates = ", ".join(f"{run.solved_at_once(given, solutions, loops):.3f}" for loops in (16, 32))
            print(f"held out: solved in one pass of 16 and 32 loops: {rates}", flush=True)
    run.save()
    target.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: weight.half().numpy() for name, weight in run.averaged.items()}, target)
    target.chmod(0o644)  # safetensors lets only its owner read a file


SHORT = 16
"""Loops of the passes that the page shows."""
WAYS: dict[str, tuple[RuleName, int, bool, int]] = {
    "from all sides, at most 20 passes": ("threshold", 20, False, LOOPS),
    "the same, written digits may be taken back": ("threshold", 20, True, LOOPS),
    "left to right": ("left-to-right", 0, False, LOOPS),
    "short passes, from all sides": ("threshold", 20, False, SHORT),
    "short passes, written digits may be taken back": ("threshold", 20, True, SHORT),
    "short passes, left to right": ("left-to-right", 0, False, SHORT),
}


def measure_sudoku(weights: Path, count: int) -> Iterator[str]:
    """Yield a line a way of filling: the share of `count` hard puzzles solved through the scheduler, and the passes."""
    network = SudokuNetwork(load_file(weights))
    given, solutions = hard_puzzles(count, JUDGED_SEED)
    texts = [("".join(map(str, each)), "".join(map(str, right))) for each, right in zip(given, solutions, strict=True)]
    for name, (rule, steps, doubts, loops) in WAYS.items():
        pairs = texts if steps else texts[: max(1, count // 5)]  # a pass a cell takes two seconds a grid
        filled = asyncio.run(
            _filled(SudokuModel(network, doubts=doubts, loops=loops), [puzzle for puzzle, _ in pairs], rule, steps)
        )
        solved = sum(each.candidates[0].text == solution for each, (_, solution) in zip(filled, pairs, strict=True))
        passes = sorted(each.steps for each in filled)
        yield (
            f"{name}: {solved} of {len(pairs)} solved, {100 * solved / len(pairs):.1f} %; passes: "
            f"median {passes[len(passes) // 2]}, most {passes[-1]}"
        )


async def _filled(model: SudokuModel, grids: list[str], rule: RuleName, steps: int) -> list[Filled]:
    scheduler = Scheduler(model)
    await scheduler.start()
    fills = [Fill(0, "", each, budget_ms=600_000, max_tokens=CELLS + 1, rule=rule, steps=steps) for each in grids]
    filled = [await scheduler.submit(fill, None).result for fill in fills]
    await scheduler.stop()
    return filled
