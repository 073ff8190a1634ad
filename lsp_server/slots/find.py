"""Finds the slots of a text, of each kind, and those that its file wants filled."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.reading import read_text
from lsp_server.documents.store import Documents, Snapshot
from lsp_server.refactor.search import Target, is_generated
from lsp_server.slots.annotations import annotates, find_annotations, find_bare_annotations
from lsp_server.slots.docstrings import find_docstrings
from lsp_server.slots.slot import Slot, SlotKind
from lsp_server.slots.stubs import find_stubs

_MAY_ANNOTATE = re.compile(r"->|\)\s*:\s*\w|[(,]\s*\w+\??\s*:\s*\w")
_SIBLINGS = 20
"""Files of a folder that are looked at for annotations."""

_FINDERS: dict[SlotKind, Callable[[Snapshot], Sequence[Slot]]] = {
    "stubs": find_stubs,
    "annotations": find_annotations,
    "docstrings": find_docstrings,
}


def find_slots(snapshot: Snapshot, kind: SlotKind) -> Sequence[Slot]:
    """Return the slots of a text, in their order; none without a grammar, or in a language without queries."""
    try:
        return _FINDERS[kind](snapshot)
    except RecursionError:  # generated code can be nested deeper than Python's stack
        return []


def find_bare_slots(snapshot: Snapshot, kind: SlotKind) -> Sequence[Slot]:
    """Return the slots of a text as `find_slots` does, but without what the file says of them: to count them."""
    return find_bare_annotations(snapshot) if kind == "annotations" else find_slots(snapshot, kind)


def touching(snapshot: Snapshot, slots: Sequence[Slot], lines: range) -> list[Slot]:
    """Return the slots on these lines. A body and a docstring are also touched by the line above them."""
    of = snapshot.source.lines.at
    found: list[Slot] = []
    for slot in slots:
        first = of(slot.start) - (slot.shape in ("body", "docstring"))
        if first <= lines[-1] and lines[0] <= of(slot.end):
            found.append(slot)
    return found


def in_style(snapshot: Snapshot, slots: Sequence[Slot], kind: SlotKind) -> list[Slot]:
    """Return the slots that the file wants filled: it has annotations, or its folder has; it has such docstrings.

    Reads the disk, so call it in a thread.
    """
    if kind == "annotations" and slots and not slots[0].in_style and _folder_annotates(snapshot):
        return list(slots)
    return [slot for slot in slots if slot.in_style]


def closed_snapshot(full: str, text: str) -> Snapshot:
    """Return the parsed text of a file that is not open."""
    documents, uri = Documents(), Path(full).as_uri()
    documents.open(uri, "", 0, text)
    snapshot = documents.snapshot(uri)
    assert snapshot is not None
    return snapshot


def read_slots(target: Target, kind: SlotKind) -> tuple[Snapshot, list[Slot]] | None:
    """Return a file of a language with such slots, parsed, and the slots that it wants filled.

    None for a generated file, and for one that cannot be read. Reads the disk.
    """
    text = target.text if target.text is not None else read_text(target.folder, target.path)
    if text is None or is_generated(text):
        return None
    snapshot = closed_snapshot(target.full, text)
    return snapshot, in_style(snapshot, find_slots(snapshot, kind), kind)


def _folder_annotates(snapshot: Snapshot) -> bool:
    folder, extensions = Path(snapshot.path).parent, snapshot.language.extensions
    try:
        names = sorted(path.name for path in folder.iterdir() if path.suffix in extensions)[:_SIBLINGS]
    except OSError:
        return False
    real = str(folder.resolve())
    for name in names:
        text = read_text(real, name)
        if text is not None and _MAY_ANNOTATE.search(text) and annotates(closed_snapshot(str(Path(real, name)), text)):
            return True
    return False
