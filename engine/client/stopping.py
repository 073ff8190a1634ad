"""Ending a running engine: it is asked to end, and one that does not answer is killed."""

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from engine.client.address import RuntimePaths, all_runtime_paths, check_private
from engine.client.connection import EngineClient
from engine.client.launcher import EngineOptions, connect_at
from engine.client.lock import is_held, read_record
from engine.errors import EngineUnavailable, MidspanError, ProtocolError

ANSWER_S = 3.0
"""An engine that does not answer a status request within this time will not end when it is asked to."""
_END_S = 10.0
_POLL_S = 0.05
_LOOKS = 3


async def stop_running(options: EngineOptions, client_name: str) -> bool:
    """End the engine of these options, and wait for its end. Return False when none is running.

    It is asked to end. If it does not answer, the process that holds its lock is killed. `client_name` is our name.
    Raises MidspanError.
    """
    return await _stop_at(options.paths, client_name)


async def stop_all(client_name: str) -> list[str]:
    """End all engines of the user, as `stop_running` does one, and return their models. Raises MidspanError."""
    stopped = []
    for paths in all_runtime_paths():
        record = read_record(paths.lock)
        try:
            ended = await _stop_at(paths, client_name)
        except ProtocolError:  # It is of another version.
            await kill_holder(paths)
            ended = True
        if ended and record is not None:
            stopped.append(record.model)
    return stopped


async def _stop_at(paths: RuntimePaths, client_name: str) -> bool:
    if not is_held(paths.lock):
        return False
    try:
        async with asyncio.timeout(ANSWER_S):
            client = await connect_at(paths, client_name)
    except (EngineUnavailable, TimeoutError):
        await kill_holder(paths)
        return True
    if client is None:
        if not is_held(paths.lock):
            return False
        await kill_holder(paths)  # It is still loading its model.
        return True
    try:
        await stop(client, paths)
    finally:
        await client.close()
    return True


async def stop(client: EngineClient, paths: RuntimePaths) -> None:
    """End the engine at the other end of a connection, as `stop_running` does."""
    with suppress(MidspanError, TimeoutError):
        async with asyncio.timeout(ANSWER_S):
            await client.status()
        await client.shutdown()
        return
    await kill_holder(paths)


async def kill_holder(paths: RuntimePaths) -> None:
    """Kill the process that holds the lock, and wait until the lock is free.

    Raises EngineUnavailable when somebody else could have written the lock, and when the process is not our engine.
    """
    # Nothing is believed that somebody else could have written.
    check_private(paths)
    # A client that looks at the lock holds it for a moment.
    for _ in range(_LOOKS):
        if not is_held(paths.lock):
            return
        await asyncio.sleep(_POLL_S)
    record = read_record(paths.lock)
    if record is None or not _is_our_engine(record.pid):
        raise EngineUnavailable(
            f"the engine does not answer, and no process of yours is named by its lock {paths.lock}; end it by hand"
        )
    try:
        os.kill(record.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    except OSError as error:
        raise EngineUnavailable(f"the engine (process {record.pid}) cannot be killed: {error.strerror}") from None
    until = time.monotonic() + _END_S
    while is_held(paths.lock):
        if time.monotonic() > until:
            raise EngineUnavailable(f"the engine (process {record.pid}) was killed and still holds {paths.lock}")
        await asyncio.sleep(_POLL_S)


def _is_our_engine(pid: int) -> bool:
    """Whether a process is one of ours that runs an engine. The lock is held, so its record is not of an older one."""
    if pid <= 1 or pid == os.getpid():
        return False
    place = Path(f"/proc/{pid}")
    if sys.platform == "win32" or not place.exists():
        return True  # The system refuses to kill a process of somebody else.
    try:
        return place.stat().st_uid == os.geteuid() and b"engine" in (place / "cmdline").read_bytes()
    except OSError:
        return False
