"""What a step of a masked family computes: cached sides, moved suffixes, shifted rows, several lengths at once."""

from pathlib import Path

import pytest
import torch
from masked_canvases import FILL, PLENTY, Loaded, begin, load_tiny
from masked_checkpoints import FAMILIES, MASK, VOCABULARY, save_checkpoint
from torch import Tensor

from engine.fill.interface import Layout
from engine.models.load import load
from engine.models.masked.canvas import Canvas
from engine.models.masked.model import MaskedModel
from engine.models.masked.rows import MaskedPass
from engine.models.masked.window import cut
from engine.protocol.messages import RuleName


@pytest.fixture(scope="module", params=FAMILIES)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return load_tiny(str(request.param), tmp_path_factory.mktemp("released") / str(request.param))


def run_through(family: MaskedModel, canvas: Canvas) -> None:
    while canvas.finish is None:
        (found,) = family.run([canvas.next_pass()])
        canvas.absorb(found, PLENTY)


def plain(loaded: Loaded, layout: Layout, item: MaskedPass) -> Tensor:
    """Return what `run` should for a pass, by the stock network's forward over all tokens of each middle."""
    found: list[Tensor] = []
    anchor = len(item.sides.anchor)
    for middle in item.middles:
        logits = loaded.checkpoint.logits([*layout.before, *middle, *layout.after])
        first = len(layout.before) - anchor
        found.append(logits[first : first + anchor + len(middle)])
    return torch.cat(found)[torch.tensor(item.wanted)]


@pytest.mark.parametrize("rule", ["threshold", "entropy", "left-to-right"])
def test_sides_read_in_every_step_are_no_cache_at_all(
    loaded: Loaded, rule: RuleName, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = loaded
    monkeypatch.setattr(own.family, "refresh_steps", 1)
    cached, uncached = (begin(own.family, 4, rule) for _ in range(2))
    run_through(own.family, cached)
    while uncached.finish is None:
        uncached.absorb(plain(own, uncached.hole.layout, uncached.next_pass()).clone(), PLENTY)
    assert cached.tokens == uncached.tokens
    assert cached.steps == uncached.steps
    assert cached.confidence == pytest.approx(uncached.confidence, abs=1e-4)


def wanted_of(family: MaskedModel, middle: list[int], reads_sides: bool, canvas: Canvas) -> Tensor:
    sides = canvas._sides
    rows = range(len(sides.anchor) + len(middle))
    (found,) = family.run([MaskedPass(sides, [middle], rows, reads_sides)])
    return found


def test_a_step_over_cached_sides_costs_the_middle_alone_and_finds_the_same(loaded: Loaded) -> None:
    family = loaded.family
    canvas = begin(family)
    middle = [MASK, 70, MASK, 71]
    read = wanted_of(family, middle, True, canvas)
    kept = wanted_of(family, middle, False, canvas)
    assert torch.allclose(read, kept, atol=1e-4)
    item = MaskedPass(canvas._sides, [middle], [0], False)
    assert item.rows == len(middle) + (1 if family.trait.shifted else 0)


def test_sides_kept_while_tokens_are_committed_are_near_but_stale(loaded: Loaded) -> None:
    family = loaded.family
    canvas = begin(family)
    wanted_of(family, [MASK] * 4, True, canvas)
    kept = wanted_of(family, [70, 71, MASK, MASK], False, canvas)
    read = wanted_of(family, [70, 71, MASK, MASK], True, canvas)
    assert float((kept - read).abs().max()) > 1e-4
    kept = wanted_of(family, [70, 71, MASK, MASK], False, canvas)
    assert torch.allclose(read, kept, atol=1e-4)


def test_the_suffix_moves_with_the_length_of_the_middle(loaded: Loaded) -> None:
    family = loaded.family
    canvas, other = begin(family), begin(family)
    wanted_of(family, [MASK] * 4, True, canvas)
    wanted_of(family, [MASK] * 11, False, canvas)
    wanted_of(family, [MASK] * 11, True, other)
    assert canvas._sides.buffer is not None
    assert other._sides.buffer is not None
    # Keys of the first layer depend on a token and its position alone.
    fixed = len(canvas._sides.fixed)
    assert torch.allclose(canvas._sides.buffer[0, 0, :, :fixed], other._sides.buffer[0, 0, :, :fixed], atol=1e-4)


def test_lengths_tried_together_see_what_each_would_see_over_the_same_sides(loaded: Loaded) -> None:
    family = loaded.family
    if family.trait.marks.expand is not None:
        pytest.skip("finds its length by expanding")
    tried, single = begin(family, 40), begin(family, 40)
    item = tried.next_pass()
    lengths = [len(middle) for middle in item.middles]
    assert lengths == [16, 8, 32, 40]
    (together,) = family.run([item])
    for number, length in enumerate(lengths):
        found = wanted_of(family, [MASK] * length, number == 0, single)
        rows = [single._sides.row_of(at, family.trait.shifted) for at in range(length)]
        assert torch.allclose(together.split(lengths)[number], found[rows], atol=1e-4)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("name", FAMILIES)
def test_each_place_is_predicted_by_the_row_that_predicts_it(tmp_path: Path, name: str) -> None:
    """Layers that add nothing, and a head that says "the next id": a row predicts one more than its own token."""
    checkpoint = save_checkpoint(name, tmp_path / name, tie_word_embeddings=False, weight_tying=False)
    family = load(str(checkpoint.folder), threads=1, device="cpu")
    assert isinstance(family, MaskedModel)
    trunk, head = family._network._trunk, family._network._head
    codes = torch.linalg.qr(torch.randn(VOCABULARY, 32))[0] * 20
    trunk.embed_tokens.weight.copy_(codes)
    head.weight = torch.nn.Parameter(codes.roll(1, 0).to(head.weight.dtype), requires_grad=False)
    trunk.norm.weight.fill_(1.0)
    for layer in trunk.layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
    layout = family.lay_out(FILL)
    sides = family.sides(layout, 4)
    middle = [MASK, 100, MASK, 110]
    left = [layout.before[-1], *middle[:-1]]
    wanted = [sides.row_of(at, family.trait.shifted) for at in range(4)]
    for reads_sides in (True, False):
        (found,) = family.run([MaskedPass(sides, [middle], wanted, reads_sides)])
        assert found.argmax(-1).tolist() == [token + 1 for token in (left if family.trait.shifted else middle)]


@pytest.mark.parametrize(
    ("before", "after", "room", "kept"),
    [(10, 10, 30, (10, 10)), (100, 100, 30, (20, 10)), (100, 4, 30, (26, 4)), (5, 100, 30, (5, 25)), (9, 9, 0, (0, 0))],
)
def test_the_prefix_gets_two_thirds_of_the_window(before: int, after: int, room: int, kept: tuple[int, int]) -> None:
    ahead, behind = cut(list(range(before)), list(range(after)), room)
    assert (len(ahead), len(behind)) == kept
    assert ahead == list(range(before))[before - kept[0] :]
    assert behind == list(range(kept[1]))
