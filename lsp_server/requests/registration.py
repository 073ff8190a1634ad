"""What the server asks of the editor after initialize: reports of changed settings, and use of a late feature."""

import logging
from collections.abc import Callable
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

_logger = logging.getLogger(__name__)


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
    options = types.DidChangeConfigurationRegistrationOptions(section="midspan")
    try:
        await _register(server, types.WORKSPACE_DID_CHANGE_CONFIGURATION, options)
    except JsonRpcException as error:
        _logger.warning("the editor does not report changed settings (%d)", error.code)


async def _register(server: LanguageServer, method: str, options: object) -> None:
    registration = types.Registration(id=method, method=method, register_options=options)
    await server.client_register_capability_async(types.RegistrationParams([registration]))
