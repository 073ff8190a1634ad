"""The desk of an open document: all that is remembered of its suggestions, made and dropped as one."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from lsp_server.documents.store import Snapshot
from lsp_server.hole.hole import Cursor
from lsp_server.requests.ahead import Ahead
from lsp_server.session import Session
from lsp_server.suggest.pipeline import Plan
from lsp_server.suggest.restraint import Menu, Restraint
from lsp_server.suggest.reuse import Reuse
from lsp_server.suggest.silence import Silence


@attrs.frozen
class SuggestionRequest:
    """A suggestion request. A newer one from the same asker cancels it.

    `candidates` is 1 for an automatic request. When the user asks there are more, nothing is held back, not even by the
    gate, and the engine is asked again. The text on the screen stays the first, so that the editor goes on from there.
    If there is nothing to show, the user is told why.

    `waits`: an automatic request waits for an engine that starts or still reads the code around the cursor, and for a
    user who pauses, as long as nothing newer comes.
    """

    asker: str
    uri: str
    cursor: Callable[[Snapshot], Cursor]
    candidates: int = 1
    waits: bool = False

    @property
    def automatic(self) -> bool:
        return self.candidates == 1


@attrs.frozen
class Offered:
    """The text that was offered last, and the plan that led to it."""

    plan: Plan
    text: str


@attrs.define
class Desk:
    """What is remembered of one document.

    `asked` is the number of the offer that the user asked for last, `latest` the newest request, and `silence` why that
    showed nothing; None if it showed something. `running` are the tasks under way, by asker.
    """

    restraint: Restraint
    ahead: Ahead
    reuse: Reuse = attrs.field(factory=Reuse)
    menu: Menu = attrs.field(factory=Menu)
    asked: int | None = None
    latest: SuggestionRequest | None = None
    silence: Silence | None = None
    offered: Offered | None = None
    running: dict[str, asyncio.Task[Any]] = attrs.field(factory=dict)

    def silent(self, request: SuggestionRequest, silence: Silence) -> None:
        """Keep why a request shows nothing, unless there is a newer one."""
        if self.latest is request:
            self.silence = silence

    def cancel(self, asker: str) -> None:
        """Cancel what runs for `asker`; its request returns no suggestions."""
        if (running := self.running.pop(asker, None)) is not None:
            running.cancel()

    def cancel_all(self) -> None:
        """Cancel all that runs."""
        for asker in list(self.running):
            self.cancel(asker)

    def clear(self) -> None:
        """Cancel all that runs, and forget what was suggested. What the user did with it is kept."""
        self.cancel_all()
        self.reuse.clear()
        self.ahead.drop()


class Desks:
    """The desks of a session. One is made when its document is first asked about, and dropped when that is closed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._desks: dict[str, Desk] = {}
        session.on_close.append(self._drop)

    def at(self, uri: str) -> Desk:
        """Return the desk of a document. That of a document that is not open is not kept."""
        desk = self._desks.get(uri)
        if desk is None:
            restraint = Restraint()
            desk = Desk(restraint, Ahead(self._session, restraint))
            if self._session.documents.find(uri) is not None:
                self._desks[uri] = desk
        return desk

    def __iter__(self) -> Iterator[Desk]:
        return iter(list(self._desks.values()))

    def _drop(self, uri: str) -> None:
        if (desk := self._desks.pop(uri, None)) is not None:
            desk.clear()
