"""The sure start of a line through a real server: shown, typed along, taken, sent away. The engine asks a real HTTP
server on loopback, which says what a test wants, and how sure it is."""

import itertools
import math
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsp_editor import AUTOMATIC, INVOKED, Editor, engine_home
from lsprotocol import types
from remote_server import Behaviour, ModelServer, serving
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

pytestmark = pytest.mark.asyncio(loop_scope="module")

Written = list[tuple[str, float]]
"""A text: its tokens, each with its probability."""
CALL: Written = [("self", 0.95), (".connect", 0.95), ("(", 0.9), ("host", 0.4), (")", 0.9)]
START = "self.connect("


def writes(*texts: Written) -> Behaviour:
    """Answer with these texts, one a candidate, over and over."""
    choices = itertools.cycle(
        {
            "text": "".join(token for token, _ in text),
            "finish_reason": "stop",
            "logprobs": {
                "tokens": [token for token, _ in text],
                "token_logprobs": [math.log(probability) for _, probability in text],
            },
        }
        for text in texts
    )

    async def behave(server: ModelServer, request: Request, body: dict[str, Any]) -> Response:
        wanted = enumerate(itertools.islice(choices, body.get("n") or 1))
        return JSONResponse({"choices": [{"index": number, **choice} for number, choice in wanted], "usage": None})

    return behave


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def settings(server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    model = server.model("openai")
    with engine_home(tmp_path_factory.mktemp("runtime"), Path(model)):
        yield {"model": model, "gate": 0.6, "budgetMs": 5000, "completionItems": True}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(settings: dict[str, Any]) -> AsyncIterator[Editor]:
    """One session for all tests; a notebook may be opened in it."""
    editor = Editor()
    capable = types.NotebookDocumentClientCapabilities(types.NotebookDocumentSyncClientCapabilities())
    await editor.start(settings, notebook_document=capable)
    editor.open("|\n")
    await editor.until("ready")
    yield editor
    await editor.stop()


@pytest.fixture
def editor(session: Editor, server: ModelServer, request: pytest.FixtureRequest) -> Editor:
    """An editor with a new document and the cursor behind "link = "; the server writes CALL."""
    server.behaviour = writes(CALL)
    session.open("link = |\n", f"file:///project/{request.node.name}.py", "python")
    return session


async def shown(editor: Editor, trigger: types.InlineCompletionTriggerKind = AUTOMATIC) -> list[str]:
    """Return the texts of the items; each goes behind the cursor and replaces nothing."""
    items = await editor.suggest(trigger)
    assert all(item.range == types.Range(editor.position(), editor.position()) for item in items)
    return [str(item.insert_text) for item in items]


async def counts(editor: Editor, *names: str) -> list[int]:
    report = await editor.command("midspan.status")
    return [report[name] for name in names]


async def dismiss(editor: Editor) -> None:
    here = editor.position()
    position = {"line": here.line, "character": here.character}
    await editor.command("midspan.dismissed", {"uri": editor.uri, "position": position})


async def test_of_a_line_that_is_half_sure_the_sure_half_is_shown(editor: Editor) -> None:
    assert await shown(editor) == [START]


async def test_a_filled_hole_is_filled_whole(editor: Editor) -> None:
    assert (await editor.fill()).text == "self.connect(host)"


async def test_whole_lines_only_is_a_setting(settings: dict[str, Any], editor: Editor, server: ModelServer) -> None:
    other = Editor()
    await other.start({**settings, "wholeLines": True})
    other.open("link = |\n", "file:///project/link.py", "python")
    await other.until("ready")
    assert await shown(other) == []
    server.behaviour = writes([(token, 0.99) for token, _ in CALL])
    other.type("s")
    assert await shown(other) == ["self.connect(host)"]
    await other.stop()


async def test_a_sure_first_line_brings_the_lines_below_it(editor: Editor, server: ModelServer) -> None:
    server.behaviour = writes([("return", 0.9), (" host", 0.9), ("\n    other", 0.1)])
    editor.open("def f():\n    |\n", "file:///project/two.py", "python")
    assert await shown(editor) == ["return host\n    other"]
    server.behaviour = writes([("return", 0.9), (" host", 0.1), ("\n    other", 0.9)])
    editor.type("\n    ")
    assert await shown(editor) == ["return"]


async def test_a_start_is_asked_for_anew_as_it_is_typed_and_is_one_offer(editor: Editor, server: ModelServer) -> None:
    assert await shown(editor) == [START]
    assert await shown(editor) == [START], "the same again where nothing was typed"
    asked, reused, offers = await counts(editor, "asked", "reused", "shown")

    server.behaviour = writes([("elf", 0.95), *CALL[1:]])
    editor.type("s")
    assert await shown(editor) == [START[1:]]
    server.behaviour = writes([("lf", 0.95), *((token, 0.95) for token, _ in CALL[1:])])
    editor.type("e")
    assert await shown(editor) == ["lf.connect(host)"], "it is sure of more now"
    editor.type("l")
    assert await shown(editor) == ["f.connect(host)"], "of a whole line no more can be had"
    assert await counts(editor, "asked", "reused", "shown") == [asked + 2, reused + 1, offers]

    (item,) = await editor.suggest()
    assert item.command is not None
    (mark,) = item.command.arguments or []
    assert mark is not None
    assert (mark["start"], mark["characters"]) == (3, len("f.connect(host)"))


async def test_a_start_that_turns_out_wrong_leaves(editor: Editor, server: ModelServer) -> None:
    assert await shown(editor) == [START]
    server.behaviour = writes([("elf", 0.2), (".other", 0.9)])
    editor.type("s")
    assert await shown(editor) == []


async def test_at_its_end_what_follows_is_asked_for_at_once(editor: Editor, server: ModelServer) -> None:
    assert await shown(editor) == [START]
    server.behaviour = writes([("host", 0.9), (", port", 0.9), (")", 0.9)])
    editor.type(START)
    assert await shown(editor) == ["host, port)"]


async def test_a_bracket_that_the_editor_closes_ends_no_start(editor: Editor, server: ModelServer) -> None:
    server.behaviour = writes([("connect", 0.95), ("(", 0.95), ("host", 0.9), (" + 1)", 0.2)])
    assert await shown(editor) == ["connect(host"]
    (offers,) = await counts(editor, "shown")
    server.behaviour = writes([("host", 0.9), (" + 1)", 0.2)])
    editor.type("connect(")
    editor.type(")")
    editor.offset -= 1
    assert await shown(editor) == ["host"]
    assert await counts(editor, "shown") == [offers], "it is the rest of the same offer"


async def test_what_stands_behind_the_cursor_is_neither_repeated_nor_closed(
    editor: Editor, server: ModelServer
) -> None:
    server.behaviour = writes([("host", 0.9), (", port", 0.9), (" + 1", 0.2), (")", 0.9)])
    editor.open("link = connect(|, port)\n", "file:///project/args.py", "python")
    assert await shown(editor) == ["host"]
    editor.open("link = connect(|)\n", "file:///project/args.py", "python")
    assert await shown(editor) == ["host, port"]


async def test_a_start_that_was_taken_is_counted_and_more_is_offered(editor: Editor, server: ModelServer) -> None:
    before = await counts(editor, "shown", "accepted")
    (item,) = await editor.suggest()
    server.behaviour = writes([("host", 0.9), (")", 0.9)])
    editor.type(START)
    assert item.command is not None
    (mark,) = item.command.arguments or []
    assert mark is not None
    assert (mark["start"], mark["characters"]) == (0, len(START))
    await editor.command(item.command.command, mark)
    assert await shown(editor) == ["host)"]
    assert await counts(editor, "shown", "accepted") == [before[0] + 2, before[1] + 1]


async def test_a_word_of_a_start_is_taken_and_the_rest_of_it_stays(editor: Editor, server: ModelServer) -> None:
    before = await counts(editor, "shown", "partial")
    (item,) = await editor.suggest()
    assert item.command is not None
    command = {"title": "", "command": item.command.command, "arguments": item.command.arguments}
    params = {"item": {"command": command, "insertText": START}, "acceptedLength": len("self.")}
    editor.raw_notification("textDocument/didPartiallyAcceptCompletion", params)
    server.behaviour = writes([("connect", 0.95), *CALL[2:]])
    editor.type("self.")
    assert await shown(editor) == ["connect("]
    assert await counts(editor, "shown", "partial") == [before[0] + 1, before[1] + 1]


async def test_the_same_start_of_two_candidates_is_one(editor: Editor, server: ModelServer) -> None:
    other: Written = [*CALL[:3], ("port", 0.3), (")", 0.9)]
    sure: Written = [("open", 0.9), ("()", 0.9)]
    server.behaviour = writes(CALL, other, sure)
    assert await shown(editor, INVOKED) == [START, "open()"]


async def test_a_start_that_was_sent_away_does_not_come_back_as_it_is_typed(
    editor: Editor, server: ModelServer
) -> None:
    assert await shown(editor) == [START]
    await dismiss(editor)
    assert await shown(editor) == []

    server.behaviour = writes([("elf", 0.95), *CALL[1:]])
    editor.type("s")
    assert await shown(editor) == [], "it is the same start"
    assert await shown(editor, INVOKED) == [START[1:]], "the user asked"
    server.behaviour = writes([("lf", 0.95), *((token, 0.95) for token, _ in CALL[1:])])
    editor.type("e")
    await dismiss(editor)
    editor.type("l")
    server.behaviour = writes([("f", 0.95), *((token, 0.95) for token, _ in CALL[1:])])
    assert await shown(editor) == ["f.connect(host)"], "a longer one is another"


async def test_the_completion_menu_has_the_start(editor: Editor) -> None:
    editor.type("se")
    params = types.CompletionParams(types.TextDocumentIdentifier(editor.uri), editor.position())
    answer = await editor.client.text_document_completion_async(params)
    assert isinstance(answer, types.CompletionList)
    (item,) = answer.items
    assert isinstance(item.text_edit, types.TextEdit)
    assert item.text_edit.new_text == "se" + START
    assert item.text_edit.range == types.Range(editor.position(editor.offset - 2), editor.position())


async def test_a_cell_of_a_notebook_has_starts_too(editor: Editor) -> None:
    uri = "vscode-notebook-cell:/project/report.ipynb#W0"
    cell = types.NotebookCell(types.NotebookCellKind.Code, uri)
    notebook = types.NotebookDocument("file:///project/report.ipynb", "jupyter-notebook", 0, [cell])
    text = types.TextDocumentItem(uri, "python", 0, "link = ")
    editor.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, [text]))
    editor.uri, editor.text, editor.offset, editor.version = uri, text.text, len(text.text), 0
    assert await shown(editor) == [START]
