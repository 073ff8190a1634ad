"""How often is the argument right that a call gets for a new parameter?

Run it as `python benchmarks/edits/signatures.py REPOSITORY... --model embedded --model FILE`, with bare repositories;
without a model it is the embedded one. A parameter is taken out of a function and of its calls, then put back in the
function: with `--what two` it is two of them, with `--what field` a field of a type. The calls are those of its file,
or with `--elsewhere` those of other files. No code of a repository is kept.
Half of the cases chose the price, the other half reports.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import islice
from typing import Annotated

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
from lsp_server.refactor.code.fields import fields_in
from lsp_server.refactor.code.grammar import is_parameters
from lsp_server.refactor.code.syntax import parse
from lsp_server.refactor.signatures import CallPlace, SignatureChange, calls_left, signature_change
from lsp_server.requests.arguments import ArgumentPrice, argument_edit, fill_of
from lsp_server.settings import Settings
from lsp_server.suggest.pipeline import plan

_ENDINGS = (".py", ".js", ".ts", ".go", ".rs", ".cc", ".php", ".java")
_MOST_CHARACTERS, _MOST_OF_FILE = 30_000, 6
_PATIENCE_S = 10.0
_MOST_SOURCES = 60
"""Files whose functions are tried for calls in others: each is looked for in all files that have its name."""
_Texts = dict[str, str]
"""The texts of a repository's files by path."""


class What(StrEnum):
    """What is taken out and put back."""

    PARAMETER = "parameter"
    TWO = "two"
    FIELD = "field"

    @property
    def changed(self) -> int:
        """How many parameters change at once."""
        return 2 if self == What.TWO else 1


@attrs.frozen
class Case:
    """A call after its function got parameters again, and the arguments that its author wrote, with what is around."""

    path: str
    parameters: tuple[str, ...]
    snapshot: Snapshot
    call: CallPlace
    wanted: str


def _edited(path: str, before: str, at: int, new: str) -> Snapshot:
    """Return the document after a text was put into it by hand."""
    documents, uri = _opened(path, before)
    cursor = types.Position(before.count("\n", 0, at), at - before.rfind("\n", 0, at) - 1)
    change = types.TextDocumentContentChangePartial(types.Range(cursor, cursor), new)
    documents.change(uri, 2, [change], types.PositionEncodingKind.Utf32)
    return _snapshot(documents, uri)


def _opened(path: str, text: str) -> tuple[Documents, str]:
    documents, uri = Documents(_PATIENCE_S, lambda _: None), f"file:///project/{path}"
    documents.open(uri, "", 1, text)
    return documents, uri


def _snapshot(documents: Documents, uri: str) -> Snapshot:
    snapshot = documents.snapshot(uri)
    assert snapshot is not None
    return snapshot


def _spans(path: str, text: str, what: What) -> Iterator[tuple[int, int]]:
    """Yield what can be taken out of a text, in characters: parameters with a comma, or the lines of fields."""
    syntax = parse(data := text.encode(), language_for("", path))
    if syntax is None:
        return
    if what == What.FIELD:
        for one in (part for each in fields_in(syntax) for part in each.listed.children):
            start, stop = data.rfind(b"\n", 0, one.start) + 1, data.find(b"\n", one.end) + 1
            if stop and b"{" not in data[start:stop] and one.kind != ",":
                yield len(data[:start].decode()), len(data[:stop].decode())
        return
    for node in syntax.root.walk():
        parts, count = node.parts if is_parameters(node) else [], what.changed
        for at in range(len(parts) - count + 1):
            is_last = at + count == len(parts)
            start = parts[at - 1].end if at and is_last else parts[at].start
            yield (
                len(data[:start].decode()),
                len(data[: parts[-1].end if is_last else parts[at + count].start].decode()),
            )


@attrs.frozen
class _Taken:
    """The text of a file without the arguments that calls gave for parameters, and what they were."""

    text: str
    arguments: list[str]

    @classmethod
    def of(cls, text: str, change: SignatureChange) -> "_Taken":
        before, arguments = text, list[str]()
        for call in reversed(change.places):
            start, end = call.place.start, call.place.end
            arguments.insert(0, text[start:end])
            before = before[:start] + before[end:]
        return cls(before, arguments)


def _bare(arguments: str, parameters: Sequence[str]) -> str:
    """Return arguments without white space, commas around and the names of their parameters."""
    labels = "|".join(map(re.escape, parameters))
    return "".join(re.sub(rf"\b(?:{labels})(?:=(?!=)|:\s)", "", arguments).split()).strip(",")


def _change(edits: Sequence[RecentEdit], language: str, path: str, what: What) -> SignatureChange | None:
    """Return a change of so many parameters of a function."""
    change = signature_change(edits, language, path)
    form = change.changed.forms[0] if change is not None else None
    return change if form is not None and len(form.added) + len(form.removed) == what.changed else None


def cases_of(path: str, text: str, chance: random.Random, what: What) -> Iterator[Case]:
    """Yield calls of a file that pass a parameter which can be taken out and put back: one call a parameter."""
    language, spans = language_for("", path).id, list(_spans(path, text, what))
    for start, end in chance.sample(spans, min(_MOST_OF_FILE, len(spans))):
        fewer = text[:start] + text[end:]
        gone = _change([RecentEdit(text, fewer, start, end, start, 1)], language, path, what)
        if gone is None or gone.changed.forms[0].added or not gone.places:
            continue
        taken = _Taken.of(fewer, gone)
        at = start - sum(one.place.end - one.place.start for one in gone.places if one.place.end <= start)
        snapshot = _edited(path, taken.text, at, text[start:end])
        change = _change(snapshot.edits.all, language, path, what)
        names = tuple(one.name for one in gone.changed.forms[0].removed)
        if change is None or len(change.places) != len(taken.arguments) or change.places[0].parameters != names:
            continue
        call, arguments = chance.choice(list(zip(change.places, taken.arguments, strict=True)))
        yield Case(path, names, snapshot, call, arguments)


def cases_elsewhere(folder: str, texts: _Texts, path: str, chance: random.Random, what: What) -> Iterator[Case]:
    """Yield calls in other files that pass a parameter of a file: one call a parameter."""
    text, language = texts[path], language_for("", path).id
    spans = list(_spans(path, text, what))
    for start, end in chance.sample(spans, min(_MOST_OF_FILE, len(spans))):
        fewer = text[:start] + text[end:]
        gone = _change([RecentEdit(text, fewer, start, end, start, 1)], language, path, what)
        back = _change(_edited(path, fewer, start, text[start:end]).edits.all, language, path, what)
        if gone is None or gone.changed.forms[0].added or back is None:
            continue
        removed, added = (attrs.evolve(one.changed, what=one.changed.what.located(folder)) for one in (gone, back))
        found = list[Case]()
        for other, code in texts.items():
            if other == path or removed.what.name not in code:
                continue
            left = calls_left(removed, (), code, other)
            taken = _Taken.of(code, left) if left is not None and left.places else None
            change = calls_left(added, (), taken.text, other) if taken is not None else None
            if taken is None or change is None or len(change.places) != len(taken.arguments):
                continue
            snapshot = _snapshot(*_opened(other, taken.text))
            pairs = zip(change.places, taken.arguments, strict=True)
            found += [Case(other, call.parameters, snapshot, call, given) for call, given in pairs]
        yield from [chance.choice(found)] if found else []


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


def _elsewhere(repository: Path, chance: random.Random, what: What) -> Iterator[Case]:
    """Yield cases of a repository whose calls are in other files."""
    with tempfile.TemporaryDirectory() as folder:  # go.mod and Cargo.toml are read there
        packed = subprocess.run(["git", "-C", str(repository), "archive", "HEAD"], capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
        texts = dict(_files(repository, chance))
        for path in islice(texts, _MOST_SOURCES):
            yield from cases_elsewhere(folder, texts, path, chance, what)


@attrs.define
class _Model:
    """A model that fills holes, and keeps what it wrote: the prices ask for the same."""

    name: str
    written: dict[tuple[str, int], Candidate] = attrs.field(factory=dict)

    async def verdicts(self, cases: Sequence[Case], prices: Sequence[ArgumentPrice]) -> list[list[list[bool]]]:
        """Return for each price and case whether the offer is right, in a list that is empty without one."""
        loaded = load(self.name, threads=1)
        scheduler = Scheduler(loaded)
        await scheduler.start()

        async def ask(opened: Snapshot, at: int) -> Candidate:
            if (opened.text, at) not in self.written:
                path = opened.path.removeprefix("/project/")
                asked = plan(opened, at, loaded.info, Settings(gate=FREE), path=path)
                result = await scheduler.submit(fill_of(asked), None).result
                self.written[opened.text, at] = result.candidates[0]
            return self.written[opened.text, at]

        found = list[list[list[bool]]]()
        for price in prices:
            found.append([])
            for case in cases:
                edit = await argument_edit(case.snapshot, case.call, price, ask)
                assert edit is not None
                is_right = _bare(edit.text, case.parameters) == _bare(case.wanted, case.parameters)
                found[-1].append([] if edit.reason else [is_right])
        await scheduler.stop()
        return found


def _own(repository: Path, chance: random.Random, what: What) -> Iterator[Case]:
    """Yield cases of a repository whose calls are in the file of the function."""
    return (case for file in _files(repository, chance) for case in cases_of(*file, chance, what))


def main(
    repositories: list[Path],
    model: Annotated[list[str] | None, typer.Option()] = None,
    each: int = 10,
    elsewhere: bool = False,
    what: What = What.PARAMETER,
) -> None:
    """Print how many arguments are offered and right at some prices, with so many calls of each repository."""
    cases, chance = list[Case](), random.Random(51)
    for repository in repositories:
        cases += islice((_elsewhere if elsewhere else _own)(repository, chance, what), each)
    chance.shuffle(cases)
    prices = [ArgumentPrice(0.8), ArgumentPrice(0.9), ArgumentPrice()]
    half = len(cases) // 2
    for one in model or ["embedded"]:
        verdicts = asyncio.run(_Model(one).verdicts(cases, prices))
        typer.echo(Path(one).name)
        for name, part in (("to choose the price", slice(half)), ("to report", slice(half, None))):
            for price, offers in zip(prices, verdicts, strict=True):
                right = [is_right for offer in offers[part] for is_right in offer]
                counts = f"offered {len(right)}, right {sum(right)}"
                typer.echo(f"{name}: {len(offers[part])} calls, at {price.mean:.2f} {counts}")


if __name__ == "__main__":
    typer.run(main)
