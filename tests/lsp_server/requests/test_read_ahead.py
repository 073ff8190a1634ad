"""Where the cursor rests, a model that reads slowly reads its context ahead: the first suggestion there has it."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_asyncio
from support.lsp_editor import Editor, eventually
from support.recording_engine import RecordingEngine

from engine.schedule.fill_queue import ScheduledTicket
from lsp_server.requests.ahead import SLOW_PARAMETERS
from lsp_server.wire import CURSOR_MOVED

ABOVE = "".join(f"name_{number} = compute({number}, other)\n" for number in range(30))
BELOW = "\n" + "print(name)\n" * 30


@pytest_asyncio.fixture
async def engine(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RecordingEngine]:
    """An engine whose model says that it is a large one."""
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / "runtime"))
    engine = RecordingEngine(tiny_model)
    engine.model_info = attrs.evolve(engine.model_info, parameters=SLOW_PARAMETERS)
    await engine.start()
    yield engine
    await engine.stop()


@pytest.fixture
def settings(tiny_model: Path) -> dict[str, Any]:
    return {"model": str(tiny_model), "threads": 1, "gate": 0, "budgetMs": 20_000, "maxTokens": 8}


def open_project(editor: Editor, name: str = "notes") -> None:
    editor.open(f"{ABOVE}total = |{BELOW}", f"file:///project/{name}.txt")


def rest(editor: Editor, offset: int | None = None) -> None:
    """Have the editor say that the cursor rests where it is, or at `offset`."""
    at = editor.position(offset)
    position = {"line": at.line, "character": at.character}
    editor.raw_notification(CURSOR_MOVED, {"textDocument": {"uri": editor.uri}, "position": position})


def tell_cursors(editor: Editor) -> None:
    """Be an editor that tells where its cursor is: on a busy machine documents would be read at their start, too."""
    nowhere = {"textDocument": {"uri": "file:///nowhere.txt"}, "position": {"line": 0, "character": 0}}
    editor.raw_notification(CURSOR_MOVED, nowhere)


async def settled(editor: Editor) -> None:
    """Wait until the server and the engine have done what they were told before."""
    for _ in range(3):
        await editor.command("midspan.status")


async def test_the_first_request_where_the_cursor_rests_finds_its_context_read(
    engine: RecordingEngine, editor: Editor, settings: dict[str, Any], tmp_path: Path
) -> None:
    await editor.start(settings, folders=[tmp_path])
    editor.open(f"{ABOVE}total = |{BELOW}", (tmp_path / "notes.txt").as_uri())
    rest(editor)  # The engine may not be connected yet.
    await eventually(lambda: engine.read and engine.read[-1].result.done())
    read = engine.read[-1].result.result()
    assert read.cached_tokens < read.context_tokens
    report = await editor.command("midspan.status")
    assert report["asked"] == 0
    assert report["engine"]["fills"] == 0
    assert report["memory"] is None, "the workspace is read with the first request only"

    filled = await editor.fill()
    assert filled.cachedTokens == filled.contextTokens == read.context_tokens


async def test_where_the_cursor_rests_after_typing_nothing_is_read_again(
    engine: RecordingEngine, editor: Editor, settings: dict[str, Any]
) -> None:
    await editor.start(settings)
    tell_cursors(editor)
    open_project(editor)
    await editor.until("ready")
    editor.type("n")
    await editor.suggest()
    passes = engine.passes
    rest(editor)
    await eventually(lambda: engine.read and engine.read[-1].result.done())
    assert engine.passes == passes


async def test_a_newer_place_ends_the_reading_at_an_older_one(
    engine: RecordingEngine, editor: Editor, settings: dict[str, Any]
) -> None:
    await editor.start(settings)
    tell_cursors(editor)
    open_project(editor)
    await editor.until("ready")
    with engine.held():
        rest(editor)
        await eventually(lambda: engine.read)
        rest(editor, 0)
        await eventually(lambda: len(engine.read) == 2)
        assert [ticket.cancelled for ticket in engine.read] == [True, False]
    await eventually(lambda: engine.read[-1].result.done())
    assert [ticket.request.prefix for ticket in engine.read] == [f"{ABOVE}total = ", ""]


@pytest.mark.parametrize("what", ["suggestion", "fill", "edit", "close", "snooze"])
async def test_what_the_user_does_next_ends_the_reading(
    engine: RecordingEngine, editor: Editor, settings: dict[str, Any], what: str
) -> None:
    await editor.start(settings)
    tell_cursors(editor)
    open_project(editor)
    await editor.until("ready")
    doing: asyncio.Task[Any] | None = None
    with engine.held():
        rest(editor)
        await eventually(lambda: engine.read)
        if what == "suggestion":
            doing = asyncio.create_task(editor.suggest())
        elif what == "fill":
            doing = asyncio.create_task(editor.fill())
        elif what == "edit":
            editor.type("n")
        elif what == "close":
            editor.close()
        else:
            await editor.command("midspan.snooze", 5)
        await eventually(lambda: engine.read[-1].cancelled)
    if doing is not None:
        await doing


async def test_a_document_is_read_at_its_start_while_the_editor_does_not_tell_its_cursor(
    engine: RecordingEngine, editor: Editor, settings: dict[str, Any]
) -> None:
    await editor.start(settings)
    open_project(editor)
    await eventually(lambda: engine.read)
    assert engine.read[-1].request.prefix == ""
    rest(editor)
    await eventually(lambda: len(engine.read) == 2)
    open_project(editor, "other")
    rest(editor)
    await eventually(lambda: len(engine.read) == 3)
    assert [ticket.request.path for ticket in engine.read] == ["notes.txt", "notes.txt", "other.txt"]
    assert engine.read[-1].request.prefix, "its start was not read"


@pytest.mark.parametrize(
    "changed",
    [
        {"exclude": ["notes.txt"]},
        {"automatic": False},
        {"enabled": False},
        {"languages": {"plaintext": False}},
    ],
    ids=lambda changed: next(iter(changed)),
)
async def test_where_nothing_is_suggested_unasked_nothing_is_read(
    engine: RecordingEngine, editor: Editor, settings: dict[str, Any], changed: dict[str, Any]
) -> None:
    await editor.start(settings | changed)
    open_project(editor, "kept")
    editor.open("another one |\n", "file:///project/served.py", "python")
    open_project(editor)
    if "enabled" not in changed:
        await editor.until("ready")
    rest(editor)
    await settled(editor)
    assert engine.read == []


@pytest.mark.parametrize(
    "info",
    [{"server": "127.0.0.1:9"}, {"parameters": SLOW_PARAMETERS - 1}, {"device": "cuda"}],
    ids=lambda info: next(iter(info)),
)
async def test_a_server_or_a_model_that_reads_fast_is_never_asked_ahead(
    engine: RecordingEngine, editor: Editor, settings: dict[str, Any], info: dict[str, Any]
) -> None:
    engine.model_info = attrs.evolve(engine.model_info, **info)
    await engine.stop()
    await engine.start()
    await editor.start(settings)
    open_project(editor)
    await editor.until("ready")
    rest(editor)
    await settled(editor)
    assert engine.read == []


@pytest.mark.parametrize(
    "params", [{}, {"textDocument": {"uri": "file:///none.txt"}, "position": {"line": 9, "character": 9}}]
)
async def test_a_cursor_in_no_document_does_no_harm(
    engine: RecordingEngine, editor: Editor, settings: dict[str, Any], params: dict[str, Any]
) -> None:
    await editor.start(settings)
    tell_cursors(editor)
    open_project(editor)
    await editor.until("ready")
    editor.raw_notification(CURSOR_MOVED, params)
    await settled(editor)
    rest(editor, 10**6)
    await eventually(lambda: engine.read)
    assert engine.read[-1].request.suffix == "", "past its end is its end"


async def test_a_suggestion_whose_budget_went_into_reading_comes_without_another_key(
    engine: RecordingEngine, editor: Editor, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await editor.start({**settings, "budgetMs": 20})
    tell_cursors(editor)
    await editor.open_ready("one two |\n")
    monkeypatch.setattr(engine._backend, "_encode_rows", 1)
    step = engine._backend._step

    def slow_step(tickets: list[ScheduledTicket]) -> list[ScheduledTicket]:
        time.sleep(0.002)  # a fast machine reads all within the budget
        return step(tickets)

    monkeypatch.setattr(engine._backend, "_step", slow_step)
    open_project(editor)
    (item,) = await editor.suggest()
    assert item.insert_text
    first, second = engine.asked[-2:]
    assert first.budget_ms == 20
    assert second == attrs.evolve(first, id=second.id, budget_ms=second.budget_ms)
    assert second.budget_ms > 1000
