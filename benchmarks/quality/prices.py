"""What other prices would show: the fill of each key is recorded once, and typed again at any price in seconds.

`python benchmarks/quality/prices.py --corpus FOLDER --record FILE --seconds 1200` asks at each key of the tasks, with
nothing accepted. `python benchmarks/quality/prices.py --corpus FOLDER --replay FILE --price 15,3,1 --price 20,2,1`
types the same tasks with what was recorded, through the language server's own plan, gate, reuse and restraint. A price
is what a wrong suggestion, a glance, and a glance at the rest of a begun name cost, in keys. The model's doubt makes
the first one dearer, as in an editor.

The engine ends a fill early by the default price, so a replay at a much lower one shows a little less than it would.
Choose on one corpus, and report on another.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.quality.figures import typing_cells, typing_columns
from benchmarks.quality.suggester import Suggester
from benchmarks.quality.typing_tasks import TypingTask, places, tally, type_place
from engine.corpus import corpus
from engine.errors import MidspanError
from engine.evaluation.keystrokes import next_key
from engine.evaluation.measure import Workspaces
from engine.models.load import load
from engine.protocol.confidence import Price
from engine.protocol.framing import pack, unpack_all
from engine.protocol.messages import Fill, Filled, ModelInfo
from engine.schedule.scheduler import Scheduler
from lsp_server.settings import DEFAULT_GATE, Settings
from lsp_server.suggest.restraint import DOUBT, Restraint

_MOST = 1_000_000
"""Frames of a recording."""


class Recorded(Suggester):
    """A suggester for whom each fill is what was recorded at its key. `fills`: by the characters typed."""

    def __init__(self, fills: dict[int, Filled], model: ModelInfo, task: TypingTask, settings: Settings) -> None:
        super().__init__(None, model, task, settings, restraint=Restraint(DOUBT))
        self._fills = fills

    async def _filled(self, fill: Fill) -> Filled:
        return self._fills[self._typed]


def keys_of(task: TypingTask) -> Iterator[int]:
    """Yield how many characters are typed before each key of a task."""
    typed = 0
    while typed < len(task.text):
        yield typed
        typed += len(next_key(task.text[typed:]))


async def record(
    scheduler: Scheduler,
    model: ModelInfo,
    tasks: Sequence[tuple[TypingTask, str]],
    file: Path,
    seconds: float,
    settings: Settings | None = None,
) -> int:
    """Write the fill of each key of the tasks, each with its workspace, as frames. Returns how many tasks it wrote.

    It ends after the task in which `seconds` are over.
    """
    end, count = time.monotonic() + seconds, 0
    await scheduler.start()
    with file.open("wb") as written:
        for task, workspace in tasks:
            suggester = Suggester(scheduler, model, task, settings or Settings(), workspace)
            for typed in keys_of(task):
                written.write(pack(await suggester.fill_at(typed)))
            written.flush()
            count += 1
            if time.monotonic() > end:
                break
    await scheduler.stop()
    return count


def recorded(file: Path, tasks: Sequence[TypingTask]) -> list[tuple[TypingTask, dict[int, Filled]]]:
    """Return the tasks that a file has whole, each with its fills by the characters typed before."""
    fills = iter(each for each in unpack_all(file.read_bytes(), _MOST) if isinstance(each, Filled))
    found = [(task, dict(zip(keys_of(task), fills, strict=False))) for task in tasks]
    return [(task, filled) for task, filled in found if len(filled) == len(list(keys_of(task)))]


def main(
    corpus_folder: Annotated[Path, typer.Option("--corpus", help="The folder with judge.msgpack.")],
    record_to: Annotated[Path | None, typer.Option("--record", help="Write the fills of each key here.")] = None,
    replay: Annotated[Path | None, typer.Option(help="Type with the fills of this recording.")] = None,
    price: Annotated[list[str] | None, typer.Option(help="WRONG,GLANCE,NAME in keys; repeatable.")] = None,
    model_name: Annotated[str, typer.Option("--model", help='"embedded", a folder or a GGUF.')] = "embedded",
    language: Annotated[str, typer.Option(help="Of the tasks.")] = "python",
    count: Annotated[int, typer.Option(help="Tasks of three lines, at most.")] = 80,
    seed: Annotated[int, typer.Option(help="Draws the tasks: the same for a recording and its replays.")] = 1,
    seconds: Annotated[float, typer.Option(help="How long to record.")] = 1200.0,
) -> None:
    """Record the fills of a corpus, or print what other prices would have shown of a recording."""
    try:
        model, files = load(model_name, threads=1), corpus.load(corpus_folder, "judge")
        tasks = places(files, language, count, seed=seed)
        if record_to is not None:
            workspaces = Workspaces.of(model, model_name, files)
            named = [(task, workspaces.name_of(task.path)) for task in tasks]
            scheduler = Scheduler(model, memories=workspaces.memories)
            print(f"{asyncio.run(record(scheduler, model.info, named, record_to, seconds))} tasks in {record_to}")
        if replay is not None:
            typed = recorded(replay, tasks)
            table = Table("wrong, glance, name", *typing_columns(), title=f"{len(typed)} tasks")
            for each in [DEFAULT_GATE, *map(_price, price or [])]:
                settings = Settings(gate=each)
                sessions = [
                    asyncio.run(type_place(task, Recorded(fills, model.info, task, settings))) for task, fills in typed
                ]
                numbers = f"{each.wrong:g}, {each.glance:g}, {each.name:g}"
                table.add_row(numbers, *typing_cells(tally(sessions)))
            Console(highlight=False).print(table)
    except MidspanError as error:
        typer.echo(f"prices: {error}", err=True)
        raise typer.Exit(1) from None


def _price(text: str) -> Price:
    wrong, glance, name = map(float, text.split(","))
    return Price(wrong, glance, name=name)


if __name__ == "__main__":
    typer.run(main)
