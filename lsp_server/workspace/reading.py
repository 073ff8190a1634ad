"""Reads one file of a workspace, without a way out of its folder."""

import os
import stat
from pathlib import Path

from lsp_server.workspace.rules import MAX_FILE_BYTES, decode

# O_NONBLOCK: to open a pipe must not wait for its writer. Windows has neither pipes among files nor these flags.
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_text(folder: str, path: str) -> str | None:
    """Return the text of a file; None for one that cannot be read, is a symlink or below one, too large or binary.

    `folder` is a real path, `path` a path in it.
    """
    full = str(Path(folder, path))
    try:
        if os.path.normcase(os.path.realpath(full)) != os.path.normcase(full):
            return None
        descriptor = os.open(full, _FLAGS)
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return decode(file.read(MAX_FILE_BYTES + 1))
    except OSError:
        return None
    finally:
        os.close(descriptor)
