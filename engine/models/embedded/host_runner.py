"""Runs the embedded model's passes in the kernel, or in NumPy where there is no kernel. Does not import torch."""

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelError
from engine.fill.interface import expect_type
from engine.fill.predictions import Predictions, Query
from engine.fill.stream import StreamPass
from engine.models.embedded.kernel_pass import KernelPass, kernel_paths
from engine.models.embedded.numpy_pass import Hole, HostPass, NumpyPass, Result
from engine.models.embedded.predict_numpy import predict
from engine.models.embedded.rows import PackedRows
from engine.models.embedded.shape import Floats, Shape
from engine.models.embedded.slabs import SlabContext
from engine.models.embedded.weights import Weights

CHOICE = "MIDSPAN_KERNEL"
"""An environment variable for measurements: a path of the kernel, or "numpy"."""


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


class HostRan:
    """Implements runner.Ran."""

    def __init__(self, result: Result, forbidden: NDArray[np.int64], continuing: Floats) -> None:
        self._result, self._forbidden, self._continuing = result, forbidden, continuing

    def logits(self) -> Floats:
        return self._result.logits

    def predict(self, queries: Sequence[Query], counts: Sequence[int]) -> list[Predictions]:
        return predict(self._result.logits, queries, counts, self._forbidden, self._continuing)


class HostRunner:
    """Implements runner.Runner."""

    device = "cpu"

    def __init__(
        self, host: HostPass, weights: Weights, shape: Shape, forbidden: Sequence[int], continuing: Sequence[int]
    ) -> None:
        self._pass, self._shape, self._forbidden = host, shape, np.array(forbidden, np.int64)
        self._continuing = np.zeros(shape.vocabulary, np.float32)
        self._continuing[list(continuing)] = 1
        self.dtype = "float32, numpy" if host.name == "numpy" else f"int{weights.bits}, {host.name}"

    def new_context(self) -> SlabContext:
        return SlabContext(self._shape, self._pass.dtype)

    def run(self, passes: Sequence[StreamPass], packed: PackedRows) -> HostRan:
        holes, wanted, first = [], [], 0
        for item in passes:
            context = expect_type(item.context, SlabContext)
            start = len(context.tokens)
            context.reserve(start + item.rows)
            holes.append(Hole(item.rows, len(item.append), start, context.slabs))
            wanted += [first + row for row in item.wanted]
            first += item.rows
        result = self._pass.run(packed.numbers, holes, np.array(wanted, np.int64))
        return HostRan(result, self._forbidden, self._continuing)
