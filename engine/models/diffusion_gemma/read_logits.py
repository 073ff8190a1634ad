"""Reads the logits of a canvas, a chunk of rows at a time: the vocabulary is large, and so is a batch."""

from collections.abc import Sequence

import attrs
import torch
from torch import Tensor

from engine.fill.sampler import NEVER
from engine.models.diffusion_gemma.canvas import Canvas
from engine.models.diffusion_gemma.layers import DiffusionNetwork
from engine.models.diffusion_gemma.noise import Noise

CHUNK = 128
"""Rows whose logits are in memory at once: 128 MiB per copy, with a vocabulary of 262,144."""


@attrs.frozen
class RowReadings:
    """What the logits say of each row, [rows] or [rows, width].

    drawn: the drawn token; likeliest, confidence: the most likely token and its probability at temperature 1
    entropy: in nats, at the row's temperature
    signal: the expected embedding [rows, width], at the row's temperature
    """

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
    """How each row is drawn: the key of its noise, temperature, top-p, and whether it takes the most likely token.

    All are [rows], on the device. `any_drawn` (any row is not greedy) and `any_top_p` (any drawn row has a top-p below
    1) are known on the host, so that a step need not ask the device.
    """

    keys: Tensor
    temperature: Tensor
    top_p: Tensor
    greedy: Tensor
    any_drawn: bool
    any_top_p: bool

    @classmethod
    def of(cls, canvases: Sequence[Canvas], temperatures: Sequence[float], keys: Tensor) -> "Draws":
        lengths = torch.tensor([canvas.length for canvas in canvases])

        def per_row(values: Sequence[float]) -> Tensor:
            return torch.tensor(values).repeat_interleave(lengths).to(keys.device, non_blocking=True)

        drawn = [canvas for canvas in canvases if not canvas.greedy]
        return cls(
            keys=keys,
            temperature=per_row(temperatures),
            top_p=per_row([canvas.top_p for canvas in canvases]),
            greedy=per_row([canvas.greedy for canvas in canvases]),
            any_drawn=bool(drawn),
            any_top_p=any(canvas.top_p < 1 for canvas in drawn),
        )


def read_logits(
    network: DiffusionNetwork, noise: Noise, forbidden: Tensor, hidden: Tensor, draws: Draws
) -> RowReadings:
    """Return the readings of hidden states [rows, width]. `forbidden` tokens get no probability."""
    chunks = []
    for start in range(0, len(hidden), CHUNK):
        rows = slice(start, start + CHUNK)
        logits = network.logits(hidden[rows]).index_fill_(-1, forbidden, NEVER)
        highest, likeliest = logits.max(-1)
        confidence = (highest - logits.logsumexp(-1)).exp()
        logits /= draws.temperature[rows, None]
        probabilities = logits.softmax(-1)
        entropy = logits.logsumexp(-1) - torch.linalg.vecdot(probabilities, logits)
        signal = network.expected_embedding(probabilities)
        drawn = likeliest
        if draws.any_drawn:
            kept = _within_top_p(logits, probabilities, draws.top_p[rows, None]) if draws.any_top_p else logits
            drawn = torch.where(draws.greedy[rows], likeliest, noise.draw(draws.keys[rows], kept))
        chunks.append(RowReadings(drawn, likeliest, confidence, entropy, signal))
    columns = zip(*(attrs.astuple(chunk, recurse=False) for chunk in chunks), strict=True)
    return RowReadings(*(torch.cat(parts) for parts in columns))


def _within_top_p(logits: Tensor, probabilities: Tensor, top_p: Tensor) -> Tensor:
    """Return logits that allow only the most likely tokens whose probabilities reach `top_p` [rows, 1]."""
    ordered, order = probabilities.sort(dim=-1, descending=True)
    outside = ordered.cumsum(-1) - ordered >= top_p
    return logits.masked_fill(torch.zeros_like(outside).scatter_(-1, order, outside), NEVER)
