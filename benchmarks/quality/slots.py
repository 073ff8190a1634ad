"""How fast are 64 holes in one batch, and how good are the fills of stubs, annotations and docstrings?

Run it as `python benchmarks/quality/slots.py --corpus runs/small/corpus`. The holes are of held-out packages; one
function of three loses its annotations, its docstring or its body of one statement, and the fill is compared with what
was there. The package without the file is the memory, as in an editor.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import math
import time
from collections.abc import Iterable, Sequence
from typing import Annotated, get_args

import attrs
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.quality.slot_tasks import SlotTask, snapshot_of, tasks
from engine.corpus import corpus
from engine.corpus.languages import File
from engine.errors import MidspanError
from engine.evaluation.measure import Workspaces
from engine.models.load import load
from engine.protocol.messages import Fill, Filled
from engine.schedule.scheduler import Scheduler
from lsp_server.documents.store import Snapshot
from lsp_server.settings import Settings
from lsp_server.slots.fill import BESIDE_TYPING, TOGETHER, Filler
from lsp_server.slots.find import find_slots
from lsp_server.slots.judge import Judge
from lsp_server.slots.slot import Slot, SlotKind
from lsp_server.suggest.pipeline import Plan, plan

HOLES = 64
ROUNDS = 2
MOMENTS = 60
LANGUAGES: dict[SlotKind, tuple[str, ...]] = {
    "annotations": ("python", "typescript"),
    "docstrings": ("python", "typescript", "go"),
    "stubs": ("python", "typescript", "javascript", "go", "rust", "java", "csharp"),
}


@attrs.frozen
class Row:
    """A slot whose code was there: where the fill comes from, how sure the model was, whether it is what was there."""

    origin: str
    confidence: float
    is_right: bool
    title: str
    text: str
    truth: str


class Engine:
    """The scheduler of an engine in this process, with the packages as workspaces."""

    def __init__(self, scheduler: Scheduler, workspaces: Workspaces) -> None:
        self._scheduler, self._workspaces = scheduler, workspaces

    def filler(self, path: str) -> Filler:
        """Return what fills the holes of a file."""
        model, workspace = self._workspaces.model.info, self._workspaces.name_of(path)

        def plan_of(snapshot: Snapshot, offset: int, settings: Settings, candidates: int) -> Plan:
            return plan(snapshot, offset, model, settings, path=path, candidates=candidates, workspace=workspace)

        return Filler(plan_of, self.ask, Settings())

    async def ask(self, fill: Fill) -> Filled:
        """Answer a fill."""
        return await self._scheduler.submit(fill, None).result


def main(
    corpus_folder: Annotated[Path, typer.Option("--corpus", help="The folder with held-out.msgpack.")] = Path(
        "runs/small/corpus"
    ),
    model_name: Annotated[str, typer.Option("--model", help='"embedded" or a folder with a model.')] = "embedded",
    kind: Annotated[list[str] | None, typer.Option(help="Kinds to measure; speed and beside are two more.")] = None,
    count: Annotated[int, typer.Option(help="The most slots of a language and kind.")] = 300,
    examples: Annotated[int, typer.Option(help="Fills to print of each.")] = 0,
) -> None:
    """Measure, and print tables."""
    console = Console(highlight=False, width=120)
    try:
        files = corpus.load(corpus_folder, "held-out")
        asyncio.run(
            _measure(model_name, files, kind or ["speed", "beside", *get_args(SlotKind)], count, examples, console)
        )
    except MidspanError as error:
        typer.echo(f"slots: {error}", err=True)
        raise typer.Exit(1) from None


async def _measure(
    model_name: str, files: list[File], kinds: Sequence[str], count: int, examples: int, console: Console
) -> None:
    workspaces = Workspaces.of(load(model_name), model_name, files)
    scheduler = Scheduler(workspaces.model, memories=workspaces.memories)
    await scheduler.start()
    engine = Engine(scheduler, workspaces)
    try:
        if "speed" in kinds:
            await _speed(engine, files, console)
        if "beside" in kinds:
            await _beside(engine, files, console)
        for kind in get_args(SlotKind):
            for language in LANGUAGES[kind] if kind in kinds else ():
                rows = await _rows(engine, tasks(files, language, kind), kind, count)
                _show(rows, f"{kind}, {language}", console)
                for row in [row for row in rows if row.origin == "model"][:examples]:
                    console.print(
                        f"{row.confidence:.2f} {row.is_right!s:5} {row.text!r}  was {row.truth!r}", markup=False
                    )
    finally:
        await scheduler.stop()


async def _speed(engine: Engine, files: Sequence[File], console: Console) -> None:
    """Print the time of 64 holes together, against one after another. One more round before it warms up.

    The processor's time counts the engine alone, whatever else the machine does.
    """
    ways = (1, BESIDE_TYPING, TOGETHER)
    table = Table("holes", "together", "seconds", "ratio", "processor, s", "ratio", title=f"{HOLES} holes")
    kinds: list[tuple[SlotKind, str]] = [("stubs", "python"), ("annotations", "python"), ("stubs", "typescript")]
    for kind, language in kinds:
        holes = _holes(engine, files, kind, language)[:HOLES]
        took = {together: [(math.inf, math.inf)] for together in ways}
        for round_ in range(ROUNDS + 1):
            for together in ways:
                began, began_cpu = time.perf_counter(), time.process_time()
                await _fill(holes, together)
                if round_:
                    took[together].append((time.perf_counter() - began, time.process_time() - began_cpu))
        alone, alone_cpu = (min(one[index] for one in took[1]) for index in (0, 1))
        for together in ways:
            wall, cpu = (min(one[index] for one in took[together]) for index in (0, 1))
            name = f"{kind}, {language}" if together == 1 else ""
            ratios = f"{wall / alone:.2f}", f"{cpu / alone_cpu:.2f}"
            table.add_row(name, str(together), f"{wall:.2f}", ratios[0], f"{cpu:.2f}", ratios[1])
    console.print(table)


async def _beside(engine: Engine, files: Sequence[File], console: Console) -> None:
    """Print how long a suggestion takes alone, and while the slots of a file are filled."""
    table = Table("holes together", "median, ms", "95 % within, ms", title="a suggestion meanwhile")
    holes = _holes(engine, files, "stubs", "python")[: 2 * HOLES]
    cursors = _holes(engine, files, "stubs", "python")[2 * HOLES :]
    for together in (0, 4, 8, TOGETHER, 16):
        filling = asyncio.create_task(_fill(holes if together else [], together or 1))
        took: list[float] = []
        for filler, snapshot, slot in cursors[:MOMENTS]:
            planned = filler.plan(snapshot, slot.start, Settings(), 1)
            began = time.perf_counter()
            await engine.ask(planned.fill)
            took.append(1000 * (time.perf_counter() - began))
            await asyncio.sleep(0.05)
            if together and filling.done():
                filling = asyncio.create_task(_fill(holes, together))
        filling.cancel()
        await asyncio.gather(filling, return_exceptions=True)
        took.sort()
        table.add_row(str(together), f"{took[len(took) // 2]:.0f}", f"{took[int(len(took) * 0.95)]:.0f}")
    console.print(table)


def _holes(engine: Engine, files: Sequence[File], kind: SlotKind, language: str) -> list[tuple[Filler, Snapshot, Slot]]:
    holes: list[tuple[Filler, Snapshot, Slot]] = []
    for task in tasks(files, language, kind):
        snapshot = snapshot_of(task.path, task.text)
        slots = [slot for slot in find_slots(snapshot, kind) if slot.start in task.truths and not slot.known]
        holes += [(engine.filler(task.path), snapshot, slot) for slot in slots]
    return holes


async def _fill(holes: Sequence[tuple[Filler, Snapshot, Slot]], together: int) -> None:
    room = asyncio.Semaphore(together)

    async def fill(filler: Filler, snapshot: Snapshot, slot: Slot) -> None:
        async with room:
            await filler.fill(*slot.opened(snapshot), slot.shape)

    await asyncio.gather(*(fill(*hole) for hole in holes))


async def _rows(engine: Engine, of: Iterable[SlotTask], kind: SlotKind, count: int) -> list[Row]:
    rows: list[Row] = []
    for task in of:
        snapshot = snapshot_of(task.path, task.text)
        slots = [slot for slot in find_slots(snapshot, kind) if slot.start in task.truths][: count - len(rows)]
        unknown = [slot for slot in slots if not slot.known]
        answers = await engine.filler(task.path).fill_all(snapshot, unknown, lambda: None)
        judge = Judge(snapshot)
        for slot in slots:
            truth = _plain(task.truths[slot.start])
            if slot.known:
                origin = "file" if slot.is_sure else "file, doubtful"
                rows.append(Row(origin, 1.0, _plain(slot.known) == truth, slot.title, slot.known, truth))
            else:
                text, confidence = judge.read(slot, *answers[unknown.index(slot)])
                rows.append(Row("model", confidence, _plain(text) == truth, slot.title, text, truth))
        if len(rows) >= count:
            break
    return rows


def _show(rows: Sequence[Row], title: str, console: Console) -> None:
    table = Table("from", "slots", "right", title=f"{title}: {len(rows)} slots")
    for origin in ("file", "file, doubtful"):
        of = [row for row in rows if row.origin == origin]
        if of:
            table.add_row(origin, str(len(of)), _share(of))
    of = [row for row in rows if row.origin == "model"]
    for low, high in (
        (0.95, 1.01),
        (0.9, 0.95),
        (0.8, 0.9),
        (0.65, 0.8),
        (0.5, 0.65),
        (0.3, 0.5),
        (0.1, 0.3),
        (0.0, 0.1),
    ):
        part = [row for row in of if low <= row.confidence < high]
        if part:
            table.add_row(f"model, {low:.2f} sure or more", str(len(part)), _share(part))
    console.print(table)


def _share(rows: Sequence[Row]) -> str:
    return f"{sum(row.is_right for row in rows) / len(rows):.1%}"


def _plain(code: str) -> str:
    return " ".join(code.split()).rstrip(";")


if __name__ == "__main__":
    typer.run(main)
