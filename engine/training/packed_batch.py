"""A batch on its way from a loader's worker to the device: one int32 array, half the size and one copy."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.models.embedded.layout import SpecialTokens
from engine.training.objective import Batch

Wire = NDArray[np.int32]
"""int32 [11, B, T + R]: tokens, positions, hints, strengths, grams (2), targets, and then, for canvas rows, owners and
anchors; weights and masked are the bits of float32."""
TOKENS, POSITIONS, HINTS, STRENGTHS, GRAMS, TARGETS, OWNERS, ANCHORS, WEIGHTS, MASKED = 0, 1, 2, 3, 4, 6, 7, 8, 9, 10


def blank(size: int, length: int, rows: int, marks: SpecialTokens) -> Wire:
    """Return a batch of `size` sequences, `length` stream and `rows` canvas rows each, in which nothing counts."""
    wire = np.zeros((11, size, length + rows), np.int32)
    wire[TOKENS] = wire[TARGETS] = marks.pad
    wire[POSITIONS] = np.arange(length + rows)
    return wire


def floats(wire: Wire, plane: int) -> NDArray[np.float32]:
    """Return a plane of float32 [B, T + R], to read and to write."""
    bits: NDArray[np.float32] = wire[plane].view(np.float32)
    return bits


def counted(wire: Tensor, length: int) -> tuple[int, int]:
    """Return how many stream rows and how many canvas rows of a batch count; `wire` lies in ordinary memory."""
    weights = wire[WEIGHTS].view(torch.float32) > 0
    return int(weights[:, :length].sum()), int(weights[:, length:].sum())


def unfold(wire: Tensor, length: int, device: torch.device) -> Batch:
    """Return the batch of a wire on `device`; from pinned memory the copy runs beside what the device does."""
    moved = wire.to(device, non_blocking=True)
    whole = moved[:WEIGHTS].long()
    return Batch(
        tokens=whole[TOKENS],
        positions=whole[POSITIONS],
        hints=whole[HINTS],
        strengths=whole[STRENGTHS],
        grams=whole[GRAMS : GRAMS + 2].permute(1, 2, 0).contiguous(),
        targets=whole[TARGETS],
        weights=moved[WEIGHTS].view(torch.float32),
        owners=whole[OWNERS, :, length:],
        anchors=whole[ANCHORS, :, length:],
        masked=moved[MASKED, :, length:].view(torch.float32),
    )
