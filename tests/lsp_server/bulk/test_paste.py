"""Pasted code, over stdio: offered on its lines, and adapted."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from support.bulk_editor import BulkEditor, changes_of, edited
from support.lsp_editor import eventually

ADAPT = "Adapt the pasted code to this file"
_TEXT = "def load(session, url):\n    first = session.get(url)\n    other = 1\n    return first\n"


@pytest_asyncio.fixture
async def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BulkEditor]:
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / "runtime"))
    editor = BulkEditor()
    (tmp_path / "app.py").write_text(_TEXT)
    await editor.begin(tmp_path)
    editor.show(tmp_path / "app.py")
    yield editor
    await editor.stop()


async def test_pasted_lines_get_the_names_of_the_file(editor: BulkEditor) -> None:
    _paste(editor, "    again = self.client.get(uri)\n    again.close()\n")
    item = await editor.action(ADAPT, "again.close")
    assert ADAPT not in [one.title for one in await editor.actions("def load")]

    resolved = await editor.client.code_action_resolve_async(item)

    (change,) = changes_of(resolved.edit)
    assert edited(editor.text, change.edits) == editor.text.replace("self.client.get(uri)", "session.get(url)")


async def test_pasted_lines_that_leave_a_doubt_are_not_offered(editor: BulkEditor) -> None:
    _paste(editor, "    again = self.client.get(uri, unknown)\n    again.close()\n")
    assert ADAPT not in [one.title for one in await editor.actions("again.close")]


async def test_an_adaptation_that_was_cancelled_is_offered_again(editor: BulkEditor) -> None:
    _paste(editor, "    again = self.client.get(uri)\n    again.close()\n")
    position = {"line": 2, "character": 0}
    action = {"action": "paste", "scope": "selection", "uri": editor.uri, "version": editor.version}
    editor.client.progress_reports["adapting"] = []
    params = {"action": {**action, "range": {"start": position, "end": position}}, "workDoneToken": "adapting"}
    asked = asyncio.create_task(editor.request("midspan/bulkEdit", params))
    await eventually(lambda: editor.client.progress_reports["adapting"])
    editor.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams("adapting"))
    with pytest.raises(JsonRpcException, match="cancelled"):
        await asked

    assert await editor.action(ADAPT, "again.close")


def _paste(editor: BulkEditor, text: str) -> None:
    editor.offset = editor.text.index("    return first")
    editor.type(text)
