"""What a step of a masked model computes: cached sides, moved suffixes, shifted rows, several lengths at once."""

from pathlib import Path

import attrs
import pytest
import torch
from support.fill_tasks import run_to_end
from support.masked_canvases import FILL, PLENTY, Loaded, begin, load_tiny, result_of
from support.masked_checkpoints import FAMILIES, MASK, VOCABULARY, save_checkpoint
from torch import Tensor

from engine.fill.interface import Layout
from engine.models.load import load
from engine.models.masked.filling import MaskedFilling
from engine.models.masked.model import MaskedModel, cut_to_room
from engine.models.masked.network import MaskedNetwork
from engine.models.masked.rows import MaskedPass
from engine.protocol.messages import RuleName


@pytest.fixture(scope="module", params=FAMILIES)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return load_tiny(str(request.param), tmp_path_factory.mktemp("released") / str(request.param))


def plain(loaded: Loaded, layout: Layout, item: MaskedPass) -> Tensor:
    """Return the expected logits of a pass, from the stock network's forward over all tokens of each middle."""
    found: list[Tensor] = []
    anchor = len(item.surrounding.anchor)
    for middle in item.middles:
        logits = loaded.checkpoint.logits([*layout.before, *middle, *layout.after])
        first = len(layout.before) - anchor
        found.append(logits[first : first + anchor + len(middle)])
    return torch.cat(found)[torch.tensor(item.wanted)]


@pytest.mark.parametrize("rule", ["threshold", "entropy", "left-to-right"])
def test_surroundings_read_in_every_step_give_the_fill_of_an_uncached_forward(
    loaded: Loaded, rule: RuleName, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loaded.model
    monkeypatch.setattr(model, "traits", attrs.evolve(model.traits, refresh_steps=1))
    cached, uncached = (begin(model, 4, rule) for _ in range(2))
    run_to_end(model, cached)
    while uncached.finish is None:
        logits = plain(loaded, uncached.task.layout, uncached.next_pass())
        uncached.absorb(result_of(uncached, logits), PLENTY)
    assert cached.tokens == uncached.tokens
    assert cached.steps == uncached.steps
    assert cached.confidence == pytest.approx(uncached.confidence, abs=1e-4)


def wanted_of(model: MaskedModel, middle: list[int], reads_surrounding: bool, canvas: MaskedFilling) -> Tensor:
    sides = canvas._surroundings
    rows = range(len(sides.anchor) + len(middle))
    (found,) = model.logits([MaskedPass(sides, [middle], rows, reads_surrounding)])
    return found


def test_a_step_over_cached_sides_costs_the_middle_alone_and_finds_the_same(loaded: Loaded) -> None:
    model = loaded.model
    canvas = begin(model)
    middle = [MASK, 70, MASK, 71]
    read = wanted_of(model, middle, True, canvas)
    kept = wanted_of(model, middle, False, canvas)
    assert torch.allclose(read, kept, atol=1e-4)
    item = MaskedPass(canvas._surroundings, [middle], [0], False)
    assert item.rows == len(middle) + (1 if model.traits.shifted else 0)


def test_sides_kept_while_tokens_are_committed_are_near_but_stale(loaded: Loaded) -> None:
    model = loaded.model
    canvas = begin(model)
    wanted_of(model, [MASK] * 4, True, canvas)
    kept = wanted_of(model, [70, 71, MASK, MASK], False, canvas)
    read = wanted_of(model, [70, 71, MASK, MASK], True, canvas)
    assert float((kept - read).abs().max()) > 1e-4
    kept = wanted_of(model, [70, 71, MASK, MASK], False, canvas)
    assert torch.allclose(read, kept, atol=1e-4)


def test_the_suffix_moves_with_the_length_of_the_middle(loaded: Loaded) -> None:
    model = loaded.model
    canvas, other = begin(model), begin(model)
    wanted_of(model, [MASK] * 4, True, canvas)
    wanted_of(model, [MASK] * 11, False, canvas)
    wanted_of(model, [MASK] * 11, True, other)
    assert canvas._surroundings.buffer is not None
    assert other._surroundings.buffer is not None
    # Keys of the first layer depend on a token and its position alone.
    fixed = len(canvas._surroundings.fixed)
    assert torch.allclose(
        canvas._surroundings.buffer[0, 0, :, :fixed], other._surroundings.buffer[0, 0, :, :fixed], atol=1e-4
    )


def test_lengths_tried_together_see_what_each_would_see_over_the_same_sides(loaded: Loaded) -> None:
    model = loaded.model
    if model.traits.special.expand is not None:
        pytest.skip("finds its length by expanding")
    tried, single = begin(model, 40), begin(model, 40)
    item = tried.next_pass()
    lengths = [len(middle) for middle in item.middles]
    assert lengths == [16, 8, 32, 40]
    (together,) = model.logits([item])
    for number, length in enumerate(lengths):
        found = wanted_of(model, [MASK] * length, number == 0, single)
        rows = [single._surroundings.row_of(at, model.traits.shifted) for at in range(length)]
        assert torch.allclose(torch.split(together, lengths)[number], found[rows], atol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_each_position_is_predicted_by_the_right_row(tmp_path: Path, name: str) -> None:
    """The layers add nothing and the head predicts the next id, so a row predicts its own token plus one."""
    checkpoint = save_checkpoint(name, tmp_path / name, tie_word_embeddings=False, weight_tying=False)
    model = load(str(checkpoint.folder), threads=1, device="cpu")
    assert isinstance(model, MaskedModel)
    assert isinstance(model._network, MaskedNetwork)
    trunk, head = model._network._trunk, model._network._head
    codes = torch.linalg.qr(torch.randn(VOCABULARY, 32))[0] * 20
    trunk.embed_tokens.weight.copy_(codes)
    head.weight = torch.nn.Parameter(codes.roll(1, 0).to(head.weight.dtype), requires_grad=False)
    trunk.norm.weight.fill_(1.0)
    for layer in trunk.layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
    layout = model.lay_out(FILL)
    sides = model.traits.surroundings(layout, 4)
    middle = [MASK, 100, MASK, 110]
    left = [layout.before[-1], *middle[:-1]]
    wanted = [sides.row_of(at, model.traits.shifted) for at in range(4)]
    for reads_surrounding in (True, False):
        (found,) = model.logits([MaskedPass(sides, [middle], wanted, reads_surrounding)])
        assert found.argmax(-1).tolist() == [token + 1 for token in (left if model.traits.shifted else middle)]


@pytest.mark.parametrize(
    ("before", "after", "room", "kept"),
    [(10, 10, 30, (10, 10)), (100, 100, 30, (20, 10)), (100, 4, 30, (26, 4)), (5, 100, 30, (5, 25)), (9, 9, 0, (0, 0))],
)
def test_the_prefix_gets_two_thirds_of_the_window(before: int, after: int, room: int, kept: tuple[int, int]) -> None:
    ahead, behind = cut_to_room(list(range(before)), list(range(after)), room)
    assert (len(ahead), len(behind)) == kept
    assert ahead == list(range(before))[before - kept[0] :]
    assert behind == list(range(kept[1]))
