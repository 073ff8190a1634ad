"""Predictions from logits, made where the logits are: from a GPU only what a fill asked for comes back."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
import torch
from torch import Tensor

from engine.fill.sampler import NEVER, Predictions, Query


@torch.inference_mode()
def predict(
    logits: Tensor, queries: Sequence[Query], counts: Sequence[int], forbidden: Tensor, continuing: Tensor | None = None
) -> list[Predictions]:
    """Return one Predictions a query.

    logits: fp32 [rows, vocabulary] of several passes, `counts` rows of each; overwritten.
    forbidden: int64 [n], tokens that get no probability.
    continuing: fp32 [vocabulary], 1 for tokens that go on with a word, for Predictions.continues.
    """
    bounds = list(pairwise([0, *accumulate(counts)]))
    logits.index_fill_(-1, forbidden, NEVER)
    for query, (start, _) in zip(queries, bounds, strict=True):
        if len(query.compatible_tokens):
            _keep_only(logits[start], query.compatible_tokens)
    total = logits.logsumexp(-1)
    top = min(max((query.top for query in queries), default=1), logits.shape[-1])
    # topk is slower than max for one token, which is what greedy fills ask for.
    likeliest, tokens = logits.max(-1, keepdim=True) if top == 1 else logits.topk(top)
    probabilities = (likeliest - total[:, None]).exp()
    entropy = torch.zeros_like(total)
    if any(query.entropy for query in queries):
        entropy = total - (logits.softmax(-1) * logits).sum(-1)
    continues = torch.zeros_like(total)
    if continuing is not None:
        continues = (logits - total[:, None]).exp() @ continuing
    ids, shares, undecided, goes_on = (part.cpu().numpy() for part in (tokens, probabilities, entropy, continues))
    if top > 1:  # Equal logits are common in bf16. The smaller id comes first, as with max.
        order = np.lexsort((ids, -shares), axis=1)
        ids, shares = np.take_along_axis(ids, order, 1), np.take_along_axis(shares, order, 1)
    return [
        Predictions(
            ids[start:stop, : query.top],
            shares[start:stop, : query.top],
            undecided[start:stop],
            _named(logits[start:stop], total[start:stop], query),
            goes_on[start:stop],
        )
        for query, (start, stop) in zip(queries, bounds, strict=True)
    ]


def _keep_only(row: Tensor, tokens: Sequence[int]) -> None:
    """Leave only the logits of `tokens` in a row [vocabulary]."""
    kept = torch.tensor(tokens, device=row.device)
    logits = row[kept]
    row.fill_(NEVER)
    row[kept] = logits


def _named(logits: Tensor, total: Tensor, query: Query) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return the probabilities [rows, n] of the tokens that the query names."""
    if query.named is None:
        return np.zeros((len(logits), 0), np.float32)
    names = torch.from_numpy(query.named).to(logits.device)
    return (logits.gather(-1, names) - total[:, None]).exp().cpu().numpy()
