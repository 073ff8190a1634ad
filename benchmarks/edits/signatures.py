"""How often is the argument right that a call gets for a new parameter?

Run it as `python benchmarks/edits/signatures.py REPOSITORY... --model FILE`, with bare repositories; without a model it
is the embedded one. A parameter is taken out of a function and of all its calls in the file, then put back by hand, and
each call is asked for. No code of a repository is kept. Half of the cases choose the price, the other half reports.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import json
import random
import subprocess
from collections.abc import Iterator
from itertools import islice
from typing import Annotated

import attrs
import typer
from lsprotocol import types

from engine.models.load import load
from engine.protocol.confidence import FREE
from engine.schedule.scheduler import Scheduler
from lsp_server.documents.edits import RecentEdit
from lsp_server.documents.store import Documents, Snapshot
from lsp_server.languages.registry import language_for
from lsp_server.refactor.grammar import is_parameters
from lsp_server.refactor.signatures import ArgumentPlace, signature_change
from lsp_server.refactor.syntax import parse
from lsp_server.requests.arguments import ArgumentPrice, argument_edit, fill_of, opened_at
from lsp_server.settings import Settings
from lsp_server.suggest.pipeline import plan

_ENDINGS = (".py", ".js", ".ts", ".go", ".rs", ".cc", ".php", ".java")
_MOST_CHARACTERS, _MOST_OF_FILE = 30_000, 6


@attrs.frozen
class Case:
    """A call after its function got a parameter again, and the argument that its author wrote."""

    path: str
    parameter: str
    snapshot: Snapshot
    place: ArgumentPlace
    wanted: str


def _edited(path: str, before: str, start: int, end: int, new: str) -> Snapshot:
    """Return the document after a part of its text was replaced by hand."""
    documents, uri = Documents(2.0, lambda _: None), f"file:///project/{path}"
    documents.open(uri, "", 1, before)
    ends = [types.Position(before.count("\n", 0, at), at - before.rfind("\n", 0, at) - 1) for at in (start, end)]
    change = types.TextDocumentContentChangePartial(types.Range(*ends), new)
    documents.change(uri, 2, [change], types.PositionEncodingKind.Utf32)
    snapshot = documents.snapshot(uri)
    assert snapshot is not None
    return snapshot


def _parameters(path: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield each parameter of a text with one of the commas beside it, in characters."""
    syntax = parse(text.encode(), language_for("", path))
    for node in syntax.root.walk() if syntax is not None else ():
        parts = node.parts if is_parameters(node) else []
        for at, one in enumerate(parts):
            start, end = one.start, parts[at + 1].start if at + 1 < len(parts) else one.end
            start = parts[at - 1].end if at and at + 1 == len(parts) else start
            if syntax is not None:
                yield len(syntax.text(0, start)), len(syntax.text(0, end))


def cases_of(path: str, text: str, chance: random.Random) -> Iterator[Case]:
    """Yield calls of a file that pass a parameter which can be taken out and put back: one call a parameter."""
    language, parameters = language_for("", path).id, list(_parameters(path, text))
    for start, end in chance.sample(parameters, min(_MOST_OF_FILE, len(parameters))):
        fewer = text[:start] + text[end:]
        edit = RecentEdit(text, fewer, start, end, start, 1)
        taken = signature_change([edit], language, path)
        if taken is None or taken.is_added or not taken.places:
            continue
        before, wanted, at, removed = fewer, list[str](), start, text[start:end]
        for place in reversed(taken.places):
            argument = fewer[place.start : place.end].strip(" \t\n,")
            wanted.insert(0, argument.removeprefix(f"{taken.parameter}="))
            before = before[: place.start] + before[place.end :]
            at -= place.end - place.start if place.end <= start else 0
        snapshot = _edited(path, before, at, at, removed)
        change = signature_change(snapshot.edits.all, language, path)
        if change is None or len(change.places) != len(wanted) or change.parameter != taken.parameter:
            continue
        place, argument = chance.choice(list(zip(change.places, wanted, strict=True)))
        yield Case(path, change.parameter, snapshot, place, argument)


def _files(repository: Path, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Yield the paths and texts of a repository's files of code in an order of chance."""
    git = ["git", "-C", str(repository)]
    names = subprocess.run([*git, "ls-tree", "-r", "--name-only", "HEAD"], capture_output=True, check=True, text=True)
    paths = names.stdout.splitlines()
    for name in chance.sample(paths, len(paths)):
        if name.endswith(_ENDINGS):
            shown = subprocess.run([*git, "show", f"HEAD:{name}"], capture_output=True, check=True)
            text = shown.stdout.decode("utf-8", "replace")
            if len(text) < _MOST_CHARACTERS and "\r" not in text:
                yield name, text


async def _ask(cases: list[Case], model: str, threads: int) -> list[tuple[str, bool, bool, float]]:
    """Return for each case the text at any price, whether it is right, whether its name is bound, and its mean."""
    loaded = load(model, threads=threads)
    scheduler = Scheduler(loaded)
    await scheduler.start()
    found = list[tuple[str, bool, bool, float]]()
    for case in cases:
        opened, at = opened_at(case.snapshot, case.place)
        asked = plan(opened, at, loaded.info, Settings(gate=FREE), path=case.path)
        filled = await scheduler.submit(fill_of(asked), None).result
        edit = argument_edit(case.snapshot, case.parameter, case.place, filled.candidates[0], ArgumentPrice(0, 0))
        text = edit.text.removeprefix(case.place.before).removesuffix(case.place.after)
        right = "".join(text.split()) == "".join(case.wanted.split())
        found.append((text, right, case.place.is_bound, 0.0 if edit.reason else edit.mean))
    await scheduler.stop()
    return found


def main(
    repositories: list[Path],
    model: Annotated[str, typer.Option()] = "default",
    each: Annotated[int, typer.Option(help="Calls of each repository.")] = 16,
    threads: Annotated[int, typer.Option()] = 2,
    out: Annotated[Path | None, typer.Option(help="Where each outcome goes, as JSON lines.")] = None,
) -> None:
    """Print how many calls there are, and how many arguments are offered and right at some prices."""
    cases, chance = list[Case](), random.Random(51)
    for repository in repositories:
        cases += islice((case for file in _files(repository, chance) for case in cases_of(*file, chance)), each)
    chance.shuffle(cases)
    outcomes = asyncio.run(_ask(cases, model, threads))
    if out is not None:
        rows = zip(cases, outcomes, strict=True)
        out.write_text("".join(json.dumps([one.path, one.parameter, one.wanted, *got]) + "\n" for one, got in rows))
    half = len(outcomes) // 2
    for name, part in (("to choose the price", outcomes[:half]), ("to report", outcomes[half:])):
        typer.echo(f"{name}: {len(part)} calls")
        for price in (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95):
            for kind in (True, False):
                offered = [one for one in part if one[2] is kind and one[3] >= price]
                right = sum(one[1] for one in offered)
                typer.echo(f"  {price:.2f} {'bound' if kind else 'free':5} offered {len(offered):3} right {right:3}")


if __name__ == "__main__":
    typer.run(main)
