"""Keys typed into files from 1 kB to 10 MB, through a real language server, and what is refused."""

import time
from pathlib import Path

import attrs
from extraction import long_text
from statistic import Percentiles

from engine.cli.cursor import Cursor
from engine.cli.json_rpc import LanguageServerError
from engine.cli.lsp_client import LspSession
from engine.cli.lsp_messages import FillOptions

_LINES = 20_000
_TYPED = "    result = compute(first, second)"


@attrs.frozen
class FileFigures:
    """Of one size in bytes: ms from opening to the first fill, ms from a key to its answer, and what midspan/fill says.

    `told` is empty for a file that is filled.
    """

    size: int
    opened_ms: float
    key: Percentiles
    told: str


async def type_into_sizes(model: str, sizes: list[int], keys: int, folder: Path) -> list[FileFigures]:
    """Type `keys` keys into the middle of a file of each size. All are real Python code, repeated where it is short."""
    code, figures = long_text(_LINES).encode("ascii", "ignore").decode(), []
    async with LspSession(model, workspace=folder) as session:
        for size in sizes:
            text = (code * (1 + size // len(code)))[:size]
            figures.append(await _type_into(session, folder / f"file{size}.py", text, keys))
    return figures


async def _type_into(session: LspSession, path: Path, text: str, keys: int) -> FileFigures:
    middle = Cursor.at_offset(path, text, text.rfind("\n", 0, len(text) // 2) + 1)
    line, told, taken = middle.line, "", []
    started = time.perf_counter()
    await session.open(path, text)
    try:
        await session.fill(middle, FillOptions())
    except LanguageServerError as error:
        told = str(error).rpartition(": ")[2]
    opened_ms = (time.perf_counter() - started) * 1000
    for typed, char in enumerate((_TYPED * keys)[:keys]):
        started = time.perf_counter()
        await session.type_text(Cursor(path, "", line, typed), char)
        await session.suggest(Cursor(path, "", line, typed + 1))
        taken.append((time.perf_counter() - started) * 1000)
    await session.close(path)
    return FileFigures(len(text), opened_ms, Percentiles.of(taken), told)
