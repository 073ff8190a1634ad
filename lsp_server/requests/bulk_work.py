"""Computes what a code action would change: with a progress bar, and cancelled when the user or the editor says so."""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress

from lsprotocol import types
from pygls.exceptions import JsonRpcRequestCancelled
from pygls.lsp.server import LanguageServer

from engine.errors import MidspanError
from lsp_server.bulk.action import Action, Cancelled, Selection
from lsp_server.bulk.draft import Draft
from lsp_server.documents.store import Snapshot, offset_at
from lsp_server.engine_link.progress_bar import ProgressBar
from lsp_server.protocol import refusal
from lsp_server.requests.session import PARSE_PATIENCE_S, Session
from lsp_server.wire import BulkAction

_LOOK_S = 0.05
"""How often the progress bar is looked at: whether the user cancelled."""


class BarWork:
    """The work on a request, with its progress bar. `report` may be called in any thread."""

    def __init__(self, bar: ProgressBar) -> None:
        self._bar = bar
        self._loop = asyncio.get_running_loop()
        self._cancelled = threading.Event()
        self.task: asyncio.Task[Draft] | None = None

    def cancel(self) -> None:
        """Cancel the task of the work, and have the next `report` of its threads raise Cancelled."""
        # A second time would cut off what the task ends.
        if self.task is not None and not self._cancelled.is_set():
            self.task.cancel()
        self._cancelled.set()

    def report(self, message: str, percentage: int | None = None) -> None:
        """Show how far the work is."""
        if self._cancelled.is_set():
            raise Cancelled
        # The loop is closed when the editor left meanwhile.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._bar.report, message, percentage)


class BulkWork:
    """Has the actions compute their drafts."""

    def __init__(self, server: LanguageServer, session: Session, actions: Sequence[Action]) -> None:
        self._server = server
        self._session = session
        self._actions = {action.name: action for action in actions}
        self._running: set[BarWork] = set()

    def cancel_all(self) -> None:
        """Cancel all work: the session ends."""
        for work in self._running:
            work.cancel()

    async def draft(self, asked: BulkAction, token: str | int | None = None) -> Draft:
        """Return what an action would change. `token` is the editor's for its progress bar.

        Raises JsonRpcException with one line: the document changed or is closed, the user cancelled, or there is
        nothing to do.
        """
        action = self._actions.get(asked.action)
        if action is None:
            raise refusal(f"there is no action {asked.action!r}")
        await self._session.settle(asked.uri, PARSE_PATIENCE_S)
        selection = self._selection(asked)
        with ProgressBar(self._server, "Midspan: finding places", cancellable=True, token=token) as bar:
            work = BarWork(bar)
            self._running.add(work)
            task = work.task = asyncio.create_task(action.draft(selection, asked.scope, work))
            try:
                while not task.done():
                    await asyncio.wait({task}, timeout=_LOOK_S)
                    if bar.cancelled:
                        work.cancel()
                if task.cancelled():
                    raise JsonRpcRequestCancelled("cancelled")
                return task.result()
            except Cancelled:
                raise JsonRpcRequestCancelled("cancelled") from None
            except MidspanError as error:
                raise refusal(str(error)) from None
            finally:
                work.cancel()
                self._running.discard(work)
                task.add_done_callback(_forget)

    def _selection(self, asked: BulkAction) -> Selection:
        snapshot = self._session.documents.snapshot(asked.uri)
        reason = self._session.why_unfit(asked.uri) if snapshot is None else self._session.why_excluded(snapshot)
        if reason is not None:
            raise refusal(f"this file is left alone: it {reason}")
        if snapshot is None:
            raise refusal("the file was closed; open it and run the action again")
        if snapshot.version != asked.version:
            # Not ContentModified: editors show nothing of that.
            raise refusal("the file has changed since the action was offered; run the action again")
        return selection_of(snapshot, asked.range, self._session)


def selection_of(snapshot: Snapshot, selected: types.Range, session: Session) -> Selection:
    """Return a range of a document as a selection."""
    start = offset_at(snapshot, selected.start, session.encoding)
    end = offset_at(snapshot, selected.end, session.encoding)
    return Selection(snapshot, min(start, end), max(start, end))


def _forget(task: "asyncio.Task[Draft]") -> None:
    # A cancelled request leaves its thread to end by itself; nobody else looks at what that raises.
    if not task.cancelled():
        task.exception()
