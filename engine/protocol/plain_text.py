"""Text without the characters that change what a reader sees of other text.

A model, a server and a repository can put them into ghost text and into a terminal: escape sequences move the cursor
and set the clipboard, backspaces hide what is there, bidirectional controls reorder it, and nobody sees tag characters.
"""

_CONTROLS = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\t"), ord("\n"), ord("\r")}
_BIDIRECTIONAL = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_TAGS = set(range(0xE0000, 0xE0080))
_CUT = dict.fromkeys(_CONTROLS - {0} | _BIDIRECTIONAL | _TAGS)
"""NUL stays: a suggestion ends there (lsp_server/suggest/shape.py)."""


def plain(text: str) -> str:
    """Return `text` without control characters, except tab, newline, return and NUL, and without those of _CUT."""
    return text if text.isascii() and text.isprintable() else text.translate(_CUT)


def plain_all(texts: list[str]) -> list[str]:
    """Return each text as `plain` does."""
    return [plain(text) for text in texts]
