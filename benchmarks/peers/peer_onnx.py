"""The embedded network in ONNX Runtime: the pass of numpy_pass.NumpyPass as a graph (onnx_graph.py) in int8."""

import importlib.util
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.onnx_graph import write_quantized
from engine.fill.interface import expect_type
from engine.fill.sampler import Predictions
from engine.fill.stream import StreamPass
from engine.models.embedded.runner import pack_rows, predict
from engine.models.embedded.shape import Floats, Shape, rope_angles
from engine.models.embedded.weights import Weights

_HIDDEN = -1e9


def has_onnx() -> bool:
    """Return whether ONNX Runtime, and onnx, which builds and quantizes graphs, are installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("onnxruntime", "onnx"))


class OnnxContext:
    """Implements interface.Context. `past`: keys and values of each layer, [positions, key_heads * head_width]."""

    def __init__(self, past: list[Floats]) -> None:
        self.tokens: list[int] = []
        self.past = past

    @property
    def bytes(self) -> int:
        return sum(values.nbytes for values in self.past)

    def truncate(self, length: int) -> None:
        del self.tokens[length:]
        self.past = [values[:length] for values in self.past]

    def fork(self, length: int) -> "OnnxContext":
        copy = OnnxContext([values[:length].copy() for values in self.past])
        copy.tokens = self.tokens[:length]
        return copy


class OnnxPass:
    """The graph of a network, loaded; OMP_NUM_THREADS says for how many threads."""

    def __init__(self, weights: Weights, shape: Shape) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", "0"))
        options.log_severity_level = 3
        with tempfile.TemporaryDirectory() as folder:
            # In another process, because what quantizing takes would count as this one's memory.
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                path = pool.submit(write_quantized, weights, shape, Path(folder)).result()
            self._session: Any = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._shape = shape
        self._cosine, self._sine = rope_angles(shape, shape.positions)

    def run(self, numbers: NDArray[np.int64], context: OnnxContext, append: int, wanted: Sequence[int]) -> Floats:
        """Run the rows of one hole and return logits [wanted, vocabulary].

        The context gets the keys and values of the first `append` rows, but no tokens.
        """
        start, rows = len(context.past[0]), numbers.shape[1]
        seen = np.full(rows, start + rows)
        seen[:append] = start + 1 + np.arange(append)
        feeds: dict[str, NDArray[Any]] = {
            "tokens": numbers[0],
            "cosine": self._cosine[numbers[1]][:, None],
            "sine": self._sine[numbers[1]][:, None],
            "mask": np.where(np.arange(start + rows) >= seen[:, None], np.float32(_HIDDEN), np.float32(0)),
            "wanted": np.array(wanted, np.int64),
            **{f"past{number}": values for number, values in enumerate(context.past)},
        }
        logits, *present = self._session.run(None, feeds)
        context.past = [values[: start + append] for values in present]
        return cast(Floats, logits)


class OnnxRunner:
    """Implements runner.Runner, a hole at a time. It is made as runner.HostRunner is."""

    device, dtype = "cpu", "int8, onnx runtime"

    def __init__(self, graph: OnnxPass, shape: Shape, forbidden: Sequence[int], continuing: Sequence[int]) -> None:
        self._graph, self._shape, self._forbidden = graph, shape, np.array(forbidden, np.int64)
        self._continuing = np.zeros(shape.vocabulary, np.float32)
        self._continuing[list(continuing)] = 1

    def new_context(self) -> OnnxContext:
        empty = np.empty((0, self._shape.key_heads * self._shape.head_width), np.float32)
        return OnnxContext([empty] * (2 * self._shape.layers))

    def logits(self, passes: Sequence[StreamPass]) -> Floats:
        results = []
        for item in passes:
            context = expect_type(item.context, OnnxContext)
            context.past = [values[: len(context.tokens)] for values in context.past]
            results.append(self._graph.run(pack_rows([item]), context, len(item.append), item.wanted))
        return np.concatenate(results)

    def predict(self, passes: Sequence[StreamPass]) -> list[Predictions]:
        queries, counts = [item.query for item in passes], [len(item.wanted) for item in passes]
        return predict(self.logits(passes), queries, counts, self._forbidden, self._continuing)
