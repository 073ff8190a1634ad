"""When suggestions come by themselves, and when only on request: the setting `automatic` and the command to snooze."""

import time
from typing import Any

import pytest
from pygls.exceptions import JsonRpcException
from support.lsp_editor import INVOKED, Editor, eventually


async def test_without_automatic_suggestions_only_a_user_who_asks_gets_one(
    editor: Editor, settings: dict[str, Any]
) -> None:
    await editor.start({**settings, "automatic": False})
    await editor.open_ready("one two |\n")
    for char in "abc":
        assert await editor.suggest() == []
        editor.type(char)
    (first, *_) = await editor.suggest(INVOKED)
    text = str(first.insert_text)
    for typed, key in enumerate(text[:-1], 1):
        editor.type(key)
        rest, *_ = await editor.suggest()
        assert rest.insert_text == text[typed:], "what was asked for stays"
    editor.type("#")
    assert await editor.suggest() == []
    assert (await editor.command("midspan.status"))["asked"] == 1


async def test_a_snooze_keeps_suggestions_away_until_it_ends(editor: Editor, settings: dict[str, Any]) -> None:
    await editor.start(settings)
    await editor.open_ready("one two |\n")
    assert await editor.offered()

    before = time.time()
    until = (await editor.command("midspan.snooze", 5))["until"]
    assert before + 300 <= until <= time.time() + 300
    await eventually(lambda: editor.statuses[-1].snoozedUntil == until)
    assert editor.statuses[-1].state == "off"
    assert editor.statuses[-1].message == f"Snoozed until {time.strftime('%H:%M', time.localtime(until))}."
    assert (await editor.command("midspan.status"))["snoozedUntil"] == until
    assert await editor.suggest() == []
    assert await editor.suggest(INVOKED), "the user asked"

    assert (await editor.command("midspan.snooze", 0))["until"] is None
    await eventually(lambda: editor.statuses[-1].snoozedUntil is None)
    assert editor.statuses[-1].state == "ready"
    assert await editor.offered()


async def test_a_snooze_ends_by_itself(editor: Editor, settings: dict[str, Any]) -> None:
    await editor.start(settings)
    await editor.open_ready("one two |\n")

    until = (await editor.command("midspan.snooze", 0.01))["until"]
    await eventually(lambda: editor.statuses[-1].state == "ready" and editor.statuses[-1].snoozedUntil is None)

    assert time.time() >= until
    assert await editor.offered()


async def test_the_switch_ends_a_snooze(editor: Editor, settings: dict[str, Any]) -> None:
    await editor.start(settings)
    await editor.open_ready("one two |\n")
    await editor.command("midspan.snooze", 5)

    assert (await editor.command("midspan.toggle"))["enabled"], "nothing is shown, so it is switched on"
    await eventually(lambda: editor.statuses[-1].snoozedUntil is None)
    assert await editor.offered()
    assert not (await editor.command("midspan.toggle"))["enabled"]


@pytest.mark.parametrize("arguments", [(), (-1,), ("five",), (True,), (1, 2), (1e9,)])
async def test_minutes_that_are_none_are_refused_in_one_line(
    editor: Editor, settings: dict[str, Any], arguments: tuple[object, ...]
) -> None:
    await editor.start({**settings, "enabled": False})
    with pytest.raises(JsonRpcException, match=r"midspan\.snooze takes minutes: a number from 0 to 10080"):
        await editor.command("midspan.snooze", *arguments)


async def test_settings_that_come_after_the_request_exclude_its_file_too(
    editor: Editor, settings: dict[str, Any]
) -> None:
    await editor.start(settings, pull={**settings, "exclude": ["*.txt"]})
    editor.open("one two |\n")
    # The editor is asked for its settings while this request waits for the engine.
    assert await editor.suggest(INVOKED) == []
    assert (await editor.command("midspan.status"))["asked"] == 0
