"""What does a search for places cost inline completion meanwhile, and the language server's memory?

Lines are typed into a real midspan-lsp, in turns while nothing else happens and while a repeated edit is searched in
2,000 files, those of the installed packages. Run `python benchmarks/refactor/refactor_typing.py`; the p95 of the
answers should be at most twice that of the quiet server. The engine is one of its own, with the embedded model; the
memory knows the open file only, because to learn 2,000 files takes the processor too.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import argparse
import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Callable

import attrs
import psutil
from lsprotocol import types

from benchmarks.common.sources import Span, typed_lines
from benchmarks.common.startup import stop_engine
from benchmarks.common.statistic import Percentiles
from benchmarks.refactor.refactor_workspace import targets
from engine.cli.cursor import Cursor
from engine.cli.json_rpc import LanguageServerError
from engine.cli.lsp_client import LspSession
from engine.protocol.editor_messages import FillOptions
from lsp_server.wire import BULK_EDIT, BulkAction, BulkEditParams

_EXAMPLE = "import os\n\nos.path.join(a, b)\n"
_TYPED = ", c"
_OFFSET = len("import os\n\nos.path.join(a, b")
_SEARCHES = 4


@attrs.frozen
class _Settings:
    memory: str = attrs.field(kw_only=True)


@attrs.frozen
class _Configuration:
    settings: _Settings


@attrs.frozen
class _Places:
    """The parts of a BulkEdit that are reported here."""

    title: str


@attrs.frozen
class _Search:
    """One search: its title with the counts, its seconds, and the server's megabytes at most and right after it."""

    title: str
    seconds: float
    most_mb: float
    after_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--lines", type=int, default=4, help="Lines that are typed before each search.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="midspan-bench-") as folder:
        os.environ["MIDSPAN_RUNTIME_DIR"] = os.environ["MIDSPAN_DATA_DIR"] = folder
        project = Path(folder, "project")
        for index, one in enumerate(targets(arguments.files)):
            copy = project / f"{index // 100:03}" / f"{index:05}.py"
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(one.folder, one.path), copy)
        asyncio.run(_measure(project, arguments.lines))


async def _measure(project: Path, lines: int) -> None:
    try:
        async with LspSession("embedded", workspace=project) as session:
            await session.rpc.notify("workspace/didChangeConfiguration", _Configuration(_Settings(memory="file")))
            spans = typed_lines(lines)
            await session.open(spans[0].path, spans[0].text)
            await session.fill(Cursor.at_offset(spans[0].path, spans[0].text, spans[0].offset), FillOptions())
            await session.close(spans[0].path)
            await _typed(session, spans, lambda: False)  # so that the engine has read these files before
            server = psutil.Process(session.pid)
            before_mb = _megabytes(server)
            idle: list[float] = []
            busy: list[float] = []
            searches: list[_Search] = []
            # In turns: what else the machine does then counts for both.
            for _ in range(_SEARCHES):
                idle += await _typed(session, spans, lambda: False)
                searching = asyncio.create_task(_search(session, project, server))
                while not searching.done():
                    busy += await _typed(session, spans, searching.done)
                searches.append(await searching)
            _print(idle, busy, before_mb, searches)
    finally:
        await stop_engine("embedded")


async def _typed(session: LspSession, spans: list[Span], is_over: Callable[[], bool]) -> list[float]:
    """Type lines, and return the milliseconds until each answer, without the first in each file that is opened."""
    times: list[float] = []
    for span in spans:
        await session.open(span.path, span.text)
        text = span.text
        for index, char in enumerate(span.middle):
            if is_over():
                break
            offset = span.offset + index
            await session.type_text(Cursor.at_offset(span.path, text, offset), char)
            text = text[:offset] + char + text[offset:]
            began = time.perf_counter()
            await session.suggest(Cursor.at_offset(span.path, text, offset + 1))
            if index:
                times.append((time.perf_counter() - began) * 1000)
        await session.close(span.path)
    return times


async def _search(session: LspSession, project: Path, server: psutil.Process) -> _Search:
    """Make an edit in a new file, and ask for its places in all files."""
    path = project / "example.py"
    await session.open(path, _EXAMPLE)
    await session.type_text(Cursor.at_offset(path, _EXAMPLE, _OFFSET), _TYPED)
    corner = types.Position(2, 0)
    action = BulkAction("repeat", "workspace", path.resolve().as_uri(), 2, types.Range(corner, corner))
    began = time.perf_counter()
    asking = asyncio.create_task(session.rpc.request(BULK_EDIT, BulkEditParams(action), _Places))
    most = 0.0
    while not asking.done():
        most = max(most, _megabytes(server))
        await asyncio.wait({asking}, timeout=0.05)
    try:
        title = (await asking).title
    except LanguageServerError as error:
        title = str(error)
    took = time.perf_counter() - began
    await session.close(path)
    return _Search(title, took, most, _megabytes(server))


def _megabytes(server: psutil.Process) -> float:
    return float(server.memory_info().rss) / 1e6


def _print(idle: list[float], busy: list[float], before_mb: float, searches: list[_Search]) -> None:
    quiet, searching = Percentiles.of(idle), Percentiles.of(busy)
    load = os.getloadavg()[0]
    print(f"milliseconds from a key to the answer; {os.cpu_count()} cores, load {load:.1f}")
    print(f"{'':10}{'answers':>8}{'p50':>8}{'p95':>8}")
    for name, one in (("quiet", quiet), ("searching", searching)):
        print(f"{name:10}{one.count:8}{one.p50:8.0f}{one.p95:8.0f}")
    print(f"{'ratio':18}{searching.p50 / quiet.p50:8.2f}{searching.p95 / quiet.p95:8.2f}")
    print(f"the server has {before_mb:.0f} MB before the searches")
    for each in searches:
        print(f"{each.title}: {each.seconds:.1f} s, at most {each.most_mb:.0f} MB, {each.after_mb:.0f} MB after it")


if __name__ == "__main__":
    main()
