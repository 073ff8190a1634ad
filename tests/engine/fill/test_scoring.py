"""How likely a text is that the hole already has: the embedded family's tiny model, and the real scheduler."""

from pathlib import Path

import numpy as np
import pytest
from scheduler_client import answer
from support.embedded_models import load_embedded

from engine.errors import ModelError
from engine.fill.sampler import Query
from engine.fill.scoring import APART, LIKELIEST
from engine.fill.stream import StreamPass
from engine.models.embedded.model import EmbeddedModel
from engine.models.masked.model import MaskedModel
from engine.protocol.messages import Fill, Progress, Score
from engine.schedule.scheduler import Scheduler

HOLE = Score(
    1, "def area(w, h):", "\n\nprint(area(2, 3))\n", text="\n    return w * h", budget_ms=60_000.0, memory="off"
)


@pytest.fixture(scope="module")
def family(tiny_model: Path) -> EmbeddedModel:
    return load_embedded(tiny_model, "fp32")


async def test_each_token_gets_the_probability_of_a_mask_in_its_place(
    family: EmbeddedModel, scheduler: Scheduler
) -> None:
    candidate = (await answer(scheduler, HOLE)).candidates[0]
    assert candidate.text == HOLE.text
    layout = family.lay_out(HOLE)
    tokens = family.tokenizer.encode(layout.typed + HOLE.text, add_special_tokens=False).ids
    typed = len(tokens) - len(candidate.tokens)
    for at in range(typed, len(tokens)):
        shown = [family.mask if other % APART == at % APART else token for other, token in enumerate(tokens)]
        context = family.new_context()
        append = [*layout.context, layout.anchor]
        query = Query(named=np.array([[tokens[at]]], np.int64))
        (alone,) = family.run([StreamPass(context, append, shown[:-1], [len(append) - 1 + at], query)])
        assert candidate.confidence[at - typed] == pytest.approx(float(alone.predictions.named[0, 0]), abs=2e-3)


async def test_the_cells_are_the_likeliest_tokens_of_each_position(scheduler: Scheduler) -> None:
    seen: list[Progress] = []
    filled = await scheduler.submit(HOLE, seen.append).result
    candidate = filled.candidates[0]
    assert filled.steps == min(APART, len(candidate.tokens))
    for at, probability in enumerate(candidate.confidence):
        guesses = [cell.probability or 0.0 for cell in seen[-1].cells if cell.at == at]
        assert len(guesses) == LIKELIEST
        assert guesses == sorted(guesses, reverse=True)
        assert guesses[0] >= probability - 1e-3


async def test_scoring_writes_nothing_into_the_context_that_others_reuse(scheduler: Scheduler) -> None:
    hole = Fill(1, HOLE.prefix, HOLE.suffix, extent="lines", max_tokens=8, budget_ms=60_000.0, memory="off")
    before = (await answer(scheduler, hole)).candidates[0]
    await answer(scheduler, HOLE)
    assert (await answer(scheduler, hole)).candidates[0] == before


async def test_a_model_that_fills_in_place_says_that_it_cannot(masked: MaskedModel) -> None:
    scheduler = Scheduler(masked)
    await scheduler.start()
    with pytest.raises(ModelError, match="cannot say how likely a text is"):
        await scheduler.submit(HOLE, None).result
    await scheduler.stop()
