"""Quantizes the tensors of a network one by one while they are read, so that it is never there in full."""

import math
from typing import Any

from torch import Tensor, nn

from engine.library.precision_names import Precision
from engine.library.quantized_tensors import is_quantized
from engine.models.quantization.experts import DOWN, GATE_UP, QuantizedExperts
from engine.models.quantization.fp8 import Fp8Matrix
from engine.models.quantization.int4 import Int4Matrix
from engine.models.quantization.int4_kernel import Int4KernelMatrix, takes
from engine.models.quantization.int8 import Int8Matrix
from engine.models.quantization.linear import QuantizedLinear
from engine.models.quantization.matrix import Matrix


def quantized(weights: Tensor, precision: Precision) -> Matrix:
    """Return the weights [..., out, in] in a precision of few bits, where they lie."""
    match precision:
        case "int8":
            return Int8Matrix.of(weights)
        case "int4":
            return Int4KernelMatrix.of(weights) if takes(weights) else Int4Matrix.of(weights)
        case "fp8":
            return Fp8Matrix.of(weights)
        case _:
            raise ValueError(f"{precision} is no precision of few bits")


class Holder:
    """Takes the tensors of a network that are to be quantized, and in the end puts them where they belong."""

    def __init__(self, network: nn.Module, precision: Precision) -> None:
        self._network, self._precision = network, precision
        self._matrices: dict[str, Matrix] = {}

    @property
    def taken(self) -> set[str]:
        """The names of what was taken."""
        return set(self._matrices)

    def take(self, name: str, weights: Tensor, *others: str) -> bool:
        """Quantize and keep a tensor, also under its `others` names, if it is one of those; tell whether it is."""
        if self._precision in ("fp32", "bf16") or not is_quantized(name, weights.shape):
            return False
        if name not in self._matrices:
            self._matrices |= dict.fromkeys((name, *others), quantized(weights, self._precision))
        return True

    def place(self) -> None:
        """Put quantized modules into the network, in the place of those whose tensors were taken."""
        for name, matrix in self._matrices.items():
            self._put(name, matrix)

    def _put(self, name: str, matrix: Matrix) -> None:
        path, _, last = name.rpartition(".")
        owner: Any = self._network.get_submodule(path)
        above, _, called = path.rpartition(".")
        if last in (GATE_UP, DOWN):
            if not isinstance(owner, QuantizedExperts):
                owner = QuantizedExperts(owner.act_fn)
                setattr(self._network.get_submodule(above), called, owner)
            setattr(owner, last, matrix)
        else:
            setattr(self._network.get_submodule(above), called, QuantizedLinear(matrix, owner.bias))


def count_parameters(*networks: nn.Module) -> int:
    """Return how many weights networks have, shared ones counted once, quantized ones as what they stand for."""
    counts: dict[int, int] = {}
    for network in networks:
        counts |= {id(weight): weight.numel() for weight in network.parameters()}
        for module in network.modules():
            matrices = [module.matrix] if isinstance(module, QuantizedLinear) else []
            matrices += module.stacks if isinstance(module, QuantizedExperts) else []
            counts |= {id(matrix): math.prod(matrix.shape) for matrix in matrices}
    return sum(counts.values())
