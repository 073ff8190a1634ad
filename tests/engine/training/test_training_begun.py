"""The loss of the row at the cursor where a word is begun."""

from pathlib import Path

import attrs
import torch
from small_run import drawn_batch, drawn_holes, drawn_network, small_config
from torch.nn import functional as F

from engine.models.embedded.layout import CompatibleTokens, unfinished
from engine.models.stock.token_bytes import TokenBytes, load_tokenizer
from engine.training import objective
from engine.training.objective import begun_losses


def test_a_batch_knows_which_tokens_agree_with_what_is_typed(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    compatible = CompatibleTokens(TokenBytes(tokenizer).bytes)
    batch = drawn_batch(tokenizer, 6)
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
    network, batch = drawn_network(), drawn_batch(load_tokenizer(tiny_model / "tokenizer.json"), 6)
    rows = objective.forward(network, batch)
    each = begun_losses(network, rows, batch)
    for loss, row in zip(each, torch.nonzero(batch.is_begun)[:, 0].tolist(), strict=True):
        at = int(batch.middles[row])
        logits = network.logits(rows[row : row + 1, at])[0]
        chosen = torch.nonzero(batch.agreeing[row])[:, 0]
        target = (chosen == batch.targets[row, at]).nonzero()[:, 0]
        torch.testing.assert_close(loss, F.cross_entropy(logits[chosen][None], target))
    whole = objective.losses(network, batch, 0.0, 0.0).total
    free = attrs.evolve(batch, agreeing=torch.zeros_like(batch.agreeing))
    without = objective.losses(network, free, 0.0, 0.0).total
    assert float(whole.detach()) < float(without.detach()), "other tokens were ruled out, so the loss must be lower"
