"""One pipeline: inline completion, the completion menu, midspan/fill and the benchmarks' typing give the same text."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from support.lsp_editor import Editor, engine_home

from benchmarks.quality.suggester import Suggester
from benchmarks.quality.typing_tasks import TypingTask
from engine.fill.interface import Model
from engine.models.load import load
from engine.schedule.scheduler import Scheduler
from lsp_server.settings import Settings

TASKS = [
    TypingTask("total.py", "python", "def total(items):\n    result = ", "sum(items)", "\n    return result\n"),
    TypingTask("call.py", "python", "x = connect(", "host", ")\n"),
    TypingTask("notes.txt", "plaintext", "To do:\n- ", "buy milk", "\n"),
    TypingTask("body.py", "python", "def total(items):\n    ", "return 1", "\n\n\nprint(total([]))\n"),
]
# Left to right the answer depends on nothing but the hole.
# The simulation's scheduler here has no memory.
SETTINGS = Settings(gate=0.0, max_tokens=8, budget_ms=5000, rule="left-to-right", memory="off")


@pytest.fixture
def options(tiny_model: Path, tmp_path: Path) -> Iterator[dict[str, Any]]:
    with engine_home(tmp_path, tiny_model):
        yield {
            "model": str(tiny_model),
            "threads": 1,
            "gate": 0,
            "maxTokens": 8,
            "budgetMs": 5000,
            "rule": "left-to-right",
            "memory": "off",
            "completionItems": True,
        }


@pytest_asyncio.fixture
async def editor(editor: Editor, options: dict[str, Any]) -> Editor:
    await editor.start(options)
    return editor


@pytest.fixture
def model(tiny_model: Path) -> Model:
    return load(str(tiny_model), threads=1)


@pytest_asyncio.fixture
async def scheduler(model: Model) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(model)
    await scheduler.start()
    yield scheduler
    await scheduler.stop()


async def from_the_menu(editor: Editor) -> str:
    """Return what the menu's item inserts after the word that it replaces."""
    params = types.CompletionParams(types.TextDocumentIdentifier(editor.uri), editor.position())
    answer = await editor.client.text_document_completion_async(params)
    assert isinstance(answer, types.CompletionList)
    edits = [item.text_edit for item in answer.items]
    assert all(isinstance(edit, types.TextEdit) for edit in edits)
    return "".join(edit.new_text for edit in edits if isinstance(edit, types.TextEdit))


async def test_all_ways_to_a_suggestion_give_the_same_text(editor: Editor, scheduler: Scheduler, model: Model) -> None:
    texts: list[str] = []
    for task in TASKS:
        await editor.open_ready(f"{task.above}|{task.below}", f"file:///{task.path}", task.language)
        filled = await editor.fill()
        inline = "".join(str(item.insert_text) for item in await editor.suggest())
        simulated = await Suggester(scheduler, model.info, task, SETTINGS)(0)

        assert inline == filled.text
        assert simulated.text == filled.text
        assert await from_the_menu(editor) == filled.text
        texts.append(filled.text)
    assert any(texts), "a random model has something to say in one of these places"
