"""What the logits of a canvas say, taken a chunk of rows at a time: a vocabulary is long, and so is a batch."""

from collections.abc import Sequence

import attrs
import torch
from torch import Tensor

from engine.models.diffusion_gemma.canvas import Canvas
from engine.models.diffusion_gemma.layers import DiffusionNetwork
from engine.models.diffusion_gemma.noise import Noise

CHUNK = 128
"""Rows whose logits are held at once: 128 MiB each time they are copied, with a vocabulary of 262,144."""
_NEVER = -1e9
"""The logit of a token that must not come; finite, so that nothing times it is not a number."""


@attrs.frozen
class RowReadings:
    """Of each row: the token drawn, the likeliest, its probability at temperature 1, the entropy (nats) at the row's
    temperature, each [rows], and the embedding that is expected there [rows, width]."""

    drawn: Tensor
    likeliest: Tensor
    confidence: Tensor
    entropy: Tensor
    signal: Tensor

    def part(self, start: int, stop: int) -> "RowReadings":
        """Return the rows from `start` up to `stop`."""
        return RowReadings(*(value[start:stop] for value in attrs.astuple(self, recurse=False)))


@attrs.frozen
class Draws:
    """How each row is drawn, all [rows]: the noise's key, the temperature, the likeliest share to draw from, and
    whether it takes the likeliest token. `some` tells, without asking the device, whether any row is drawn at all, and
    `cut` whether any share is below 1."""

    keys: Tensor
    temperature: Tensor
    top_p: Tensor
    greedy: Tensor
    some: bool
    cut: bool

    @classmethod
    def of(cls, canvases: Sequence[Canvas], temperatures: Sequence[float], keys: Tensor) -> "Draws":
        lengths = torch.tensor([canvas.length for canvas in canvases])

        def spread(values: Sequence[float]) -> Tensor:
            return torch.tensor(values).repeat_interleave(lengths).to(keys.device, non_blocking=True)

        drawn = [canvas for canvas in canvases if not canvas.greedy]
        return cls(
            keys=keys,
            temperature=spread(temperatures),
            top_p=spread([canvas.top_p for canvas in canvases]),
            greedy=spread([canvas.greedy for canvas in canvases]),
            some=bool(drawn),
            cut=any(canvas.top_p < 1 for canvas in drawn),
        )


def read_logits(
    network: DiffusionNetwork, noise: Noise, forbidden: Tensor, hidden: Tensor, draws: Draws
) -> RowReadings:
    """RowReadings at hidden states [rows, width]; `forbidden` tokens are given no probability."""
    looks = []
    for start in range(0, len(hidden), CHUNK):
        rows = slice(start, start + CHUNK)
        logits = network.logits(hidden[rows]).index_fill_(-1, forbidden, _NEVER)
        highest, likeliest = logits.max(-1)
        confidence = (highest - logits.logsumexp(-1)).exp()
        logits /= draws.temperature[rows, None]
        probabilities = logits.softmax(-1)
        entropy = logits.logsumexp(-1) - torch.linalg.vecdot(probabilities, logits)
        signal = network.expected_embedding(probabilities)
        drawn = likeliest
        if draws.some:
            shown = _likeliest_of(logits, probabilities, draws.top_p[rows, None]) if draws.cut else logits
            drawn = torch.where(draws.greedy[rows], likeliest, noise.draw(draws.keys[rows], shown))
        looks.append(RowReadings(drawn, likeliest, confidence, entropy, signal))
    columns = zip(*(attrs.astuple(one, recurse=False) for one in looks), strict=True)
    return RowReadings(*(torch.cat(parts) for parts in columns))


def _likeliest_of(logits: Tensor, probabilities: Tensor, top_p: Tensor) -> Tensor:
    """Return logits without the tokens outside the likeliest ones whose probabilities reach `top_p` [rows, 1]."""
    ordered, order = probabilities.sort(dim=-1, descending=True)
    outside = ordered.cumsum(-1) - ordered >= top_p
    return logits.masked_fill(torch.zeros_like(outside).scatter_(-1, order, outside), _NEVER)
