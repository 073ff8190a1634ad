"""The loss of the row at the cursor, over the tokens that agree with the typed text.

Where a word is begun, a fill's first token is chosen among those that begin with what is typed (token_healing.py). So
its loss is taken over these tokens only: the network learns how sure it may be, and which of them it is.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from engine.models.embedded.network import Network
from engine.training.batch import Batch


def begun_losses(network: Network, rows: Tensor, batch: Batch) -> Tensor:
    """Return the cross entropies [n] of the rows at <middle> of the sequences where a word is begun.

    rows: [B, T + S, width], of the trunk.
    """
    begun = torch.nonzero(batch.is_begun)[:, 0]
    middles = batch.middles[begun]
    logits = network.logits(rows[begun, middles]).masked_fill(~batch.agreeing[begun], -torch.inf)
    return F.cross_entropy(logits, batch.targets[begun, middles], reduction="none")
