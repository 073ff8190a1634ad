"""The page as an editor: its texts are documents of a language server, which is started when it is needed."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, TypeVar

import attrs

from engine.errors import MidspanError, ProtocolError
from engine.http.connection import Problem
from engine.protocol import lsp_messages as lsp
from engine.protocol.editor_messages import (
    FILL,
    SHOW_STATUS,
    FillParams,
    FillProgress,
    FillResult,
    FillTrace,
    StatusReport,
)
from engine.protocol.lsp_messages import Command, Document, InlineList, offset_of, position_of
from engine.protocol.messages import RuleName
from engine.reading import is_inside

Answer = TypeVar("Answer")


class LanguageServer(Protocol):
    """A connection to a running `midspan-lsp` that counts columns in code points. engine/cli/json_rpc.py is one."""

    @property
    def has_ended(self) -> bool:
        """Whether the server is gone."""
        ...

    async def request(self, method: str, params: object, answer_class: type[Answer]) -> Answer:
        """Send a request, return its result. Raises MidspanError with one line."""
        ...

    async def notify(self, method: str, params: object) -> None:
        """Send a notification. Raises MidspanError with one line."""


@attrs.frozen
class TextUnits:
    """Converts places in one text."""

    text: str

    @property
    def _is_plain(self) -> bool:
        return self.text.isascii() or len(self.text.encode("utf-16-le", "surrogatepass")) == 2 * len(self.text)

    def to_points(self, units: int) -> int:
        """Return the offset in code points; an offset beyond the text is its end."""
        if self._is_plain:
            return max(0, min(units, len(self.text)))
        before = self.text.encode("utf-16-le", "surrogatepass")[: 2 * max(0, units)]
        return len(before.decode("utf-16-le", "ignore"))

    def to_units(self, points: int) -> int:
        """Return the offset in UTF-16 units."""
        if self._is_plain:
            return points
        return len(self.text[:points].encode("utf-16-le", "surrogatepass")) // 2


PATIENCE_MS = 60_000.0
"""The budget of a traced fill. Nobody types meanwhile, and a slow model shall show all of its steps."""
MOST_PAGES = 16
"""Documents that are open at once. The one that was used least recently is closed for another."""
ACCEPTED = "midspan.accepted"
_AUTOMATIC = 2

Connect = Callable[[Callable[[FillProgress], None]], Awaitable[LanguageServer]]
"""Starts a language server. Its progress goes to the argument."""


@attrs.frozen
class PageCursor:
    """A cursor in a text of a page. `page` is a name that the page made up, `at` is in UTF-16 units.

    `edit` counts what was changed in the page. Requests may arrive in another order than they were sent.
    """

    page: str
    path: str
    text: str
    at: int
    edit: int


@attrs.frozen
class Ghost:
    """What an editor shows after the cursor, "" for nothing. `tag` says to the language server that it was taken."""

    text: str
    tag: Command | None


@attrs.frozen
class Traced:
    """A fill with its steps. `read` and `hidden` are offsets in UTF-16 units, see HoleCut."""

    answer: FillResult
    trace: FillTrace
    steps: list[FillProgress]
    read: tuple[int, int]
    hidden: tuple[int, int]


@attrs.define
class _Document:
    """A document as the language server has it."""

    uri: str
    text: str
    edit: int
    version: int = 1


class PageEditor:
    """The documents of all pages. `folder` is where they seem to be; a page's own text is at no other one's path."""

    def __init__(self, folder: Path, connect: Connect) -> None:
        self._folder, self._connect = folder, connect
        self._server: asyncio.Future[LanguageServer] | None = None
        self._documents: dict[str, _Document] = {}
        self._steps: dict[str, list[FillProgress]] = {}
        self._numbers = itertools.count(1)

    async def suggest(self, place: PageCursor) -> Ghost:
        """Return what an editor would show at a cursor. A newer request of the same page ends this one with nothing."""
        document, units = await self._show(place)
        at = units.to_points(place.at)
        params = lsp.InlineCompletion(
            Document(document.uri), position_of(place.text, at), lsp.InlineContext(_AUTOMATIC)
        )
        found = await self._ask("textDocument/inlineCompletion", params, InlineList)
        if not found.items:
            return Ghost("", None)
        item = found.items[0]
        typed = place.text[offset_of(place.text, item.range.start) : at]
        return Ghost(item.insert_text.removeprefix(typed), item.command)

    async def trace(self, place: PageCursor, rule: RuleName | None) -> Traced:
        """Fill the hole at a cursor and return every step. Raises MidspanError with one line, Problem if overtaken."""
        document, units = await self._show(place)
        at, token = units.to_points(place.at), f"play-{next(self._numbers)}"
        steps = self._steps[token] = []
        try:
            position = position_of(place.text, at)
            params = FillParams(Document(document.uri), position, rule, None, PATIENCE_MS, token, trace=True)
            answer = await self._ask(FILL, params, FillResult)
        except MidspanError:
            self._check_newest(place, document)
            raise
        finally:
            del self._steps[token]
        self._check_newest(place, document)
        if answer.trace is None:
            raise ProtocolError("unexpected", "the language server gave no trace; restart `midspan play`")
        hole = answer.trace.hole
        start, end = (units.to_units(offset_of(place.text, each)) for each in (hole.read.start, hole.read.end))
        return Traced(answer, answer.trace, steps, (start, end), (place.at, units.to_units(at + hole.hidden)))

    async def status(self) -> StatusReport:
        """Return the state of the engine. Starts none."""
        return await self._ask("workspace/executeCommand", Command(SHOW_STATUS), StatusReport)

    async def accepted(self, tag: Command) -> None:
        """Tell the language server that a ghost was taken."""
        await self._ask("workspace/executeCommand", Command(ACCEPTED, tag.arguments[:1]), object)

    async def leave(self, page: str) -> None:
        """Close a page's document."""
        document = self._documents.pop(page, None)
        if document is not None and self._server is not None and not _is_lost(self._server):
            await (await self._server).notify("textDocument/didClose", lsp.DidClose(Document(document.uri)))

    def heard(self, progress: FillProgress) -> None:
        """Take a step of a fill."""
        if (steps := self._steps.get(str(progress.token))) is not None:
            steps.append(progress)

    def begin(self) -> None:
        """Have the language server start, before anything is asked."""
        self._server = asyncio.ensure_future(self._connect(self.heard))
        self._server.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def start(self) -> LanguageServer:
        """Return the language server, started if need be. Raises MidspanError."""
        if self._server is None or _is_lost(self._server):
            self._documents.clear()
            self.begin()
        assert self._server is not None
        return await asyncio.shield(self._server)  # a page that leaves does not end a start that others wait for

    async def _ask(self, method: str, params: object, answer_class: type[Answer]) -> Answer:
        return await (await self.start()).request(method, params, answer_class)

    async def _show(self, place: PageCursor) -> tuple[_Document, TextUnits]:
        """Have the language server know the page's text as it is now. Raises Problem if it knows a newer one."""
        server = await self.start()
        uri = self._uri_of(place)
        document = self._documents.get(place.page)
        if document is not None:
            self._check_newest(place, document)
            del self._documents[place.page]
        if document is not None and document.uri != uri:
            await server.notify("textDocument/didClose", lsp.DidClose(Document(document.uri)))
            document = None
        if document is None:
            document = _Document(uri, place.text, place.edit)
            self._documents[place.page] = document
            item = lsp.DocumentItem(uri, "", 1, place.text)
            await self._close_one_too_many(server)
            await server.notify("textDocument/didOpen", lsp.DidOpen(item))
        else:
            self._documents[place.page] = document  # the last one is the one that was used last
            document.edit = place.edit
            await self._change(server, document, place.text)
        return document, TextUnits(place.text)

    def _check_newest(self, place: PageCursor, document: _Document) -> None:
        """Raise Problem if the page has gone on from this cursor, which was one in `document`."""
        if place.edit < self._documents.get(place.page, document).edit:
            raise Problem(409, "the page has a newer text; this one is no longer asked about")

    async def _change(self, server: LanguageServer, document: _Document, text: str) -> None:
        if document.text == text:
            return
        change = lsp.change_of(document.text, text)
        document.text, document.version = text, document.version + 1
        params = lsp.DidChange(lsp.VersionedDocument(document.uri, document.version), [change])
        await server.notify("textDocument/didChange", params)

    async def _close_one_too_many(self, server: LanguageServer) -> None:
        if len(self._documents) > MOST_PAGES:
            oldest = self._documents.pop(next(iter(self._documents)))
            await server.notify("textDocument/didClose", lsp.DidClose(Document(oldest.uri)))

    def _uri_of(self, place: PageCursor) -> str:
        """Return the document's address. A file that another page shows too gets a name of its own here."""
        if not is_inside(place.path):
            raise Problem(400, "the path of the text is not one inside of the folder; choose another name")
        path = Path(place.path)
        whole = self._folder / path
        taken = {document.uri for page, document in self._documents.items() if page != place.page}
        number = 2
        while (uri := whole.as_uri()) in taken:
            whole = self._folder / path.with_name(f"{path.stem}~{number}{path.suffix}")
            number += 1
        return uri


def _is_lost(server: "asyncio.Future[LanguageServer]") -> bool:
    """Return whether a language server could not be started, or has ended since."""
    if not server.done():
        return False
    return server.cancelled() or server.exception() is not None or server.result().has_ended
