"""A cursor in a file: the hole to fill."""

import re
from pathlib import Path

import attrs

from engine.errors import MidspanError

# The language server ignores larger files. The command line says so before it starts a server.
MAX_FILE_BYTES = 2 * 1024 * 1024
# The line ends of the Language Server Protocol. str.splitlines has more of them (form feed, U+2028).
_LINE_END = re.compile(r"\r\n|\n|\r")


class CursorError(MidspanError):
    """The file cannot be read as text, or it does not have this line and column."""

    code = "cursor"


@attrs.frozen
class Cursor:
    """A text and a cursor in it. `line` and `character` are 0-based; `character` counts code points."""

    path: Path
    text: str
    line: int
    character: int

    @classmethod
    def parse(cls, path: Path, at: str) -> "Cursor":
        """Read `path` and return the cursor `at`, a 1-based "LINE:COL". Raises CursorError if there is none."""
        match = re.fullmatch(r"(\d{1,9}):(\d{1,9})", at)
        if match is None:
            raise CursorError(f"--at is {at!r}; give a line and a column, both from 1, such as 12:5")
        cursor = cls(path, read_text(path), int(match[1]) - 1, int(match[2]) - 1)
        lines = _LINE_END.split(cursor.text)
        if not 0 <= cursor.line < len(lines):
            raise CursorError(f"--at {at}: {path} has lines 1 to {len(lines)}")
        if not 0 <= cursor.character <= len(lines[cursor.line]):
            columns = len(lines[cursor.line]) + 1
            raise CursorError(f"--at {at}: line {cursor.line + 1} of {path} has columns 1 to {columns}")
        return cursor

    @classmethod
    def at_offset(cls, path: Path, text: str, offset: int) -> "Cursor":
        """Return the cursor at the character offset `offset` of `text`."""
        before = _LINE_END.split(text[:offset])
        return cls(path, text, len(before) - 1, len(before[-1]))

    def offset(self, line: int, character: int) -> int:
        """Return the character offset of a 0-based line and character."""
        starts = [0, *(match.end() for match in _LINE_END.finditer(self.text))]
        return starts[line] + character


def read_text(path: Path) -> str:
    """Return the text of a file with its own line ends. Raises CursorError when it cannot be read as text."""
    try:
        if not path.exists():
            raise CursorError(f"{path}: no such file")
        if not path.is_file():
            raise CursorError(f"{path} is not a file")
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise CursorError(f"{path} has {size / 1e6:.1f} MB; at most {MAX_FILE_BYTES / 1e6:.1f} MB are allowed")
        raw = path.read_bytes()
    except OSError as error:
        raise CursorError(f"{path} cannot be read: {error.strerror}") from None
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise CursorError(f"{path} is not UTF-8 text (byte {error.start}); convert it to UTF-8 first") from None
    if "\0" in text:
        raise CursorError(f"{path} is not text: it contains a zero byte")
    return text
