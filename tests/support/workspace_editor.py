"""An editor in a project whose files an engine is to learn."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from lsprotocol import types

from support.lsp_editor import INVOKED, Editor
from support.recording_engine import RecordingEngine

PROJECT = {
    ".gitignore": "ignored.py\n",
    ".env": "PASSWORD=hunter2\n",
    "ignored.py": "ignored = 1\n",
    "README.txt": "no source\n",
    "main.py": "import shop\n",
    "shop/cart.py": "class Cart:\n    pass\n",
    "shop/secrets.yaml": "key: hunter2\n",
}
LEARNED = {"main.py": "import shop\n", "shop/cart.py": "class Cart:\n    pass\n"}
Change = types.FileChangeType
Start = Callable[..., Awaitable[Editor]]


def open_file(editor: Editor, file: Path) -> None:
    """Open a file with the cursor at its end."""
    editor.open(file.read_text() + "|", file.as_uri(), "python")


def name_of(folder: Path) -> str:
    """Return the name that the engine knows a workspace folder by."""
    return os.path.realpath(folder)


async def work_on(editor: Editor, file: Path) -> None:
    """Open a file and ask for suggestions there until the engine has answered."""
    open_file(editor, file)
    await editor.until("ready")
    await editor.suggest()


async def reconnect(editor: Editor) -> None:
    """Ask for suggestions until the server has found the engine again."""
    while editor.states[-1] != "ready":
        await editor.suggest(INVOKED)


def report(editor: Editor, change: Change, *paths: Path) -> None:
    """Report changes on the disk, as an editor that watches files does."""
    events = [types.FileEvent(path.as_uri(), change) for path in paths]
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(events))


def use_settings(editor: Editor, settings: dict[str, Any]) -> None:
    pushed = types.DidChangeConfigurationParams({"midspan": settings})
    editor.client.workspace_did_change_configuration(pushed)


def learned(engine: RecordingEngine, folder: Path, texts: dict[str, str]) -> Callable[[], bool]:
    return lambda: engine.texts(folder) == texts


def bars(editor: Editor) -> list[list[Any]]:
    """Return the reports of each progress bar for the reading of a workspace."""
    reports: dict[Any, list[Any]] = editor.client.progress_reports
    return [bar for bar in reports.values() if bar and getattr(bar[0], "title", "") == "Reading the workspace"]
