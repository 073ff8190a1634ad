"""A client that sends any bytes to the engine, for the tests of the server."""

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


class RawClient:
    """A raw connection. It waits at most 30 s for an answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, options: EngineOptions) -> "RawClient":
        record = read_record(runtime_paths_of(options.model).lock)
        assert record is not None
        return cls(*await asyncio.open_unix_connection(record.socket))

    @classmethod
    async def greeted(cls, options: EngineOptions) -> "RawClient":
        client = await cls.open(options)
        client.send(Hello(PROTOCOL_VERSION, "test"))
        assert isinstance(await client.answer(), Welcome)
        return client

    def send(self, *messages: Message) -> None:
        self.send_bytes(b"".join(pack(message) for message in messages))

    def send_bytes(self, data: bytes) -> None:
        self._writer.write(data)

    async def send_forever(self, data: bytes) -> None:
        """Send `data` again and again as fast as possible, and read nothing."""
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
        """Read to the end of the connection and return the number of Failed messages."""
        count = 0
        with suppress(OSError):  # the engine closed the connection with some of our bytes unread
            while (answer := await self.answer()) is not None:
                count += isinstance(answer, Failed)
        return count

    async def has_ended(self) -> bool:
        return await self.answer() is None

    async def status(self) -> Status:
        self.send(StatusRequest())
        while not isinstance(answer := await self.answer(), Status):
            assert answer is not None
        return answer

    def end_sending(self) -> None:
        self._writer.write_eof()

    def close(self) -> None:
        self._writer.close()


def frame(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body
