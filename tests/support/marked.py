"""Test documents from text that marks the cursor with "¦"."""

from lsp_server.documents.store import Documents, Snapshot
from lsp_server.hole.hole import Hole, cut_hole

CURSOR = "¦"


def opened(text: str, language: str = "python", path: str = "/project/file") -> Snapshot:
    documents = Documents()
    documents.open(f"file://{path}", language, 0, text)
    snapshot = documents.snapshot(f"file://{path}")
    assert snapshot is not None
    return snapshot


def at_cursor(marked: str, language: str = "python") -> tuple[Snapshot, int]:
    offset = marked.index(CURSOR)
    return opened(marked.replace(CURSOR, "", 1), language), offset


def hole_at(marked: str, language: str = "python") -> Hole:
    return cut_hole(*at_cursor(marked, language))
