"""The training run: resumable, planned by the minutes there are, the same on a CPU and on one GPU."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import torch
from torch import Tensor

from engine.corpus import corpus
from engine.models.embedded.network import Network
from engine.training import loss_plot, objective, row_losses, samples
from engine.training import packed_batch as wire
from engine.training.batched_muon import BatchedMuon
from engine.training.checkpoint import NEWEST, PLATEAU, Progress, restore, save
from engine.training.config import Config, Optimizer
from engine.training.int8 import use_int8
from engine.training.link_loss import link_loss
from engine.training.loader import Source
from engine.training.muon import Muon

NOTED = 20
"""Steps between two lines of progress; on a GPU nothing else waits for the device."""
HELD_OUT = 6
"""Batches that the held-out losses are taken over."""
PAUSE = 20.0
"""Seconds: a step that took longer was stopped from outside in between, and only so much of it counts as training."""


def optimizers(network: Network, numbers: Optimizer) -> list[torch.optim.Optimizer]:
    """Return Muon for the blocks' matrices and Adam for embedding and head, and the link's own, if there is one."""
    tables = (network.embed, network.hint, network.strength, network.gram)
    adam = torch.optim.AdamW(
        [
            {"params": [part.weight for part in tables], "lr": numbers.embed_lr},
            {"params": [network.head.weight, network.copy.weight], "lr": numbers.head_lr},
        ],
        betas=(0.9, 0.95),
        eps=1e-10,
        weight_decay=0.0,
        fused=True,
    )
    inner = (*network.blocks.parameters(), network.gram_out.weight)
    kind = BatchedMuon if network.embed.weight.is_cuda else Muon
    built: list[torch.optim.Optimizer] = [adam, kind(inner, lr=numbers.muon_lr, weight_decay=numbers.weight_decay)]
    if network.link is not None:
        built.append(torch.optim.Adam(network.link.parameters(), lr=numbers.link_lr, betas=(0.9, 0.99)))
    for optimizer in built:
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return built


def rate(done: float, numbers: Optimizer) -> float:
    """Return the learning rate as a share of its peak at `done` (0 to 1): short rise, plateau, linear fall to zero."""
    if done < numbers.warmup:
        return max(done / numbers.warmup, 0.02)
    return min(1.0, (1.0 - done) / numbers.cooldown) if numbers.cooldown else 1.0


class Run:
    """A run at work: network, optimizers and progress, one step after the other.

    `waited` counts the seconds since the last note in which no batch was ready.
    """

    def __init__(self, config: Config, work: Path, compiled: bool) -> None:
        self.config, self.work = config, work
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(config.optimizer.seed)
        self.network = Network(config.model).to(self.device)
        self.network.initialize()
        self.chain = optimizers(self.network, config.optimizer)
        self.progress = Progress()
        if (work / NEWEST).exists():
            self.progress = restore(work / NEWEST, self.network, self.chain)
        if config.optimizer.int8 and self.device.type == "cpu":
            use_int8(self.network, compiled)
        if compiled:
            self.network.trunk = torch.compile(self.network.trunk, dynamic=False)  # type: ignore[method-assign]
        self.source = Source(config, work)
        rows = config.objective.canvas_rows_late
        self._fixed = self.source.held_out(HELD_OUT, rows, self.device)
        self._holes = samples.draw(corpus.load(work / "corpus", "held-out"), "python", 2)
        self._told = torch.zeros(4, device=self.device)
        self._since, self._tokens = time.monotonic(), self.progress.stream_tokens
        self._noted = self.progress.step
        self.waited = 0.0

    def step(self, batch: Tensor, distilled: float, scale: float) -> None:
        """Take one step on a batch (see wire.Wire) with the learning rates at `scale` of their peaks."""
        for optimizer in self.chain:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * scale
        stream, canvas = wire.counted(batch, self.config.model.context_tokens)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            loss, told = self._loss(self.source.unfold(batch, self.device), distilled)
        torch.autograd.backward(loss)
        for optimizer in self.chain:
            optimizer.step()
            optimizer.zero_grad()
        self._told += told
        self.progress.step += 1
        self.progress.stream_tokens += stream
        self.progress.canvas_rows += canvas

    def warm_up(self) -> None:
        """Compile all that a step runs, before the clock does: the rise of the learning rate takes only seconds."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            loss, _ = self._loss(self._fixed[0], 0.0)
        torch.autograd.backward(loss)
        for optimizer in self.chain:
            optimizer.zero_grad()

    def _loss(self, batch: objective.Batch, distilled: float) -> tuple[Tensor, Tensor]:
        """Return the loss to descend, and what is told of it: losses of stream, all canvases, full and partial ones."""
        weight = self.config.objective.canvas_weight
        if self.device.type == "cpu":
            found = objective.losses(self.network, batch, distilled)
            means = (
                float(found.stream.detach()),
                float(found.canvas.detach()),
                found.canvas_full,
                found.canvas_partial,
            )
            return found.stream + weight * found.canvas + found.link, torch.tensor(means)
        rows = objective.forward(self.network, batch, objective.visibility(batch))
        fixed = row_losses.losses(self.network, rows, batch, distilled)
        linked = link_loss(self.network, rows, batch)
        return fixed.stream + weight * fixed.canvas + linked, fixed.told()

    def note(self, scale: float) -> None:
        """Print and log the mean of the last steps' losses; this waits for the device."""
        values = (self._told / max(self.progress.step - self._noted, 1)).tolist()
        self._told.zero_()
        self._noted = self.progress.step
        row = {
            name: round(value, 4) for name, value in zip(("stream", "canvas", "full", "partial"), values, strict=True)
        }
        now, done = time.monotonic(), self.progress
        speed = (done.stream_tokens - self._tokens) / (now - self._since)
        self._since, self._tokens = now, done.stream_tokens
        row |= {"rate": round(scale, 4), "waited": round(self.waited, 2)}
        self.waited = 0.0
        self._log({**attrs.asdict(done), **row, "tokens_a_second": round(speed)})
        told = (
            f"{done.minutes:6.1f} min  step {done.step}  {done.stream_tokens / 1e6:.2f}M  {speed:,.0f} tokens/s  {row}"
        )
        print(told, flush=True)

    def save(self, name: str = NEWEST) -> None:
        save(self.work / name, self.network, self.chain, self.progress)

    def look(self) -> None:
        """Print held-out losses by noise level and a few fills, and draw the plot."""
        found = row_losses.levels(self.network, self._fixed)
        levels = dict(zip(row_losses.LEVELS, (round(value, 4) for value in found), strict=True))
        print("held out: " + "  ".join(f"{name} {value:.3f}" for name, value in levels.items()), flush=True)
        self._log({**attrs.asdict(self.progress), "held_out": found, "levels": levels})
        try:
            for line in samples.fill(self.config, self.network, self.work, self._holes):
                print(line, flush=True)
            loss_plot.draw(self.work / "metrics.jsonl", self.work / "loss.png")
        except Exception as error:  # something to look at is never worth a run
            print(f"no sample or plot: {type(error).__name__}: {error}", flush=True)
        self._since, self._tokens = time.monotonic(), self.progress.stream_tokens

    def _log(self, row: dict[str, object]) -> None:
        with (self.work / "metrics.jsonl").open("a") as lines:
            lines.write(json.dumps(row) + "\n")


def train(
    config: Config, work: Path, minutes: float, workers: int, compiled: bool, session: float | None = None
) -> Path:
    """Train for `minutes` in all, going on from the run's checkpoint if there is one; return the checkpoint's path.

    `session` stops this session of the run after so many minutes, be the run done or not; the next goes on from there.
    `work` holds corpus/ and tokenizer.json and gets checkpoint.pt, plateau.pt (the run as its learning rate begins to
    fall), metrics.jsonl and loss.png.
    """
    begun = time.monotonic()
    run, numbers = Run(config, work, compiled), config.optimizer
    progress = run.progress
    if run.device.type == "cuda":
        run.warm_up()
    ticked = last_saved = time.monotonic()
    rows = -1
    batches: Iterator[Tensor] = iter(())
    while True:
        earlier, now = progress.minutes / minutes, time.monotonic()
        progress.minutes += min(now - ticked, PAUSE) / 60
        ticked, done = now, progress.minutes / minutes
        if done >= 1 or (session is not None and time.monotonic() - begun >= session * 60):
            break
        if numbers.cooldown and earlier < 1 - numbers.cooldown <= done:
            run.save(PLATEAU)
        wanted, distilled = objective.phase(config.objective, done)
        if rows != wanted:
            rows = wanted
            batches = run.source.batches(numbers.seed + progress.step, rows, workers, run.device)
        scale = rate(done, numbers)
        asked = time.monotonic()
        batch = next(batches)
        run.waited += time.monotonic() - asked
        run.step(batch, distilled, scale)
        if progress.step % NOTED == 0:
            run.note(scale)
        if time.monotonic() - last_saved > numbers.checkpoint_minutes * 60:
            last_saved = time.monotonic()
            run.save()
            run.look()
    run.save()
    run.look()
    return work / NEWEST
