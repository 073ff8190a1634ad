"""A client that changes a document key by key and asks a real midspan-lsp for the next edit."""

import asyncio
import time
from pathlib import Path

import attrs

from engine.cli.lsp_client import LspSession
from engine.protocol import lsp_messages as lsp
from engine.protocol.lsp_messages import Document, Position, Range


@attrs.frozen
class Ask:
    text_document: lsp.VersionedDocument
    position: Position
    any_file: bool = False


@attrs.frozen
class Offered:
    """An edit that the server offers."""

    text: str
    range: Range
    text_document: lsp.VersionedDocument


@attrs.frozen
class Answer:
    edits: list[Offered]


@attrs.frozen
class Change:
    """Replace the characters from `start` to `end` by `text`. The cursor is after it then."""

    start: int
    end: int
    text: str


class NextEditClient:
    """One document at a time."""

    def __init__(self, session: LspSession) -> None:
        self._rpc = session.rpc
        self.text, self._uri, self._version, self._offset = "", "", 0, 0

    async def open(self, path: Path, text: str) -> None:
        """Open a document, in place of the one before."""
        if self._uri:
            await self._rpc.notify("textDocument/didClose", lsp.DidClose(Document(self._uri)))
        self.text, self._uri, self._version, self._offset = text, path.as_uri(), 1, 0
        await self._rpc.notify("textDocument/didOpen", lsp.DidOpen(lsp.DocumentItem(self._uri, "", 1, text)))

    async def change(self, change: Change) -> None:
        """Change the document."""
        place = Range(self._position(change.start), self._position(change.end))
        self._version += 1
        document = lsp.VersionedDocument(self._uri, self._version)
        await self._rpc.notify(
            "textDocument/didChange", lsp.DidChange(document, [lsp.ContentChange(change.text, place)])
        )
        self.text = self.text[: change.start] + change.text + self.text[change.end :]
        self._offset = change.start + len(change.text)

    async def ask(self, patience_s: float | None = None) -> tuple[str | None, float]:
        """Return the text after the edit that is offered, None without one, and the milliseconds until the answer.

        After `patience_s` the user has pressed the next key, and the answer comes too late.
        """
        document = lsp.VersionedDocument(self._uri, self._version)
        began = time.perf_counter()
        params = Ask(document, self._position(self._offset))
        asking = asyncio.ensure_future(self._rpc.request("textDocument/copilotInlineEdit", params, Answer))
        # The next change makes the answer stale, and the next request cancels this one.
        await asyncio.wait({asking}, timeout=patience_s)
        if not asking.done():
            return None, (time.perf_counter() - began) * 1000
        answer = asking.result()
        took = (time.perf_counter() - began) * 1000
        if not answer.edits:
            return None, took
        edit = answer.edits[0]
        start, end = self._at(edit.range.start), self._at(edit.range.end)
        return self.text[:start] + edit.text + self.text[end:], took

    def _position(self, offset: int) -> Position:
        line = self.text.count("\n", 0, offset)
        return Position(line, offset - (self.text.rfind("\n", 0, offset) + 1))

    def _at(self, position: Position) -> int:
        start = 0
        for _ in range(position.line):
            start = self.text.index("\n", start) + 1
        return start + position.character
