"""The command midspan-lsp: the language server on stdio. It starts in half the time that its libraries would take.

attrs compiles the methods of lsprotocol's 550 message classes when they are defined, which takes four fifths of the
start. Half of that goes into `__repr__`, `__eq__` and slots, which nothing here needs; positions and ranges define
their own equality and keep it. The start creates no garbage, so garbage collection waits until its end. Where
lsprotocol is already imported, as in a test, only the garbage collection changes.
"""

import os
import sys

_ALLOCATOR = "PYTHONMALLOC"


def _take_memory_from_glibc() -> None:
    """Start this program again with glibc's allocator in place of Python's: see lsp_server/heap.py.

    Python chooses its allocator before it runs any code, by a variable. Programs that we start do not inherit it. Free
    threads need Python's own.
    """
    if sys.platform != "linux" or not sys.executable or "t" in sys.abiflags:
        return
    if os.environ.get(_ALLOCATOR):
        del os.environ[_ALLOCATOR]
        return
    try:
        if os.confstr("CS_GNU_LIBC_VERSION"):
            environment = {**os.environ, _ALLOCATOR: "malloc"}
            os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
    except (OSError, ValueError):  # another C library, or a system that lets no program start another
        return


# Before the libraries, which take most of the start. Not where another program imports this module.
if __name__ == "__main__" or sys.argv[0].rpartition("/")[2] == "midspan-lsp":
    _take_memory_from_glibc()

import argparse
import functools
import gc
from typing import BinaryIO, cast

import attrs

gc.disable()
_define = attrs.define
attrs.define = functools.partial(_define, repr=False, eq=False, slots=False)
try:
    import lsprotocol.types  # noqa: F401
finally:
    attrs.define = _define

from engine import __version__
from engine.errors import MidspanError
from lsp_server.lifetime import end_soon
from lsp_server.protocol import BoundedInput, log_to_stderr
from lsp_server.server import MidspanServer


def main() -> None:
    """Serve one editor, then exit."""
    _parser().parse_args()
    log_to_stderr()
    try:
        server = MidspanServer()
    except MidspanError as error:
        sys.exit(f"midspan-lsp: {error}")
    # Garbage is collected from now on, but the objects that exist already are never visited.
    gc.freeze()
    gc.enable()
    _serve_stdio(server)


def _serve_stdio(server: MidspanServer) -> None:
    # Only the editor's messages may go to stdout: a stray print, ours or a library's, would end the session.
    stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    server.start_io(cast(BinaryIO, BoundedInput(sys.stdin.buffer, end_soon)), stdout)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="midspan-lsp", description="The Midspan language server: a local diffusion model fills in code."
    )
    parser.add_argument("--stdio", action="store_true", help="use stdin and stdout; there is no other way")
    parser.add_argument("--version", action="version", version=f"midspan-lsp {__version__}")
    return parser


if __name__ == "__main__":
    main()
