"""A batch as one int32 array, for the way from a loader's worker to the device: half the size, and one copy."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.models.embedded.layout import SpecialTokens
from engine.models.embedded.shape import Shape
from engine.training.batch import Batch
from engine.training.begun import agreement

PackedBatch = NDArray[np.int32]
"""int32 [12, B, T + R]: tokens, positions, hints, strengths, grams (2) and targets, then owners and anchors of the
canvas rows; weights, masked and remembered hold the bits of float32. In the plane of owners, the stream's columns hold
the tokens that agree with the typed text (begun.words).
"""
TOKENS, POSITIONS, HINTS, STRENGTHS, GRAMS, TARGETS, OWNERS, ANCHORS = 0, 1, 2, 3, 4, 6, 7, 8
WEIGHTS, MASKED, REMEMBERED = 9, 10, 11


def blank(size: int, length: int, rows: int, special_tokens: SpecialTokens) -> PackedBatch:
    """Return a batch of `size` sequences, `length` stream and `rows` canvas rows each, without any target."""
    packed = np.zeros((12, size, length + rows), np.int32)
    packed[TOKENS] = packed[TARGETS] = special_tokens.pad
    packed[POSITIONS] = np.arange(length + rows)
    return packed


def floats(packed: PackedBatch, plane: int) -> NDArray[np.float32]:
    """Return a plane as float32 [B, T + R]; writing to it changes the packed batch."""
    bits: NDArray[np.float32] = packed[plane].view(np.float32)
    return bits


def counted(packed: Tensor, length: int) -> tuple[int, int]:
    """Return how many stream rows and how many canvas rows have a target; `packed` lies in host memory."""
    weights = packed[WEIGHTS].view(torch.float32) > 0
    return int(weights[:, :length].sum()), int(weights[:, length:].sum())


def unpack(packed: Tensor, shape: Shape, device: torch.device) -> Batch:
    """Return a packed batch as a Batch on `device`. From pinned memory, the copy runs while the device works."""
    moved, length = packed.to(device, non_blocking=True), shape.context_tokens
    integers = moved[:WEIGHTS].long()
    return Batch(
        tokens=integers[TOKENS],
        positions=integers[POSITIONS],
        hints=integers[HINTS],
        strengths=integers[STRENGTHS],
        grams=integers[GRAMS : GRAMS + 2].permute(1, 2, 0).contiguous(),
        targets=integers[TARGETS],
        weights=moved[WEIGHTS].view(torch.float32),
        owners=integers[OWNERS, :, length:],
        anchors=integers[ANCHORS, :, length:],
        masked=moved[MASKED, :, length:].view(torch.float32),
        remembered=moved[REMEMBERED, :, :length].view(torch.float32),
        agreeing=agreement(moved[OWNERS, :, :length], shape.vocabulary),
    )
