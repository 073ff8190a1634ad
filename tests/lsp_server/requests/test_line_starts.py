"""The confident start of a line through a real server: shown, typed along, accepted, dismissed.

The engine asks a real HTTP server on loopback, which returns the tokens and probabilities that a test sets.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from support.lsp_editor import AUTOMATIC, INVOKED, Editor, engine_home, ready_session
from support.remote_server import ModelServer
from support.scripted_model import Written, writes

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALL: Written = [("self", 0.95), (".connect", 0.95), ("(", 0.98), ("host", 0.4), (")", 0.9)]
START = "self.connect"


@pytest.fixture(scope="module")
def server(module_server: ModelServer) -> ModelServer:
    return module_server


@pytest.fixture(scope="module")
def settings(server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    model = server.model("openai")
    with engine_home(tmp_path_factory.mktemp("runtime"), model):
        yield {"model": model, "gate": 0.6, "budgetMs": 5000, "completionItems": True}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(settings: dict[str, Any]) -> AsyncIterator[Editor]:
    """One session for all tests, of an editor that has notebooks."""
    capable = types.NotebookDocumentClientCapabilities(types.NotebookDocumentSyncClientCapabilities())
    async with ready_session(settings, notebook_document=capable) as editor:
        yield editor


@pytest.fixture
def editor(session: Editor, server: ModelServer, request: pytest.FixtureRequest) -> Editor:
    """An editor with a new document and the cursor after "link = "; the server writes CALL."""
    server.behaviour = writes(CALL)
    session.open("link = |\n", f"file:///project/{request.node.name}.py", "python")
    return session


async def shown(editor: Editor, trigger: types.InlineCompletionTriggerKind = AUTOMATIC) -> list[str]:
    """Return the texts of the items, each of which is inserted at the cursor and replaces nothing."""
    items = await editor.suggest(trigger)
    assert all(item.range == types.Range(editor.position(), editor.position()) for item in items)
    return [str(item.insert_text) for item in items]


async def counts(editor: Editor, *names: str) -> list[int]:
    report = await editor.command("midspan.status")
    return [report[name] for name in names]


async def test_only_the_confident_start_of_a_line_is_shown(editor: Editor) -> None:
    assert await shown(editor) == [START]


async def test_midspan_fill_returns_the_whole_line(editor: Editor) -> None:
    assert (await editor.fill()).text == "self.connect(host)"


async def test_the_setting_whole_lines_shows_no_starts(
    settings: dict[str, Any], editor: Editor, server: ModelServer
) -> None:
    other = Editor()
    await other.start({**settings, "wholeLines": True})
    await other.open_ready("link = |\n", "file:///project/link.py", "python")
    assert await shown(other) == []
    server.behaviour = writes([(token, 0.99) for token, _ in CALL])
    other.type("s")
    assert await shown(other) == ["self.connect(host)"]
    await other.stop()


async def test_a_confident_first_line_is_shown_with_the_confident_lines_below_it(
    editor: Editor, server: ModelServer
) -> None:
    server.behaviour = writes([("return", 0.9), (" host", 0.9), ("\n    other", 0.9), ("\n    x", 0.1)])
    editor.open("def f():\n    |\n", "file:///project/two.py", "python")
    assert await shown(editor) == ["return host\n    other"]
    server.behaviour = writes([("return", 0.9), (" host", 0.1), ("\n    other", 0.9)])
    editor.type("\n    ")
    assert await shown(editor) == ["return"]


async def test_each_key_along_a_start_asks_the_engine_again_for_the_same_offer(
    editor: Editor, server: ModelServer
) -> None:
    assert await shown(editor) == [START]
    assert await shown(editor) == [START], "the same again when nothing was typed"
    asked, reused, offers = await counts(editor, "asked", "reused", "shown")

    server.behaviour = writes([("elf", 0.95), *CALL[1:]])
    editor.type("s")
    assert await shown(editor) == [START[1:]]
    server.behaviour = writes([("lf", 0.95), *((token, 0.95) for token, _ in CALL[1:])])
    editor.type("e")
    assert await shown(editor) == ["lf.connect(host)"], "the model is confident of more now"
    editor.type("l")
    assert await shown(editor) == ["f.connect(host)"], "a whole line cannot grow"
    assert await counts(editor, "asked", "reused", "shown") == [asked + 2, reused + 1, offers]

    (item,) = await editor.suggest()
    assert item.command is not None
    tag: Any
    (tag,) = item.command.arguments or []
    assert (tag["start"], tag["characters"]) == (3, len("f.connect(host)"))


async def test_a_start_that_is_typed_along_stays_whatever_the_model_says_now(
    editor: Editor, server: ModelServer
) -> None:
    assert await shown(editor) == [START]
    server.behaviour = writes([("elf", 0.2), (".other", 0.9)])
    for typed, key in enumerate(START[:-1], 1):
        editor.type(key)
        assert await shown(editor) == [START[typed:]]


async def test_deleting_what_was_typed_past_a_suggestion_brings_it_back(editor: Editor, server: ModelServer) -> None:
    assert await shown(editor) == [START]
    server.behaviour = writes([("nothing", 0.1)])
    editor.type("q")
    assert await shown(editor) == []
    editor.delete(1)
    assert await shown(editor) == [START]


async def test_at_the_end_of_a_start_the_engine_is_asked_for_more(editor: Editor, server: ModelServer) -> None:
    assert await shown(editor) == [START]
    server.behaviour = writes([("(", 0.98), ("host", 0.9), (", port", 0.9), (")", 0.98)])
    editor.type(START)
    assert await shown(editor) == ["(host, port)"]


async def test_a_bracket_that_the_editor_closes_does_not_end_a_start(editor: Editor, server: ModelServer) -> None:
    server.behaviour = writes([("connect", 0.95), ("(", 0.95), ("host", 0.9), (")", 0.95), (" + 1", 0.2)])
    assert await shown(editor) == ["connect(host)"]
    (offers,) = await counts(editor, "shown")
    server.behaviour = writes([("host", 0.9), (")", 0.95), (" + 1", 0.2)])
    editor.type("connect(")
    editor.type(")")
    editor.offset -= 1
    assert await shown(editor) == ["host"]
    assert await counts(editor, "shown") == [offers], "this is the rest of the same offer"


async def test_a_start_neither_repeats_nor_closes_what_follows_the_cursor(editor: Editor, server: ModelServer) -> None:
    server.behaviour = writes([("host", 0.9), (", port", 0.9), (" + 1", 0.2), (")", 0.9)])
    editor.open("link = connect(|, port)\n", "file:///project/args.py", "python")
    assert await shown(editor) == ["host"]
    editor.open("link = connect(|)\n", "file:///project/args.py", "python")
    assert await shown(editor) == ["host, port"]


async def test_an_accepted_start_is_counted_and_more_is_offered(editor: Editor, server: ModelServer) -> None:
    before = await counts(editor, "shown", "accepted")
    (item,) = await editor.suggest()
    server.behaviour = writes([("(", 0.98), ("host", 0.9), (")", 0.9)])
    editor.type(START)
    assert item.command is not None
    tag: Any
    (tag,) = item.command.arguments or []
    assert (tag["start"], tag["characters"]) == (0, len(START))
    await editor.command(item.command.command, tag)
    assert await shown(editor) == ["(host)"]
    assert await counts(editor, "shown", "accepted") == [before[0] + 2, before[1] + 1]


async def test_after_an_accepted_word_the_rest_of_a_start_is_shown(editor: Editor, server: ModelServer) -> None:
    before = await counts(editor, "shown", "partial")
    (item,) = await editor.suggest()
    assert item.command is not None
    command = {"title": "", "command": item.command.command, "arguments": item.command.arguments}
    params = {"item": {"command": command, "insertText": START}, "acceptedLength": len("self.")}
    editor.raw_notification("textDocument/didPartiallyAcceptCompletion", params)
    server.behaviour = writes([("connect", 0.95), *CALL[2:]])
    editor.type("self.")
    assert await shown(editor) == ["connect"]
    assert await counts(editor, "shown", "partial") == [before[0] + 1, before[1] + 1]


async def test_the_same_start_of_two_candidates_is_shown_once(editor: Editor, server: ModelServer) -> None:
    other: Written = [*CALL[:3], ("port", 0.3), (")", 0.9)]
    confident: Written = [("open", 0.9), ("()", 0.9)]
    server.behaviour = writes(CALL, other, confident)
    assert await shown(editor, INVOKED) == [START, "open()", "self.connect(host)"], "then what the gate hides"


async def test_a_dismissed_start_does_not_come_back_while_it_is_typed(editor: Editor, server: ModelServer) -> None:
    assert await shown(editor) == [START]
    await editor.dismiss()
    assert await shown(editor) == []

    server.behaviour = writes([("elf", 0.95), *CALL[1:]])
    editor.type("s")
    assert await shown(editor) == [], "it is the same start"
    assert await shown(editor, INVOKED) == [START[1:], "elf.connect(host)"], "the user asked"
    server.behaviour = writes([("lf", 0.95), *((token, 0.95) for token, _ in CALL[1:])])
    editor.type("e")
    await editor.dismiss()
    editor.type("l")
    server.behaviour = writes([("f", 0.99), *((token, 0.99) for token, _ in CALL[1:]), (".open()", 0.99)])
    assert await shown(editor) == ["f.connect(host).open()"], "a longer text is another suggestion"


async def test_the_completion_menu_shows_the_start(editor: Editor) -> None:
    editor.type("se")
    params = types.CompletionParams(types.TextDocumentIdentifier(editor.uri), editor.position())
    answer = await editor.client.text_document_completion_async(params)
    assert isinstance(answer, types.CompletionList)
    (item,) = answer.items
    assert isinstance(item.text_edit, types.TextEdit)
    assert item.text_edit.new_text == "se" + START
    assert item.text_edit.range == types.Range(editor.position(editor.offset - 2), editor.position())


async def test_a_cell_of_a_notebook_gets_starts_too(editor: Editor) -> None:
    uri = "vscode-notebook-cell:/project/report.ipynb#W0"
    cell = types.NotebookCell(types.NotebookCellKind.Code, uri)
    notebook = types.NotebookDocument("file:///project/report.ipynb", "jupyter-notebook", 0, [cell])
    text = types.TextDocumentItem(uri, "python", 0, "link = ")
    editor.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, [text]))
    editor.uri, editor.text, editor.offset, editor.version = uri, text.text, len(text.text), 0
    assert await shown(editor) == [START]
