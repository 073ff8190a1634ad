"""What a training step computes on a GPU, held against what it computes on a CPU."""

from pathlib import Path

import pytest
import torch
from small_run import SHAPE, drawn_holes, small_config
from torch.nn.attention.flex_attention import create_block_mask

from engine.models.embedded.network import Network
from engine.models.stock.token_bytes import load_tokenizer
from engine.training import attention, objective, row_losses
from engine.training.batched_muon import BatchedMuon
from engine.training.collator import Collator
from engine.training.loader import marks_of
from engine.training.muon import Muon


@pytest.fixture
def batch(tiny_model: Path) -> objective.Batch:
    config, tokenizer = small_config(), load_tokenizer(tiny_model / "tokenizer.json")
    return Collator(config, tokenizer, marks_of(tokenizer), 0).batch(drawn_holes(config, 5), 32)


@pytest.fixture
def network() -> Network:
    torch.manual_seed(0)
    network = Network(SHAPE)
    for matrix in network.parameters():
        torch.nn.init.normal_(matrix, std=0.2)
    return network


def gradients_of(network: Network, loss: torch.Tensor) -> list[torch.Tensor]:
    return list(torch.autograd.grad(loss, [*network.blocks.parameters(), network.embed.weight]))


def test_the_fused_attention_equals_the_other_forward_and_backward(
    batch: objective.Batch, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    # torch has this operator's gradient for every device but asks for a GPU, where the compiled kernel is.
    monkeypatch.setattr("torch.nn.attention.flex_attention._validate_device", lambda *_: None)
    mask = attention.block_mask(batch.anchors, batch.owners, batch.stream_rows, block=32)
    weights = torch.randn(5, 128, 32)
    found = [objective.forward(network, batch, seen) for seen in (objective.visibility(batch), mask)]
    torch.testing.assert_close(found[1], found[0], atol=1e-5, rtol=1e-4)
    grown = [gradients_of(network, (rows * weights).sum()) for rows in found]
    for one, other in zip(*grown, strict=True):
        torch.testing.assert_close(other, one, atol=1e-4, rtol=1e-3)


def test_the_mask_lists_each_block_that_is_seen_and_no_other(batch: objective.Batch) -> None:
    mask = attention.block_mask(batch.anchors, batch.owners, batch.stream_rows, block=16)
    assert mask.mask_mod is not None
    every = create_block_mask(mask.mask_mod, 5, None, 128, 128, device="cpu", BLOCK_SIZE=16)
    assert torch.equal(mask.to_dense(), every.to_dense())
    dense = torch.ones(5, 96, 96, dtype=torch.bool).tril()
    rows = torch.arange(128)
    place = torch.arange(5)[:, None, None]
    told = mask.mask_mod(place, torch.tensor(0), rows[:, None], rows)
    assert torch.equal(told[:, :96, :96], dense)
    assert not told[:, :96, 96:].any(), "the stream sees a canvas"
    visible = objective.visibility(batch)
    assert isinstance(visible, torch.Tensor)
    assert torch.equal(told[:, 96:], visible[:, 0])


def test_rows_that_fit_no_block_are_told_in_one_line(batch: objective.Batch) -> None:
    with pytest.raises(ValueError, match="multiples of 128") as caught:
        attention.block_mask(batch.anchors, batch.owners, batch.stream_rows)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("distilled", [0.0, 0.5])
def test_losses_of_all_rows_equal_those_of_the_rows_that_count(
    batch: objective.Batch, network: Network, distilled: float
) -> None:
    expected = objective.losses(network, batch, distilled)
    rows = objective.forward(network, batch, objective.visibility(batch))
    found = row_losses.losses(network, rows, batch, distilled)
    torch.testing.assert_close(found.stream, expected.stream)
    torch.testing.assert_close(found.canvas, expected.canvas)
    assert not found.told().requires_grad, "a sum of what is told would keep every step's graph"
    told = found.told().tolist()
    assert told[2:] == pytest.approx([expected.canvas_full, expected.canvas_partial], rel=1e-4)
    grown = [gradients_of(network, losses.stream + losses.canvas) for losses in (expected, found)]
    for one, other in zip(*grown, strict=True):
        torch.testing.assert_close(other, one, atol=1e-5, rtol=1e-3)


def test_levels_share_out_the_canvases_by_how_much_is_masked(batch: objective.Batch, network: Network) -> None:
    found = row_losses.losses(network, objective.forward(network, batch, objective.visibility(batch)), batch, 0.0)
    weights = batch.weights[:, batch.stream_rows :]
    assert float(found.weights[1:].sum()) == pytest.approx(float(weights.sum()), rel=1e-5)
    assert float(found.weights[3]) == pytest.approx(float(weights[batch.masked <= 0.5].sum()), rel=1e-5)


def test_muon_of_many_matrices_is_muon_of_each() -> None:
    torch.manual_seed(0)
    shapes = [(32, 16), (16, 32), (32, 16), (16, 16)]
    start = [torch.randn(shape) for shape in shapes]
    gradients = [[torch.randn(shape) for shape in shapes] for _ in range(3)]
    chains = []
    for kind in (Muon, BatchedMuon):
        matrices = [torch.nn.Parameter(each.clone()) for each in start]
        chains.append((matrices, kind(matrices, lr=0.02, weight_decay=0.01)))
    for step in gradients:
        for matrices, optimizer in chains:
            for matrix, gradient in zip(matrices, step, strict=True):
                matrix.grad = gradient.clone()
            optimizer.step()
    for one, other, begun in zip(chains[0][0], chains[1][0], start, strict=True):
        assert float((one - other).detach().norm() / (one - begun).detach().norm()) < 0.03, (
            "further apart than bf16 explains"
        )
    chains[0][1].load_state_dict(chains[1][1].state_dict())
