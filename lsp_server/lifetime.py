"""The end of the server's process: it follows that of the editor, whatever tasks and threads still run then."""

import asyncio
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

_logger = logging.getLogger(__name__)

GRACE_S = 5.0
"""For an orderly end. A task may swallow its cancellation, and a thread may wait for a disk that is gone."""
_POLL_S = 2.0


def end_soon() -> None:
    """End the process after GRACE_S, if it has not ended by itself by then."""
    timer = threading.Timer(GRACE_S, os._exit, (1,))
    timer.daemon = True
    timer.start()


def end_with(pid: int, end: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `end` and end the process when the process `pid` is gone. Call it in the event loop.

    An editor may be killed while another process keeps our standard input open. A process that is not here at first is
    one of another machine or container, and nothing follows from it.
    """
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    async def leave() -> None:
        try:
            await end()
        finally:
            os._exit(0)

    def watch() -> None:
        if _wait_for_end(pid):
            _logger.warning("the editor's process has ended")
            end_soon()
            loop.call_soon_threadsafe(lambda: tasks.add(asyncio.ensure_future(leave())))

    threading.Thread(target=watch, name="editor's end", daemon=True).start()


def _wait_for_end(pid: int) -> bool:
    """Wait until a process has ended. Return False at once if there is no such process, or no way to know."""
    if sys.platform == "win32":
        return False
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError):  # a kernel before 5.3, or not Linux
        return _poll(pid)
    poll = select.poll()
    poll.register(process, select.POLLIN)
    poll.poll()
    return True


def _poll(pid: int) -> bool:
    was_there = False
    while _exists(pid):
        was_there = True
        time.sleep(_POLL_S)
    return was_there


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to somebody else
        return True
    return True
