"""Bytes that are no LSP messages at all, to a language server that has begun a session."""

import subprocess
from pathlib import Path

from hardening.language_server import HANG_S, Broken, LanguageServer


def feed(runtime: Path, data: bytes) -> None:
    """Send the bytes and a request, and close the stream. Raises Broken if the server does not end by itself, in peace.

    Where the next message begins may be lost, so the request need not be answered.
    """
    server = LanguageServer(runtime, {"enabled": False})
    try:
        server.write(data)
        server.request("workspace/executeCommand", {"command": "midspan.accepted", "arguments": []})
        server.end_input()
        status = server.process.wait(HANG_S)
    except subprocess.TimeoutExpired:
        raise Broken("the server does not end when the editor is gone") from None
    finally:
        server.kill()
    if status or "Traceback" in server.last_words:
        raise Broken(f"the server ended with status {status}: {server.last_words}")
