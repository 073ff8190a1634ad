"""The priority of this process: what works in the background gives way to what a user waits for."""

import os
from contextlib import suppress
from pathlib import Path

_GROUP = Path("/proc/self/autogroup")


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
            _GROUP.write_text(str(level))
