"""The loss of the row at the cursor where a word is begun, the weight of the hole's rows, and attention in bf16."""

from pathlib import Path

import attrs
import pytest
import torch
from small_run import drawn_holes, drawn_network, small_config
from torch.nn import functional as F

from engine.models.embedded.token_healing import CompatibleTokens, unfinished
from engine.models.stock.token_bytes import TokenBytes, load_tokenizer
from engine.training import attention, objective, row_losses
from engine.training.batch import Batch
from engine.training.begun import agreement, begun_losses, words
from engine.training.collator import Collator
from engine.training.loader import special_tokens_of


def batch_of(tiny_model: Path, middle_weight: float = 1.0) -> Batch:
    config, tokenizer = small_config(), load_tokenizer(tiny_model / "tokenizer.json")
    config = attrs.evolve(config, objective=attrs.evolve(config.objective, middle_weight=middle_weight))
    return Collator(config, tokenizer, special_tokens_of(tokenizer), 0).batch(drawn_holes(config, 6), 32)


def test_the_agreeing_tokens_survive_the_packing() -> None:
    tokens = [0, 31, 32, 63, 64, 399]
    packed = torch.from_numpy(words(tokens, 400))[None]
    assert torch.nonzero(agreement(packed, 400)[0])[:, 0].tolist() == tokens


def test_a_batch_knows_which_tokens_agree_with_what_is_typed(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    compatible = CompatibleTokens(TokenBytes(tokenizer).bytes)
    batch = batch_of(tiny_model)
    begun = 0
    for row, hole in enumerate(drawn_holes(small_config(), 6)):
        typed = unfinished(tokenizer, hole.prefix)
        agreeing = set(torch.nonzero(batch.agreeing[row])[:, 0].tolist())
        first = int(batch.targets[row, batch.middles[row]])
        assert agreeing == (set(compatible.of(typed.encode())) if typed else set())
        assert not typed or first in agreeing
        begun += bool(typed)
    assert begun, "no hole of these is within a word"


def test_the_row_at_the_cursor_learns_to_choose_among_agreeing_tokens_only(tiny_model: Path) -> None:
    network, batch = drawn_network(), batch_of(tiny_model)
    rows = objective.forward(network, batch, objective.visibility(batch))
    each = begun_losses(network, rows, batch)
    for row in torch.nonzero(batch.is_begun)[:, 0].tolist():
        at = int(batch.middles[row])
        place = (slice(row, row + 1), at)
        logits = network.logits(rows[place], batch.hints[place], batch.strengths[place])[0]
        chosen = torch.nonzero(batch.agreeing[row])[:, 0]
        target = (chosen == batch.targets[row, at]).nonzero()[:, 0]
        torch.testing.assert_close(each[row], F.cross_entropy(logits[chosen][None], target))
    whole = objective.losses(network, batch).stream
    without = objective.losses(network, attrs.evolve(batch, agreeing=torch.zeros_like(batch.agreeing))).stream
    assert float(whole.detach()) < float(without.detach()), "other tokens were ruled out, so the loss must be lower"


def test_the_rows_of_the_hole_weigh_more_in_both_ways_to_compute_the_loss(tiny_model: Path) -> None:
    network, heavy, even = drawn_network(), batch_of(tiny_model, 5.0), batch_of(tiny_model)
    inside = torch.arange(heavy.stream_rows) >= heavy.middles[:, None]
    stream = slice(None), slice(heavy.stream_rows)
    assert torch.equal(heavy.weights[stream], even.weights[stream] * torch.where(inside, 5.0, 1.0))
    expected = objective.losses(network, heavy).stream
    rows = objective.forward(network, heavy, objective.visibility(heavy))
    fixed = row_losses.losses(network, rows, heavy, 0.0)
    torch.testing.assert_close(fixed.stream, expected)
    plain = row_losses.losses(network, rows, even, 0.0)
    assert float(fixed.means()[0]) == pytest.approx(float(plain.means()[0])), "a report counts each row once"


@pytest.mark.parametrize("length", [200, 256, 300])
def test_attention_in_bf16_is_that_in_fp32_up_to_rounding(length: int) -> None:
    torch.manual_seed(0)
    size, heads, width, canvas = 2, 3, 16, 24
    drawn = torch.randn(3, size, length + canvas, heads, width)
    query, key = F.normalize(drawn[:2], dim=-1) * width**0.5
    visible = torch.rand(size, 1, canvas, length + canvas) < 0.5
    visible[..., 0] = True
    slope = torch.randn(size, length + canvas, heads, width)
    results = []
    for in_bf16 in (False, True):
        inputs = [part.clone().requires_grad_() for part in (query, key, drawn[2])]
        mixed = attention.dense(visible, length, in_bf16)(0, *inputs)
        results.append([mixed.detach(), *torch.autograd.grad(mixed, inputs, slope)])
    for exact, rounded in zip(*results, strict=True):
        assert float((rounded - exact).norm() / exact.norm()) < 0.01
