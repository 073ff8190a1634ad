"""The starts of a text's lines, in characters and in UTF-8 bytes, updated with every keystroke."""

import re
from array import array
from bisect import bisect_right

import attrs

_LINE_END = re.compile("\r\n|\r|\n")


@attrs.frozen
class Lines:
    """An immutable table of line starts. Lines end with "\\n", "\\r\\n" or "\\r", as in LSP.

    A keystroke moves every line below it. Instead of rewriting thousands of entries, the lines after `pivot` have a
    pending shift. While the edits stay on one line, all versions share the arrays.
    """

    _chars: "array[int]"
    _bytes: "array[int]"
    _pivot: int = 0
    _char_shift: int = 0
    _byte_shift: int = 0
    rows_differ: bool = False
    """Whether the text ever had a lone "\\r". Tree-sitter's rows, which end only with "\\n", differ then."""

    @classmethod
    def of(cls, text: str) -> "Lines":
        """Return the table of a text."""
        chars, lone = _starts(text)
        if text.isascii():
            return cls(chars, chars, rows_differ=lone)
        sizes = array("q", [0])
        for first, end in zip(chars, [*chars[1:], len(text)], strict=True):
            sizes.append(sizes[-1] + utf8_length(text[first:end]))
        return cls(chars, sizes[:-1], rows_differ=lone)

    def __len__(self) -> int:
        return len(self._chars)

    def start(self, line: int) -> int:
        """Return the character at which `line` starts."""
        return self._chars[line] + (self._char_shift if line > self._pivot else 0)

    def byte_start(self, line: int) -> int:
        """Return the byte at which `line` starts."""
        return self._bytes[line] + (self._byte_shift if line > self._pivot else 0)

    def at(self, offset: int) -> int:
        """Return the line that contains the character `offset`. The end of the text is on the last line."""
        return self._search(self._chars, self._char_shift, offset)

    def at_byte(self, byte: int) -> int:
        """Return the line that contains `byte`."""
        return self._search(self._bytes, self._byte_shift, byte)

    def _search(self, starts: "array[int]", shift: int, value: int) -> int:
        below = self._pivot + 1
        if below < len(starts) and value >= starts[below] + shift:
            return bisect_right(starts, value - shift, lo=below) - 1
        return bisect_right(starts, value, hi=min(below, len(starts))) - 1

    def replaced(self, old: str, start: int, end: int, new: str) -> "Lines":
        """Return the table after `old[start:end]` became `new`."""
        first, last = self.at(start), self.at(end)
        removed = old[start:end]
        char_growth = len(new) - len(removed)
        byte_growth = utf8_length(new) - utf8_length(removed)
        # One character more on each side: an edit between "\r" and "\n" makes or breaks the line end there.
        touched = removed + new + old[start - 1 : start] + old[end : end + 1]
        if first == last and "\n" not in touched and "\r" not in touched:
            return self._moved_to(first)._shifted(char_growth, byte_growth)
        top, bottom = max(first - 1, 0), last + 2
        char_top, byte_top = self.start(top), self.byte_start(top)
        char_end = self.start(bottom) if bottom < len(self) else len(old)
        piece = old[char_top:start] + new + old[end:char_end]
        new_lines = Lines.of(piece)
        # The table of a piece that ends with a line end has one entry too many: the start of the line below.
        keep = len(new_lines) if bottom >= len(self) else len(new_lines) - 1
        settled = self._moved_to(top)
        chars = settled._chars[: top + 1]
        sizes = settled._bytes[: top + 1]
        chars.extend(char_top + value for value in new_lines._chars[1:keep])
        sizes.extend(byte_top + value for value in new_lines._bytes[1:keep])
        pivot = len(chars) - 1
        settled = settled._moved_to(bottom - 1) if bottom < len(self) else settled
        chars.extend(settled._chars[bottom:])
        sizes.extend(settled._bytes[bottom:])
        return Lines(
            chars,
            sizes,
            pivot,
            settled._char_shift + char_growth,
            settled._byte_shift + byte_growth,
            self.rows_differ or new_lines.rows_differ,
        )

    def _shifted(self, chars: int, sizes: int) -> "Lines":
        return attrs.evolve(self, char_shift=self._char_shift + chars, byte_shift=self._byte_shift + sizes)

    def _moved_to(self, pivot: int) -> "Lines":
        """Return an equal table whose pending shift starts after `pivot`."""
        if pivot == self._pivot:
            return self
        chars = _settled(self._chars, self._pivot, pivot, self._char_shift)
        sizes = _settled(self._bytes, self._pivot, pivot, self._byte_shift)
        return attrs.evolve(self, chars=chars, bytes=sizes, pivot=pivot)


def utf8_length(text: str) -> int:
    """Return the length of `text` in UTF-8 bytes. Half a surrogate pair, which an editor may send, counts as three."""
    return len(text) if text.isascii() else len(encode(text))


def encode(text: str) -> bytes:
    """Return `text` in UTF-8, halves of surrogate pairs included."""
    return text.encode("utf-8", "surrogatepass")


def _starts(text: str) -> tuple["array[int]", bool]:
    starts = array("q", [0])
    lone = False
    for match in _LINE_END.finditer(text):
        starts.append(match.end())
        lone = lone or match.group() == "\r"
    return starts, lone


def _settled(starts: "array[int]", old: int, new: int, shift: int) -> "array[int]":
    low, high = min(old, new) + 1, max(old, new) + 1
    sign = shift if new > old else -shift
    moved = starts[:]
    moved[low:high] = array("q", [value + sign for value in starts[low:high]])
    return moved
