"""Writes the edits of files to disk: all files or none.

All new texts are written beside their files first. Then each takes its file's name, while the old file keeps another
one until the end. A journal in the user's data folder names the files, so that the next run undoes a run that was
killed. It is not in the workspace: a stranger's journal would have us rename files.
"""

import errno
import hashlib
import json
import os
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import cattrs

from engine.bounds import MAX_FILE_BYTES
from engine.errors import MidspanError
from engine.folders import data_folder
from engine.json_file import parse_json
from engine.reading import folder_of, open_file, read_open
from engine.whole_files import make_folder, try_lock, write_beside
from lsp_server.refactor.edit.file_edit import digest_of
from lsp_server.refactor.search import Found

BOM = "\ufeff"
_MOST_JOURNAL = 64 * 1024 * 1024
_KEPT_S = 90 * 24 * 3600.0
"""Seconds that a journal is kept for files that do not come back."""


class NotSaved(MidspanError):
    """No file was written. The message says which one could not be, and why."""

    code = "not-saved"


@attrs.frozen
class _File:
    """A file of a journal, with the SHA-256 of its bytes before and after; "" for what is not yet written."""

    folder: str
    path: str
    before: str = ""
    after: str = ""


@attrs.frozen
class _Plan:
    """A journal. `token` is in the names of the files beside."""

    token: str
    files: list[_File]

    def beside(self, number: int, ending: str) -> str:
        return f".midspan-{self.token}-{number}.{ending}"


def is_read_only(path: Path) -> bool:
    """Return whether a file is read-only, also for root, who may write it. One that is not there is not."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not mode & stat.S_IWUSR or not os.access(path, os.W_OK)


def save(changes: Sequence[Found]) -> None:
    """Apply edits to all files, which keep their owners and rights, or to none.

    Raises NotSaved if a file is not the one that was searched, or cannot be written.
    """
    plan = _Plan(secrets.token_hex(8), [_File(change.target.folder, change.target.path) for change in changes])
    with _journal(plan) as journal:
        marks = list[tuple[int, int, int]]()
        try:
            for number, change in enumerate(changes):
                with _explained(change, "cannot be written"):
                    plan.files[number], mark = _prepared(change, plan.beside(number, "new"))
                    marks.append(mark)
            journal.write(plan)
            for number, change in enumerate(changes):
                with _explained(change, "cannot be written"):
                    _exchange(plan, number, marks[number])
        except BaseException:
            journal.is_needed = not _undo(plan).is_whole
            raise
        _tidy(plan)


def undo_interrupted() -> int:
    """Undo what runs that were killed have written so far, and return how many files that were.

    A file that was changed since is left as it is. What is out of reach is tried again by the next run.
    """
    count = 0
    for path in sorted(_journals().glob("*.json")):
        with suppress(OSError, ValueError, cattrs.BaseValidationError), _Journal.found(path) as journal:
            plan = journal.read()
            if plan is not None:
                undone = _undo(plan)
                count += undone.count
                if undone.is_whole or time.time() - path.stat().st_mtime > _KEPT_S:
                    journal.remove()
    return count


def _prepared(change: Found, beside: str) -> tuple[_File, tuple[int, int, int]]:
    """Write the new text of a file beside it. Return the file with its digests, and what tells it from a later one."""
    with folder_of(change.target.folder, change.target.path) as (parent, name):
        try:
            old = open_file(parent, name)
        except OSError as error:
            raise NotSaved(f"{change.target.full} cannot be read ({error.strerror}); run the command again") from error
        try:
            status = os.fstat(old)
            if not status.st_mode & stat.S_IWUSR or not os.access(name, os.W_OK, dir_fd=parent):
                raise NotSaved(f"{change.target.full} is read-only; make it writable and run the command again")
            data = read_open(old, MAX_FILE_BYTES)
            new = _edited(change, data)
            write_beside(_at(parent, name, beside), new, parent, old)
        finally:
            os.close(old)
    file = _File(change.target.folder, change.target.path, _digest(data), _digest(new))
    return file, (status.st_ino, status.st_mtime_ns, status.st_size)


def _edited(change: Found, data: bytes) -> bytes:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotSaved(f"{change.target.full} is not UTF-8; convert it first") from error
    start = BOM if text.startswith(BOM) else ""
    text = text.removeprefix(BOM)
    if digest_of(text) != change.edit.digest:
        raise NotSaved(f"{change.target.full} changed while the edit was computed; run the command again")
    return (start + change.edit.applied(text)).encode("utf-8")


def _exchange(plan: _Plan, number: int, mark: tuple[int, int, int]) -> None:
    """Give the new file the old one's name, and the old one a name beside it."""
    file = plan.files[number]
    with folder_of(file.folder, file.path) as (parent, name):
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if (status.st_ino, status.st_mtime_ns, status.st_size) != mark:
            full = Path(file.folder, file.path)
            raise NotSaved(f"{full} changed while the edit was computed; run the command again")
        old, new = (_at(parent, name, plan.beside(number, ending)) for ending in ("old", "new"))
        try:
            os.link(name, old, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
        except (OSError, NotImplementedError):  # a file system without hard links
            descriptor = open_file(parent, name)
            try:
                write_beside(old, read_open(descriptor, MAX_FILE_BYTES), parent, descriptor)
            finally:
                os.close(descriptor)
        os.replace(new, name, src_dir_fd=parent, dst_dir_fd=parent)


@attrs.frozen
class _Undone:
    """How many files have their old text again, and whether all were within reach."""

    count: int
    is_whole: bool


def _undo(plan: _Plan) -> _Undone:
    """Give the old files their names again, where nobody has changed the new ones."""
    count, is_whole = 0, True
    for number, file in enumerate(plan.files):
        try:
            with folder_of(file.folder, file.path) as (parent, name):
                count += _undo_one(plan, number, parent, name)
                _tidy_one(plan, number, parent, name)
        except OSError:
            is_whole = False
    return _Undone(count, is_whole)


def _undo_one(plan: _Plan, number: int, parent: int | None, name: str) -> int:
    """Return 1 if the file has its old text again. Raises OSError if it cannot be reached."""
    file, old = plan.files[number], _at(parent, name, plan.beside(number, "old"))
    beside = (_at(parent, name, plan.beside(number, "new")), old)
    if not any(_is_there(parent, each) for each in (name, *beside)):  # such as below the folder of a disk that is away
        raise FileNotFoundError(errno.ENOENT, "nothing of the file is there")
    try:
        fits = file.after and _digest_at(parent, old) == file.before and _digest_at(parent, name) == file.after
    except OSError:  # it was not exchanged yet, or somebody put something else into its place
        return 0
    if not fits:
        return 0
    os.replace(old, name, src_dir_fd=parent, dst_dir_fd=parent)
    return 1


def _is_there(parent: int | None, name: str) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _tidy(plan: _Plan) -> None:
    """Remove the files beside."""
    for number, file in enumerate(plan.files):
        with suppress(OSError), folder_of(file.folder, file.path) as (parent, name):
            _tidy_one(plan, number, parent, name)


def _tidy_one(plan: _Plan, number: int, parent: int | None, name: str) -> None:
    for ending in ("new", "old"):
        with suppress(FileNotFoundError):
            os.unlink(_at(parent, name, plan.beside(number, ending)), dir_fd=parent)


def _at(parent: int | None, name: str, beside: str) -> str:
    """Return the name of a file beside another one, which is a full path where folders cannot be opened."""
    return beside if parent is not None else str(Path(name).with_name(beside))


def _digest_at(parent: int | None, name: str) -> str:
    descriptor = open_file(parent, name)
    try:
        return _digest(read_open(descriptor, 2 * _MOST_JOURNAL))
    finally:
        os.close(descriptor)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def _explained(change: Found, problem: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NotSaved(f"{change.target.full} {problem} ({error.strerror}); check the folder's rights") from error


def _journals() -> Path:
    return data_folder() / "unfinished-edits"


@contextmanager
def _journal(plan: _Plan) -> "Iterator[_Journal]":
    """Write the journal of a plan, locked as long as this process lives. It is removed at the end."""
    path = _journals() / f"{plan.token}.json"
    try:
        make_folder(path.parent)
        journal = _Journal(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise NotSaved(
            f"{path} cannot be written ({error.strerror}); set MIDSPAN_DATA_DIR to another folder"
        ) from error
    with journal:
        try:
            try_lock(journal.descriptor)
            journal.write(plan)
        except OSError as error:
            raise NotSaved(f"{path} cannot be written ({error.strerror}); make room on the disk") from error
        try:
            yield journal
        finally:
            if not journal.is_needed:
                journal.remove()


@attrs.define
class _Journal:
    """An open journal: a line for each state of the plan, the last whole one counts."""

    path: Path
    descriptor: int
    is_needed: bool = False

    @classmethod
    def found(cls, path: Path) -> "_Journal":
        """Open a journal that nobody works on. Raises OSError."""
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        if not try_lock(descriptor):
            os.close(descriptor)
            raise OSError("another run works on it")
        return cls(path, descriptor)

    def write(self, plan: _Plan) -> None:
        with os.fdopen(self.descriptor, "ab", closefd=False) as file:
            file.write(json.dumps(attrs.asdict(plan)).encode() + b"\n")
        os.fsync(self.descriptor)

    def read(self) -> _Plan | None:
        """Return the last plan that was written whole; None if there is none. Raises ValueError for what is none."""
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        lines = read_open(self.descriptor, _MOST_JOURNAL).split(b"\n")[:-1]
        values: Any = parse_json(lines[-1]) if lines else None
        return cattrs.structure(values, _Plan) if lines else None

    def remove(self) -> None:
        if self.descriptor >= 0:
            self.__exit__()
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> "_Journal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
