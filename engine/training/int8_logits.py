"""Logits in int8 of many rows, and what the losses need of them: peaks, sums of exponentials, and gradients in int8.

A gradient of logits is a distribution minus its target: one or two large numbers, and thousands that are too small for
int8 next to them, although only they push a wrong token down. So the few tokens that may be large (the target, and
those that a hint adds to) are taken out and stay in fp32. The others are scaled by the largest one left in their row
and rounded up or down at random, so that each is right on average. The random number of an entry is the fraction of
a_row + b_token: for any two entries these are independent.
"""

import attrs
import torch
from torch import Tensor

from engine.training.int8 import Int8Head, quantize

_TAKEN = -(2**31)
"""Marks a logit in an int8 product as taken out."""
_NONE = -1e30
"""A logit whose exponential is zero; unlike infinity it may be multiplied by zero."""


@attrs.frozen
class Guess:
    """The inputs of logits: rows [N, width], and the numbers `added` [N, k] to the logits of `tokens` int64 [N, k]."""

    rows: Tensor
    tokens: Tensor
    added: Tensor


@attrs.frozen
class Head:
    """A head's weight [vocabulary, width] in fp32, and in int8 for both directions.

    across: int8 [width, vocabulary] with one scale a token [1, vocabulary]
    down: int8 [vocabulary, width] with one scale a column [1, width]
    """

    weight: Tensor
    across: Tensor
    tokens: Tensor
    down: Tensor
    columns: Tensor
    compiled: bool

    @classmethod
    def of(cls, layer: Int8Head) -> "Head":
        """Quantize a head's present weight."""
        weight = layer.weight.detach()
        across, tokens = quantize(weight.t(), 0)
        return cls(layer.weight, across.contiguous(), tokens, *quantize(weight, 0), layer.compiled)


@attrs.frozen
class Logits:
    """Logits of M rows: int8 products [M, vocabulary] with a scale a row, and the `taken` [M, s] ones in fp32."""

    product: Tensor
    scale: Tensor
    taken: Tensor

    @classmethod
    def of(cls, head: Head, guess: Guess, apart: Tensor, repeated: Tensor) -> "Logits":
        """Take out the tokens `apart` [M, s]; `repeated` [M, s] marks tokens that a row has taken out already."""
        rows, scale = quantize(guess.rows, 1)
        product = torch._int_mm(rows, head.across)
        taken = product.gather(1, apart) * scale * head.tokens[0][apart]
        taken += ((apart[:, :, None] == guess.tokens[:, None]) * guess.added[:, None]).sum(-1)
        return cls(product.scatter_(1, apart, _TAKEN), scale, taken.masked_fill_(repeated, _NONE))

    def logarithm(self, top: Tensor, total: Tensor) -> Tensor:
        """Return the log of the sum of exponentials [M, 1]; top and total [M, 1] are those of the logits left."""
        return torch.cat((top + total.log(), self.taken), 1).logsumexp(1, keepdim=True)


def chance(rows: int, tokens: int) -> tuple[Tensor, Tensor]:
    """Return random numbers for rounding: a_row [rows, 1] and b_token [1, tokens]."""
    return torch.rand(rows, 1), torch.rand(1, tokens)


def peak(product: Tensor, scale: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Return the largest logit [M, 1], and the sum [M, 1] of exponentials of the logits minus that."""
    logits = _scaled(product, scale, tokens)
    top = logits.amax(1, keepdim=True)
    return top, (logits - top).exp().sum(1, keepdim=True)


def exponentials(
    out: Tensor, product: Tensor, scale: Tensor, tokens: Tensor, chance: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the result of `peak`, and write the exponentials to `out` in int8: times 254, minus 127."""
    logits = _scaled(product, scale, tokens)
    top = logits.amax(1, keepdim=True)
    shares = (logits - top).exp()
    out.copy_((_rounded(shares * 254, chance) - 127).to(torch.int8))
    return top, shares.sum(1, keepdim=True)


def difference(
    out: Tensor,
    products: tuple[Tensor, Tensor],
    scales: tuple[Tensor, Tensor],
    tokens: Tensor,
    logarithms: tuple[Tensor, Tensor],
    share: Tensor,
    bound: Tensor,
    chance: tuple[Tensor, Tensor],
) -> Tensor:
    """Write p - share * q to `out` in int8, where 127 means `bound`; return the sum [M] of q times p's logits.

    p are the probabilities of the row, q those of its teacher; share and bound [M, 1].
    """
    logits, other = (_scaled(product, scale, tokens) for product, scale in zip(products, scales, strict=True))
    wanted = (other - logarithms[1]).exp()
    left = (logits - logarithms[0]).exp() - share * wanted
    out.copy_(_rounded(left * (127 / bound), chance).to(torch.int8))
    return (wanted * logits).sum(1)


def _scaled(product: Tensor, scale: Tensor, tokens: Tensor) -> Tensor:
    return torch.where(product == _TAKEN, _NONE, product.float() * scale * tokens)


def _rounded(values: Tensor, chance: tuple[Tensor, Tensor]) -> Tensor:
    moved = chance[0] + chance[1]
    return (values + torch.where(moved >= 1, moved - 1, moved)).floor()


compiled_peak = torch.compile(peak)
compiled_exponentials = torch.compile(exponentials)
compiled_difference = torch.compile(difference)
