"""The process of a Worker: it reads calls from stdin, runs them one by one and writes their results to its stdout.

A frame is the length of a pickle in eight bytes, and the pickle. Only the parent writes to this process.
"""

import os
import pickle
import struct
import sys
from typing import BinaryIO

LENGTH = struct.Struct("<Q")


def main() -> None:
    """Run calls until stdin ends, as it does when the parent dies."""
    # A stray print must not get between the frames.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while (frame := _read(sys.stdin.buffer)) is not None:
        function, arguments = pickle.loads(frame)
        try:
            reply: tuple[object, str] = function(*arguments), ""
        except Exception as error:  # the message may have the user's code in it
            reply = None, type(error).__name__
        data = pickle.dumps(reply)
        output.write(LENGTH.pack(len(data)) + data)
        output.flush()


def _read(source: BinaryIO) -> bytes | None:
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    frame = source.read(length)
    return frame if len(frame) == length else None


if __name__ == "__main__":
    main()
