"""The engine of a runtime folder, which a test kills, stops and lets go on."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import attrs
import psutil

from engine.client.address import runtime_paths_of
from engine.client.lock import is_held, read_record
from hardening.language_server import HANG_S


def engine_of(runtime: Path) -> psutil.Process | None:
    """Return the process of the embedded model's engine."""
    os.environ["MIDSPAN_RUNTIME_DIR"] = str(runtime)
    paths = runtime_paths_of("embedded")
    record = read_record(paths.lock)
    return psutil.Process(record.pid) if record is not None and is_held(paths.lock) else None


@attrs.define
class Engine:
    """Each method is a disaster; `disasters` counts them."""

    runtime: Path
    disasters: int = 0
    _stopped: int | None = None

    @property
    def is_stopped(self) -> bool:
        return self._stopped is not None

    def kill(self) -> None:
        if (engine := engine_of(self.runtime)) is not None:
            self.disasters += 1
            self.resume()
            engine.kill()
            engine.wait(HANG_S)

    def stop(self) -> None:
        """Suspend the engine, as a debugger or a laptop's lid does."""
        if self._stopped is None and (engine := engine_of(self.runtime)) is not None:
            self.disasters += 1
            engine.suspend()
            self._stopped = engine.pid

    def resume(self) -> None:
        if self._stopped is not None:
            with suppress(ProcessLookupError):  # The server may have ended what did not answer.
                os.kill(self._stopped, signal.SIGCONT)
            self._stopped = None
