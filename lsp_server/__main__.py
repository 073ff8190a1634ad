"""The command midspan-lsp: the language server on stdio."""

import argparse
import os
import sys
from typing import BinaryIO, cast

from lsp_server import quick_start  # isort: skip  # Before anything that imports lsprotocol.
from engine import __version__
from lsp_server.log import log_to_stderr
from lsp_server.server import MidspanServer
from lsp_server.transport import BoundedInput


def main() -> None:
    """Serve one editor, then exit."""
    _parser().parse_args()
    log_to_stderr()
    server = MidspanServer()
    quick_start.finish()
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
    parser.add_argument("--stdio", action="store_true", help="use stdin and stdout; there is no other way")
    parser.add_argument("--version", action="version", version=f"midspan-lsp {__version__}")
    return parser


if __name__ == "__main__":
    main()
