"""The indentation of pasted lines, where the lines around them leave no doubt."""

import re
from collections.abc import Sequence

import attrs

from lsp_server.refactor.indentation import indent_unit
from lsp_server.refactor.output import ByteEdit
from lsp_server.refactor.syntax import Syntax

_BLANKS = re.compile(rb"[ \t]*")


@attrs.frozen
class _Line:
    """A line that is not blank: its first byte, its white space and the rest."""

    start: int
    indent: bytes
    text: bytes


def indent_edits(syntax: Syntax, start: int, end: int) -> list[ByteEdit]:
    """Return the replacements of the white space before the lines between two bytes.

    The line before and the line after say where the pasted lines belong if both are indented alike, or if the line
    before opens a block that had nothing in it. Else there are none.
    """
    lines = _lines(syntax.data)
    pasted = [line for line in lines if start <= line.start + len(line.indent) and line.start < end]
    above = [line for line in lines if line.start + len(line.indent) < start]
    below = [line for line in lines if line.start >= end]
    rest = attrs.evolve(syntax, data=syntax.data[:start] + syntax.data[end:])
    unit = indent_unit(rest, syntax.language).encode()
    base = _base(above, below, unit, syntax.language.indentation_is_syntax)
    if base is None or not pasted or any(syntax.in_string(line.start) for line in pasted[1:]):
        return []
    own = min((line.indent for line in pasted), key=len)
    if not all(line.indent.startswith(own) for line in pasted[1:]):
        return []
    # The first line may be pasted where the cursor was, after the white space that is there already.
    first = pasted[0].indent
    steps = [line.indent.removeprefix(own) for line in pasted[1:]]
    if len(first) != len(own) and first != base:
        return []
    old = min((step for step in steps if step), key=len, default=b"")
    if any(step != old * (len(step) // max(len(old), 1)) for step in steps):
        return []
    depths = [0, *(len(step) // len(old) if old else 0 for step in steps)]
    parts: list[ByteEdit] = []
    for line, depth in zip(pasted, depths, strict=True):
        wanted = base + unit * depth
        if line.indent != wanted:
            parts.append(ByteEdit(line.start, line.start + len(line.indent), wanted.decode()))
    return parts


def _base(above: Sequence[_Line], below: Sequence[_Line], unit: bytes, by_indent: bool) -> bytes | None:
    """Return the white space before a line that is put between others; None if they leave it open."""
    if not above:
        return None
    last = above[-1]
    opens = last.text.endswith(b":" if by_indent else b"{")
    following = below[0].indent if below else b""
    if opens:
        is_alone = len(following) <= len(last.indent)
        return last.indent + unit if is_alone or following == last.indent + unit else None
    return last.indent if following == last.indent else None


def _lines(data: bytes) -> list[_Line]:
    found: list[_Line] = []
    position = 0
    for line in data.split(b"\n"):
        if line.strip():
            match = _BLANKS.match(line)
            indent = match[0] if match else b""
            found.append(_Line(position, indent, line.strip()))
        position += len(line) + 1
    return found
