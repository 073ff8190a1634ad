"""Fills that mix what is known of the workspace into the model's predictions."""

from collections.abc import AsyncIterator

import attrs
import numpy as np
import pytest
import pytest_asyncio
from scheduler_client import answer
from sources import source_paths

from engine.memory.engine_memories import EngineMemories
from engine.memory.followers import RUNS
from engine.memory.gate import HIDDEN, MemoryGate
from engine.memory.row_memory import SCOPES
from engine.memory.row_statistics import FEATURES
from engine.models.embedded.model import EmbeddedModel
from engine.protocol.messages import Fill
from engine.schedule.scheduler import Scheduler

LINE = "    destination_of_everything = unlikely_name(other_thing, 4711)\n"
HOLE = Fill(
    id=1,
    prefix="def work(other_thing):\n    destination_of_everything = unlik",
    suffix="\n    return 1\n",
    path="a/b.py",
    max_tokens=32,
    budget_ms=6e5,
    rule="left-to-right",
    workspace="home",
)


def believing_gate() -> MemoryGate:
    """Return a gate that believes the memory nearly always, and the longest run most."""
    return MemoryGate(
        hidden=np.zeros((FEATURES, HIDDEN), np.float32),
        hidden_bias=np.zeros(HIDDEN, np.float32),
        output=np.zeros((HIDDEN, 1 + SCOPES), np.float32),
        output_bias=np.array([0.0, 3.0, 4.0, 3.0], np.float32),
        back_off=np.full((SCOPES, len(RUNS), 2), 0.01, np.float32),
    )


@pytest.fixture
def memories(embedded: EmbeddedModel) -> EngineMemories:
    found = EngineMemories(embedded, embedded.tokenizer, believing_gate(), 1 << 24)
    for path in source_paths()[:10]:
        found.learn("home", path.name, np.array(found.tokenize(path.read_text()), np.int32))
    found.learn("home", "known.py", np.array(found.tokenize("def f(other_thing):\n" + LINE * 3), np.int32))
    return found


@pytest_asyncio.fixture
async def scheduler(embedded: EmbeddedModel, memories: EngineMemories) -> AsyncIterator[Scheduler]:
    running = Scheduler(embedded, memories=memories)
    await running.start()
    yield running
    await running.stop()


async def test_a_line_of_the_workspace_is_completed(scheduler: Scheduler) -> None:
    filled = await answer(scheduler, HOLE)
    assert filled.candidates[0].text == "ely_name(other_thing, 4711)"
    assert filled.candidates[0].finish == "complete"


@pytest.mark.parametrize(
    "change",
    [{"workspace": "elsewhere"}, {"workspace": ""}, {"memory": "file"}, {"memory": "off"}, {"path": "known.py"}],
)
async def test_nothing_comes_from_where_it_may_not(scheduler: Scheduler, change: dict[str, str]) -> None:
    filled = await answer(scheduler, attrs.evolve(HOLE, **change))  # type: ignore[arg-type]
    assert "4711" not in filled.candidates[0].text


async def test_a_forgotten_file_gives_no_answer(scheduler: Scheduler, memories: EngineMemories) -> None:
    memories.forget("home", ["known.py"])
    assert "4711" not in (await answer(scheduler, HOLE)).candidates[0].text


async def test_the_edited_file_is_known_as_the_editor_has_it(scheduler: Scheduler) -> None:
    hole = attrs.evolve(HOLE, memory="file")
    above = attrs.evolve(hole, prefix=LINE + hole.prefix)
    below = attrs.evolve(hole, suffix="\n" + LINE)
    for fill in (above, below):
        assert (await answer(scheduler, fill)).candidates[0].text == "ely_name(other_thing, 4711)"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
async def test_draft_and_verify_with_a_memory_answers_what_left_to_right_answers(
    scheduler: Scheduler, temperature: float
) -> None:
    text = source_paths()[5].read_text()
    for cursor in range(400, 2800, 240):
        hole = attrs.evolve(
            HOLE,
            prefix=text[:cursor],
            suffix=text[cursor:],
            extent="lines",
            max_tokens=16,
            candidates=2,
            temperature=temperature,
        )
        left = await answer(scheduler, hole)
        verified = await answer(scheduler, attrs.evolve(hole, rule="verify"))
        assert [each.tokens for each in verified.candidates] == [each.tokens for each in left.candidates]
        assert verified.steps <= left.steps


async def test_a_known_line_takes_few_passes(scheduler: Scheduler) -> None:
    left = await answer(scheduler, HOLE)
    verified = await answer(scheduler, attrs.evolve(HOLE, rule="verify"))
    assert verified.candidates[0].text == left.candidates[0].text
    assert verified.steps * 2 < left.steps
