"""The lock file of an engine: one engine for each user and model, where clients find it, and its heartbeat.

What else the engine process tells its launcher is here too: its exit statuses, and the mark of its error line.
"""

import json
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

import attrs
import cattrs

from engine.errors import EngineUnavailable, MidspanError
from engine.json_file import read_json
from engine.whole_files import try_lock

ERROR = 1
INTERNAL = 70
# Another engine of the same user and model holds the lock. This is not an error: clients connect to that engine.
ALREADY_RUNNING = 75
# The line on stderr that says what is wrong begins with this.
ERROR_MARK = "midspan engine: "
# `is_held` takes the lock for a moment, so one failed attempt does not prove that another engine holds it.
_ATTEMPTS = 5
_ATTEMPT_GAP_S = 0.02
_MOST_BYTES = 65_536
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""Windows has none."""


@attrs.frozen
class LockRecord:
    """What the lock file says about the engine that holds it.

    The engine accepts clients once `socket` or `port` is set. Before that, `stage` tells the user what it is doing.
    """

    pid: int
    model: str
    version: str
    socket: str = ""
    port: int = 0
    stage: str = ""

    @property
    def accepts_clients(self) -> bool:
        return bool(self.socket or self.port)


class EngineLock:
    """Held by an engine while its process runs. The system frees it even when the process is killed."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, path: Path) -> Self | None:
        """Take the lock. Return None when another engine holds it.

        Raises EngineUnavailable when the file cannot be written.
        """
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_ATTEMPT_GAP_S)
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o600)
            except OSError as error:
                raise _not_writable(path, error) from None
            # An engine that ends removes the file. A lock on a removed file would not exclude the next engine.
            try:
                if try_lock(descriptor) and _is_same_file(descriptor, path):
                    os.ftruncate(descriptor, 0)  # a killed engine may have left its record
                    return cls(path, descriptor)
            except OSError as error:
                os.close(descriptor)
                own = "set MIDSPAN_RUNTIME_DIR to a directory of yours on a disk of this machine"
                raise EngineUnavailable(f"{path} cannot be locked: {error.strerror}; {own}") from None
            os.close(descriptor)
        return None

    def write(self, record: LockRecord) -> None:
        """Replace the record. Raises EngineUnavailable when it cannot be written."""
        body = json.dumps(attrs.asdict(record)).encode()
        try:
            # In one write, with blanks over the end of a longer one: a client that reads now gets the old or the new.
            whole = body.ljust(os.fstat(self._descriptor).st_size)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            if os.write(self._descriptor, whole) != len(whole):
                raise OSError(0, "only a part was written")
            os.ftruncate(self._descriptor, len(body))
        except OSError as error:
            raise _not_writable(self._path, error) from None

    def touch(self) -> None:
        """Update the time of the file, which shows clients that the engine is alive."""
        os.utime(self._descriptor if os.utime in os.supports_fd else self._path)

    def release(self) -> None:
        """Remove the file and free the lock. Further calls do nothing."""
        if self._descriptor < 0:
            return
        if sys.platform == "win32":  # Windows cannot remove an open file
            os.close(self._descriptor)
            self._path.unlink(missing_ok=True)
        else:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
        self._descriptor = -1


def read_record(path: Path) -> LockRecord | None:
    """Return the record in the lock file; None when there is no file, or no complete record in it."""
    try:
        return cattrs.structure(read_json(path, _MOST_BYTES), LockRecord)
    except (OSError, ValueError, TypeError, cattrs.BaseValidationError):
        return None


def last_heartbeat(path: Path) -> int:
    """Return when an engine last wrote or touched the lock file, in ns of the file system's clock; 0 without a file."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def is_held(path: Path) -> bool:
    """Whether a running engine holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDWR | _NO_LINK)
    except OSError:
        return False
    try:
        return not try_lock(descriptor)
    except OSError:  # an engine that starts there says so
        return False
    finally:
        os.close(descriptor)


def _not_writable(path: Path, error: OSError) -> EngineUnavailable:
    return EngineUnavailable(
        f"cannot write {path}: {error.strerror}; make room or set MIDSPAN_RUNTIME_DIR to a directory that you can write"
    )


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


BEAT_S = 0.5
PROGRESS_S = 5.0
"""Seconds between two progress messages to waiting clients."""


class Heartbeat:
    """A context manager that beats while the engine starts.

    Large weights take minutes to load. No fixed timeout suits every model, so clients wait while the lock file keeps
    changing. The heartbeat stops if the engine hangs in native code that holds the interpreter's lock, because the
    thread needs that lock.
    """

    def __init__(self, lock: EngineLock, record: LockRecord) -> None:
        self._lock, self._record = lock, record
        self._stage, self._stage_begin = "", time.monotonic()
        self._stopped = threading.Event()
        self._write_lock = threading.Lock()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop beating: the engine accepts clients now, or ends. Further calls do nothing."""
        self._stopped.set()
        self._thread.join()

    def set_stage(self, stage: str) -> None:
        """Tell waiting clients what the engine is doing, in a few words without a full stop."""
        with self._write_lock:
            self._stage, self._stage_begin = stage, time.monotonic()
            self._lock.write(attrs.evolve(self._record, stage=f"{stage}."))

    def _beat(self) -> None:
        last_report = 0.0
        while not self._stopped.wait(BEAT_S):
            # A failed write must not end the engine; the disk may have room again at the next beat.
            with self._write_lock, suppress(MidspanError, OSError):
                seconds = int(time.monotonic() - self._stage_begin)
                if seconds >= PROGRESS_S and seconds // PROGRESS_S != last_report:
                    last_report = seconds // PROGRESS_S
                    self._lock.write(attrs.evolve(self._record, stage=f"{self._stage}: {seconds} s so far."))
                else:
                    self._lock.touch()
