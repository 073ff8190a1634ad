"""The next edit, through a real server: what was done by hand once is offered at the other places, one by one."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from support.lsp_editor import engine_home, eventually
from support.next_edit_editor import NextEditEditor
from support.processes import children, lives

pytestmark = pytest.mark.asyncio(loop_scope="module")

_GAP = "\n    first = 1\n    second = 2\n"
_CALLS = f"def f(a):{_GAP}    get(a){_GAP}    get(a.b){_GAP}    get(1){_GAP}"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="module")
def settings(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with engine_home(tmp_path_factory.mktemp("runtime"), tiny_model):
        yield {"model": str(tiny_model)}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(settings: dict[str, str], workspace: Path) -> AsyncIterator[NextEditEditor]:
    editor = NextEditEditor()
    await editor.start(settings, folders=[workspace])
    yield editor
    await editor.stop()


@pytest.fixture
def editor(session: NextEditEditor, workspace: Path, request: pytest.FixtureRequest) -> NextEditEditor:
    """An editor with three calls in a new document."""
    session.show(_CALLS, (workspace / f"{request.node.name}.py").as_uri())
    return session


async def test_after_the_first_place_the_others_are_offered_one_by_one(editor: NextEditEditor) -> None:
    assert await editor.next_edit() is None
    editor.replace("get(a)", "get(a, timeout=3)")
    for text, remaining in [("get(a.b, timeout=3)", 2), ("get(1, timeout=3)", 1)]:
        edit = await editor.next_edit()
        assert (editor.line(edit), edit.remaining) == (text, remaining)
        await editor.accept(edit)
    assert await editor.next_edit() is None
    assert editor.text.count("timeout=3") == 3


async def test_the_nearest_place_after_the_cursor_comes_first_and_then_the_top(editor: NextEditEditor) -> None:
    editor.replace("get(a.b)", "get(a.b, 3)")
    edit = await editor.next_edit()
    assert editor.line(edit) == "get(1, 3)"
    editor.offset = len(editor.text)
    edit = await editor.next_edit()
    assert editor.line(edit) == "get(a, 3)"


async def test_an_edit_typed_key_by_key_is_offered_when_it_is_finished(editor: NextEditEditor) -> None:
    start = editor.text.index("get(a)")
    editor.change(start, start + len("get"), "")
    lines = []
    for key in "fetch":
        editor.type(key)
        edit = await editor.next_edit()
        lines.append(edit and editor.line(edit))
    assert lines[-1] == "fetch(a.b)"


async def test_another_edit_ends_it(editor: NextEditEditor) -> None:
    editor.replace("get(a)", "get(a, 3)")
    assert await editor.next_edit() is not None
    editor.change(len(editor.text), len(editor.text), "\n\n\nx = 1\n")
    assert await editor.next_edit() is None


async def test_a_comment_beside_the_edit_ends_it_and_a_new_line_does_not(editor: NextEditEditor) -> None:
    editor.replace("get(a)", "get(a, 3)")
    assert await editor.next_edit() is not None
    editor.type("\n")
    assert await editor.next_edit() is not None
    editor.type("    # so")
    assert await editor.next_edit() is None
    editor.type(" it is")
    assert await editor.next_edit() is None
    editor.replace("get(a.b)", "get(a.b, 3)")
    assert editor.line(await editor.next_edit()) == "get(1, 3)"


async def test_undo_ends_it(editor: NextEditEditor) -> None:
    editor.replace("get(a)", "get(a, 3)")
    await editor.accept(await editor.next_edit())
    editor.replace("get(a.b, 3)", "get(a.b)")
    assert await editor.next_edit() is None
    editor.replace("get(a, 3)", "get(a)")
    assert await editor.next_edit() is None


async def test_escape_ends_it_for_good(editor: NextEditEditor) -> None:
    editor.replace("get(a)", "get(a, dismissed=3)")
    assert await editor.next_edit() is not None
    await editor.command("midspan.nextEditDismissed")
    assert await editor.next_edit() is None
    editor.replace("get(a.b)", "get(a.b, dismissed=3)")
    assert await editor.next_edit() is None


async def test_white_space_in_the_edit_does_not_bring_it_back(editor: NextEditEditor) -> None:
    editor.replace("get(a)", "get(a, ignored=3)")
    assert await editor.next_edit() is not None
    await editor.command("midspan.nextEditDismissed")
    for old, new in (("ignored=3", "\tignored=3"), ("=3", " = 3"), ("3)", "3 \t)")):
        editor.replace(old, new)
        assert await editor.next_edit() is None


async def test_a_version_that_is_no_more_gets_no_answer(editor: NextEditEditor) -> None:
    editor.replace("get(a)", "get(a, 3)")
    asked = asyncio.create_task(editor.next_edit())
    await asyncio.sleep(0)
    editor.replace("get(a, 3)", "get(a, 3")
    # The server answers this at once. On a busy machine the edit may come to it when it has answered already.
    handled = asyncio.create_task(editor.command("midspan.accepted"))
    order: list[asyncio.Task[Any]] = []
    for task in (asked, handled):
        task.add_done_callback(order.append)
    await asyncio.wait({asked, handled})
    assert asked.result() is None or order == [asked, handled]
    assert await editor.next_edit() is None


async def test_columns_are_in_the_units_of_the_editor(editor: NextEditEditor, workspace: Path) -> None:
    editor.show("get('é🙂', a)\n\n\nx = '🙂' + get('é🙂', b)\n", (workspace / "emoji.py").as_uri())
    editor.replace("get('é🙂', a)", "get('é🙂', a, 3)")
    edit = await editor.next_edit()
    assert editor.line(edit) == "x = '🙂' + get('é🙂', b, 3)"


async def test_when_the_file_is_done_the_next_file_is_offered(editor: NextEditEditor, workspace: Path) -> None:
    folder = workspace / "package"
    folder.mkdir()
    (folder / "closed.py").write_text("far(1)\n", encoding="utf-8")
    (folder / "none.py").write_text("near(1)\n", encoding="utf-8")
    editor.show("far(1)\n\n\nfar(2)\n", (folder / "open.py").as_uri())
    editor.replace("far(1)", "far(1, 3)")
    await editor.accept(await editor.next_edit(any_file=True))
    assert await editor.next_edit() is None
    edit = await editor.next_edit(any_file=True)
    assert edit.textDocument.uri == (folder / "closed.py").as_uri()
    # The client opens it, and asks there.
    editor.show("far(1)\n", edit.textDocument.uri)
    edit = await editor.next_edit(any_file=True)
    assert editor.line(edit) == "far(1, 3)"
    await editor.accept(edit)
    assert await editor.next_edit(any_file=True) is None


_LOCAL = f"def f(count):{_GAP}    g(count){_GAP}    return count + 1\n\n\ndef g(count):\n    return count\n"


async def test_half_a_name_of_a_declaration_is_not_offered_while_it_is_typed(
    editor: NextEditEditor, workspace: Path
) -> None:
    editor.show(_LOCAL, (workspace / "typed.py").as_uri())
    start = _LOCAL.index("count")
    editor.change(start, start + len("count"), "")
    asked = []
    for key in "total":
        editor.type(key)
        asked.append(asyncio.create_task(editor.next_edit()))
        await asyncio.sleep(0)
    *early, last = await asyncio.gather(*asked)
    assert early == [None] * len(early)
    assert editor.line(last) == "g(total)"
    await editor.accept(last)
    last = await editor.next_edit()
    assert (editor.line(last), last.remaining) == ("return total + 1", 1)
    await editor.accept(last)
    assert await editor.next_edit(any_file=True) is None
    assert editor.text.count("count") == 2


@pytest.mark.parametrize("ends", ["undo", "escape", "typing on"])
async def test_a_rename_ends_as_other_edits_do(editor: NextEditEditor, workspace: Path, ends: str) -> None:
    editor.show(_LOCAL.replace("count", ends[:4]), (workspace / f"{ends[:4]}.py").as_uri())
    editor.replace(ends[:4], "total")
    assert editor.line(await editor.next_edit()) == "g(total)"
    if ends == "undo":
        editor.replace("total", ends[:4])
    elif ends == "escape":
        await editor.command("midspan.nextEditDismissed")
    else:
        editor.change(len(editor.text), len(editor.text), "\n\n\nx = 1\n")
    assert await editor.next_edit() is None


async def test_a_renamed_function_is_offered_where_other_files_import_it(
    editor: NextEditEditor, workspace: Path
) -> None:
    folder = workspace / "renamed"
    folder.mkdir()
    (folder / "user.py").write_text("from renamed.tools import read_all\n\nread_all(2)\n", encoding="utf-8")
    (folder / "none.py").write_text("def read_all(x):\n    return read_all(x)\n", encoding="utf-8")
    text = "def read_all(x):\n    return x\n\n\nread_all(1)\n"
    (folder / "tools.py").write_text(text, encoding="utf-8")
    editor.show(text, (folder / "tools.py").as_uri())
    editor.replace("read_all", "take_all")
    await editor.accept(await editor.next_edit(any_file=True))
    edit = await editor.next_edit(any_file=True)
    assert edit.textDocument.uri == (folder / "user.py").as_uri()
    editor.show((folder / "user.py").read_text(encoding="utf-8"), edit.textDocument.uri)
    lines = []
    while (edit := await editor.next_edit(any_file=True)) is not None:
        lines.append(editor.line(edit))
        await editor.accept(edit)
    assert lines == ["from renamed.tools import take_all", "take_all(2)"]


async def test_a_single_edit_without_another_place_searches_no_other_file(
    editor: NextEditEditor, workspace: Path
) -> None:
    (workspace / "other.py").write_text("single(1)\n", encoding="utf-8")
    editor.show("single(1)\n", (workspace / "single.py").as_uri())
    editor.replace("single(1)", "single(1, 3)")
    assert await editor.next_edit(any_file=True) is None


async def test_a_dead_worker_process_costs_one_answer(editor: NextEditEditor) -> None:
    editor.replace("get(a)", "get(a, 3)")
    assert await editor.next_edit() is not None
    (worker,) = _workers(editor)[:1]
    worker.kill()
    await eventually(lambda: not lives(worker))
    editor.replace("get(a, 3)", "get(a, 4)")
    await editor.next_edit()
    assert editor.line(await editor.next_edit()) == "get(a.b, 4)"


async def test_clients_of_copilot_say_more_than_we_need(editor: NextEditEditor) -> None:
    editor.raw_notification("textDocument/didFocus", {"textDocument": {"uri": editor.uri}})
    editor.replace("get(a)", "get(a, 3)")
    assert await editor.next_edit() is not None
    assert not editor.warnings()


async def test_a_setting_turns_it_off(settings: dict[str, str]) -> None:
    editor = NextEditEditor()
    await editor.start({**settings, "nextEdits": False})
    editor.show(_CALLS, "file:///project/off.py")
    editor.replace("get(a)", "get(a, 3)")
    assert await editor.next_edit() is None
    assert not _workers(editor)
    await editor.stop()


async def test_the_worker_process_ends_with_the_server(settings: dict[str, str]) -> None:
    editor = NextEditEditor()
    await editor.start(settings)
    editor.show(_CALLS, "file:///project/end.py")
    editor.replace("get(a)", "get(a, 3)")
    assert await editor.next_edit() is not None
    (worker,) = _workers(editor)
    await editor.stop()
    await eventually(lambda: not worker.is_running())


def _workers(editor: NextEditEditor) -> list[psutil.Process]:
    return children(editor.pid, lambda child: "lsp_server.refactor.worker_process" in child.cmdline())
