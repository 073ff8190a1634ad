"""The engine process: `python -m engine --model embedded`. Clients start it themselves (client/launcher.py)."""

import argparse
import asyncio
import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

import attrs

from engine import __version__
from engine.backends import Core, local_backend, remote_backend
from engine.client.address import make_private, resolve_model
from engine.client.launcher import EngineOptions
from engine.client.lock import ALREADY_RUNNING, ERROR, ERROR_MARK, INTERNAL, EngineLock, Heartbeat, LockRecord
from engine.errors import MidspanError, ModelError
from engine.library.precision_names import check_precision_setting
from engine.priority import give_way
from engine.protocol.messages import PROTOCOL_VERSION, Welcome
from engine.remote.endpoint import Endpoint, endpoint_of
from engine.server.listener import Listener, Transport, default_transport
from engine.server.log import LEVELS, keep_messages_out_of_tracebacks, log_loop_exception, open_log
from engine.server.server import Server

_log = logging.getLogger("engine.main")

_LEAST_ADDRESS_SPACE = 480 << 20
"""Bytes that the embedded model needs at the very least, with its libraries."""


@attrs.frozen
class _Arguments(EngineOptions):
    tcp: bool = False


def main() -> None:
    """Run the engine of this user and model until nobody needs it. Exit with a status of client/lock.py."""
    arguments = _parse_arguments()
    give_way(arguments.niceness)
    paths = arguments.paths
    lock: EngineLock | None = None
    # Until the event loop handles signals, SIGTERM raises an exception, so that the lock is released.
    signal.signal(signal.SIGTERM, _exit_on_signal)
    try:
        make_private(paths.directory)
        lock = EngineLock.acquire(paths.lock)
        if lock is None:
            sys.exit(ALREADY_RUNNING)
        log_problem = open_log(paths.log, arguments.log_level)
        if log_problem:
            _print_error(log_problem)
        keep_messages_out_of_tracebacks()
        faulthandler.enable()  # writes to stderr, which is the log, when native code crashes
        _serve(arguments, lock)
    except KeyboardInterrupt:
        sys.exit(0)
    except MidspanError as error:
        _log.error("%s", error)
        _print_error(str(error))
        sys.exit(ERROR)
    except MemoryError:
        line = (
            f"there is not enough memory for the model {arguments.model}; close other programs, or choose a smaller one"
        )
        _log.error("%s", line)
        _print_error(line)
        sys.exit(ERROR)
    except Exception as error:
        _log.critical("the engine failed", exc_info=error)
        _print_error(f"the engine failed with {type(error).__name__}; its log {paths.log} says where")
        sys.exit(INTERNAL)
    finally:
        if lock is not None:
            lock.release()


def _check_address_space() -> None:
    """Raise ModelError where the system gives this process too little: native code would end it without a line."""
    if sys.platform == "win32":
        return
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY and most < _LEAST_ADDRESS_SPACE:
        raise ModelError(
            f"the engine may use {most >> 20} MB of address space, and needs {_LEAST_ADDRESS_SPACE >> 20} at least; "
            "raise the limit (ulimit -v)"
        )


def _serve(arguments: _Arguments, lock: EngineLock) -> None:
    _check_address_space()
    model = resolve_model(arguments.model)
    check_precision_setting(arguments.precision)
    endpoint = endpoint_of(model)  # Checked before the model's name is written anywhere: a wrong URL may contain a key.
    record = LockRecord(os.getpid(), model, __version__)
    lock.write(record)
    with Heartbeat(lock, record) as heartbeat:
        _run(arguments, lock, record, endpoint, heartbeat)
    _log.info("ended")


def _run(
    arguments: _Arguments, lock: EngineLock, record: LockRecord, endpoint: Endpoint | None, heartbeat: Heartbeat
) -> None:
    """Load the model and serve clients. The heartbeat runs until clients are accepted."""
    _log.info("midspan %s, protocol %d, loading %s", record.version, PROTOCOL_VERSION, record.model)
    transport: Transport = "tcp" if arguments.tcp else default_transport()
    heartbeat.set_stage("Loading the model")
    if endpoint is None:
        core = Core(record.model, arguments.threads, arguments.device, arguments.precision, arguments.memory_megabytes)
        info, make_backend = local_backend(core, heartbeat.set_stage)
    else:
        info, make_backend = remote_backend(endpoint)
    listener = Listener(arguments.paths, transport)

    async def serve() -> None:
        asyncio.get_running_loop().set_exception_handler(log_loop_exception)
        backend = make_backend()
        welcome = Welcome(PROTOCOL_VERSION, record.version, record.pid, info)
        server = Server(backend, welcome, listener.address.token, arguments.idle_minutes * 60)
        _stop_on_signals(server.stop)
        await backend.start()
        heartbeat.stop()
        lock.write(attrs.evolve(record, socket=listener.address.path, port=listener.address.port))
        _log.info(
            "ready: %s on %s in %s, at %s", info.name, info.device, info.dtype or "its own precision", listener.address
        )
        await server.run(listener.socket)
        listener.remove()
        await backend.stop()
        lock.release()
        await server.close()

    try:
        asyncio.run(serve())
    finally:
        listener.remove()


def _parse_arguments() -> _Arguments:
    parser = argparse.ArgumentParser(
        prog="python -m engine", description="The engine of Midspan: one process for each user and model."
    )
    parser.add_argument("--model", help='"default", "embedded", the name of a pulled model, or a model\'s directory')
    parser.add_argument("--threads", type=int, help="processor threads to use; 0 uses all cores")
    parser.add_argument("--device", help="auto, cpu or cuda")
    parser.add_argument("--precision", help="auto, bf16, int8, int4, fp8 or fp32")
    parser.add_argument("--idle-minutes", type=float, help="end after this time without a request; 0 means never")
    parser.add_argument("--log-level", choices=LEVELS)
    parser.add_argument("--memory-megabytes", type=int, help="the most that the memory of all workspaces takes")
    parser.add_argument("--niceness", type=int, help="how far it gives way to other processes")
    parser.add_argument("--tcp", action="store_true", help="listen on loopback TCP with a token, not on a Unix socket")
    parser.set_defaults(**attrs.asdict(_Arguments()))
    return _Arguments(**vars(parser.parse_args()))


def _stop_on_signals(stop: Callable[[str], None]) -> None:
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        if sys.platform == "win32":
            signal.signal(signal_number, lambda *_: loop.call_soon_threadsafe(stop, "a signal asked for it"))
        else:
            loop.add_signal_handler(signal_number, stop, f"{signal_number.name} asked for it")


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    sys.exit(0)


def _print_error(line: str) -> None:
    print(f"{ERROR_MARK}{line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
