"""Fills that mix what is known of the workspace into the model's predictions."""

import attrs
import pytest
from known_line import HOLE, LINE, REST
from scheduler_client import answer
from support.sources import source_paths

from engine.memory.workspace import EngineMemories
from engine.schedule.scheduler import Scheduler


async def test_a_line_of_the_workspace_is_completed(scheduler: Scheduler) -> None:
    filled = await answer(scheduler, HOLE)
    assert filled.candidates[0].text == REST
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
        assert (await answer(scheduler, fill)).candidates[0].text == REST


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


@pytest.mark.parametrize("kept", [len(")"), len(", 4711)"), len("(other_thing, 4711)")])
async def test_within_a_known_line_a_fill_ends_where_the_rest_of_the_line_begins(
    scheduler: Scheduler, kept: int
) -> None:
    hole = attrs.evolve(HOLE, suffix=REST[-kept:] + HOLE.suffix)
    assert (await answer(scheduler, hole)).candidates[0].text == REST[:-kept]
