"""Samples of a run: a few held-out holes, filled by the engine itself, for a person to read."""

import asyncio
import random
from pathlib import Path

import torch

from engine.corpus.holes import TrainingHole, cut
from engine.corpus.languages import File
from engine.fill.interface import Model
from engine.fill.strategy import FillStrategy
from engine.models import load as registry
from engine.models.embedded.network import Network
from engine.protocol.messages import Fill
from engine.schedule.scheduler import Scheduler
from engine.training.config import Config
from engine.training.export import export

STRATEGIES = {"left to right": FillStrategy("left-to-right"), "in 4 steps": FillStrategy("threshold", 4)}
SHOWN = 40


def draw(files: list[File], language: str, count: int) -> list[TrainingHole]:
    """Return `count` holes of the rest of a line, always the same ones; fewer if the files have no more."""
    rng = random.Random(3)
    chosen = [file for file in files if file.language == language and len(file.text) > 1000]
    cuts = (cut(rng.choice(chosen), "rest of line", rng) for _ in range(20 * count if chosen else 0))
    return [hole for hole in cuts if hole is not None and len(hole.prefix) > 500 and len(hole.middle) > 5][:count]


def fill(config: Config, network: Network, work: Path, holes: list[TrainingHole]) -> list[str]:
    """Return a line for each hole and strategy: the end of the prefix, and the fill of the exported model."""
    export(config, network, work / "tokenizer.json", work / "sample")
    model = registry.load(str(work / "sample"), threads=torch.get_num_threads(), device="cpu")
    return asyncio.run(_fill(model, holes))


async def _fill(model: Model, holes: list[TrainingHole]) -> list[str]:
    scheduler = Scheduler(model)
    await scheduler.start()
    lines = []
    try:
        for number, hole in enumerate(holes):
            before = hole.prefix.rpartition("\n")[2][-SHOWN:]
            lines.append(f"{hole.path}: {before!r} was followed by {hole.middle[:SHOWN]!r}")
            for name, strategy in STRATEGIES.items():
                request = Fill(
                    id=number,
                    prefix=hole.prefix,
                    suffix=hole.suffix,
                    path=hole.path,
                    language=hole.language,
                    rule=strategy.rule,
                    steps=strategy.steps,
                    budget_ms=60_000,
                )
                filled = await scheduler.submit(request, None).result
                lines.append(f"  {name}: {filled.candidates[0].text[:SHOWN]!r}")
    finally:
        await scheduler.stop()
    return lines
