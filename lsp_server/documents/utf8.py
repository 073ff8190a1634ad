"""Texts in UTF-8. Half a surrogate pair, which an editor may send, has three bytes."""

_CONTINUING = bytes(range(0x80, 0xC0))
"""The bytes that begin no character."""


def encoded(text: str) -> bytes:
    """Return `text` in UTF-8, halves of surrogate pairs included."""
    return text.encode("utf-8", "surrogatepass")


def utf8_length(text: str) -> int:
    """Return the length of `text` in UTF-8 bytes."""
    return len(text) if text.isascii() else len(encoded(text))


def characters_in(data: bytes) -> int:
    """Return how many characters begin in `data`. No loop in Python: lines may have millions of bytes."""
    return len(data) if data.isascii() else len(data.translate(None, _CONTINUING))
