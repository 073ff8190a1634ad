"""Ending the engine process that a test started."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from engine.client.address import RuntimePaths
from engine.client.lock import is_held, read_record

PATIENCE_S = 60.0


def poll(true: Callable[[], bool]) -> None:
    """Wait until `true` is, and fail when it does not come."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, "what the test waits for did not happen"
        time.sleep(0.01)


def end(place: RuntimePaths) -> None:
    """End the engine of `place`, if one runs, and wait until none does.

    One that was started beside it, and found the lock taken, may take it in the moment when this one lets it go.
    """
    told: set[int] = set()

    def ended() -> bool:
        if not is_held(place.lock):
            return True
        record = read_record(place.lock)
        if record is not None and record.pid not in told:
            told.add(record.pid)
            with suppress(ProcessLookupError):
                os.kill(record.pid, signal.SIGTERM)
        return False

    poll(ended)
