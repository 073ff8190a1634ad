"""The question before code is first sent to another machine: a workspace's settings can name any server as the model.

The server asks, so that every editor does. The answer "yes" is kept in the user's configuration folder.
"""

import asyncio
import logging

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from engine.client.launcher import EngineOptions
from engine.client.trusted_hosts import is_trusted, remote_host_of, trust
from engine.errors import MidspanError
from lsp_server.engine_link.link import EngineLink
from lsp_server.log import describe

_logger = logging.getLogger(__name__)

ALLOW = "Allow"
REFUSE = "Do not use it"


class HostQuestion:
    """Lets the link use the engine that the settings name; one of another machine only once the user confirmed it."""

    def __init__(self, server: LanguageServer, link: EngineLink) -> None:
        self._server = server
        self._link = link
        self._asking: asyncio.Task[None] | None = None
        self._asked: EngineOptions | None = None

    def use(self, options: EngineOptions) -> None:
        """Use the engine of these options, at once or after the user's answer. Newer options take its place."""
        host = remote_host_of(options.model)
        if host is None or is_trusted(host):
            self.end()
            self._link.configure(options)
        elif options != self._asked:
            self.end()
            self._link.refuse(f"the model's server {host} waits for you to confirm that your code may be sent there")
            self._asked, self._asking = options, asyncio.create_task(self._ask(options, host))

    def end(self) -> None:
        """Wait for no answer any more."""
        if self._asking is not None:
            self._asking.cancel()
        self._asking = self._asked = None

    async def _ask(self, options: EngineOptions, host: str) -> None:
        line = (
            f"Midspan: the setting midspan.model names a server on another machine. "
            f"May the code around your cursor be sent to {host}?"
        )
        actions = [types.MessageActionItem(ALLOW), types.MessageActionItem(REFUSE)]
        params = types.ShowMessageRequestParams(types.MessageType.Warning, line, actions)
        try:
            answer = await self._server.window_show_message_request_async(params)
        except Exception as error:  # This editor knows no such question, or it is gone.
            _logger.debug("the question about %s was not answered: %s", host, describe(error))
            answer = None
        if answer is None or answer.title != ALLOW:
            self._link.refuse(
                f"the model's server {host} is not used, for nobody confirmed it; to allow it run "
                f"`midspan models trust {host}`, then the command midspan.restartEngine"
            )
            return
        try:
            trust(host)
        except MidspanError as error:
            _logger.warning("%s", error)
        self._link.configure(options)
