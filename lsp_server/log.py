"""Logging: our own lines go to the editor's log, all others to stderr without anything that may be the user's code."""

import logging
import re
from collections.abc import Callable

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from engine.errors import describe

_OURS = ("lsp_server", "engine")
_PLACEHOLDER = re.compile(r"%[a-z]")
_TO_LSP = {
    logging.DEBUG: types.MessageType.Debug,
    logging.INFO: types.MessageType.Info,
    logging.WARNING: types.MessageType.Warning,
    logging.ERROR: types.MessageType.Error,
}


class ClientLog(logging.Handler):
    """Sends our own log lines as window/logMessage."""

    def __init__(self, send: Callable[[types.LogMessageParams], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        kind = _TO_LSP.get(record.levelno, types.MessageType.Error)
        self._send(types.LogMessageParams(kind, record.getMessage()))


def fit_for_stderr(record: logging.LogRecord) -> bool:
    """Remove the arguments and the traceback from another library's record. This is a logging filter.

    pygls logs the messages on which it fails, and those contain the text of the user's files. It also logs each error
    with which we answer a request; those records are dropped.
    """
    if record.name.split(".")[0] in _OURS:
        return True
    if record.exc_info and isinstance(record.exc_info[1], JsonRpcException):
        return False
    record.msg = _PLACEHOLDER.sub("...", str(record.msg)).splitlines()[0]
    record.args = ()
    if record.exc_info and record.exc_info[1] is not None:
        record.msg += f" ({describe(record.exc_info[1])})"
    record.exc_info = record.exc_text = None
    return True


def log_to_stderr() -> None:
    """Set up logging for the process, before an editor is connected."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    handler.addFilter(fit_for_stderr)
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def log_to_client(send: Callable[[types.LogMessageParams], None]) -> None:
    """Send our own lines to the editor from now on, and nowhere else."""
    ours = logging.getLogger("lsp_server")
    ours.handlers = [ClientLog(send)]
    ours.propagate = False


def set_level(level: str) -> None:
    """Log our own lines of `level` ("debug", "info", "warning" or "error") and above."""
    logging.getLogger("lsp_server").setLevel(level.upper())
