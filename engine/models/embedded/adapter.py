"""An adapter: it gives a left-to-right network a canvas, and leaves what the network writes as it is.

It has low-rank additions to the products of canvas rows (LoRA, arXiv 2106.09685) and an embedding of the mask. Rows of
the stream never see it. So a canvas drafts, and the verified text is the network's own (as in TiDAR, arXiv 2511.08923).
A file holds its matrices in int8, which the kernel takes as they are. Does not import torch.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from engine.errors import ModelError
from engine.models.embedded.shape import GROUP, Floats, Shape
from engine.models.embedded.weights import SCALE

ADAPTER_FILE = "midspan-adapter.safetensors"
"""Its name beside a GGUF, or in a model's folder."""
FORMAT = "midspan adapter 1"
PRODUCTS = ("qkv", "out", "gate_up", "down")
"""The products of a layer. Those that share their rows, as queries, keys and values do, share what reads the rows."""
MOST_RANK = GROUP
"""What the kernel computes with in any case: it pads lower ranks."""
_SAID = ("rank", "canvas_tokens", "shape", "tokenizer", "weights")


@attrs.frozen
class AdapterKey:
    """What an adapter was trained for: the sizes of the network, and digests of its tokens and weights."""

    shape: str
    tokenizer: str
    weights: str

    @staticmethod
    def sizes(shape: Shape) -> str:
        """Return what counts of a shape: a head's tokens and the length of a context are the engine's choice."""
        chosen = attrs.evolve(shape, context_tokens=1, canvas_tokens=0, tied=True, head_tokens=0)
        return repr(attrs.astuple(chosen))


@attrs.frozen(eq=False)
class Rounded:
    """A matrix. values: int8 [outputs, inputs]. scales: fp16 [outputs], a factor of each output's values."""

    values: NDArray[np.int8]
    scales: NDArray[np.float16]

    @classmethod
    def of(cls, dense: Floats) -> "Rounded":
        """Round a matrix fp32 [outputs, inputs] to the nearest."""
        bounds = np.finfo(np.float16)
        scales = (np.abs(dense).max(-1) / 127).clip(bounds.smallest_subnormal, bounds.max).astype(np.float16)
        whole = np.rint(dense / scales.astype(np.float32)[:, None]).clip(-127, 127)
        return cls(whole.astype(np.int8), scales)

    def dense(self) -> Floats:
        """Return fp32 [outputs, inputs]."""
        return self.values.astype(np.float32) * self.scales.astype(np.float32)[:, None]

    def padded(self, outputs: int, inputs: int) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
        """Return a larger matrix with zeros, as KernelPass takes one: a scale for each GROUP of the inputs."""
        values = np.zeros((outputs, inputs), np.int8)
        values[: self.values.shape[0], : self.values.shape[1]] = self.values
        scales = np.zeros((outputs, inputs // GROUP), np.float16)
        scales[: len(self.scales)] = self.scales[:, None]
        return values, scales


@attrs.frozen(eq=False)
class LowRank:
    """An addition to a product of rows: b times (a times the rows). a: [rank, inputs]. b: [outputs, rank]."""

    a: Rounded
    b: Rounded


@attrs.frozen(eq=False)
class Adapter:
    """mask: fp32 [width], what a masked position enters the network with. canvas_tokens: the widest canvas that it was
    trained for. layers: for each layer an addition to each of PRODUCTS."""

    rank: int
    canvas_tokens: int
    mask: Floats
    layers: list[dict[str, LowRank]]

    def save(self, path: Path, key: AdapterKey) -> None:
        """Write a file that names what it was trained for."""
        tensors: dict[str, NDArray[np.generic]] = {"mask": self.mask}
        for name, matrix in self._matrices():
            tensors[name], tensors[name + SCALE] = matrix.values, matrix.scales
        sizes = {"rank": str(self.rank), "canvas_tokens": str(self.canvas_tokens)}
        save_file(tensors, path, {"format": FORMAT, **sizes, **attrs.asdict(key)})

    def _matrices(self) -> Iterator[tuple[str, Rounded]]:
        for layer, products in enumerate(self.layers):
            for product, low in products.items():
                yield f"blocks.{layer}.{product}.a", low.a
                yield f"blocks.{layer}.{product}.b", low.b

    @classmethod
    def load(cls, path: Path, shape: Shape, key: AdapterKey) -> "Adapter":
        """Read the adapter of a network. Raises ModelError in one line if it is damaged, or another model's."""
        try:
            with safe_open(path, "numpy") as file:
                said = file.metadata() or {}
                _check_said(said, key)
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            return cls._of(tensors, shape, int(said["rank"]), int(said["canvas_tokens"]))
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            reason = str(error).partition("\n")[0]
            raise ModelError(f"the adapter {path} is not used: {reason}; the model runs without it") from None

    @classmethod
    def _of(cls, tensors: Mapping[str, NDArray[Any]], shape: Shape, rank: int, canvas_tokens: int) -> "Adapter":
        if not 1 <= rank <= MOST_RANK or not 1 <= canvas_tokens <= shape.context_tokens:
            raise ValueError(f"its rank is {rank}, for canvases of {canvas_tokens}; the kernel has 1 to {MOST_RANK}")

        def matrix(name: str, outputs: int, inputs: int) -> Rounded:
            values = _checked(tensors, name, np.int8, (outputs, inputs))
            return Rounded(values, _checked(tensors, name + SCALE, np.float16, (outputs,)))

        layers = [
            {
                product: LowRank(
                    matrix(f"blocks.{layer}.{product}.a", rank, inputs),
                    matrix(f"blocks.{layer}.{product}.b", outputs, rank),
                )
                for product, (outputs, inputs) in sides_of(shape).items()
            }
            for layer in range(shape.layers)
        ]
        mask: Floats = _checked(tensors, "mask", np.float32, (shape.width,))
        return cls(rank, canvas_tokens, mask, layers)


def sides_of(shape: Shape) -> dict[str, tuple[int, int]]:
    """Return the outputs and inputs of each of PRODUCTS."""
    mixed = shape.heads * shape.head_width
    sides = (
        (mixed + 2 * shape.key_heads * shape.head_width, shape.width),
        (shape.width, mixed),
        (2 * shape.hidden, shape.width),
        (shape.width, shape.hidden),
    )
    return dict(zip(PRODUCTS, sides, strict=True))


def _check_said(said: Mapping[str, str], key: AdapterKey) -> None:
    """Raise ValueError unless a file's metadata are those of an adapter for `key`."""
    if said.get("format") != FORMAT or not all(name in said for name in _SAID):
        raise ValueError(f"it is no {FORMAT}")
    named = (("shape", "other sizes"), ("tokenizer", "other tokens"), ("weights", "other weights"))
    for name, what in named:
        if said[name] != getattr(key, name):
            raise ValueError(f"it was trained for a model with {what}")


def _checked(tensors: Mapping[str, NDArray[Any]], name: str, dtype: type, sides: tuple[int, ...]) -> NDArray[Any]:
    found = tensors.get(name)
    if found is None:
        raise ValueError(f"{name} is missing")
    if found.shape != sides or found.dtype != dtype:
        raise ValueError(f"{name} is {list(found.shape)} in {found.dtype}, not {list(sides)}")
    if not np.isfinite(found).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    return found
