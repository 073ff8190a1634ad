"""Workspaces of many files: how long until they are learned, what they take, and how typing feels meanwhile."""

import asyncio
import shutil
import time
from pathlib import Path

import attrs
import psutil

from benchmarks.common.startup import stop_engine
from benchmarks.common.statistic import Percentiles
from benchmarks.refactor.refactor_workspace import targets
from benchmarks.scale.scale_editors import KEY_S
from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession
from engine.client.launcher import EngineOptions, connect_or_start
from engine.protocol.editor_messages import FillOptions

_POLL_S = 0.1
_STILL_S = 5.0
"""The engine has learned what it will learn when it has learned nothing for this long."""
_LINE = "    result = [each for each in values if each is not None]"


@attrs.frozen
class WorkspaceFigures:
    """So many files on the disk: seconds from the first fill until all are learned, of which the user typed some first.

    `text` is their size in MB. `key` is from a key to its answer while the files are learned, in ms. The engine then
    has `known` files with so many million `tokens`, in `memory` MB of `resident`: fewer if its bound is reached.
    """

    files: int
    text: float
    seconds: float
    typed_s: float
    key: Percentiles
    known: int
    tokens: float
    memory: float
    resident: float


async def learn_workspace(model: str, files: int, keys: int, folder: Path) -> WorkspaceFigures:
    """Write a workspace, open a file of it, type `keys` keys while the engine learns, then wait for the rest.

    `folder` is a real path that does not exist yet.
    """
    await stop_engine(model)
    written = _write(files, folder)
    path = folder / "typed.py"
    text = "import os\n\n\ndef chosen(values):\n\n    return values\n"
    path.write_text(text, "utf-8")
    async with LspSession(model, workspace=folder) as session:
        await session.open(path, text)
        await session.fill(Cursor(path, text, 4, 0), FillOptions())
        began = time.perf_counter()
        taken = await _type(session, path, keys)
        typed_s = time.perf_counter() - began
        client = await connect_or_start(EngineOptions(model=model), "midspan-bench")
        try:
            seen = await client.memory_status(str(folder))
            last = time.perf_counter()
            # The typed file is one more.
            while seen.files <= files and time.perf_counter() - last < _STILL_S:
                await asyncio.sleep(_POLL_S)
                now = await client.memory_status(str(folder))
                last = time.perf_counter() if now.files != seen.files else last
                seen = now
            resident = psutil.Process(client.welcome.pid).memory_info().rss
        finally:
            await client.close()
    shutil.rmtree(folder)
    return WorkspaceFigures(
        files=files,
        text=written / 1e6,
        seconds=last - began,
        typed_s=typed_s,
        key=Percentiles.of(taken),
        known=seen.files,
        tokens=seen.tokens / 1e6,
        memory=seen.bytes / 1e6,
        resident=resident / 1e6,
    )


async def _type(session: LspSession, path: Path, keys: int) -> list[float]:
    taken, due = [], time.perf_counter()
    for typed, char in enumerate((_LINE * keys)[:keys]):
        started = time.perf_counter()
        await session.type_text(Cursor(path, "", 4, typed), char)
        await session.suggest(Cursor(path, "", 4, typed + 1))
        taken.append((time.perf_counter() - started) * 1000)
        due += KEY_S
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
    return taken


def _write(files: int, folder: Path) -> int:
    """Copy files of the installed packages and return their bytes. Where there are too few, copy them again."""
    folder.mkdir()
    sources, written, size = targets(files), 0, 0
    while written < files:
        for source in sources[: files - written]:
            copy = folder / f"part{written // len(sources)}" / source.path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(source.folder, source.path), copy)
            written, size = written + 1, size + copy.stat().st_size
    return size
