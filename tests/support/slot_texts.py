"""Texts with slots, for the tests: a text, and how it reads with «» in place of each slot."""

from lsp_server.documents.store import Snapshot
from lsp_server.slots.find import closed_snapshot, find_slots
from lsp_server.slots.slot import SlotKind


def snapshot_of(text: str, path: str = "/project/app.py") -> Snapshot:
    """Return the parsed text of a file."""
    return closed_snapshot(path, text)


def opened(text: str, kind: SlotKind, path: str = "/project/app.py") -> str:
    """Return the text with «» in place of each slot, and with the type where the file says it: «int», «int?»."""
    snapshot = snapshot_of(text, path)
    result = snapshot.text
    for slot in sorted(find_slots(snapshot, kind), key=lambda slot: -slot.start):
        fill = f"«{slot.known}{'' if slot.is_sure or not slot.known else '?'}»"
        result = result[: slot.start] + slot.before + fill + slot.after + result[slot.end :]
    return result
