"""The way from the HTTP server to what fills: the engine of this user, with a connection for each token.

So the engine takes turns between the owners of tokens. `engine/cluster` has another way, to many engines.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import attrs

from engine.client.connection import EngineClient
from engine.client.launcher import EngineOptions, connect_or_start
from engine.errors import EngineUnavailable
from engine.protocol.memory_messages import Forget, Learn, MemoryRequest, MemoryStatus, MemoryUpdated
from engine.protocol.messages import Filled, HoleRequest, ModelInfo, Progress, Status

START_S = 60.0
"""A request waits so long for an engine that starts; the start itself goes on."""

MemoryAnswer = MemoryUpdated | MemoryStatus


class Links(Protocol):
    """What the HTTP server asks."""

    async def start(self) -> ModelInfo:
        """Connect, and return the model. Raises MidspanError."""
        ...

    @property
    def model(self) -> ModelInfo:
        """The model that answered last. There is one after `start`."""
        ...

    async def ask(
        self, owner: str, request: HoleRequest, on_progress: Callable[[Progress], None] | None = None
    ) -> Filled:
        """Send a request for an owner. If the waiting task is cancelled, so is the request. Raises MidspanError."""
        ...

    async def remember(self, owner: str, requests: Sequence[MemoryRequest]) -> list[MemoryAnswer]:
        """Change or count the memory of one workspace, in this order. Raises MidspanError."""
        ...

    def mind_of(self, owner: str, workspace: str) -> str:
        """Return an opaque name of the memory that an owner's workspace has now: another name knows nothing yet."""
        ...

    async def status(self) -> tuple[Status, MemoryStatus]:
        """Return the state of all engines and of their memories. Raises MidspanError."""
        ...

    async def close(self) -> None:
        """End all connections, and with them their fills."""


class EngineLinks:
    """Implements Links: finds or starts the engine of these options, and does so again after it has ended.

    If the engine ends while it fills, the next one is asked once.
    """

    def __init__(
        self, options: EngineOptions, on_engine: Callable[[], None] = lambda: None, name: str = "midspan-serve"
    ) -> None:
        """`on_engine` is called for each engine that is met, the first one included: it knows no workspace yet.

        `name` is what the engine calls this client in its log.
        """
        self._options, self._on_engine, self._name = options, on_engine, name
        self._pid = 0
        self._links: dict[str, asyncio.Task[EngineClient]] = {}
        self._model: ModelInfo | None = None

    async def start(self) -> ModelInfo:
        return (await self._client("")).welcome.model

    @property
    def model(self) -> ModelInfo:
        assert self._model is not None
        return self._model

    async def ask(
        self, owner: str, request: HoleRequest, on_progress: Callable[[Progress], None] | None = None
    ) -> Filled:
        try:
            return await (await self._client(owner)).ask(request, on_progress)
        except EngineUnavailable:
            return await (await self._client(owner)).ask(request, on_progress)

    async def remember(self, owner: str, requests: Sequence[MemoryRequest]) -> list[MemoryAnswer]:
        client = await self._client(owner)
        return list(await asyncio.gather(*(_remember(client, request) for request in requests)))

    def mind_of(self, owner: str, workspace: str) -> str:
        return f"{self._pid:x}"

    async def status(self) -> tuple[Status, MemoryStatus]:
        client = await self._client("")
        return await client.status(), await client.memory_status("")

    async def close(self) -> None:
        links, self._links = self._links, {}
        for link in links.values():
            link.cancel()
        for done in await asyncio.gather(*links.values(), return_exceptions=True):
            if isinstance(done, EngineClient):
                await done.close()

    async def _client(self, owner: str) -> EngineClient:
        link = self._links.get(owner)
        if link is None or _is_lost(link):
            link = self._links[owner] = asyncio.create_task(connect_or_start(self._options, self._name))
            link.add_done_callback(_look)
        try:
            async with asyncio.timeout(START_S):
                client = await asyncio.shield(link)  # a client that leaves does not end a start that others wait for
        except TimeoutError:
            raise EngineUnavailable(f"the engine did not start within {START_S:.0f} s; try again soon") from None
        self._model = client.welcome.model
        if client.welcome.pid != self._pid:
            self._pid = client.welcome.pid
            self._on_engine()
        return client


async def _remember(client: EngineClient, request: MemoryRequest) -> MemoryAnswer:
    if isinstance(request, Learn):
        await client.learn(request)
    elif isinstance(request, Forget):
        await client.forget(request)
    else:
        return attrs.evolve(await client.memory_status(request.workspace), id=request.id)
    return MemoryUpdated(request.id)


def _is_lost(link: asyncio.Task[EngineClient]) -> bool:
    if not link.done():
        return False
    return link.cancelled() or link.exception() is not None or link.result().closed.is_set()


def _look(link: asyncio.Task[EngineClient]) -> None:
    """Look at the error of a connection for which nobody waits any more; asyncio would log it."""
    if not link.cancelled():
        link.exception()
