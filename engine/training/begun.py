"""The loss of the row at the cursor, over the tokens that agree with the typed text.

Where a word is begun, a fill's first token is chosen among those that begin with what is typed (token_healing.py). So
its loss is taken over these tokens only: the network learns how sure it may be, and which of them it is.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from engine.models.embedded.network import Network
from engine.training.batch import Batch

WORD = 32
"""Tokens whose agreement one int32 holds."""


def words(agreeing: list[int], vocabulary: int) -> NDArray[np.int32]:
    """Return the agreeing tokens as bits, int32 [vocabulary / 32], rounded up."""
    bits = np.zeros(-(-vocabulary // WORD) * WORD, np.uint8)
    bits[agreeing] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def agreement(packed: Tensor, vocabulary: int) -> Tensor:
    """Return the bits of words int32 [B, vocabulary / 32 or more] as bool [B, vocabulary]."""
    shifts = torch.arange(WORD, dtype=torch.int32, device=packed.device)
    bits = (packed[:, : -(-vocabulary // WORD), None] >> shifts) & 1
    return bits.flatten(1)[:, :vocabulary].bool()


def begun_losses(network: Network, rows: Tensor, batch: Batch) -> Tensor:
    """Return the cross entropies [B] of the rows at <middle>; without a begun word nothing is to be learned from one.

    rows: [B, T + R, width], of the trunk.
    """
    each = torch.arange(len(rows), device=rows.device)
    middle = batch.middles
    logits = network.logits(rows[each, middle], batch.hints[each, middle], batch.strengths[each, middle])
    allowed = batch.agreeing | ~batch.is_begun[:, None]
    return F.cross_entropy(logits.masked_fill(~allowed, -torch.inf), batch.targets[each, middle], reduction="none")
