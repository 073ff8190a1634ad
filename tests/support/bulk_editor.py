"""An editor that asks for code actions and applies workspace edits, to open documents and to files."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types

from support.lsp_editor import Editor

IN_FILE = "Repeat this edit in this file"
IN_WORKSPACE = "Repeat this edit in the workspace"
RESOLVES = types.CodeActionClientCapabilities(
    code_action_literal_support=types.ClientCodeActionLiteralOptions(types.ClientCodeActionKindOptions([])),
    data_support=True,
    resolve_support=types.ClientCodeActionResolveOptions(["edit"]),
)


_WIDTHS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def offset_of(text: str, position: types.Position, encoding: str = "utf-16") -> int:
    """Return the index of a position, as an editor finds it that counts columns in this encoding."""
    lines = re.findall("[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text)
    before = "".join(lines[: position.line])
    line = lines[position.line] if position.line < len(lines) else ""
    codec, width = _WIDTHS[encoding]
    return len(before) + len(line.encode(codec)[: width * position.character].decode(codec))


def edited(text: str, edits: Sequence[Any], encoding: str = "utf-16") -> str:
    """Return a text after LSP text edits, all for the text as it was."""
    for edit in sorted(edits, key=lambda one: offset_of(text, one.range.start, encoding), reverse=True):
        start, end = (offset_of(text, corner, encoding) for corner in (edit.range.start, edit.range.end))
        text = text[:start] + edit.new_text + text[end:]
    return text


def changes_of(edit: types.WorkspaceEdit | None) -> list[types.TextDocumentEdit]:
    """Return the edits of an edit's documents."""
    assert edit is not None
    changes = edit.document_changes or []
    assert all(isinstance(one, types.TextDocumentEdit) for one in changes)
    return [one for one in changes if isinstance(one, types.TextDocumentEdit)]


class BulkEditor(Editor):
    """Has the capabilities that a test names. `refuse` is why it does not apply edits."""

    def __init__(self) -> None:
        super().__init__()
        self.applied: list[types.ApplyWorkspaceEditParams] = []
        self.refuse: str | None = None
        # lsprotocol takes a code action with a command for a command.
        self.client.protocol._converter.register_structure_hook(types.Command | types.CodeAction, self._item)
        self.client.feature(types.WORKSPACE_APPLY_EDIT)(lambda params: self._apply(params))

    def _apply(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        self.applied.append(params)
        return types.ApplyWorkspaceEditResult(applied=self.refuse is None, failure_reason=self.refuse)

    def _item(self, data: Any, _: object) -> types.Command | types.CodeAction:
        converter = self.client.protocol._converter
        if isinstance(data.get("command"), str):
            return converter.structure(data, types.Command)
        return converter.structure(data, types.CodeAction)

    async def begin(
        self,
        folder: Path,
        *,
        preview: bool = False,
        action: types.CodeActionClientCapabilities | None = RESOLVES,
        edit: types.WorkspaceEditClientCapabilities | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Start the server for a workspace folder; it has no engine."""
        options = {"midspan": {"enabled": False, **(settings or {})}}
        form = types.WorkspaceEditClientCapabilities(document_changes=True) if edit is None else edit
        await self.start(
            options,
            text_document=types.TextDocumentClientCapabilities(code_action=action),
            workspace_edit=form,
            experimental={"midspanPreview": True} if preview else None,
            folders=[folder],
        )

    def show(self, path: Path, language: str = "python") -> None:
        """Open a file with the cursor at its start."""
        self.open("|" + path.read_bytes().decode().removeprefix("\ufeff"), path.as_uri(), language)

    def replace(self, old: str, new: str) -> None:
        """Replace the first `old` of the document, as one change."""
        start = self.text.index(old)
        self.offset = start + len(old)
        self._change(start, new)

    async def actions(
        self,
        at: str = "",
        only: list[str] | None = None,
        trigger: types.CodeActionTriggerKind = types.CodeActionTriggerKind.Invoked,
    ) -> list[Any]:
        """Return the code actions at the first `at`, or at the cursor."""
        position = self.position(self.text.index(at)) if at else self.position()
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(self.uri),
            types.Range(position, position),
            types.CodeActionContext([], list(only) if only is not None else None, trigger),
        )
        return list(await self.client.text_document_code_action_async(params) or [])

    async def action(self, title: str, at: str = "") -> Any:
        """Return the code action whose title begins like this, as soon as it is offered."""
        for _ in range(200):
            for one in await self.actions(at):
                if one.title.startswith(title):
                    return one
        raise AssertionError(f"{title!r} is never offered")

    async def bulk_edit(self, title: str, at: str = "", token: str | None = None) -> Any:
        """Ask for the places of an action that has a preview."""
        item = await self.action(title, at)
        assert item.command.command == "midspan.preview"
        return await self.request("midspan/bulkEdit", {"action": item.command.arguments[0], "workDoneToken": token})

    async def apply(self, number: int, places: Sequence[int]) -> Any:
        """Have places applied by their ids."""
        return await self.request("midspan/applyBulkEdit", {"id": number, "places": list(places)})

    async def request(self, method: str, params: object) -> Any:
        return await self.client.protocol.send_request_async(method, params)  # type: ignore[no-untyped-call]
