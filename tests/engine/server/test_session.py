"""Raw frames to a real engine process: it answers all of them, and it still fills holes afterwards."""

import asyncio
import random
import struct
from collections.abc import AsyncIterator
from typing import get_args

import attrs
import msgpack
import pytest
from raw_client import HOLE, LONG, RawClient, frame

from engine.client.launcher import EngineOptions
from engine.protocol.framing import MAX_FRAME_BYTES, pack
from engine.protocol.messages import (
    PROTOCOL_VERSION,
    Cancel,
    Failed,
    Fill,
    Filled,
    Hello,
    Progress,
    RuleName,
    Snippet,
    StatusRequest,
)


@pytest.fixture
async def client(running: EngineOptions) -> AsyncIterator[RawClient]:
    """A client of the shared engine, once the engine has dropped the fills and clients of the test before."""
    client = await RawClient.greeted(running)
    async with asyncio.timeout(30):
        while (status := await client.status()).active or status.waiting or status.clients > 1:
            pass
    yield client
    client.close()


async def test_a_hole_is_filled(client: RawClient) -> None:
    client.send(HOLE)
    filled = await client.answer()
    assert isinstance(filled, Filled)
    assert filled.id == 1
    assert "".join(filled.candidates[0].tokens) == filled.candidates[0].text


async def test_requested_progress_comes_before_the_answer(client: RawClient) -> None:
    client.send(Fill(5, "a = ", "", max_tokens=8, progress=True))
    answers = [await client.answer()]
    while isinstance(answers[-1], Progress):
        answers.append(await client.answer())
    assert len(answers) > 1
    assert isinstance(answers[-1], Filled)
    assert {answer.id for answer in answers if isinstance(answer, Progress | Filled)} == {5}


async def test_two_clients_are_served_at_once(running: EngineOptions, client: RawClient) -> None:
    other = await RawClient.greeted(running)
    client.send(LONG)
    other.send(HOLE)
    assert isinstance(await other.answer(), Filled), "the short hole waited for the other client's long one"
    status = await other.status()
    assert status.clients == 2
    assert status.active + status.waiting == 1
    other.close()


async def test_a_cancelled_fill_stops_and_is_answered(client: RawClient) -> None:
    before = await client.status()
    client.send(LONG, Cancel(1))
    assert (await client.failed()).code == "cancelled"
    after = await client.status()
    assert (after.cancelled - before.cancelled, after.active + after.waiting) == (1, 0)


async def test_the_fills_of_a_client_that_disconnects_are_cancelled(running: EngineOptions, client: RawClient) -> None:
    before = await client.status()
    leaving = await RawClient.greeted(running)
    leaving.send(*(Fill(number, LONG.prefix, "", extent="lines", max_tokens=2048) for number in range(8)))
    await leaving.status()
    leaving.close()
    async with asyncio.timeout(30):
        while (after := await client.status()).active or after.waiting or after.clients > 1:
            pass
    assert after.cancelled > before.cancelled


@pytest.mark.parametrize(
    ("fill", "says"),
    [
        (Fill(1, "", "", max_tokens=0), "max_tokens is 0; it can be 1 to 2048"),
        (Fill(1, "", "", candidates=9), "candidates is 9; it can be 1 to 8"),
        (Fill(1, "", "", budget_ms=float("nan")), "budget_ms is nan; it can be 1 to 600000"),
        (Fill(1, "", "", budget_ms=-1.0), "budget_ms is -1.0"),
        (Fill(1, "", "", top_p=0.0), "top_p is 0.0"),
        (Fill(1, "", "", seed=-1), "seed is -1"),
        (Fill(1, "x" * 1_000_001, ""), "prefix has 1000001 characters; at most 1000000 are allowed"),
        (
            Fill(1, "", "", snippets=[Snippet("a.py", "x" * 150_000)] * 2),
            "the snippets have 300000 characters; at",
        ),
        (Fill(1, "", "", snippets=[Snippet("x" * 5000, "")]), "the path of a snippet has more than 4096 characters"),
    ],
)
async def test_a_value_outside_its_limits_is_answered_with_its_name(client: RawClient, fill: Fill, says: str) -> None:
    client.send(fill)
    failed = await client.failed()
    assert (failed.code, failed.id) == ("bad-value", 1)
    assert says in failed.message
    client.send(HOLE)
    assert isinstance(await client.answer(), Filled)


UNUSUAL = [
    Fill(0, "", ""),
    Fill(1, "\n" * 5000, "\r\n" * 5000, extent="lines"),
    Fill(2, "x" * 1_000_000, "y" * 1_000_000),
    Fill(3, "\x00\ufeff\u202e\U0001f600" * 50, "\u0301" * 50, path="\x00", language="\n"),
    Fill(4, "a", "b", budget_ms=1.0, max_tokens=2048),
    Fill(5, "a", "b", steps=1, max_tokens=64),
    Fill(6, "a", "b", candidates=8, temperature=0.0, top_p=0.01, max_tokens=4),
    Fill(7, "a", "b", candidates=2, temperature=2.0, seed=2**63 - 1, max_tokens=1),
    Fill(8, "a", "b", snippets=[Snippet("", "")] * 64, max_tokens=4),
    Fill(9, "a", "b", snippets=[Snippet("a", "x" * 200_000)], max_tokens=4),
]


@pytest.mark.parametrize("rule", get_args(RuleName))
async def test_an_unusual_fill_is_filled_too(client: RawClient, rule: RuleName) -> None:
    client.send(*(attrs.evolve(fill, rule=rule, budget_ms=min(fill.budget_ms, 500.0)) for fill in UNUSUAL))
    answers = [await client.answer() for _ in UNUSUAL]
    assert [answer for answer in answers if not isinstance(answer, Filled)] == []


async def test_an_id_cannot_be_used_twice_at_once(client: RawClient) -> None:
    client.send(LONG, LONG)
    assert "id 1 is of a fill that still runs" in (await client.failed()).message


async def test_a_client_can_have_only_so_many_open_fills(client: RawClient) -> None:
    client.send(*(Fill(number, LONG.prefix, "", extent="lines", max_tokens=2048) for number in range(65)))
    while (failed := await client.answer()) and isinstance(failed, Filled):
        pass
    assert isinstance(failed, Failed)
    assert (failed.code, failed.id) == ("busy", 64)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(b""), "malformed"),
        (frame(b"\xc1\xc1"), "malformed"),
        (frame(msgpack.packb({"type": "dance"})), "unknown-type"),
        (frame(msgpack.packb({"type": "fill", "id": "one"})), "malformed"),
        (pack(Hello(PROTOCOL_VERSION, "again")), "unexpected"),
        (pack(Failed("me", "too")), "unexpected"),
    ],
)
async def test_a_bad_message_is_answered_and_costs_no_connection(client: RawClient, data: bytes, code: str) -> None:
    client.send_bytes(data)
    assert (await client.failed()).code == code
    client.send(HOLE)
    assert isinstance(await client.answer(), Filled)


async def test_an_oversized_frame_ends_only_its_own_connection(running: EngineOptions, client: RawClient) -> None:
    other = await RawClient.greeted(running)
    other.send_bytes(frame(bytes(MAX_FRAME_BYTES + 1)))
    assert (await other.failed()).code == "too-large"
    assert await other.has_ended()
    client.send(HOLE)
    assert isinstance(await client.answer(), Filled)


async def test_a_client_that_never_reads_is_dropped(running: EngineOptions, client: RawClient) -> None:
    deaf = await RawClient.greeted(running)
    # Its receive buffer fills, then the engine's send buffer; the engine closes the connection and our write fails.
    with pytest.raises(OSError, match=r"pipe|reset|lost"):
        await deaf.send_forever(pack(StatusRequest()) * 500)
    async with asyncio.timeout(30):
        while (await client.status()).clients > 1:
            pass


async def test_thousands_of_malformed_frames_do_not_harm_the_engine(running: EngineOptions) -> None:
    random_source = random.Random(20260727)
    good = pack(HOLE)
    refused = 0
    async with asyncio.timeout(100):
        for number in range(60):
            client = await (RawClient.open if number % 10 == 0 else RawClient.greeted)(running)
            for _ in range(60):
                client.send_bytes(mangle(good, random_source))
            client.end_sending()
            refused += await client.refusals()
            client.close()
    assert refused > 2000
    client = await RawClient.greeted(running)
    client.send(HOLE)
    assert isinstance(await client.answer(), Filled)
    assert (await client.status()).active == 0
    client.close()


def mangle(good: bytes, random_source: random.Random) -> bytes:
    """Return a frame whose bytes, length or end are wrong, or one of random bytes."""
    body = bytearray(good[4:])
    match random_source.randrange(6):
        case 0:
            return frame(random_source.randbytes(random_source.randrange(200)))
        case 1 | 2:
            for _ in range(random_source.randrange(1, 6)):
                body[random_source.randrange(len(body))] = random_source.randrange(256)
            return frame(bytes(body))
        case 3:
            return frame(bytes(body[: random_source.randrange(len(body))]))
        case 4:
            return frame(bytes(body) + random_source.randbytes(random_source.randrange(1, 9)))
        case _:
            # Nearly always 0. Sometimes a length that includes the next frame or exceeds the limit.
            length = random_source.choice([1, 3, len(body) - 1, len(body) + 5, 2**32 - 1] + [0] * 400)
            return struct.pack(">I", length)
