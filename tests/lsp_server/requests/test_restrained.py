"""What is not shown unasked, through a real server: each rule of restraint, and that a user who asks sees it all.

The engine asks a real HTTP server on loopback, which returns the tokens and probabilities that a test sets.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from lsprotocol import types
from support.lsp_editor import INVOKED, Editor, engine_home, shown
from support.remote_server import ModelServer
from support.scripted_model import Written, writes

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALL: Written = [("connect", 0.9), ("(host)", 0.9)]


@pytest.fixture(scope="module")
def server(module_server: ModelServer) -> ModelServer:
    return module_server


@pytest.fixture(scope="module")
def settings(server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    model = server.model("openai")
    with engine_home(tmp_path_factory.mktemp("runtime"), model):
        yield {"model": model, "gate": 0.6, "budgetMs": 5000}


@pytest.fixture
def editor(session: Editor, server: ModelServer, request: pytest.FixtureRequest) -> Editor:
    """An editor with a new document and the cursor after "link = "; the server writes CALL."""
    server.behaviour = writes(CALL)
    session.open("link = |\nother\n", f"file:///project/{request.node.name}.py", "python")
    return session


async def beside(editor: Editor, entry: str, typed: int = 0) -> list[str]:
    """Return what is suggested while the menu's `entry` is selected for the last `typed` characters."""
    replaced = types.Range(editor.position(editor.offset - typed), editor.position())
    items = await editor.suggest(selected=types.SelectedCompletionInfo(replaced, entry))
    assert all(item.range == replaced for item in items)
    return [str(item.insert_text) for item in items]


async def test_a_wrong_start_raises_the_price_until_the_cursor_leaves_the_line(
    editor: Editor, server: ModelServer
) -> None:
    assert await shown(editor) == ["connect(host)"]
    doubtful: Written = [("uild(x)", 0.68)]
    server.behaviour = writes(doubtful)
    editor.type("b")
    assert await shown(editor) == []
    assert await shown(editor, INVOKED) == ["uild(x)"], "the user asked"
    server.behaviour = writes([("uild(x)", 0.99)])
    assert await shown(editor) == ["uild(x)"], "the model is sure"

    server.behaviour = writes(doubtful)
    editor.type("\n")
    assert await shown(editor) == ["uild(x)"]


async def test_a_suggestion_that_was_ignored_twice_is_not_shown_there_again(editor: Editor) -> None:
    here, elsewhere = editor.offset, len(editor.text) - 1
    for _ in range(2):
        editor.offset = here
        assert await shown(editor) == ["connect(host)"]
        editor.offset = elsewhere
        await shown(editor)
    editor.offset = here
    assert await shown(editor) == []
    assert await shown(editor, INVOKED) == ["connect(host)"], "the user asked"


async def test_what_the_user_just_deleted_is_not_shown(editor: Editor, server: ModelServer) -> None:
    editor.type("connect(host)")
    editor.delete(len("connect(host)"))
    assert await shown(editor) == []
    assert await shown(editor, INVOKED) == ["connect(host)"], "the user asked"
    server.behaviour = writes([("build()", 0.9)])
    editor.type(" ")
    assert await shown(editor) == ["build()"]


async def test_the_rest_of_a_suggestion_is_not_shown_after_its_typed_start_was_deleted(editor: Editor) -> None:
    assert await shown(editor) == ["connect(host)"]
    editor.type("connect")
    assert await shown(editor) == ["(host)"]
    editor.delete(len("connect"))
    assert await shown(editor) == []


async def test_a_deleted_typo_brings_the_suggestion_back(editor: Editor) -> None:
    assert await shown(editor) == ["connect(host)"]
    editor.type("v")
    await shown(editor)
    editor.delete(1)
    assert await shown(editor) == ["connect(host)"]


async def test_scrolling_through_the_completion_menu_ignores_nothing(editor: Editor) -> None:
    assert await beside(editor, "bless") == [], "the editor selected it"
    for word in ("build", "bind") * 3:
        assert await beside(editor, word) == [word + "connect(host)"], "the user went on to it"


async def test_beside_the_entry_that_the_editor_selects_is_what_would_be_suggested_without_it(
    editor: Editor, server: ModelServer
) -> None:
    assert await beside(editor, "connect") == ["connect(host)"], "it begins the suggestion"
    editor.type("co")
    assert await beside(editor, "connect", typed=2) == ["connect(host)"], "the rest of it"
    editor.type("n")
    assert await beside(editor, "content", typed=3) == [], "it is another one"
    editor.type("n")
    assert await beside(editor, "Connect", typed=4) == [], "it is not what was typed"
    server.behaviour = writes([("nothing", 0.3)])
    editor.type(" = ")
    assert await beside(editor, "connect") == [], "the model does not believe it"


async def test_the_entry_that_the_editor_selects_is_not_said_once_more(editor: Editor) -> None:
    assert await beside(editor, "connect(host)") == []


async def test_what_is_not_drawn_beside_the_menu_is_no_wrong_start(editor: Editor, server: ModelServer) -> None:
    assert await beside(editor, "build") == []
    server.behaviour = writes([("uild(x)", 0.68)])
    editor.type("b")
    assert await shown(editor) == ["uild(x)"]


async def test_formatting_is_not_shown(editor: Editor, server: ModelServer) -> None:
    server.behaviour = writes([(";", 0.99)])
    editor.open("let a = 1|\nlet b = 2;\n", "file:///project/a.js", "javascript")
    assert await shown(editor) == []
    assert await shown(editor, INVOKED) == [";"], "the user asked"
