"""What the tests of real language servers share."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.lsp_editor import Editor, engine_home, ready_session
from support.recording_engine import RecordingEngine


@pytest.fixture(scope="module")
def settings(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Settings that use the tiny model and show all that it writes, with an engine for the tests of a module."""
    with engine_home(tmp_path_factory.mktemp("runtime"), tiny_model):
        yield {"model": str(tiny_model), "threads": 1, "gate": 0, "budgetMs": 2000, "maxTokens": 8}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(settings: dict[str, Any]) -> AsyncIterator[Editor]:
    """One session for all tests of a module."""
    async with ready_session(settings) as editor:
        yield editor


@pytest_asyncio.fixture
async def editor() -> AsyncIterator[Editor]:
    """An editor without a server yet; one that the test starts ends with it."""
    editor = Editor()
    yield editor
    await editor.stop()


@pytest_asyncio.fixture
async def engine(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RecordingEngine]:
    """An engine of the tiny model in the test's own process, which keeps the fills that it is asked for."""
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / "runtime"))
    engine = RecordingEngine(tiny_model)
    await engine.start()
    yield engine
    await engine.stop()
