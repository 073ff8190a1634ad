"""The priority of this process: what works in the background gives way to what a user waits for."""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

_GROUP = Path("/proc/self/autogroup")
_TRIES, _WAIT_S = 20, 0.15


def give_way(niceness: int) -> None:
    """Add to the niceness of this process, and of its group, where the system has one.

    Linux shares the processor between sessions first (sched_autogroup, on by default): the niceness of a process counts
    only among those of its own session.
    """
    if niceness <= 0:
        return
    with suppress(AttributeError, OSError):  # Windows has none.
        level = os.nice(niceness)
        if os.getsid(0) == os.getpid():  # Else others of the session would give way too.
            threading.Thread(target=_set_group, args=(level,), name="priority", daemon=True).start()


def _set_group(level: int) -> None:
    """Set the niceness of the group. Of all users but root, Linux takes one such change in a tenth of a second."""
    for _ in range(_TRIES):
        try:
            _GROUP.write_text(str(level))
        except BlockingIOError:
            time.sleep(_WAIT_S)
        except OSError:
            return
        else:
            return
