"""Loads the features that follow edits late: they take a tenth of a second, and the editor waits for the server."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pygls.lsp.server import LanguageServer

from lsp_server.protocol import MidspanProtocol
from lsp_server.session import Session
from lsp_server.wire import ApplyResult, BulkAction

if TYPE_CHECKING:
    from lsp_server.requests.code_actions import EditFeatures

_Answer = TypeVar("_Answer")


class LateEdits:
    """Loads EditFeatures in a thread, and hands requests on to them."""

    def __init__(self, server: LanguageServer, protocol: MidspanProtocol, session: Session) -> None:
        self._server, self._protocol, self._session = server, protocol, session
        self._loading: asyncio.Task[EditFeatures] | None = None

    def begin(self) -> "asyncio.Task[EditFeatures]":
        """Begin to load the features, unless that has begun."""
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())
        return self._loading

    def asked(
        self, method: "Callable[[EditFeatures], Callable[..., Awaitable[_Answer]]]"
    ) -> Callable[..., Awaitable[_Answer]]:
        """Return the handler of a request or command that `method` of the features answers, once they are loaded."""

        async def handle(*params: Any) -> _Answer:
            return await method(await asyncio.shield(self.begin()))(*params)

        return handle

    async def run_action(self, asked: BulkAction) -> ApplyResult:
        """Do what a code action says, for editors that cannot ask for its edit."""
        return await self.asked(lambda features: features.bulk_edits.run)(asked)

    async def close(self) -> None:
        """End all work."""
        if self._loading is not None and self._loading.done() and self._loading.exception() is None:
            await self._loading.result().close()

    async def _load(self) -> "EditFeatures":
        def imported() -> "type[EditFeatures]":
            from lsp_server.requests.code_actions import EditFeatures

            return EditFeatures

        return (await asyncio.to_thread(imported))(self._server, self._protocol, self._session)
