"""Documents that the model never sees: those with secrets, those that are too large, and binary ones."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath

MAX_DOCUMENT_BYTES = 2 * 1024 * 1024
_TOO_LARGE = f"has more than {MAX_DOCUMENT_BYTES // 1024 // 1024} MB"


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
    # Nothing is encoded that is too large by its characters alone.
    if len(text) > MAX_DOCUMENT_BYTES:
        return _TOO_LARGE
    return why_data_unfit(text.encode(errors="replace"))


def why_data_unfit(data: bytes) -> str | None:
    """Return the same for a text in UTF-8, at once for a large one too."""
    if len(data) > MAX_DOCUMENT_BYTES:
        return _TOO_LARGE
    return "is binary: it has NUL bytes" if b"\0" in data else None
