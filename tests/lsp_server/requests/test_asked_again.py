"""A user who asks where something is on the screen: that stays the first, and the others come after it.

An editor goes to the next one from the text that it shows, so a list that has lost this text has lost the place. The
engine asks a real HTTP server on loopback, which draws other texts each time.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from starlette.responses import Response
from support.lsp_editor import INVOKED, Editor, engine_home, ready_session, shown
from support.remote_server import ModelServer
from support.scripted_model import guesses

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def server(module_server: ModelServer) -> ModelServer:
    return module_server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    model = server.model("openai")
    with engine_home(tmp_path_factory.mktemp("runtime"), model):
        async with ready_session({"model": model, "gate": 0.6, "budgetMs": 5000, "memory": "off"}) as editor:
            yield editor


@pytest.fixture
def editor(session: Editor, server: ModelServer, request: pytest.FixtureRequest) -> Editor:
    """An editor with a new document and the cursor after "link = "; the model's best guess is "open()"."""
    server.behaviour = guesses("open()", "close()", "dial()")
    session.open("link = |\n", f"file:///project/{request.node.name}.py", "python")
    return session


def tag_of(item: types.InlineCompletionItem) -> Any:
    assert item.command is not None
    assert item.command.arguments is not None
    return item.command.arguments[0]


async def test_what_came_while_typing_stays_the_first(editor: Editor, server: ModelServer) -> None:
    assert await shown(editor) == ["open()"]
    server.behaviour = guesses("close()", "dial()", "call()")
    assert await shown(editor, INVOKED) == ["open()", "close()", "dial()"]


async def test_what_is_left_of_a_text_typed_along_stays_the_first(editor: Editor, server: ModelServer) -> None:
    assert await shown(editor) == ["open()"]
    editor.type("op")
    server.behaviour = guesses("tion", "era", "us")
    assert await shown(editor, INVOKED) == ["en()", "tion", "era"]


async def test_who_asks_twice_gets_the_same_in_the_same_order(editor: Editor, server: ModelServer) -> None:
    asked = await shown(editor, INVOKED)
    assert asked == ["open()", "close()", "dial()"]
    server.behaviour = guesses("dial()", "call()", "open()")
    assert await shown(editor, INVOKED) == asked


async def test_who_asks_again_before_the_answer_is_told_nothing_of_the_first_question(
    editor: Editor, server: ModelServer
) -> None:
    told, quick = len(editor.client.messages), server.behaviour
    editor.type("clo")

    async def slow(*request: Any) -> Response:
        await asyncio.sleep(1)  # so that the second question is there before the first answer, also on a busy machine
        return await quick(*request)

    server.behaviour = slow
    first, second = await asyncio.gather(shown(editor, INVOKED), shown(editor, INVOKED))

    assert first == []
    assert second != []
    assert editor.client.messages[told:] == []


async def test_who_asks_again_may_get_more(editor: Editor, server: ModelServer) -> None:
    server.behaviour = guesses("open()", "open()", "open()")
    assert await shown(editor, INVOKED) == ["open()"]
    server.behaviour = guesses("close()", "open()", "dial()")
    assert await shown(editor, INVOKED) == ["open()", "close()", "dial()"]


async def test_what_was_on_the_screen_has_no_confidence_unless_the_model_says_it_again(
    editor: Editor, server: ModelServer
) -> None:
    await shown(editor, INVOKED)
    server.behaviour = guesses("close()", "call()", "call()")
    tags = [tag_of(item) for item in await editor.suggest(INVOKED)]
    assert [tag["confidence"] for tag in tags] == [None, 0.9, None]
    assert len({tag["offer"] for tag in tags}) == 1


async def test_what_the_user_dismissed_does_not_stay(editor: Editor, server: ModelServer) -> None:
    assert await shown(editor) == ["open()"]
    await editor.dismiss()
    server.behaviour = guesses("close()", "dial()", "call()")
    assert await shown(editor, INVOKED) == ["close()", "dial()", "call()"]


async def test_what_the_user_typed_past_does_not_stay(editor: Editor, server: ModelServer) -> None:
    assert await shown(editor) == ["open()"]
    editor.type("c")
    server.behaviour = guesses("lose()", "all()", "ut()")
    assert await shown(editor, INVOKED) == ["lose()", "all()", "ut()"]


async def test_all_guesses_that_are_typed_along_stay(editor: Editor, server: ModelServer) -> None:
    server.behaviour = guesses("opens()", "option()", "call()")
    assert await shown(editor, INVOKED) == ["opens()", "option()", "call()"]
    editor.type("op")
    assert await shown(editor) == ["ens()", "tion()"], "the editor may show any of them"
    editor.type("t")
    assert await shown(editor) == ["ion()"]
