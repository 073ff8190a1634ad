"""Starts Ray where none is named, has Ray Serve keep the replicas, and leads the HTTP server to them.

A session goes to one replica; when it dies, its sessions move.
"""

import asyncio
import hashlib
import logging
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import attrs

from engine.backends import Core
from engine.client.connection import EngineFailure
from engine.cluster.replica import Replica
from engine.errors import EngineUnavailable, MidspanError, ModelError
from engine.http.engine_links import MemoryAnswer
from engine.library.device_memory import memory_of
from engine.protocol.memory_messages import MemoryRequest, MemoryStatus, MemoryUpdated
from engine.protocol.messages import Failed, Filled, HoleRequest, Message, ModelInfo, Progress, Status

APPLICATION, DEPLOYMENT = "midspan", "engine"
MOST_ONGOING = 1000
"""Requests that a replica takes at once: its scheduler orders them. With Ray's own 5, sessions would move."""
_STORE_BYTES = 100 << 20
"""Shared memory for Ray's objects. Messages are small and do not go there."""
_MEMORY_SHARE, _CACHE_SHARE = 16, 4
"""All replicas of a machine together remember workspaces in at most this part of its memory, and keep contexts in at
most that one."""
_ROUTER = "ray.serve.experimental.consistent_hash_router:ConsistentHashRouter"


@attrs.frozen
class Replicas:
    """How many replicas there are, with which engine. `address` is a Ray cluster's; "" starts one on this machine.

    `cpus` and `gpus` are what Ray reserves for a replica. Ray adds none by itself: it looks every ten seconds, and a
    fill takes a tenth of one.
    """

    count: int
    core: Core
    address: str = ""
    cpus: float = 1.0
    gpus: float = 0.0

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.count <= 64:
            raise ModelError(f"{self.count} replicas are asked for; there can be 1 to 64")


def core_of(model: str, count: int, threads: int = 0, precision: str = "auto") -> Core:
    """Return the engine of each of `count` replicas on one machine, with its share of cores and memory."""
    total = memory_of("cpu").total >> 20
    return Core(
        model,
        threads or max(1, (os.cpu_count() or 1) // count),
        precision=precision,
        memory_megabytes=max(256, total // _MEMORY_SHARE // count),
        cache_megabytes=max(256, total // _CACHE_SHARE // count),
    )


def connect(replicas: Replicas) -> None:
    """Join the Ray cluster, or start one for this process alone. Raises ModelError in one line.

    Ray of one machine opens ports; who reaches one could run code. So each call needs a token that only this process
    and its children have. Nothing is reported to Ray's authors.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not replicas.address:
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    import ray

    if ray.is_initialized():
        return
    options: dict[str, Any] = {"address": replicas.address} if replicas.address else _own_options(replicas)
    try:
        ray.init(**options, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = replicas.address or "this machine"
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"Ray does not start at {where}: {reason}; its log is in /tmp/ray/session_latest") from None


def _own_options(replicas: Replicas) -> dict[str, Any]:
    # Ray counts processors to place replicas; a machine with fewer gets them all the same.
    return {
        "address": "local",  # else it would join a Ray that somebody has started on this machine
        "num_cpus": max(os.cpu_count() or 1, round(replicas.count * replicas.cpus + 0.5)),
        "include_dashboard": False,
        "object_store_memory": _STORE_BYTES,
        "_node_ip_address": "127.0.0.1",
    }


def deploy(replicas: Replicas, replace: bool = False) -> Any:
    """Start the replicas, or take those that serve already, as after a restart of the HTTP server.

    With `replace` all of them are replaced, one after the other. Returns Ray's handle, and blocks until all serve.
    Raises ModelError in one line.
    """
    from ray import serve
    from ray.serve.config import RequestRouterConfig
    from ray.serve.schema import LoggingConfig

    # Ray's access log has a line for each request; the HTTP server has one of its own, without sessions.
    logging_config = LoggingConfig(enable_access_log=False, log_level="ERROR")
    serve.start(proxy_location="Disabled", logging_config=logging_config)
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    if not replace and _serving() == replicas.count:
        return serve.get_app_handle(APPLICATION)
    deployment = serve.deployment(
        Replica,
        name=DEPLOYMENT,
        num_replicas=replicas.count,
        max_ongoing_requests=MOST_ONGOING,
        ray_actor_options={"num_cpus": replicas.cpus, "num_gpus": replicas.gpus},
        request_router_config=RequestRouterConfig(
            request_router_class=_ROUTER, request_router_kwargs={"num_fallback_replicas": 1}
        ),
        health_check_period_s=1.0,
        health_check_timeout_s=10.0,
        graceful_shutdown_wait_loop_s=0.5,
        graceful_shutdown_timeout_s=15.0,
        logging_config=logging_config,
    )
    try:
        return serve.run(deployment.bind(replicas.core), name=APPLICATION, route_prefix=None)
    except RuntimeError:
        raise ModelError(
            "the replicas do not start; see the log of Ray Serve, in /tmp/ray/session_latest/logs"
        ) from None


def _serving() -> int:
    """Return how many replicas serve; 0 while Ray changes them."""
    from ray import serve

    application = serve.status().applications.get(APPLICATION)
    if application is None or application.status != "RUNNING":
        return 0
    running: int = application.deployments[DEPLOYMENT].replica_states.get("RUNNING", 0)
    return running


def leave() -> None:
    """Leave Ray. One of our own ends, and the replicas with it; in a named cluster they stay for the next server."""
    import ray

    if ray.is_initialized():
        ray.shutdown()


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
