"""An editor that makes edits by hand, asks for the next one and takes it, as Copilot's clients do."""

from typing import Any

from lsprotocol import types

from support.lsp_editor import Editor

NEXT_EDIT = "textDocument/copilotInlineEdit"


class NextEditEditor(Editor):
    """Edits its document, and asks for what comes next."""

    def replace(self, old: str, new: str) -> None:
        """Replace the first `old` by hand, and leave the cursor there."""
        start = self.text.index(old)
        self.change(start, start + len(old), new)

    def change(self, start: int, end: int, new: str) -> None:
        """Replace the characters from `start` to `end`."""
        self.offset = end
        self._change(start, new)

    async def next_edit(self, *, any_file: bool = False) -> Any:
        """Return the edit that is offered, or None."""
        position = {"line": self.position().line, "character": self.position().character}
        document = {"uri": self.uri, "version": self.version}
        # triggerKind is what sidekick.nvim sends.
        params = {"textDocument": document, "position": position, "context": {"triggerKind": 2}}
        if any_file:
            params["anyFile"] = True
        answer = await self.client.protocol.send_request_async(NEXT_EDIT, params)  # type: ignore[no-untyped-call]
        assert len(answer.edits) <= 1
        return answer.edits[0] if answer.edits else None

    def take(self, edit: Any) -> None:
        """Make an edit of this document."""
        assert (edit.textDocument.uri, edit.textDocument.version) == (self.uri, self.version)
        self.change(self._offset(edit.range.start), self._offset(edit.range.end), edit.text)

    async def accept(self, edit: Any) -> None:
        """Make an edit of this document, and tell the server."""
        self.raw_notification("textDocument/didShowInlineEdit", {"item": {"command": {"command": "x", "title": ""}}})
        self.take(edit)
        await self.command(edit.command.command, *edit.command.arguments)

    def line(self, edit: Any) -> str:
        """Return the line that an edit would make, without its white space around."""
        start, end = self._offset(edit.range.start), self._offset(edit.range.end)
        after: str = self.text[:start] + edit.text + self.text[end:]
        return after[after.rfind("\n", 0, start) + 1 :].partition("\n")[0].strip()

    def show(self, text: str, uri: str, language: str = "python") -> None:
        """Open a document with the cursor at its start."""
        self.open(f"|{text}", uri, language)

    def _offset(self, position: types.Position) -> int:
        lines = self.text.splitlines(keepends=True)
        before, line = sum(map(len, lines[: position.line])), (lines[position.line :] or [""])[0]
        units = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[self.encoding.value]
        width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[self.encoding.value]
        return before + len(line.encode(units)[: width * position.character].decode(units))
