"""What a code action of Midspan is: offered at once, computed only when the user chooses it.

A new action is a class with these members in a file of its own, and one line in requests/edit_features.py.
"""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import attrs

from lsp_server.bulk.draft import Draft
from lsp_server.documents.store import Snapshot
from lsp_server.engine_link.progress_bar import ProgressBar
from lsp_server.wire import ActionName, ScopeName


class Cancelled(Exception):
    """The user cancelled the work. Work.report raises it in the work's threads; its task is cancelled."""


class Work:
    """The work on a request, with its progress bar. `report` may be called in any thread."""

    def __init__(self, bar: ProgressBar) -> None:
        self._bar = bar
        self._loop = asyncio.get_running_loop()
        self._cancelled = threading.Event()
        self.task: asyncio.Task[Draft] | None = None
        bar.on_cancel = self.cancel

    def cancel(self) -> None:
        """Cancel the task of the work, and have the next `report` of its threads raise Cancelled."""
        # A second time would cut off what the task ends.
        if self.task is not None and not self._cancelled.is_set():
            self.task.cancel()
        self._cancelled.set()

    def report(self, message: str, percentage: int | None = None) -> None:
        """Show how far the work is. Raises Cancelled once it is cancelled."""
        if self._cancelled.is_set():
            raise Cancelled
        # The loop is closed when the editor left meanwhile.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._bar.report, message, percentage)


@attrs.frozen
class Selection:
    """A version of a document, and the characters from `start` to `end` of it that are selected."""

    snapshot: Snapshot
    start: int
    end: int

    @property
    def lines(self) -> range:
        """The lines that the selection touches."""
        lines = self.snapshot.source.lines
        return range(lines.at(self.start), lines.at(self.end) + 1)

    def touches(self, *parts: range) -> bool:
        """Return whether the selection touches a line of one of these parts."""
        own = self.lines
        return any(lines and lines[0] <= own[-1] and own[0] <= lines[-1] for lines in parts)


@attrs.frozen
class MenuItem:
    """An action in a menu: what it would work on, and its title."""

    scope: ScopeName
    title: str


class Action(Protocol):
    """A code action. `kind` is its LSP kind; `by_model` says that a model writes the text.

    An action that fits nearly everywhere is `only_invoked`: it is offered to a user who opens the menu. Else the light
    that editors show beside a line with actions would always be on.
    """

    @property
    def name(self) -> ActionName: ...

    @property
    def kind(self) -> str: ...

    @property
    def by_model(self) -> bool: ...

    @property
    def only_invoked(self) -> bool: ...

    async def offers(self, selection: Selection) -> Sequence[MenuItem]:
        """Return what is offered there. It takes milliseconds and searches nothing."""
        ...

    async def draft(self, selection: Selection, scope: ScopeName, work: Work) -> Draft:
        """Return what the action would change there.

        Raises NotApplied with one line if it cannot be done. Its task is cancelled when the user cancels the work.
        """
        ...
