"""A search that is cancelled ends at once, with its processes, and changes nothing."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from support.bulk_editor import IN_WORKSPACE, BulkEditor
from support.lsp_editor import eventually
from support.processes import children

LONG = "import http\n\n" + "http.get(two, [x for x in range(3)])\n" * 4000
"""A file whose search takes seconds."""


def long_project(folder: Path) -> Path:
    """Write files whose search takes long."""
    folder.mkdir()
    (folder / "app.py").write_text("import http\n\nhttp.get(one, 1)\n")
    for index in range(40):
        (folder / f"long{index}.py").write_text(LONG)
    return folder


def edit_first(editor: BulkEditor, folder: Path) -> None:
    """Make the edit that is searched for."""
    editor.show(folder / "app.py")
    editor.replace("get(one, 1)", "get(one, 1, timeout=10)")


@pytest_asyncio.fixture
async def searching(editor: BulkEditor, tmp_path: Path) -> AsyncIterator["asyncio.Task[Any]"]:
    """Yield a request that searches for long."""
    folder = long_project(tmp_path / "project")
    await editor.begin(folder, preview=True)
    editor.client.progress_reports["searching"] = []
    edit_first(editor, folder)
    asked = asyncio.create_task(editor.bulk_edit(IN_WORKSPACE, token="searching"))
    await eventually(lambda: len(search_processes(editor)) == 2)
    yield asked
    await eventually(lambda: not search_processes(editor))


def search_processes(editor: BulkEditor) -> list[psutil.Process]:
    """Return the processes of the search: those that give way to others."""
    own = psutil.Process(editor.pid).nice()
    return children(editor.pid, lambda child: child.nice() > own)


async def test_the_progress_bar_cancels_a_search(editor: BulkEditor, searching: "asyncio.Task[Any]") -> None:
    editor.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams("searching"))

    with pytest.raises(JsonRpcException, match="cancelled"):
        await searching
    reports: list[Any] = editor.client.progress_reports["searching"]
    assert (reports[0].kind, reports[-1].kind) == ("begin", "end")


async def test_the_request_itself_can_be_cancelled(editor: BulkEditor, searching: "asyncio.Task[Any]") -> None:
    (number,) = (key for key in editor.client.protocol._request_futures if key != "raw")
    editor.client.cancel_request(types.CancelParams(number))

    with pytest.raises(JsonRpcException):
        await searching
    assert editor.applied == []


async def test_the_server_answers_while_it_searches(editor: BulkEditor, searching: "asyncio.Task[Any]") -> None:

    assert await editor.actions() != []
    assert not searching.done()
    editor.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams("searching"))
    with pytest.raises(JsonRpcException):
        await searching


async def test_a_search_process_that_dies_is_told(editor: BulkEditor, searching: "asyncio.Task[Any]") -> None:
    search_processes(editor)[0].kill()

    with pytest.raises(JsonRpcException, match="the process that did this ended; try again"):
        await searching
    assert editor.applied == []


async def test_an_editor_that_resolves_has_a_progress_bar_too(editor: BulkEditor, tmp_path: Path) -> None:
    folder = long_project(tmp_path / "project")
    await editor.begin(folder)
    edit_first(editor, folder)
    item = await editor.action(IN_WORKSPACE)
    resolving = asyncio.create_task(editor.client.code_action_resolve_async(item))
    reports: dict[Any, Any] = editor.client.progress_reports
    await eventually(lambda: [token for token in reports if reports[token]])

    (token,) = (token for token in reports if reports[token])
    assert reports[token][0].title == "Midspan: finding places"
    editor.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
    with pytest.raises(JsonRpcException, match="cancelled"):
        await resolving
    await eventually(lambda: not search_processes(editor))
