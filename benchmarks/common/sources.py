"""The real files that the benchmarks type and cut: this project's own, and the standard library's.

The embedded model was trained on neither. All choices are by position, so two runs type the same.
"""

import argparse
import json.decoder
import textwrap
from pathlib import Path

import attrs

_FROZEN = Path(__file__).resolve().parents[2] / "tests" / "data" / "sources"
_PATHS = (
    _FROZEN / "protocol.py.txt",
    Path(json.decoder.__file__),
    Path(textwrap.__file__),
    _FROZEN / "client.py.txt",
    Path(argparse.__file__),
)
_SHORTEST_LINE = 20
_BLOCK_LINES = (2, 3, 5, 7)


@attrs.frozen
class Span:
    """A piece of a file: `text` is the file without it, `offset` its position there, `middle` the piece itself."""

    path: Path
    text: str
    offset: int
    middle: str


def typed_lines(count: int) -> list[Span]:
    """Return `count` lines of code to type from the indentation to the end, spread over all files."""
    return _spread([[_cut_line(path, lines, index, 0.0) for index in _code(lines)] for path, lines in _files()], count)


def line_holes(count: int) -> list[Span]:
    """Return `count` holes from a third of a line of code to its end."""
    return _spread([[_cut_line(path, lines, index, 0.34) for index in _code(lines)] for path, lines in _files()], count)


def block_holes(count: int) -> list[Span]:
    """Return `count` holes of two to seven whole lines of one block, without the first line's indentation."""
    return _spread([_blocks(path, lines) for path, lines in _files()], count)


def middle_line(path: Path) -> Span | None:
    """Return the line of code in the middle of a file, to be typed; None if the file has none."""
    lines = path.read_text("utf-8").split("\n")
    code = _code(lines)
    return _cut_line(path, lines, code[len(code) // 2], 0.0) if code else None


def _files() -> list[tuple[Path, list[str]]]:
    return [(path, path.read_text("utf-8").split("\n")) for path in _PATHS]


def _code(lines: list[str]) -> list[int]:
    """Return the indices of the lines that are probably code: long enough, neither comment nor docstring."""
    inside, code = False, []
    for index, line in enumerate(lines):
        quotes = line.count('"""')
        if not inside and not quotes and len(line.strip()) >= _SHORTEST_LINE and not line.lstrip().startswith("#"):
            code.append(index)
        inside ^= quotes % 2 == 1
    return code


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _cut_line(path: Path, lines: list[str], index: int, share: float) -> Span:
    line = lines[index]
    first = _indentation(line)
    column = first + int((len(line) - first) * share)
    return _cut(path, lines, index, column, index)


def _blocks(path: Path, lines: list[str]) -> list[Span]:
    code = set(_code(lines))
    blocks = []
    for number, index in enumerate(sorted(code)):
        last = index + _BLOCK_LINES[number % len(_BLOCK_LINES)] - 1
        indentation = _indentation(lines[index])
        block = lines[index : last + 1]
        whole = last < len(lines) and all(line.strip() and _indentation(line) >= indentation for line in block)
        if indentation and whole and '"""' not in "".join(block):
            blocks.append(_cut(path, lines, index, indentation, last))
    return blocks


def _cut(path: Path, lines: list[str], first: int, column: int, last: int) -> Span:
    before = "\n".join([*lines[:first], lines[first][:column]])
    after = "\n".join(["", *lines[last + 1 :]])
    middle = "\n".join(lines[first : last + 1])[column:]
    return Span(path if path.suffix == ".py" else path.with_suffix(""), before + after, len(before), middle)


def _spread(by_file: list[list[Span]], count: int) -> list[Span]:
    """Choose about the same number from each file, evenly over its length."""
    chosen: list[Span] = []
    for rest, spans in zip(range(len(by_file), 0, -1), by_file, strict=True):
        share = min(len(spans), round((count - len(chosen)) / rest))
        chosen.extend(spans[(2 * number + 1) * len(spans) // (2 * share)] for number in range(share))
    return chosen
