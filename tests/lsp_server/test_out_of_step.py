"""Messages with odd numbers, odd bytes and no sense: the server keeps the editor's text, or says that it does not."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from support.bulk_editor import BulkEditor
from support.lsp_editor import Editor, eventually
from support.recording_engine import RecordingEngine

from lsp_server.protocol import MOST_BYTES

URI = "file:///project/a.py"


@pytest_asyncio.fixture
async def editor(engine: RecordingEngine, tiny_model: Path, tmp_path: Path) -> AsyncIterator[BulkEditor]:
    editor = BulkEditor()
    await begin(editor, tiny_model, tmp_path)
    yield editor
    await editor.stop()


async def begin(editor: BulkEditor, model: Path, folder: Path) -> None:
    await editor.begin(folder, settings={"enabled": True, "model": str(model), "threads": 1, "maxTokens": 4})
    await editor.open_ready("|\n")


def change(start: Any, end: Any, text: object, uri: str = URI) -> dict[str, Any]:
    one = {"range": {"start": start, "end": end}, "text": text}
    return {"textDocument": {"uri": uri, "version": 1}, "contentChanges": [one]}


async def text_here(editor: Editor, engine: RecordingEngine) -> str:
    """Return the document as the server has it."""
    await editor.fill()
    return engine.asked[-1].prefix + engine.asked[-1].suffix


async def offered_titles(editor: Editor, end: object) -> list[str]:
    """Return the code actions from the start of the document to `end`, as another extension asks for them."""
    whole = {"start": {"line": 0, "character": 0}, "end": end}
    diagnostic = {"range": {**whole, "end": {"line": 0, "character": 1.8e308}}, "message": "odd", "severity": 99}
    context = {"diagnostics": [diagnostic], "only": ["refactor.rewrite"], "triggerKind": 1}
    params = {"textDocument": {"uri": editor.uri}, "range": whole, "context": context}
    answer = await editor.raw_request("textDocument/codeAction", params)
    return [one["title"] if isinstance(one, dict) else one.title for one in answer or []]


@pytest.mark.parametrize("far", [2**31, 2**32 - 1, 1e300, float("inf")])
async def test_a_selection_to_the_end_of_everything_gets_its_code_actions(editor: Editor, far: float) -> None:
    editor.open("def f(a):\n    pass|\n", URI, "python")
    titles = await offered_titles(editor, {"line": 1, "character": 8})

    assert titles
    assert await offered_titles(editor, {"line": far, "character": far}) == titles
    assert await offered_titles(editor, {"line": 1, "character": far}) == titles


@pytest.mark.parametrize("far", [2**32 - 1, 1e300, float("inf"), 7.0])
async def test_a_change_to_the_end_of_everything_is_applied(
    editor: BulkEditor, engine: RecordingEngine, far: float
) -> None:
    editor.open("a = 1\nb = |\n", URI, "python")
    whole = change({"line": -1, "character": -0.0}, {"line": far, "character": far}, "c = 3\nd = \n")
    whole["contentChanges"][0]["rangeLength"] = far
    editor.raw_notification("textDocument/didChange", whole)

    assert await text_here(editor, engine) == "c = 3\nd = \n"
    assert not editor.warnings()


BROKEN = change("here", {}, "x"), change({"line": 0, "character": 0}, None, 4711)


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_document_that_is_out_of_step_says_so_once_and_heals_at_the_next_open(
    editor: BulkEditor, engine: RecordingEngine, broken: dict[str, Any]
) -> None:
    editor.open("a = |\n", URI, "python")
    for _ in range(3):
        editor.raw_notification("textDocument/didChange", broken)
    editor.type("x")

    with pytest.raises(JsonRpcException, match="is not here as your editor has it"):
        await editor.fill()
    assert await editor.suggest() == []
    assert len(editor.warnings()) == 1
    assert editor.warnings()[0].startswith("Midspan: a.py is left alone: it is not here as your editor has it")

    editor.open("b = |\n", URI, "python")
    assert await text_here(editor, engine) == "b = \n"


async def test_a_document_whose_opening_cannot_be_read_says_so(editor: BulkEditor) -> None:
    item = {"uri": URI, "languageId": "python", "version": 1}
    editor.raw_notification("textDocument/didOpen", {"textDocument": item})

    await eventually(editor.warnings)
    assert "a.py is left alone" in editor.warnings()[0]


async def test_only_the_cell_whose_change_cannot_be_read_is_out_of_step(
    editor: BulkEditor, engine: RecordingEngine
) -> None:
    cells = [types.NotebookCell(types.NotebookCellKind.Code, f"nb:{number}") for number in (1, 2)]
    notebook = types.NotebookDocument("file:///project/n.ipynb", "jupyter-notebook", 1, cells)
    items = [types.TextDocumentItem(cell.document, "python", 1, "a = 1\n") for cell in cells]
    editor.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, items))
    text = {"document": {"uri": "nb:1", "version": 2}, "changes": [{"text": 4711}]}
    identifier = {"uri": notebook.uri, "version": 2}
    params = {"notebookDocument": identifier, "change": {"cells": {"textContent": [text]}}}
    editor.raw_notification("notebookDocument/didChange", params)

    editor.text, editor.offset, editor.uri = "a = 1\n", 0, "nb:2"
    assert (await text_here(editor, engine)).endswith("a = 1\n")
    editor.uri = "nb:1"
    with pytest.raises(JsonRpcException, match="is not here as your editor has it"):
        await editor.fill()


async def test_a_change_that_is_too_large_to_read_puts_its_document_out_of_step(editor: BulkEditor) -> None:
    editor.open("a = |\n", URI, "python")
    start = {"line": 0, "character": 0}
    editor.raw_notification("textDocument/didChange", change(start, start, "x" * MOST_BYTES))

    await eventually(editor.warnings)
    assert "a.py is left alone" in editor.warnings()[0]


@pytest.mark.parametrize("encoding", list(types.PositionEncodingKind))
async def test_each_byte_that_is_not_utf_8_is_one_character(
    engine: RecordingEngine, tiny_model: Path, tmp_path: Path, encoding: types.PositionEncodingKind
) -> None:
    editor = BulkEditor()
    editor.encoding = encoding
    await begin(editor, tiny_model, tmp_path)
    bad = b"\xe9|\xff\xfe|\xe2\x82|\xf0\x9f\x99|\x80"
    text = json.dumps("# ~ d\u00e9j\u00e0 = 1\n", ensure_ascii=False).encode().replace(b"~", bad)
    head = b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": '
    message = b'%b{"uri": "%b", "languageId": "python", "version": 0, "text": %b}}}' % (head, URI.encode(), text)
    assert editor.client._server is not None
    assert editor.client._server.stdin is not None
    editor.client._server.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(message), message))

    editor.uri, editor.version, editor.text = URI, 0, "# ?|??|??|???|? d\u00e9j\u00e0 = 1\n"
    editor.offset = editor.text.index("1")
    editor.type("2")
    assert await text_here(editor, engine) == "# ?|??|??|???|? d\u00e9j\u00e0 = 21\n"
    await editor.stop()


@pytest.mark.parametrize(("name", "text"), [("Neovim", "a\rb\nc = 2\n"), ("Visual Studio Code", "a\rb2\nc = \n")])
async def test_which_lines_an_editor_counts_follows_from_its_name(
    engine: RecordingEngine, tiny_model: Path, tmp_path: Path, name: str, text: str
) -> None:
    editor = BulkEditor()
    editor.name = name
    await begin(editor, tiny_model, tmp_path)
    editor.open("a\rb\nc = |\n", URI, "python")
    place = {"line": 1, "character": 4}
    editor.raw_notification("textDocument/didChange", change(place, place, "2"))

    assert await text_here(editor, engine) == text
    await editor.stop()
