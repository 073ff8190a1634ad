"""The engine process: `python -m engine --model embedded`. Clients start it themselves (engine.lifecycle)."""

import argparse
import asyncio
import faulthandler
import importlib.metadata
import logging
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

import attrs

from engine.client import exit_status as exits
from engine.client.address import make_private, resolve_model, runtime_paths_of
from engine.client.lock import EngineLock, LockRecord
from engine.errors import MidspanError
from engine.library.precision_names import check_precision_setting
from engine.protocol.messages import PROTOCOL_VERSION, ModelInfo, Welcome
from engine.remote.endpoint import Endpoint, endpoint_of
from engine.schedule.backend import Backend
from engine.server.heartbeat import Heartbeat
from engine.server.listener import Listener, Transport, default_transport
from engine.server.log import LEVELS, keep_messages_out_of_tracebacks, log_loop_exception, open_log
from engine.server.server import Server

_log = logging.getLogger("engine.main")


@attrs.frozen
class _Arguments:
    model: str
    threads: int
    device: str
    precision: str
    idle_minutes: float
    log_level: str
    tcp: bool


def main() -> None:
    """Be the engine of this user and model until nobody needs it. Exits with a status of engine.exits."""
    arguments = _parse()
    place = runtime_paths_of(arguments.model, arguments.precision)
    lock: EngineLock | None = None
    # Until the event loop listens to signals itself, an exception is what lets us put the lock away.
    signal.signal(signal.SIGTERM, _leave)
    try:
        make_private(place.directory)
        lock = EngineLock.acquire(place.lock)
        if lock is None:
            sys.exit(exits.ALREADY_RUNNING)
        trouble = open_log(place.log, arguments.log_level)
        if trouble:
            _complain(trouble)
        keep_messages_out_of_tracebacks()
        faulthandler.enable()  # stderr is the log: where we were when native code crashed
        _serve(arguments, lock)
    except KeyboardInterrupt:
        sys.exit(0)
    except MidspanError as error:
        _log.error("%s", error)
        _complain(str(error))
        sys.exit(exits.ERROR)
    except Exception as error:
        _log.critical("the engine failed", exc_info=error)
        _complain(f"the engine failed with {type(error).__name__}; its log {place.log} says where")
        sys.exit(exits.INTERNAL)
    finally:
        if lock is not None:
            lock.release()


def _serve(arguments: _Arguments, lock: EngineLock) -> None:
    version = importlib.metadata.version("midspan")
    model = resolve_model(arguments.model)
    check_precision_setting(arguments.precision)
    endpoint = endpoint_of(model)  # A wrong one is refused before it is written anywhere: it may hold a key.
    record = LockRecord(os.getpid(), model, version)
    lock.write(record)
    with Heartbeat(lock, record) as heartbeat:
        _run(arguments, lock, record, endpoint, heartbeat)
    _log.info("left")


def _run(
    arguments: _Arguments, lock: EngineLock, record: LockRecord, endpoint: Endpoint | None, heartbeat: Heartbeat
) -> None:
    """Load the model and serve it; the heart beats until it answers."""
    version, model = record.version, record.model
    _log.info("midspan %s, protocol %d, loading %s", version, PROTOCOL_VERSION, record.model)
    transport: Transport = "tcp" if arguments.tcp else default_transport()
    heartbeat.say("Loading the model")
    info, scheduler_of = _local(arguments, model, heartbeat) if endpoint is None else _remote(endpoint)
    listener = Listener(runtime_paths_of(arguments.model, arguments.precision), transport)

    async def serve() -> None:
        asyncio.get_running_loop().set_exception_handler(log_loop_exception)
        scheduler = scheduler_of()
        welcome = Welcome(PROTOCOL_VERSION, version, record.pid, info)
        server = Server(scheduler, welcome, listener.address.token, arguments.idle_minutes * 60)
        _stop_on_signals(server.stop)
        await scheduler.start()
        heartbeat.stop()
        lock.write(attrs.evolve(record, socket=listener.address.path, port=listener.address.port))
        _log.info("ready: %s on %s in %s, at %s", info.name, info.device, info.dtype or "its own", listener.address)
        await server.run(listener.socket)
        listener.remove()
        await scheduler.stop()
        lock.release()
        await server.close()

    try:
        asyncio.run(serve())
    finally:
        listener.remove()


def _local(arguments: _Arguments, model: str, heartbeat: Heartbeat) -> tuple[ModelInfo, Callable[[], Backend]]:
    # Imported this late because torch takes seconds: a process that lost the race for the lock is gone before.
    from engine.models import load as registry
    from engine.schedule.scheduler import Scheduler

    family = registry.load(model, threads=arguments.threads, device=arguments.device, precision=arguments.precision)
    return family.info, lambda: Scheduler(family, on_stage=heartbeat.say)


def _remote(endpoint: Endpoint) -> tuple[ModelInfo, Callable[[], Backend]]:
    from engine.remote.backend import RemoteBackend

    return endpoint.info, lambda: RemoteBackend(endpoint)


def _parse() -> _Arguments:
    parser = argparse.ArgumentParser(
        prog="python -m engine", description="The engine of Midspan, one a user and model."
    )
    parser.add_argument(
        "--model", default="default", help='"default", "embedded", a pulled model, or a directory with one'
    )
    parser.add_argument("--threads", type=int, default=0, help="processor threads to use; 0 is all cores")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--precision", default="auto", help="auto, bf16, int8, int4, fp8 or fp32")
    parser.add_argument("--idle-minutes", type=float, default=30.0, help="leave when unused for so long; 0 is never")
    parser.add_argument("--log-level", choices=LEVELS, default="info")
    parser.add_argument(
        "--tcp", action="store_true", help="listen on loopback TCP behind a token, not on a Unix socket"
    )
    return _Arguments(**vars(parser.parse_args()))


def _stop_on_signals(stop: Callable[[str], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        if sys.platform == "win32":
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop, "a signal asked for it"))
        else:
            loop.add_signal_handler(number, stop, f"{number.name} asked for it")


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(0)


def _complain(line: str) -> None:
    print(f"{exits.ERROR_MARK}{line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
