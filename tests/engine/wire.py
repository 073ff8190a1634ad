"""A connection to the engine without the client's good manners, for the tests of the engine's side."""

import asyncio
import struct
from contextlib import suppress

from engine.client.address import runtime_paths_of
from engine.client.launcher import EngineOptions
from engine.client.lock import read_record
from engine.protocol.framing import pack, read_frame
from engine.protocol.messages import PROTOCOL_VERSION, Failed, Fill, Hello, Message, Status, StatusRequest, Welcome

HOLE = Fill(1, prefix="def area(width, height):\n    return ", suffix="\n", path="shapes.py", max_tokens=8)
LONG = Fill(1, prefix="x = ", suffix="", extent="lines", rule="left-to-right", max_tokens=2048, budget_ms=600_000)


class Wire:
    """A raw connection: says what it is told to say, and waits at most 30 s for an answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, options: EngineOptions) -> "Wire":
        record = read_record(runtime_paths_of(options.model).lock)
        assert record is not None
        return cls(*await asyncio.open_unix_connection(record.socket))

    @classmethod
    async def greeted(cls, options: EngineOptions) -> "Wire":
        wire = await cls.open(options)
        wire.send(Hello(PROTOCOL_VERSION, "test"))
        assert isinstance(await wire.answer(), Welcome)
        return wire

    def send(self, *messages: Message) -> None:
        self.send_bytes(b"".join(pack(message) for message in messages))

    def send_bytes(self, data: bytes) -> None:
        self._writer.write(data)

    async def push_without_end(self, data: bytes) -> None:
        """Send again and again, as fast as it is taken; what comes back stays unread."""
        while True:
            self.send_bytes(data)
            await self._writer.drain()

    async def answer(self) -> Message | None:
        async with asyncio.timeout(30):
            return await read_frame(self._reader)

    async def failed(self) -> Failed:
        answer = await self.answer()
        assert isinstance(answer, Failed)
        return answer

    async def refusals(self) -> int:
        """Read to the end and count what was Failed."""
        count = 0
        with suppress(OSError):  # the engine hung up with some of our bytes unread
            while (answer := await self.answer()) is not None:
                count += isinstance(answer, Failed)
        return count

    async def is_over(self) -> bool:
        return await self.answer() is None

    async def status(self) -> Status:
        self.send(StatusRequest())
        while not isinstance(answer := await self.answer(), Status):
            assert answer is not None
        return answer

    def say_no_more(self) -> None:
        self._writer.write_eof()

    def close(self) -> None:
        self._writer.close()


def frame(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body
