"""A typist who writes a known text with the language server, and takes a suggestion where it is what they want."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import attrs

from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession
from engine.cli.sample import Sample
from engine.evaluation.keystrokes import is_start, next_key

Kind = Literal["typed", "taken", "wrong"]


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
