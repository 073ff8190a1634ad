"""Suggestions through a real server are shown, accepted, accepted in part or dismissed, and counted."""

from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from support.lsp_editor import INVOKED, Editor, eventually

from engine.usage_file import StatisticsFile, Tally, by_language, statistics_path


@pytest_asyncio.fixture
async def editor(editor: Editor, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Editor:
    """An editor with statistics of its own, its document open and the engine ready."""
    monkeypatch.setenv("MIDSPAN_DATA_DIR", str(tmp_path))
    await editor.start(settings)
    await editor.open_ready("one two |\n")
    return editor


async def offered(editor: Editor, characters: int = 1) -> types.InlineCompletionItem:
    """Type until an item with at least this many characters is offered."""
    while True:
        (item,) = await editor.offered()
        if len(str(item.insert_text)) >= characters:
            return item
        editor.type("z")


async def accept(editor: Editor, item: types.InlineCompletionItem) -> None:
    assert item.command is not None
    editor.type(str(item.insert_text))
    await editor.command(item.command.command, *(item.command.arguments or []))


def report_part(editor: Editor, item: types.InlineCompletionItem, accepted_length: int) -> None:
    """Report an accepted part as Copilot's clients do: with the item's command, and with or without its text."""
    assert item.command is not None
    command = {"title": "", "command": item.command.command, "arguments": item.command.arguments}
    params = {"item": {"command": command, "insertText": item.insert_text}, "acceptedLength": accepted_length}
    editor.raw_notification("textDocument/didPartiallyAcceptCompletion", params)


async def counts(editor: Editor) -> list[int]:
    report = await editor.command("midspan.status")
    return [report[name] for name in ("shown", "accepted", "partial", "dismissed")]


async def counted(editor: Editor) -> Tally:
    """End the session, and return the counts in its file for the language of its document."""
    await editor.stop()
    return by_language(StatisticsFile(statistics_path()).read())["plaintext"]


async def test_a_dismissed_suggestion_is_not_shown_again_until_the_text_changes(editor: Editor) -> None:
    await offered(editor)
    asked = (await editor.command("midspan.status"))["asked"]

    await editor.dismiss()

    assert await editor.suggest() == []
    assert await editor.suggest() == []
    report = await editor.command("midspan.status")
    assert report["asked"] == asked, "the engine is not asked for what nobody wants to see"
    assert report["dismissed"] == 1
    assert await editor.offered(), "a change of the text brings suggestions back"


async def test_the_rest_of_a_dismissed_suggestion_is_not_reused(editor: Editor) -> None:
    item = await offered(editor, characters=2)
    await editor.dismiss()
    before = await editor.command("midspan.status")

    editor.type(str(item.insert_text)[0])
    await editor.suggest()

    after = await editor.command("midspan.status")
    assert (after["asked"], after["reused"]) == (before["asked"] + 1, before["reused"])


async def test_a_dismissed_suggestion_is_shown_when_the_user_asks(editor: Editor) -> None:
    await offered(editor)
    await editor.dismiss()

    assert await editor.suggest(INVOKED)


async def test_a_dismissal_has_its_column_in_the_editors_encoding(settings: dict[str, Any]) -> None:
    editor = Editor(types.PositionEncodingKind.Utf8)
    await editor.start(settings)
    await editor.open_ready("🙂 ä |\n")
    await offered(editor)

    await editor.dismiss()

    assert await editor.suggest() == []
    await editor.stop()


async def test_a_malformed_dismissal_is_refused(editor: Editor) -> None:
    with pytest.raises(JsonRpcException):
        await editor.command("midspan.dismissed", {"uri": editor.uri})
    with pytest.raises(JsonRpcException):
        await editor.command("midspan.dismissed", editor.uri, {"line": 0, "character": 0})
    editor.uri = "file:///project/never-opened.txt"
    await editor.dismiss()

    assert (await editor.command("midspan.status"))["dismissed"] == 0


async def test_typing_along_a_suggestion_does_not_count_it_again(editor: Editor) -> None:
    item = await offered(editor, characters=3)
    shown = (await editor.command("midspan.status"))["shown"]
    for char in str(item.insert_text)[:2]:
        editor.type(char)
        assert await editor.suggest()

    report = await editor.command("midspan.status")
    assert report["shown"] == shown
    assert (await counted(editor)).shown == shown


async def test_accepting_counts_the_characters_that_were_not_typed(editor: Editor) -> None:
    item = await offered(editor, characters=3)
    editor.type(str(item.insert_text)[0])
    (rest,) = await editor.suggest()

    await accept(editor, rest)

    assert (await editor.command("midspan.status"))["accepted"] == 1
    tally = await counted(editor)
    assert (tally.accepted, tally.characters) == (1, len(str(rest.insert_text)))


async def test_accepted_parts_and_then_the_whole_count_each_character_once(editor: Editor) -> None:
    item = await offered(editor, characters=3)
    report_part(editor, item, 1)
    report_part(editor, item, 2)
    await accept(editor, item)

    report = await editor.command("midspan.status")
    assert (report["partial"], report["accepted"]) == (1, 1)
    tally = await counted(editor)
    assert (tally.partial, tally.accepted, tally.characters) == (1, 1, len(str(item.insert_text)))


async def test_an_accepted_part_has_the_length_that_the_editor_reports(editor: Editor) -> None:
    report_part(editor, await offered(editor, characters=3), 2)
    tally = await counted(editor)
    assert (tally.partial, tally.accepted, tally.characters) == (1, 0, 2)


async def test_for_an_editor_that_reports_what_it_shows_only_reports_count(editor: Editor) -> None:
    item = await offered(editor)
    assert item.command is not None
    command = {"title": "", "command": item.command.command, "arguments": item.command.arguments}
    editor.raw_notification("textDocument/didShowCompletion", {"item": {"command": command}})
    editor.raw_notification("textDocument/didShowCompletion", {"item": {"command": command}})
    shown = (await editor.command("midspan.status"))["shown"]

    editor.type("0")
    await offered(editor)

    assert (await editor.command("midspan.status"))["shown"] == shown


async def test_items_of_other_servers_are_not_counted(editor: Editor) -> None:
    await offered(editor)
    before = await counts(editor)
    for item in (
        {},
        {"command": {"title": "", "command": "other.accepted", "arguments": [{"offer": 1}]}},
        {"command": {"title": "", "command": "midspan.accepted", "arguments": ["text"]}},
        {"command": {"title": "", "command": "midspan.accepted"}},
    ):
        editor.raw_notification("textDocument/didShowCompletion", {"item": item})
        editor.raw_notification("textDocument/didPartiallyAcceptCompletion", {"item": item, "acceptedLength": 1})

    assert await counts(editor) == before


@pytest.mark.slow
async def test_a_disk_that_refuses_gives_one_log_line(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_DATA_DIR", str(tmp_path / "file" / "data"))
    (tmp_path / "file").touch()
    editor = Editor()
    await editor.start(settings)
    await editor.open_ready("one two |\n")
    await accept(editor, await offered(editor))

    await eventually(lambda: any("midspan stats" in line.message for line in editor.client.log_messages))

    assert editor.warnings() == []
    assert await editor.offered()
    await editor.stop()
    (line,) = (line.message for line in editor.client.log_messages if "midspan stats" in line.message)
    assert "set MIDSPAN_DATA_DIR to a folder that you can write" in line
