"""Reading rests while the user types."""

import time

import pytest

from lsp_server.workspace import learner as pace_module
from lsp_server.workspace.learner import Pace


async def rested(pace: Pace, worked_s: float) -> float:
    started = time.monotonic()
    await pace.rest(worked_s)
    return time.monotonic() - started


async def test_reading_takes_a_tenth_of_the_time_while_the_user_types() -> None:
    pace = Pace()
    pace.note_typing()
    assert pace.is_gentle
    assert await rested(pace, 0.01) >= 0.089


async def test_reading_does_not_rest_when_nobody_types(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = Pace()
    assert not pace.is_gentle
    assert await rested(pace, 5.0) < 1.0
    monkeypatch.setattr(pace_module, "TYPING_S", 0.0)
    pace.note_typing()
    assert not pace.is_gentle
