"""The lock that makes an engine the only one of its user and model, and the record in it by which clients find it."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Self

import attrs
import cattrs

from engine.errors import EngineUnavailable
from engine.file_lock import try_lock

# `is_held` takes the lock for an instant, so one refusal does not yet mean that another engine has it.
_ATTEMPTS = 5
_ATTEMPT_GAP_S = 0.02


@attrs.frozen
class LockRecord:
    """What the lock file says about the engine that holds it; it answers once it has a socket or a port.

    `stage` is what an engine that does not answer yet is at, for its user.
    """

    pid: int
    model: str
    version: str
    socket: str = ""
    port: int = 0
    stage: str = ""

    @property
    def answers(self) -> bool:
        return bool(self.socket or self.port)


class EngineLock:
    """Held by an engine while its process lives: the system frees it even when the process is killed."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, path: Path) -> Self | None:
        """Take the lock; None when another engine has it. Raises EngineUnavailable when the file cannot be written."""
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_ATTEMPT_GAP_S)
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                raise _unwritable(path, error) from None
            # A leaving engine removes the file: only a lock on the file that is still there counts.
            if try_lock(descriptor) and _is_file_of(descriptor, path):
                os.ftruncate(descriptor, 0)  # what a killed engine left there must not be taken for us
                return cls(path, descriptor)
            os.close(descriptor)
        return None

    def write(self, record: LockRecord) -> None:
        """Replace the record. Raises EngineUnavailable when the disk does not take it."""
        body = json.dumps(attrs.asdict(record)).encode()
        try:
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            if os.write(self._descriptor, body) != len(body):
                raise OSError(0, "only a part was written")
        except OSError as error:
            raise _unwritable(self._path, error) from None

    def touch(self) -> None:
        """Show that the engine lives."""
        os.utime(self._descriptor if os.utime in os.supports_fd else self._path)

    def release(self) -> None:
        """Remove the file and free the lock. A second call does nothing."""
        if self._descriptor < 0:
            return
        if sys.platform == "win32":  # a file that is open cannot be removed there
            os.close(self._descriptor)
            self._path.unlink(missing_ok=True)
        else:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
        self._descriptor = -1


def read_record(path: Path) -> LockRecord | None:
    """Return what the lock file says; None when there is none, or an engine is just writing it."""
    try:
        return cattrs.structure(json.loads(path.read_bytes()), LockRecord)
    except (OSError, ValueError, cattrs.BaseValidationError):
        return None


def last_sign(path: Path) -> int:
    """Return when an engine last wrote or touched the lock file, in ns of its file system; 0 without a file."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def is_held(path: Path) -> bool:
    """Whether a living engine has the lock."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not try_lock(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> EngineUnavailable:
    return EngineUnavailable(
        f"cannot write {path}: {error.strerror}; make room or set MIDSPAN_RUNTIME_DIR to a directory that you can write"
    )


def _is_file_of(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False
