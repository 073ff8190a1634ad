"""The process of a Worker: it reads calls from stdin, runs them one by one and writes their results to its stdout.

Only the parent writes to this process. It ends when the parent does, whatever it is doing: a thread waits for the end
of stdin. What never comes back to Python ends by its limit of processor time, where the system has one.
"""

import os
import queue
import sys
import threading
from typing import Any

from lsp_server.refactor.frames import framed, read_frame

_CALL_SECONDS = 120
"""Of the processor's time for a call. The parent of most calls gives up after 60 seconds of the clock."""


def main() -> None:
    """Run calls until stdin ends, as it does when the parent dies."""
    # A stray print must not get between the frames.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(calls,), daemon=True).start()
    while True:
        function, arguments = calls.get()
        _limit_processor_time(_CALL_SECONDS)
        try:
            reply: tuple[object, str] = function(*arguments), ""
        except Exception as error:  # the message may have the user's code in it
            reply = None, type(error).__name__
        output.write(framed(reply))
        output.flush()


def _receive(calls: "queue.SimpleQueue[Any]") -> None:
    """Hand calls on until there is nobody who could want their results."""
    try:
        while True:
            calls.put(read_frame(sys.stdin.buffer))
    finally:
        os._exit(0)


def _limit_processor_time(seconds: int) -> None:
    """Have the system end this process after so many more seconds of the processor's time, and write no core file."""
    if sys.platform == "win32":
        return
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    limit = int(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


if __name__ == "__main__":
    main()
