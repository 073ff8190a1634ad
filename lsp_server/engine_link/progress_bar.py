"""The progress bar of an editor ($/progress): the engine starts, the workspace is read, or an edit is searched."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Protocol

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer


class Bar(Protocol):
    """A progress bar that only shows how far the work is."""

    def report(self, message: str) -> None: ...


class ProgressBar:
    """A context manager around work that takes a while. The work never waits for the editor's answer.

    `token` is the editor's own if its request has one; then the bar need not be created.
    """

    def __init__(
        self, server: LanguageServer, title: str, *, cancellable: bool = False, token: str | int | None = None
    ) -> None:
        self._server = server
        self._title = title
        self._cancellable = cancellable
        self._is_editors = token is not None
        self._token: str | int = f"midspan-{uuid.uuid4()}" if token is None else token
        self._message: str | None = None
        self._percentage: int | None = None
        self._shown = False
        self._ended = False
        self._creating: asyncio.Task[None] | None = None
        self.cancelled = False
        """Whether the user has cancelled the work. Then `on_cancel` was called."""
        self.on_cancel: Callable[[], None] = lambda: None

    def __enter__(self) -> "ProgressBar":
        window = self._server.client_capabilities.window
        if self._is_editors:
            self._begin()
        elif window is not None and window.work_done_progress:
            self._creating = asyncio.create_task(self._create())
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        if self._shown:
            self._end()

    def report(self, message: str, percentage: int | None = None) -> None:
        """Show `message` on the bar, now or as soon as the editor has created it."""
        self._message, self._percentage = message, percentage
        if self._shown and not self._ended:
            report = types.WorkDoneProgressReport(
                cancellable=self._cancellable or None, message=message, percentage=percentage
            )
            self._server.work_done_progress.report(self._token, report)

    async def _create(self) -> None:
        try:
            await self._server.work_done_progress.create_async(self._token)
        except JsonRpcException:
            return
        self._begin()
        if self._ended:
            # Helix shows a bar from its creation until its end, so one without an end would turn forever.
            self._end()

    def _begin(self) -> None:
        self._shown = True
        begin = types.WorkDoneProgressBegin(
            title=self._title, cancellable=self._cancellable, message=self._message, percentage=self._percentage
        )
        self._server.work_done_progress.begin(self._token, begin)
        self._server.work_done_progress.tokens[self._token].add_done_callback(lambda _: self._cancel())

    def _cancel(self) -> None:
        self.cancelled = True
        self.on_cancel()

    def _end(self) -> None:
        self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd())
        self._server.work_done_progress.tokens.pop(self._token, None)
