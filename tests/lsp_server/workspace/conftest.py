"""What the tests of the workspace's memory share."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.git_folder import git, repository
from support.lsp_editor import Editor
from support.recording_engine import RecordingEngine
from support.workspace_editor import PROJECT, Start, work_on


@pytest.fixture
def settings(tiny_model: Path) -> dict[str, Any]:
    return {"model": str(tiny_model), "threads": 1, "gate": 0, "maxTokens": 4, "budgetMs": 2000}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = repository(tmp_path / "project", PROJECT)
    (tmp_path / "outside.py").write_text("outside = 1\n")
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    (folder / "binary.py").write_bytes(b"\0\1\2")
    git(folder, "add", ".")
    return folder


@pytest_asyncio.fixture
async def start(settings: dict[str, Any], project: Path, engine: RecordingEngine) -> AsyncIterator[Start]:
    """Starts editors, each with a file of the project, or of other folders, open and its first request answered."""
    started: list[Editor] = []

    async def start(file: Path, *folders: Path, **changes: Any) -> Editor:
        started.append(editor := Editor())
        await editor.start({**settings, **changes}, folders=folders or [project])
        await work_on(editor, file)
        return editor

    yield start
    for editor in started:
        await editor.stop()


@pytest_asyncio.fixture
async def editor(start: Start, project: Path) -> Editor:
    """An editor in the project."""
    return await start(project / "main.py")
