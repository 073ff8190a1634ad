"""Fills by a remote model, and what they fail with."""

import pytest

from engine.errors import RemoteError
from engine.protocol.messages import Fill, Filled
from engine.remote.backend import RemoteBackend
from engine.remote.endpoint import endpoint_of

HOLE = Fill(7, prefix="def area(width, height):\n    return ", suffix="\n\nprint(area(2, 3))\n", budget_ms=20_000)


async def opened(model: str) -> RemoteBackend:
    endpoint = endpoint_of(model)
    assert endpoint is not None
    scheduler = RemoteBackend(endpoint)
    await scheduler.start()
    return scheduler


async def fill_once(model: str, fill: Fill = HOLE) -> Filled:
    scheduler = await opened(model)
    try:
        return await scheduler.submit(fill, None).result
    finally:
        await scheduler.stop()


async def complaint(model: str, fill: Fill = HOLE) -> str:
    """Return the one line with which a fill fails; it holds nothing of the code."""
    with pytest.raises(RemoteError) as caught:
        await fill_once(model, fill)
    line = str(caught.value)
    assert "\n" not in line
    assert "area" not in line
    return line
