"""Find the running engine of a user and model, start it as a process of its own that all clients share, or end it.

An engine is asked to end, and one that does not answer is killed.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

import attrs

from engine.client.address import (
    Address,
    RuntimePaths,
    all_runtime_paths,
    check_private,
    make_private,
    resolve_model,
    runtime_paths_of,
)
from engine.client.connection import EngineClient, EngineSilent
from engine.client.lock import ALREADY_RUNNING, ERROR_MARK, is_held, last_heartbeat, read_record
from engine.errors import EngineUnavailable, MidspanError, ProtocolError
from engine.library.store import DEFAULT
from engine.whole_files import make_folder

HEARTBEAT_TIMEOUT_S = 60.0
"""An engine that starts is given up after this time without a heartbeat (see lock.py)."""
MAX_START_S = 30 * 60.0
"""A start is given up after this time even with heartbeats."""
_POLL_S = 0.05


@attrs.frozen
class EngineOptions:
    """How an engine is started. `model` and `precision` identify it; the other options apply only when it starts.

    `precision` is one of library.precision_names.PRECISION_SETTINGS, `log_level` one of server.log.LEVELS. `threads` 0
    uses all cores. The engine ends after `idle_minutes` without a request; with 0 it never does. The model "default" is
    the one that library.store.chosen_model returns. `memory_megabytes` bounds the memory of all workspaces together.
    `niceness` makes it give way to all other processes (engine/priority.py).
    """

    model: str = DEFAULT
    threads: int = 0
    device: str = "auto"
    precision: str = "auto"
    idle_minutes: float = 30.0
    log_level: str = "info"
    memory_megabytes: int = 256
    niceness: int = 0

    @property
    def paths(self) -> RuntimePaths:
        """The runtime files of this engine."""
        return runtime_paths_of(self.model, self.precision)


@attrs.frozen
class _EngineProcess:
    """An engine process that we started. It writes its error line to `output`, after the byte `output_start`."""

    popen: subprocess.Popen[bytes]
    output: IO[bytes]
    output_start: int


async def connect_running(options: EngineOptions, client: str) -> EngineClient | None:
    """Connect to the running engine of these options. Return None when there is none that accepts clients.

    `client` is the client's name. Raises ProtocolError when the engine refuses the connection, EngineSilent when it
    does not answer, and EngineUnavailable when somebody else could have written where it is.
    """
    return await connect_at(options.paths, client)


async def connect_at(paths: RuntimePaths, client: str) -> EngineClient | None:
    """Connect to the running engine with these runtime files, as `connect_running` does."""
    address = _address(paths)
    if address is None:
        return None
    try:
        return await EngineClient.connect(address, client)
    except EngineSilent:
        raise
    except EngineUnavailable:  # the engine has ended or is ending
        return None


async def connect_or_start(
    options: EngineOptions, client: str, on_state: Callable[[str], None] | None = None
) -> EngineClient:
    """Connect to the engine of these options. If none is running, start one and wait until it accepts clients.

    The wait ends when the engine's heartbeat stops, and after half an hour at the latest. `on_state` is called with
    "starting" (we start a process), "loading" (it loads the model), the stages that the engine reports, and "ready".
    Raises EngineUnavailable, with the engine's own error line if there is one; EngineSilent when one that runs does not
    answer; and ProtocolError when it refuses the connection.
    """
    report_state = on_state or (lambda _: None)
    # Resolved once, because the chosen model can change while we wait.
    options = attrs.evolve(options, model=resolve_model(options.model))
    paths = options.paths
    begin = last_change = time.monotonic()
    heartbeat = 0
    process: _EngineProcess | None = None
    state = ""
    try:
        while True:
            # One that accepts clients has no heartbeat any more. If it is silent, it is stopped: nobody should wait.
            connection = await connect_running(options, client)
            if connection is not None:
                report_state("ready")
                return connection
            status = process.popen.poll() if process else None
            if process is not None and status not in (None, 0, ALREADY_RUNNING):
                raise EngineUnavailable(_error_line(process, paths))
            if (process is None or status is not None) and not is_held(paths.lock):
                report_state(state := "starting")
                _close_output(process)
                process = _start(options, paths)
                last_change = time.monotonic()
            elif (record := read_record(paths.lock)) is not None and state != (record.stage or "loading"):
                report_state(state := record.stage or "loading")
            if heartbeat != (heartbeat := last_heartbeat(paths.lock)):
                last_change = time.monotonic()
            if time.monotonic() > last_change + HEARTBEAT_TIMEOUT_S:
                raise EngineUnavailable(
                    f"no sign of life from the engine for {HEARTBEAT_TIMEOUT_S:.0f} s: it is still loading; "
                    f"see its log {paths.log}"
                )
            if time.monotonic() > begin + MAX_START_S:
                raise EngineUnavailable(
                    f"no engine within {MAX_START_S:.0f} s: it is still loading; see its log {paths.log}"
                )
            await asyncio.sleep(_POLL_S)
    finally:
        _close_output(process)


def _address(paths: RuntimePaths) -> Address | None:
    check_private(paths)
    record = read_record(paths.lock)
    # Another process may now use the port of an engine that died. The record is valid only while the lock is held.
    if record is None or not record.accepts_clients or not is_held(paths.lock):
        return None
    if record.socket:
        return Address(path=record.socket)
    try:
        return Address(port=record.port, token=paths.token.read_text())
    except OSError:
        return None


def _start(options: EngineOptions, paths: RuntimePaths) -> _EngineProcess:
    make_private(paths.directory)
    output = _open_output(paths)
    output_start = output.seek(0, os.SEEK_END)
    named = attrs.asdict(attrs.evolve(options, model=resolve_model(options.model)))
    arguments = [part for name, value in named.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    try:
        popen = subprocess.Popen(
            # -P: Python must not import a folder named `engine` from the user's project.
            [sys.executable, "-P", "-m", "engine", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=paths.directory,
            start_new_session=True,
            creationflags=_DETACHED,
        )
    except OSError as error:
        output.close()
        raise EngineUnavailable(f"cannot start the engine with {sys.executable}: {error.strerror}") from None
    # Nobody else waits for the process, and without a wait it would stay a zombie after its end.
    threading.Thread(target=popen.wait, name="midspan-engine-reaper", daemon=True).start()
    return _EngineProcess(popen, output, output_start)


def _open_output(paths: RuntimePaths) -> IO[bytes]:
    try:
        make_folder(paths.log_directory)
        return os.fdopen(os.open(paths.log, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "ab+")
    except OSError:
        return tempfile.TemporaryFile()


def _close_output(process: _EngineProcess | None) -> None:
    if process is not None:
        process.output.close()


def _error_line(process: _EngineProcess, paths: RuntimePaths) -> str:
    process.output.seek(process.output_start)
    lines = process.output.read().decode(errors="replace").splitlines()
    errors = [line.removeprefix(ERROR_MARK) for line in lines if line.startswith(ERROR_MARK)]
    if errors:
        return errors[-1]
    return f"the engine ended with status {process.popen.returncode} while it started; its log {paths.log} may say why"


_DETACHED = 0
if sys.platform == "win32":
    _DETACHED = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP


ANSWER_S = 3.0
"""An engine that does not answer a status request within this time will not end when it is asked to."""
_END_S = 10.0
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
