"""Suggestions as items of the completion menu, through a real server: when there are any, and their fields."""

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from support.lsp_editor import Editor, engine_home, eventually
from support.remote_server import ModelServer
from support.scripted_model import writes

DYNAMIC = types.TextDocumentClientCapabilities(completion=types.CompletionClientCapabilities(dynamic_registration=True))
ON = {"completionItems": True}


async def complete(editor: Editor) -> types.CompletionList:
    document = types.TextDocumentIdentifier(editor.uri)
    params = types.CompletionParams(document, editor.position())
    answer = await editor.client.text_document_completion_async(params)
    assert isinstance(answer, types.CompletionList)
    return answer


async def completed(editor: Editor) -> types.CompletionItem:
    """Type until there is an item: a random model often suggests nothing."""
    for char in "abcdefghijklmnopqrstuvwxyz" * 4:
        if items := (await complete(editor)).items:
            return items[0]
        editor.type(char)
    raise AssertionError("nothing is ever offered")


def rest_of(item: types.CompletionItem) -> str:
    """Return the text that an item adds to the word it replaces."""
    assert isinstance(item.text_edit, types.TextEdit)
    replaced = item.text_edit.range
    return item.text_edit.new_text[replaced.end.character - replaced.start.character :]


def registrations(editor: Editor) -> list[str]:
    """Return a list that collects each registration and unregistration."""
    seen: list[str] = []

    def register(params: types.RegistrationParams) -> None:
        seen.extend(f"+{each.method}" for each in params.registrations)

    def unregister(params: types.UnregistrationParams) -> None:
        seen.extend(f"-{each.method}" for each in params.unregisterations)

    editor.client.feature(types.CLIENT_REGISTER_CAPABILITY)(register)
    editor.client.feature(types.CLIENT_UNREGISTER_CAPABILITY)(unregister)
    return seen


async def test_completion_is_not_announced_by_default(editor: Editor) -> None:
    assert (await editor.start({"enabled": False})).capabilities.completion_provider is None


async def test_completion_is_announced_when_it_is_on_from_the_start(editor: Editor) -> None:
    provider = (await editor.start({"enabled": False, **ON})).capabilities.completion_provider

    assert provider is not None
    assert " " not in (provider.trigger_characters or [])


async def test_completion_that_is_turned_on_later_is_registered_and_unregistered(editor: Editor) -> None:
    seen = registrations(editor)
    await editor.start({"enabled": False}, pull=ON, text_document=DYNAMIC)
    await eventually(lambda: seen == ["+textDocument/completion"])

    editor.client.set_configuration({"completionItems": False}, section="midspan")
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings=None))

    await eventually(lambda: seen == ["+textDocument/completion", "-textDocument/completion"])


async def test_an_editor_without_registration_is_told_what_to_do(editor: Editor) -> None:
    await editor.start({"enabled": False}, pull=ON)

    await eventually(lambda: any("initializationOptions" in line.message for line in editor.client.log_messages))


async def test_an_item_replaces_the_word_before_the_cursor(editor: Editor, settings: dict[str, Any]) -> None:
    await editor.start({**settings, **ON})
    await editor.open_ready("🙂 total_pr|\n")

    item = await completed(editor)

    word = editor.text[2 : editor.offset]
    assert word.startswith("total_pr")
    assert isinstance(item.text_edit, types.TextEdit)
    assert item.text_edit.range == types.Range(editor.position(2), editor.position())
    assert item.text_edit.new_text.startswith(word)
    assert len(item.text_edit.new_text) > len(word)
    assert item.filter_text == item.text_edit.new_text
    assert item.label.startswith(word)
    assert "\n" not in item.label
    assert item.sort_text is not None
    assert item.sort_text > "zzz"
    assert not item.preselect
    assert item.command is not None
    assert item.command.command == "midspan.accepted"


async def test_the_editor_asks_again_and_typing_along_asks_no_engine(editor: Editor, settings: dict[str, Any]) -> None:
    await editor.start({**settings, **ON})
    await editor.open_ready("one two |\n")
    item = await completed(editor)
    while len(rest := rest_of(item)) < 2:
        editor.type("z")
        item = await completed(editor)
    asked = (await editor.command("midspan.status"))["asked"]

    editor.type(rest[0])
    answer = await complete(editor)

    assert answer.is_incomplete
    assert [rest_of(item) for item in answer.items] == [rest[1:]]
    assert (await editor.command("midspan.status"))["asked"] == asked


async def test_there_is_no_item_while_suggestions_are_off(editor: Editor, settings: dict[str, Any]) -> None:
    await editor.start({**settings, **ON})
    await editor.open_ready("one two |\n")
    await completed(editor)

    await editor.command("midspan.toggle")

    assert not (await complete(editor)).items


AS_IS, ADJUST = types.InsertTextMode.AsIs, types.InsertTextMode.AdjustIndentation


@pytest.mark.parametrize(
    ("modes", "default", "mode", "text"),
    [
        (None, None, None, "a(\n        b\n    )"),
        (None, ADJUST, None, "a(\n    b\n)"),
        ([AS_IS], None, AS_IS, "a(\n        b\n    )"),
        ([AS_IS, ADJUST], ADJUST, AS_IS, "a(\n        b\n    )"),
        ([ADJUST], None, ADJUST, "a(\n    b\n)"),
    ],
)
async def test_an_item_is_indented_as_the_editor_inserts_it(
    editor: Editor,
    server: ModelServer,
    tmp_path: Path,
    modes: list[types.InsertTextMode] | None,
    default: types.InsertTextMode | None,
    mode: types.InsertTextMode | None,
    text: str,
) -> None:
    support = types.ClientCompletionItemInsertTextModeOptions(modes) if modes else None
    completion = types.CompletionClientCapabilities(
        completion_item=types.ClientCompletionItemOptions(insert_text_mode_support=support), insert_text_mode=default
    )
    server.behaviour = writes([("a(\n", 0.99), ("        b\n", 0.99), ("    )", 0.99)])
    with engine_home(tmp_path, server.model("openai")):
        options = {"model": server.model("openai"), "gate": 0, "budgetMs": 5000, **ON}
        await editor.start(options, text_document=types.TextDocumentClientCapabilities(completion=completion))
        await editor.open_ready("def f():\n    |\n", "file:///project/a.py", "python")

        (item,) = (await complete(editor)).items

        assert item.insert_text_mode == mode
        assert isinstance(item.text_edit, types.TextEdit)
        assert item.text_edit.new_text == text
        await editor.stop()


async def test_inline_completion_works_beside_the_menu(editor: Editor, settings: dict[str, Any]) -> None:
    await editor.start({**settings, **ON})
    await editor.open_ready("one two |\n")
    (item,) = await editor.offered()

    (same,) = (await complete(editor)).items

    assert rest_of(same) == item.insert_text
