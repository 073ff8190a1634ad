"""The next edit for `midspan serve`: a language server process repeats the user's last edit in a client's region."""

import asyncio
import re
import tempfile
import uuid
from pathlib import Path, PurePosixPath

import attrs

from engine.bounds import MOST_HUNKS, MOST_REGION_CHARACTERS
from engine.cli.json_rpc import LanguageServerError
from engine.cli.lsp_client import LspSession
from engine.http.body import in_thread
from engine.http.rewriting import Rewriting
from engine.protocol import lsp_messages as lsp
from engine.protocol.lsp_messages import Position

PATIENCE_S = 1.0
"""Seconds; then the model fills instead. It is some milliseconds nearly always."""
FIRST_S = 10.0
"""For the first question, with which the server's own worker process starts."""
_ENDING = re.compile(r"\.[A-Za-z0-9_+]{1,12}")


@attrs.frozen
class _Found:
    edits: list[lsp.ContentChange]


@attrs.frozen
class _Question:
    text_document: lsp.VersionedDocument
    position: Position


class NextEdits:
    """Asks a language server of its own, started with the first question and again after it has ended.

    Each question is a new document in a folder that is not there: the text before the edit, then the edit. So no
    question sees another one's text, and nothing is read from the disk.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.gettempdir(), f"midspan-next-edit-{uuid.uuid4().hex}")
        self._session: LspSession | None = None
        self._turn = asyncio.Lock()
        self._count = 0

    async def find(self, rewriting: Rewriting) -> str | None:
        """Return the region with the newest edit repeated at the place next to the cursor, or None."""
        text = rewriting.above + rewriting.region + rewriting.below
        if len(text) > MOST_REGION_CHARACTERS or not rewriting.latest:
            return None
        at = len(rewriting.above) + rewriting.cursor
        before = await in_thread(undone, text, rewriting.latest, text.count("\n", 0, at))
        if before is None or before == text:
            return None
        try:
            async with self._turn:
                await self.start()
                async with asyncio.timeout(PATIENCE_S if self._count else FIRST_S):
                    found = await self._ask(rewriting.path, before, text, at)
        except TimeoutError:
            return None
        except (LanguageServerError, OSError):
            await self.close()
            return None
        return _in_region(rewriting, text, found)

    async def start(self) -> None:
        """Start the language server. Raises LanguageServerError."""
        if self._session is None:
            self._session = await LspSession(workspace=self._folder).__aenter__()

    async def close(self) -> None:
        """End the language server."""
        session, self._session = self._session, None
        if session is not None:
            await session.__aexit__()

    async def _ask(self, path: str, before: str, text: str, at: int) -> list[lsp.ContentChange]:
        assert self._session is not None
        self._count += 1
        ending = PurePosixPath(path).suffix
        name = f"file{self._count}{ending if _ENDING.fullmatch(ending) else ''}"
        document = self._folder / name
        await self._session.open(document, before)
        try:
            change = lsp.change_of(before, text)
            versioned = lsp.VersionedDocument(document.as_uri(), 2)
            rpc = self._session.rpc
            await rpc.notify("textDocument/didChange", lsp.DidChange(versioned, [change]))
            question = _Question(versioned, lsp.position_of(text, at))
            return (await rpc.request("textDocument/copilotInlineEdit", question, _Found)).edits
        finally:
            await self._session.close(document)


def undone(text: str, hunks: str, near: int) -> str | None:
    """Return a text as it was before a diff's hunks; None if it does not have what they left, and for too many hunks.

    If the lines are in the text several times, those next to the line `near` count. Line numbers of the diff do not:
    they are of the whole file.
    """
    lines = text.splitlines(keepends=True)
    if len(hunks) > MOST_REGION_CHARACTERS or f"\n{hunks}".count("\n@@") > MOST_HUNKS:
        return None
    for hunk in _hunks(hunks):
        new = [line[1:] for line in hunk if line[0] in " +"]
        old = [line[1:] for line in hunk if line[0] in " -"]
        at = _nearest(_bare(lines), new, near) if new else None
        if at is None:
            return None
        lines[at : at + len(new)] = [f"{line}\n" for line in old]
    return "".join(lines)


def _nearest(lines: list[str], wanted: list[str], near: int) -> int | None:
    """Return where these lines are, next to the line `near`; None if they are nowhere.

    The lines are searched as one text, once to each side, which takes time in proportion to it. str.rfind would not.
    """
    text, block = "".join(f"\n{line}" for line in lines) + "\n", "".join(f"\n{line}" for line in wanted) + "\n"
    middle = sum(len(line) + 1 for line in lines[:near])
    below = text.find(block, middle)
    behind = text[::-1].find(block[::-1], max(0, len(text) - middle - len(block) + 1))
    offsets = [len(text) - behind - len(block)] if behind >= 0 else []
    offsets += [below] if below >= 0 else []
    return min((text.count("\n", 0, offset) for offset in offsets), key=lambda place: abs(place - near), default=None)


def _hunks(diff: str) -> list[list[str]]:
    """Return the lines of each hunk. The last one is the newest, so it is undone first."""
    hunks: list[list[str]] = []
    for line in diff.split("\n"):
        if line.startswith("@@"):
            hunks.append([])
        elif line[:1] in (" ", "+", "-") and line:
            if not hunks:
                hunks.append([])
            hunks[-1].append(line)
    return hunks[::-1]


def _bare(lines: list[str]) -> list[str]:
    return [line.rstrip("\r\n") for line in lines]


def _in_region(rewriting: Rewriting, text: str, edits: list[lsp.ContentChange]) -> str | None:
    """Return the region with the first edit, if it lies in it."""
    if not edits:
        return None
    span, above = edits[0].range, len(rewriting.above)
    start, end = (lsp.offset_of(text, place) - above for place in (span.start, span.end))
    if start < 0 or end > len(rewriting.region):
        return None
    return rewriting.region[:start] + edits[0].text + rewriting.region[end:]
