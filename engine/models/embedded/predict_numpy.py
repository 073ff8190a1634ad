"""Predictions from logits, in NumPy: engine.models.predict without torch. A test holds both to the same answers."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from engine.fill.predictions import NEVER, Predictions, Query, keep_only
from engine.models.embedded.shape import Floats


def predict(
    logits: Floats,
    queries: Sequence[Query],
    counts: Sequence[int],
    forbidden: NDArray[np.int64],
    continuing: Floats,
) -> list[Predictions]:
    """Return one Predictions a query.

    logits: fp32 [rows, vocabulary] of several passes, `counts` rows of each; overwritten.
    forbidden: int64 [n], tokens that get no probability. continuing: fp32 [vocabulary], see models.predict.
    """
    logits[:, forbidden] = NEVER
    bounds = list(pairwise([0, *accumulate(counts)]))
    parts = zip(queries, bounds, strict=True)
    return [_predicted(logits[start:stop], query, continuing) for query, (start, stop) in parts]


def _predicted(logits: Floats, query: Query, continuing: Floats) -> Predictions:
    """Return the predictions of one hole's rows."""
    if len(query.compatible_tokens) and len(logits):
        keep_only(logits[0], query.compatible_tokens)
    tokens = _likeliest(logits, min(query.top, logits.shape[1]))
    chosen = np.take_along_axis(logits, tokens, 1)
    highest = chosen[:, :1]
    shares = np.exp(logits - highest)
    sums = shares.sum(1, keepdims=True)
    total = highest + np.log(sums)
    entropy = np.zeros(len(logits), np.float32)
    if query.entropy:
        entropy = total[:, 0] - (shares * logits).sum(1) / sums[:, 0]
    named = np.zeros((len(logits), 0), np.float32)
    if query.named is not None:
        named = np.exp(np.take_along_axis(logits, query.named, 1) - total)
    return Predictions(tokens, np.exp(chosen - total), entropy, named, (shares @ continuing) / sums[:, 0])


def _likeliest(logits: Floats, top: int) -> NDArray[np.int64]:
    """Return the most likely tokens [rows, top], the likeliest first, and of equal ones the smaller id."""
    if top == 1:
        first: NDArray[np.int64] = logits.argmax(1)
        return first[:, None]
    tokens = np.sort(np.argpartition(logits, -top, axis=1)[:, -top:], axis=1)
    order = np.argsort(-np.take_along_axis(logits, tokens, 1), axis=1, kind="stable")
    likeliest: NDArray[np.int64] = np.take_along_axis(tokens, order, 1)
    return likeliest
