"""The head's losses in int8: logits, cross entropies and gradients of many rows at once.

Logits are computed once, and the gradients together with them, so only eight bits of each [N, vocabulary] number are
kept. int8_logits.py explains the rounding.
"""

from typing import Any

import attrs
import torch
from torch import Tensor

from engine.training.int8_logits import (
    Guess,
    Head,
    Logits,
    chance,
    compiled_difference,
    compiled_exponentials,
    compiled_peak,
    difference,
    exponentials,
    peak,
)

PART = 1024
"""Rows whose logits are computed at once: all of them would not fit any cache."""
_MOST_NATS = 60.0
"""The exponential of a larger loss may overflow."""


@attrs.frozen
class Lesson:
    """A second target of rows: `share` [N] of the loss is against the logits of `teacher`, without gradient."""

    teacher: Guess
    share: Tensor


@attrs.frozen
class _Judged:
    """Losses of M rows against the target (`plain`) and with the teacher (`taught`), and the gradient of `taught`.

    The gradient in logits: `apart` [M, s] in fp32, and `scale` [M, 1] for the int8 rest.
    """

    plain: Tensor
    taught: Tensor
    apart: Tensor
    scale: Tensor


def _alone(out: Tensor, head: Head, guess: Guess, apart: Tensor, repeated: Tensor) -> _Judged:
    """Return the losses of rows without a teacher; write their gradient's int8 part to `out`."""
    measure = compiled_exponentials if head.compiled else exponentials
    logits = Logits.of(head, guess, apart, repeated)
    top, sum_left = measure(out, logits.product, logits.scale, head.tokens, chance(*out.shape))
    total_log = logits.logarithm(top, sum_left)
    gradient = (logits.taken - total_log).exp()
    gradient[:, :1] = (logits.taken[:, :1] - total_log).expm1()
    plain = (total_log - logits.taken[:, :1])[:, 0]
    return _Judged(plain, plain, gradient, (top - total_log).exp() / 254)


def _taught(out: Tensor, head: Head, guess: Guess, lesson: Lesson, apart: Tensor, repeated: Tensor) -> _Judged:
    """Return the losses of rows with a teacher; write their gradient's int8 part to `out`."""
    measure, subtract = (compiled_peak, compiled_difference) if head.compiled else (peak, difference)
    own, other = (Logits.of(head, each, apart, repeated) for each in (guess, lesson.teacher))
    tops, totals = zip(*(measure(each.product, each.scale, head.tokens) for each in (own, other)), strict=True)
    total_log, teacher_log = own.logarithm(tops[0], totals[0]), other.logarithm(tops[1], totals[1])
    share = lesson.share[:, None]
    bound = torch.maximum((tops[0] - total_log).exp(), share * (tops[1] - teacher_log).exp()).clamp(min=1e-30)
    products, scales, logs = (own.product, other.product), (own.scale, other.scale), (total_log, teacher_log)
    cross = subtract(out, products, scales, head.tokens, logs, share, bound, chance(*out.shape))
    teacher_shares = (other.taken - teacher_log).exp()
    gradient = (own.taken - total_log).exp() - share * teacher_shares
    gradient[:, :1] = (own.taken[:, :1] - total_log).expm1() - share * (other.taken[:, :1] - teacher_log).expm1()
    target = own.taken[:, 0]
    agreed = cross + (teacher_shares * own.taken).sum(1)
    taught = total_log[:, 0] - lesson.share * agreed - (1 - lesson.share) * target
    return _Judged(total_log[:, 0] - target, taught, gradient, bound / 127)


class _Losses(torch.autograd.Function):
    """The weighted sum of losses, and the losses against the targets only."""

    @staticmethod
    def forward(
        context: Any,
        rows: Tensor,
        added: Tensor,
        weight: Tensor,
        head: Head,
        tokens: Tensor,
        targets: Tensor,
        weights: Tensor,
        lesson: Lesson | None,
        remembered: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        others = () if lesson is None else (lesson.teacher.tokens,)
        apart = torch.cat((targets[:, None], tokens, *others), 1)
        repeated = (apart[:, :, None] == apart[:, None]).tril(-1).any(-1)
        steep = torch.empty(len(rows), len(weight), dtype=torch.int8)
        judged: list[_Judged] = []
        for start in range(0, len(rows), PART):
            part = slice(start, start + PART)
            guess, taken_out = Guess(rows[part], tokens[part], added[part]), (apart[part], repeated[part])
            if lesson is None:
                judged.append(_alone(steep[part], head, guess, *taken_out))
            else:
                other = Guess(*(each[part] for each in attrs.astuple(lesson.teacher, recurse=False)))
                judged.append(_taught(steep[part], head, guess, Lesson(other, lesson.share[part]), *taken_out))
        plain, taught, exact, scale = (
            torch.cat(each) for each in zip(*(attrs.astuple(result, recurse=False) for result in judged), strict=True)
        )
        if remembered is not None:
            # The gradient of -log(p + remembered) is that of -log(p) times the network's share of the probability.
            added_odds = remembered * plain.clamp(max=_MOST_NATS).exp()
            taught, share = plain - added_odds.log1p(), 1 / (1 + added_odds)
            exact, scale = exact * share[:, None], scale * share[:, None]
        exact *= weights[:, None]
        scale *= weights[:, None]
        middle = 127 if lesson is None else 0
        by_rows = _product(steep, head.down, middle) * head.columns * scale
        by_rows += torch.bmm(exact[:, None], weight[apart])[:, 0]
        scaled = rows * scale
        columns = scaled.abs().amax(0, keepdim=True).clamp(min=1e-30) / 127
        coarse = (scaled / columns + torch.rand_like(scaled)).floor().to(torch.int8)
        by_weight = _product(steep.t(), coarse, middle) * columns
        by_weight.index_add_(0, apart.flatten(), (exact[:, :, None] * rows[:, None]).flatten(0, 1))
        by_added = ((apart[:, :, None] == tokens[:, None]) * exact[:, :, None]).sum(1)
        context.save_for_backward(by_rows, by_added, by_weight)
        context.mark_non_differentiable(plain)
        return (taught * weights).sum(), plain

    @staticmethod
    def backward(context: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return *(gradient * each for each in context.saved_tensors), None, None, None, None, None, None


def _product(left: Tensor, right: Tensor, middle: int) -> Tensor:
    """Return (left + middle) times right in fp32; both are int8."""
    product = torch._int_mm(left, right)
    if middle:
        product += middle * right.sum(0, dtype=torch.int32)
    return product.float()


def losses(
    head: Head,
    guess: Guess,
    targets: Tensor,
    weights: Tensor,
    lesson: Lesson | None = None,
    remembered: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the sum of losses times `weights` [N], to be descended, and the cross entropies [N] against `targets` [N].

    remembered: [N], the probability that the memory adds to that of the targets (objective.mixed); not with a lesson.
    The gradients are computed here too, so the cost is the same without a backward pass.
    """
    if not len(weights):
        return guess.rows.sum(), weights
    result: tuple[Tensor, Tensor] = _Losses.apply(  # type: ignore[no-untyped-call]
        guess.rows, guess.added, head.weight, head, guess.tokens, targets, weights, lesson, remembered
    )
    return result
