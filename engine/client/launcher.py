"""Find the running engine of this user and model, or start one: detached, shared, and only one however many ask."""

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import attrs

from engine.client.address import Address, RuntimePaths, make_private, resolve_model, runtime_paths_of
from engine.client.connection import EngineClient, EngineSilent
from engine.client.exit_status import ALREADY_RUNNING, ERROR_MARK
from engine.client.lock import is_held, last_sign, read_record
from engine.errors import EngineUnavailable
from engine.library.chosen_model import DEFAULT

START_TIMEOUT_S = 60.0
"""How long an engine that starts may show no sign of life; see engine.heartbeat."""
LONGEST_START_S = 30 * 60.0
"""How long one may start at all."""
_POLL_S = 0.05


@attrs.frozen
class EngineOptions:
    """How an engine is started; `model` and `precision` decide which engine it is.

    `precision` is one of library.precision_names.PRECISION_SETTINGS, `log_level` one of server.log.LEVELS. `threads` 0
    takes all cores, `idle_minutes` 0 never leaves. The model "default" is the one that library.chosen_model names.
    """

    model: str = DEFAULT
    threads: int = 0
    device: str = "auto"
    precision: str = "auto"
    idle_minutes: float = 30.0
    log_level: str = "info"

    @property
    def place(self) -> RuntimePaths:
        """Where the engine of these options keeps its files."""
        return runtime_paths_of(self.model, self.precision)


@attrs.frozen
class _Started:
    """An engine process of ours. `output` is what it writes its last words to, from `words_at` on."""

    process: subprocess.Popen[bytes]
    output: IO[bytes]
    words_at: int


def log_path(options: EngineOptions) -> Path:
    """Return the file that the engine of these options logs to."""
    return options.place.log


async def connect_running(options: EngineOptions, client: str) -> EngineClient | None:
    """Connect to the running engine of these options; None when there is none that answers yet.

    Raises ProtocolError when it refuses us, and EngineSilent when it is there and says nothing.
    """
    place = options.place
    address = _address(place)
    if address is None:
        return None
    try:
        return await EngineClient.connect(address, client)
    except EngineSilent:
        raise
    except EngineUnavailable:  # what is there is of an engine that has gone or is going
        return None


async def stop_running(options: EngineOptions, name: str) -> bool:
    """Ask the engine of these options to leave, and wait until it has; return False where none runs.

    `name` is the client's. Raises MidspanError.
    """
    client = await connect_running(options, name)
    if client is None:
        return False
    try:
        await client.shutdown()
        return True
    finally:
        await client.close()


async def connect_or_start(
    options: EngineOptions, client: str, on_state: Callable[[str], None] | None = None
) -> EngineClient:
    """Connect to the engine of these options, starting one when there is none, and wait until it answers: as long as it
    shows signs of life, half an hour at most.

    `on_state` hears "starting" (a process is being started), "loading" (one loads its model), then what it says itself
    that it is at, and "ready". Raises EngineUnavailable with the engine's own last line when it cannot run, and
    ProtocolError when it refuses us.
    """
    tell = on_state or (lambda _: None)
    # Once: the choice may change while we wait.
    options = attrs.evolve(options, model=resolve_model(options.model))
    place = options.place
    begun = heard = time.monotonic()
    sign = 0
    started: _Started | None = None
    state, why = "", "it is still loading"
    try:
        while True:
            try:
                found = await connect_running(options, client)
            except EngineSilent as error:  # it may only be stopped for a while
                found, why = None, str(error)
            if found is not None:
                tell("ready")
                return found
            code = started.process.poll() if started else None
            if started is not None and code not in (None, 0, ALREADY_RUNNING):
                raise EngineUnavailable(_last_words(started, place))
            if (started is None or code is not None) and not is_held(place.lock):
                tell(state := "starting")
                _forget(started)
                started = _start(options, place)
                heard = time.monotonic()
            elif (record := read_record(place.lock)) is not None and state != (record.stage or "loading"):
                tell(state := record.stage or "loading")
            if sign != (sign := last_sign(place.lock)):
                heard = time.monotonic()
            if time.monotonic() > heard + START_TIMEOUT_S:
                raise EngineUnavailable(
                    f"no sign of life from the engine for {START_TIMEOUT_S:.0f} s: {why}; see its log {place.log}"
                )
            if time.monotonic() > begun + LONGEST_START_S:
                raise EngineUnavailable(f"no engine within {LONGEST_START_S:.0f} s: {why}; see its log {place.log}")
            await asyncio.sleep(_POLL_S)
    finally:
        _forget(started)


def _address(place: RuntimePaths) -> Address | None:
    record = read_record(place.lock)
    # Somebody else may by now have the port of an engine that died: only a lock that is held makes its record true.
    if record is None or not record.answers or not is_held(place.lock):
        return None
    if record.socket:
        return Address(path=record.socket)
    try:
        return Address(port=record.port, token=place.token.read_text())
    except OSError:
        return None


def _start(options: EngineOptions, place: RuntimePaths) -> _Started:
    make_private(place.directory)
    output = _output(place)
    words_at = output.seek(0, os.SEEK_END)
    arguments = [
        *("--model", resolve_model(options.model)),
        *("--threads", str(options.threads)),
        *("--device", options.device),
        *("--precision", options.precision),
        *("--idle-minutes", str(options.idle_minutes)),
        *("--log-level", options.log_level),
    ]
    try:
        process = subprocess.Popen(
            # -P: a folder named `engine` in the user's project must not be taken for ours.
            [sys.executable, "-P", "-m", "engine", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=place.directory,
            start_new_session=True,
            creationflags=_DETACHED,
        )
    except OSError as error:
        output.close()
        raise EngineUnavailable(f"cannot start the engine with {sys.executable}: {error.strerror}") from None
    # The engine outlives this call and often this process; the thread keeps it from lingering as a zombie until then.
    threading.Thread(target=process.wait, name="midspan-engine-reaper", daemon=True).start()
    return _Started(process, output, words_at)


def _output(place: RuntimePaths) -> IO[bytes]:
    try:
        place.log_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return place.log.open("ab+")
    except OSError:
        return tempfile.TemporaryFile()


def _forget(started: _Started | None) -> None:
    if started is not None:
        started.output.close()


def _last_words(started: _Started, place: RuntimePaths) -> str:
    started.output.seek(started.words_at)
    lines = started.output.read().decode(errors="replace").splitlines()
    marked = [line.removeprefix(ERROR_MARK) for line in lines if line.startswith(ERROR_MARK)]
    if marked:
        return marked[-1]
    return (
        f"the engine ended with status {started.process.returncode} while it started; its log {place.log} may say why"
    )


_DETACHED = 0
if sys.platform == "win32":
    _DETACHED = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
