"""Drafting through the scheduler: with any drafter the answer is what the verifying model writes alone."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
from scheduler_client import answer
from support.drafters import Fool, Prophet, endless, fim_family, run_through, with_drafter
from support.fill_tasks import started
from support.fim_checkpoints import SPECIAL_TOKENS, FimCheckpoint
from support.masked_checkpoints import save_checkpoint

from engine.errors import ModelError
from engine.models.left_to_right.drafters import StreamDrafter
from engine.models.left_to_right.torch_model import QwenFimModel
from engine.models.stock.token_bytes import load_tokenizer
from engine.protocol.messages import Extent, Fill, Filled, Progress, RuleName, plain_all
from engine.schedule.backend import CancelledFill
from engine.schedule.scheduler import Scheduler

HOLE = Fill(
    id=1,
    prefix="def area(width, height):\n    total = ",
    suffix="\n    return total\n",
    path="shapes/area.py",
    extent="lines",
    max_tokens=24,
    budget_ms=60_000.0,
    rule="verify",
)
PREFIXES = ("", "import os\n\n", "x = [1, 2, 3]\n" * 9, "# Café 日本語\n")
HOLES = [attrs.evolve(HOLE, prefix=prefix + HOLE.prefix) for prefix in PREFIXES]
DRAFTERS = ("embedded", "dream", "dreamon", "llada")


@asynccontextmanager
async def filling(family: QwenFimModel) -> AsyncIterator[Callable[[Fill], Awaitable[Filled]]]:
    """Start a scheduler for a block, and yield a function that fills a hole."""
    scheduler = Scheduler(family)
    await scheduler.start()
    yield lambda fill: answer(scheduler, fill)
    await scheduler.stop()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[FimCheckpoint, QwenFimModel]:
    """A checkpoint, and its model without a drafter."""
    return fim_family(tmp_path_factory.mktemp("released") / "qwen")


@pytest.fixture(scope="module", params=DRAFTERS)
def drafted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[FimCheckpoint, QwenFimModel]:
    """The same checkpoint, with each drafter."""
    folder = tmp_path_factory.mktemp("released")
    named = str(request.param)
    if named != "embedded":
        named = str(save_checkpoint(named, folder / named).folder)
    return fim_family(folder / "qwen", named)


def written(checkpoint: FimCheckpoint, family: QwenFimModel, fill: Fill, most: int = 24) -> list[int]:
    """Return what transformers' own generate() writes in a hole, at most `most` tokens."""
    layout = family.lay_out(fill)
    return checkpoint.greedy([*layout.context, layout.anchor], most, family.marks.ends, family.never)


def shown(family: QwenFimModel, tokens: list[int]) -> list[str]:
    """Return the texts of tokens as an answer has them: random weights write control characters too."""
    return plain_all(family.texts_of(tokens))


async def test_drafted_fills_are_what_generate_writes(drafted: tuple[FimCheckpoint, QwenFimModel]) -> None:
    checkpoint, family = drafted
    assert family.default.rule == "verify"
    async with filling(family) as fill:
        for hole in HOLES:
            expected = written(checkpoint, family, hole)
            filled = (await fill(hole)).candidates[0]
            assert filled.tokens == shown(family, expected)
            assert filled.finish == ("canvas full" if len(expected) == hole.max_tokens else "complete")
    assert family.drafting is not None
    assert family.drafting.drafter is not None, "the drafter failed and was dropped"
    assert family.drafting.drafted > 0


def test_drafts_keep_their_ids_if_both_tokenizers_have_the_same_tokens(
    drafted: tuple[FimCheckpoint, QwenFimModel],
) -> None:
    _, family = drafted
    assert family.drafting is not None
    assert family.drafting.drafter is not None
    assert family.drafting.same_tokens != isinstance(family.drafting.drafter, StreamDrafter)


async def test_candidates_are_drawn_as_without_drafts(drafted: tuple[FimCheckpoint, QwenFimModel]) -> None:
    _, family = drafted
    hole = attrs.evolve(HOLE, candidates=3, temperature=1.0, seed=3)
    async with filling(family) as fill:
        verified = await fill(hole)
        left = await fill(attrs.evolve(hole, rule="left-to-right"))
    assert [candidate.tokens for candidate in verified.candidates] == [
        candidate.tokens for candidate in left.candidates
    ]
    assert len(left.candidates) > 1


async def test_a_hole_in_a_batch_is_filled_as_it_is_alone(drafted: tuple[FimCheckpoint, QwenFimModel]) -> None:
    _, family = drafted
    async with filling(family) as fill:
        alone = [await fill(hole) for hole in HOLES]
        together = await asyncio.gather(*(fill(hole) for hole in HOLES))
    assert [filled.candidates[0].tokens for filled in together] == [filled.candidates[0].tokens for filled in alone]


@pytest.mark.parametrize("extent", ["line", "lines"])
async def test_without_a_drafter_a_pass_writes_a_token(
    plain: tuple[FimCheckpoint, QwenFimModel], extent: Extent
) -> None:
    checkpoint, family = plain
    assert family.drafting is None
    assert family.default.rule == "left-to-right"
    async with filling(family) as fill:
        for hole in (attrs.evolve(hole, extent=extent) for hole in HOLES):
            tokens = written(checkpoint, family, hole)
            if extent == "line":
                until = next((index for index, token in enumerate(tokens) if family.breaks_line(token)), len(tokens))
                tokens = tokens[:until]  # Cut before decoding: half a character at the end is a text of its own.
            expected = shown(family, tokens)
            filled = await fill(hole)
            assert filled.candidates[0].tokens == expected
            assert filled.steps in (len(expected), len(expected) + 1)


def test_right_drafts_take_fewer_passes(plain: tuple[FimCheckpoint, QwenFimModel]) -> None:
    checkpoint, family = plain
    for hole in HOLES:
        tokens = written(checkpoint, endless(with_drafter(family, None)), hole)
        prophet = Prophet(tokens, family.tokenizer)
        verified = run_through(endless(with_drafter(family, prophet)), hole)
        assert verified.tokens == tokens
        assert len(tokens) == 24
        assert verified.steps == 3
        assert prophet.asked == [9, 11, 1]


def test_right_text_in_other_tokens_takes_fewer_passes(
    plain: tuple[FimCheckpoint, QwenFimModel], tiny_model: Path
) -> None:
    checkpoint, family = plain
    other = load_tokenizer(tiny_model / "tokenizer.json")
    steps = []
    for hole in HOLES:
        tokens = written(checkpoint, endless(with_drafter(family, None)), hole)
        text = "".join(shown(family, tokens))
        prophet = Prophet(other.encode(text, add_special_tokens=False).ids, other)
        retokenized = endless(with_drafter(family, prophet))
        assert retokenized.drafting is not None
        assert not retokenized.drafting.same_tokens
        verified = run_through(retokenized, hole)
        assert verified.tokens == tokens
        steps.append(verified.steps)
    assert sum(steps) < 0.8 * HOLE.max_tokens * len(HOLES)


def test_wrong_drafts_change_no_fill_and_drafting_soon_pauses(
    plain: tuple[FimCheckpoint, QwenFimModel],
) -> None:
    checkpoint, family = plain
    fool = Fool(SPECIAL_TOKENS["<|im_start|>"], family.tokenizer)  # no fill may contain it
    foolish = endless(with_drafter(family, fool))
    for hole in HOLES:
        assert run_through(foolish, hole).tokens == written(checkpoint, foolish, hole)
    asked = len(fool.asked)
    assert sum(run_through(foolish, hole).steps for hole in HOLES) == 24 * len(HOLES)
    assert len(fool.asked) - asked <= 3


def test_holes_of_a_batch_are_drafted_in_one_pass(plain: tuple[FimCheckpoint, QwenFimModel]) -> None:
    fool = Fool(7, plain[1].tokenizer)
    model = with_drafter(plain[1], fool)
    fillings = [started(model, hole) for hole in HOLES]
    for _ in range(2):
        for filling, result in zip(fillings, model.run([each.next_pass() for each in fillings]), strict=True):
            filling.absorb(result, 1 << 20)
    assert fool.together == [len(HOLES)] * 2


async def test_a_drafter_that_fails_is_dropped_and_the_hole_is_filled(
    plain: tuple[FimCheckpoint, QwenFimModel], caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint, family = plain
    failing = with_drafter(family, Fool(7, family.tokenizer, RuntimeError("no more memory")))
    with caplog.at_level(logging.ERROR, logger="engine"):
        async with filling(failing) as fill:
            for hole in HOLES:
                filled = await fill(hole)
                assert filled.candidates[0].tokens == shown(family, written(checkpoint, family, hole))
    assert [record.getMessage() for record in caplog.records] == [
        "the drafter fool failed and is dropped; holes are filled without drafts"
    ]


async def test_a_key_press_reads_nothing_but_itself(
    drafted: tuple[FimCheckpoint, QwenFimModel],
) -> None:
    checkpoint, family = drafted
    start = "value = 1\n" * 40 + HOLE.prefix
    async with filling(family) as fill:
        for typed in ("", "w", "wi", "wid", "width "):
            hole = attrs.evolve(HOLE, prefix=start + typed, max_tokens=12)
            filled = await fill(hole)
            assert filled.candidates[0].tokens == shown(family, written(checkpoint, family, hole, 12))
            if typed:
                assert filled.cached_tokens >= filled.context_tokens - len(typed) - 1


async def test_a_cancelled_hole_takes_no_further_pass(drafted: tuple[FimCheckpoint, QwenFimModel]) -> None:
    _, family = drafted
    assert family.drafting is not None
    scheduler = Scheduler(endless(with_drafter(family, family.drafting.drafter)))
    await scheduler.start()
    steps: list[int] = []

    def watch(progress: Progress) -> None:
        steps.append(progress.step)
        if progress.step == 2:
            scheduler.cancel(ticket)

    ticket = scheduler.submit(HOLE, watch)
    before = scheduler.report().passes
    with pytest.raises(CancelledFill):
        await ticket.result
    assert steps == [1, 2]
    assert scheduler.report().passes - before <= 4
    assert (await answer(scheduler, HOLE)).candidates[0].tokens
    await scheduler.stop()


async def test_a_hole_past_its_deadline_is_closed_with_what_it_has(
    plain: tuple[FimCheckpoint, QwenFimModel],
) -> None:
    checkpoint, family = plain[0], endless(with_drafter(plain[1], None))
    async with filling(family) as fill:
        late = await fill(attrs.evolve(HOLE, budget_ms=0.001))
        assert (late.candidates[0].finish, late.candidates[0].text) == ("deadline", "")
        rushed = (await fill(attrs.evolve(HOLE, max_tokens=400, budget_ms=60.0))).candidates[0]
    assert rushed.finish == "deadline"
    assert len(rushed.tokens) < 400
    expected = written(checkpoint, family, attrs.evolve(HOLE, max_tokens=400), len(rushed.tokens))
    assert rushed.tokens == shown(family, expected)


@pytest.mark.parametrize("rule", ["threshold", "entropy"])
async def test_a_rule_that_denoises_gives_a_one_line_error(
    plain: tuple[FimCheckpoint, QwenFimModel], rule: RuleName
) -> None:
    async with filling(plain[1]) as fill:
        with pytest.raises(ModelError, match=f'"{rule}" needs a model that denoises, .* has verify, left-to-right$'):
            await fill(attrs.evolve(HOLE, rule=rule))
        assert (await fill(attrs.evolve(HOLE, rule="default"))).candidates
