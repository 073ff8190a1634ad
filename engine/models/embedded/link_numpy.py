"""The link on the CPU, in NumPy, row by row: torch's call overhead would dominate. Does not import torch.

It computes network.entry and Link.forward for one row, from the same weights. A test holds both to the same numbers.
"""

from array import array
from collections.abc import Sequence

import attrs
import numpy as np

from engine.fill.predictions import NEVER, Predictions, Query
from engine.models.embedded.layout import SpecialTokens
from engine.models.embedded.ngram_lookup import grams_of, latest_run
from engine.models.embedded.shape import Floats, Shape
from engine.models.embedded.weights import Weights

CANDIDATES = 128
"""The logits of this many of a row's most likely tokens are computed again; the others keep theirs."""


class NumpyLink:
    """A network's link and all the weights that it reads."""

    def __init__(self, weights: Weights, shape: Shape, special: SpecialTokens, forbidden: Sequence[int]) -> None:
        self._special, self._buckets, self._weights = special, shape.gram_buckets, weights
        self.forbidden = np.array(forbidden, np.int64)
        self._gram_out = weights.dense("gram_out.weight")
        up = weights.dense("link.up.weight")
        self._from_row, self._from_entry = (np.ascontiguousarray(part) for part in np.split(up, 2, axis=1))
        self._down = weights.dense("link.down.weight")

    def entry(self, inputs: "LastRow") -> Floats:
        """Return network.entry [width] of one row."""
        grams, weights = np.add(inputs.grams, (0, self._buckets)), self._weights
        entry = weights.rows("embed.weight", inputs.token)
        entry += weights.rows("hint.weight", inputs.hint) * weights.rows("strength.weight", inputs.strength)
        entry += self._gram_out @ weights.rows("gram.weight", grams).ravel()
        scaled: Floats = entry / max(float(np.sqrt(entry @ entry / len(entry))), 1e-6)
        return scaled

    def logits(self, row: Floats, logits: Floats, stream: list[int]) -> Floats:
        """Return the logits [vocabulary] of a row [width] once the token that it hides is known, the stream's last."""
        last = last_row(stream, self._special, self._buckets)
        hidden = np.maximum(self._from_row @ row + self._from_entry @ self.entry(last), 0)
        linked = row + self._down @ (hidden * hidden)
        result = logits.copy()
        chosen = np.append(np.argpartition(logits, -min(CANDIDATES, len(logits)))[-CANDIDATES:], last.hint)
        result[chosen] = self._weights.rows("head.weight", chosen) @ linked
        copy = self._weights.rows("copy.weight", last.strength)
        result[last.hint] += linked @ copy[:-1] + copy[-1]
        return result


class LinkedRows:
    """Implements fill.predictions.DraftRows for rows [n, width] from the trunk, and their logits [n, vocabulary]."""

    def __init__(self, link: NumpyLink, rows: Floats, logits: Floats) -> None:
        self._link, self._rows, self._logits = link, rows, logits

    def after(self, row: int, stream: list[int], query: Query) -> Predictions:
        logits = self._link.logits(self._rows[row], self._logits[row], stream)
        logits[self._link.forbidden] = NEVER
        highest = logits.max()
        total = highest + np.log(np.exp(logits - highest).sum())
        top = np.argpartition(logits, -query.top)[-query.top :] if query.top > 1 else np.array([logits.argmax()])
        top = top[np.argsort(-logits[top], kind="stable")]
        named = np.zeros((1, 0), np.float32) if query.named is None else np.exp(logits[query.named[:1]] - total)
        return Predictions(
            tokens=top[None],
            probabilities=np.exp(logits[top] - total)[None].astype(np.float32),
            entropy=np.zeros(1, np.float32),
            named=named,
            continues=np.zeros(1, np.float32),
        )


@attrs.frozen
class LastRow:
    """A token, and what ngram_lookup.Lookup.stream finds for it where it is the last one of the text."""

    token: int
    hint: int
    strength: int
    grams: tuple[int, int]


def last_row(stream: list[int], special: SpecialTokens, buckets: int) -> LastRow:
    """Return the row of a stream's last token, which comes after <middle>.

    A hundred times faster than Lookup, which looks at all rows.
    """
    tail, middle = _last_index(stream, special.tail), _last_index(stream, special.middle)
    text = stream[:tail] + stream[middle + 1 :]
    found, strength = latest_run(array("i", text).tobytes())
    return LastRow(text[-1], text[found + 1] if strength else 0, strength, grams_of(text[-3:], buckets))


def _last_index(stream: list[int], token: int) -> int:
    return len(stream) - 1 - stream[::-1].index(token)
