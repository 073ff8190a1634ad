"""The objective: next-token loss over the stream, and masked-diffusion loss over many short canvases, in one forward.

Both predict the NEXT position: the row that holds position p, be it a known token or a mask, is asked for the token at
p + 1 (shifted logits, as Dream and DiffuCoder keep from their left-to-right parents). A canvas stands behind an anchor,
a token of the stream (<middle> for the hole's own); it sees the stream up to the anchor and all of itself, and is never
seen by the stream. The anchor's own row predicts the canvas's first position, exactly as left to right would; so that
position is always masked. One set of weights learns to read, to write left to right, and to denoise.
"""

import random

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from engine.models.network import Network
from engine.models.stream import Limits, Marks, lay_out
from engine.training.config import Config, Objective
from engine.training.holes import Hole


@attrs.define
class Batch:
    """B sequences of T stream rows and R canvas rows each; a target of weight 0 does not count.

    stream, stream_targets: int64 [B, T]; stream_weights: float32 [B, T]
    canvas, canvas_positions, canvas_targets: int64 [B, R]; canvas_weights: float32 [B, R]
    owners: int64 [B, R], the number of the canvas that a row belongs to
    anchors: int64 [B, R], the stream position that a row's canvas stands behind
    masked: float32 [B, R], the share of a row's canvas that is masked
    """

    stream: Tensor
    stream_targets: Tensor
    stream_weights: Tensor
    canvas: Tensor
    canvas_positions: Tensor
    canvas_targets: Tensor
    canvas_weights: Tensor
    owners: Tensor
    anchors: Tensor
    masked: Tensor


@attrs.frozen
class Losses:
    """Mean cross entropies in nats: of the stream, of all canvases, of those fully masked and of the others."""

    stream: Tensor
    canvas: Tensor
    canvas_full: float
    canvas_partial: float


class Collator:
    """Turns holes into batches."""

    def __init__(self, config: Config, tokenizer: Tokenizer, marks: Marks, seed: int) -> None:
        self._holes, self._objective, self._marks = config.holes, config.objective, marks
        self._tokenizer, self._rng = tokenizer, random.Random(seed)
        self._length = config.model.context_tokens
        self._lengths = [int(length) for length in config.objective.canvas_lengths]
        self._odds = list(config.objective.canvas_lengths.values())

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def batch(self, holes: list[Hole], rows: int) -> Batch:
        """Lay out holes with `rows` canvas rows each."""
        size, length, marks = len(holes), self._length, self._marks
        stream = np.full((size, length), marks.pad, np.int64)
        targets = np.full((size, length), marks.pad, np.int64)
        weights = np.zeros((size, length), np.float32)
        canvas = np.full((size, rows), marks.mask, np.int64)
        canvas_targets = np.full((size, rows), marks.pad, np.int64)
        canvas_weights = np.zeros((size, rows), np.float32)
        positions, owners, anchors = (np.zeros((size, rows), np.int64) for _ in range(3))
        masked = np.zeros((size, rows), np.float32)
        for row, hole in enumerate(holes):
            tokens, counted, prefix, middle_at = self._lay_out(hole)
            stream[row, : len(tokens)] = tokens
            targets[row, : len(tokens) - 1] = tokens[1:]
            weights[row, : len(tokens) - 1] = counted[1:]
            at = number = 0
            while at < rows:
                width = min(self._rng.choices(self._lengths, self._odds)[0], rows - at)
                anchor = middle_at if number == 0 else self._anchor(prefix, middle_at, len(tokens), width)
                part = slice(at, at + width)
                canvas[row, part], canvas_targets[row, part], canvas_weights[row, part], masked[row, part] = (
                    self._canvas(tokens, anchor, width)
                )
                owners[row, part], anchors[row, part] = number, anchor
                positions[row, part] = anchor + 1 + np.arange(width)
                at, number = at + width, number + 1
        arrays = (stream, targets, weights, canvas, positions, canvas_targets, canvas_weights, owners, anchors, masked)
        return Batch(*(torch.from_numpy(array) for array in arrays))

    def _lay_out(self, hole: Hole) -> tuple[list[int], NDArray[np.float32], slice, int]:
        """Return stream tokens, 1 for each that is a fair target, where the prefix stands, and where <middle> does."""
        rng, limits = self._rng, self._holes
        middle = self.encode(hole.middle)[: limits.middle_tokens]
        suffix = "" if rng.random() < limits.no_suffix else hole.suffix
        path = "" if rng.random() < limits.no_path else hole.path
        start = max(0, len(hole.prefix) - 6 * self._length)
        start = hole.prefix.find("\n", start) + 1 if start else 0
        room = Limits(self._length - len(middle) - 2, below=limits.suffix_tokens, tail=32)
        laid = lay_out(self.encode, self._marks, room, hole.prefix[start:], suffix, path, [])
        tokens = [*laid.tokens, self._marks.middle, *middle, self._marks.end]
        counted = np.zeros(len(tokens), np.float32)
        counted[laid.below.start + 1 : laid.below.stop] = 1
        counted[laid.prefix.start + 1 : laid.prefix.stop] = 1
        counted[len(laid.tokens) + 1 :] = 1
        return tokens, counted, laid.prefix, len(laid.tokens)

    def _anchor(self, prefix: slice, middle_at: int, length: int, width: int) -> int:
        """Draw an anchor inside the middle or anywhere in the prefix; the first canvas's is always <middle>."""
        last = prefix.stop - width - 2
        if last <= prefix.start or self._rng.random() < self._objective.hole_share:
            return self._rng.randrange(middle_at, length - 1)
        return self._rng.randrange(prefix.start, last)

    def _canvas(
        self, tokens: list[int], anchor: int, width: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], float]:
        objective, marks, rng = self._objective, self._marks, self._rng
        known = np.full(width + 1, marks.end, np.int64)
        available = tokens[anchor + 1 : anchor + width + 2]
        known[: len(available)] = available
        weights = np.ones(width + 1, np.float32)
        weights[len(available) :] = objective.padding_weight
        ratio = 1.0 if rng.random() < objective.fully_masked else rng.random()
        hidden = np.array([rng.random() < ratio for _ in range(width + 1)])
        hidden[0] = hidden[width] = True
        shown = np.where(hidden, marks.mask, known)
        return shown[:width], known[1:], weights[1:] * hidden[1:], float(ratio)


def visibility(batch: Batch) -> Tensor:
    """Return what canvas rows may see: bool [B, 1, R, T + R]."""
    before = torch.arange(batch.stream.shape[1], device=batch.stream.device) <= batch.anchors[..., None]
    own = batch.owners[:, :, None] == batch.owners[:, None, :]
    return torch.cat((before, own), dim=-1)[:, None]


def forward(network: Network, batch: Batch, visible: Tensor) -> tuple[Tensor, Tensor]:
    """Return trunk rows of the stream [B, T, width] and of the canvases [B, R, width]."""
    size, length = batch.stream.shape
    tokens = torch.cat((batch.stream, batch.canvas), 1)
    steps = torch.arange(length, device=tokens.device).expand(size, -1)
    positions = torch.cat((steps, batch.canvas_positions), 1)

    def attend(_: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        read = F.scaled_dot_product_attention(
            query[:, :, :length], key[:, :, :length], value[:, :, :length], is_causal=True
        )
        drawn = F.scaled_dot_product_attention(query[:, :, length:], key, value, attn_mask=visible)
        return torch.cat((read, drawn), 2).transpose(1, 2)

    rows = network.trunk(tokens, positions, attend)
    return rows[:, :length], rows[:, length:]


def losses(network: Network, batch: Batch) -> Losses:
    """Run one forward and return the losses; logits are computed only for rows that have a target."""
    read, drawn = forward(network, batch, visibility(batch))
    counted = batch.stream_weights > 0
    stream = _cross_entropy(network, read[counted], batch.stream_targets[counted]).mean()
    weights = batch.canvas_weights
    chosen = weights > 0
    each = _cross_entropy(network, drawn[chosen], batch.canvas_targets[chosen])
    weight = weights[chosen]
    full = (batch.masked == 1)[chosen]
    canvas = (each * weight).sum() / weight.sum()
    detached = each.detach() * weight

    def mean(part: Tensor) -> float:
        return float(detached[part].sum() / weight[part].sum().clamp(min=1e-6))

    return Losses(stream, canvas, mean(full), mean(~full))


def _cross_entropy(network: Network, rows: Tensor, targets: Tensor) -> Tensor:
    """Return the loss of each row [N], a thousand rows at a time: all logits at once would not fit any cache."""
    chunks = zip(torch.split(rows, 1024), torch.split(targets, 1024), strict=True)
    return torch.cat([F.cross_entropy(network.logits(part), wanted, reduction="none") for part, wanted in chunks])


def canvas_rows_at(objective: Objective, done: float) -> int:
    """Return the canvas rows a sequence at `done` (0 to 1) of the run: few at first, many later."""
    return objective.canvas_rows_early if done < objective.late_from else objective.canvas_rows_late
