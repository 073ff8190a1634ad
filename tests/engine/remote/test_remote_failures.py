"""When a remote server fails, the user gets one clear line within the budget."""

import asyncio
import json
import re
import time

import attrs
import pytest
from remote_client import HOLE, error_line, fill_once
from support.marked import hole_at, opened
from support.remote_server import TEXT, ModelServer, answers_body, answers_status, answers_text, hangs

from engine.errors import RemoteError
from engine.protocol.framing import pack, unpack
from engine.protocol.messages import Extent, Filled
from engine.remote.backend import MAX_ACTIVE, RemoteBackend
from engine.schedule.backend import CancelledFill
from lsp_server.settings import Settings
from lsp_server.suggest.pipeline import Plan, present


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (302, "answers with a redirect (302), which is not followed"),
        (400, "refuses the request (400)"),
        (401, "wants a key (401); put it into MIDSPAN_API_KEY_127_0_0_1"),
        (404, "has nothing there (404)"),
        (429, "asks for a pause"),
        (500, "failed (status 500)"),
        (501, "cannot fill holes (501)"),
        (503, "failed (status 503)"),
    ],
)
async def test_a_server_that_fails_is_named_with_its_status(server: ModelServer, status: int, says: str) -> None:
    server.behaviour = answers_status(status, f"secret {HOLE.prefix}", Retry_After="30", Location="http://example.com")
    if status == 503:
        server.behaviour = answers_status(status)
    line = await error_line(server.model("openai"))
    assert line.startswith(f"127.0.0.1:{server.port} ")
    assert says in line
    assert "secret" not in line


@pytest.mark.parametrize(
    "content",
    [b"<html>", b"", b"[]", b'{"choices": []}', b'{"choices": [{"text": 1}]}', b"[" * 100_000, b"\xff\x00"],
)
@pytest.mark.parametrize("dialect", ["openai", "mercury", "llamacpp"])
async def test_an_invalid_answer_is_refused(server: ModelServer, dialect: str, content: bytes) -> None:
    server.behaviour = answers_body(content)
    assert "answers, but not" in await error_line(server.model(dialect))


async def test_an_answer_over_the_limit_is_refused(server: ModelServer) -> None:
    server.behaviour = answers_body(b'{"choices": [{"text": "' + b"x" * 5_000_000)
    assert re.search(r"larger than \d{6} bytes", await error_line(server.model("openai")))


async def test_a_server_that_hangs_costs_only_the_budget(server: ModelServer) -> None:
    server.behaviour = hangs
    line = await error_line(server.model("openai"), attrs.evolve(HOLE, budget_ms=200))
    assert "did not answer within 200 ms" in line
    assert await asyncio.to_thread(server.client_left.wait, 20)


async def test_cancelling_a_fill_closes_its_connection_at_once(server: ModelServer, openai: RemoteBackend) -> None:
    server.behaviour = hangs
    ticket = openai.submit(attrs.evolve(HOLE, budget_ms=600_000), None)
    await server.has_received(1)
    assert openai.report().active == 1
    openai.cancel(ticket)
    with pytest.raises(CancelledFill):
        await ticket.result
    assert await asyncio.to_thread(server.client_left.wait, 20), "the connection to the server was not closed"
    assert (openai.report().active, openai.report().cancelled) == (0, 1)


async def test_a_fill_can_be_cancelled_before_it_begins(openai: RemoteBackend, server: ModelServer) -> None:
    ticket = openai.submit(HOLE, None)
    openai.cancel(ticket)
    with pytest.raises(CancelledFill):
        await ticket.result
    assert server.received == []


async def test_the_number_of_fills_at_the_server_is_limited(server: ModelServer, openai: RemoteBackend) -> None:
    server.behaviour = hangs
    tickets = [openai.submit(HOLE, None) for _ in range(MAX_ACTIVE + 3)]
    await server.has_received(MAX_ACTIVE)
    assert (openai.report().active, openai.report().waiting) == (MAX_ACTIVE, 3)
    server.behaviour = answers_text("x")
    for ticket in tickets[:MAX_ACTIVE]:
        openai.cancel(ticket)
    for ticket in tickets[MAX_ACTIVE:]:
        assert (await ticket.result).candidates[0].text == "x"


async def test_a_server_that_is_not_running_is_one_line_at_once() -> None:
    line = await error_line("llamacpp+http://127.0.0.1:9", attrs.evolve(HOLE, budget_ms=600_000))
    assert line == "127.0.0.1:9 cannot be reached; is its server running?"


async def test_after_a_broken_connection_there_is_one_retry() -> None:
    connections = 0

    async def drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    dropping = await asyncio.start_server(drop, "127.0.0.1", 0)
    port = dropping.sockets[0].getsockname()[1]
    line = await error_line(f"llamacpp+http://127.0.0.1:{port}")
    assert f"127.0.0.1:{port} broke the connection" in line
    assert connections == 2
    dropping.close()


@pytest.mark.parametrize("status", [502, 503])
async def test_after_a_temporary_failure_there_is_one_retry(server: ModelServer, status: int) -> None:
    server.script.append(answers_status(status))
    assert (await fill_once(server.model("openai"))).candidates[0].text == TEXT
    assert len(server.received) == 2


async def test_after_a_failure_of_the_server_itself_there_is_no_retry(server: ModelServer) -> None:
    server.behaviour = answers_status(500)
    await error_line(server.model("openai"))
    assert len(server.received) == 1


async def test_a_requested_pause_within_the_budget_is_waited_for(server: ModelServer) -> None:
    server.script.append(answers_status(429, Retry_After="0.2"))
    filled = await fill_once(server.model("openai"))
    assert filled.ms.total >= 200


async def test_a_requested_pause_beyond_the_budget_fails_at_once_without_a_request(
    server: ModelServer, openai: RemoteBackend
) -> None:
    server.script.append(answers_status(429, Retry_After="3000"))
    for _ in range(3):
        with pytest.raises(RemoteError, match="asks for a pause"):
            await openai.submit(HOLE, None).result
    assert len(server.received) == 1


_HOSTILE = {
    "a long line": "(" * 100_000,
    "many lines": ")\n" * 50_000,
    "escape sequences": "a\x1b]52;c;aGk=\x07b\x9b2Jc\x08d",
    "bidirectional controls": "a\u202eb\u2066c\u200fd",
    "tags": "a\U000e0041\U000e0042b",
}


@pytest.mark.parametrize("text", _HOSTILE.values(), ids=_HOSTILE)
@pytest.mark.parametrize("extent", ["line", "lines"])
async def test_what_a_server_writes_is_as_long_as_was_asked_for_and_plain(
    server: ModelServer, text: str, extent: Extent
) -> None:
    server.behaviour = answers_body(json.dumps({"choices": [{"text": text}]}).encode())
    filled = await fill_once(server.model("openai"), attrs.evolve(HOLE, extent=extent))
    candidate = filled.candidates[0]
    assert "".join(candidate.tokens) == candidate.text
    assert len(candidate.text) <= 16 * HOLE.max_tokens
    assert all(char.isprintable() or char == "\n" for char in candidate.text)
    snapshot = opened("value = ")
    began = time.thread_time()
    present(Plan(snapshot, hole_at("value = ¦\n"), attrs.evolve(HOLE, extent=extent), Settings()), filled)
    assert time.thread_time() - began < 1, "thousands of brackets took 11 s"


@pytest.mark.parametrize(
    "usage",
    [
        '"usage": {"prompt_tokens": 1' + "0" * 40 + "}",
        '"usage": {"prompt_tokens": -5, "prompt_tokens_details": {"cached_tokens": 1' + "0" * 30 + "}}",
    ],
)
async def test_a_servers_counts_are_numbers_that_a_frame_can_hold(server: ModelServer, usage: str) -> None:
    server.behaviour = answers_body(('{"choices": [{"text": "a"}], ' + usage + "}").encode())
    filled = await fill_once(server.model("openai"))
    assert isinstance(unpack(pack(filled)[4:]), Filled)
    assert 0 <= filled.context_tokens < 2**31


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "5"])
async def test_a_servers_probabilities_are_probabilities(server: ModelServer, number: str) -> None:
    log = f'{{"tokens": ["a", "b"], "token_logprobs": [{number}, -0.1]}}'
    server.behaviour = answers_body(f'{{"choices": [{{"text": "ab", "logprobs": {log}}}]}}'.encode())
    filled = await fill_once(server.model("openai"))
    assert all(0 <= value <= 1 for value in filled.candidates[0].confidence)
