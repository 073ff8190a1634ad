"""What a run can do so far, to look at: a few held-out holes, filled by the engine itself."""

import asyncio
import random
from pathlib import Path

import torch

from engine.corpus.corpus import File
from engine.corpus.holes import TrainingHole, cut
from engine.fill.interface import Model
from engine.models import load as registry
from engine.models.embedded.network import Network
from engine.protocol.messages import Fill, RuleName
from engine.schedule.scheduler import Scheduler
from engine.training.config import Config
from engine.training.export import export

WAYS: dict[str, tuple[RuleName, int]] = {"left to right": ("left-to-right", 0), "in 4 steps": ("threshold", 4)}
SHOWN = 40


def draw(files: list[File], language: str, count: int) -> list[TrainingHole]:
    """Return `count` holes of the rest of a line, always the same ones; fewer if the files have no more."""
    rng = random.Random(3)
    chosen = [file for file in files if file.language == language and len(file.text) > 1000]
    found = (cut(rng.choice(chosen), "rest of line", rng) for _ in range(20 * count if chosen else 0))
    return [hole for hole in found if hole is not None and len(hole.prefix) > 500 and len(hole.middle) > 5][:count]


def fill(config: Config, network: Network, work: Path, holes: list[TrainingHole]) -> list[str]:
    """Return a line for each hole and way: the end of the prefix and what the model as exported puts behind it."""
    export(config, network, work / "tokenizer.json", work / "sample")
    family = registry.load(str(work / "sample"), threads=torch.get_num_threads(), device="cpu")
    return asyncio.run(_fill(family, holes))


async def _fill(family: Model, holes: list[TrainingHole]) -> list[str]:
    scheduler = Scheduler(family)
    await scheduler.start()
    lines = []
    try:
        for number, hole in enumerate(holes):
            before = hole.prefix.rpartition("\n")[2][-SHOWN:]
            lines.append(f"{hole.path}: {before!r} was followed by {hole.middle[:SHOWN]!r}")
            for name, (rule, steps) in WAYS.items():
                asked = Fill(
                    id=number,
                    prefix=hole.prefix,
                    suffix=hole.suffix,
                    path=hole.path,
                    language=hole.language,
                    rule=rule,
                    steps=steps,
                    budget_ms=60_000,
                )
                filled = await scheduler.submit(asked, None).result
                lines.append(f"  {name}: {filled.candidates[0].text[:SHOWN]!r}")
    finally:
        await scheduler.stop()
    return lines
