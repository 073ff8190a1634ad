"""Documents that the model never sees: those with secrets, those that are too large, and binary ones."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath

MAX_DOCUMENT_BYTES = 2 * 1024 * 1024


def why_secret(path: str, patterns: Sequence[str]) -> str | None:
    """Return why the model must not see the file at this path, as a phrase that follows "the file", or None.

    A pattern without a slash is matched with the file's name, one with a slash with the end of its path. Case does not
    matter: `.ENV` is a secret too.
    """
    full_path = PurePath(path).as_posix().lower()
    name = full_path.rpartition("/")[2]
    for pattern in patterns:
        glob = pattern.lower()
        if fnmatchcase(name, glob) or ("/" in glob and fnmatchcase(f"/{full_path}", f"*/{glob.lstrip('/')}")):
            return f'matches "{pattern}" of the setting midspan.exclude'
    return None


def why_unfit(text: str) -> str | None:
    """Return why a text is not for the model, as a phrase that follows "the file", or None."""
    if _is_too_large(text):
        return f"has more than {MAX_DOCUMENT_BYTES // 1024 // 1024} MB"
    if "\0" in text:
        return "is binary: it has NUL bytes"
    return None


def _is_too_large(text: str) -> bool:
    if len(text) > MAX_DOCUMENT_BYTES:
        return True
    is_possible = not text.isascii() and len(text) * 4 > MAX_DOCUMENT_BYTES
    return is_possible and len(text.encode(errors="replace")) > MAX_DOCUMENT_BYTES
