"""How long does one key keep the language server from answering anything else, in files that are hard to parse?

Keys are typed into the middle of each file in a real midspan-lsp. While a key is answered, requests of a method that
does not exist are sent one after the other: the longest time until such an answer is how long the event loop was busy
at a stretch. Run `python benchmarks/slow_keys.py`; no key should keep it for more than 20 ms.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import NoneType

import attrs
import typer
from rich.console import Console
from rich.table import Table
from startup import stop_engine

from engine.cli.cursor import Cursor
from engine.cli.json_rpc import JsonRpc, LanguageServerError
from engine.cli.lsp_client import LspSession
from engine.cli.lsp_messages import FillOptions

_NOTHING = "midspan/nothing"
_CALM_MS = 4.0
"""The loop is calm again when three answers in a row came within this time."""
_MOST_S = 20.0


@attrs.frozen
class HardFile:
    """A file, and the text that is typed at `offset`, a character of it."""

    name: str
    what: str
    text: str
    offset: int
    typed: str


@attrs.frozen
class KeyFigures:
    """Milliseconds: the longest the loop was busy at a stretch for a key, the time to its answer, processor time."""

    busy: list[float]
    answered: list[float]
    processor: list[float]
    opened: float


def hard_files() -> list[HardFile]:
    """Return the files, all of a size that is served."""
    long_line = "lorem ipsum " * 79_000 + "é" + " dolor sit " * 79_000
    minified = "".join(f"function a{i}(b,c){{return b?c*{i}:d(b,`é`)}}var e{i}=a{i}(1,2);" for i in range(6400))
    braces = '{"a":\n' * 10_000 + "1\n" + "}\n" * 10_000
    parentheses = "value = " + "(" * 10_000 + "1" + ")" * 10_000 + "\n"
    python = "".join(f"def f{i}(a, b):\n    c = a + {i}\n    return c * b\n\n" for i in range(25_000))
    row = '{"id": 17, "name": "first", "tags": ["a", "b"], "more": {"deep": null}}, '
    broken = "[" + (row * 3000 + "{{ ") * 2 + row * 10
    indented = "".join("  " * depth + "if a:\n" for depth in range(400)) + "  " * 400 + "pass\n"
    small = "def add(a, b):\n    return a + b\n\n" * 20
    return [
        HardFile("small.py", "60 lines of Python", small, small.index("return", 300), "total = a + b"),
        _in_middle("long.txt", "a line of 1.7 MB with one é", long_line, " word word wo"),
        _in_middle("min.js", "minified JavaScript, 400 kB", minified, "var total=a+1;"),
        HardFile("braces.json", "10,000 nested braces", braces, braces.index("1"), '"key": [1, 2'),
        HardFile("parens.py", "10,000 nested parentheses", parentheses, parentheses.index("1"), "total + value"),
        _in_middle("long.py", "100,000 lines of Python", python, "\nresult = f12"),
        _in_middle("broken.json", "broken JSON in one line", broken, ', "key": [1, 2'),
        HardFile("indented.py", "400 nested blocks", indented, len(indented) - 1, "\ntotal = a + 1"),
    ]


def main(keys: int = 12, only: str = "", model: str = "embedded") -> None:
    """Type `keys` keys into each file, or into the one that is called `only`."""
    files = [file for file in hard_files() if only in file.name]
    with tempfile.TemporaryDirectory(prefix="midspan-bench-") as folder:
        os.environ["MIDSPAN_RUNTIME_DIR"] = os.environ["MIDSPAN_DATA_DIR"] = folder
        asyncio.run(_measure(files, keys, model, Path(folder).resolve()))


def _in_middle(name: str, what: str, text: str, typed: str) -> HardFile:
    return HardFile(name, what, text, len(text) // 2, typed)


async def _measure(files: Sequence[HardFile], keys: int, model: str, folder: Path) -> None:
    columns = ("file", "busy at a stretch, ms: median, most", "to the answer, ms: median", "processor, ms", "open, ms")
    table = Table(*columns, title="One key in a file that is hard to parse")
    workspace = folder / "project"
    workspace.mkdir()
    try:
        for file in files:
            async with LspSession(model, workspace=workspace, encoding="utf-16") as session:
                small = workspace / "warm.py"
                await session.open(small, "x = 1\n")
                await session.fill(Cursor(small, "x = 1\n", 1, 0), FillOptions())
                figures = await _typed(session, file, workspace / file.name, keys)
            busy = f"{_median(figures.busy):.1f}, {max(figures.busy):.1f}"
            parts = f"{_median(figures.answered):.1f}", f"{_median(figures.processor):.1f}", f"{figures.opened:.1f}"
            table.add_row(file.what, busy, *parts)
    finally:
        await stop_engine(model)
    Console(highlight=False, width=140).print(table)


async def _typed(session: LspSession, file: HardFile, path: Path, keys: int) -> KeyFigures:
    text, figures = file.text, KeyFigures([], [], [], 0.0)
    await session.open(path, text)
    figures = attrs.evolve(figures, opened=await _longest(session.rpc, None))
    cursor = Cursor.at_offset(path, text, file.offset)
    for char in (file.typed * keys)[:keys]:
        before, began = _processor_ms(session.pid), time.perf_counter()
        await session.type_text(cursor, char)
        line_ends = char == "\n"
        after = Cursor(path, "", cursor.line + line_ends, 0 if line_ends else cursor.character + 1)
        asked = asyncio.create_task(session.suggest(after))
        asked.add_done_callback(lambda _, began=began: figures.answered.append((time.perf_counter() - began) * 1000))
        figures.busy.append(await _longest(session.rpc, asked))
        await asked
        figures.processor.append(_processor_ms(session.pid) - before)
        cursor = after
    return figures


async def _longest(rpc: JsonRpc, asked: asyncio.Task[object] | None) -> float:
    """Return the longest time in ms to an answer, until `asked` is done and the loop is calm."""
    longest, calm, until = 0.0, 0, time.perf_counter() + _MOST_S
    while (calm < 3 or (asked is not None and not asked.done())) and time.perf_counter() < until:
        began = time.perf_counter()
        with suppress(LanguageServerError):
            await rpc.request(_NOTHING, None, NoneType)
        took = (time.perf_counter() - began) * 1000
        longest, calm = max(longest, took), calm + 1 if took < _CALM_MS else 0
        await asyncio.sleep(0.002)
    return longest


def _processor_ms(pid: int) -> float:
    """Return how long the main thread of a process has run."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e6


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


if __name__ == "__main__":
    typer.run(main)
