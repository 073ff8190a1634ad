"""The training run: resumable, planned by the available minutes, the same on a CPU and on one GPU."""

import json
import time
from pathlib import Path
from typing import Any

import attrs
import torch

from engine.models.embedded.network import Network
from engine.training import objective
from engine.training.averaging import EVERY, Averaging
from engine.training.batch import Batch
from engine.training.checkpoint import NEWEST, PARENT, PLATEAU, Progress, load_network, restore, save
from engine.training.config import Config, Optimizer
from engine.training.loader import batches
from engine.training.rounded import make_exact

NOTED = 10
"""Steps between two lines of progress."""
HELD_OUT = 6
"""Batches for the held-out losses."""
PAUSE = 60.0
"""Seconds of a step that count as training at most: a longer step was suspended from outside."""


def adam(network: Network, numbers: Optimizer) -> torch.optim.Optimizer:
    """Return AdamW, with weight decay for the embedding only."""
    vectors = [weight for weight in network.parameters() if weight.dim() < 2]
    matrices = [weight for weight in network.blocks.parameters() if weight.dim() > 1]
    groups: list[dict[str, Any]] = [
        {"params": vectors + matrices},
        {"params": [network.embed.weight], "weight_decay": numbers.weight_decay},
    ]
    return torch.optim.AdamW(groups, numbers.rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True)


def rate(done: float, numbers: Optimizer) -> float:
    """Return the learning rate as a share of its peak at `done` (0 to 1): short rise, plateau, linear fall to zero."""
    if done < numbers.warmup:
        return max(done / numbers.warmup, 0.02)
    return min(1.0, (1.0 - done) / numbers.cooldown) if numbers.cooldown else 1.0


class Run:
    """A training run: network, optimizer and progress. `work` holds parent.pt, corpus/ and tokenizer.json."""

    def __init__(self, config: Config, work: Path) -> None:
        self.config, self.work = config, work
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._in_bf16 = self.device.type == "cuda" or objective.cpu_has_bf16()
        torch.manual_seed(config.optimizer.seed)
        self.network = load_network(work / PARENT).to(self.device)
        make_exact(self.network)
        self.optimizer = adam(self.network, config.optimizer)
        self.progress = Progress()
        if (work / NEWEST).exists():
            self.progress = restore(work / NEWEST, self.network, self.optimizer)
        seed = config.optimizer.seed + 1009 * self.progress.step
        self.batches = batches(config, work, "train", seed)
        held_out = batches(config, work, "held-out", 7)
        self._held_out = [next(held_out) for _ in range(HELD_OUT)]
        self._sums, self._noted = [0.0] * len(objective.MEANS), (0, time.monotonic(), self.progress.stream_tokens)

    def step(self, done: float) -> None:
        """Take one step at `done` (0 to 1) of the run."""
        numbers = self.config.optimizer
        for group in self.optimizer.param_groups:
            group["lr"] = numbers.rate * rate(done, numbers)
        for _ in range(numbers.batches):
            batch = next(self.batches).to(self.device)
            losses = self._losses(batch, done)
            torch.autograd.backward(losses.total / numbers.batches)
            self._sums = [total + mean for total, mean in zip(self._sums, losses.means(), strict=True)]
            self.progress.stream_tokens += int((batch.tokens[:, : batch.stream_rows] != 0).sum())
            self.progress.canvas_rows += batch.masked.numel()
            self.progress.middle_tokens += int((batch.weights[:, : batch.stream_rows] == 1).sum())
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.progress.step += 1

    def _losses(self, batch: Batch, done: float) -> objective.Losses:
        numbers = self.config.objective
        weight = numbers.canvas_weight * min(1.0, done / numbers.late_from if numbers.late_from else 1.0)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._in_bf16):
            return objective.losses(self.network, batch, numbers.distilled, weight)

    def note(self, done: float) -> None:
        """Print and log the mean of the last steps' losses."""
        steps, at, tokens = self._noted
        count = max(self.progress.step - steps, 1) * self.config.optimizer.batches
        now, progress = time.monotonic(), self.progress
        means = {name: round(total / count, 4) for name, total in zip(objective.MEANS, self._sums, strict=True)}
        speed = round((progress.stream_tokens - tokens) / (now - at))
        self._sums, self._noted = [0.0] * len(objective.MEANS), (progress.step, now, progress.stream_tokens)
        scale = round(rate(done, self.config.optimizer), 3)
        self._log({**attrs.asdict(progress), **means, "rate": scale, "tokens_a_second": speed})
        read = f"{progress.stream_tokens / 1e6:.2f}M  {speed} tokens/s"
        print(f"{progress.minutes:6.1f} min  step {progress.step}  {read}  rate {scale}  {means}", flush=True)

    def save(self, name: str = NEWEST) -> None:
        """Write a checkpoint under `name`."""
        save(self.work / name, self.network, self.optimizer, self.progress)

    @torch.no_grad()
    def report(self) -> None:
        """Print and log held-out losses."""
        found = [self._losses(batch.to(self.device), 1.0).means() for batch in self._held_out]
        means = [sum(column) / len(found) for column in zip(*found, strict=True)]
        levels = dict(zip(objective.MEANS, (round(mean, 4) for mean in means), strict=True))
        print(f"held out: {levels}", flush=True)
        self._log({**attrs.asdict(self.progress), "held_out": levels})

    def _log(self, row: dict[str, object]) -> None:
        with (self.work / "metrics.jsonl").open("a") as lines:
            lines.write(json.dumps(row) + "\n")


def train(config: Config, work: Path, minutes: float, session: float | None = None, beside: Path | None = None) -> Path:
    """Train for `minutes` in all, continuing from the run's checkpoint if there is one; return the checkpoint's path.

    `session` stops after that many minutes even if the run is not done; the next session continues. `beside` is the
    folder of another run of the same network, whose weights are averaged with this one's (averaging.py).
    """
    started = last_step = last_saved = time.monotonic()
    run, numbers = Run(config, work), config.optimizer
    progress = run.progress
    averaging = Averaging(work, beside) if beside is not None else None
    if not progress.step:
        run.report()
    while True:
        earlier, now = progress.minutes / minutes, time.monotonic()
        progress.minutes += min(now - last_step, PAUSE) / 60
        last_step, done = now, progress.minutes / minutes
        if done >= 1 or (session is not None and now - started >= session * 60):
            break
        if numbers.cooldown and earlier < 1 - numbers.cooldown <= done:
            run.save(PLATEAU)
        run.step(done)
        if averaging is not None and progress.step % EVERY == 0 and not averaging.average(run.network):
            print(f"step {progress.step}: no new weights in {beside}; going on alone", flush=True)
        if progress.step % NOTED == 0:
            run.note(done)
        if time.monotonic() - last_saved > numbers.checkpoint_minutes * 60:
            last_saved = time.monotonic()
            run.save()
            run.report()
    run.save()
    run.report()
    return work / NEWEST
