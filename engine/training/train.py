"""The training run: resumable, planned by the available minutes, the same on a CPU and on one GPU."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import torch
from torch import Tensor

from engine.corpus import corpus
from engine.models.embedded.network import Network
from engine.training import bf16_attention, loss_plot, objective, packed_batch, row_losses, samples
from engine.training.averaging import EVERY, Averaging
from engine.training.batch import Batch
from engine.training.batched_muon import BatchedMuon
from engine.training.checkpoint import NEWEST, PLATEAU, Progress, restore, save
from engine.training.config import Config, Optimizer
from engine.training.int8 import products_are_exact, use_int8
from engine.training.link_loss import link_loss
from engine.training.loader import Source
from engine.training.muon import Muon

NOTED = 20
"""Steps between two lines of progress; on a GPU only these lines wait for the device."""
HELD_OUT = 6
"""Batches for the held-out losses."""
PAUSE = 20.0
"""Seconds of a step that count as training at most: a longer step was suspended from outside."""


def optimizers(network: Network, numbers: Optimizer) -> list[torch.optim.Optimizer]:
    """Return Adam for embeddings and head, Muon for the blocks' matrices, and Adam for the link if there is one."""
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
    in_bf16 = network.embed.weight.is_cuda or (numbers.int8 and bf16_attention.is_fast())
    kind = BatchedMuon if in_bf16 else Muon
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
    """A training run: network, optimizers and progress.

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
            if products_are_exact():
                use_int8(self.network, compiled)
            else:
                print("this processor's int8 products overflow (it has no VNNI); training in fp32", flush=True)
        if compiled:
            self.network.trunk = torch.compile(self.network.trunk, dynamic=False)  # type: ignore[method-assign]
        self.source = Source(config, work)
        rows = config.objective.canvas_rows_late
        self._held_out = self.source.held_out(HELD_OUT, rows, self.device)
        self._holes = samples.draw(corpus.load(work / "corpus", "held-out"), "python", 2)
        self._loss_sums = torch.zeros(4, device=self.device)
        self._noted_at, self._noted_tokens = time.monotonic(), self.progress.stream_tokens
        self._noted_step = self.progress.step
        self.waited = 0.0

    def step(self, batch: Tensor, distilled: float, scale: float) -> None:
        """Take one step on a batch (packed_batch.PackedBatch) with the learning rates at `scale` of their peaks."""
        for optimizer in self.chain:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * scale
        stream, canvas = packed_batch.counted(batch, self.config.model.context_tokens)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            loss, means = self._loss(self.source.unpack(batch, self.device), distilled)
        torch.autograd.backward(loss)
        for optimizer in self.chain:
            optimizer.step()
            optimizer.zero_grad()
        self._loss_sums += means
        self.progress.step += 1
        self.progress.stream_tokens += stream
        self.progress.canvas_rows += canvas

    def warm_up(self) -> None:
        """Compile everything that a step runs before the clock starts: the learning rate rises in seconds."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            loss, _ = self._loss(self._held_out[0], 0.0)
        torch.autograd.backward(loss)
        for optimizer in self.chain:
            optimizer.zero_grad()

    def _loss(self, batch: Batch, distilled: float) -> tuple[Tensor, Tensor]:
        """Return the loss to descend and the means [4] to report: of stream, all canvases, full and partial ones."""
        weight = self.config.objective.canvas_weight
        if self.device.type == "cpu":
            losses = objective.losses(self.network, batch, distilled)
            means = (
                float(losses.stream.detach()),
                float(losses.canvas.detach()),
                losses.canvas_full,
                losses.canvas_partial,
            )
            return losses.stream + weight * losses.canvas + losses.link, torch.tensor(means)
        rows = objective.forward(self.network, batch, objective.visibility(batch))
        fixed = row_losses.losses(self.network, rows, batch, distilled)
        linked = link_loss(self.network, rows, batch)
        return fixed.stream + weight * fixed.canvas + linked, fixed.means()

    def note(self, scale: float) -> None:
        """Print and log the mean of the last steps' losses; on a GPU this waits for the device."""
        values = (self._loss_sums / max(self.progress.step - self._noted_step, 1)).tolist()
        self._loss_sums.zero_()
        self._noted_step = self.progress.step
        row = {
            name: round(value, 4) for name, value in zip(("stream", "canvas", "full", "partial"), values, strict=True)
        }
        now, progress = time.monotonic(), self.progress
        speed = (progress.stream_tokens - self._noted_tokens) / (now - self._noted_at)
        self._noted_at, self._noted_tokens = now, progress.stream_tokens
        row |= {"rate": round(scale, 4), "waited": round(self.waited, 2)}
        self.waited = 0.0
        self._log({**attrs.asdict(progress), **row, "tokens_a_second": round(speed)})
        tokens = f"{progress.stream_tokens / 1e6:.2f}M  {speed:,.0f} tokens/s"
        print(f"{progress.minutes:6.1f} min  step {progress.step}  {tokens}  {row}", flush=True)

    def save(self, name: str = NEWEST) -> None:
        """Write a checkpoint under `name`."""
        save(self.work / name, self.network, self.chain, self.progress)

    def report(self) -> None:
        """Print held-out losses by noise level and a few fills, and draw the plot."""
        losses = row_losses.levels(self.network, self._held_out)
        levels = dict(zip(row_losses.LEVELS, (round(value, 4) for value in losses), strict=True))
        print("held out: " + "  ".join(f"{name} {value:.3f}" for name, value in levels.items()), flush=True)
        self._log({**attrs.asdict(self.progress), "held_out": losses, "levels": levels})
        try:
            for line in samples.fill(self.config, self.network, self.work, self._holes):
                print(line, flush=True)
            loss_plot.draw(self.work / "metrics.jsonl", self.work / "loss.png")
        except Exception as error:  # a plot is no reason to end a run
            print(f"no sample or plot: {type(error).__name__}: {error}", flush=True)
        self._noted_at, self._noted_tokens = time.monotonic(), self.progress.stream_tokens

    def _log(self, row: dict[str, object]) -> None:
        with (self.work / "metrics.jsonl").open("a") as lines:
            lines.write(json.dumps(row) + "\n")


def train(
    config: Config,
    work: Path,
    minutes: float,
    workers: int,
    compiled: bool,
    session: float | None = None,
    beside: Path | None = None,
) -> Path:
    """Train for `minutes` in all, continuing from the run's checkpoint if there is one; return the checkpoint's path.

    `session` stops after that many minutes even if the run is not done; the next session continues. `beside` is the
    folder of another run of the same network, whose weights are averaged with this one's (averaging.py). `work` holds
    corpus/ and tokenizer.json and gets checkpoint.pt, plateau.pt (the run at the start of its cooldown), metrics.jsonl
    and loss.png.
    """
    started = time.monotonic()
    run, numbers = Run(config, work, compiled), config.optimizer
    progress = run.progress
    if run.device.type == "cuda":
        run.warm_up()
    last_step = last_saved = time.monotonic()
    averaging = Averaging(work, beside) if beside is not None else None
    rows = -1
    batches: Iterator[Tensor] = iter(())
    while True:
        earlier, now = progress.minutes / minutes, time.monotonic()
        progress.minutes += min(now - last_step, PAUSE) / 60
        last_step, done = now, progress.minutes / minutes
        if done >= 1 or (session is not None and time.monotonic() - started >= session * 60):
            break
        if numbers.cooldown and earlier < 1 - numbers.cooldown <= done:
            run.save(PLATEAU)
        wanted_rows, distilled = objective.phase(config.objective, done)
        if rows != wanted_rows:
            rows = wanted_rows
            batches = run.source.batches(numbers.seed + progress.step, rows, workers, run.device)
        scale = rate(done, numbers)
        asked_at = time.monotonic()
        batch = next(batches)
        run.waited += time.monotonic() - asked_at
        run.step(batch, distilled, scale)
        if averaging is not None and progress.step % EVERY == 0 and not averaging.average(run.network):
            print(f"step {progress.step}: no new weights in {beside}; going on alone", flush=True)
        if progress.step % NOTED == 0:
            run.note(scale)
        if time.monotonic() - last_saved > numbers.checkpoint_minutes * 60:
            last_saved = time.monotonic()
            run.save()
            run.report()
    run.save()
    run.report()
    return work / NEWEST
