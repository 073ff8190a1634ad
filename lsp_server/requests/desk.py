"""The desk of an open document: all that is remembered of its suggestions, made and dropped as one."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import attrs

from engine.protocol.confidence import FEWEST_CHARACTERS
from engine.protocol.messages import Filled, Progress
from lsp_server.documents.store import Snapshot
from lsp_server.hole.hole import Cursor
from lsp_server.requests.ahead import Ahead
from lsp_server.session import Session
from lsp_server.suggest.pipeline import Plan, Presented
from lsp_server.suggest.restraint import Menu, Restraint
from lsp_server.suggest.reuse import Reuse, text_between
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


_LONELY_S = 0.3
"""A fill goes on for so long while nobody waits: an editor gives the old request up before it sends the new one."""


class UnderWay:
    """A fill that the engine is making. It goes on while the user types along what is known of its text.

    Where each key comes before the model's answer, a fill that began anew with each would never end.
    """

    def __init__(self, plan: Plan, fill: Callable[[Callable[[Progress], None]], Coroutine[Any, Any, Filled]]) -> None:
        """`fill` makes the answer, and calls what it is given with each progress."""
        offset = plan.hole.offset
        self.plan = plan
        self.before, self.after = plan.snapshot.text[:offset], plan.snapshot.text[offset:]
        self.typed: str | None = ""
        """What the user typed at the hole meanwhile; None if the text changed otherwise."""
        self._known = ""
        self._answer = asyncio.create_task(fill(self._progressed))
        self._answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # Perhaps nobody waits.
        self._waiters = 0
        self._began = time.perf_counter()
        self._look_later()  # Its request may be gone before it waits.

    @property
    def milliseconds(self) -> float:
        """The time since the fill began."""
        return (time.perf_counter() - self._began) * 1000

    def follow(self, text: str) -> None:
        """Note that the document's text is this now. End the fill if it no longer fits."""
        typed = text_between(self.before, self.after, text)
        self.typed = typed if typed is not None and "\n" not in typed else None
        self._end_if_wrong()

    def is_at(self, snapshot: Snapshot, offset: int) -> bool:
        """Return whether the answer is wanted at the cursor `offset`: the user typed along the fill up to there."""
        answer = self._answer
        has_failed = answer.done() and (answer.cancelled() or answer.exception() is not None)
        if has_failed or self.typed is None or not self._is_right():
            return False
        return snapshot.text[:offset] == self.before + self.typed

    async def answer(self) -> Filled | None:
        """Return the answer, or None if the user typed something else. Raises MidspanError.

        A fill whose last waiter is cancelled waits a moment for the next one.
        """
        self._waiters += 1
        try:
            await asyncio.wait({self._answer})  # This does not cancel the fill when the waiter is cancelled.
        finally:
            self._waiters -= 1
            self._look_later()
        return None if self._answer.cancelled() else self._answer.result()

    def left_of(self, presented: Sequence[Presented]) -> list[Presented]:
        """Return what of the fill's texts is not typed yet; a few characters are not worth their flicker."""
        typed = self.typed
        if typed is None:
            return []
        along = [each for each in presented if each.text.startswith(typed)]
        left = [attrs.evolve(each, text=each.text.removeprefix(typed)) for each in along]
        return [each for each in left if not typed or len(each.text) >= FEWEST_CHARACTERS]

    def end(self) -> None:
        """End the fill."""
        self._answer.cancel()

    def _progressed(self, progress: Progress) -> None:
        masked = progress.canvas.index(None) if None in progress.canvas else len(progress.canvas)
        self._known = "".join(text or "" for text in progress.canvas[:masked])
        self._end_if_wrong()

    def _is_right(self) -> bool:
        typed = self.typed
        return typed is not None and (self._known.startswith(typed) or typed.startswith(self._known))

    def _end_if_wrong(self) -> None:
        if not self._is_right():
            self.end()

    def _look_later(self) -> None:
        asyncio.get_running_loop().call_later(_LONELY_S, self._end_if_lonely)

    def _end_if_lonely(self) -> None:
        if not self._waiters:
            self.end()


@attrs.define
class Desk:
    """What is remembered of one document.

    `asked` is the number of the offer that the user asked for last, `latest` the newest request, and `silence` why that
    showed nothing; None if it showed something. `running` are the tasks under way, by asker, and `under_way` is the
    newest fill that nobody got the answer of.
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
    under_way: UnderWay | None = None

    def silent(self, request: SuggestionRequest, silence: Silence) -> None:
        """Keep why a request shows nothing, unless there is a newer one."""
        if self.latest is request:
            self.silence = silence

    def cancel(self, asker: str) -> None:
        """Cancel what runs for `asker`; its request returns no suggestions."""
        if (running := self.running.pop(asker, None)) is not None:
            running.cancel()

    def changed(self, text: str) -> None:
        """Cancel all that runs for the text before an edit, but for a fill that the user typed along."""
        if self.under_way is not None:
            self.under_way.follow(text)
        for asker in list(self.running):
            self.cancel(asker)

    def begin(self, under_way: UnderWay | None) -> None:
        """Put a new fill, or none, in the place of the one under way."""
        if self.under_way is not None:
            self.under_way.end()
        self.under_way = under_way

    def taken(self, under_way: UnderWay) -> None:
        """Note that a request has the answer of a fill."""
        if self.under_way is under_way:
            self.under_way = None

    def cancel_all(self) -> None:
        """Cancel all that runs."""
        self.begin(None)
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
