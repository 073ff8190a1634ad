"""How an engine that is not ready yet shows that it lives, and what it is at: through its lock file."""

import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

import attrs

from engine.client.lock import EngineLock, LockRecord
from engine.errors import MidspanError

BEAT_S = 0.5
TELL_S = 5.0
"""How often who waits is told for how long the engine has been at it."""


class Heartbeat:
    """Open as a context manager while the engine starts. Large weights take minutes, and no time that a client could
    wait at most is right for all; so it waits as long as the lock file is touched.

    The thread needs the interpreter's lock: an engine that hangs in native code which holds it falls silent.
    """

    def __init__(self, lock: EngineLock, record: LockRecord) -> None:
        self._lock, self._record = lock, record
        self._stage, self._since = "", time.monotonic()
        self._over = threading.Event()
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Leave the lock file alone: the engine answers now, or ends. A second call does nothing."""
        self._over.set()
        self._thread.join()

    def say(self, stage: str) -> None:
        """Tell who waits what the engine is at: a few words, without a full stop."""
        with self._writing:
            self._stage, self._since = stage, time.monotonic()
            self._lock.write(attrs.evolve(self._record, stage=f"{stage}."))

    def _beat(self) -> None:
        told = 0.0
        while not self._over.wait(BEAT_S):
            # A disk that is full now may not be later, and nothing here is worth an engine.
            with self._writing, suppress(MidspanError, OSError):
                seconds = int(time.monotonic() - self._since)
                if seconds >= TELL_S and seconds // TELL_S != told:
                    told = seconds // TELL_S
                    self._lock.write(attrs.evolve(self._record, stage=f"{self._stage}: {seconds} s so far."))
                else:
                    self._lock.touch()
