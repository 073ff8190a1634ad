"""Whole sessions of an editor with the language server and the engine: open, type, accept, fill, close, exit."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from support.lsp_editor import Editor, engine_home

from engine.library.resolve import EMBEDDED_FOLDER

CODE = "def total(items):\n    result = 0\n    for item in items:\n        result += |\n    return result\n"
URI = "file:///project/shop/total.py"


@pytest.fixture(scope="module")
def settings(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with engine_home(tmp_path_factory.mktemp("runtime"), tiny_model):
        yield {"model": str(tiny_model), "threads": 1, "gate": 0, "budgetMs": 2000, "maxTokens": 8}


@pytest_asyncio.fixture
async def editor(settings: dict[str, Any]) -> AsyncIterator[Editor]:
    editor = Editor()
    await editor.start({"midspan": settings}, pull={"maxLines": 4})
    yield editor
    await editor.stop()


async def test_a_user_types_and_accepts_a_suggestion(editor: Editor) -> None:
    await editor.open_ready("Shopping list:\n- |\n")

    (item,) = await editor.offered()
    assert item.command is not None
    editor.type(str(item.insert_text))
    await editor.command(item.command.command)
    await editor.suggest()

    report = await editor.command("midspan.status")
    assert report["state"] == "ready"
    assert report["accepted"] == 1
    assert report["shown"] >= 1
    assert report["medianMs"] > 0
    assert report["engine"]["fills"] >= 1
    assert report["engine"]["model"]["name"]
    assert editor.warnings() == []


async def test_a_filled_hole_comes_with_all_its_figures(editor: Editor) -> None:
    editor.open(CODE, URI, "python")

    answer = await editor.fill(progressToken="watch", steps=4)

    assert isinstance(answer.text, str)
    assert answer.steps >= 1
    assert answer.finish in {"complete", "deadline", "canvas full"}
    assert 0 <= answer.confidence <= 1
    assert answer.contextTokens >= answer.cachedTokens >= 0
    assert answer.ms.total >= answer.ms.denoise > 0
    assert answer.model
    assert answer.range.start.line == 3
    assert answer.range.start.character == editor.position().character
    assert editor.canvases, "the editor asked for progress"
    assert all(isinstance(token, str | None) for token in editor.canvases[-1])


@pytest.mark.parametrize("rule", ["default", "threshold", "entropy", "verify", "left-to-right"])
async def test_every_rule_fills_the_hole(editor: Editor, rule: str) -> None:
    editor.open(CODE, URI, "python")

    answer = await editor.fill(rule=rule)

    assert answer.tokens
    assert answer.rule == rule or rule == "default"


async def test_the_same_hole_gets_the_same_text_from_the_cache(editor: Editor) -> None:
    editor.open(CODE, URI, "python")

    first = await editor.fill(rule="left-to-right")
    second = await editor.fill(rule="left-to-right")

    assert first.text == second.text
    assert first.tokens == second.tokens
    assert second.cachedTokens > 0


async def test_code_with_crlf_and_emoji_is_filled_at_the_right_place(editor: Editor) -> None:
    editor.open('s = "🙂"\r\nif s:\r\n    |\r\nprint(s)\r\n', "file:///project/smile.py", "python")

    answer = await editor.fill()

    assert "\n" not in answer.text.replace("\r\n", "")
    assert answer.range.start.line == 2
    assert answer.range.start.character == 4


async def test_a_closed_document_is_forgotten(editor: Editor) -> None:
    editor.open(CODE, URI, "python")
    identifier = types.TextDocumentIdentifier(URI)
    editor.client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))

    assert await editor.suggest() == []
    with pytest.raises(JsonRpcException, match="is not open"):
        await editor.fill()


async def test_two_editors_share_the_engine(editor: Editor, settings: dict[str, Any]) -> None:
    other = Editor()
    await other.start(settings)
    editor.open(CODE, URI, "python")
    other.open(CODE, URI, "python")
    await editor.fill()
    await other.fill()

    first, second = await editor.command("midspan.status"), await other.command("midspan.status")

    assert first["engine"]["pid"] == second["engine"]["pid"]
    assert second["engine"]["clients"] == 2
    await other.stop()


async def test_an_engine_that_cannot_start_gives_one_clear_line(settings: dict[str, Any], tmp_path: Path) -> None:
    editor = Editor()
    await editor.start({**settings, "model": str(tmp_path / "no-such-model")})
    editor.open(CODE, URI, "python")

    assert await editor.suggest() == []
    for _ in range(2):
        with pytest.raises(JsonRpcException, match="no-such-model") as refusal:
            await editor.fill()
        assert "\n" not in refusal.value.message

    assert editor.warnings() == [f"Midspan: {refusal.value.message}"], "shown once, however often it is tried"
    assert (await editor.command("midspan.status"))["state"] == "error"
    await editor.stop()


async def test_the_embedded_model_fills_code_by_default(tmp_path: Path) -> None:
    with engine_home(tmp_path, Path("embedded")):
        editor = Editor()
        await editor.start({"budgetMs": 2000})
        editor.open(CODE, URI, "python")

        answer = await editor.fill()
        await editor.until("ready")
        await editor.suggest()

        assert answer.tokens
        assert answer.finish == "complete"
        report = await editor.command("midspan.status")
        assert report["engine"]["model"]["name"] == json.loads((EMBEDDED_FOLDER / "config.json").read_text())["name"]
        assert editor.warnings() == []
        await editor.stop()
