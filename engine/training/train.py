"""The training run: resumable, planned by the minutes there are, the same on a CPU and on one GPU."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import torch
from tokenizers import Tokenizer
from torch.utils.data import DataLoader, IterableDataset

from engine.models.network import Network
from engine.models.stream import Marks
from engine.training import corpus, objective
from engine.training.config import Config, Optimizer
from engine.training.holes import Sampler
from engine.training.muon import Muon
from engine.training.tokenizer import SPECIALS


def marks_of(tokenizer: Tokenizer) -> Marks:
    """Return the ids of the special tokens."""
    vocabulary = tokenizer.get_vocab()
    return Marks(*(vocabulary[name] for name in SPECIALS))


class HoleBatches(IterableDataset[objective.Batch]):
    """An endless stream of batches, drawn in the loader's worker so that the model never waits for one."""

    def __init__(self, config: Config, folder: Path, tokenizer_path: Path, split: corpus.Split, seed: int, rows: int):
        self._config, self._folder, self._tokenizer_path = config, folder, tokenizer_path
        self._split, self._seed, self._rows = split, seed, rows

    def __iter__(self) -> Iterator[objective.Batch]:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        info = torch.utils.data.get_worker_info()
        seed = self._seed * 1009 + (info.id if info else 0)
        config, tokenizer = self._config, Tokenizer.from_file(str(self._tokenizer_path))
        files = corpus.load(self._folder, self._split)
        sampler = Sampler(files, config.corpus.shares, config.holes.weights, seed)
        collator = objective.Collator(config, tokenizer, marks_of(tokenizer), seed)
        while True:
            holes = [sampler.draw() for _ in range(config.optimizer.batch)]
            yield collator.batch(holes, self._rows)


def _batches(
    config: Config, folder: Path, tokenizer_path: Path, seed: int, rows: int, workers: int
) -> Iterator[objective.Batch]:
    dataset = HoleBatches(config, folder, tokenizer_path, "train", seed, rows)
    return iter(DataLoader(dataset, batch_size=None, num_workers=workers, prefetch_factor=4 if workers else None))


def initialize(network: Network) -> None:
    """Start the weights: residual outputs and head at zero, so that every layer begins as the identity."""
    width = network.shape.width
    torch.nn.init.normal_(network.embed.weight, std=1.0)
    torch.nn.init.zeros_(network.head.weight)
    for name, matrix in network.blocks.named_parameters():
        if name.endswith(("out.weight", "down.weight")):
            torch.nn.init.zeros_(matrix)
        else:
            torch.nn.init.uniform_(matrix, -(3**0.5) * 0.5 * width**-0.5, 3**0.5 * 0.5 * width**-0.5)


def optimizers(network: Network, numbers: Optimizer) -> list[torch.optim.Optimizer]:
    """Return Muon for the blocks' matrices and Adam for embedding and head."""
    adam = torch.optim.AdamW(
        [
            {"params": [network.embed.weight], "lr": numbers.embed_lr},
            {"params": [network.head.weight], "lr": numbers.head_lr},
        ],
        betas=(0.9, 0.95),
        eps=1e-10,
        weight_decay=0.0,
        fused=True,
    )
    muon = Muon(network.blocks.parameters(), lr=numbers.muon_lr, weight_decay=numbers.weight_decay)
    built: list[torch.optim.Optimizer] = [adam, muon]
    for optimizer in built:
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return built


def rate(done: float, numbers: Optimizer) -> float:
    """Return the learning rate as a share of its peak at `done` (0 to 1): short rise, plateau, linear fall to zero."""
    if done < numbers.warmup:
        return max(done / numbers.warmup, 0.02)
    return min(1.0, (1.0 - done) / numbers.cooldown) if numbers.cooldown else 1.0


@attrs.define
class Progress:
    """Where a run stands; saved with every checkpoint."""

    step: int = 0
    minutes: float = 0.0
    stream_tokens: int = 0
    canvas_rows: int = 0


@torch.no_grad()
def held_out_losses(network: Network, batches: list[objective.Batch]) -> tuple[float, float, float]:
    """Return mean stream, full-canvas and partial-canvas losses in nats over fixed held-out batches."""
    rows = [objective.losses(network, batch) for batch in batches]
    count = len(rows)
    return (
        float(sum(row.stream for row in rows)) / count,
        sum(row.canvas_full for row in rows) / count,
        sum(row.canvas_partial for row in rows) / count,
    )


def move(batch: objective.Batch, device: torch.device) -> objective.Batch:
    return objective.Batch(*(part.to(device, non_blocking=True) for part in attrs.astuple(batch, recurse=False)))


def train(config: Config, work: Path, minutes: float, workers: int, compiled: bool) -> Path:
    """Train for `minutes` in all, going on from the run's checkpoint if there is one; return the checkpoint's path.

    `work` holds corpus/ and tokenizer.json and gets checkpoint.pt and metrics.jsonl.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(config.optimizer.seed)
    network = Network(config.model).to(device)
    initialize(network)
    numbers, progress, checkpoint = config.optimizer, Progress(), work / "checkpoint.pt"
    chain = optimizers(network, numbers)
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location=device, weights_only=True)
        network.load_state_dict(saved["network"])
        for optimizer, state in zip(chain, saved["optimizers"], strict=True):
            optimizer.load_state_dict(state)
        progress = Progress(**saved["progress"])
    if compiled:
        network.trunk = torch.compile(network.trunk, dynamic=False)  # type: ignore[method-assign]
    held_out = HoleBatches(config, work / "corpus", work / "tokenizer.json", "held-out", 7, 64)
    fixed = [move(batch, device) for batch, _ in zip(held_out, range(6), strict=False)]
    before, started, last_saved = progress.minutes, time.monotonic(), time.monotonic()
    rows = -1
    batches: Iterator[objective.Batch] = iter(())
    while True:
        progress.minutes = before + (time.monotonic() - started) / 60
        done = progress.minutes / minutes
        if done >= 1:
            break
        if rows != (wanted := objective.canvas_rows_at(config.objective, done)):
            rows = wanted
            batches = _batches(
                config, work / "corpus", work / "tokenizer.json", numbers.seed + progress.step, rows, workers
            )
        batch = move(next(batches), device)
        scale = rate(done, numbers)
        for optimizer in chain:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * scale
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            found = objective.losses(network, batch)
        torch.autograd.backward(found.stream + config.objective.canvas_weight * found.canvas)
        for optimizer in chain:
            optimizer.step()
            optimizer.zero_grad()
        progress.step += 1
        progress.stream_tokens += int(batch.stream_weights.sum())
        progress.canvas_rows += int((batch.canvas_weights > 0).sum())
        if progress.step % 20 == 0:
            _note(work, progress, found, scale)
        if time.monotonic() - last_saved > numbers.checkpoint_minutes * 60:
            last_saved = time.monotonic()
            _save(checkpoint, network, chain, progress)
            stream, full, partial = held_out_losses(network, fixed)
            print(f"held out: stream {stream:.3f}  canvas full {full:.3f}  partial {partial:.3f}", flush=True)
            _log(work, {"step": progress.step, "held_out": [stream, full, partial], **attrs.asdict(progress)})
    _save(checkpoint, network, chain, progress)
    return checkpoint


def _note(work: Path, progress: Progress, found: objective.Losses, scale: float) -> None:
    row = {
        "stream": round(float(found.stream.detach()), 4),
        "canvas": round(float(found.canvas.detach()), 4),
        "full": round(found.canvas_full, 4),
        "partial": round(found.canvas_partial, 4),
        "rate": round(scale, 4),
    }
    _log(work, {**attrs.asdict(progress), **row})
    print(f"{progress.minutes:6.1f} min  step {progress.step}  {progress.stream_tokens / 1e6:.2f}M  {row}", flush=True)


def _log(work: Path, row: dict[str, object]) -> None:
    with (work / "metrics.jsonl").open("a") as lines:
        lines.write(json.dumps(row) + "\n")


def _save(path: Path, network: Network, chain: list[torch.optim.Optimizer], progress: Progress) -> None:
    state: dict[str, object] = {
        "network": dict(network.state_dict()),
        "optimizers": [optimizer.state_dict() for optimizer in chain],
        "progress": attrs.asdict(progress),
    }
    draft = path.with_suffix(".part")
    torch.save(state, draft)
    draft.replace(path)
