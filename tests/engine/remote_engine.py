"""Ends the engine processes of tests with remote models."""

import psutil

from engine.client.address import runtime_paths_of
from engine.client.launcher import EngineOptions
from engine.client.lock import is_held, read_record


def end_engine(options: EngineOptions) -> None:
    """End the engine of these options if one is running, and wait for its end."""
    paths = runtime_paths_of(options.model)
    record = read_record(paths.lock)
    if record is not None and is_held(paths.lock):
        process = psutil.Process(record.pid)
        process.terminate()
        process.wait(30)
