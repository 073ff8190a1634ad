"""Text that is put together from parts of a file and new parts, as edits of the file."""

from collections.abc import Sequence

import attrs

from lsp_server.documents.source import Source
from lsp_server.refactor.file_edit import TextEdit
from lsp_server.refactor.syntax import Syntax


@attrs.frozen
class Kept:
    """A part of the file, in UTF-8 bytes."""

    start: int
    end: int


Piece = Kept | str


@attrs.frozen
class ByteEdit:
    """Replace the UTF-8 bytes from `start` to `end` by `text`."""

    start: int
    end: int
    text: str

    def in_text(self, source: Source) -> TextEdit:
        """Return the same edit, in characters too."""
        offset = source.offset_of_byte
        return TextEdit(self.start, self.end, offset(self.start), offset(self.end), self.text)


class Output:
    """The text that takes the place of a match, with the indentation of the line it is on."""

    def __init__(self, syntax: Syntax, start: int, newline: str) -> None:
        self.pieces: list[Piece] = []
        self._syntax = syntax
        self._newline = newline
        self._indent = syntax.line_indent(start)

    @property
    def indent(self) -> str:
        """The indentation of the line that is being written."""
        return self._indent

    def text(self, text: str) -> None:
        """Add new text. Its line ends become those of the file."""
        if not text:
            return
        last = text.rpartition("\n")[2]
        if "\n" in text:
            self._indent = last[: len(last) - len(last.lstrip(" \t"))]
        self.pieces.append(text.replace("\r\n", "\n").replace("\n", self._newline))

    def keep(self, start: int, end: int) -> None:
        """Add a part of the file. Its lines move along with the line that they are on now."""
        for piece in self.moved(start, end):
            self.pieces.append(piece)
        part = self._syntax.data[start:end]
        if b"\n" in part:
            self._indent = _shifted(self._syntax.line_indent(start), self._indent, self._syntax.line_indent(end))

    def moved(self, start: int, end: int) -> list[Piece]:
        """Return a part of the file as it is on the line that is being written: its lines are indented anew."""
        data = self._syntax.data
        old, new = self._syntax.line_indent(start), self._indent
        if old == new or b"\n" not in data[start:end]:
            return [Kept(start, end)] if end > start else []
        pieces: list[Piece] = []
        position = start
        for line in self._line_starts(start, end):
            content = data[line:end].split(b"\n", 1)[0]
            indent = content[: len(content) - len(content.lstrip(b" \t"))].decode()
            if not content.strip() and line + len(content) < end:
                continue
            shifted = _shifted(old, new, indent)
            if shifted != indent:
                pieces.append(Kept(position, line))
                pieces.append(shifted)
                position = line + len(indent)
        if end > position:
            pieces.append(Kept(position, end))
        return pieces

    def _line_starts(self, start: int, end: int) -> list[int]:
        """Return where lines start in a part of the file, without those inside strings."""
        starts = list[int]()
        byte = self._syntax.data.find(b"\n", start, end)
        while byte != -1:
            if not self._syntax.in_string(byte):
                starts.append(byte + 1)
            byte = self._syntax.data.find(b"\n", byte + 1, end)
        return starts


def edits_of(pieces: Sequence[Piece], start: int, end: int) -> list[ByteEdit]:
    """Return the edits that turn the file from `start` to `end` into the pieces. What is in order is not edited."""
    edits: list[ByteEdit] = []
    position, text = start, ""
    for piece in _joined(pieces):
        if isinstance(piece, Kept) and position <= piece.start and piece.end <= end:
            if text or piece.start > position:
                edits.append(ByteEdit(position, piece.start, text))
            position, text = piece.end, ""
        elif isinstance(piece, str):
            text += piece
        else:
            raise ValueError("a part of the file is out of order; make it a text first")
    if text or end > position:
        edits.append(ByteEdit(position, end, text))
    return edits


def in_order(pieces: Sequence[Piece], syntax: Syntax, start: int, end: int) -> list[Piece]:
    """Return the pieces with the parts of the file that moved as text. The longest parts stay."""
    kept = [(index, piece) for index, piece in enumerate(pieces) if isinstance(piece, Kept)]
    best = _longest_rising([piece for _, piece in kept], start, end)
    stay = {kept[position][0] for position in best}
    return [
        piece if isinstance(piece, str) or index in stay else syntax.text(piece.start, piece.end)
        for index, piece in enumerate(pieces)
    ]


def _longest_rising(parts: Sequence[Kept], start: int, end: int) -> list[int]:
    """Return the indices of the parts in rising order that have the most bytes together."""
    weights: list[int] = []
    before: list[int] = []
    for index, part in enumerate(parts):
        if part.start < start or part.end > end:
            weights.append(-1)
            before.append(-1)
            continue
        fitting = [other for other in range(index) if weights[other] >= 0 and parts[other].end <= part.start]
        previous = max(fitting, key=lambda other: weights[other], default=-1)
        weights.append(part.end - part.start + (weights[previous] if previous >= 0 else 0))
        before.append(previous)
    chain: list[int] = []
    index = max(range(len(parts)), key=lambda other: weights[other], default=-1)
    while index >= 0 and weights[index] >= 0:
        chain.append(index)
        index = before[index]
    return chain[::-1]


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if isinstance(piece, Kept) and isinstance(last, Kept) and last.end == piece.start:
            joined[-1] = Kept(last.start, piece.end)
        else:
            joined.append(piece)
    return joined


def _shifted(old: str, new: str, indent: str) -> str:
    """Return the indentation of a line when that of its first line changes from `old` to `new`."""
    if indent.startswith(old):
        return new + indent[len(old) :]
    if new.startswith(old):
        return indent + new[len(old) :]
    if old.startswith(new) and len(indent) >= len(old) - len(new):
        return indent[: len(indent) - len(old) + len(new)]
    return indent
