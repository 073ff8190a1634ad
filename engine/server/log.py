"""The engine's log: it rotates, and it cannot contain the user's code."""

import asyncio
import logging
import os
import sys
import threading
import traceback
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Any

from engine.whole_files import make_folder

LEVELS = ("debug", "info", "warning", "error")
_MAX_BYTES = 1_000_000
_OLDER_FILES = 2
_log = logging.getLogger(__name__)


class _CodelessFormatter(logging.Formatter):
    """Shows the type and the lines of an exception, never its message: that could quote the user's code."""

    def formatException(
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        error_type, _, trace = ei
        frames = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]
        return (
            f"  {error_type.__name__ if error_type else 'no exception'} at {' > '.join(frames) or 'an unknown place'}"
        )


class _QuietFile(RotatingFileHandler):
    """Only its user can read it. A record that cannot be written is dropped; the base class would print it."""

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "a", encoding=self.encoding, errors=self.errors)

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def open_log(path: Path, level: str) -> str | None:
    """Write the records of the `engine` loggers to `path`, in at most three files of 1 MB.

    Returns one line when there can be no log, which is no reason to end the engine; otherwise None.
    """
    # Records of other libraries can quote code. Without a handler, logging would print them to stderr, which is our
    # log.
    logging.getLogger().addHandler(logging.NullHandler())
    logger = logging.getLogger("engine")
    logger.setLevel(level.upper())
    try:
        make_folder(path.parent)
        handler = _QuietFile(path, maxBytes=_MAX_BYTES, backupCount=_OLDER_FILES, encoding="utf-8")
    except OSError as error:
        return f"there will be no log: cannot write {path}: {error.strerror}"
    handler.setFormatter(_CodelessFormatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    return None


def keep_messages_out_of_tracebacks() -> None:
    """Log uncaught exceptions with our formatter. Python itself would print them to stderr with their messages."""

    def log(error_type: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
        _log.critical("uncaught exception", exc_info=(error_type, error or error_type(), trace))

    sys.excepthook = log
    threading.excepthook = lambda args: log(args.exc_type, args.exc_value, args.exc_traceback)
    sys.unraisablehook = lambda args: log(args.exc_type, args.exc_value, args.exc_traceback)


def log_loop_exception(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an uncaught exception of a task or callback, without asyncio's message, which quotes arguments."""
    _log.error("uncaught exception in the event loop", exc_info=context.get("exception"))
