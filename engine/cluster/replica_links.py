"""Leads the HTTP server to the replicas. A session goes to one replica; when it dies, its sessions move."""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import attrs

from engine.client.connection import EngineFailure
from engine.cluster.deployment import Replicas, connect, deploy, leave
from engine.errors import EngineUnavailable, MidspanError
from engine.http.engine_links import MemoryAnswer
from engine.protocol.memory_messages import MemoryRequest, MemoryStatus, MemoryUpdated
from engine.protocol.messages import Failed, Filled, HoleRequest, Message, ModelInfo, Progress, Status

_log = logging.getLogger(__name__)
_PROBES = 8
"""Sessions for each replica that are asked for their status: nearly surely all replicas are among them."""
_MOST_SESSIONS = 10_000


class ReplicaLinks:
    """Implements engine/http's Links over Ray's handles.

    A session is an owner and a workspace. Consistent hashing sends it to one replica, which has its contexts and its
    memory. If this one dies, its sessions move, and each request that it had accepted is sent once more.
    """

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._handle: Any = None
        self._model: ModelInfo | None = None
        self._minds: OrderedDict[str, str] = OrderedDict()
        self._updating = asyncio.Lock()

    async def start(self) -> ModelInfo:
        """Start or join Ray, and the replicas. Raises MidspanError."""
        connect(self._replicas)  # on the main thread, where Ray sets how it ends at a signal
        self._handle = await asyncio.to_thread(deploy, self._replicas)
        statuses = await self._statuses()
        self._model = statuses[0].model
        return self._model

    async def update(self) -> None:
        """Replace the replicas one after the other: by the model's files as they are now. Raises MidspanError."""
        async with self._updating:
            await asyncio.to_thread(deploy, self._replicas, True)

    @property
    def model(self) -> ModelInfo:
        assert self._model is not None
        return self._model

    async def ask(
        self, owner: str, request: HoleRequest, on_progress: Callable[[Progress], None] | None = None
    ) -> Filled:
        session = session_of(owner, request.workspace)
        if on_progress is None:
            mind, message = await self._twice(lambda: self._call(session, "ask", owner, request))
        else:
            mind, message = await self._twice(lambda: self._grow(session, owner, request, on_progress))
        self._note(session, mind)
        if isinstance(message, Filled):
            return message
        raise _failure(message)

    async def remember(self, owner: str, requests: Sequence[MemoryRequest]) -> list[MemoryAnswer]:
        session = session_of(owner, requests[0].workspace)
        mind, answers = await self._twice(lambda: self._call(session, "remember", requests))
        self._note(session, mind)
        found: list[MemoryAnswer] = []
        for message in answers:
            if not isinstance(message, MemoryUpdated | MemoryStatus):
                raise _failure(message)
            found.append(message)
        return found

    def mind_of(self, owner: str, workspace: str) -> str:
        return self._minds.get(session_of(owner, workspace), "")

    async def status(self) -> tuple[Status, MemoryStatus]:
        """Return the numbers of all replicas together; the median is their largest."""
        statuses, memories = await self._statuses(), await self._each("memory")
        known = [message for message in memories if isinstance(message, MemoryStatus)]
        return _together(statuses), MemoryStatus.sum(known)

    async def close(self) -> None:
        if self._handle is not None:
            await asyncio.to_thread(leave)

    async def _statuses(self) -> list[Status]:
        found = [message for message in await self._each("status") if isinstance(message, Status)]
        if not found:
            raise EngineUnavailable("no replica answers; see the log of Ray Serve")
        return found

    async def _each(self, method: str) -> list[Message]:
        """Ask all replicas. Which ones there are only Ray's controller knows, so many sessions are asked."""
        probes = range(_PROBES * self._replicas.count)
        calls = [self._call(session_of("", str(probe)), method) for probe in probes]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        found: dict[str, Message] = dict(each for each in answers if isinstance(each, tuple))
        return list(found.values())

    async def _twice(self, call: Callable[[], Any]) -> Any:
        """Call a replica, and another one if it dies meanwhile. Raises MidspanError."""
        from ray.exceptions import RayError, RayTaskError
        from ray.serve.exceptions import RayServeException

        try:
            return await call()
        except RayTaskError as error:
            mistake = type(error.cause).__name__
            raise EngineFailure("internal", f"a replica failed on this request ({mistake}); see its log") from None
        except (RayError, RayServeException) as error:
            _log.warning("a replica was lost (%s); its request is sent to another one", type(error).__name__)
        try:
            return await call()
        except (RayError, RayServeException) as error:
            raise EngineUnavailable(f"two replicas were lost ({type(error).__name__}); try again soon") from None

    async def _call(self, session: str, method: str, *arguments: Any) -> Any:
        response = getattr(self._handle.options(session_id=session), method).remote(*arguments)
        try:
            return await response
        except asyncio.CancelledError:
            response.cancel()
            raise

    async def _grow(
        self, session: str, owner: str, request: HoleRequest, on_progress: Callable[[Progress], None]
    ) -> Any:
        response = self._handle.options(session_id=session, stream=True).ask_growing.remote(owner, request)
        answer: tuple[str, Message] | None = None
        try:
            async for answer in response:
                if isinstance(answer[1], Progress):
                    on_progress(answer[1])
        except asyncio.CancelledError:
            with suppress(Exception):
                response.cancel()
            raise
        return answer

    def _note(self, session: str, mind: str) -> None:
        self._minds[session] = mind
        self._minds.move_to_end(session)
        if len(self._minds) > _MOST_SESSIONS:
            self._minds.popitem(last=False)


def session_of(owner: str, workspace: str) -> str:
    """Return the opaque name of a session. Ray puts it into its metrics, so nothing of it may be read back."""
    return hashlib.sha256(f"{owner}\0{workspace}".encode(errors="replace")).hexdigest()[:16]


def _failure(message: Message) -> MidspanError:
    if isinstance(message, Failed):
        return EngineFailure(message.code, message.message)
    return EngineUnavailable(f"a replica answered with {type(message).__name__}")


def _together(statuses: Sequence[Status]) -> Status:
    summed = ("active", "waiting", "fills", "cancelled", "passes", "cache_bytes", "threads")
    return attrs.evolve(
        statuses[0],
        **{name: sum(getattr(status, name) for status in statuses) for name in summed},
        median_ms=max(status.median_ms for status in statuses),
        cache_hit_rate=sum(status.cache_hit_rate for status in statuses) / len(statuses),
        uptime_s=min(status.uptime_s for status in statuses),
        clients=len(statuses),
    )
