"""Which documents are left alone: those with secrets, those too large, and those that are no text."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath

MAX_DOCUMENT_BYTES = 2 * 1024 * 1024


def why_secret(path: str, patterns: Sequence[str]) -> str | None:
    """Return why the file of this path must not reach the model, in words that fit behind "the file", or None.

    A pattern without a slash is matched with the file's name, one with a slash with the end of its path. Case does not
    matter: a secret stays one as `.ENV`.
    """
    whole = PurePath(path).as_posix().lower()
    name = whole.rpartition("/")[2]
    for pattern in patterns:
        wanted = pattern.lower()
        if fnmatchcase(name, wanted) or ("/" in wanted and fnmatchcase(f"/{whole}", f"*/{wanted.lstrip('/')}")):
            return f'matches "{pattern}" of the setting midspan.exclude'
    return None


def why_unfit(text: str) -> str | None:
    """Return why a text is no work for a model, in words that fit behind "the file", or None when it is."""
    if _is_too_large(text):
        return f"has more than {MAX_DOCUMENT_BYTES // 1024 // 1024} MB"
    if "\0" in text:
        return "is binary: it has NUL bytes"
    return None


def _is_too_large(text: str) -> bool:
    if len(text) > MAX_DOCUMENT_BYTES:
        return True
    may_be = not text.isascii() and len(text) * 4 > MAX_DOCUMENT_BYTES
    return may_be and len(text.encode(errors="replace")) > MAX_DOCUMENT_BYTES
