"""Qwen2.5-Coder 0.5B with its own weights, in an editor's session with the language server and the engine.

The weights come from `make coder`; without them these tests are skipped.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.coder import coder_or_skip
from support.kernel_passes import skip_without
from support.known_fills import KNOWN, Known
from support.lsp_editor import Editor, engine_home

ENDINGS = {"python": "py", "typescript": "ts", "go": "go", "rust": "rs", "java": "java"}
pytestmark = [pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    skip_without("plain")
    file = coder_or_skip()
    with engine_home(tmp_path_factory.mktemp("runtime"), file):
        yield file


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor(model: Path) -> AsyncIterator[Editor]:
    settings: dict[str, Any] = {"model": str(model), "threads": 1}
    editor = Editor()
    await editor.start({"midspan": settings}, pull={"budgetMs": 5000, "gate": 0})
    yield editor
    await editor.stop()


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: f"{known.language}: {known.what}")
async def test_a_hole_is_filled_as_it_is_known_to_be(editor: Editor, known: Known) -> None:
    editor.open(known.text, f"file:///project/known.{ENDINGS[known.language]}", known.language)
    filled = await editor.fill(rule="verify", budgetMs=60_000)
    editor.close()
    assert filled.text.split("\n")[0].rstrip("\r") == known.written.split("\n")[0]
    assert "Qwen" in filled.model


async def test_what_is_typed_along_is_suggested_to_its_end(editor: Editor) -> None:
    editor.open("def add(first, second):\n    return |\n", "file:///project/typed.py", "python")
    for typed, rest in (("f", "irst + second"), ("irst ", "+ second"), ("+ ", "second")):
        editor.type(typed)
        (item, *_) = await editor.suggest()
        assert str(item.insert_text).endswith(rest)
    editor.close()
