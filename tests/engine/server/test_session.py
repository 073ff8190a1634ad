"""A real engine process, spoken to in raw frames: whatever comes, it answers, and goes on filling holes."""

import asyncio
import random
import struct
from collections.abc import AsyncIterator
from typing import get_args

import attrs
import msgpack
import pytest
from wire import HOLE, LONG, Wire, frame

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
async def wire(running: EngineOptions) -> AsyncIterator[Wire]:
    """A client of the running engine, once the engine is rid of what the test before left."""
    wire = await Wire.greeted(running)
    async with asyncio.timeout(30):
        while (now := await wire.status()).active or now.waiting or now.clients > 1:
            pass
    yield wire
    wire.close()


async def test_a_hole_is_filled(wire: Wire) -> None:
    wire.send(HOLE)
    filled = await wire.answer()
    assert isinstance(filled, Filled)
    assert filled.id == 1
    assert "".join(filled.candidates[0].tokens) == filled.candidates[0].text


async def test_progress_comes_before_the_answer_when_it_is_asked_for(wire: Wire) -> None:
    wire.send(Fill(5, "a = ", "", max_tokens=8, progress=True))
    answers = [await wire.answer()]
    while isinstance(answers[-1], Progress):
        answers.append(await wire.answer())
    assert len(answers) > 1
    assert isinstance(answers[-1], Filled)
    assert {answer.id for answer in answers if isinstance(answer, Progress | Filled)} == {5}


async def test_two_clients_are_served_at_once(running: EngineOptions, wire: Wire) -> None:
    other = await Wire.greeted(running)
    wire.send(LONG)
    other.send(HOLE)
    assert isinstance(await other.answer(), Filled), "the short hole waited for the other client's long one"
    status = await other.status()
    assert status.clients == 2
    assert status.active + status.waiting == 1
    other.close()


async def test_a_cancelled_fill_is_answered_and_stops(wire: Wire) -> None:
    before = await wire.status()
    wire.send(LONG, Cancel(1))
    assert (await wire.failed()).code == "cancelled"
    after = await wire.status()
    assert (after.cancelled - before.cancelled, after.active + after.waiting) == (1, 0)


async def test_the_fills_of_a_client_that_goes_away_are_cancelled(running: EngineOptions, wire: Wire) -> None:
    before = await wire.status()
    leaver = await Wire.greeted(running)
    leaver.send(*(Fill(number, LONG.prefix, "", extent="lines", max_tokens=2048) for number in range(8)))
    await leaver.status()
    leaver.close()
    async with asyncio.timeout(30):
        while (now := await wire.status()).active or now.waiting or now.clients > 1:
            pass
    assert now.cancelled > before.cancelled


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
    ],
)
async def test_a_value_out_of_bounds_is_answered_with_its_name(wire: Wire, fill: Fill, says: str) -> None:
    wire.send(fill)
    failed = await wire.failed()
    assert (failed.code, failed.id) == ("bad-value", 1)
    assert says in failed.message
    wire.send(HOLE)
    assert isinstance(await wire.answer(), Filled)


ODD = [
    Fill(0, "", ""),
    Fill(1, "\n" * 5000, "\r\n" * 5000, extent="lines"),
    Fill(2, "x" * 1_000_000, "y" * 1_000_000),
    Fill(3, "\x00\ufeff\u202e\U0001f600" * 50, "\u0301" * 50, path="\x00", language="\n"),
    Fill(4, "a", "b", budget_ms=1.0, max_tokens=2048),
    Fill(5, "a", "b", steps=1, max_tokens=64),
    Fill(6, "a", "b", candidates=8, temperature=0.0, top_p=0.01, max_tokens=4),
    Fill(7, "a", "b", candidates=2, temperature=2.0, seed=2**63 - 1, max_tokens=1),
    Fill(8, "a", "b", snippets=[Snippet("", "")] * 64, max_tokens=4),
]


@pytest.mark.parametrize("rule", get_args(RuleName))
async def test_an_odd_fill_is_filled_all_the_same(wire: Wire, rule: RuleName) -> None:
    wire.send(*(attrs.evolve(odd, rule=rule, budget_ms=min(odd.budget_ms, 500.0)) for odd in ODD))
    answers = [await wire.answer() for _ in ODD]
    assert [answer for answer in answers if not isinstance(answer, Filled)] == []


async def test_an_id_cannot_be_used_twice_at_once(wire: Wire) -> None:
    wire.send(LONG, LONG)
    assert "id 1 is of a fill that still runs" in (await wire.failed()).message


async def test_one_client_cannot_queue_fills_without_end(wire: Wire) -> None:
    wire.send(*(Fill(number, LONG.prefix, "", extent="lines", max_tokens=2048) for number in range(65)))
    while (failed := await wire.answer()) and isinstance(failed, Filled):
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
async def test_a_bad_message_is_answered_and_the_connection_goes_on(wire: Wire, data: bytes, code: str) -> None:
    wire.send_bytes(data)
    assert (await wire.failed()).code == code
    wire.send(HOLE)
    assert isinstance(await wire.answer(), Filled)


async def test_an_oversized_frame_ends_its_connection_only(running: EngineOptions, wire: Wire) -> None:
    other = await Wire.greeted(running)
    other.send_bytes(frame(bytes(MAX_FRAME_BYTES + 1)))
    assert (await other.failed()).code == "too-large"
    assert await other.is_over()
    wire.send(HOLE)
    assert isinstance(await wire.answer(), Filled)


async def test_a_client_that_never_reads_is_dropped(running: EngineOptions, wire: Wire) -> None:
    deaf = await Wire.greeted(running)
    # Its receive buffer fills, then the engine's for it; in the end the engine hangs up, and a write of ours says so.
    with pytest.raises(OSError, match=r"pipe|reset|lost"):
        await deaf.push_without_end(pack(StatusRequest()) * 500)
    async with asyncio.timeout(30):
        while (await wire.status()).clients > 1:
            pass


async def test_thousands_of_malformed_frames_do_not_harm_the_engine(running: EngineOptions) -> None:
    dice = random.Random(20260727)
    good = pack(HOLE)
    refused = 0
    async with asyncio.timeout(100):
        for number in range(60):
            wire = await (Wire.open if number % 10 == 0 else Wire.greeted)(running)
            for _ in range(60):
                wire.send_bytes(mangle(good, dice))
            wire.say_no_more()
            refused += await wire.refusals()
            wire.close()
    assert refused > 2000
    wire = await Wire.greeted(running)
    wire.send(HOLE)
    assert isinstance(await wire.answer(), Filled)
    assert (await wire.status()).active == 0
    wire.close()


def mangle(good: bytes, dice: random.Random) -> bytes:
    """Return a frame with something wrong: its bytes, its length, its end, or all of it."""
    body = bytearray(good[4:])
    match dice.randrange(6):
        case 0:
            return frame(dice.randbytes(dice.randrange(200)))
        case 1 | 2:
            for _ in range(dice.randrange(1, 6)):
                body[dice.randrange(len(body))] = dice.randrange(256)
            return frame(bytes(body))
        case 3:
            return frame(bytes(body[: dice.randrange(len(body))]))
        case 4:
            return frame(bytes(body) + dice.randbytes(dice.randrange(1, 9)))
        case _:
            # Nearly always harmless, and now and then a length that swallows what follows or is over the limit.
            length = dice.choice([1, 3, len(body) - 1, len(body) + 5, 2**32 - 1] + [0] * 400)
            return struct.pack(">I", length)
