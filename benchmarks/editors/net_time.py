"""The time that a person saves with Midspan in a real Neovim: net of reading, against no tool and word completion.

    python benchmarks/editors/net_time.py --corpus FOLDER --places 40

It types code of packages that nobody chose as a person does (net_time_person.py): with nothing, with word completion,
and in Neovim with each gate, at the same places, with the same pauses, typos and moves. Each package is a workspace.
What a key, a glance and a thought cost is added up. Requests and answers are real: what comes later than the person's
pause is not seen, so a busy machine shows less. It needs `make editors`.

`--replay FILE` types at the places of a recording of benchmarks/quality/prices.py, with the same corpus and seed,
through the language server's own plan, gate and restraint, but in no editor. That takes seconds, and is the same on
every machine.

The last columns are the same counts at other paces: a faster and a slower typist, and persons whom a wrong text within
a line costs nothing but reading it, or 4 s besides: 20 keys, as the gate "normal" has it. `least`: in how many of 1,000
draws of the places, with replacement, this took least time.
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
import typer
from rich.console import Console

from benchmarks.common.machine import this_machine
from benchmarks.common.startup import stop_engine
from benchmarks.editors import minutes_neovim
from benchmarks.editors.net_time_figures import NONE, PACE, WORDS, Tallies, net_time_table
from benchmarks.editors.net_time_person import Person, Tally, Tool
from benchmarks.editors.net_time_tools import KEYMAPS, InNeovim, Paper, Replayed, Words
from benchmarks.quality.prices import recorded
from benchmarks.quality.typing_tasks import TypingTask, places
from engine.corpus import corpus
from engine.corpus.languages import File
from engine.errors import MidspanError
from engine.models.load import load
from lsp_server.settings import GATES, Settings

_OUT = Path(__file__).resolve().parents[1] / "out"
_LONGEST_BUDGET_MS = 5000


def main(
    corpus_folder: Annotated[Path, typer.Option("--corpus", help="The folder with judge.msgpack.")],
    count: Annotated[int, typer.Option("--places", help="How many places of three lines, at most.")] = 40,
    gate: Annotated[list[str] | None, typer.Option(help=f"By default {', '.join(GATES)}.")] = None,
    replay: Annotated[
        list[Path] | None, typer.Option(help="A recording of these places; a second one is of the next seed.")
    ] = None,
    model: Annotated[str, typer.Option(help='"embedded", a folder or a GGUF.')] = "embedded",
    language: Annotated[str, typer.Option(help="Of the places.")] = "python",
    seed: Annotated[int, typer.Option(help="Draws the places, and what the person does.")] = 1,
    slower: Annotated[
        float, typer.Option(help="How many times a person's pause an answer may take: 10 for a machine that is busy.")
    ] = 1.0,
    threads: Annotated[int, typer.Option(help="Of the engine: 1 for a machine that is busy; 0: as it chooses.")] = 0,
    seconds: Annotated[float, typer.Option(help="No package is begun after so long.")] = 3600.0,
    out: Annotated[Path, typer.Option(help="The folder for the JSON.")] = _OUT,
) -> None:
    """Print the table and write net-time.json."""
    console, gates = Console(highlight=False), gate or list(GATES)
    if not replay and (reason := minutes_neovim.missing()) is not None:
        typer.echo(f"net_time: {reason}", err=True)
        raise typer.Exit(1)
    try:
        files = corpus.load(corpus_folder, "judge")
        if replay:
            drawn = [places(files, language, count, seed=seed + number) for number in range(len(replay))]
            tallies = replayed(replay, drawn, gates, model, seed)
        else:
            settings = {"model": model, "budgetMs": round(min(slower * Settings().budget_ms, _LONGEST_BUDGET_MS))}
            settings |= {"threads": threads} if threads else {}
            editors = Editors(files, settings, slower, seed, time.monotonic() + seconds)
            tallies = editors.type_all(places(files, language, count, seed=seed), gates)
    except MidspanError as error:
        typer.echo(f"net_time: {error}", err=True)
        raise typer.Exit(1) from None
    machine = this_machine()
    console.print(f"{machine.processor}, {machine.cores} cores, {machine.system}", soft_wrap=True)
    console.print(net_time_table(tallies, language))
    document = {
        "machine": attrs.asdict(machine),
        "tallies": {name: [attrs.asdict(each) for each in done] for name, done in tallies.items()},
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "net-time.json").write_text(json.dumps(document, indent=1), "utf-8")


def replayed(
    recordings: Sequence[Path], drawn: Sequence[Sequence[TypingTask]], gates: Sequence[str], model: str, seed: int
) -> Tallies:
    """Type the tasks of the recordings, one for each draw, with the fills that were recorded."""
    info = load(model, threads=1).info
    fills = [each for file, tasks in zip(recordings, drawn, strict=True) for each in recorded(file, tasks)]
    tools: dict[str, Tool] = {NONE: Paper(), WORDS: Words()}
    tools |= {gate: Replayed(GATES[gate], info, fills) for gate in gates}
    return {name: [Person(task, tool, PACE, seed).write() for task, _ in fills] for name, tool in tools.items()}


@attrs.frozen
class Editors:
    """Neovim with each gate, in a workspace that is one package. No package is begun after `end`."""

    files: Sequence[File]
    settings: dict[str, object]
    slower: float
    seed: int
    end: float

    def type_all(self, tasks: Sequence[TypingTask], gates: Sequence[str]) -> Tallies:
        """Type the tasks, package by package, with one tool after the other. Each gate has an engine of its own."""
        tallies: dict[str, list[Tally]] = {name: [] for name in (NONE, WORDS, *gates)}
        with ExitStack() as stack:
            homes = {each: stack.enter_context(engine(str(self.settings["model"]))) for each in gates}
            for package in dict.fromkeys(map(_package_of, tasks)):
                if time.monotonic() > self.end:
                    break
                for name in tallies:
                    with ExitStack() as opened:
                        tool: Tool = Words() if name == WORDS else Paper()
                        if name in homes:
                            tool = opened.enter_context(self._started(name, homes[name], package))
                        chosen = [task for task in tasks if _package_of(task) == package]
                        tallies[name].extend(Person(task, tool, PACE, self.seed).write() for task in chosen)
                typer.echo(f"{len(tallies[NONE])} places, {os.getloadavg()[0]:.1f} processes at once", err=True)
        return tallies

    @contextmanager
    def _started(self, gate: str, home: Path, package: str) -> Iterator[Tool]:
        project = home / package
        for file in self.files:
            if _package_of(file) == package:
                (project / file.path).parent.mkdir(parents=True, exist_ok=True)
                (project / file.path).write_text(file.text, "utf-8")
        options = {"keymaps": KEYMAPS, "settings": {**self.settings, "gate": gate}}
        _go_to(home)
        with minutes_neovim.started(home / f"{package} editor", project, options) as opened:
            tool = InNeovim(opened, project, self.slower)
            tool.learn()
            yield tool


def _package_of(file: File | TypingTask) -> str:
    return file.path.split("/")[0]


@contextmanager
def engine(model: str) -> Iterator[Path]:
    """Return a new folder for an engine that has learned nothing, and stop that engine at the end."""
    # A language server whose editor is gone may still write what it counted.
    with tempfile.TemporaryDirectory(prefix="midspan-bench-", ignore_cleanup_errors=True) as folder:
        try:
            yield Path(folder)
        finally:
            _go_to(Path(folder))
            asyncio.run(stop_engine(model))


def _go_to(home: Path) -> None:
    """Have what is started from now on use the engine of this folder."""
    os.environ["MIDSPAN_RUNTIME_DIR"] = os.environ["MIDSPAN_DATA_DIR"] = str(home)


if __name__ == "__main__":
    typer.run(main)
