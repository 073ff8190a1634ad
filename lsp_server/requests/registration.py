"""What is asked of the editor after initialize: to tell of changed settings, and to use a feature that came on late."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

if TYPE_CHECKING:
    from lsp_server.server import MidspanServer

_logger = logging.getLogger(__name__)


class CompletionSwitch:
    """Offers textDocument/completion to the editor only while the setting wants it."""

    def __init__(self, server: "MidspanServer", handler: Callable[..., Any], options: types.CompletionOptions) -> None:
        self._server = server
        self._handler = handler
        self._options = options
        self._announced = False
        self._registered = False
        self._told = False

    def announce(self) -> None:
        """Put it into the answer to initialize."""
        self._announced = True
        self._serve()

    async def follow(self, wanted: bool) -> None:
        """Turn it on or off by registration. What was announced stays, and answers with nothing while it is off."""
        if self._announced or wanted == self._registered:
            return
        text_document = self._server.client_capabilities.text_document
        completion = text_document.completion if text_document is not None else None
        if completion is None or not completion.dynamic_registration:
            if not self._told:
                self._told = True
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
                gone = types.UnregistrationParams([types.Unregistration(id=method, method=method)])
                await self._server.client_unregister_capability_async(gone)
        except JsonRpcException as error:
            _logger.warning("the editor does not take completionItems (%d)", error.code)

    def _serve(self) -> None:
        if types.TEXT_DOCUMENT_COMPLETION not in self._server.protocol.fm.features:
            self._server.feature(types.TEXT_DOCUMENT_COMPLETION, self._options)(self._handler)


async def follow_configuration(server: "MidspanServer") -> None:
    """Ask the editor to tell of changed settings, if it is one that has to be asked."""
    workspace = server.client_capabilities.workspace
    changes = workspace.did_change_configuration if workspace is not None else None
    if changes is None or not changes.dynamic_registration:
        return
    options = types.DidChangeConfigurationRegistrationOptions(section="midspan")
    try:
        await _register(server, types.WORKSPACE_DID_CHANGE_CONFIGURATION, options)
    except JsonRpcException as error:
        _logger.warning("the editor will not tell of changed settings (%d)", error.code)


async def _register(server: "MidspanServer", method: str, options: object) -> None:
    registration = types.Registration(id=method, method=method, register_options=options)
    await server.client_register_capability_async(types.RegistrationParams([registration]))
