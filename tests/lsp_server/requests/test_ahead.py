"""What comes after the suggestion on the screen is filled ahead, while the user reads, if the model is slow."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from support.lsp_editor import PATIENCE_S, Editor, engine_home, eventually
from support.recording_engine import RecordingEngine

from engine.client.launcher import EngineOptions
from lsp_server.requests.ahead import SLOW_MS, Ahead
from lsp_server.server import MidspanServer
from lsp_server.suggest.restraint import Restraint

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def settings(slow_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Settings with which each fill takes tens of passes of a slow model."""
    with engine_home(tmp_path_factory.mktemp("runtime"), slow_model):
        yield {
            "model": str(slow_model),
            "threads": 1,
            "gate": 0,
            "rule": "left-to-right",
            "maxTokens": 24,
            "budgetMs": 1000 * PATIENCE_S / 12,
        }


@pytest_asyncio.fixture
async def editor(editor: Editor, settings: dict[str, Any]) -> Editor:
    await editor.start(settings)
    await editor.open_ready("one two |\n\n")
    return editor


async def counts(editor: Editor) -> tuple[int, int]:
    """Return how many fills this session asked for, and how many the engine made."""
    report = await editor.command("midspan.status")
    return report["asked"], report["engine"]["fills"] + report["engine"]["cancelled"]


async def suggestion_with_fill_ahead(editor: Editor) -> str:
    """Type until there is a suggestion, and wait for the fill after it."""
    asked_before, made_before = await counts(editor)
    (item,) = await editor.offered()
    asked = (await counts(editor))[0]
    # Each request was answered, so each made a fill. The one after them may be over by now.
    made = made_before + asked - asked_before
    seen = [made]

    async def more() -> bool:
        seen.append((await counts(editor))[1])
        return seen[-1] > made

    while not await more():
        assert len(seen) < 10_000, "nothing was filled ahead"
    assert (await counts(editor))[0] == asked, "the user asked for nothing more"
    return str(item.insert_text)


async def test_after_a_suggestion_is_taken_the_next_one_is_there_already(editor: Editor) -> None:
    ahead: list[str] = []
    while not ahead:  # A random model often has nothing to suggest.
        text = await suggestion_with_fill_ahead(editor)
        before = await counts(editor)
        editor.type(text)
        ahead = [str(item.insert_text) for item in await editor.suggest()]
        assert (await counts(editor))[0] == before[0], "no fill was asked for"

    assert (await editor.fill()).text == ahead[0], "a fill now says the same"


async def test_another_text_than_the_suggestion_is_filled_as_usual(editor: Editor) -> None:
    text = await suggestion_with_fill_ahead(editor)
    asked, _ = await counts(editor)
    editor.type("#" + text)
    await editor.suggest()
    assert (await counts(editor))[0] == asked + 1


async def test_while_a_suggestion_is_typed_along_the_fill_after_it_is_kept(editor: Editor) -> None:
    text = await suggestion_with_fill_ahead(editor)
    before = await counts(editor)
    for key in text:
        editor.type(key)
        await editor.suggest()
    assert (await counts(editor))[0] <= before[0] + 1, "at most a start of a line is asked for again"
    await eventually(lambda: editor.states[-1] == "ready")


async def test_a_file_that_new_settings_exclude_is_not_filled_ahead(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / "runtime"))
    engine = RecordingEngine(tiny_model)
    await engine.start()
    server = MidspanServer()
    server.protocol.client_capabilities = types.ClientCapabilities()
    session = server.session
    session.link.configure(EngineOptions(model=str(tiny_model)))
    await session.link.client()
    session.board.took(SLOW_MS)
    aheads = {name: Ahead(session, Restraint()) for name in ("excluded", "kept")}
    for name, ahead in aheads.items():
        uri = f"file:///project/{name}.txt"
        session.open(types.TextDocumentItem(uri, "plaintext", 0, f"{name}\n"))
        snapshot = session.served(uri)
        assert snapshot is not None
        ahead.aim(snapshot, len(name), " text")
    session.configuration.update({"exclude": ["excluded.txt"]})
    await eventually(lambda: bool(engine.ahead))
    # Fills ahead begin in the order in which they were aimed at.
    assert [fill.prefix for fill in engine.ahead] == ["kept text"]
    for ahead in aheads.values():
        ahead.drop()
    await session.link.close()
    await engine.stop()
