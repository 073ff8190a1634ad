"""The frames about the memory of workspaces, sent to a real engine: valid, foreign, oversized and too many."""

from collections.abc import AsyncIterator

import msgpack
import pytest
from raw_client import HOLE, LONG, RawClient, frame

from engine.client.launcher import EngineOptions, connect_running
from engine.protocol.memory_messages import Forget, Learn, MemoryStatus, MemoryStatusRequest, MemoryUpdated
from engine.protocol.messages import Failed, Fill, Filled, Message


@pytest.fixture
async def client(running: EngineOptions) -> AsyncIterator[RawClient]:
    client = await RawClient.greeted(running)
    yield client
    client.close()


async def test_each_request_is_answered_with_its_id(client: RawClient) -> None:
    client.send(Learn("/w", "a.py", "a = 1\n", "python", 1))
    assert await client.answer() == MemoryUpdated(1)
    client.send(Forget("/w", ["a.py"], 2))
    assert await client.answer() == MemoryUpdated(2)
    client.send(MemoryStatusRequest("/w", 3))
    status = await client.answer()
    assert isinstance(status, MemoryStatus)
    assert (status.workspace, status.id) == ("/w", 3)


async def test_a_client_waits_for_its_own_answers(running: EngineOptions) -> None:
    client = await connect_running(running, "test")
    assert client is not None
    await client.learn(Learn("/w", "a.py", "a = 1\n"))
    await client.forget(Forget("/w"))
    assert await client.memory_status("/w") == MemoryStatus("/w", 0, 0, 0, id=3)
    with pytest.raises(Exception, match="text has 200001 characters; at most 200000 are allowed"):
        await client.learn(Learn("/w", "a.py", "x" * 200_001))
    await client.learn(Learn("/w", "a.py", "x" * 200_000))
    await client.close()


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (Learn("/w", "a.py", "x" * 200_001, id=1), "text has 200001 characters; at most 200000 are allowed"),
        (Learn("/w", "p" * 4097, "", id=1), "path has 4097 characters; at most 4096 are allowed"),
        (Learn("w" * 4097, "a.py", "", id=1), "workspace has 4097 characters; at most 4096 are allowed"),
        (Learn("/w", "a.py", "", "l" * 65, id=1), "language has 65 characters; at most 64 are allowed"),
        (Learn("", "a.py", "", id=1), "workspace is empty"),
        (Learn("/w", "", "", id=1), "path is empty"),
        (Forget("/w", ["a"] * 10_001, id=1), "there are 10001 paths; at most 10000 are allowed"),
        (Forget("/w", ["a", "p" * 4097], id=1), "a path has 4097 characters; at most 4096 are allowed"),
        (Forget("/w", keep=["a"] * 20_001, id=1), "20001 paths are to be kept; at most 20000 are allowed"),
        (Forget("", id=1), "workspace is empty"),
        (MemoryStatusRequest("w" * 4097, id=1), "workspace has 4097 characters"),
        (Fill(1, "", "", workspace="w" * 4097), "workspace has 4097 characters"),
    ],
)
async def test_a_value_outside_its_limits_gets_one_failed_line_and_others_are_served(
    running: EngineOptions, client: RawClient, message: Message, says: str
) -> None:
    other = await RawClient.greeted(running)
    client.send(message)
    other.send(HOLE)
    failed = await client.failed()
    assert (failed.code, failed.id) == ("bad-value", 1)
    assert says in failed.message
    assert "\n" not in failed.message
    assert isinstance(await other.answer(), Filled)
    client.send(Learn("/w", "a.py", "a = 1\n", id=2))
    assert await client.answer() == MemoryUpdated(2)
    other.close()


async def test_a_negative_id_is_refused(client: RawClient) -> None:
    client.send(Learn("/w", "a.py", "", id=-1))
    assert "id is -1; it can be 0 to" in (await client.failed()).message


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "learn", "workspace": "/w", "path": "a.py"},
        {"type": "learn", "workspace": "/w", "path": "a.py", "text": b"bytes"},
        {"type": "forget", "workspace": "/w", "paths": [1]},
        {"type": "memory-status-request"},
        {"type": "fill", "id": 1, "prefix": "", "suffix": "", "memory": "disk"},
    ],
)
async def test_a_malformed_request_costs_no_connection(client: RawClient, fields: dict[str, object]) -> None:
    client.send_bytes(frame(msgpack.packb(fields)))
    assert (await client.failed()).code == "malformed"
    client.send(HOLE)
    assert isinstance(await client.answer(), Filled)


@pytest.mark.parametrize("message", [MemoryUpdated(1), MemoryStatus("/w", 1, 1, 1)])
async def test_an_answer_is_no_request(client: RawClient, message: Message) -> None:
    client.send(message)
    assert (await client.failed()).code == "unexpected"


async def test_a_client_can_have_64_files_waiting_and_the_next_is_refused(
    running: EngineOptions, client: RawClient
) -> None:
    client.send(LONG, *(Learn("/w", f"{number}.py", "text", id=number + 2) for number in range(65)))
    failed = await client.failed()
    assert (failed.code, failed.id) == ("busy", 66)
    other = await RawClient.greeted(running)
    other.send(HOLE)
    assert isinstance(await other.answer(), Filled)
    other.close()


async def test_an_id_cannot_be_used_twice_at_once(client: RawClient) -> None:
    client.send(LONG, Learn("/w", "a.py", "text", id=7), Learn("/w", "b.py", "text", id=7))
    failed = await client.failed()
    assert isinstance(failed, Failed)
    assert "id 7 is of a request that still runs" in failed.message
