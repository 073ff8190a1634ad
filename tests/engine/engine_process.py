"""Ending the engine process that a test started."""

import os
import signal
import time
from collections.abc import Callable

from engine.client.address import RuntimePaths
from engine.client.lock import is_held, read_record

PATIENCE_S = 30.0


def poll(true: Callable[[], bool]) -> None:
    """Wait until `true` is, and fail when it does not come."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, "what the test waits for did not happen"
        time.sleep(0.01)


def end(place: RuntimePaths) -> None:
    """End the engine of `place`, if it runs, and wait until it is gone."""
    record = read_record(place.lock)
    if record is not None and is_held(place.lock):
        os.kill(record.pid, signal.SIGTERM)
        poll(lambda: not is_held(place.lock))
