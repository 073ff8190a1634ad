"""The time that a person saves with Midspan in a real Neovim: net of reading, against no tool and word completion.

    python benchmarks/editors/net_time.py --corpus FOLDER --places 40

It types code of packages that nobody chose as a person does (net_time_person.py): with nothing, with word completion,
and in Neovim with each gate, at the same places, with the same pauses, typos and moves. Each package is a workspace.
What a key, a glance and a thought cost is added up. Requests and answers are real: what comes later than the person's
pause is not seen, so a busy machine shows less. It needs `make editors`.

The last columns are the same counts at other paces: a faster and a slower typist, and one whom a wrong text costs
no more than reading it. `least`: in how many of 1,000 draws of the places, with replacement, this took least time.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Annotated

import attrs
import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.common.machine import this_machine
from benchmarks.common.startup import stop_engine
from benchmarks.editors import minutes_neovim
from benchmarks.editors.net_time_person import Pace, Person, Tally, Tool
from benchmarks.editors.net_time_tools import KEYMAPS, InNeovim, Paper, Words
from engine.corpus import corpus
from engine.corpus.languages import File
from engine.errors import MidspanError
from engine.evaluation.keystrokes import TypingTask, places
from lsp_server.settings import GATES, Settings

_OUT = Path(__file__).resolve().parents[1] / "out"
_NONE, _WORDS = "no tool", "word completion"
_PACE = Pace()
_OTHERS = {"0.12 s a key": Pace(key=0.12), "0.28 s a key": Pace(key=0.28), "wrong: read only": Pace(lost=0.0)}
_COUNTED = ("keys", "glances", "accepted", "wrong", "late")
_DRAWS = 1000
_LONGEST_BUDGET_MS = 5000


def main(
    corpus_folder: Annotated[Path, typer.Option("--corpus", help="The folder with judge.msgpack.")],
    count: Annotated[int, typer.Option("--places", help="How many places of three lines, at most.")] = 40,
    gate: Annotated[list[str] | None, typer.Option(help=f"By default {', '.join(GATES)}.")] = None,
    model: Annotated[str, typer.Option(help='"embedded", a folder or a GGUF.')] = "embedded",
    language: Annotated[str, typer.Option(help="Of the places.")] = "python",
    seed: Annotated[int, typer.Option(help="Draws the places, and what the person does.")] = 1,
    slower: Annotated[
        float, typer.Option(help="How many times a person's pause an answer may take: 3 for a machine that is busy.")
    ] = 1.0,
    seconds: Annotated[float, typer.Option(help="No package is begun after so long.")] = 3600.0,
    out: Annotated[Path, typer.Option(help="The folder for the JSON.")] = _OUT,
) -> None:
    """Print the table and write net-time.json."""
    if (reason := minutes_neovim.missing()) is not None:
        typer.echo(f"net_time: {reason}", err=True)
        raise typer.Exit(1)
    console, machine = Console(highlight=False), this_machine()
    try:
        files = corpus.load(corpus_folder, "judge")
    except MidspanError as error:
        typer.echo(f"net_time: {error}", err=True)
        raise typer.Exit(1) from None
    console.print(f"{machine.processor}, {machine.cores} cores, {machine.system}", soft_wrap=True)
    tasks = by_package(places(files, language, count, seed=seed))
    tallies: dict[str, list[Tally]] = {name: [] for name in (_NONE, _WORDS, *(gate or GATES))}
    end = time.monotonic() + seconds
    out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        homes = {each: stack.enter_context(engine(model)) for each in gate or GATES}
        for package, chosen in tasks.items():
            if time.monotonic() > end:
                break
            for name in tallies:
                with ExitStack() as opened:
                    tool = opened.enter_context(tool_of(name, homes, files, package, model, slower))
                    tallies[name].extend(Person(task, tool, _PACE, seed).write() for task in chosen)
            document = {
                "machine": attrs.asdict(machine),
                "tallies": {name: [attrs.asdict(each) for each in done] for name, done in tallies.items()},
            }
            (out / "net-time.json").write_text(json.dumps(document, indent=1), "utf-8")
            console.print(f"{len(tallies[_NONE])} places, {os.getloadavg()[0]:.1f} processes at once", style="dim")
    console.print(net_time_table(tallies, language))


def by_package(tasks: Sequence[TypingTask]) -> dict[str, list[TypingTask]]:
    """Return the tasks of each package."""
    found: dict[str, list[TypingTask]] = {}
    for task in tasks:
        found.setdefault(task.path.split("/")[0], []).append(task)
    return found


@contextmanager
def engine(model: str) -> Iterator[Path]:
    """Return a new folder for an engine that has learned nothing, and stop that engine at the end."""
    with tempfile.TemporaryDirectory(prefix="midspan-bench-") as folder:
        try:
            yield Path(folder)
        finally:
            _go_to(Path(folder))
            asyncio.run(stop_engine(model))


def _go_to(home: Path) -> None:
    """Have what is started from now on use the engine of this folder."""
    os.environ["MIDSPAN_RUNTIME_DIR"] = os.environ["MIDSPAN_DATA_DIR"] = str(home)


@contextmanager
def tool_of(
    name: str, homes: dict[str, Path], files: Sequence[File], package: str, model: str, slower: float
) -> Iterator[Tool]:
    """Give the tool of a row of the table, in a workspace that is this package."""
    if name in homes:
        project = homes[name] / package
        for file in files:
            if file.path.split("/")[0] == package:
                (project / file.path).parent.mkdir(parents=True, exist_ok=True)
                (project / file.path).write_text(file.text, "utf-8")
        budget = min(slower * Settings().budget_ms, _LONGEST_BUDGET_MS)
        options = {"keymaps": KEYMAPS, "settings": {"gate": name, "model": model, "budgetMs": round(budget)}}
        _go_to(homes[name])
        with minutes_neovim.started(homes[name] / f"{package} editor", project, options) as opened:
            tool = InNeovim(opened, project, slower)
            tool.learn()
            yield tool
    else:
        yield Words() if name == _WORDS else Paper()


def net_time_table(tallies: dict[str, list[Tally]], language: str) -> Table:
    """Return a row for each tool."""
    count = len(tallies[_NONE])
    headers = ("", "seconds", "net", "keys", "shown", "accepted", "wrong", "late", "least", *_OTHERS)
    table = Table(*headers, title=f"{language}, {count} places of three lines", box=SIMPLE_HEAD, padding=(0, 0))
    for column in table.columns[1:]:
        column.justify = "right"
    least = _least(tallies)
    for name, done in tallies.items():
        total = [
            sum(getattr(each, field) for each in done) for field in ("keys", "glances", "accepted", "wrong", "late")
        ]
        nets = [f"{_net(tallies, name, pace):+.1%}" for pace in (_PACE, *_OTHERS.values())]
        seconds = sum(each.seconds(_PACE) for each in done)
        table.add_row(name, f"{seconds:.0f}", nets[0], *map(str, total), f"{least[name]:.0%}", *nets[1:])
    return table


def _net(tallies: dict[str, list[Tally]], name: str, pace: Pace) -> float:
    """Return how much more time than with no tool this took, as a share of that."""
    alone, used = (sum(each.seconds(pace) for each in tallies[key]) for key in (_NONE, name))
    return used / alone - 1 if alone else 0.0


def _least(tallies: dict[str, list[Tally]]) -> dict[str, float]:
    """Return for each tool the share of draws of the places in which it took the least time."""
    times = np.array([[each.seconds(_PACE) for each in done] for done in tallies.values()])
    count = times.shape[1]
    drawn = np.random.default_rng(0).integers(0, max(count, 1), (_DRAWS, count))
    fastest = times[:, drawn].sum(axis=2).argmin(axis=0)
    return {name: float((fastest == number).mean()) for number, name in enumerate(tallies)}


if __name__ == "__main__":
    typer.run(main)
