"""The process of a Worker: it reads calls from stdin, runs them one by one and writes their results to its stdout.

Only the parent writes to this process.
"""

import os
import sys

from lsp_server.refactor.frames import framed, read_frame


def main() -> None:
    """Run calls until stdin ends, as it does when the parent dies."""
    # A stray print must not get between the frames.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            function, arguments = read_frame(sys.stdin.buffer)
        except EOFError:
            return
        try:
            reply: tuple[object, str] = function(*arguments), ""
        except Exception as error:  # the message may have the user's code in it
            reply = None, type(error).__name__
        output.write(framed(reply))
        output.flush()


if __name__ == "__main__":
    main()
