"""The command midspan-lsp: the language server on stdio, on a TCP port, or on a WebSocket."""

import argparse
import os
import sys

from lsp_server import quick_start  # isort: skip  # Before all that imports lsprotocol.
from engine import __version__
from lsp_server.log import log_to_stderr
from lsp_server.server import MidspanServer


def main() -> None:
    """Serve one editor, then leave."""
    arguments = _parser().parse_args()
    log_to_stderr()
    server = MidspanServer()
    quick_start.finish()
    if arguments.tcp is not None:
        server.start_tcp(*arguments.tcp)
    elif arguments.ws is not None:
        server.start_ws(*arguments.ws)
    else:
        _serve_stdio(server)


def _serve_stdio(server: MidspanServer) -> None:
    # A stray print, ours or a library's, would end the session: stdout is the editor's alone.
    stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    server.start_io(sys.stdin.buffer, stdout)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="midspan-lsp", description="The language server of Midspan: code filled in by a local diffusion model."
    )
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--stdio", action="store_true", help="talk over stdin and stdout; this is the default")
    way.add_argument("--tcp", metavar="HOST:PORT", type=_host_and_port, help="wait for one editor on a TCP port")
    way.add_argument("--ws", metavar="HOST:PORT", type=_host_and_port, help="the same as a WebSocket server")
    parser.add_argument("--version", action="version", version=f"midspan-lsp {__version__}")
    return parser


def _host_and_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, as in 127.0.0.1:7998")
    return host.strip("[]") or "127.0.0.1", int(port)


if __name__ == "__main__":
    main()
