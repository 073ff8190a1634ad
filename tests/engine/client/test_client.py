"""The client with a real engine: many fills at once, cancelled fills, and clear errors."""

import asyncio
from collections.abc import AsyncIterator

import attrs
import pytest
from raw_client import HOLE, LONG

from engine.client import connection as client_module
from engine.client.address import Address, runtime_paths_of
from engine.client.connection import EngineClient, EngineFailure
from engine.client.launcher import EngineOptions, connect_running
from engine.errors import EngineUnavailable, ProtocolError
from engine.protocol.framing import MAX_FRAME_BYTES
from engine.protocol.memory_messages import MOST_REQUESTS, Forget, Learn
from engine.protocol.messages import PROTOCOL_VERSION, Fill, Progress, Status


@pytest.fixture
async def client(running: EngineOptions) -> AsyncIterator[EngineClient]:
    """A client of the shared engine, once the engine has dropped the fills of the test before."""
    client = await connect_running(running, "test")
    assert client is not None
    await status_when_idle(client)
    yield client
    await client.close()


async def status_when_idle(client: EngineClient) -> Status:
    """Wait until the engine has no fill, active or waiting, and return its status then."""
    async with asyncio.timeout(30):
        while (status := await client.status()).active or status.waiting:
            pass
    return status


async def test_the_welcome_names_the_model(client: EngineClient) -> None:
    assert client.welcome.protocol == PROTOCOL_VERSION
    assert client.welcome.model.canvas_tokens > 0


async def test_many_fills_run_at_once_and_each_gets_its_own_answer(client: EngineClient) -> None:
    holes = [Fill(0, f"x{number} = ", "", max_tokens=4) for number in range(12)]
    answers = await asyncio.gather(*(client.fill(hole) for hole in holes))
    assert len({answer.id for answer in answers}) == 12
    assert all(answer.candidates for answer in answers)


async def test_more_files_than_the_engine_takes_at_once_are_all_learned(client: EngineClient) -> None:
    filling = asyncio.create_task(client.fill(attrs.evolve(LONG, max_tokens=64)))
    files = [Learn("/folder", f"{number}.py", f"x = {number}\n", "python") for number in range(2 * MOST_REQUESTS)]
    await asyncio.gather(*map(client.learn, files))
    assert (await client.memory_status("/folder")).files == len(files)
    await client.forget(Forget("/folder"))
    await filling


async def test_progress_goes_to_the_fill_that_asked_for_it(client: EngineClient) -> None:
    steps: list[Progress] = []
    answer = await client.fill(HOLE, steps.append)
    assert steps
    assert {step.id for step in steps} == {answer.id}


async def test_an_error_in_a_progress_callback_ends_only_its_own_fill(client: EngineClient) -> None:
    def fail(_: Progress) -> None:
        raise ZeroDivisionError

    failing = asyncio.create_task(client.fill(HOLE, fail))
    assert (await client.fill(HOLE)).candidates
    with pytest.raises(ZeroDivisionError):
        await failing


async def test_cancelling_the_task_cancels_the_fill_in_the_engine(client: EngineClient) -> None:
    before = await client.status()
    filling = asyncio.create_task(client.fill(LONG))
    async with asyncio.timeout(30):
        while not (await client.status()).active:
            pass
    filling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await filling
    after = await status_when_idle(client)
    assert (after.cancelled - before.cancelled, after.fills - before.fills) == (1, 0)
    assert (await client.fill(HOLE)).candidates


async def test_a_refused_fill_raises_the_engines_reason(client: EngineClient) -> None:
    with pytest.raises(EngineFailure, match="max_tokens is 0; it can be 1 to 2048") as failure:
        await client.fill(Fill(0, "", "", max_tokens=0))
    assert failure.value.code == "bad-value"


@pytest.mark.parametrize(("prefix", "says"), [("\ud83d", "lone surrogate"), ("x" * MAX_FRAME_BYTES, "at most")])
async def test_a_text_that_cannot_be_sent_is_an_error_at_once(client: EngineClient, prefix: str, says: str) -> None:
    with pytest.raises(ProtocolError, match=says):
        await client.fill(Fill(0, prefix, ""))
    assert (await client.fill(HOLE)).candidates


async def test_every_call_on_a_closed_connection_says_that_it_is_lost(running: EngineOptions) -> None:
    client = await connect_running(running, "test")
    assert client is not None
    waiting = asyncio.create_task(client.fill(LONG))
    await client.status()
    await client.close()
    assert client.closed.is_set()
    for call in (waiting, client.fill(HOLE), client.status()):
        with pytest.raises(EngineUnavailable, match="connection to the engine was lost"):
            await call


async def test_an_address_without_an_engine_is_one_clear_line(running: EngineOptions) -> None:
    nowhere = runtime_paths_of(running.model).directory / "nowhere.sock"
    with pytest.raises(EngineUnavailable, match=f"no engine answers at {nowhere}: No such file"):
        await EngineClient.connect(Address(path=str(nowhere)), "test")


async def test_an_engine_of_another_version_is_one_clear_line(
    running: EngineOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "PROTOCOL_VERSION", PROTOCOL_VERSION + 1)
    with pytest.raises(ProtocolError, match=f"this engine {PROTOCOL_VERSION}; update the older of the two") as error:
        await connect_running(running, "test")
    assert error.value.code == "version"
