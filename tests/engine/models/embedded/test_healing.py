"""Token healing: where a fill begins, which tokens agree with what is typed, and what of them is answered."""

from pathlib import Path

import attrs
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scheduler_client import answer
from small_run import LENGTH, drawn_holes, small_config
from support.fill_tasks import run_to_end, started

from engine.fill.filling import BaseFilling
from engine.fill.interface import FillStrategy
from engine.fill.sampler import PassResult
from engine.fill.stream import StreamPass
from engine.models.embedded.layout import LONGEST, CompatibleTokens, unfinished
from engine.models.embedded.model import EmbeddedModel
from engine.models.predict import predict
from engine.models.stock.token_bytes import TokenBytes, load_tokenizer
from engine.protocol.confidence import confidence_between
from engine.protocol.messages import Fill, plain
from engine.schedule.scheduler import Scheduler
from engine.training.loader import Collator, special_tokens_of

PREFIX = "import os\n\n\ndef width_of(name, parts):\n    total = 0\n    for part in parts:\n        total += pa"
HOLE = Fill(id=1, prefix=PREFIX, suffix=")\n    return total\n", path="a/b.py", max_tokens=12, budget_ms=6e4)
WAYS = (FillStrategy("left-to-right"), FillStrategy("verify"), FillStrategy("threshold", 4), FillStrategy("entropy", 4))


@pytest.fixture
def family(embedded: EmbeddedModel) -> EmbeddedModel:
    return embedded


@pytest.mark.parametrize(
    ("prefix", "typed"),
    [
        ("x\n    sel", " sel"),
        ("x =", " ="),
        ("x = ", " "),
        ("f(", "("),
        ("get_na", "na"),
        ("get_", "_"),
        ("if x:\n    ", " "),
        ("if x:\n\t", ""),
        ("if x:\n    \n", "\n"),
        ("\n", "\n"),
        ("\n  \ty", "y"),
        ("", ""),
        ("x = 'naïve", "naïve"),
        (" " * 1000 + "ab", " ab"),
        ("a" * LONGEST, "a" * LONGEST),
        ("a" * (LONGEST + 1), ""),
    ],
)
def test_the_last_piece_of_the_line_is_taken_off(tiny_model: Path, prefix: str, typed: str) -> None:
    assert unfinished(load_tokenizer(tiny_model / "tokenizer.json"), prefix) == typed


def test_whatever_is_typed_the_tokens_before_it_are_those_of_the_whole_line(family: EmbeddedModel) -> None:
    """So a fill that begins there is written in the tokens of code that nobody cut."""
    text = '    value = self.parts[index] + other_name("héllo", 12345) != [1, 2]  # why not'
    whole = family.tokenizer.encode("\n" + text).ids
    for end in range(5, len(text) + 1):
        prefix = "\n" + text[:end]
        before = family.tokenizer.encode(prefix[: len(prefix) - len(unfinished(family.tokenizer, prefix))]).ids
        assert before == whole[: len(before)]
        assert len(before) < len(whole)


@given(typed=st.text(min_size=1, max_size=8) | st.sampled_from([" ret", "(", "\n", "self", "é"]))
def test_agreeing_tokens_begin_with_what_is_typed_or_are_its_beginning(tiny_model: Path, typed: str) -> None:
    pieces = TokenBytes(load_tokenizer(tiny_model / "tokenizer.json")).bytes
    known = typed.encode("utf-8", "replace")
    compatible_tokens = [
        at for at, piece in enumerate(pieces) if piece and (piece.startswith(known) or known.startswith(piece))
    ]
    assert sorted(CompatibleTokens(pieces).of(known)) == compatible_tokens


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("typed", ["", "p", "parts", " ", "(", "\n", "é", "configurati"])
def test_a_fill_begins_with_what_is_typed_and_the_answer_behind_it(
    family: EmbeddedModel, way: FillStrategy, typed: str
) -> None:
    prefix = PREFIX.removesuffix(" pa") + ("\n" if typed == "\n" else " " + typed)
    fill = attrs.evolve(HOLE, prefix=prefix, extent="lines")
    layout = family.lay_out(fill)
    filling = run_to_end(family, started(family, fill, way))
    assert isinstance(filling, BaseFilling)
    written = b"".join(family.bytes_of(token) for token in filling.tokens)
    assert layout.typed
    assert written.startswith(layout.typed.encode())
    answered = filling.answer()
    assert answered.text == plain(written.decode("utf-8", "replace").removeprefix(layout.typed))
    assert answered.text == "".join(answered.tokens) == plain("".join(text or "" for text in filling.canvas()))
    assert len(answered.tokens) == len(answered.confidence)


async def test_a_word_that_is_typed_on_needs_no_new_context(scheduler: Scheduler) -> None:
    first, *others = [attrs.evolve(HOLE, prefix=PREFIX.removesuffix("pa") + "parts"[:end]) for end in range(6)]
    await answer(scheduler, first)
    for fill in others:
        filled = await answer(scheduler, fill)
        assert filled.cached_tokens == filled.context_tokens


def test_that_a_word_ends_where_it_is_typed_counts(family: EmbeddedModel) -> None:
    """The chance of all that is answered is the product over all that was chosen, also of what is typed already."""
    fill = attrs.evolve(HOLE, prefix=PREFIX + "rts")
    layout = family.lay_out(fill)
    assert layout.typed == " parts"
    filling = started(family, fill, FillStrategy("left-to-right"))
    assert isinstance(filling, BaseFilling)
    filling.commit(family._encode(" ")[0], 0.5)
    for token in family._encode("parts"):
        filling.commit(token, 0.8)
    filling.commit(family._encode("!")[0], 0.5)
    answered = filling.answer()
    assert answered.tokens == ["!"]
    assert confidence_between(answered, 0, 1) == pytest.approx(0.25 * 0.8 ** (len(filling.tokens) - 2), abs=1e-3)


def test_only_agreeing_tokens_are_proposed_until_all_is_written(family: EmbeddedModel) -> None:
    fill = attrs.evolve(HOLE, prefix=PREFIX)
    layout = family.lay_out(fill)
    filling = started(family, fill, FillStrategy("left-to-right"))
    asked = filling.next_pass()
    assert isinstance(asked, StreamPass)
    assert isinstance(filling, BaseFilling)
    logits = torch.zeros(1, family.card.shape.vocabulary)
    logits[0, family.end] = logits[0, family._encode("\n")[0]] = 50.0
    filling.absorb(PassResult(predict(logits, [asked.query], [1], torch.tensor([family.mask]))[0]), 9)
    assert filling.finish is None
    assert filling.tokens[0] in family.compatible_tokens(layout.typed.encode())


def test_training_cuts_holes_where_the_engine_does(tiny_model: Path) -> None:
    config, tokenizer = small_config(), load_tokenizer(tiny_model / "tokenizer.json")
    marks = special_tokens_of(tokenizer)
    collator = Collator(config, tokenizer, marks, 0)
    healed = 0
    for hole in drawn_holes(config, 60):
        batch = collator.batch([collator.lay_out(hole, LENGTH)], 32)
        stream = batch.tokens[0, : batch.stream_rows].tolist()
        first = int(batch.middles[0]) + 1
        middle = stream[first : stream.index(marks.end)]
        typed = unfinished(tokenizer, hole.prefix)
        whole = tokenizer.encode(typed + hole.middle, add_special_tokens=False).ids
        assert middle == whole[: len(middle)]
        assert len(middle) == min(len(whole), config.holes.middle_tokens)
        above = stream[stream.index(marks.prefix) + 1 : first]
        above = above[: above.index(marks.tail)] if marks.tail in above else above
        kept = tokenizer.encode(hole.prefix[: len(hole.prefix) - len(typed)], add_special_tokens=False).ids
        assert above == kept[len(kept) - len(above) :]
        healed += bool(typed)
    assert healed > 30
