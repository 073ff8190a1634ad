"""Answers that cannot be packed into a frame: the client gets one error, the log one line, and the session lives on."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from raw_client import RawClient

from engine.models.embedded.model import EmbeddedModel
from engine.protocol.messages import PROTOCOL_VERSION, Fill, Filled, Hello, HoleRequest, Progress, Welcome
from engine.schedule.fill_queue import ScheduledTicket
from engine.schedule.scheduler import Scheduler
from engine.server.server import Server

CODE = "s3cr3t_marker_of_the_user = "
ODD: dict[str, dict[str, Any]] = {
    "a number of NumPy": {"steps": np.int64(3)},
    "an object": {"rule": object()},
    "a number of 65 bits": {"steps": 1 << 65},
    "half a character": {"rule": "\ud800"},
    "too many bytes": {"rule": "x" * (5 << 20)},
}
"""Fields of answers, by the path of the fill."""


class OddScheduler(Scheduler):
    """The engine's own scheduler; it changes the answer, or the progress, of the fills whose path says how."""

    def submit(
        self, request: HoleRequest, on_progress: Callable[[Progress], None] | None, owner: int = 0
    ) -> ScheduledTicket:
        def send_odd(progress: Progress) -> None:
            assert on_progress is not None
            step: Any = np.int64(progress.step)
            on_progress(attrs.evolve(progress, step=step))

        ticket = super().submit(request, send_odd if on_progress and request.path == "progress" else on_progress, owner)
        if request.path not in ODD:
            return ticket
        return attrs.evolve(ticket, result=asyncio.ensure_future(self._changed(ticket.result, ODD[request.path])))

    async def _changed(self, result: asyncio.Future[Filled], fields: dict[str, Any]) -> Filled:
        return attrs.evolve(await result, **fields)


@pytest.fixture
async def client(tmp_path: Path, embedded: EmbeddedModel) -> AsyncIterator[RawClient]:
    """A client of the engine's server over a real socket."""
    scheduler = OddScheduler(embedded)
    await scheduler.start()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "s"))
    listening.listen()
    server = Server(scheduler, Welcome(PROTOCOL_VERSION, "test", os.getpid(), embedded.info), "", 0)
    serving = asyncio.create_task(server.run(listening))
    client = RawClient(*await asyncio.open_unix_connection(str(tmp_path / "s")))
    client.send(Hello(PROTOCOL_VERSION, "test"))
    assert isinstance(await client.answer(), Welcome)
    yield client
    client.close()
    server.stop("the test is over")
    await serving
    await server.close()
    await scheduler.stop()


@pytest.mark.parametrize("path", list(ODD))
async def test_an_answer_that_cannot_be_packed_is_one_error_and_the_session_goes_on(
    client: RawClient, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    client.send(Fill(1, CODE, "", path=path, max_tokens=8))
    failed = await client.failed()
    assert (failed.code, failed.id) == ("internal", 1)
    assert "the engine has an answer that it cannot send" in failed.message
    (record,) = [one for one in caplog.records if one.levelname == "ERROR"]
    assert "an answer (Filled) cannot be packed" in record.getMessage()
    assert CODE[:6] not in caplog.text
    assert record.exc_info is None
    client.send(Fill(1, CODE, "", max_tokens=8))
    assert isinstance(await client.answer(), Filled)


async def test_progress_that_cannot_be_packed_leaves_its_fill_its_own_answer(client: RawClient) -> None:
    client.send(Fill(1, CODE, "", path="progress", max_tokens=8, progress=True))
    assert isinstance(await client.answer(), Filled)
    client.send(Fill(2, CODE, "", max_tokens=8))
    answer = await client.answer()
    assert isinstance(answer, Filled)
    assert answer.id == 2
