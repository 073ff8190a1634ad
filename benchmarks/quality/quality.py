"""How good is the embedded model? Fills holes of packages that it never saw, solves HumanEval-Infilling, and types.

Run it as `python benchmarks/quality/quality.py --corpus runs/corpus --humaneval A.jsonl.gz --humaneval B.jsonl.gz`;
`--quick` measures a tenth of everything, `--share` any other part. The packages are younger than the model's training
data; `--split held-out` takes the older ones, which our own training leaves out but a converted model may have read.
Code that a model wrote runs only in engine/evaluation/sandbox.py.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import json
import time
from typing import Annotated, Literal

import attrs
import typer

from benchmarks.common.machine import Machine, this_machine
from benchmarks.quality.figures import OTHERS, REST_OF_LINE, Figure, figure_table, figures, typing_table
from benchmarks.quality.suffix import SuffixGain, suffix_gains, suffix_table, without_suffix
from benchmarks.quality.typing_tasks import Inserted, Typing, TypingTask, insertions, places
from benchmarks.quality.typing_ways import MEMORIES, RUNS, WORDS, Typed, insert_all, type_all
from engine.cli.console import PlainConsole
from engine.corpus import corpus
from engine.corpus.corpus import packages
from engine.corpus.languages import MARKUP
from engine.errors import MidspanError
from engine.evaluation import humaneval
from engine.evaluation.calibration import (
    Gate,
    Judged,
    calibration_error,
    gate_for,
    gate_table,
    judged_fills,
)
from engine.evaluation.measure import Workspaces, measure
from engine.evaluation.rows import DENOISE, TWIN, VERIFY, Row, Task, held_out, strategies_of, write_rows
from engine.evaluation.sandbox import isolation
from engine.evaluation.summary import Speed, Summary, calibration_table, fill_tables, speed_table, speeds, summarize
from engine.fill.interface import Model
from engine.fill.strategies import DEFAULT
from engine.fill.stream import StreamModel
from engine.models import load as registry
from engine.protocol.messages import ModelInfo
from lsp_server.settings import Settings

_OUT = Path(__file__).resolve().parents[1] / "out"
Judges = Literal["judge", "held-out"]
_TOGETHER = 4  # More is no faster on one core.
_BLIND_KINDS = ("rest of line", "inside")


@attrs.frozen
class Amount:
    """How many holes, problems and places to measure.

    Holes of each kind in Python and in each `other` language; `blind` ones that are also filled without their suffix;
    `timed` ones of each kind; problems of each set; places to type at; and `insertions` before a word. On one slow core
    a line takes 50 ms on average over the strategies, and several lines take 200 ms.
    """

    rest_of_line: int = 250
    inside: int = 80
    lines: int = 50
    body: int = 20
    other_rest_of_line: int = 40
    other_lines: int = 8
    blind: int = 80
    timed: int = 30
    single: int = 120
    multi: int = 40
    places: int = 30
    other_places: int = 8
    insertions: int = 60
    other_insertions: int = 20

    def part(self, share: float) -> "Amount":
        """Return a share of everything, but at least one."""
        return Amount(*(max(1, round(value * share)) for value in attrs.astuple(self)))


@attrs.frozen
class Measured:
    """All rows: `blind` without their suffix, `timed` with times, `accuracy` the rest, `alone` without the memory.

    typed: by language and way to type (typing_ways.py). inserted: by language. known: the holes whose line another file
    of the package has.
    """

    accuracy: list[Row]
    alone: list[Row]
    blind: list[Row]
    timed: list[Row]
    typed: dict[str, dict[str, Typed]]
    inserted: dict[str, Inserted]
    known: set[tuple[str, str, int]]

    @property
    def suggested(self) -> list[Judged]:
        return self.typed["python"]["workspace"].judged

    @property
    def typing(self) -> dict[str, dict[str, Typing]]:
        return {name: {way: each.typing for way, each in ways.items()} for name, ways in self.typed.items()}

    @property
    def python(self) -> list[Row]:
        return [row for row in self.accuracy if row.language == "python"]


@attrs.frozen
class Quality:
    """Everything that one run measured. `gates` and `gate` are of the suggestions in the typing simulation."""

    machine: Machine
    model: ModelInfo
    split: Judges
    minutes: float
    sandboxed: bool
    figures: list[Figure]
    fills: list[Summary]
    speeds: list[Speed]
    suffix: list[SuffixGain]
    typing: dict[str, dict[str, Typing]]
    inserted: dict[str, Inserted]
    typing_error: float
    gates: list[Gate]
    gate: Gate | None
    holes_error: float
    holes_gate: Gate | None


def main(
    corpus_folder: Annotated[
        Path, typer.Option("--corpus", help="The folder with judge.msgpack or held-out.msgpack.")
    ] = Path("runs/corpus"),
    problems: Annotated[
        list[Path] | None, typer.Option("--humaneval", help="HumanEval-Infilling files (.jsonl.gz).")
    ] = None,
    split: Annotated[Judges, typer.Option(help="The packages whose code is filled and typed.")] = "judge",
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of everything: checks that it runs.")] = False,
    share: Annotated[float, typer.Option(help="The share of everything to measure.")] = 1.0,
    model_name: Annotated[str, typer.Option("--model", help='"embedded", a folder, or a GGUF.')] = "embedded",
    out: Annotated[Path, typer.Option(help="The folder for JSON and rows.")] = _OUT,
) -> None:
    """Measure everything; print tables and the figures, write quality.json and quality.jsonl."""
    console = PlainConsole(highlight=False)
    started = time.monotonic()
    try:
        model, files = registry.load(model_name), corpus.load(corpus_folder, split)
        amount = Amount().part(0.1 if quick else share)
        workspaces = Workspaces.of(model, model_name, files) if isinstance(model, StreamModel) else None
        measured = asyncio.run(_measure(model, workspaces, files, problems or [], amount, console))
    except MidspanError as error:
        typer.echo(f"quality: {error}", err=True)
        raise typer.Exit(1) from None
    quality = _quality(measured, model, split, (time.monotonic() - started) / 60)
    _show(quality, measured, console)
    _write(quality, measured, out)
    console.print(f"wrote quality.json, quality.jsonl and quality-timed.jsonl in {out}", soft_wrap=True)


async def _measure(
    model: Model,
    workspaces: Workspaces | None,
    files: list[corpus.File],
    problems: list[Path],
    amount: Amount,
    console: PlainConsole,
) -> Measured:
    memories = None if workspaces is None else workspaces.memories
    with console.status("filling holes"):
        tasks = in_workspaces(_tasks(files, amount), workspaces)
        accuracy = await measure(model, tasks, strategies_of(model), _TOGETHER, memories)
        of_line = [task for task in tasks if task.hole.kind == REST_OF_LINE]
        alone = await measure(model, of_line, (DEFAULT,), _TOGETHER)
        hidden = [task for kind in _BLIND_KINDS for task in held_out(files, "python", kind, amount.blind)]
        blind = await measure(
            model, without_suffix(in_workspaces(hidden, workspaces)), (DEFAULT, TWIN), _TOGETHER, memories
        )
    with console.status("timing"):
        timed = await measure(
            model,
            in_workspaces(_timed(files, amount), workspaces),
            strategies_of(model, (TWIN, VERIFY, DENOISE)),
            memories=memories,
        )
    with console.status("solving problems"):
        for path in problems:
            chosen = humaneval.draw(humaneval.load(path), amount.single, amount.multi)
            accuracy += await humaneval.solve(model, chosen, strategies_of(model), _TOGETHER, memories)
            alone += await humaneval.solve(model, chosen, (DEFAULT,), _TOGETHER)
    with console.status("typing"):
        counts = {"python": amount.places} | dict.fromkeys(OTHERS, amount.other_places)
        lines = {language: places(files, language, count) for language, count in counts.items()}
        typed = {language: await _type(model, workspaces, tasks) for language, tasks in lines.items() if tasks}
    with console.status("inserting before words"):
        counts = {"python": amount.insertions} | dict.fromkeys(OTHERS, amount.other_insertions)
        spans = {language: insertions(files, language, count) for language, count in counts.items()}
        inserted = {name: await insert_all(model, workspaces, tasks) for name, tasks in spans.items() if tasks}
    return Measured(accuracy, alone, blind, timed, typed, inserted, _known(of_line, files))


def in_workspaces(tasks: list[Task], workspaces: Workspaces | None) -> list[Task]:
    """Return the tasks with the names of their workspaces, which are learned."""
    if workspaces is None:
        return tasks
    return [attrs.evolve(task, workspace=workspaces.name_of(task.hole.path)) for task in tasks]


def _known(tasks: list[Task], files: list[corpus.File]) -> set[tuple[str, str, int]]:
    """Return the holes (Row.hole) whose whole line another file of the same package has."""
    lines = {
        package[0].path: [{line.strip() for line in file.text.split("\n")} for file in package]
        for package in packages(files)
    }
    place = {file.path: (package[0].path, number) for package in packages(files) for number, file in enumerate(package)}
    known = set()
    for task in tasks:
        name, own = place.get(task.hole.path, ("", -1))
        start, rest = task.hole.prefix.rpartition("\n")[2], task.hole.suffix.partition("\n")[0]
        line = (start + task.hole.middle + rest).strip()
        if any(line in of_file for number, of_file in enumerate(lines.get(name, [])) if number != own):
            known.add((task.hole.language, task.hole.kind, task.number))
    return known


def _quality(measured: Measured, model: Model, split: Judges, minutes: float) -> Quality:
    holes = judged_fills(measured.python)
    return Quality(
        machine=this_machine(),
        model=model.info,
        split=split,
        minutes=round(minutes, 2),
        sandboxed=bool(isolation()),
        figures=figures(
            measured.accuracy,
            measured.alone,
            measured.timed,
            measured.blind,
            measured.typing,
            measured.inserted,
            measured.known,
        ),
        fills=summarize(measured.accuracy),
        speeds=[speed for strategy in (DENOISE, VERIFY) for speed in speeds(measured.timed, strategy)],
        suffix=suffix_gains([*measured.accuracy, *measured.blind]),
        typing=measured.typing,
        inserted=measured.inserted,
        typing_error=calibration_error(measured.suggested),
        gates=gate_table(measured.suggested),
        gate=gate_for(measured.suggested),
        holes_error=calibration_error(holes),
        holes_gate=gate_for(holes),
    )


def _write(quality: Quality, measured: Measured, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "quality.json").write_text(json.dumps(attrs.asdict(quality), indent=1) + "\n", "utf-8")
    write_rows([*measured.accuracy, *measured.blind], out / "quality.jsonl")
    write_rows(measured.timed, out / "quality-timed.jsonl")  # Other holes, also numbered from 0.


def _tasks(files: list[corpus.File], amount: Amount) -> list[Task]:
    """Return the tasks of all programming languages: every kind of hole in Python, two kinds in the others.

    The blind ones are among them: equal seeds cut equal holes, only their number differs.
    """
    tasks = [
        *held_out(files, "python", "rest of line", amount.rest_of_line),
        *held_out(files, "python", "inside", amount.inside),
        *held_out(files, "python", "lines", amount.lines),
        *held_out(files, "python", "body", amount.body),
    ]
    for language in sorted({file.language for file in files} - MARKUP - {"python"}):
        tasks += held_out(files, language, "rest of line", amount.other_rest_of_line)
        tasks += held_out(files, language, "lines", amount.other_lines)
    return tasks


def _timed(files: list[corpus.File], amount: Amount) -> list[Task]:
    """Return tasks of all lengths. Their seed differs: the contexts of the other tasks are in the cache already."""
    kinds = ("rest of line", "lines", "body")
    return [task for kind in kinds for task in held_out(files, "python", kind, amount.timed, seed=12)]


async def _type(model: Model, workspaces: Workspaces | None, tasks: list[TypingTask]) -> dict[str, Typed]:
    gate = Settings().gate
    ways = [WORDS, RUNS, *MEMORIES] if workspaces is not None else [WORDS, "model alone"]
    return {way: await type_all(model, workspaces, tasks, way, gate) for way in ways}


def _show(quality: Quality, measured: Measured, console: PlainConsole) -> None:
    for table in fill_tables(quality.fills):
        console.print_whole(table)
    console.print_whole(speed_table(quality.speeds))
    console.print_whole(suffix_table(quality.suffix))
    console.print_whole(
        calibration_table(judged_fills(measured.python), "Confidence, Python, rest of line, as the engine answers")
    )
    console.print_whole(calibration_table(measured.suggested, "Confidence in whole first lines while typing Python"))
    console.print_whole(typing_table(quality.typing))
    if not quality.sandboxed:
        console.print("the kernel allows no namespaces: only the audit hook kept model-written code off the network")
    console.print_whole(figure_table(quality.figures))
    console.print(f"{quality.model.name}, {quality.minutes:.1f} minutes")


if __name__ == "__main__":
    typer.run(main)
