"""What the server asks of the editor: its settings, reports of changes and of compilers, and use of a late feature.

It also asks before code is first sent to another machine: a workspace's settings can name any server as the model. The
server asks, so that every editor does. The answer "yes" is kept in the user's configuration folder.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from engine.client.address import is_trusted, remote_host_of, trust
from engine.client.launcher import EngineOptions
from engine.errors import MidspanError, describe
from lsp_server.engine_link.link import EngineLink
from lsp_server.languages.registry import LANGUAGES
from lsp_server.protocol import MidspanProtocol
from lsp_server.settings import SECTION
from lsp_server.wire import DIAGNOSTICS, EditorReport

_logger = logging.getLogger(__name__)
_CONFIGURATION_TIMEOUT_S = 3.0
_REPORTS_TIMEOUT_S = 0.3
"""They help a model; they are not waited for."""


class CompletionSwitch:
    """Offers textDocument/completion to the editor only while the setting completionItems is on."""

    def __init__(self, server: LanguageServer, handler: Callable[..., Any], options: types.CompletionOptions) -> None:
        self._server = server
        self._handler = handler
        self._options = options
        self._announced = False
        self._registered = False
        self._warned = False

    def announce(self) -> None:
        """Put the feature into the answer to initialize."""
        self._announced = True
        self._serve()

    async def follow(self, wanted: bool) -> None:
        """Register or unregister the feature. An announced one stays, and has no items while the setting is off."""
        if self._announced or wanted == self._registered:
            return
        text_document = self._server.client_capabilities.text_document
        completion = text_document.completion if text_document is not None else None
        if completion is None or not completion.dynamic_registration:
            if not self._warned:
                self._warned = True
                _logger.warning("completionItems comes too late for this editor; put it into initializationOptions")
            return
        self._registered = wanted
        method = types.TEXT_DOCUMENT_COMPLETION
        try:
            if wanted:
                self._serve()
                options = types.CompletionRegistrationOptions(
                    document_selector=None, trigger_characters=self._options.trigger_characters
                )
                await _register(self._server, method, options)
            else:
                unregistration = types.UnregistrationParams([types.Unregistration(id=method, method=method)])
                await self._server.client_unregister_capability_async(unregistration)
        except JsonRpcException as error:
            _logger.warning("the editor does not take completionItems (%d)", error.code)

    def _serve(self) -> None:
        if types.TEXT_DOCUMENT_COMPLETION not in self._server.protocol.fm.features:
            self._server.feature(types.TEXT_DOCUMENT_COMPLETION, self._options)(self._handler)


async def follow_configuration(server: LanguageServer) -> None:
    """Ask the editor to report changed settings, if it does so only when asked."""
    workspace = server.client_capabilities.workspace
    changes = workspace.did_change_configuration if workspace is not None else None
    if changes is None or not changes.dynamic_registration:
        return
    options = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
    try:
        await _register(server, types.WORKSPACE_DID_CHANGE_CONFIGURATION, options)
    except JsonRpcException as error:
        _logger.warning("the editor does not report changed settings (%d)", error.code)


class SettingsQuestion:
    """Asks the editor for its settings, and hands them to `use`. A late answer is used when it comes."""

    def __init__(self, server: LanguageServer, use: Callable[[object], Awaitable[None]]) -> None:
        self._server, self._use = server, use
        self._known: object = None
        """The answer to the newest question that has one; None if the editor has told nothing."""
        self._asked = self._answered = 0
        self._late: asyncio.Task[None] | None = None

    async def ask(self) -> None:
        """Use the answer, or what the editor told before if there is none within a few seconds."""
        if self._late is not None:
            self._late.cancel()
        self._asked += 1
        answer = asyncio.create_task(self._answer(self._asked))
        # An editor that never answers must not keep the engine from starting.
        await asyncio.wait({answer}, timeout=_CONFIGURATION_TIMEOUT_S)
        if not answer.done():
            _logger.warning("the editor does not answer workspace/configuration; its settings are used once it does")
            self._late = asyncio.create_task(self._use_late(answer))
        await self._use(answer.result() if answer.done() else self._known)

    async def _answer(self, number: int) -> object:
        params = types.ConfigurationParams([types.ConfigurationItem(section=SECTION)])
        try:
            answer = await self._server.workspace_configuration_async(params)
        except JsonRpcException as error:
            _logger.warning("the editor refused workspace/configuration (%d); the settings stay", error.code)
        else:
            if number > self._answered:  # two questions may be under way, and a late answer is the older one's
                self._answered, self._known = number, answer[0] if answer else None
        return self._known

    async def _use_late(self, answer: "asyncio.Task[object]") -> None:
        await self._use(await answer)


class EditorReports:
    """What compilers and linters say in the editor: servers do not see each other's diagnostics, their client does.

    An editor that answers says so in initialize: `{"midspanDiagnostics": true}` in capabilities.experimental.
    """

    def __init__(self, protocol: MidspanProtocol) -> None:
        self._protocol = protocol

    async def of(self, uri: str) -> list[EditorReport]:
        """Return the errors and warnings of a document as they are now; none from an editor that does not say them."""
        experimental = self._protocol.client_capabilities.experimental
        if not isinstance(experimental, Mapping) or experimental.get("midspanDiagnostics") is not True:
            return []
        document = types.TextDocumentIdentifier(uri)
        try:
            async with asyncio.timeout(_REPORTS_TIMEOUT_S):
                answer = await self._protocol.send_request_async(DIAGNOSTICS, document)
            return self._protocol.from_json(answer, list[EditorReport])
        except (TimeoutError, JsonRpcException) as error:
            _logger.debug("the editor says no diagnostics: %s", describe(error))
            return []


def watchers() -> list[types.FileSystemWatcher]:
    """Return what to watch: sources of all languages and .gitignore files, and the deletion of anything.

    For a deleted folder an editor reports the folder only, not its files.
    """
    endings = ",".join(sorted({ending.lstrip(".") for language in LANGUAGES for ending in language.extensions}))
    return [
        types.FileSystemWatcher(f"**/*.{{{endings}}}"),
        types.FileSystemWatcher("**/.gitignore"),
        types.FileSystemWatcher("**/*", types.WatchKind.Delete),
    ]


class FileWatch:
    """Registers workspace/didChangeWatchedFiles where the editor can. Without it only saved documents are followed."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._registered = False

    async def follow(self, wanted: bool) -> None:
        """Register when that is wanted for the first time. Later reports that nobody wants are ignored."""
        workspace = self._server.client_capabilities.workspace
        watched = workspace.did_change_watched_files if workspace is not None else None
        if not wanted or self._registered or watched is None or not watched.dynamic_registration:
            return
        self._registered = True
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers())
        try:
            await _register(self._server, method, options)
        except JsonRpcException as error:
            _logger.warning("the editor does not report changed files (%d)", error.code)


async def _register(server: LanguageServer, method: str, options: object) -> None:
    registration = types.Registration(id=method, method=method, register_options=options)
    await server.client_register_capability_async(types.RegistrationParams([registration]))


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
