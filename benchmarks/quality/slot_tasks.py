"""Files of a corpus with annotations, docstrings or bodies taken out, and what was there."""

import random
from collections.abc import Iterator, Sequence

import attrs
import tree_sitter

from engine.corpus.languages import File
from lsp_server.documents.store import Documents, Snapshot
from lsp_server.slots.docstrings import doc_targets, summary
from lsp_server.slots.functions import functions
from lsp_server.slots.slot import SlotKind, text_of

SHARE = 3
"""One of so many functions loses what it has; the rest of the file shows the style."""
_STUBS = {
    "python": "raise NotImplementedError",
    "typescript": 'throw new Error("not implemented");',
    "javascript": 'throw new Error("not implemented");',
    "go": 'panic("TODO")',
    "rust": "todo!()",
    "java": 'throw new UnsupportedOperationException("TODO");',
    "csharp": "throw new NotImplementedException();",
}


@attrs.frozen
class SlotTask:
    """A file without some of its code. `truths` maps where a slot begins in `text` to the code that was there."""

    path: str
    language: str
    text: str
    truths: dict[int, str]


@attrs.frozen
class _Cut:
    """Take `start` to `end` out and put `instead` there; `truth` was there, and its slot begins at `start` + `at`."""

    start: int
    end: int
    instead: str
    truth: str
    at: int = 0


def snapshot_of(path: str, text: str) -> Snapshot:
    """Return the parsed text of a file."""
    documents = Documents()
    uri = f"file:///project/{path}"
    documents.open(uri, "", 0, text)
    snapshot = documents.snapshot(uri)
    assert snapshot is not None
    return attrs.evolve(snapshot, path=path)


def tasks(files: Sequence[File], language: str, kind: SlotKind, seed: int = 1) -> Iterator[SlotTask]:
    """Yield the files of a language that lose something."""
    for file in sorted((file for file in files if file.language == language), key=lambda file: file.path):
        if "\r" in file.text:
            continue
        snapshot = snapshot_of(file.path, file.text)
        cuts = list(_CUTS[kind](snapshot, random.Random(f"{seed} {file.path}")))
        if cuts:
            text, truths = _cut(file.text, cuts)
            yield SlotTask(file.path, language, text, truths)


def _annotations(snapshot: Snapshot, rng: random.Random) -> Iterator[_Cut]:
    offset, data = snapshot.source.offset_of_byte, snapshot.source.data
    for function in functions(snapshot):
        if rng.randrange(SHARE):
            continue
        for each in function.parameters:
            if each.type is None or not function.takes_types or each.name in ("self", "cls"):
                continue
            start, end = offset(each.node.end_byte), offset(each.type.end_byte)
            if snapshot.text.startswith("?", start):
                start += 1
            if each.value is None:
                yield _Cut(start, end, "", text_of(each.type, data))
            elif snapshot.language.id == "python":
                yield _Cut(start, offset(each.value.start_byte), "=", text_of(each.type, data))
        if function.returns is not None and function.takes_return:
            yield _Cut(
                offset(function.head.end_byte), offset(function.returns.end_byte), "", text_of(function.returns, data)
            )


def _docstrings(snapshot: Snapshot, rng: random.Random) -> Iterator[_Cut]:
    offset = snapshot.source.offset_of_byte
    for target in doc_targets(snapshot):
        # A docstring that is all of a body leaves none.
        if target.doc and not rng.randrange(SHARE) and target.place > target.start + len(target.doc.rstrip().encode()):
            yield _Cut(offset(target.start), offset(target.place), "", summary(target.doc))


def _bodies(snapshot: Snapshot, rng: random.Random) -> Iterator[_Cut]:
    """Yield the bodies of one statement on a line."""
    offset = snapshot.source.offset_of_byte
    stub = _STUBS[snapshot.language.id]
    for node in _walk(snapshot):
        body = node.child_by_field_name("body")
        if body is None or node.child_by_field_name("parameters") is None or rng.randrange(SHARE):
            continue
        statements = [child for child in body.named_children if child.type != "comment"]
        if [child.type for child in statements] == ["statement_list"]:
            statements = statements[0].named_children
        if statements and text_of(statements[0], snapshot.source.data)[:3] in ('"""', "'''"):
            statements = statements[1:]
        if len(statements) != 1 or any("comment" in child.type for child in body.named_children):
            continue
        start, end = offset(statements[0].start_byte), offset(statements[0].end_byte)
        lines = snapshot.source.lines
        own_line = not snapshot.text[lines.start(lines.at(start)) : start].strip()
        truth = snapshot.text[start:end]
        if own_line and "\n" not in truth and len(truth) < 100 and "mplemented" not in truth:
            yield _Cut(start, end, stub, truth)


def _walk(snapshot: Snapshot) -> Iterator[tree_sitter.Node]:
    assert snapshot.tree is not None
    waiting = [snapshot.tree.root_node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.named_children


def _cut(text: str, cuts: Sequence[_Cut]) -> tuple[str, dict[int, str]]:
    parts, truths, position, length = list[str](), dict[int, str](), 0, 0
    for cut in sorted(cuts, key=lambda cut: cut.start):
        if cut.start < position:
            continue
        parts += [text[position : cut.start], cut.instead]
        length += cut.start - position
        truths[length + cut.at] = cut.truth
        length += len(cut.instead)
        position = cut.end
    return "".join([*parts, text[position:]]), truths


_CUTS = {"annotations": _annotations, "docstrings": _docstrings, "stubs": _bodies}
