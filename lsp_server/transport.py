"""How messages come in: bounded."""

import logging
from typing import BinaryIO

_logger = logging.getLogger(__name__)

MOST_BYTES = 64 * 1024 * 1024
"""Of a message. Editors send whole files; those that are served have 2 MB."""
_TOO_LARGE = "a message of %d bytes was announced; at most %d are read"
_HEADER_BYTES = 1024
"""Of a line of a head. Python reads no number of more than 4,300 digits; pygls would end with its error."""
_PIECE = 1024 * 1024
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
