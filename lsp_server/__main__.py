"""The command midspan-lsp: the language server on stdio, or on a TCP port."""

import argparse
import asyncio
import os
import sys
from typing import BinaryIO, cast

from lsp_server import quick_start  # isort: skip  # Before anything that imports lsprotocol.
from engine import __version__
from lsp_server.log import log_to_stderr
from lsp_server.server import MidspanServer
from lsp_server.transport import BoundedInput, serve_tcp


def main() -> None:
    """Serve one editor, then exit."""
    arguments = _parser().parse_args()
    log_to_stderr()
    server = MidspanServer()
    quick_start.finish()
    if arguments.tcp is not None:
        asyncio.run(serve_tcp(server, *arguments.tcp))
    else:
        _serve_stdio(server)


def _serve_stdio(server: MidspanServer) -> None:
    # Only the editor's messages may go to stdout: a stray print, ours or a library's, would end the session.
    stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    server.start_io(cast(BinaryIO, BoundedInput(sys.stdin.buffer)), stdout)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="midspan-lsp", description="The Midspan language server: a local diffusion model fills in code."
    )
    transport = parser.add_mutually_exclusive_group()
    transport.add_argument("--stdio", action="store_true", help="use stdin and stdout; this is the default")
    transport.add_argument("--tcp", metavar="HOST:PORT", type=_host_and_port, help="wait for one editor on a TCP port")
    parser.add_argument("--version", action="version", version=f"midspan-lsp {__version__}")
    return parser


def _host_and_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, as in 127.0.0.1:7998")
    return host.strip("[]") or "127.0.0.1", int(port)


if __name__ == "__main__":
    main()
