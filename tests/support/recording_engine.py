"""An engine in the test's own process, found by real language servers. Its memory records what it is to learn."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from engine import __version__
from engine.client.address import make_private, runtime_paths_of
from engine.client.lock import EngineLock, LockRecord
from engine.models.load import load
from engine.protocol.messages import PROTOCOL_VERSION, Fill, HoleRequest, Read, Welcome
from engine.schedule.file_queue import FileQueue
from engine.schedule.fill_queue import ScheduledTicket
from engine.schedule.scheduler import Scheduler
from engine.server.listener import Listener
from engine.server.server import Server
from support.recording_memory import RecordingMemory, characters


class RecordingScheduler(Scheduler):
    """Keeps the requests that it gets, and their tickets."""

    requests: list[HoleRequest]
    tickets: list[ScheduledTicket]

    def submit(self, request: HoleRequest, on_progress: object, owner: int = 0) -> ScheduledTicket:
        self.requests.append(request)
        callback = on_progress if callable(on_progress) else None
        self.tickets.append(super().submit(request, callback, owner))
        return self.tickets[-1]


class RecordingEngine:
    """Holds the lock, socket and record of a real engine of `model`. A stopped one can be started again."""

    def __init__(self, model: Path) -> None:
        self._model = load(str(model), threads=1, device="cpu")
        self._paths = runtime_paths_of(str(model))
        self.model_info = self._model.info
        """What clients are told of the model."""
        self.memory = RecordingMemory()
        self.requests: list[HoleRequest] = []
        self.tickets: list[ScheduledTicket] = []

    @property
    def asked(self) -> list[Fill]:
        """The fills that somebody waits for. On a busy machine even a tiny model is slow enough for fills ahead."""
        return [each for each in self.requests if isinstance(each, Fill) and not each.ahead]

    @property
    def ahead(self) -> list[Fill]:
        """The fills that nobody waits for yet."""
        return [each for each in self.requests if isinstance(each, Fill) and each.ahead]

    @property
    def read(self) -> list[ScheduledTicket]:
        """What was, or is to be, read ahead."""
        return [ticket for ticket in self.tickets if isinstance(ticket.request, Read)]

    @property
    def passes(self) -> int:
        """How many passes the model made."""
        return self._backend.report().passes

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the model busy while the context is open: no fill makes a step."""
        go_on = Event()
        self._backend._worker.submit(go_on.wait)
        try:
            yield
        finally:
            go_on.set()

    async def start(self) -> None:
        """Accept clients, with an empty memory."""
        self.memory = RecordingMemory(self.memory.file_s, self.memory.max_files)
        make_private(self._paths.directory)
        lock = EngineLock.acquire(self._paths.lock)
        assert lock is not None
        self._lock = lock
        self._backend = RecordingScheduler(self._model, files=FileQueue(self.memory, characters))
        self._backend.requests, self._backend.tickets = self.requests, self.tickets
        await self._backend.start()
        self._listener = Listener(self._paths, "unix")
        record = LockRecord(os.getpid(), "test", __version__, socket=self._listener.address.path)
        self._server = Server(
            self._backend, Welcome(PROTOCOL_VERSION, __version__, os.getpid(), self.model_info), "", 0
        )
        self._serving = asyncio.create_task(self._server.run(self._listener.socket))
        lock.write(record)

    async def stop(self) -> None:
        """End all connections."""
        self._server.stop("the test asked for it")
        await self._serving
        self._listener.remove()
        await self._backend.stop()
        self._lock.release()
        await self._server.close()

    def texts(self, folder: Path) -> dict[str, str]:
        """Return what the memory has of a workspace folder."""
        return self.memory.texts.get(os.path.realpath(folder), {})
