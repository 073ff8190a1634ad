"""Starts Ray where none is named, and has Ray Serve keep the replicas."""

import logging
import os
import secrets
from typing import Any

import attrs

from engine.backends import Core
from engine.cluster.replica import Replica
from engine.errors import ModelError
from engine.library.device_memory import memory_of

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
