"""A typist who writes a sample with the language server, and takes a suggestion where it is what they want."""

import time
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path
from typing import Literal

import attrs

from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession
from engine.evaluation.keystrokes import is_start, next_key

Kind = Literal["typed", "taken", "wrong"]


# Marks around the part that is typed. A sample's name ends in .txt because the marks make it invalid source.
_START, _END = "⟨", "⟩"


@attrs.frozen
class Sample:
    """A sample file: its name, and its text before, in and after the part that is typed."""

    name: str
    above: str
    typed: str
    below: str

    @classmethod
    def read(cls, name: str, marked: str) -> "Sample":
        """Return the sample of a text with marks."""
        above, _, rest = marked.partition(_START)
        typed, _, below = rest.partition(_END)
        return cls(name, above, typed, below)

    def write(self, folder: Path, typed: str) -> Path:
        """Write the file with `typed` in place of its part, and return its path."""
        path = folder / self.name
        path.write_text(self.above + typed + self.below, "utf-8")
        return path


def samples() -> list[Sample]:
    """Return the samples in the package, sorted by name."""
    found = [file for file in files("engine.cli").joinpath("samples").iterdir() if file.name.endswith(".txt")]
    named = sorted((file.name.removesuffix(".txt"), file.read_text("utf-8")) for file in found)
    return [Sample.read(name, marked) for name, marked in named]


@attrs.frozen
class Stroke:
    """What one key did: it typed `text`, took it as a suggestion, or typed past the suggestion `text`.

    ms: from the request to its answer.
    """

    kind: Kind
    text: str
    ms: float


class Typist:
    """Types the part of a sample that is to be typed. The file must be open without it."""

    def __init__(self, session: LspSession, sample: Sample, path: Path) -> None:
        self._session, self._sample, self._path = session, sample, path

    async def strokes(self) -> AsyncIterator[Stroke]:
        """Yield what each key does. A suggestion that is typed past comes once, before the key that does so.

        Return with the indentation of the next line, which an editor writes, is one key.
        """
        text, typed, wrong = self._sample.typed, "", ""
        while typed != text:
            cursor = self._cursor(typed)
            started = time.perf_counter()
            items = await self._session.suggest(cursor)
            ms = (time.perf_counter() - started) * 1000
            shown, rest = items[0].insert_text if items else "", text[len(typed) :]
            taken = _wanted(shown, rest)
            if taken:
                yield Stroke("taken", taken, ms)
            elif shown and shown != wrong:
                yield Stroke("wrong", shown.partition("\n")[0], ms)
            key = taken or next_key(rest)
            if not taken:
                yield Stroke("typed", key, ms)
            wrong = shown.removeprefix(key) if shown.startswith(key) else ""
            await self._session.type_text(cursor, key)
            typed += key

    def _cursor(self, typed: str) -> Cursor:
        before = self._sample.above + typed
        return Cursor.at_offset(self._path, before + self._sample.below, len(before))


def _wanted(shown: str, rest: str) -> str:
    """Return what a typist takes of a suggestion who wants to write `rest`: all of it, its first line, or ""."""
    if shown and rest.startswith(shown) and "\n" in shown:
        return shown
    first, line = shown.partition("\n")[0], rest.partition("\n")[0]
    return first if is_start(first, line) else ""
