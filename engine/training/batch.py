"""A batch of training sequences: streams, each followed by its canvases."""

import attrs
import torch
from torch import Tensor

from engine.models.embedded.network import Rows


@attrs.define
class Batch:
    """B sequences of T stream rows, each followed by R canvas rows; a target of weight 0 does not count.

    tokens, positions, hints, strengths, targets: int64 [B, T + R]; grams: int64 [B, T + R, 2]; see network.Rows
    weights: float32 [B, T + R]
    owners: int64 [B, R], the number of the canvas that a row belongs to
    anchors: int64 [B, R], the stream position of the anchor of a row's canvas
    masked: float32 [B, R], the share of a row's canvas that is masked
    remembered: float32 [B, T], the memory's probability of a target over the weight of the network (MemoryOdds)
    agreeing: bool [B, vocabulary], the tokens that the row at <middle> may have; none where no word is begun
    """

    tokens: Tensor
    positions: Tensor
    hints: Tensor
    strengths: Tensor
    grams: Tensor
    targets: Tensor
    weights: Tensor
    owners: Tensor
    anchors: Tensor
    masked: Tensor
    remembered: Tensor
    agreeing: Tensor

    @property
    def stream_rows(self) -> int:
        """T, the number of stream rows of a sequence."""
        return self.tokens.shape[1] - self.owners.shape[1]

    @property
    def middles(self) -> Tensor:
        """The positions of <middle>, int64 [B]: the anchors of the first canvases."""
        return self.anchors[:, 0]

    @property
    def is_begun(self) -> Tensor:
        """Whether a word is begun at the hole, bool [B]; then begun.begun_losses counts for the row at <middle>."""
        return self.agreeing.any(1)

    @property
    def is_begun_row(self) -> Tensor:
        """The stream rows that are at <middle> behind a begun word, bool [B, T]."""
        rows = torch.arange(self.stream_rows, device=self.tokens.device)
        return (rows == self.middles[:, None]) & self.is_begun[:, None]

    @property
    def inputs(self) -> Rows:
        """The rows as the network takes them."""
        return Rows(self.tokens, self.positions, self.hints, self.strengths, self.grams)
