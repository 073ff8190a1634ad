"""What runs the embedded model's passes: in the processor's memory (HostRunner), or with torch (torch_runner.py).

Does not import torch.
"""

import os
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelError
from engine.fill.interface import Context, expect_type
from engine.fill.predictions import NEVER, Predictions, Query, keep_only
from engine.fill.stream import StreamPass
from engine.models.embedded.kernel_pass import KernelPass, kernel_paths
from engine.models.embedded.numpy_pass import Hole, HostPass, Ids, NumpyPass
from engine.models.embedded.shape import Floats, Shape
from engine.models.embedded.slabs import SlabContext
from engine.models.embedded.weights import Weights

CHOICE = "MIDSPAN_KERNEL"
"""An environment variable for measurements: a path of the kernel, or "numpy"."""
FIELDS = 2
"""Numbers of a row: its token and its position."""


class Runner(Protocol):
    """Runs passes of one loaded network, and writes the keys and values of their rows. Leaves the contexts' tokens."""

    device: str
    """"cpu" or "cuda"."""
    dtype: str
    """What it computes in, for people."""

    def new_context(self) -> Context:
        """Return an empty context."""
        ...

    def logits(self, passes: Sequence[StreamPass]) -> Floats:
        """Run passes together. Return fp32 [wanted, vocabulary] of the wanted rows of all passes, in their order."""
        ...

    def predict(self, passes: Sequence[StreamPass]) -> list[Predictions]:
        """Run passes together. Return one Predictions a pass, as its query asks."""
        ...


def pack_rows(passes: Sequence[StreamPass]) -> Ids:
    """Return the tokens and positions of the rows of all passes, int64 [FIELDS, rows]."""
    tokens = [token for item in passes for token in (*item.append, *item.canvas)]
    starts = [len(item.context.tokens) for item in passes]
    positions = [
        position for item, start in zip(passes, starts, strict=True) for position in range(start, start + item.rows)
    ]
    return np.array((tokens, positions), np.int64)


def wanted_rows(passes: Sequence[StreamPass]) -> list[int]:
    """Return the rows of all passes together that are wanted, as indices into pack_rows."""
    firsts = accumulate((item.rows for item in passes), initial=0)
    return [first + row for item, first in zip(passes, firsts, strict=False) for row in item.wanted]


def host_pass(weights: Weights, shape: Shape, threads: int = 1) -> HostPass:
    """Return the fastest pass that this machine has, or the one that CHOICE names.

    Raises ModelError in one line if there is no such path.
    """
    chosen = os.environ.get(CHOICE, "")
    if chosen == "numpy" or (not chosen and not kernel_paths()):
        return NumpyPass(weights, shape)
    if chosen and chosen not in kernel_paths():
        known = ", ".join([*kernel_paths(), "numpy"])
        raise ModelError(f"{CHOICE} is {chosen}, which this machine cannot run; it can be one of {known}")
    return KernelPass(weights, shape, chosen, threads)


class HostRunner:
    """Implements Runner: with the kernel, or with NumPy where there is no kernel."""

    device = "cpu"

    def __init__(
        self, host: HostPass, weights: Weights, shape: Shape, forbidden: Sequence[int], continuing: Sequence[int]
    ) -> None:
        self._pass, self._shape, self._forbidden = host, shape, np.array(forbidden, np.int64)
        self._continuing = np.zeros(shape.vocabulary, np.float32)
        self._continuing[list(continuing)] = 1
        self.dtype = "float32, numpy" if host.name == "numpy" else f"int{weights.bits}, {host.name}"

    def new_context(self) -> Context:
        return SlabContext(self._shape, self._pass.dtype)

    def logits(self, passes: Sequence[StreamPass]) -> Floats:
        holes = []
        for item in passes:
            context = expect_type(item.context, SlabContext)
            start = len(context.tokens)
            context.reserve(start + item.rows)
            holes.append(Hole(item.rows, len(item.append), start, context.slabs))
        return self._pass.run(pack_rows(passes), holes, np.array(wanted_rows(passes), np.int64))

    def predict(self, passes: Sequence[StreamPass]) -> list[Predictions]:
        counts = [len(item.wanted) for item in passes]
        return predict(self.logits(passes), [item.query for item in passes], counts, self._forbidden, self._continuing)


def predict(
    logits: Floats,
    queries: Sequence[Query],
    counts: Sequence[int],
    forbidden: NDArray[np.int64],
    continuing: Floats,
) -> list[Predictions]:
    """Return one Predictions a query: engine.models.predict in NumPy. A test holds both to the same answers.

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
