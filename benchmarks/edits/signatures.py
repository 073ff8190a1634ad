"""How often is the argument right that a call gets for a new parameter?

Run it as `python benchmarks/edits/signatures.py REPOSITORY... --model FILE`, with bare repositories; without a model it
is the embedded one. A parameter is taken out of a function and of its calls in the file, then put back in the function.
No code of a repository is kept. Half of the cases choose the price, the other half reports.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import random
import subprocess
from collections.abc import Iterator
from itertools import islice

import attrs
import typer
from lsprotocol import types

from engine.models.load import load
from engine.protocol.confidence import FREE
from engine.protocol.messages import Candidate
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


def _edited(path: str, before: str, at: int, new: str) -> Snapshot:
    """Return the document after a text was put into it by hand."""
    documents, uri = Documents(2.0, lambda _: None), f"file:///project/{path}"
    documents.open(uri, "", 1, before)
    cursor = types.Position(before.count("\n", 0, at), at - before.rfind("\n", 0, at) - 1)
    change = types.TextDocumentContentChangePartial(types.Range(cursor, cursor), new)
    documents.change(uri, 2, [change], types.PositionEncodingKind.Utf32)
    snapshot = documents.snapshot(uri)
    assert snapshot is not None
    return snapshot


def _parameters(path: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield each parameter of a text with one of the commas beside it, in characters."""
    syntax = parse(data := text.encode(), language_for("", path))
    for node in syntax.root.walk() if syntax is not None else ():
        parts = node.parts if is_parameters(node) else []
        for at, one in enumerate(parts):
            start, end = one.start, parts[at + 1].start if at + 1 < len(parts) else one.end
            start = parts[at - 1].end if at and at + 1 == len(parts) else start
            yield len(data[:start].decode()), len(data[:end].decode())


def cases_of(path: str, text: str, chance: random.Random) -> Iterator[Case]:
    """Yield calls of a file that pass a parameter which can be taken out and put back: one call a parameter."""
    language, parameters = language_for("", path).id, list(_parameters(path, text))
    for start, end in chance.sample(parameters, min(_MOST_OF_FILE, len(parameters))):
        fewer = text[:start] + text[end:]
        edit = RecentEdit(text, fewer, start, end, start, 1)
        taken = signature_change([edit], language, path)
        if taken is None or taken.is_added or not taken.places:
            continue
        before, wanted, at = fewer, list[str](), start
        for place in reversed(taken.places):
            argument = fewer[place.start : place.end].strip(" \t\n,")
            wanted.insert(0, argument.removeprefix(f"{taken.parameter}="))
            before = before[: place.start] + before[place.end :]
            at -= place.end - place.start if place.end <= start else 0
        snapshot = _edited(path, before, at, text[start:end])
        change = signature_change(snapshot.edits.all, language, path)
        if change is None or len(change.places) != len(wanted) or change.parameter != taken.parameter:
            continue
        place, argument = chance.choice(list(zip(change.places, wanted, strict=True)))
        yield Case(path, change.parameter, snapshot, place, argument)


def _files(repository: Path, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Yield the paths and texts of a repository's files of code in an order of chance."""
    git = ["git", "-C", str(repository)]
    names = subprocess.run([*git, "ls-tree", "-r", "--name-only", "HEAD"], capture_output=True, check=True, text=True)
    for name in chance.sample(paths := names.stdout.splitlines(), len(paths)):
        if name.endswith(_ENDINGS):
            shown = subprocess.run([*git, "show", f"HEAD:{name}"], capture_output=True, check=True)
            text = shown.stdout.decode("utf-8", "replace")
            if len(text) < _MOST_CHARACTERS and "\r" not in text:
                yield name, text


async def _answers(cases: list[Case], model: str) -> list[Candidate]:
    """Return what a model writes for each case."""
    loaded = load(model, threads=1)
    scheduler = Scheduler(loaded)
    await scheduler.start()
    found = list[Candidate]()
    for case in cases:
        opened, at = opened_at(case.snapshot, case.place)
        asked = plan(opened, at, loaded.info, Settings(gate=FREE), path=case.path)
        found.append((await scheduler.submit(fill_of(asked), None).result).candidates[0])
    await scheduler.stop()
    return found


def _offers(case: Case, answer: Candidate, price: ArgumentPrice) -> list[bool]:
    """Return whether the offer is right, in a list that is empty without one."""
    edit = argument_edit(case.snapshot, case.parameter, case.place, answer, price)
    text = edit.text.removeprefix(case.place.before).removesuffix(case.place.after)
    return [] if edit.reason else ["".join(text.split()) == "".join(case.wanted.split())]


def main(repositories: list[Path], model: str = "embedded", each: int = 10) -> None:
    """Print how many arguments are offered and right at some prices, with so many calls of each repository."""
    cases, chance = list[Case](), random.Random(51)
    for repository in repositories:
        cases += islice((case for file in _files(repository, chance) for case in cases_of(*file, chance)), each)
    chance.shuffle(cases)
    answered = list(zip(cases, asyncio.run(_answers(cases, model)), strict=True))
    half = len(answered) // 2
    for name, part in (("to choose the price", answered[:half]), ("to report", answered[half:])):
        for price in (0.8, 0.9, ArgumentPrice().mean):
            offers = [one for case, answer in part for one in _offers(case, answer, ArgumentPrice(price))]
            typer.echo(f"{name}: {len(part)} calls, at {price:.2f} offered {len(offers)}, right {sum(offers)}")


if __name__ == "__main__":
    typer.run(main)
