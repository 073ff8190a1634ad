"""What runs the embedded model's passes: in the processor's memory (HostRunner), or with torch (torch_runner.py).

Does not import torch.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Protocol, overload

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelError
from engine.fill.interface import Context, expect_type
from engine.fill.sampler import NEVER, Predictions, Query, keep_only
from engine.fill.stream import StreamPass
from engine.library.store import sha256_of
from engine.models.embedded.adapter import MOST_RANK, Adapter
from engine.models.embedded.numpy_pass import NumpyPass
from engine.models.embedded.shape import Floats, Shape, rope_angles
from engine.models.embedded.slabs import Hole, HostPass, Ids, SlabContext
from engine.models.embedded.weights import Blocks, Packed, Weights

try:
    from engine.models.embedded import _kernel
except ImportError:  # There was no compiler, or it is another machine's build.
    _kernel = None  # type: ignore[assignment]

BLOCK = 64
_PIECE = 4 << 20
"""Bytes of packed weights that are copied at once."""
_MOST_SPARE = 16 << 20
"""Bytes of logits that are kept for the next pass: with 152,000 tokens a pass of eight rows in fresh memory takes a
tenth to a fifth longer."""


def kernel_paths() -> list[str]:
    """Return the kernel's paths on this processor, the fastest first; none where the kernel was not built."""
    return [] if _kernel is None else list(_kernel.paths())


def kernel_digest() -> str:
    """Return a sha256 of the kernel that was built, "" without one: another one may pack or round in another way."""
    return "" if _kernel is None else sha256_of(Path(_kernel.__file__))


class KernelPass:
    """Implements numpy_pass.HostPass. Raises ValueError for sizes that do not fit; never reads or writes beyond."""

    dtype: type[np.float16] | type[np.float32] = np.float16

    def __init__(self, weights: Weights, shape: Shape, path: str = "", threads: int = 1) -> None:
        """Pack the weights for a path of `kernel_paths`, by default the fastest. The threads start when needed."""
        if _kernel is None:
            raise ValueError("the kernel was not built")
        self.name = path or kernel_paths()[0]
        self._shape, self._outputs = shape, shape.outputs
        sizes = (
            shape.vocabulary,
            shape.width,
            shape.layers,
            shape.heads,
            shape.key_heads,
            shape.head_width,
            shape.hidden,
            shape.positions,
            self._outputs,
        )
        arrays = _Arrays(weights, shape)
        self._network = _kernel.Network(self.name, threads, shape.norm_epsilon, sizes, arrays)
        self._spare = np.empty(0, np.float32)
        arrays.forget()

    def run(self, numbers: Ids, holes: Sequence[Hole], wanted: Ids) -> Floats:
        outputs = self._outputs
        logits = self._room(len(wanted), -(-outputs // BLOCK) * BLOCK)
        described = [(hole.rows, hole.append, hole.start, hole.slabs) for hole in holes]
        self._network.run(numbers, described, wanted, logits)
        return logits[:, :outputs]

    def packed(self) -> Iterator[Iterator[memoryview]]:
        """Yield the matrices as the kernel has them, in the order of shapes_of, each in pieces.

        The next piece overwrites the last one.
        """
        piece = memoryview(bytearray(_PIECE))
        for number in range(1 + 4 * self._shape.layers + (not self._shape.tied)):
            yield self._pieces(number, piece)

    def _pieces(self, number: int, piece: memoryview) -> Iterator[memoryview]:
        start = 0
        while count := self._network.packed(number, start, piece):
            yield piece[:count]
            start += count

    def adapt(self, adapter: Adapter) -> None:
        products = [low for layer in adapter.layers for low in layer.values()]
        taken: list[Taken] = [adapter.mask]
        for low in products:
            taken += low.a.padded(MOST_RANK, low.a.values.shape[1])
            taken += low.b.padded(low.b.values.shape[0], MOST_RANK)
        self._network.adapt(taken)

    def reuse(self, logits: Floats) -> None:
        if logits.nbytes <= _MOST_SPARE and isinstance(logits.base, np.ndarray):
            self._spare = logits.base.reshape(-1)

    def _room(self, rows: int, width: int) -> Floats:
        """Return an array for logits, the spare one if that is large enough."""
        spare, self._spare = self._spare, np.empty(0, np.float32)
        if len(spare) < rows * width:
            spare = np.empty(rows * width, np.float32)
        return spare[: rows * width].reshape(rows, width)


Taken = NDArray[np.generic] | Blocks | memoryview | None


class _Arrays(Sequence[Taken]):
    """All weights in the order in which native/arrays.h takes them; each is made when it is taken."""

    def __init__(self, weights: Weights, shape: Shape) -> None:
        self._weights = weights
        self._scales: NDArray[np.float16] | None = None
        layers = [f"blocks.{layer}." for layer in range(shape.layers)]
        tables = rope_angles(shape, shape.positions)
        self._takes: list[Callable[[], Taken]] = [lambda: tables[0], lambda: tables[1]]
        for name in ("norm.weight", *(f"{layer}{norm}.weight" for layer in layers for norm in ("norm", "feed_norm"))):
            self._add_vector(name)
        self._add_matrix("embed.weight")
        for layer in layers:
            for matrix in ("qkv", "out", "gate_up", "down"):
                self._add_matrix(f"{layer}{matrix}.weight")
            self._add_vector(f"{layer}qkv.bias", shape.biased)
            self._add_vector(f"{layer}query_norm.weight", shape.head_norms)
            self._add_vector(f"{layer}key_norm.weight", shape.head_norms)
        if shape.tied:
            self._takes += [lambda: None, lambda: None]
        else:
            self._add_matrix("head.weight")

    def _add_vector(self, name: str, there: bool = True) -> None:
        self._takes.append(lambda: self._weights.dense(name) if there else None)

    def _add_matrix(self, name: str) -> None:
        self._takes.append(lambda: self._matrix(name))
        self._takes.append(lambda: self._scales)

    def _matrix(self, name: str) -> Taken:
        """Return a matrix's blocks, packed or not, or its values; its scales are taken right after them."""
        self._scales = None
        taken = self._weights.taken(name)
        if isinstance(taken, Packed):
            self._scales = taken.all_scales
            return taken.values
        return taken

    def forget(self) -> None:
        """Drop the weights, and with them the file that they are in."""
        self._takes.clear()
        self._scales = None

    def __len__(self) -> int:
        return len(self._takes)

    @overload
    def __getitem__(self, index: int) -> Taken: ...

    @overload
    def __getitem__(self, index: slice) -> list[Taken]: ...

    def __getitem__(self, index: int | slice) -> Taken | list[Taken]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        taken = self._takes[index]()
        return np.ascontiguousarray(taken) if isinstance(taken, np.ndarray) else taken


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
        """Run passes together. Return fp32 [wanted, outputs] of the wanted rows of all passes, in their order."""
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

    Raises ModelError in one line if there is no such path, or the weights hold numbers that are not finite.
    """
    chosen = os.environ.get(CHOICE, "")
    if chosen == "numpy" or (not chosen and not kernel_paths()):
        return NumpyPass(weights, shape)
    if chosen and chosen not in kernel_paths():
        known = ", ".join([*kernel_paths(), "numpy"])
        raise ModelError(f"{CHOICE} is {chosen}, which this machine cannot run; it can be one of {known}")
    try:
        return KernelPass(weights, shape, chosen, threads)
    except ValueError as error:
        raise ModelError(str(error)) from None


class HostRunner:
    """Implements Runner: with the kernel, or with NumPy where there is no kernel."""

    device = "cpu"

    def __init__(
        self,
        host: HostPass,
        weights: Weights,
        shape: Shape,
        forbidden: Sequence[int],
        continuing: Sequence[int],
        head: NDArray[np.int64] | None = None,
    ) -> None:
        """head: the tokens that the network's head has, all if None. The others get no probability."""
        self._pass, self._shape = host, shape
        flags = np.zeros((2, shape.vocabulary), np.float32)
        flags[0, list(forbidden)] = flags[1, list(continuing)] = 1
        self._head = None if head is None else HeadTokens(head, shape.vocabulary)
        of_head = flags if head is None else flags[:, head]
        self._forbidden, self._continuing = of_head[0].nonzero()[0], of_head[1]
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
        counts, logits = [len(item.wanted) for item in passes], self.logits(passes)
        queries, head = [item.query for item in passes], self._head
        asked = queries if head is None else [head.places_in(query) for query in queries]
        predicted = predict(logits, asked, counts, self._forbidden, self._continuing)
        self._pass.reuse(logits)
        if head is None:
            return predicted
        return [head.tokens_in(each, query) for each, query in zip(predicted, queries, strict=True)]


class HeadTokens:
    """The tokens of a head that has only some, and where they are in it."""

    def __init__(self, tokens: NDArray[np.int64], vocabulary: int) -> None:
        self._tokens, self._place = tokens, np.full(vocabulary, -1)
        self._place[tokens] = np.arange(len(tokens))

    def places_in(self, query: Query) -> Query:
        """Return a query with the places of its tokens. One that the head lacks has the first place."""
        compatible = self._place[np.array(query.compatible_tokens, np.int64)]
        named = None if query.named is None else np.maximum(self._place[query.named], 0)
        return attrs.evolve(query, compatible_tokens=compatible[compatible >= 0].tolist(), named=named)

    def tokens_in(self, predictions: Predictions, query: Query) -> Predictions:
        """Return predictions of places as those of tokens. Those that the head lacks have no probability."""
        named = predictions.named
        if query.named is not None:
            named = np.where(self._place[query.named] >= 0, named, np.float32(0))
        return attrs.evolve(predictions, tokens=self._tokens[predictions.tokens], named=named)


def predict(
    logits: Floats, queries: Sequence[Query], counts: Sequence[int], forbidden: NDArray[np.int64], continuing: Floats
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
    named = np.zeros((len(logits), 0), np.float32)
    if query.named is not None:
        named = np.take_along_axis(logits, query.named, 1)
    # A large vocabulary's rows are the largest arrays of a process: where nothing needs them later, no second one.
    shares = logits.copy() if query.entropy else logits
    highest = chosen[:, :1].copy()
    shares -= highest
    np.exp(shares, out=shares)
    sums = shares.sum(1, keepdims=True)
    total = highest + np.log(sums)
    entropy = np.zeros(len(logits), np.float32)
    if query.entropy:
        entropy = total[:, 0] - np.einsum("ij,ij->i", shares, logits) / sums[:, 0]
    named = np.exp(named - total)
    # Not `@`: OpenBLAS wakes a thread for it, which spins on the core that the next pass needs.
    continues = np.einsum("ij,j->i", shares, continuing) / sums[:, 0]
    return Predictions(tokens, np.exp(chosen - total), entropy, named, continues)


def _likeliest(logits: Floats, top: int) -> NDArray[np.int64]:
    """Return the most likely tokens [rows, top], the likeliest first, and of equal ones the smaller id."""
    if top == 1:
        first: NDArray[np.int64] = logits.argmax(1)
        return first[:, None]
    # Row by row: the places of all rows together would take twice the memory of the logits.
    highest = [np.argpartition(row, -top)[-top:] for row in logits]
    tokens = np.sort(np.array(highest, np.int64).reshape(len(logits), top), axis=1)
    order = np.argsort(-np.take_along_axis(logits, tokens, 1), axis=1, kind="stable")
    likeliest: NDArray[np.int64] = np.take_along_axis(tokens, order, 1)
    return likeliest
