"""The editor's progress bar ($/progress) while the engine starts."""

import asyncio
import uuid
from types import TracebackType

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

_TITLE = "Starting the Midspan engine"


class StartProgress:
    """A context manager around the engine's start. The start never waits for the editor's answer."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._token = f"midspan-{uuid.uuid4()}"
        self._message: str | None = None
        self._shown = False
        self._ended = False
        self._creating: asyncio.Task[None] | None = None

    def __enter__(self) -> "StartProgress":
        window = self._server.client_capabilities.window
        if window is not None and window.work_done_progress:
            self._creating = asyncio.create_task(self._create())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True
        if self._shown:
            self._end()

    def report(self, message: str) -> None:
        """Show `message` on the bar, now or as soon as the editor has created it."""
        self._message = message
        if self._shown and not self._ended:
            self._server.work_done_progress.report(self._token, types.WorkDoneProgressReport(message=message))

    async def _create(self) -> None:
        try:
            await self._server.work_done_progress.create_async(self._token)
        except JsonRpcException:
            return
        self._shown = True
        begin = types.WorkDoneProgressBegin(title=_TITLE, message=self._message, cancellable=False)
        self._server.work_done_progress.begin(self._token, begin)
        if self._ended:
            # Helix shows a bar from its creation until its end, so one without an end would turn forever.
            self._end()

    def _end(self) -> None:
        self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd())
        self._server.work_done_progress.tokens.pop(self._token, None)
