"""A link between neighbours of a canvas: what a canvas row predicts once the token that it hides is known.

A row of masks predicts the next position's token without knowing the token of its own position, so tokens chosen side
by side do not fit each other. The link corrects such a row. Its input is the row from the trunk, and what the trunk
would have got if the chosen token had been there (its embedding, n-grams and hint: network.entry). Two small matrices
turn that into an addition to the row, and the head reads the row again. So a canvas can be chosen from its start on,
each token after the one before it, for a small part of what a pass costs (compare Hydra's heads, arXiv 2402.05109)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Link(nn.Module):
    """The two matrices. Before training they add nothing."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up = nn.Linear(2 * width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def initialize(self) -> None:
        nn.init.uniform_(self.up.weight, -(self.up.in_features**-0.5), self.up.in_features**-0.5)
        nn.init.zeros_(self.down.weight)

    def forward(self, rows: Tensor, entries: Tensor) -> Tensor:
        """Return canvas rows [N, width], corrected for the tokens whose entries [N, width] are given."""
        added: Tensor = self.down(F.relu(self.up(torch.cat((rows, entries), -1))).square())
        return rows + added
