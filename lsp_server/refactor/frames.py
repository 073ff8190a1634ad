"""How calls go to a worker process, and results come back.

A frame is the length of a pickle in eight bytes, and the pickle. This module imports little: a process starts with it.
"""

import pickle
import struct
import sys
from typing import IO, Any

# -P: Python must not import a folder of the user's project.
COMMAND = (sys.executable, "-P", "-m", "lsp_server.refactor.worker_process")
LENGTH = struct.Struct("<Q")


def framed(value: object) -> bytes:
    """Return a value as a frame."""
    data = pickle.dumps(value)
    return LENGTH.pack(len(data)) + data


def read_frame(source: IO[bytes]) -> Any:
    """Return the value of the next frame. Raises EOFError if the source ends before it, or inside of it."""
    (length,) = LENGTH.unpack(_read(source, LENGTH.size))
    return pickle.loads(_read(source, length))


def _read(source: IO[bytes], length: int) -> bytes:
    data = source.read(length)
    if len(data) < length:
        raise EOFError
    return data
