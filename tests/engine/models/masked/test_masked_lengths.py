"""The length of a middle: the best of several lengths, cut at an end, or found by DreamOn's expand and delete."""

import pytest
import torch
from support.masked_canvases import FILL, PLENTY, Loaded, begin, load_tiny, result_of
from support.masked_checkpoints import BEGIN, END, EXPAND, MASK, VOCABULARY
from torch import Tensor


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Loaded]:
    folder = tmp_path_factory.mktemp("released")
    return {name: load_tiny(name, folder / name) for name in ("dream", "dreamon", "llada")}


def test_the_length_that_fits_best_is_kept(loaded: dict[str, Loaded]) -> None:
    model = loaded["dream"].model
    canvas = begin(model, 40, steps=1)
    logits = torch.zeros(16 + 8 + 32 + 40, VOCABULARY)
    logits[16 : 16 + 8, 70] = 9.0
    canvas.absorb(result_of(canvas, logits), PLENTY)
    assert canvas.tokens == [70] * 8
    assert canvas.finish == "complete"


def test_a_length_that_ends_at_once_comes_last(loaded: dict[str, Loaded]) -> None:
    canvas = begin(loaded["dream"].model, 40, steps=1)
    logits = torch.zeros(16 + 8 + 32 + 40, VOCABULARY)
    logits[:16, END] = 9.0
    logits[16 : 16 + 8, 70] = 3.0
    canvas.absorb(result_of(canvas, logits), PLENTY)
    assert canvas.tokens == [70] * 8


def test_the_first_end_that_is_committed_cuts_the_middle(loaded: dict[str, Loaded]) -> None:
    canvas = begin(loaded["llada"].model, 8)
    logits = torch.zeros(8, VOCABULARY)
    logits[0, 70], logits[3, END], logits[5, 71] = 40.0, 40.0, 40.0
    canvas.absorb(result_of(canvas, logits), PLENTY)
    assert canvas.canvas() == [*canvas.vocabulary.texts_of([70]), None, None]
    canvas.close("deadline")
    assert canvas.answer().tokens == canvas.vocabulary.texts_of([70])


def peaks(**tokens: int) -> Tensor:
    """Return logits of DreamOn's first eight masks with peaks at the given tokens. p0 is the first mask."""
    logits = torch.zeros(8, VOCABULARY)
    for name, token in tokens.items():
        logits[int(name[1:]), token] = 40.0
    return logits


def test_an_expanded_mask_becomes_two_and_a_deleted_one_goes_with_those_behind_it(loaded: dict[str, Loaded]) -> None:
    model = loaded["dreamon"].model
    canvas = begin(model)
    a, b, c = model.texts_of([70]), model.texts_of([71]), model.texts_of([72])
    canvas.absorb(result_of(canvas, peaks(p0=70, p1=EXPAND, p3=71, p5=END, p7=72)), PLENTY)
    assert canvas.canvas() == [*a, None, None, None, *b, None, *c]
    assert canvas.next_pass().middles == [[70, MASK, MASK, MASK, 71, MASK, 72]]
    assert not canvas.next_pass().reads_surrounding
    logits = torch.zeros(4, VOCABULARY)
    logits[0, 73], logits[1, END] = 40.0, 40.0
    canvas.absorb(result_of(canvas, logits), PLENTY)
    assert canvas.finish == "complete"
    assert canvas.tokens == [70, 73, 71, 72]


def test_a_middle_never_grows_beyond_max_tokens_and_ends_in_the_last_step(loaded: dict[str, Loaded]) -> None:
    model = loaded["dreamon"].model
    canvas = begin(model, 10)
    canvas.absorb(result_of(canvas, peaks(p0=EXPAND, p1=EXPAND, p2=EXPAND, p3=EXPAND)), PLENTY)
    assert canvas.canvas() == [None] * 10
    logits = torch.zeros(10, VOCABULARY)
    logits[:, EXPAND], logits[:, 70] = 50.0, 40.0
    canvas.absorb(result_of(canvas, logits.clone()), PLENTY)
    assert canvas.tokens == [70] * 10
    assert canvas.finish == "canvas full"
    hurried = begin(model, 10)
    hurried.absorb(result_of(hurried, logits[:8].clone()), 1)
    assert hurried.tokens == [70] * 8


def test_a_fill_ends_though_it_expands_and_deletes_in_turn(loaded: dict[str, Loaded]) -> None:
    canvas = begin(loaded["dreamon"].model, 9, "left-to-right")
    while canvas.finish is None:
        masks = len(canvas.next_pass().wanted)
        logits = torch.zeros(masks, VOCABULARY)
        logits[:, EXPAND if masks < 9 else END] = 40.0
        logits[:, 70] = 1.0
        canvas.absorb(result_of(canvas, logits), PLENTY)
        assert canvas.steps <= 8 + 2 * 9
    assert len(canvas.tokens) <= 9


def test_dreamons_hole_stands_between_begin_and_end(loaded: dict[str, Loaded]) -> None:
    layout = loaded["dreamon"].model.lay_out(FILL)
    assert layout.before[0] == BEGIN
    assert layout.after[-1] == END
    other = loaded["dream"].model.lay_out(FILL)
    assert (layout.before[1:], layout.after[:-1]) == (other.before, other.after)
