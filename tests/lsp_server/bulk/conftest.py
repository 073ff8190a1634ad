"""An editor with code actions, for a session that needs no engine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from support.bulk_editor import BulkEditor


@pytest_asyncio.fixture
async def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BulkEditor]:
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / "runtime"))
    editor = BulkEditor()
    yield editor
    await editor.stop()
