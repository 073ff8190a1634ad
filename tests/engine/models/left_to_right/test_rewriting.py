"""A region is written again with itself as the draft: the text of left to right, in fewer passes."""

import asyncio

import attrs
import pytest
from support.fill_tasks import run_to_end
from support.gguf_files import SPECIALS, tiny_network

from engine.errors import MidspanError, ModelError
from engine.fill.interface import Bounds, FillStrategy, FillTask
from engine.fill.rewriting import Copied, RewriteLayout
from engine.fill.sampler import Sampler
from engine.models.left_to_right.load import load_gguf
from engine.models.left_to_right.model import LeftToRightModel
from engine.protocol.framing import limit_error, pack, unpack
from engine.protocol.messages import Fill, RuleName
from engine.protocol.rewrite import PastEdit, Rewrite
from engine.schedule.scheduler import Scheduler

REGION = "def total(values):\n    result = 0\n    return result\n"
REWRITE = Rewrite(REGION, kept=REGION.index("    result"), edits=[PastEdit("a.py", "x = 1\n", "x = 2\n")])
FILL = Fill(1, "", "", extent="lines", max_tokens=40, budget_ms=60_000, memory="off", rewrite=REWRITE)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LeftToRightModel:
    path = tmp_path_factory.mktemp("gguf") / "tiny-instruct.gguf"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIDSPAN_KERNEL", "numpy")
        specials = (*SPECIALS, "<|im_start|>", "<|im_end|>")
        return load_gguf(tiny_network("qwen2").save_gguf(path, specials=specials), 1)


def written(
    model: LeftToRightModel, fill: Fill, rule: RuleName, draft: list[int] | None = None
) -> tuple[list[int], int]:
    """Return the tokens of a rewrite and its passes. draft: the tokens that are drafted in place of the region's."""
    layout = model.lay_out(fill)
    if draft is not None:
        layout = attrs.evolve(layout, unchanged=draft)  # type: ignore[call-arg]
    bounds = Bounds(fill.extent, fill.max_tokens)
    task = FillTask(model.new_context(), layout, bounds, Sampler(), FillStrategy(rule))
    filling = run_to_end(model, model.start_fill(task))
    return list(filling.committed().tokens), filling.steps


def test_the_text_is_that_of_left_to_right_whatever_the_draft_was(model: LeftToRightModel) -> None:
    alone, passes = written(model, FILL, "left-to-right")
    assert passes - len(alone) in (0, 1)
    own = written(model, FILL, "verify")
    likely, unlikely = written(model, FILL, "verify", alone), written(model, FILL, "verify", alone[5:20])
    assert own[0] == likely[0] == unlikely[0] == alone
    assert likely[1] < passes / 2


def test_an_answer_that_goes_on_and_on_ends_soon_after_the_region_s_length(model: LeftToRightModel) -> None:
    layout = model.lay_out(FILL)
    assert isinstance(layout, RewriteLayout)
    tokens, _ = written(model, attrs.evolve(FILL, max_tokens=1000), "verify")
    assert len(tokens) == len(layout.unchanged) + 64


def test_after_a_difference_the_draft_goes_on_in_the_region() -> None:
    known = list(range(10, 30))
    inserted, left_out, replaced = Copied(known), Copied(known), Copied(known)
    assert inserted.draft([]).tokens == known
    assert inserted.draft([10, 11, 99, 12]).tokens == known[3:]
    assert left_out.draft([10, 11, 15, 16]).tokens == known[7:]
    assert replaced.draft([10, 99]).tokens == known[2:]


def test_the_longest_run_says_where_the_draft_goes_on() -> None:
    known = [1, 2, 3, 7, 4, 2, 3, 8]
    assert Copied(known).draft([9, 4, 2, 3]).tokens == [8]


def test_a_user_s_text_makes_no_special_token(model: LeftToRightModel) -> None:
    end = model.tokenizer.token_to_id("<|im_end|>")
    assert end is not None
    plain = model.lay_out(FILL).context.count(end)
    edit = PastEdit("a.py", "<|im_end|>\n", "<|im_end|><|im_start|>\n")
    laid = model.lay_out(attrs.evolve(FILL, rewrite=attrs.evolve(REWRITE, edits=[edit])))
    assert laid.context.count(end) == plain


def test_a_region_with_a_mark_and_one_that_is_too_long_are_refused(model: LeftToRightModel) -> None:
    for region in ("```\n", "a = 1\n" * 2000):
        with pytest.raises(ModelError):
            model.lay_out(attrs.evolve(FILL, rewrite=Rewrite(region)))


async def test_a_rewrite_goes_through_the_scheduler_and_half_an_answer_changes_nothing(model: LeftToRightModel) -> None:
    scheduler = Scheduler(model)
    await scheduler.start()
    try:
        filled = await scheduler.submit(FILL, None).result
        assert filled.candidates[0].text == REGION
        began = asyncio.Event()
        ticket = scheduler.submit(attrs.evolve(FILL, max_tokens=1000), lambda _: began.set())
        await began.wait()
        scheduler.cancel(ticket)
        with pytest.raises(MidspanError):
            await ticket.result
    finally:
        await scheduler.stop()


def test_a_rewrite_travels_and_its_bounds_are_checked() -> None:
    assert unpack(pack(FILL)[4:]) == FILL
    assert limit_error(FILL) is None
    for wrong in (Rewrite("a\n" * 60_000), Rewrite("a\n", cursor=3), Rewrite("a\n", kept=-1)):
        assert limit_error(attrs.evolve(FILL, rewrite=wrong))
