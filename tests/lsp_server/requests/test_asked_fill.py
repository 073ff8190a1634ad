"""What the language server asks of the engine: more of it for somebody who asks than for somebody who types."""

from pathlib import Path
from typing import Any

import pytest_asyncio
from support.lsp_editor import INVOKED, Editor
from support.recording_engine import RecordingEngine

from lsp_server.requests.suggestions import ASKED_FROM, MAX_SUGGESTIONS


@pytest_asyncio.fixture
async def ready(editor: Editor, engine: RecordingEngine, tiny_model: Path) -> Editor:
    settings: dict[str, Any] = {"model": str(tiny_model), "threads": 1, "gate": 0, "budgetMs": 400, "maxTokens": 8}
    await editor.start(settings)
    await editor.open_ready("total = |\nprint(total)\n")
    return editor


async def test_while_somebody_types_one_text_is_written_within_the_budget(
    ready: Editor, engine: RecordingEngine
) -> None:
    await ready.suggest()
    fill = engine.asked[-1]
    assert (fill.candidates, fill.choose_from, fill.budget_ms) == (1, 1, 400)


async def test_who_asks_gets_the_best_of_several_and_waits_for_it(ready: Editor, engine: RecordingEngine) -> None:
    await ready.suggest(INVOKED)
    fill = engine.asked[-1]
    assert (fill.candidates, fill.choose_from) == (MAX_SUGGESTIONS, ASKED_FROM)
    assert fill.budget_ms > 400


async def test_a_fill_by_command_leaves_the_number_to_the_engine(ready: Editor, engine: RecordingEngine) -> None:
    await ready.fill()
    assert engine.asked[-1].choose_from == 0
