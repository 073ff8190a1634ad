"""Writes the edits of a file to disk: whole or not at all."""

import os
import stat
import tempfile
from pathlib import Path

from engine.errors import MidspanError
from lsp_server.refactor.file_edit import FileEdit, digest_of

BOM = "\ufeff"


class NotSaved(MidspanError):
    """A file was not written. The message says which and why."""

    code = "not-saved"


def save(path: Path, edit: FileEdit) -> None:
    """Apply edits to a file, which keeps its mode. Raises NotSaved if the file is not the one that was searched.

    The new text is written to another file first, which then takes the name: a crash leaves the old text or the new.
    """
    try:
        data = path.read_bytes()
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise NotSaved(f"{path} cannot be read ({error.strerror}); run the command again") from error
    if is_read_only(path):
        raise NotSaved(f"{path} is read-only; make it writable and run the command again")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotSaved(f"{path} is not UTF-8; convert it first") from error
    start = BOM if text.startswith(BOM) else ""
    text = text.removeprefix(BOM)
    if digest_of(text) != edit.digest:
        raise NotSaved(f"{path} changed while the edit was computed; run the command again")
    _replace(path, (start + edit.applied(text)).encode("utf-8"), mode)


def is_read_only(path: Path) -> bool:
    """Return whether a file is read-only, also for root, who may write it. One that is not there is not."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not mode & stat.S_IWUSR or not os.access(path, os.W_OK)


def _replace(path: Path, data: bytes, mode: int) -> None:
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            Path(name).chmod(mode)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise NotSaved(f"{path} cannot be written ({error.strerror}); check the folder's rights") from error
