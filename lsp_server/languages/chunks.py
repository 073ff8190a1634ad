"""How tree-sitter reads a text: in pieces that are copied into buffers of ours, always the same ones.

tree-sitter's binding (0.26) never releases what its read callback returns. New bytes for each piece would stay until
the process ends: some 50 kB for each key in a long file.
"""

import threading
from collections.abc import Callable

import tree_sitter

_EXACT = 64
"""Up to so many bytes there is a buffer of each size. At least four must fit: a character may need all of them."""
_LARGEST = 14
"""The largest buffer has 2 ** 14 bytes."""


class _Buffers(threading.local):
    """The buffers of one thread, by size: a thread may parse while another one's parse has called `read`."""

    def __init__(self) -> None:
        sizes = (*range(1, _EXACT + 1), *(1 << power for power in range(_EXACT.bit_length(), _LARGEST + 1)))
        self.by_size = {size: bytearray(size) for size in sizes}


_buffers = _Buffers()


def reader(source: bytes) -> Callable[[int, tree_sitter.Point], bytes | bytearray]:
    """Return a read callback for tree_sitter.Parser.parse. What it returns is valid until its next call."""
    view, by_size = memoryview(source), _buffers.by_size

    def read(byte: int, _: tree_sitter.Point) -> bytes | bytearray:
        left = len(view) - byte
        if left <= 0:
            return b""
        # tree-sitter reads a character again that a piece cuts in two, and the next piece has all of it.
        buffer = by_size[left if left <= _EXACT else 1 << min(left.bit_length() - 1, _LARGEST)]
        buffer[:] = view[byte : byte + len(buffer)]
        return buffer

    return read
