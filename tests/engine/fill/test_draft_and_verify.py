"""Draft and verify writes what left to right writes, in fewer passes where canvas or memory guess well."""

from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from known_line import HOLE, REST, memories_of
from reciting_model import RecitingModel, begun
from support.embedded_models import load_embedded
from support.fill_tasks import run_to_end
from support.sources import source_paths

from engine.fill.draft_planner import Draft, DraftPlan, DraftPlanner
from engine.fill.interface import Bounds, Filling, FillMemory, FillStrategy, FillTask
from engine.fill.sampler import Sampler
from engine.memory.workspace import EngineMemories
from engine.models.embedded.model import EmbeddedModel
from engine.protocol.messages import Fill, RuleName

TEXT = "for part in parts:\n    total += part.width\nreturn total"
ROWS_LIKE_PASSES = {1: 1.0, 16: 16.0}


class FixedWidth(DraftPlanner):
    """Reads whole drafts, with a canvas of a fixed width after each."""

    def __init__(self, masks: int) -> None:
        super().__init__()
        self._fixed = masks

    def plan(self, drafts: Sequence[Draft], room: int) -> DraftPlan:
        draft = max(drafts, key=lambda each: len(each.tokens)).cut(room)
        return DraftPlan(draft, min(self._fixed, room - len(draft.tokens)))


@pytest.fixture(scope="module", params=["mark", "text"])
def model(request: pytest.FixtureRequest, tiny_model: Path) -> EmbeddedModel:
    found = load_embedded(tiny_model, "numpy")
    found.card = attrs.evolve(found.card, anchor=request.param)
    return found


@pytest.fixture(scope="module")
def memories(model: EmbeddedModel) -> EngineMemories:
    return memories_of(model)


def filled(
    model: EmbeddedModel, fill: Fill, rule: RuleName, memory: FillMemory | None, sampler: Sampler | None = None
) -> Filling:
    sampler = sampler or Sampler()
    draft = () if sampler.branch is None else sampler.branch.tokens
    bounds, layout = Bounds(fill.extent, fill.max_tokens), model.lay_out(fill)
    task = FillTask(model.new_context(), layout, bounds, sampler, FillStrategy(rule), memory, draft)
    return run_to_end(model, model.start_fill(task))


def holes() -> list[Fill]:
    """Return holes that begin in words, after marks and at the start of lines."""
    text = source_paths()[5].read_text()
    return [
        attrs.evolve(HOLE, prefix=text[:cursor], suffix=text[cursor:], extent="lines", max_tokens=16)
        for cursor in range(400, 1800, 207)
    ]


@pytest.mark.parametrize("width", [*range(9), 12, 16])
@pytest.mark.parametrize("source", ["memory", "nothing"])
def test_the_answer_is_that_of_left_to_right_with_a_canvas_of_any_width(
    model: EmbeddedModel, memories: EngineMemories, source: str, width: int
) -> None:
    model.drafts = FixedWidth(width)
    for hole in (HOLE, *holes()):
        memory = memories.for_fill(hole, model.lay_out(hole)) if source == "memory" else None
        left = filled(model, hole, "left-to-right", memory)
        verified = filled(model, hole, "verify", memory)
        assert verified.committed().tokens == left.committed().tokens
        assert verified.answer().confidence == pytest.approx(left.answer().confidence, abs=1e-3)
        assert len(verified.committed().sources) == len(left.committed().sources)
        assert verified.steps <= left.steps


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_answer_is_that_of_left_to_right_while_the_planner_decides(
    model: EmbeddedModel, memories: EngineMemories, temperature: float
) -> None:
    model.drafts = DraftPlanner(8)
    for hole in (HOLE, *holes()):
        memory, sampler = memories.for_fill(hole, model.lay_out(hole)), Sampler(temperature, seed=3)
        left = filled(model, hole, "left-to-right", memory, sampler)
        assert filled(model, hole, "verify", memory, sampler).committed().tokens == left.committed().tokens


def test_a_branch_is_what_left_to_right_writes_after_the_other_token(
    model: EmbeddedModel, memories: EngineMemories
) -> None:
    model.drafts = DraftPlanner(8)
    for hole in holes():
        memory = memories.for_fill(hole, model.lay_out(hole))
        greedy = filled(model, hole, "verify", memory, Sampler(others=2))
        left = filled(model, hole, "left-to-right", memory, Sampler(others=2))
        branches, others = greedy.branches(3), left.branches(3)
        assert [branch.tokens for branch in branches] == [other.tokens for other in others]
        assert [branch.probability for branch in branches] == pytest.approx(
            [other.probability for other in others], rel=1e-4
        )
        assert len(branches) > 1
        for branch in branches:
            sampler = Sampler(others=2, branch=branch)
            one = filled(model, hole, "verify", memory, sampler)
            other = filled(model, hole, "left-to-right", memory, sampler)
            assert one.committed().tokens == other.committed().tokens
            assert one.committed().tokens[: len(branch.tokens)] in (branch.tokens, branch.tokens[:-1])
            assert one.answer().text != greedy.answer().text


def test_what_the_memory_knows_is_drafted_before_the_first_pass(model: EmbeddedModel, memories: EngineMemories) -> None:
    model.drafts = DraftPlanner(8)
    typed = HOLE.prefix + REST[: REST.index("(") + 1]
    for hole in (attrs.evolve(HOLE, prefix=typed), attrs.evolve(HOLE, prefix=typed, extent="lines", max_tokens=15)):
        verified = filled(model, hole, "verify", memories.for_fill(hole, model.lay_out(hole)))
        assert verified.answer().text.startswith(REST[REST.index("(") + 1 :])
        assert verified.steps <= 2


def test_passes_are_as_few_as_a_canvas_sees_far() -> None:
    passes = []
    for sight in (0, 1, 4, 16):
        filling = run_to_end(RecitingModel(TEXT, sight), begun(RecitingModel(TEXT, sight), "verify"))
        assert filling.answer().text == TEXT
        passes.append(filling.steps)
    assert passes[0] > passes[1] > passes[2] > passes[3]
    assert passes[0] <= len(TEXT) + 1
    assert passes[3] * 4 < len(TEXT)


def test_no_row_is_spent_on_a_canvas_where_a_row_costs_a_pass() -> None:
    model = RecitingModel(TEXT, 16)
    model.drafts.time(ROWS_LIKE_PASSES)
    filling = begun(model, "verify")
    while filling.finish is None:
        item = filling.next_pass()
        assert item.rows <= 2, "the prefix's token and <middle> at first, then the anchor"
        (result,) = model.run([item])
        filling.absorb(result, 1 << 20)
    assert filling.answer().text == TEXT


@pytest.mark.parametrize("rule", ["threshold", "entropy"])
def test_denoising_takes_few_steps_of_few_rows_where_its_canvas_is_sure(rule: RuleName) -> None:
    model = RecitingModel(TEXT, 16)
    filling, rows = begun(model, rule), []
    while filling.finish is None:
        item = filling.next_pass()
        rows.append(item.rows)
        (result,) = model.run([item])
        filling.absorb(result, 1 << 20)
    assert filling.answer().text == TEXT
    assert len(rows) * 3 < len(TEXT)
    assert max(rows) <= 18
