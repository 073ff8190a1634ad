"""Is the next edit silent while nothing is repeated, and there at once when something is?

Run it as `python benchmarks/refactor/next_edit.py --corpus runs/small/corpus`. A real midspan-lsp is asked after each
key of simulated sessions in held-out files (editing.py), and after one or two places of each edit of
benchmarks/refactor/edits were edited by hand. Then each offer is taken: a chain of offers is right if it ends with the
expected text, to the character, whatever places it left out.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import itertools
import math
import os
import random
import statistics
import tempfile
from collections import Counter
from typing import Annotated

import attrs
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.common.startup import stop_engine
from benchmarks.refactor.editing import Writer
from benchmarks.refactor.next_edit_client import Change, NextEditClient
from benchmarks.refactor.refactor_edits import Edit, read_edits
from engine.cli.lsp_client import LspSession
from engine.corpus import corpus
from engine.corpus.languages import File
from engine.protocol.rewrite import changed_part

LANGUAGES = {"python": ".py", "typescript": ".ts", "go": ".go"}
_LINES = range(60, 1_000)
_KEY_MEDIAN, _KEY_SPREAD = math.log(0.13), 0.5
"""The seconds between two keys: half of them are shorter than 0.13, 80 % between 0.07 and 0.25."""


@attrs.define
class Moments:
    """Counts by what the user did: all moments, and those with an offer."""

    all: Counter[str] = attrs.field(factory=Counter)
    offered: Counter[str] = attrs.field(factory=Counter)

    def note(self, kind: str, is_offered: bool) -> None:
        """Count a moment."""
        self.all[kind] += 1
        self.offered[kind] += is_offered

    def cells(self, kind: str) -> list[str]:
        """Return the number of moments and the share of silent ones. "all" adds all kinds up."""
        count, offered = (one.total() if kind == "all" else one[kind] for one in (self.all, self.offered))
        return [f"{count:,}", f"{1 - offered / count:.1%}"]


@attrs.define
class Silence:
    """What sessions without repetition were offered: after each key, and at the end of each action."""

    keys: Moments = attrs.field(factory=Moments)
    pauses: Moments = attrs.field(factory=Moments)
    ms: list[float] = attrs.field(factory=list)
    offers: list[str] = attrs.field(factory=list)

    def table(self, title: str) -> Table:
        """Return the shares of silent moments."""
        table = Table("what the user does", "keys", "silent", "pauses", "silent", box=SIMPLE_HEAD, title=title)
        for kind in [*self.keys.all, "all"]:
            table.add_row(kind, *self.keys.cells(kind), *self.pauses.cells(kind))
        return table


@attrs.frozen
class Repeated:
    """What became of an edit that was begun by hand: "right", "wrong" or "none" offered, and places that were done."""

    name: str
    outcome: str
    done: int
    left: int
    ms: float


async def edit_without_repetition(
    client: NextEditClient, folder: Path, file: File, count: int, silence: Silence
) -> None:
    """Do some actions in a file, and ask after each key."""
    writer, rhythm = Writer(file, folder.name), random.Random(folder.name)
    await client.open(folder / f"file{LANGUAGES[file.language]}", writer.text)
    for action in writer.actions(count):
        offered = None
        for number, change in enumerate(action.changes, 1):
            await client.change(change)
            # Keys come by the rhythm of a fast typist; after the last one the user pauses.
            patience = None if number == len(action.changes) else rhythm.lognormvariate(_KEY_MEDIAN, _KEY_SPREAD)
            offered, ms = await client.ask(patience)
            silence.keys.note(action.kind, offered is not None)
            silence.ms.append(ms)
        silence.pauses.note(action.kind, offered is not None)
        if offered is not None:
            start, end, new_end = changed_part(client.text, offered)
            line = client.text.rfind("\n", 0, change.start) + 1
            now = client.text[line : client.text.find("\n", change.start)].strip()
            edit = f"{client.text[start:end]!r} → {offered[start:new_end]!r}"
            silence.offers.append(f"{folder.name} {action.kind}: {now!r} offers {edit}")


async def begin_by_hand(client: NextEditClient, folder: Path, edit: Edit, places: list[int]) -> Repeated:
    """Edit some places by hand, key by key, ask for the next and take all that is offered."""
    # A new import is written first; that an import is not needed any more is seen last.
    added = {index for index, site in enumerate(edit.sites) if site.is_import and site.start == site.end}
    await client.open(folder / edit.name, edit.before)
    answer, ms = None, 0.0
    for sites in ([added] if added else []) + [{*added, *places[: index + 1]} for index in range(len(places))]:
        answer, ms = await _write(client, edit.with_sites(sites))
    is_offered, taken = answer is not None, 0
    while answer is not None and taken <= len(edit.sites):
        start, end, new_end = changed_part(client.text, answer)
        await client.change(Change(start, end, answer[start:new_end]))
        answer, _ = await client.ask()
        taken += 1
    done = _sites_of(edit, client.text)
    outcome = "none" if not is_offered else "right" if done is not None else "wrong"
    count = len(set(done or ()) & set(edit.places)) - len(places) if is_offered else 0
    return Repeated(edit.name, outcome, count, len(edit.places) - len(places), ms)


async def _write(client: NextEditClient, text: str) -> tuple[str | None, float]:
    """Change the document to a text, key by key. Returns the last answer, with its milliseconds."""
    start, end, new_end = changed_part(client.text, text)
    keys = [Change(start, end, "")] if end > start else []
    keys += [Change(index, index, text[index]) for index in range(start, new_end)]
    answer, ms = None, 0.0
    for key in keys:
        await client.change(key)
        answer, ms = await client.ask()
    return answer, ms


def _sites_of(edit: Edit, text: str) -> tuple[int, ...] | None:
    """Return the sites with which the text before the edit becomes this one, to the character."""
    sites = range(len(edit.sites))
    subsets = itertools.chain.from_iterable(itertools.combinations(sites, count) for count in range(len(sites), -1, -1))
    return next((one for one in subsets if edit.with_sites(set(one)) == text), None)


@attrs.frozen
class Measurement:
    """A real server, and how much is measured."""

    folder: Path
    seed: int
    console: Console
    verbose: bool

    async def silence(self, corpus_folder: Path, sessions: int, actions: int) -> None:
        """Print how often nothing is offered while nothing is repeated."""
        draw, silence = random.Random(self.seed), Silence()
        files = corpus.load(corpus_folder, "held-out")
        chosen: list[File] = []
        for language in LANGUAGES:
            fit = [one for one in files if one.language == language and one.text.count("\n") in _LINES]
            chosen += draw.sample(fit, min(len(fit), -(-sessions // len(LANGUAGES))))
        async with LspSession("embedded", workspace=self.folder) as session:
            client = NextEditClient(session)
            for number, file in enumerate(chosen):
                folder = self.folder / f"{self.seed}-{number}"
                await edit_without_repetition(client, folder, file, actions, silence)
        for line in silence.offers if self.verbose else ():
            self.console.print(line, soft_wrap=True)
        self.console.print(silence.table(f"{len(chosen)} sessions without repetition"), _times("answers", silence.ms))

    async def repetition(self, examples: int, draws: int) -> None:
        """Print how often the other places of an edit are offered after `examples` were done by hand."""
        draw = random.Random(self.seed)
        results: list[Repeated] = []
        async with LspSession("embedded", workspace=self.folder) as session:
            client = NextEditClient(session)
            for number, edit in enumerate(edit for edit in read_edits() for _ in range(draws)):
                places = draw.sample(edit.places, min(examples, len(edit.places) - 1))
                results.append(await begin_by_hand(client, self.folder / f"{examples}-{number}", edit, places))
        outcomes = Counter(one.outcome for one in results)
        shares = ", ".join(f"{name} {outcomes[name] / len(results):.1%}" for name in ("right", "wrong", "none"))
        done = f"{sum(one.done for one in results)} of {sum(one.left for one in results)} other places"
        for one in results:
            if self.verbose and one.outcome != "right":
                self.console.print(one)
        self.console.print(f"{len(results)} edits begun by hand, {examples} places: {shares}; {done} done")
        self.console.print(
            _times("from the last key to a right offer", [o.ms for o in results if o.outcome == "right"])
        )


def _times(what: str, ms: list[float]) -> str:
    cuts = statistics.quantiles(ms, n=20) if len(ms) > 1 else [0.0] * 19
    return f"{what}: p50 {cuts[9]:.0f} ms, p95 {cuts[18]:.0f} ms"


def main(
    corpus_folder: Annotated[Path, typer.Option("--corpus", help="The folder with held-out.msgpack.")] = Path(
        "runs/small/corpus"
    ),
    sessions: Annotated[int, typer.Option(help="Sessions without repetition.")] = 60,
    actions: Annotated[int, typer.Option(help="Actions of a session.")] = 10,
    draws: Annotated[int, typer.Option(help="Draws of first places for each edit of benchmarks/refactor/edits.")] = 2,
    seed: int = 1,
    verbose: Annotated[bool, typer.Option(help="Print what was offered without need, and what was not.")] = False,
) -> None:
    """Measure silence, exactness and speed."""
    with tempfile.TemporaryDirectory(prefix="midspan-bench-") as name:
        os.environ["MIDSPAN_RUNTIME_DIR"] = os.environ["MIDSPAN_DATA_DIR"] = name
        measurement = Measurement(Path(name).resolve(), seed, Console(highlight=False, width=110), verbose)
        if sessions:
            asyncio.run(measurement.silence(corpus_folder, sessions, actions))
        for examples in (1, 2) if draws else ():
            asyncio.run(measurement.repetition(examples, draws))
        asyncio.run(stop_engine("embedded"))


if __name__ == "__main__":
    typer.run(main)
