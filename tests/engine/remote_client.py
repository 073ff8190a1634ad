"""Fills by a remote model, and their errors."""

import pytest

from engine.errors import RemoteError
from engine.protocol.messages import Fill, Filled
from engine.remote.backend import RemoteBackend
from engine.remote.endpoint import endpoint_of

HOLE = Fill(7, prefix="def area(width, height):\n    return ", suffix="\n\nprint(area(2, 3))\n", budget_ms=20_000)


async def start_backend(model: str) -> RemoteBackend:
    endpoint = endpoint_of(model)
    assert endpoint is not None
    backend = RemoteBackend(endpoint)
    await backend.start()
    return backend


async def fill_once(model: str, fill: Fill = HOLE) -> Filled:
    backend = await start_backend(model)
    try:
        return await backend.submit(fill, None).result
    finally:
        await backend.stop()


async def error_line(model: str, fill: Fill = HOLE) -> str:
    """Return the error line of a fill that fails. It is one line and quotes no code."""
    with pytest.raises(RemoteError) as caught:
        await fill_once(model, fill)
    line = str(caught.value)
    assert "\n" not in line
    assert "area" not in line
    return line
