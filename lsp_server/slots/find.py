"""Finds the slots of a text: stubs, missing annotations, missing docstrings."""

from collections.abc import Callable, Iterator, Sequence

from lsp_server.documents.store import Snapshot
from lsp_server.slots.annotations import find_annotations
from lsp_server.slots.docstrings import find_docstrings
from lsp_server.slots.queries import has_query
from lsp_server.slots.slot import Slot, SlotKind
from lsp_server.slots.stubs import find_stubs

_FINDERS: dict[SlotKind, Callable[[Snapshot], Sequence[Slot]]] = {
    "stubs": find_stubs,
    "annotations": find_annotations,
    "docstrings": find_docstrings,
}


def knows(language: str, kind: SlotKind) -> bool:
    """Return whether slots of this kind are known in a language."""
    return has_query(language, kind)


def find_slots(snapshot: Snapshot, kind: SlotKind) -> Sequence[Slot]:
    """Return the slots of a text, in their order; none without a grammar, or in a language without queries."""
    return _FINDERS[kind](snapshot)


def within(slots: Sequence[Slot], start: int, end: int) -> Iterator[Slot]:
    """Yield the slots that touch the characters from `start` to `end`."""
    return (slot for slot in slots if slot.start <= end and slot.end >= start)
