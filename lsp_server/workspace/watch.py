"""Asks the editor to report files that change on the disk."""

import logging

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from lsp_server.languages.registry import LANGUAGES

_logger = logging.getLogger(__name__)


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
        registration = types.Registration(id=method, method=method, register_options=options)
        try:
            await self._server.client_register_capability_async(types.RegistrationParams([registration]))
        except JsonRpcException as error:
            _logger.warning("the editor does not report changed files (%d)", error.code)
