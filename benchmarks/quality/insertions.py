"""How likely is an insertion before a word right? Fits the odds that lsp_server/suggest/insertion.py decides by.

Run it as `python benchmarks/quality/insertions.py --corpus runs/corpus`. Code is cut out directly before a word, and
the model is asked there; and once more where it is written already and nothing is missing. The seed is another one
than that of `quality.py`, which judges the result.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import math
from collections.abc import Iterator
from typing import Annotated, get_args

import attrs
import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.quality.figures import OTHERS
from benchmarks.quality.quality import Judges
from benchmarks.quality.typing_tasks import TypingTask, insertions
from engine.corpus import corpus
from engine.evaluation.measure import Workspaces
from engine.fill.stream import StreamModel
from engine.models import load as registry
from engine.schedule.scheduler import Scheduler
from lsp_server.documents.store import Documents
from lsp_server.settings import GATES, Settings
from lsp_server.suggest import insertion
from lsp_server.suggest.insertion import Agreement, Insertion
from lsp_server.suggest.pipeline import plan, present

_BUDGET_MS = 60_000.0
_AGREEMENTS: tuple[Agreement, ...] = get_args(Agreement)
_ROUNDS, _RIDGE = 50, 0.01


@attrs.frozen
class Place:
    """What may be inserted at a place, whether each is right, and the text that each setting of `gate` shows."""

    wanted: str
    found: list[Insertion]
    shown: dict[str, str]


async def ask(model: StreamModel, workspaces: Workspaces, tasks: list[TypingTask]) -> list[Place]:
    """Ask at the place of each task, with its text wanted there."""
    scheduler = Scheduler(model, memories=workspaces.memories)
    await scheduler.start()
    places = []
    for task in tasks:
        documents, uri, offset = Documents(), f"file:///{task.path}", len(task.above)
        documents.open(uri, task.language, 0, task.above + task.below)
        snapshot, known = documents.snapshot(uri), workspaces.name_of(task.path)
        assert snapshot is not None
        planned = plan(snapshot, offset, model.info, Settings(), path=task.path, workspace=known)
        fill = attrs.evolve(planned.fill, budget_ms=_BUDGET_MS)
        filled = await scheduler.submit(fill, None).result
        found = [
            each
            for candidate in filled.candidates
            for each in insertion.insertions(candidate, planned.hole, snapshot.language, planned.odds)
        ]
        shown = {}
        for name, gate in GATES.items():
            settings = attrs.evolve(planned.settings, gate=gate)
            shown[name] = next((each.text for each in present(attrs.evolve(planned, settings=settings), filled)), "")
        places.append(Place(task.text, found, shown))
    await scheduler.stop()
    return places


def fit(places: list[Place]) -> tuple[dict[str, float], float]:
    """Return the odds of each agreement, of a closed bracket and of the probability's logarithm, and nats a text."""
    found = [(each, each.text == place.wanted) for place in places for each in place.found]
    rows = np.array([list(_row(each)) for each, _ in found])
    right = np.array([is_right for _, is_right in found], float)
    weights = np.zeros(rows.shape[1])
    for _ in range(_ROUNDS):
        likely = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (likely - right) + _RIDGE * weights
        bend = (rows.T * (likely * (1 - likely))) @ rows + _RIDGE * np.eye(len(weights))
        weights -= np.linalg.solve(bend, slope)
    likely = 1 / (1 + np.exp(-rows @ weights))
    names = [*_AGREEMENTS, "closes", "sureness"]
    loss = -np.log(np.where(right > 0, likely, 1 - likely)).mean()
    return dict(zip(names, map(float, weights), strict=True)), float(loss)


def _row(each: Insertion) -> Iterator[float]:
    yield from (float(each.agreement == name) for name in _AGREEMENTS)
    yield float(each.closes)
    yield math.log(max(each.probability, 1e-6))


def main(
    corpus_folder: Annotated[Path, typer.Option("--corpus", help="The folder with judge.msgpack.")],
    split: Annotated[Judges, typer.Option(help="judge or held-out.")] = "judge",
    model_name: Annotated[str, typer.Option("--model", help='"embedded", a folder, or a GGUF.')] = "embedded",
    count: Annotated[int, typer.Option(help="Places in Python; a third of it in each other language.")] = 120,
    seed: Annotated[int, typer.Option(help="Draws the places.")] = 12,
) -> None:
    """Print the odds that fit best beside those in use, and how often each setting shows something, and is right."""
    console = Console(highlight=False)
    model, files = registry.load(model_name), corpus.load(corpus_folder, split)
    assert isinstance(model, StreamModel)
    workspaces = Workspaces.of(model, model_name, files)
    counts = {"python": count} | dict.fromkeys(OTHERS, count // 3)
    missing = [task for name, each in counts.items() for task in insertions(files, name, each, seed)]
    complete = [attrs.evolve(task, above=task.above + task.text, text="") for task in missing]
    asked = asyncio.run(ask(model, workspaces, missing))
    needless = asyncio.run(ask(model, workspaces, complete))
    weights, loss = fit(asked + needless)
    known = next(each.odds for place in asked for each in place.found)
    in_use = dict[str, float](known.agreement.items()) | {"closes": known.closes, "sureness": known.sureness}
    odds = Table("log odds", "fitted", "in use", title=f"{loss:.3f} nats a text")
    for name, value in weights.items():
        odds.add_row(name, f"{value:.2f}", f"{in_use[name]:.2f}")
    console.print(odds)
    table = Table("gate", "shown", "right", "shown where nothing is missing")
    for gate in GATES:
        shown = [place for place in asked if place.shown[gate]]
        right = sum(place.shown[gate] == place.wanted for place in shown)
        idle = sum(bool(place.shown[gate]) for place in needless)
        shares = (len(shown) / len(asked), right / max(len(shown), 1), idle / len(needless))
        table.add_row(gate, *(f"{share:.1%}" for share in shares))
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
