"""How long does one key keep the language server from anything else, in files that are hard to parse?

Keys are typed into the middle of each file in a real midspan-lsp whose event loop is measured (loop_probe.py), in
processor time. Run `python benchmarks/latency/slow_keys.py`; no step of the loop should take more than 20 ms.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from types import NoneType

import attrs
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.common.startup import stop_engine
from engine.cli.cursor import Cursor
from engine.cli.json_rpc import JsonRpc, LanguageServerError
from engine.cli.lsp_client import LspSession
from engine.protocol.editor_messages import FillOptions

_NOTHING = "midspan/nothing"
_PROBE = Path(__file__).resolve().parent / "loop_probe.py"
_CALM_S = 0.15
"""The server has done all that a key brings when its loop took no long step for this time."""
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
    """Milliseconds: the longest step of the event loop for each key, its processor time, and the time to the answer.

    `opened` is the longest step for the opening of the file.
    """

    longest: list[float] = attrs.field(factory=list)
    processor: list[float] = attrs.field(factory=list)
    answered: list[float] = attrs.field(factory=list)
    opened: float = 0.0


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
    columns = (
        "file",
        "longest step, ms: median, most",
        "all steps, ms: median",
        "to the answer, ms: median",
        "open, ms",
    )
    table = Table(*columns, title="One key in a file that is hard to parse")
    workspace = folder / "project"
    workspace.mkdir()
    try:
        for number, file in enumerate(files):
            steps = Steps(folder / f"steps{number}")
            command = sys.executable, "-P", str(_PROBE), str(steps.path)
            async with LspSession(model, workspace=workspace, encoding="utf-16", command=command) as session:
                small = workspace / "warm.py"
                await session.open(small, "x = 1\n")
                await session.fill(Cursor(small, "x = 1\n", 1, 0), FillOptions())
                figures = await _typed(session, file, workspace / file.name, keys, steps)
            longest = f"{_median(figures.longest):.1f}, {max(figures.longest):.1f}"
            parts = f"{_median(figures.processor):.1f}", f"{_median(figures.answered):.1f}", f"{figures.opened:.1f}"
            table.add_row(file.what, longest, *parts)
    finally:
        await stop_engine(model)
    Console(highlight=False, width=140).print(table)


class Steps:
    """The long steps of the server's event loop, as the probe writes them down."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0

    def new(self) -> list[float]:
        """Return the milliseconds of the steps since the last call."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        new, self._read = lines[self._read :], len(lines)
        return [float(line) for line in new]

    async def until_calm(self) -> list[float]:
        """Return the steps until there is none for a moment."""
        all_steps: list[float] = []
        until = time.perf_counter() + _MOST_S
        while time.perf_counter() < until:
            await asyncio.sleep(_CALM_S)
            if not (new := self.new()):
                break
            all_steps += new
        return all_steps


async def _typed(session: LspSession, file: HardFile, path: Path, keys: int, steps: Steps) -> KeyFigures:
    figures = KeyFigures()
    await steps.until_calm()
    await session.open(path, file.text)
    await _answered(session.rpc)
    figures = attrs.evolve(figures, opened=max(await steps.until_calm(), default=0.0))
    cursor = Cursor.at_offset(path, file.text, file.offset)
    for char in (file.typed * keys)[:keys]:
        began = time.perf_counter()
        await session.type_text(cursor, char)
        line_ends = char == "\n"
        cursor = Cursor(path, "", cursor.line + line_ends, 0 if line_ends else cursor.character + 1)
        await session.suggest(cursor)
        figures.answered.append((time.perf_counter() - began) * 1000)
        taken = await steps.until_calm()
        figures.longest.append(max(taken, default=0.0))
        figures.processor.append(sum(taken))
    return figures


async def _answered(rpc: JsonRpc) -> None:
    """Wait until the server has read all that was sent to it."""
    with suppress(LanguageServerError):
        await rpc.request(_NOTHING, None, NoneType)


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


if __name__ == "__main__":
    typer.run(main)
