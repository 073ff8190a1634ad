"""A memory that knows an odd line, and a scheduler that fills with it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from known_line import memories_of

from engine.memory.workspace import EngineMemories
from engine.models.embedded.model import EmbeddedModel
from engine.schedule.scheduler import Scheduler


@pytest.fixture
def memories(embedded: EmbeddedModel) -> EngineMemories:
    return memories_of(embedded)


@pytest_asyncio.fixture
async def scheduler(embedded: EmbeddedModel, memories: EngineMemories) -> AsyncIterator[Scheduler]:
    running = Scheduler(embedded, memories=memories)
    await running.start()
    yield running
    await running.stop()
