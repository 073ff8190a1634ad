"""What a parser reads of a text, part by part, and a way around a leak of py-tree-sitter.

py-tree-sitter 0.26 never frees the parts that a read callback returns, some 12 kB for each key press. Only with a
callback can a parse be given up, and some texts would be parsed for ever; so the parts are freed here.
"""

import ctypes
import sys

import tree_sitter

_READ_BYTES = 16384


class Reads:
    """The parts that were read of a text in UTF-8. Release them after the parse."""

    def __init__(self, source: bytes) -> None:
        self._source = memoryview(source)
        self._parts: list[bytes] = []

    def read(self, byte: int, _: tree_sitter.Point) -> bytes:
        """Return the text from a byte on, as much as is read at a time: a copy that nobody else has."""
        part = self._source[byte : byte + _READ_BYTES].tobytes()
        self._parts.append(part)
        return part

    def release(self) -> None:
        """Drop the references that the parser has kept, if it has."""
        # A part that only this object has is referred to as often as a new one in a list of its own.
        control = [bytes(bytearray(2))]
        expected = sys.getrefcount(control[0])
        for index in range(len(self._parts)):
            # Empty and one-byte texts are shared by all of Python.
            if len(self._parts[index]) > 1:
                for _ in range(sys.getrefcount(self._parts[index]) - expected):
                    ctypes.pythonapi.Py_DecRef(ctypes.py_object(self._parts[index]))
        self._parts.clear()
