"""The real server of llama.cpp with a tiny random model fills holes for a real engine process."""

import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import attrs
import httpx2
import pytest
from fetch_llamacpp import SERVER, environment
from support.engine_process import end
from tiny_gguf import write_tiny_gguf

from engine.client.connection import EngineClient, EngineFailure
from engine.client.launcher import EngineOptions, connect_or_start
from engine.protocol.messages import Fill, Snippet

pytestmark = pytest.mark.skipif(not SERVER.exists(), reason="llama.cpp is not here; `make llamacpp` fetches it")
HOLE = Fill(
    0,
    prefix="def area(width, height):\n    return ",
    suffix="\n",
    snippets=[Snippet("shapes.py", "side = 2\n")],
    max_tokens=8,
    extent="lines",
    budget_ms=30_000,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running llama.cpp server."""
    folder = tmp_path_factory.mktemp("llamacpp")
    write_tiny_gguf(folder / "tiny.gguf")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    host, port = address.split(":")
    command = [str(SERVER), "--model", str(folder / "tiny.gguf"), "--host", host, "--port", port, "--threads", "1"]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(command, env=environment(), stdout=log, stderr=log, cwd=folder)
    deadline = time.monotonic() + 60
    while not _is_ready(address):
        assert running.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < deadline, (folder / "log").read_text()
        time.sleep(0.05)
    yield address
    running.terminate()
    running.wait(30)


def _is_ready(address: str) -> bool:
    try:
        return httpx2.get(f"http://{address}/health", trust_env=False).status_code == 200
    except httpx2.TransportError:
        return False


@pytest.fixture
def options(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineOptions]:
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path))
    options = EngineOptions(model=f"llamacpp+http://{server}")
    yield options
    end(options.paths)


@pytest.fixture
async def client(options: EngineOptions) -> AsyncIterator[EngineClient]:
    client = await connect_or_start(options, "test")
    yield client
    await client.close()


async def test_a_filled_hole_has_the_probabilities_of_its_tokens(client: EngineClient) -> None:
    filled = await client.fill(HOLE)
    (candidate,) = filled.candidates
    assert candidate.text
    assert "".join(candidate.tokens) == candidate.text
    assert len(candidate.tokens) > 1
    assert len(set(candidate.confidence)) > 1
    assert all(0 < value < 1 for value in candidate.confidence)
    assert candidate.finish == "canvas full"
    assert filled.context_tokens > len(HOLE.prefix + HOLE.suffix)
    again = await client.fill(HOLE)
    assert again.candidates[0].text == candidate.text
    assert 0 < again.cached_tokens <= again.context_tokens


async def test_the_suffix_and_the_snippets_reach_the_model(client: EngineClient) -> None:
    filled = await client.fill(HOLE)
    for other in (attrs.evolve(HOLE, suffix="\n    # other\n"), attrs.evolve(HOLE, snippets=[])):
        assert (await client.fill(other)).candidates != filled.candidates


async def test_the_first_of_several_candidates_is_the_greedy_one(client: EngineClient) -> None:
    alone = await client.fill(HOLE)
    several = await client.fill(attrs.evolve(HOLE, candidates=3, temperature=1.5, seed=1))
    assert several.candidates[0].text == alone.candidates[0].text
    assert len({candidate.text for candidate in several.candidates}) == len(several.candidates) > 1


async def test_llamacpp_in_the_openai_dialect_is_noticed(server: str, options: EngineOptions) -> None:
    mistaken = attrs.evolve(options, model=f"openai+http://{server}/v1#tiny")
    client = await connect_or_start(mistaken, "test")
    with pytest.raises(EngineFailure, match=r"llama\.cpp fills holes of any model as llamacpp"):
        await client.fill(HOLE)
    await client.close()
    end(mistaken.paths)
