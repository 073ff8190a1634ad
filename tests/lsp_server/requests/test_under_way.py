"""A user who types faster than the model answers: a fill goes on while what is typed is what the model writes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from support.lsp_editor import Editor, eventually
from support.recording_engine import RecordingEngine

from engine.protocol.confidence import FEWEST_CHARACTERS

pytestmark = pytest.mark.slow


async def first_line(editor: Editor) -> str:
    return str((await editor.offered())[0].insert_text).partition("\n")[0]


@pytest_asyncio.fixture
async def text(engine: RecordingEngine, editor: Editor, tiny_model: Path) -> str:
    """What the model writes at the cursor, where nothing was asked yet."""
    await editor.start({"model": str(tiny_model), "threads": 1, "gate": 0, "budgetMs": 60_000, "maxTokens": 16})
    await editor.open_ready("one two |\n\n")
    while len(text := await first_line(editor)) <= FEWEST_CHARACTERS:  # The model is random.
        editor.type("x")
    editor.close()
    editor.open(editor.text[: editor.offset] + "|" + editor.text[editor.offset :])
    return text


async def begun(engine: RecordingEngine, editor: Editor) -> "asyncio.Task[list[types.InlineCompletionItem]]":
    """Request a suggestion, and return once the engine has the fill."""
    asked = len(engine.asked)
    running = asyncio.ensure_future(editor.suggest())
    await eventually(lambda: len(engine.asked) > asked)
    return running


async def test_what_is_left_of_it_is_shown_where_the_cursor_is_then(
    engine: RecordingEngine, editor: Editor, text: str
) -> None:
    with engine.held():
        first = await begun(engine, editor)
        asked = len(engine.asked)
        editor.type(text[0])
        second = asyncio.ensure_future(editor.suggest())
        assert await first == []
    assert [item.insert_text for item in await second] == [text[1:]]
    assert len(engine.asked) == asked, "the engine was asked once"
    assert not engine.tickets[-1].cancelled


async def test_another_key_than_the_models_ends_it(engine: RecordingEngine, editor: Editor, text: str) -> None:
    with engine.held():
        first = await begun(engine, editor)
        ticket = engine.tickets[-1]
        editor.type("~")
        second = asyncio.ensure_future(editor.suggest())
        assert await first == []
        assert (await editor.command("midspan.status"))["engine"]["cancelled"] == 0, (
            "its first token may still be right"
        )
    await second
    await eventually(ticket.result.done)
    assert engine.asked[-1].prefix.endswith("~")


async def test_what_the_settings_exclude_meanwhile_is_not_asked_about_again(
    engine: RecordingEngine, editor: Editor, text: str
) -> None:
    with engine.held():
        first = await begun(engine, editor)
        asked = len(engine.asked)
        editor.type("~")
        second = asyncio.ensure_future(editor.suggest())
        assert await first == []
        pushed = types.DidChangeConfigurationParams({"midspan": {"exclude": ["notes.txt"]}})
        editor.client.workspace_did_change_configuration(pushed)
        await editor.command("midspan.status")
    assert await second == []
    assert len(engine.asked) == asked


@pytest.mark.parametrize("change", ["newline", "deletion"])
async def test_a_line_end_or_a_deletion_ends_it_at_once(
    engine: RecordingEngine, editor: Editor, text: str, change: str
) -> None:
    with engine.held():
        await begun(engine, editor)
        if change == "newline":
            editor.type("\n")
        else:
            editor.delete(1)
        await eventually(lambda: engine.tickets[-1].cancelled)


async def test_it_ends_when_nobody_waits_for_it(engine: RecordingEngine, editor: Editor, text: str) -> None:
    protocol: Any = editor.client.protocol  # pygls annotates it in part only
    with engine.held():
        asked = len(engine.asked)
        question = editor.question()
        running = protocol.send_request_async(types.TEXT_DOCUMENT_INLINE_COMPLETION, question, msg_id="it")
        running = asyncio.ensure_future(running)
        await eventually(lambda: len(engine.asked) > asked)
        editor.client.cancel_request(types.CancelParams("it"))
        await eventually(lambda: engine.tickets[-1].cancelled)
    await asyncio.wait([running])


async def test_a_request_at_another_place_ends_it(engine: RecordingEngine, editor: Editor, text: str) -> None:
    with engine.held():
        await begun(engine, editor)
        ticket = engine.tickets[-1]
        editor.offset = len(editor.text)
        await begun(engine, editor)
        await eventually(lambda: ticket.cancelled)
