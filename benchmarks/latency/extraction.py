"""How long does the language server take from a key press to the hole, in a long Python file?

Types into a file and measures each part: applying the change, parsing the text again, cutting the hole, and shaping a
fill. Run `python benchmarks/latency/extraction.py`; the first three together should take less than 5 ms.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import argparse
import statistics
import time

import attrs
from lsprotocol import types

from lsp_server.documents.store import Documents, offset_in
from lsp_server.hole.hole import cut_hole
from lsp_server.suggest.shape import shape

URI = "file:///project/long.py"
ENCODING = types.PositionEncodingKind.Utf16
TYPED = "\n    result = compute(first, second)\n    return result\n"
FILL = "total = sum(values)  # all of them"


@attrs.define
class Laps:
    """Milliseconds of each key, by part."""

    change: list[float] = attrs.field(factory=list)
    parse: list[float] = attrs.field(factory=list)
    cut: list[float] = attrs.field(factory=list)
    total: list[float] = attrs.field(factory=list)
    shape: list[float] = attrs.field(factory=list)


def long_text(lines: int) -> str:
    """Return `lines` lines of real code: modules of the standard library, one after the other."""
    collected: list[str] = []
    for path in sorted(Path(statistics.__file__).parent.glob("*.py")):
        collected += path.read_text(encoding="utf-8").splitlines()
        if len(collected) >= lines:
            return "\n".join(collected[:lines]) + "\n"
    raise SystemExit(f"the standard library has only {len(collected)} lines; ask for fewer with --lines")


def typing(text: str, line: int, laps: Laps) -> None:
    """Type TYPED at the end of `line`, one character a change, and time every key."""
    documents = Documents()
    documents.open(URI, "python", 0, text)
    documents.snapshot(URI)
    cursor = types.Position(line, len(text.split("\n")[line].encode("utf-16-le")) // 2)
    for version, char in enumerate(TYPED, 1):
        started = time.perf_counter()
        change = types.TextDocumentContentChangePartial(types.Range(cursor, cursor), char)
        documents.change(URI, version, [change], ENCODING)
        changed = time.perf_counter()
        snapshot = documents.snapshot(URI)
        assert snapshot is not None
        parsed = time.perf_counter()
        cursor = (
            types.Position(cursor.line + 1, 0) if char == "\n" else types.Position(cursor.line, cursor.character + 1)
        )
        hole = cut_hole(snapshot, offset_in(snapshot.source, cursor, ENCODING))
        cut = time.perf_counter()
        shape(FILL, hole, snapshot, 12)
        shaped = time.perf_counter()
        laps.change.append((changed - started) * 1000)
        laps.parse.append((parsed - changed) * 1000)
        laps.cut.append((cut - parsed) * 1000)
        laps.total.append((cut - started) * 1000)
        laps.shape.append((shaped - cut) * 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=20_000)
    arguments = parser.parse_args()
    ascii_text = long_text(arguments.lines).encode("ascii", "ignore").decode()
    print(f"{arguments.lines} lines, {len(ascii_text)} characters, Python {sys.version.split()[0]}; milliseconds")
    print(f"{'text':12}{'part':10}{'p50':>8}{'p95':>8}{'max':>8}")
    for name, text in (("ascii", ascii_text), ("with emoji", '"🙂"\n' + ascii_text)):
        laps = Laps()
        for place in (0.1, 0.5, 0.9):
            typing(text, int(arguments.lines * place), laps)
        for part in ("change", "parse", "cut", "total", "shape"):
            values = sorted(getattr(laps, part))
            p95 = values[int(len(values) * 0.95)]
            print(f"{name:12}{part:10}{statistics.median(values):8.2f}{p95:8.2f}{values[-1]:8.2f}")


if __name__ == "__main__":
    main()
