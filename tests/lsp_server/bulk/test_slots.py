"""The actions that fill slots, over stdio. A real server in a model's place writes the text."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from support.bulk_editor import BulkEditor, changes_of, edited
from support.lsp_editor import engine_home, eventually
from support.remote_server import ModelServer, hangs
from support.scripted_model import Written, writes

from engine.client.address import runtime_paths_of
from engine.client.lock import read_record

BODY: Written = [("return", 0.99), (" 1", 0.98)]
STUBS = "def f():\n    pass\n\n\ndef g():\n    raise NotImplementedError\n\n\nprint(3)\n"


@pytest.fixture
def server(server: ModelServer) -> ModelServer:
    server.behaviour = writes(BODY)
    return server


@pytest_asyncio.fixture
async def editor(server: ModelServer, tmp_path: Path) -> AsyncIterator[BulkEditor]:
    with engine_home(tmp_path / "runtime", server.model("openai")):
        editor = BulkEditor()
        yield editor
        await editor.stop()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


async def begin(
    editor: BulkEditor, server: ModelServer, project: Path, text: str, language: str = "python", **form: Any
) -> None:
    file = project / "app.py"  # the id of the language counts, not the name
    file.write_text(text)
    await editor.begin(project, settings={"enabled": True, "model": server.model("openai")}, **form)
    editor.show(file, language)
    await editor.until("ready")


async def resolved(editor: BulkEditor, item: Any) -> str:
    """Return the document with the edit of an action."""
    answer = await editor.client.code_action_resolve_async(item)
    (change,) = changes_of(answer.edit)
    return edited(editor.text, change.edits)


async def titles(editor: BulkEditor, at: str) -> list[str]:
    return [one.title for one in await editor.actions(at) if "hole" not in one.title]


async def test_stubs_are_offered_where_there_are_some_and_filled(
    editor: BulkEditor, server: ModelServer, project: Path
) -> None:
    (project / "other.py").write_text("def h():\n    pass\n")
    await begin(editor, server, project, STUBS)
    workspace = "Fill all stubs in the workspace"
    assert await titles(editor, "def f") == ["Fill 1 stub", "Fill all stubs in this file (up to 2)", workspace]
    assert await titles(editor, "print") == []

    one = await resolved(editor, await editor.action("Fill 1 stub", "def g"))
    assert one == STUBS.replace("raise NotImplementedError", "return 1")
    every = await resolved(editor, await editor.action("Fill all stubs in this file", "def g"))
    assert every == STUBS.replace("raise NotImplementedError", "return 1").replace("pass", "return 1")

    item = await editor.action(workspace, "def g")
    answer = await editor.client.code_action_resolve_async(item)
    assert [len(change.edits) for change in changes_of(answer.edit)] == [2, 1]


async def test_what_fits_nearly_everywhere_is_only_offered_in_a_menu_that_the_user_opens(
    editor: BulkEditor, server: ModelServer, project: Path
) -> None:
    await begin(editor, server, project, STUBS)
    at, automatic = "\n\nprint", types.CodeActionTriggerKind.Automatic
    assert [one.title for one in await editor.actions(at)] == ["Fill this hole"]
    assert await editor.actions(at, trigger=automatic) == [], "no light at each blank line"
    assert [one.title for one in await editor.actions("def f", trigger=automatic)][:1] == ["Fill 1 stub"]


async def test_places_have_a_reason_and_what_is_not_sure_is_left_out(
    editor: BulkEditor, server: ModelServer, project: Path
) -> None:
    await begin(editor, server, project, STUBS, preview=True)
    server.behaviour = writes([("return", 0.99), (" 1", 0.6)])
    shown = await editor.bulk_edit("Fill all stubs in this file", "def f")
    assert [(place.before, place.after, place.doubtful) for place in shown.places] == [
        ("    pass", "    return 1", True),
        ("    raise NotImplementedError", "    return 1", True),
    ]
    assert shown.places[0].reason == "the model is 59 % sure"

    server.behaviour = writes([("return", 0.99), (" 1", 0.3)])
    with pytest.raises(JsonRpcException, match="nothing was filled in; the body of `f`: the model is not sure enough"):
        await editor.bulk_edit("Fill all stubs in this file", "def f")


async def test_annotations_that_the_file_says_need_no_model(
    editor: BulkEditor, server: ModelServer, project: Path
) -> None:
    text = "def f(a: int) -> int:\n    return a\n\n\ndef g(b=True):\n    print(b)\n"
    await begin(editor, server, project, text)
    expected = text.replace("g(b=True):", "g(b: bool = True) -> None:")
    assert await resolved(editor, await editor.action("Add 2 annotations", "def g")) == expected
    assert server.received == []


async def test_a_type_of_the_model_is_added_if_its_names_exist(
    editor: BulkEditor, server: ModelServer, project: Path
) -> None:
    text = "class Box: ...\n\n\ndef f(a: Box) -> Box:\n    return a\n\n\ndef g(b):\n    return h(b)\n"
    await begin(editor, server, project, text)
    server.behaviour = writes([("Box", 0.97)])
    expected = text.replace("g(b):", "g(b: Box) -> Box:")
    assert await resolved(editor, await editor.action("Add 2 annotations", "def g")) == expected

    server.behaviour = writes([("Bag", 0.97)])
    with pytest.raises(JsonRpcException, match="nothing was filled in; the type of `b`: the model wrote nothing that"):
        await resolved(editor, await editor.action("Add 2 annotations", "def g"))


async def test_docstrings_are_closed_strings_in_the_style_of_the_file(
    editor: BulkEditor, server: ModelServer, project: Path
) -> None:
    text = "def f():\n    '''Do f.'''\n    return 1\n\n\ndef g():\n    return 2\n"
    await begin(editor, server, project, text)
    server.behaviour = writes([("Return", 0.99), (" two.", 0.99), ("'''\n    x", 0.9)])
    expected = text.replace("g():\n", "g():\n    '''Return two.'''\n")
    assert await resolved(editor, await editor.action("Add 1 docstring", "def g")) == expected


async def refilled(editor: BulkEditor, selected: str) -> Any:
    """Return what the preview shows of other answers for a selection."""
    start = editor.text.index(selected)
    params = types.CodeActionParams(
        types.TextDocumentIdentifier(editor.uri),
        types.Range(editor.position(start), editor.position(start + len(selected))),
        types.CodeActionContext([]),
    )
    items: list[Any] = list(await editor.client.text_document_code_action_async(params) or [])
    (item,) = (item for item in items if item.title == "Refill the selection")
    return await editor.request("midspan/bulkEdit", {"action": item.command.arguments[0]})


@pytest.mark.parametrize(
    ("language", "text", "head", "headless", "other"),
    [
        ("python", "def f(a):\n    if a:\n        return 0\n    return 1\n", "if a:", "a += 1", "if not a:"),
        ("typescript", "function f(a) {\n  if (a) {\n    b();\n  }\n}\n", "if (a) {", "c(a);", "if (!a) {"),
        ("go", "package a\n\nfunc f(a bool) {\n\tif a {\n\t\tb()\n\t}\n}\n", "if a {", "c(a)", "if !a {"),
        ("rust", "fn f(a: bool) {\n    if a {\n        b();\n    }\n}\n", "if a {", "c(a);", "if !a {"),
    ],
)
async def test_no_answer_takes_the_head_of_a_body_that_stays(
    editor: BulkEditor,
    server: ModelServer,
    project: Path,
    language: str,
    text: str,
    head: str,
    headless: str,
    other: str,
) -> None:
    await begin(editor, server, project, text, language, preview=True)
    server.behaviour = writes([(headless, 0.9)], [(other, 0.8)])

    shown = await refilled(editor, head)

    assert [place.after.strip() for place in shown.places] == [other]


async def test_refilling_gives_different_answers_to_choose_from(
    editor: BulkEditor, server: ModelServer, project: Path
) -> None:
    await begin(editor, server, project, "def f():\n    return 0\n\n\nprint(3)\n", preview=True)
    server.behaviour = writes(
        [("return", 0.9), (" 0", 0.9)],
        [("return", 0.9), (" 1", 0.5)],
        [("return", 0.9), (" 2", 0.8)],
        [("return", 0.9), (" 1", 0.4)],
        [("return", 0.9), (" 3", 0.3)],
        [("return", 0.9), (" 4", 0.2)],
    )
    shown = await refilled(editor, "return 0")
    assert shown.exclusive
    assert [place.after for place in shown.places] == ["    return 2", "    return 1", "    return 3"]
    assert [place.reason for place in shown.places] == [f"the model is {sure} % sure" for sure in (72, 45, 27)]

    result = await editor.apply(shown.id, [1])
    assert result.applied
    (change,) = changes_of(editor.applied[0].edit)
    assert edited(editor.text, change.edits) == "def f():\n    return 1\n\n\nprint(3)\n"


async def test_answers_are_offered_only_if_the_model_is_sure_of_one(
    editor: BulkEditor, server: ModelServer, project: Path
) -> None:
    await begin(editor, server, project, "def f():\n    \n\n\nprint(3)\n", preview=True)
    server.behaviour = writes([("return", 0.9), (" 1", 0.5)], [("return", 0.9), (" 2", 0.4)])
    with pytest.raises(JsonRpcException, match="not sure enough of any answer here"):
        await editor.bulk_edit("Fill this hole", "    \n")


async def test_a_hole_at_the_cursor_is_filled(editor: BulkEditor, server: ModelServer, project: Path) -> None:
    await begin(editor, server, project, "def f():\n    \n\n\nprint(3)\n")
    assert "Fill this hole" not in [one.title for one in await editor.actions("print")]
    item = await editor.action("Fill this hole", "    \n")
    assert await resolved(editor, item) == "def f():\n    return 1\n\n\nprint(3)\n"


async def test_cancelling_ends_the_fills(editor: BulkEditor, server: ModelServer, project: Path) -> None:
    await begin(editor, server, project, STUBS, preview=True)
    server.behaviour = hangs
    editor.client.progress_reports["filling"] = []
    filling = asyncio.create_task(editor.bulk_edit("Fill all stubs in this file", "def f", "filling"))
    await server.has_received(2)
    editor.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams("filling"))
    with pytest.raises(JsonRpcException, match="cancelled"):
        await filling
    await eventually(server.client_left.is_set)


async def test_an_engine_that_dies_gives_one_line_and_no_edit(
    editor: BulkEditor, server: ModelServer, project: Path
) -> None:
    await begin(editor, server, project, STUBS)
    server.behaviour = hangs
    item = await editor.action("Fill all stubs in this file", "def f")
    filling = asyncio.create_task(editor.client.code_action_resolve_async(item))
    await server.has_received(2)
    record = read_record(runtime_paths_of(server.model("openai")).lock)
    assert record is not None
    psutil.Process(record.pid).kill()
    with pytest.raises(JsonRpcException, match=r"the connection to the engine was lost.*; nothing was changed$"):
        await filling
    assert editor.applied == []
