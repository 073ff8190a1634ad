"""The client against a real engine: many fills at once, cancelling, and clear errors when something is wrong."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from wire import HOLE, LONG

from engine.client import connection as client_module
from engine.client.address import Address, runtime_paths_of
from engine.client.connection import EngineClient, EngineFailure
from engine.client.launcher import EngineOptions, connect_running
from engine.errors import EngineUnavailable, ProtocolError
from engine.protocol.framing import MAX_FRAME_BYTES
from engine.protocol.messages import PROTOCOL_VERSION, Fill, Progress


@pytest.fixture
async def client(running: EngineOptions) -> AsyncIterator[EngineClient]:
    client = await connect_running(running, "test")
    assert client is not None
    yield client
    await client.close()


async def test_the_welcome_names_the_model(client: EngineClient) -> None:
    assert client.welcome.protocol == PROTOCOL_VERSION
    assert client.welcome.model.canvas_tokens > 0


async def test_many_fills_run_at_once_and_each_gets_its_own_answer(client: EngineClient) -> None:
    holes = [Fill(0, f"x{number} = ", "", max_tokens=4) for number in range(12)]
    answers = await asyncio.gather(*(client.fill(hole) for hole in holes))
    assert len({answer.id for answer in answers}) == 12
    assert all(answer.candidates for answer in answers)


async def test_progress_reaches_the_one_who_asked_for_it(client: EngineClient) -> None:
    steps: list[Progress] = []
    answer = await client.fill(HOLE, steps.append)
    assert steps
    assert {step.id for step in steps} == {answer.id}


async def test_an_error_of_the_one_who_hears_progress_is_his_alone(client: EngineClient) -> None:
    def stumble(_: Progress) -> None:
        raise ZeroDivisionError

    stumbling = asyncio.create_task(client.fill(HOLE, stumble))
    assert (await client.fill(HOLE)).candidates
    with pytest.raises(ZeroDivisionError):
        await stumbling


async def test_cancelling_the_task_cancels_the_fill_in_the_engine(client: EngineClient) -> None:
    before = await client.status()
    waiting = asyncio.create_task(client.fill(LONG))
    await client.status()  # the task has run, and the engine has read the fill
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(30):
        while (now := await client.status()).active or now.waiting:
            pass
    assert now.cancelled - before.cancelled == 1
    assert (await client.fill(HOLE)).candidates


async def test_a_refused_fill_raises_the_engines_reason(client: EngineClient) -> None:
    with pytest.raises(EngineFailure, match="max_tokens is 0; it can be 1 to 2048") as failure:
        await client.fill(Fill(0, "", "", max_tokens=0))
    assert failure.value.code == "bad-value"


@pytest.mark.parametrize(("prefix", "says"), [("\ud83d", "lone surrogate"), ("x" * MAX_FRAME_BYTES, "at most")])
async def test_a_text_that_cannot_be_sent_fails_before_it_is_sent(client: EngineClient, prefix: str, says: str) -> None:
    with pytest.raises(ProtocolError, match=says):
        await client.fill(Fill(0, prefix, ""))
    assert (await client.fill(HOLE)).candidates


async def test_after_the_connection_is_closed_every_call_says_so(running: EngineOptions) -> None:
    client = await connect_running(running, "test")
    assert client is not None
    waiting = asyncio.create_task(client.fill(LONG))
    await client.status()
    await client.close()
    assert client.closed.is_set()
    for call in (waiting, client.fill(HOLE), client.status()):
        with pytest.raises(EngineUnavailable, match="connection to the engine was lost"):
            await call


async def test_nobody_at_the_address_is_one_clear_line(running: EngineOptions) -> None:
    nowhere = runtime_paths_of(running.model).directory / "nowhere.sock"
    with pytest.raises(EngineUnavailable, match=f"no engine answers at {nowhere}: No such file"):
        await EngineClient.connect(Address(path=str(nowhere)), "test")


async def test_an_engine_of_another_version_is_one_clear_line(
    running: EngineOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "PROTOCOL_VERSION", PROTOCOL_VERSION + 1)
    with pytest.raises(ProtocolError, match="this engine 1; update the older of the two") as error:
        await connect_running(running, "test")
    assert error.value.code == "version"
