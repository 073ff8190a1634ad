"""The process of a Worker: it reads calls from stdin, runs them one by one and writes their results to its stdout.

Only the parent writes to this process. It ends when the parent does, whatever it is doing: a thread waits for the end
of stdin. What never comes back to Python ends by its limit of processor time, where the system has one.

A call is a function with its arguments, a reply its result and the name of an error. Each is a frame: the length of a
pickle in eight bytes, and the pickle. This module imports little, because each process starts with it.
"""

import os
import pickle
import queue
import struct
import sys
import threading
from typing import IO, Any

from engine.priority import give_way

# -P: Python must not import a folder of the user's project.
COMMAND = (sys.executable, "-P", "-m", "lsp_server.refactor.worker_process")
"""Starts the process. An argument after it is added to its niceness: typing gets the processor first."""
LENGTH = struct.Struct("<Q")

_CALL_SECONDS = 120
"""Processor time for a call. The parent of most calls gives up after 60 seconds of the clock."""


def main() -> None:
    """Run calls until stdin ends, as it does when the parent dies."""
    if len(sys.argv) > 1:
        give_way(int(sys.argv[1]))
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
            calls.put(_read_frame(sys.stdin.buffer))
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


def framed(value: object) -> bytes:
    """Return a value as a frame."""
    data = pickle.dumps(value)
    return LENGTH.pack(len(data)) + data


def _read_frame(source: IO[bytes]) -> Any:
    """Return the value of the next frame. Raises EOFError if the source ends before it, or inside of it."""
    (length,) = LENGTH.unpack(_read(source, LENGTH.size))
    return pickle.loads(_read(source, length))


def _read(source: IO[bytes], length: int) -> bytes:
    data = source.read(length)
    if len(data) < length:
        raise EOFError
    return data


if __name__ == "__main__":
    main()
