"""The head's losses in int8, and Muon on Gram matrices, compared with the plain computation in fp32."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.training import int8_head
from engine.training.int8 import Int8Head, products_are_exact
from engine.training.int8_head import Lesson
from engine.training.int8_logits import Guess, Head
from engine.training.muon import orthogonalize

ROWS, WIDTH, VOCABULARY = 300, 64, 500

int8_is_exact = pytest.mark.skipif(
    not products_are_exact(), reason="torch's int8 products overflow on this processor; training runs in fp32 here"
)


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


def drawn_head() -> Int8Head:
    layer = Int8Head(WIDTH, VOCABULARY, bias=False)
    layer.weight.data = torch.randn(VOCABULARY, WIDTH) * 0.3
    layer.compiled = False
    return layer


def drawn_guess(tokens: int) -> Guess:
    rows, added = torch.randn(ROWS, WIDTH), torch.randn(ROWS, tokens) + 2
    return Guess(rows.requires_grad_(), torch.randint(VOCABULARY, (ROWS, tokens)), added.requires_grad_())


def exact_logits(weight: Tensor, guess: Guess) -> Tensor:
    return (guess.rows @ weight.t()).scatter_add(1, guess.tokens, guess.added)


def gradients(loss: Tensor, guess: Guess, layer: nn.Linear) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss, (guess.rows, guess.added, layer.weight))


def distance(actual: Tensor, expected: Tensor) -> float:
    return float(((actual - expected).norm() / expected.norm()).detach())


@int8_is_exact
@pytest.mark.parametrize("tokens", [1, 2])
@pytest.mark.parametrize("share", [None, 0.5, 0.0])
def test_losses_and_gradients_in_int8_are_close_to_fp32(
    tokens: int, share: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(int8_head, "PART", 128)  # several parts, the last one shorter
    layer, guess, teacher = drawn_head(), drawn_guess(tokens), drawn_guess(tokens)
    targets, weights = torch.randint(VOCABULARY, (ROWS,)), torch.rand(ROWS) / ROWS
    targets[:100] = guess.tokens[:100, 0]  # a right hint: its token appears twice
    guess.tokens[50:60] = guess.tokens[50:60, :1]
    taught = torch.zeros(ROWS) if share is None else torch.full((ROWS,), share)
    taught[::7] = 0

    logarithms = exact_logits(layer.weight, guess).log_softmax(-1)
    teacher_probabilities = exact_logits(layer.weight, teacher).softmax(-1).detach() * taught[:, None]
    teacher_probabilities[torch.arange(ROWS), targets] += 1 - taught
    expected = -((logarithms * teacher_probabilities).sum(-1) * weights).sum()
    lesson = None if share is None else Lesson(teacher, taught)
    loss, plain = int8_head.losses(Head.of(layer), guess, targets, weights, lesson)

    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=0.002)
    assert not plain.requires_grad
    torch.testing.assert_close(plain, F.nll_loss(logarithms, targets, reduction="none"), atol=0.1, rtol=0)
    for actual, exact in zip(gradients(loss, guess, layer), gradients(expected, guess, layer), strict=True):
        assert distance(actual, exact) < 0.03


@int8_is_exact
def test_wrong_tokens_too_improbable_for_int8_are_still_pushed_down() -> None:
    layer, guess = drawn_head(), drawn_guess(1)
    guess.tokens.fill_(0)
    targets, weights = torch.zeros(ROWS, dtype=torch.int64), torch.ones(ROWS) / ROWS
    with torch.no_grad():  # one token has nearly all probability and is neither target nor hint
        layer.weight *= 0.02
        layer.weight[1] = 0.15
        guess.rows.abs_()
    loss = F.cross_entropy(exact_logits(layer.weight, guess), targets)
    expected = torch.autograd.grad(loss, layer.weight)[0][2:]
    probabilities = exact_logits(layer.weight, guess).softmax(-1).detach()
    assert float((probabilities[:, 2:] / probabilities[:, 1:2]).median()) < 0.5 / 254, (
        "the nearest step of int8 is not zero"
    )
    total = torch.zeros_like(expected)
    for _ in range(20):
        int8_loss, _ = int8_head.losses(Head.of(layer), guess, targets, weights)
        total += torch.autograd.grad(int8_loss, layer.weight)[0][2:] / 20
    along = float((total * expected).sum() / expected.square().sum())
    assert along == pytest.approx(1, abs=0.1)


def test_the_loss_of_no_rows_is_zero() -> None:
    layer = drawn_head()
    guess = Guess(torch.zeros(0, WIDTH, requires_grad=True), torch.zeros(0, 1, dtype=torch.int64), torch.zeros(0, 1))
    loss, plain = int8_head.losses(Head.of(layer), guess, torch.zeros(0, dtype=torch.int64), torch.zeros(0))
    assert float(loss.detach()) == 0
    assert plain.shape == (0,)
    torch.autograd.backward(loss)


@pytest.mark.parametrize("shape", [(48, 160), (160, 48), (64, 64)])
def test_iterating_the_gram_matrix_equals_newton_schulz(shape: tuple[int, int]) -> None:
    update = torch.randn(shape) * torch.logspace(0, -2, shape[1])
    expected = update / (update.norm() + 1e-7)
    for _ in range(5):
        gram = expected @ expected.T
        expected = 3.4445 * expected + (-4.7750 * gram + 2.0315 * gram @ gram) @ expected
    assert distance(orthogonalize(update), expected) < 1e-3
