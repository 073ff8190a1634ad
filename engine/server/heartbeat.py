"""The heartbeat of an engine that is starting: its lock file shows clients that it is alive and what it is doing."""

import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

import attrs

from engine.client.lock import EngineLock, LockRecord
from engine.errors import MidspanError

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
