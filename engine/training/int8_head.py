"""What the head costs in training, in int8: logits, cross entropies and gradients of many rows in one go.

Logits are made once, and the gradients with them, so that nothing of [N, vocabulary] is kept but eight bits each. A
gradient of logits is a distribution less what was wanted: one or two large numbers, and thousands that are too small
for int8 beside them and yet are all that pushes a wrong token down. So the few tokens that may be large (the target,
and those that a hint adds to) are taken out and go into the gradients in fp32; the others are scaled by the largest
that is left in their row and rounded up or down by chance, such that each is right on average. For chance the
fraction of a_row + b_token does: of any two entries it is independent.
"""

from typing import Any

import attrs
import torch
from torch import Tensor

from engine.training.int8 import Int8Head, quantize

PART = 1024
"""Rows whose logits are computed at once: all of them would not fit any cache."""
_TAKEN = -(2**31)
"""Stands in a product of int8 for a logit that was taken out."""
_NONE = -1e30
"""A logit whose exponential is zero; unlike infinity it may be multiplied by zero."""


@attrs.frozen
class Guess:
    """What logits are made of: rows [N, width], and what is `added` [N, k] to the logits of `tokens` int64 [N, k]."""

    rows: Tensor
    tokens: Tensor
    added: Tensor


@attrs.frozen
class Lesson:
    """What rows are taught beside their targets: `share` [N] of what the logits of `teacher` say, without gradient."""

    teacher: Guess
    share: Tensor


@attrs.frozen
class Head:
    """A head's weight [vocabulary, width] in fp32, and in int8 for both directions.

    across: int8 [width, vocabulary] with a scale a token [1, vocabulary]
    down: int8 [vocabulary, width] with a scale a column [1, width]
    """

    weight: Tensor
    across: Tensor
    tokens: Tensor
    down: Tensor
    columns: Tensor
    compiled: bool

    @classmethod
    def of(cls, layer: Int8Head) -> "Head":
        weight = layer.weight.detach()
        across, tokens = quantize(weight.t(), 0)
        return cls(layer.weight, across.contiguous(), tokens, *quantize(weight, 0), layer.compiled)


@attrs.frozen
class _Logits:
    """Logits of M rows: int8 products [M, vocabulary] to be scaled, without the `taken` [M, s], which are in fp32."""

    product: Tensor
    scale: Tensor
    taken: Tensor

    @classmethod
    def of(cls, head: Head, guess: Guess, apart: Tensor, repeated: Tensor) -> "_Logits":
        """Take out the tokens `apart` [M, s], of which those marked as `repeated` stand there already."""
        rows, scale = quantize(guess.rows, 1)
        product = torch._int_mm(rows, head.across)
        taken = product.gather(1, apart) * scale * head.tokens[0][apart]
        taken += ((apart[:, :, None] == guess.tokens[:, None]) * guess.added[:, None]).sum(-1)
        return cls(product.scatter_(1, apart, _TAKEN), scale, taken.masked_fill_(repeated, _NONE))

    def logarithm(self, top: Tensor, total: Tensor) -> Tensor:
        """Return the logarithm [M, 1] of the sum of exponentials; top and total [M, 1] are of what is not taken."""
        return torch.cat((top + total.log(), self.taken), 1).logsumexp(1, keepdim=True)


@attrs.frozen
class _Found:
    """Of M rows: losses [M], and the gradient of the second in logits: of `apart` [M, s], the rest int8 times scale."""

    plain: Tensor
    taught: Tensor
    apart: Tensor
    scale: Tensor


def _scaled(product: Tensor, scale: Tensor, tokens: Tensor) -> Tensor:
    return torch.where(product == _TAKEN, _NONE, product.float() * scale * tokens)


def _chance(rows: int, tokens: int) -> tuple[Tensor, Tensor]:
    return torch.rand(rows, 1), torch.rand(1, tokens)


def _rounded(values: Tensor, chance: tuple[Tensor, Tensor]) -> Tensor:
    moved = chance[0] + chance[1]
    return (values + torch.where(moved >= 1, moved - 1, moved)).floor()


def _peak(product: Tensor, scale: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Return the largest logit [M, 1] and the sum [M, 1] of the exponentials of all less it."""
    logits = _scaled(product, scale, tokens)
    top = logits.amax(1, keepdim=True)
    return top, (logits - top).exp().sum(1, keepdim=True)


def _exponentials(
    out: Tensor, product: Tensor, scale: Tensor, tokens: Tensor, chance: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Return what _peak does, and write the exponentials to `out` in int8: 254 times as large, less 127."""
    logits = _scaled(product, scale, tokens)
    top = logits.amax(1, keepdim=True)
    shares = (logits - top).exp()
    out.copy_((_rounded(shares * 254, chance) - 127).to(torch.int8))
    return top, shares.sum(1, keepdim=True)


def _difference(
    out: Tensor,
    products: tuple[Tensor, Tensor],
    scales: tuple[Tensor, Tensor],
    tokens: Tensor,
    logarithms: tuple[Tensor, Tensor],
    share: Tensor,
    bound: Tensor,
    chance: tuple[Tensor, Tensor],
) -> Tensor:
    """Write p - share * q to `out` in int8, 127 standing for `bound`, and return the sum [M] of q times p's logits.

    p are a row's own probabilities, q its teacher's; share and bound [M, 1].
    """
    logits, other = (_scaled(product, scale, tokens) for product, scale in zip(products, scales, strict=True))
    wanted = (other - logarithms[1]).exp()
    left = (logits - logarithms[0]).exp() - share * wanted
    out.copy_(_rounded(left * (127 / bound), chance).to(torch.int8))
    return (wanted * logits).sum(1)


_compiled_peak = torch.compile(_peak)
_compiled_exponentials = torch.compile(_exponentials)
_compiled_difference = torch.compile(_difference)


def _alone(out: Tensor, head: Head, guess: Guess, apart: Tensor, repeated: Tensor) -> _Found:
    measure = _compiled_exponentials if head.compiled else _exponentials
    logits = _Logits.of(head, guess, apart, repeated)
    top, total = measure(out, logits.product, logits.scale, head.tokens, _chance(*out.shape))
    whole = logits.logarithm(top, total)
    gradient = (logits.taken - whole).exp()
    gradient[:, :1] = (logits.taken[:, :1] - whole).expm1()
    plain = (whole - logits.taken[:, :1])[:, 0]
    return _Found(plain, plain, gradient, (top - whole).exp() / 254)


def _taught(out: Tensor, head: Head, guess: Guess, lesson: Lesson, apart: Tensor, repeated: Tensor) -> _Found:
    measure, subtract = (_compiled_peak, _compiled_difference) if head.compiled else (_peak, _difference)
    own, other = (_Logits.of(head, each, apart, repeated) for each in (guess, lesson.teacher))
    tops, totals = zip(*(measure(each.product, each.scale, head.tokens) for each in (own, other)), strict=True)
    whole, whole_other = own.logarithm(tops[0], totals[0]), other.logarithm(tops[1], totals[1])
    share = lesson.share[:, None]
    bound = torch.maximum((tops[0] - whole).exp(), share * (tops[1] - whole_other).exp()).clamp(min=1e-30)
    products, scales, wholes = (own.product, other.product), (own.scale, other.scale), (whole, whole_other)
    cross = subtract(out, products, scales, head.tokens, wholes, share, bound, _chance(*out.shape))
    wanted = (other.taken - whole_other).exp()
    gradient = (own.taken - whole).exp() - share * wanted
    gradient[:, :1] = (own.taken[:, :1] - whole).expm1() - share * (other.taken[:, :1] - whole_other).expm1()
    target = own.taken[:, 0]
    agreed = cross + (wanted * own.taken).sum(1)
    taught = whole[:, 0] - lesson.share * agreed - (1 - lesson.share) * target
    return _Found(whole[:, 0] - target, taught, gradient, bound / 127)


class _Losses(torch.autograd.Function):
    """The weighted sum of losses, and the losses against the targets alone."""

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
    ) -> tuple[Tensor, Tensor]:
        others = () if lesson is None else (lesson.teacher.tokens,)
        apart = torch.cat((targets[:, None], tokens, *others), 1)
        repeated = (apart[:, :, None] == apart[:, None]).tril(-1).any(-1)
        steep = torch.empty(len(rows), len(weight), dtype=torch.int8)
        found: list[_Found] = []
        for start in range(0, len(rows), PART):
            part = slice(start, start + PART)
            guess, places = Guess(rows[part], tokens[part], added[part]), (apart[part], repeated[part])
            if lesson is None:
                found.append(_alone(steep[part], head, guess, *places))
            else:
                other = Guess(*(each[part] for each in attrs.astuple(lesson.teacher, recurse=False)))
                found.append(_taught(steep[part], head, guess, Lesson(other, lesson.share[part]), *places))
        plain, taught, exact, scale = (
            torch.cat(each) for each in zip(*(attrs.astuple(one, recurse=False) for one in found), strict=True)
        )
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
        return *(gradient * each for each in context.saved_tensors), None, None, None, None, None


def _product(left: Tensor, right: Tensor, middle: int) -> Tensor:
    """Return left + middle times right, where both are int8, in fp32."""
    found = torch._int_mm(left, right)
    if middle:
        found += middle * right.sum(0, dtype=torch.int32)
    return found.float()


def losses(
    head: Head, guess: Guess, targets: Tensor, weights: Tensor, lesson: Lesson | None = None
) -> tuple[Tensor, Tensor]:
    """Return the sum of losses times `weights` [N], to be descended, and the cross entropies [N] against `targets` [N].

    The gradients are made here, so this costs the same where nobody asks for them.
    """
    if not len(weights):
        return guess.rows.sum(), weights
    found: tuple[Tensor, Tensor] = _Losses.apply(  # type: ignore[no-untyped-call]
        guess.rows, guess.added, head.weight, head, guess.tokens, targets, weights, lesson
    )
    return found
