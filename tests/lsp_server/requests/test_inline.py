"""Inline completion through a real server and engine. A tiny random model writes the texts, the rules always hold."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from support.lsp_editor import INVOKED, PATIENCE_S, Editor, engine_home, eventually

# The grammar of TSX reads this until its time is over.
ENDLESS = "let a = 1;\n 1foofoo[items:\\ \t{[/*];\r\n\n' = ;, [fooend = (do}items:\")/*{]"
# Slow enough to catch a running request: hundreds of tokens, each in a pass of its own.
SLOW = {"rule": "left-to-right", "maxTokens": 512, "budgetMs": 5000, "maxLines": 64}


@pytest_asyncio.fixture
async def editor(editor: Editor, settings: dict[str, Any]) -> Editor:
    await editor.start(settings)
    return editor


@pytest_asyncio.fixture
async def slow_editor(settings: dict[str, Any], slow_model: Path) -> AsyncIterator[Editor]:
    editor = Editor()
    await editor.start({**settings, **SLOW, "model": str(slow_model)})
    yield editor
    await editor.stop()


async def engine_counts(editor: Editor) -> dict[str, Any]:
    report = await editor.command("midspan.status")
    return dict(report["engine"])


async def until_cancelled(editor: Editor, count: int) -> None:
    """Wait until the engine has cancelled this many fills: it does so between two steps."""
    deadline = time.monotonic() + PATIENCE_S
    while (cancelled := (await engine_counts(editor))["cancelled"]) != count:
        assert time.monotonic() < deadline, f"{cancelled} fills were cancelled, not {count}"


@pytest.mark.slow
async def test_opening_a_document_starts_the_engine_and_the_editor_sees_it(
    settings: dict[str, Any], tiny_model: Path, tmp_path: Path
) -> None:
    with engine_home(tmp_path, tiny_model):
        editor = Editor()
        await editor.start(settings)
        editor.open("To do:\n- |\n")

        await editor.suggest()
        assert (await editor.command("midspan.status"))["asked"] == 1, "it has waited for the engine"
        await editor.until("ready")

        assert editor.states[0] == "idle"
        assert "starting" in editor.states
        reports: dict[Any, Any] = editor.client.progress_reports  # values, not the messages that pytest-lsp annotates
        (bar,) = reports.values()
        assert (bar[0].kind, bar[-1].kind) == ("begin", "end")
        await editor.stop()


@pytest.mark.parametrize("encoding", list(types.PositionEncodingKind))
async def test_an_automatic_suggestion_is_one_item_at_the_cursor(
    settings: dict[str, Any], encoding: types.PositionEncodingKind
) -> None:
    editor = Editor(encoding)
    await editor.start(settings)
    await editor.open_ready("🙂🙂 ä: |\r\nend\r\n")

    (item,) = await editor.offered()

    assert item.range == types.Range(editor.position(), editor.position())
    assert isinstance(item.insert_text, str)
    assert item.insert_text
    assert item.command is not None
    assert item.command.command == "midspan.accepted"
    assert "\n" not in item.insert_text.replace("\r\n", "")
    await editor.stop()


async def test_a_user_who_asks_gets_up_to_three_different_suggestions(editor: Editor) -> None:
    await editor.open_ready("one two |\n")
    await editor.offered()

    items = await editor.suggest(INVOKED)

    texts = [item.insert_text for item in items]
    assert 1 <= len(texts) <= 3
    assert len(set(texts)) == len(texts)


async def test_typing_along_a_suggestion_does_not_ask_the_engine(editor: Editor) -> None:
    await editor.open_ready("one two |\n")
    (item,) = await editor.offered()
    text = str(item.insert_text)
    while len(text) < 2:
        editor.type("z")
        (item,) = await editor.offered()
        text = str(item.insert_text)
    asked = (await editor.command("midspan.status"))["asked"]

    editor.type(text[0])
    (rest,) = await editor.suggest()

    assert rest.insert_text == text[1:]
    assert rest.range == types.Range(editor.position(), editor.position())
    report = await editor.command("midspan.status")
    assert report["asked"] == asked
    assert report["reused"] == 1


async def test_the_status_says_when_a_file_is_cut_by_its_lines(editor: Editor) -> None:
    await editor.open_ready(f"{ENDLESS}|", "file:///project/odd.tsx", "typescriptreact")

    await editor.suggest(INVOKED)

    assert "odd.tsx takes too long to parse" in (await editor.command("midspan.status"))["message"]
    editor.open("x = |\n", "file:///project/plain.py", "python")
    await editor.suggest(INVOKED)
    assert "too long" not in (await editor.command("midspan.status"))["message"]


async def test_nothing_is_answered_for_a_text_that_came_while_the_parse_was_waited_for(editor: Editor) -> None:
    await editor.open_ready(f"{ENDLESS}|", "file:///project/odd.tsx", "typescriptreact")

    filled = asyncio.ensure_future(editor.fill())
    suggested = asyncio.ensure_future(editor.suggest(INVOKED))
    await asyncio.sleep(0)  # Both are sent.
    editor.version -= 1  # The edit brings the same version again: only the text tells.
    editor.type("\n\n")

    with pytest.raises(JsonRpcException, match="changed while its hole was filled"):
        await filled
    assert await suggested == []


async def test_the_newest_request_cancels_the_older_one_in_the_engine(slow_editor: Editor) -> None:
    editor = slow_editor
    await editor.open_ready("one two |\n\n\n")
    before = await engine_counts(editor)

    older = asyncio.ensure_future(editor.suggest(INVOKED))
    newer = asyncio.ensure_future(editor.suggest())

    assert await older == []
    await newer
    await until_cancelled(editor, before["cancelled"] + 1)


async def test_an_edit_cancels_the_running_request(slow_editor: Editor) -> None:
    editor = slow_editor
    await editor.open_ready("one two |\n\n\n")
    before = await engine_counts(editor)

    running = asyncio.ensure_future(editor.suggest(INVOKED))
    await editor.until("busy")
    editor.type("x")

    assert await running == []
    await until_cancelled(editor, before["cancelled"] + 1)


async def test_a_request_that_the_editor_cancels_is_cancelled_in_the_engine(slow_editor: Editor) -> None:
    editor = slow_editor
    await editor.open_ready("one two |\n\n\n")
    before = await engine_counts(editor)
    protocol: Any = editor.client.protocol  # pygls annotates it in part only

    running = asyncio.ensure_future(
        protocol.send_request_async(types.TEXT_DOCUMENT_INLINE_COMPLETION, editor.question(INVOKED), msg_id="it")
    )
    await editor.until("busy")
    editor.client.cancel_request(types.CancelParams("it"))

    with pytest.raises(JsonRpcException) as refusal:
        await running
    assert refusal.value.code == types.LSPErrorCodes.RequestCancelled.value
    await until_cancelled(editor, before["cancelled"] + 1)


async def test_a_suggestion_continues_the_selected_item_of_the_menu(editor: Editor) -> None:
    await editor.open_ready("list.app|\n")
    replaced = types.Range(editor.position(5), editor.position())
    items: list[types.InlineCompletionItem] = []
    for number in range(200):
        selected = f"append{number}"
        if items := await editor.suggest(selected=types.SelectedCompletionInfo(replaced, selected)):
            break

    (item,) = items
    assert str(item.insert_text).startswith(selected)
    assert len(str(item.insert_text)) > len(selected)
    assert item.range == replaced


async def test_nothing_is_shown_that_the_gate_hides_unless_the_user_asks(settings: dict[str, Any]) -> None:
    editor = Editor()
    await editor.start({**settings, "gate": 1})
    await editor.open_ready("one two |\n")

    for char in "abc":
        assert await editor.suggest() == []
        editor.type(char)
    assert (await editor.command("midspan.status"))["asked"] == 3
    items = await editor.suggest(INVOKED)
    assert items
    assert all("\n" not in str(item.insert_text) for item in items), "a guess is one line"
    await editor.stop()


async def test_a_user_who_asks_before_the_engine_runs_waits_for_it(settings: dict[str, Any]) -> None:
    editor = Editor()
    await editor.start(settings)
    editor.open("one two |\n")
    assert await editor.suggest(INVOKED)
    assert editor.warnings() == []
    await editor.stop()


async def test_a_secret_file_and_a_language_that_is_off_are_never_sent(settings: dict[str, Any]) -> None:
    editor = Editor()
    await editor.start({**settings, "languages": {"javascriptreact": False}})
    await editor.open_ready("one two |\n")
    asked = (await editor.command("midspan.status"))["asked"]

    editor.open("PASSWORD=|\n", "file:///project/.env")
    assert await editor.suggest() == await editor.suggest(INVOKED) == []
    editor.open("let a = |\n", "file:///project/a.jsx", "javascriptreact")
    assert await editor.suggest() == await editor.suggest(INVOKED) == []
    assert [line.partition(";")[0] for line in editor.warnings()] == [
        'Midspan: this file is left alone: it matches ".env" of the setting midspan.exclude',
        "Midspan: suggestions are switched off for javascriptreact",
    ], "only a user who asks is told why"
    assert (await editor.command("midspan.status"))["asked"] == asked
    await editor.stop()


async def test_a_link_to_a_secret_file_is_never_sent(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PASSWORD=\n")
    (tmp_path / "notes.txt").symlink_to(tmp_path / ".env")
    await editor.open_ready("one two |\n")
    asked = (await editor.command("midspan.status"))["asked"]
    editor.open("PASSWORD=|\n", (tmp_path / "notes.txt").as_uri())
    assert await editor.suggest(INVOKED) == []
    assert (await editor.command("midspan.status"))["asked"] == asked


async def test_a_killed_engine_costs_only_one_suggestion(editor: Editor) -> None:
    await editor.open_ready("one two |\n")
    pid = (await engine_counts(editor))["pid"]

    psutil.Process(pid).kill()
    await eventually(lambda: editor.states[-1] == "error")
    assert await editor.suggest() == []
    while editor.states[-1] != "ready":
        await editor.suggest()
        await asyncio.sleep(0.05)

    assert (await engine_counts(editor))["pid"] != pid
    assert await editor.offered()
    assert editor.warnings() == []


@pytest.mark.slow
async def test_the_engine_can_be_restarted_by_command(editor: Editor) -> None:
    await editor.open_ready("one two |\n")
    before = (await engine_counts(editor))["pid"]

    await editor.command("midspan.restartEngine")

    assert (await engine_counts(editor))["pid"] != before
