"""Whatever a remote server does, it costs one clear line and no more than the budget."""

import asyncio

import attrs
import pytest
from remote_client import HOLE, complaint, fill_once
from remote_server import TEXT, ModelServer, fails, hangs, replies, says

from engine.errors import RemoteError
from engine.remote.backend import MAX_ACTIVE, RemoteBackend
from engine.schedule.backend import CancelledFill


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (302, "answers with a redirect (302), which is not followed"),
        (400, "refuses the request (400)"),
        (401, "wants a key (401); put it into MIDSPAN_API_KEY_127_0_0_1"),
        (404, "has nothing there (404)"),
        (429, "wants to be left alone"),
        (500, "failed (status 500)"),
        (501, "cannot fill holes (501)"),
        (503, "failed (status 503)"),
    ],
)
async def test_a_server_that_fails_is_named_with_its_status(server: ModelServer, status: int, says: str) -> None:
    server.behaviour = fails(status, f"secret {HOLE.prefix}", Retry_After="30", Location="http://example.com")
    if status == 503:
        server.behaviour = fails(status)
    line = await complaint(server.model("openai"))
    assert line.startswith(f"127.0.0.1:{server.port} ")
    assert says in line
    assert "secret" not in line


@pytest.mark.parametrize(
    "content",
    [b"<html>", b"", b"[]", b'{"choices": []}', b'{"choices": [{"text": 1}]}', b"[" * 100_000, b"\xff\x00"],
)
@pytest.mark.parametrize("dialect", ["openai", "mercury", "llamacpp"])
async def test_garbage_is_no_answer(server: ModelServer, dialect: str, content: bytes) -> None:
    server.behaviour = replies(content)
    assert "answers, but not" in await complaint(server.model(dialect))


async def test_a_huge_answer_is_dropped(server: ModelServer) -> None:
    server.behaviour = replies(b'{"choices": [{"text": "' + b"x" * 5_000_000)
    assert "larger than 4194304 bytes" in await complaint(server.model("openai"))


async def test_a_server_that_hangs_costs_the_budget_and_no_more(server: ModelServer) -> None:
    server.behaviour = hangs
    line = await complaint(server.model("openai"), attrs.evolve(HOLE, budget_ms=200))
    assert "did not answer within 200 ms" in line
    assert await asyncio.to_thread(server.left.wait, 20)


async def test_cancelling_a_fill_closes_its_connection_at_once(server: ModelServer, openai: RemoteBackend) -> None:
    server.behaviour = hangs
    ticket = openai.submit(attrs.evolve(HOLE, budget_ms=600_000), None)
    await server.has_received(1)
    assert openai.report().active == 1
    openai.cancel(ticket)
    with pytest.raises(CancelledFill):
        await ticket.result
    assert await asyncio.to_thread(server.left.wait, 20), "the server was not told that nobody waits any more"
    assert (openai.report().active, openai.report().cancelled) == (0, 1)


async def test_a_fill_cancelled_before_it_began_is_cancelled_too(openai: RemoteBackend, server: ModelServer) -> None:
    ticket = openai.submit(HOLE, None)
    openai.cancel(ticket)
    with pytest.raises(CancelledFill):
        await ticket.result
    assert server.received == []


async def test_only_so_many_fills_are_with_the_server_at_once(server: ModelServer, openai: RemoteBackend) -> None:
    server.behaviour = hangs
    tickets = [openai.submit(HOLE, None) for _ in range(MAX_ACTIVE + 3)]
    await server.has_received(MAX_ACTIVE)
    assert (openai.report().active, openai.report().waiting) == (MAX_ACTIVE, 3)
    server.behaviour = says("x")
    for ticket in tickets[:MAX_ACTIVE]:
        openai.cancel(ticket)
    for ticket in tickets[MAX_ACTIVE:]:
        assert (await ticket.result).candidates[0].text == "x"


async def test_a_server_that_is_not_there_is_one_line_at_once() -> None:
    line = await complaint("llamacpp+http://127.0.0.1:9", attrs.evolve(HOLE, budget_ms=600_000))
    assert line == "127.0.0.1:9 cannot be reached; is its server running?"


async def test_a_connection_that_breaks_is_tried_once_more() -> None:
    connections = 0

    async def drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    dropping = await asyncio.start_server(drop, "127.0.0.1", 0)
    port = dropping.sockets[0].getsockname()[1]
    line = await complaint(f"llamacpp+http://127.0.0.1:{port}")
    assert f"127.0.0.1:{port} broke the connection" in line
    assert connections == 2
    dropping.close()


@pytest.mark.parametrize("status", [502, 503])
async def test_a_passing_failure_is_tried_once_more(server: ModelServer, status: int) -> None:
    server.script.append(fails(status))
    assert (await fill_once(server.model("openai"))).candidates[0].text == TEXT
    assert len(server.received) == 2


async def test_a_failure_of_the_server_itself_is_not_tried_again(server: ModelServer) -> None:
    server.behaviour = fails(500)
    await complaint(server.model("openai"))
    assert len(server.received) == 1


async def test_a_pause_that_fits_the_budget_is_kept(server: ModelServer) -> None:
    server.script.append(fails(429, Retry_After="0.2"))
    filled = await fill_once(server.model("openai"))
    assert filled.ms.total >= 200


async def test_a_pause_beyond_the_budget_is_not_slept_and_the_server_is_left_alone(
    server: ModelServer, openai: RemoteBackend
) -> None:
    server.script.append(fails(429, Retry_After="3000"))
    for _ in range(3):
        with pytest.raises(RemoteError, match="wants to be left alone"):
            await openai.submit(HOLE, None).result
    assert len(server.received) == 1
