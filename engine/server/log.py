"""The engine's log: rotating, and built so that it cannot hold the user's code."""

import asyncio
import logging
import sys
import threading
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Any

LEVELS = ("debug", "info", "warning", "error")
_MAX_BYTES = 1_000_000
_OLDER_FILES = 2
_log = logging.getLogger(__name__)


class _CodelessFormatter(logging.Formatter):
    """Shows an exception by its type and our own lines only: its message may quote what the user wrote."""

    def formatException(
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
    ) -> str:
        kind, _, trace = ei
        frames = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]
        return f"  {kind.__name__ if kind else 'no exception'} at {' > '.join(frames) or 'an unknown place'}"


class _QuietFile(RotatingFileHandler):
    """Drops a record that a full disk does not take; logging's own complaint would print the record elsewhere."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def open_log(path: Path, level: str) -> str | None:
    """Send the records of the `engine` loggers to `path`, kept to three files of 1 MB.

    Returns None, or one line that says why there will be no log; the engine runs all the same.
    """
    # Other libraries' records could quote anything, and without a handler logging prints them to stderr: into our file.
    logging.getLogger().addHandler(logging.NullHandler())
    logger = logging.getLogger("engine")
    logger.setLevel(level.upper())
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handler = _QuietFile(path, maxBytes=_MAX_BYTES, backupCount=_OLDER_FILES, encoding="utf-8")
    except OSError as error:
        return f"there will be no log: cannot write {path}: {error.strerror}"
    handler.setFormatter(_CodelessFormatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    return None


def keep_messages_out_of_tracebacks() -> None:
    """Log what nobody caught, as our formatter shows it, instead of letting Python print it whole to stderr."""

    def log(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
        _log.critical("nobody caught this", exc_info=(kind, error or kind(), trace))

    sys.excepthook = log
    threading.excepthook = lambda args: log(args.exc_type, args.exc_value, args.exc_traceback)
    sys.unraisablehook = lambda args: log(args.exc_type, args.exc_value, args.exc_traceback)


def log_loop_exception(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what an event loop's tasks and callbacks left uncaught, without asyncio's message: that quotes arguments."""
    _log.error("nobody caught this in the event loop", exc_info=context.get("exception"))
