"""An editor's positions in a text: lines, and columns in the code units of the agreed encoding."""

import re
from typing import Protocol

from lsprotocol import types

from lsp_server.documents.source import Source

Encoding = types.PositionEncodingKind | str
_HALF = re.compile("[\ud800-\udfff]")


class LineAndCharacter(Protocol):
    """A position as LSP has it, whichever class a message has for it."""

    @property
    def line(self) -> int: ...

    @property
    def character(self) -> int: ...


def offset_in(source: Source, position: LineAndCharacter, encoding: Encoding) -> int:
    """Return the index of `position` in the text. A position past the end of a line or the text is clamped to it.

    A position inside a character means its start.
    """
    if position.line >= len(source.lines):
        return len(source.text)
    start, end = source.lines.start(position.line), source.line_end(position.line)
    if encoding == types.PositionEncodingKind.Utf8:
        byte = source.lines.byte_start(position.line) + position.character
        return min(source.offset_of_byte(byte), end) if byte < len(source.data) else end
    if not source.is_wide or encoding == types.PositionEncodingKind.Utf32:
        return min(start + position.character, end)
    return _offset_of_unit(source.text, start, end, position.character)


def position_in(source: Source, offset: int, encoding: Encoding) -> types.Position:
    """Return the position of `offset`. It is clamped to the text and, between "\\r" and "\\n", to the line's end."""
    offset = min(max(offset, 0), len(source.text))
    line = source.lines.at(offset)
    start, offset = source.lines.start(line), min(offset, source.line_end(line))
    if encoding == types.PositionEncodingKind.Utf8:
        return types.Position(line, source.byte_at(offset) - source.lines.byte_start(line))
    if not source.is_wide or encoding == types.PositionEncodingKind.Utf32:
        return types.Position(line, offset - start)
    return types.Position(line, _utf16_length(source.text[start:offset]))


def _offset_of_unit(text: str, start: int, end: int, unit: int) -> int:
    """Return the last offset from `start` to `end` that at most `unit` units of UTF-16 lie before.

    Bisection: each step counts the half that is left, in C. A loop over characters takes half a second in a line of
    two million.
    """
    low, high = start, min(end, start + unit)
    while low < high:
        middle = (low + high + 1) // 2
        units = _utf16_length(text[low:middle])
        if units <= unit:
            low, unit = middle, unit - units
        else:
            high = middle - 1
    return low


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def with_halves_joined(old: str, start: int, end: int, text: str) -> tuple[int, int, str]:
    """Return an edit of `old[start:end]` to `text`, widened where a half meets its other one at a border.

    Two halves of a character (surrogates) that come in two edits become one, as in an editor that counts UTF-16.
    """
    before, after = old[max(start - 1, 0) : start], old[end : end + 1]
    if _is_high(before) and _is_low(text[:1] or after):
        start, text = start - 1, before + text
    if _is_high(text[-1:]) and _is_low(after):
        end, text = end + 1, text + after
    if _HALF.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return start, end, text


def _is_high(half: str) -> bool:
    return "\ud800" <= half <= "\udbff"


def _is_low(half: str) -> bool:
    return "\udc00" <= half <= "\udfff"
