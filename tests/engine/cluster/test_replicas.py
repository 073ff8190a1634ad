"""Two replicas behind one server: sessions, a killed one, a rolling update, cancels. `make test-cluster` runs it."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from http_service import PREFIX, SUFFIX, HttpService, http_service, infill
from support.engine_process import poll
from support.processes import children

from engine.protocol.framing import pack, unpack_all
from engine.protocol.memory_messages import Learn, MemoryStatus, MemoryStatusRequest
from engine.protocol.messages import Fill, Filled

pytest.importorskip("ray", reason="ray is not installed; `make test-cluster` installs it and runs these tests")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
_OWNERS = [f"user{number}" for number in range(8)]
_LONG = {"prompt": "x = ", "n_predict": 2048, "t_max_predict_ms": 600_000}


def _bearer(owner: str) -> dict[str, str]:
    return {"authorization": f"Bearer {owner}-{'t' * 32}"}


@pytest.fixture(scope="module")
def cluster(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpService]:
    yield from _serve(tiny_model, tmp_path_factory.mktemp("cluster"))


def _serve(model: Path, folder: Path) -> Iterator[HttpService]:
    file = folder / "tokens"
    file.write_text("".join(f"{owner} {owner}-{'t' * 32}\n" for owner in _OWNERS))
    file.chmod(0o600)
    arguments = ["--replicas", "2", "--threads", "1", "--token-file", str(file), "--rate", "0", "--log"]
    with http_service(model, *arguments) as service:
        yield service


def _replicas(service: HttpService) -> list[psutil.Process]:
    """The processes of Ray's replicas, which are not children of the server."""
    return children(service.process.pid, _is_replica, recursive=True)


def _is_replica(process: psutil.Process) -> bool:
    return "ray::ServeReplica:midspan:engine" in " ".join(process.cmdline())


def _fill(service: HttpService, owner: str, fill: Fill) -> tuple[str, Filled]:
    """Return the mind that answered, and its answer."""
    answer = service.client().post("/midspan/fill", content=pack(fill), headers=_bearer(owner))
    assert answer.status_code == 200, answer.text
    filled = unpack_all(answer.content)[0]
    assert isinstance(filled, Filled)
    return answer.headers["x-midspan-mind"], filled


_HOLE = Fill(id=1, prefix=PREFIX * 4, suffix=SUFFIX, max_tokens=8, budget_ms=60_000)


def test_a_session_stays_with_the_replica_that_has_its_context(cluster: HttpService) -> None:
    minds = {}
    for owner in _OWNERS:
        first, _ = _fill(cluster, owner, _HOLE)
        again, filled = _fill(cluster, owner, _HOLE)
        assert again == first
        assert filled.cached_tokens > 0
        minds[owner] = first
    assert len(set(minds.values())) == 2, "one replica has all the work"


def test_users_of_one_replica_share_no_context(cluster: HttpService) -> None:
    hole = Fill(id=1, prefix="only_the_first_user_has_this = 41\n" * 8, suffix="", max_tokens=4, budget_ms=60_000)
    for owner in _OWNERS:
        assert _fill(cluster, owner, hole)[1].cached_tokens == 0


def test_every_dialect_answers_and_streams(cluster: HttpService) -> None:
    ann = _bearer("user0")
    whole = cluster.post("/v1/completions", {"prompt": PREFIX, "suffix": SUFFIX, "max_tokens": 8}, **ann).json()
    hole = {"prompt": PREFIX, "suffix": SUFFIX, "max_tokens": 8, "stream": True}
    streamed = cluster.post("/v1/completions", hole, **ann)
    assert streamed.text.count("data: ") > 2
    assert whole["choices"][0]["text"]
    assert cluster.post("/infill", infill(), **ann).status_code == 200
    assert cluster.post("/infill", infill(n_predict=-7), **ann).status_code == 400
    assert cluster.metric("engine_clients", **ann) == 2
    assert cluster.metric("engine_fills_total", **ann) > 0


def test_a_killed_replica_costs_no_error_and_is_replaced(cluster: HttpService) -> None:
    statuses, slow = asyncio.run(_ask_while(cluster, lambda: _kill(cluster), seconds=15.0))
    assert set(statuses) == {200}, {status: statuses.count(status) for status in set(statuses)}
    assert len(statuses) > 50
    poll(lambda: len(_replicas(cluster)) == 2 and cluster.metric("engine_clients", **_bearer("user0")) == 2)
    print(f"{len(statuses)} requests, slowest {slow:.2f} s")


def test_a_rolling_update_costs_no_error(cluster: HttpService) -> None:
    before = {process.pid for process in _replicas(cluster)}
    statuses, slow = asyncio.run(_ask_while(cluster, lambda: cluster.process.send_signal(signal.SIGHUP), seconds=25.0))
    assert set(statuses) == {200}, {status: statuses.count(status) for status in set(statuses)}
    poll(lambda: any("all replicas are replaced" in line for line in cluster.lines))
    after = {process.pid for process in _replicas(cluster)}
    assert len(after) == 2
    assert not before & after
    print(f"{len(statuses)} requests, slowest {slow:.2f} s")


def test_the_memory_is_apart_by_token_and_lost_with_its_replica(cluster: HttpService) -> None:
    learned = [Learn("w", f"part{number}.py", f"value{number} = {number}\n" * 40) for number in range(4)]
    body = b"".join(map(pack, learned))
    answer = cluster.client().post("/midspan/memory", content=body, headers=_bearer("user1"))
    assert answer.status_code == 200
    assert [_files(cluster, owner) for owner in _OWNERS] == [0, 4, *[0] * 6]
    for process in _replicas(cluster):
        process.kill()
    mind, _ = _fill(cluster, "user1", _HOLE)
    assert mind != answer.headers["x-midspan-mind"], "the client cannot see that it has to teach again"


def _files(service: HttpService, owner: str) -> int:
    content = pack(MemoryStatusRequest("w"))
    answer = service.client().post("/midspan/memory", content=content, headers=_bearer(owner))
    status = unpack_all(answer.content)[0]
    assert isinstance(status, MemoryStatus)
    return status.files


def _kill(service: HttpService) -> None:
    victim = _replicas(service)[0]
    os.kill(victim.pid, signal.SIGKILL)


async def _ask_while(service: HttpService, disaster: Any, seconds: float) -> tuple[list[int], float]:
    """Let eight users ask for so long, one request after the other, with a disaster in between."""
    statuses: list[int] = []
    slowest = 0.0
    ends = time.monotonic() + seconds

    async def ask(owner: str) -> None:
        nonlocal slowest
        while time.monotonic() < ends:
            begun = time.monotonic()
            answer = await client.post("/infill", json=infill(), headers=_bearer(owner))
            slowest = max(slowest, time.monotonic() - begun)
            statuses.append(answer.status_code)

    async with httpx2.AsyncClient(base_url=service.url, timeout=60, trust_env=False) as client:
        asking = [asyncio.create_task(ask(owner)) for owner in _OWNERS]
        await asyncio.sleep(seconds / 5)
        await asyncio.to_thread(disaster)
        await asyncio.gather(*asking)
    return statuses, slowest


def test_clients_that_leave_end_their_fills_in_the_replicas(
    slow_model: Path, tmp_path_factory: pytest.TempPathFactory, cluster: HttpService
) -> None:
    for service in _serve(slow_model, tmp_path_factory.mktemp("slow")):
        asyncio.run(_leave_in_masses(service))


async def _leave_in_masses(service: HttpService) -> None:
    async def at_work() -> float:
        names = ("engine_fills_active", "engine_fills_waiting")
        return sum([await asyncio.to_thread(service.metric, name, **_bearer("user0")) for name in names])

    async def wait(holds: Any) -> None:
        deadline = time.monotonic() + 60
        while not holds(await at_work()):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)

    async with httpx2.AsyncClient(base_url=service.url, timeout=60, trust_env=False) as client:
        for _ in range(4):
            asking = [
                asyncio.create_task(client.post("/infill", json=_LONG, headers=_bearer(owner)))
                for owner in _OWNERS
                for _ in range(16)
            ]
            await wait(lambda count: count > 0)
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            await wait(lambda count: count == 0)
    done = await asyncio.to_thread(service.metric, "engine_fills_total", **_bearer("user0"))
    print(f"{done:g} of 512 fills ran on")
    assert done == 0


def test_a_server_that_starts_again_finds_the_replicas_of_a_named_ray_as_they_are(
    tiny_model: Path, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start = ["start", "--head", "--block", f"--port={port}", "--node-ip-address=127.0.0.1", "--num-cpus=2"]
    command = [sys.executable, "-m", "ray.scripts.scripts", *start, "--include-dashboard=false"]
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    head = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        minds = []
        for _ in range(2):
            arguments = ["--ray", f"127.0.0.1:{port}", "--replicas", "2", "--threads", "1", "--rate", "0"]
            poll(lambda: _is_open(port))
            with http_service(tiny_model, *arguments) as service:
                minds.append(_fill(service, "nobody", _HOLE))
        assert minds[0][0] == minds[1][0]
        assert minds[1][1].cached_tokens > 0, "the contexts are gone"
        with http_service(tiny_model, "--replicas", "1", "--threads", "1") as service:
            assert len(_replicas(service)) == 1, "it joined a Ray that nobody named"
    finally:
        head.send_signal(signal.SIGTERM)
        head.wait(60)


def _is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
