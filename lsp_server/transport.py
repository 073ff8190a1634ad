"""How messages come in: bounded, and over TCP from no web page."""

import asyncio
import logging
import re
import sys
from threading import Event
from typing import BinaryIO

from pygls.io_ import run_async

from lsp_server.server import MidspanServer

_logger = logging.getLogger(__name__)

MOST_BYTES = 64 * 1024 * 1024
"""Of a message. Editors send whole files; those that are served have 2 MB."""
_TOO_LARGE = "a message of %d bytes was announced; at most %d are read"
_HEADER_BYTES = 1024
"""Of a line of a head. Python reads no number of more than 4,300 digits; pygls would end with its error."""
_PIECE = 1024 * 1024
_HEADER = re.compile(rb"(?i)content-(?:length|type):[^\r\n]*\r?\n|\r?\n")
# What no method is answers nothing, so the session goes on after a message that was too large.
_NOTHING = b'{"jsonrpc": "2.0", "method": "$/tooLarge"}'


class BoundedInput:
    """Standard input. A message that is too large is dropped in pieces, instead of asking for all its memory."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readline(self) -> bytes:
        """Return a line of a message's head, or the beginning of a very long one."""
        return self._stream.readline(_HEADER_BYTES)

    def read(self, size: int) -> bytes:
        """Return a message of `size` bytes, a notification that says nothing for a large one, and b"" at the end."""
        if size <= MOST_BYTES:
            return self._stream.read(size)
        _logger.error(_TOO_LARGE, size, MOST_BYTES)
        while size > 0 and (piece := self._stream.read(min(size, _PIECE))):
            size -= len(piece)
        return _NOTHING if size <= 0 else b""


class _GuardedReader:
    """A connection whose first lines must be those of a language client.

    A web page can have its browser send what it likes to a port of this machine, after lines of HTTP that say so.
    """

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._first = b""

    async def is_client(self) -> bool:
        """Return whether a language client may have sent the first line, which `readline` returns once more."""
        self._first = await self.readline()
        return bool(self._first)

    async def readline(self) -> bytes:
        if self._first:
            first, self._first = self._first, b""
            return first
        try:
            line = await self._reader.readline()
        except ValueError:  # longer than any header
            return b""
        if line and (len(line) > _HEADER_BYTES or not _HEADER.fullmatch(line)):
            _logger.error("something that is no language client was refused on the TCP port")
            return b""
        return line

    async def readexactly(self, size: int) -> bytes:
        if size > MOST_BYTES:
            _logger.error(_TOO_LARGE, size, MOST_BYTES)
            return b""
        try:
            return await self._reader.readexactly(size)
        except asyncio.IncompleteReadError:
            return b""


async def serve_tcp(server: MidspanServer, host: str, port: int) -> None:
    """Serve one editor on a TCP port, then return. Connections that are no editor's leave the port open.

    Prints one line and exits if the port cannot be had.
    """
    done = asyncio.Event()
    stop = Event()
    busy = asyncio.Lock()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        guarded = _GuardedReader(reader)
        if not await guarded.is_client() or busy.locked():
            writer.close()
            return
        async with busy:
            server.protocol.set_writer(writer)
            await run_async(stop, guarded, server.protocol, _logger, server.report_server_error)
            done.set()

    try:
        listening = await asyncio.start_server(connected, host, port)
    except OSError as error:
        sys.exit(f"midspan-lsp: cannot listen on {host}:{port}: {error.strerror}; choose another port")
    async with listening:
        await done.wait()
    server.shutdown()  # type: ignore[no-untyped-call]
