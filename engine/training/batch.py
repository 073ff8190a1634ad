"""A batch of training sequences: streams, each followed by its canvases."""

import attrs
import torch
from torch import Tensor


@attrs.define
class Batch:
    """B sequences of T stream rows, each followed by R rows of canvases.

    A target of weight 0 does not count.

    tokens, positions, targets: int64 [B, T + R]
    weights: float32 [B, T + R]
    owners: int64 [B, R], the number of the canvas that a row belongs to
    anchors: int64 [B, R], the stream position of the anchor of a row's canvas
    masked: float32 [B, R], the share of a row's canvas that is masked
    middles: int64 [B], the positions of <middle>
    agreeing: bool [B, vocabulary], the tokens that the row at <middle> may have; none where no word is begun
    """

    tokens: Tensor
    positions: Tensor
    targets: Tensor
    weights: Tensor
    owners: Tensor
    anchors: Tensor
    masked: Tensor
    middles: Tensor
    agreeing: Tensor

    @property
    def stream_rows(self) -> int:
        """T, the number of stream rows of a sequence."""
        return self.tokens.shape[1] - self.owners.shape[1]

    @property
    def is_begun(self) -> Tensor:
        """Whether a word is begun at the hole, bool [B]; then objective.begun_losses counts for the row at <middle>."""
        return self.agreeing.any(1)

    @property
    def is_begun_row(self) -> Tensor:
        """The rows that are at <middle> after a begun word, bool [B, T + R]."""
        rows = torch.arange(self.tokens.shape[1], device=self.tokens.device)
        return (rows == self.middles[:, None]) & self.is_begun[:, None]

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on a device."""
        return Batch(*(part.to(device) for part in attrs.astuple(self, recurse=False)))
