"""The link at work on the processor: one row after the other, where a call of torch costs more than what it computes.

So all is numpy, on the same weights: network.entry and Link.forward once more, for one row; a test holds both alike.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.models.embedded.layout import SpecialTokens
from engine.models.embedded.link import Link
from engine.models.embedded.lookup_last import LastRow, last_row
from engine.models.embedded.network import Network

Floats = NDArray[np.float32]

CANDIDATES = 128
"""Of so many of a row's likeliest tokens the logits are computed anew; the others keep theirs."""


class NumpyLink:
    """A network's link and all that it reads, in memory that numpy sees too."""

    def __init__(self, network: Network, link: Link, marks: SpecialTokens) -> None:
        self._marks, self._buckets, width = marks, network.shape.gram_buckets, network.shape.width
        self._embed, self._hint = _numbers(network.embed.weight), _numbers(network.hint.weight)
        self._strength, self._copy = _numbers(network.strength.weight), _numbers(network.copy.weight)
        self._gram, self._gram_out = _numbers(network.gram.weight), _numbers(network.gram_out.weight)
        self._head = np.ascontiguousarray(_numbers(network.head.weight))  # a few whole rows of it are read
        up = _numbers(link.up.weight)
        self._from_row, self._from_entry = np.ascontiguousarray(up[:, :width]), np.ascontiguousarray(up[:, width:])
        self._down = _numbers(link.down.weight)

    def entry(self, told: LastRow) -> Floats:
        """Return network.entry [width] of one row."""
        grams = np.concatenate((self._gram[told.grams[0]], self._gram[self._buckets + told.grams[1]]))
        entry = self._embed[told.token] + self._hint[told.hint] * self._strength[told.strength]
        entry += self._gram_out @ grams
        scaled: Floats = entry / max(float(np.sqrt(entry @ entry / len(entry))), 1e-6)
        return scaled

    def logits(self, row: Floats, logits: Floats, stream: list[int]) -> Floats:
        """Return the logits [vocabulary] of a row [width] once the token that it hides is known, the stream's last."""
        told = last_row(stream, self._marks, self._buckets)
        hidden = np.maximum(self._from_row @ row + self._from_entry @ self.entry(told), 0)
        linked = row + self._down @ (hidden * hidden)
        found = logits.copy()
        chosen = np.append(np.argpartition(logits, -min(CANDIDATES, len(logits)))[-CANDIDATES:], told.hint)
        found[chosen] = self._head[chosen] @ linked
        copy = self._copy[told.strength]
        found[told.hint] += linked @ copy[:-1] + copy[-1]
        return found


class LinkedRows:
    """Implements stream_filling.Linked for rows [n, width] as the trunk left them, and their logits [n, vocabulary]."""

    def __init__(self, link: NumpyLink, rows: Tensor, logits: Tensor) -> None:
        self._link, self._rows, self._logits = link, rows.float().numpy(), logits.numpy()

    def after(self, row: int, tokens: list[int]) -> Tensor:
        return torch.from_numpy(self._link.logits(self._rows[row], self._logits[row], tokens))[None]


def _numbers(weight: Tensor) -> Floats:
    found: Floats = weight.detach().float().cpu().numpy()
    return found
