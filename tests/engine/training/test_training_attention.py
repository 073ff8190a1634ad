"""The computations of a training step on a GPU, compared with those on a CPU."""

from pathlib import Path

import pytest
import torch
from small_run import drawn_holes, drawn_network, small_config
from torch.nn.attention.flex_attention import create_block_mask

from engine.models.embedded.network import Network
from engine.models.stock.token_bytes import load_tokenizer
from engine.training import attention, objective, row_losses
from engine.training.batch import Batch
from engine.training.batched_muon import BatchedMuon
from engine.training.collator import Collator
from engine.training.loader import special_tokens_of
from engine.training.muon import Muon


@pytest.fixture
def batch(tiny_model: Path) -> Batch:
    config, tokenizer = small_config(), load_tokenizer(tiny_model / "tokenizer.json")
    return Collator(config, tokenizer, special_tokens_of(tokenizer), 0).batch(drawn_holes(config, 5), 32)


@pytest.fixture
def network() -> Network:
    return drawn_network()


def gradients_of(network: Network, loss: torch.Tensor) -> list[torch.Tensor]:
    return list(torch.autograd.grad(loss, [*network.blocks.parameters(), network.embed.weight]))


def test_the_fused_attention_equals_the_dense_one_forward_and_backward(
    batch: Batch, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    # torch has this operator's gradient for every device, but its check asks for a GPU, which has the compiled kernel.
    monkeypatch.setattr("torch.nn.attention.flex_attention._validate_device", lambda *_: None)
    mask = attention.block_mask(batch.anchors, batch.owners, batch.stream_rows, block=32)
    weights = torch.randn(5, 128, 32)
    rows_by_mask = [
        objective.forward(network, batch, mask_of_rows) for mask_of_rows in (objective.visibility(batch), mask)
    ]
    torch.testing.assert_close(rows_by_mask[1], rows_by_mask[0], atol=1e-5, rtol=1e-4)
    grads = [gradients_of(network, (rows * weights).sum()) for rows in rows_by_mask]
    for expected, actual in zip(*grads, strict=True):
        torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-3)


def test_the_mask_lists_exactly_the_visible_blocks(batch: Batch) -> None:
    mask = attention.block_mask(batch.anchors, batch.owners, batch.stream_rows, block=16)
    assert mask.mask_mod is not None
    every = create_block_mask(mask.mask_mod, 5, None, 128, 128, device="cpu", BLOCK_SIZE=16)
    assert torch.equal(mask.to_dense(), every.to_dense())
    dense = torch.ones(5, 96, 96, dtype=torch.bool).tril()
    rows = torch.arange(128)
    sequence = torch.arange(5)[:, None, None]
    visible = mask.mask_mod(sequence, torch.tensor(0), rows[:, None], rows)
    assert torch.equal(visible[:, :96, :96], dense)
    assert not visible[:, :96, 96:].any(), "the stream sees a canvas"
    dense_visibility = objective.visibility(batch)
    assert isinstance(dense_visibility, torch.Tensor)
    assert torch.equal(visible[:, 96:], dense_visibility[:, 0])


def test_rows_that_do_not_fill_blocks_give_an_error_of_one_line(batch: Batch) -> None:
    with pytest.raises(ValueError, match="multiples of 128") as caught:
        attention.block_mask(batch.anchors, batch.owners, batch.stream_rows)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("distilled", [0.0, 0.5])
def test_losses_with_fixed_sizes_equal_those_of_the_rows_with_a_target(
    batch: Batch, network: Network, distilled: float
) -> None:
    expected = objective.losses(network, batch, distilled)
    rows = objective.forward(network, batch, objective.visibility(batch))
    actual = row_losses.losses(network, rows, batch, distilled)
    torch.testing.assert_close(actual.stream, expected.stream)
    torch.testing.assert_close(actual.canvas, expected.canvas)
    assert not actual.means().requires_grad, "a sum of these would keep every step's graph"
    means = actual.means().tolist()
    assert means[2:] == pytest.approx([expected.canvas_full, expected.canvas_partial], rel=1e-4)
    grads = [gradients_of(network, losses.stream + losses.canvas) for losses in (expected, actual)]
    for dense, fixed in zip(*grads, strict=True):
        torch.testing.assert_close(fixed, dense, atol=1e-5, rtol=1e-3)


def test_levels_group_the_canvases_by_their_share_of_masks(batch: Batch, network: Network) -> None:
    actual = row_losses.losses(network, objective.forward(network, batch, objective.visibility(batch)), batch, 0.0)
    weights = batch.weights[:, batch.stream_rows :]
    assert float(actual.weights[1:].sum()) == pytest.approx(float(weights.sum()), rel=1e-5)
    assert float(actual.weights[3]) == pytest.approx(float(weights[batch.masked <= 0.5].sum()), rel=1e-5)


def test_muon_of_many_matrices_equals_muon_of_each() -> None:
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
    for single, batched, initial in zip(chains[0][0], chains[1][0], start, strict=True):
        assert float((single - batched).detach().norm() / (single - initial).detach().norm()) < 0.03, (
            "the difference is larger than that of bf16"
        )
    chains[0][1].load_state_dict(chains[1][1].state_dict())
