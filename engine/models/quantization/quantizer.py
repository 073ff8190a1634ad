"""Quantizes the tensors of a network one by one while they are read, so memory never holds the full weights."""

import math
from typing import Any

from torch import Tensor, nn

from engine.library.precision_names import Precision
from engine.library.quantized_tensors import is_quantized
from engine.models.quantization.experts import DOWN, GATE_UP, QuantizedExperts
from engine.models.quantization.fp8 import Fp8Matrix
from engine.models.quantization.int4 import Int4Matrix
from engine.models.quantization.int4_kernel import Int4KernelMatrix, has_kernel_for
from engine.models.quantization.int8 import Int8Matrix
from engine.models.quantization.matrix import Matrix


class QuantizedLinear(nn.Module):
    """Replaces an nn.Linear and keeps its bias."""

    def __init__(self, matrix: Matrix, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.matrix, self.bias = matrix, bias
        self.out_features, self.in_features = matrix.shape

    def forward(self, rows: Tensor) -> Tensor:
        """Return [..., out] for rows [..., in]."""
        result = self.matrix.product(rows.reshape(-1, self.in_features)).view(*rows.shape[:-1], self.out_features)
        return result if self.bias is None else result + self.bias


def quantized(weights: Tensor, precision: Precision) -> Matrix:
    """Return the weights [..., out, in] in a precision of few bits, on the same device."""
    match precision:
        case "int8":
            return Int8Matrix.of(weights)
        case "int4":
            return Int4KernelMatrix.of(weights) if has_kernel_for(weights) else Int4Matrix.of(weights)
        case "fp8":
            return Fp8Matrix.of(weights)
        case _:
            raise ValueError(f"{precision} is not a precision of few bits")


class Quantizer:
    """Takes the tensors of a network that are to be quantized, and puts quantized modules into it at the end."""

    def __init__(self, network: nn.Module, precision: Precision) -> None:
        self._network, self._precision = network, precision
        self._matrices: dict[str, Matrix] = {}

    @property
    def taken(self) -> set[str]:
        """The names of the tensors that were taken."""
        return set(self._matrices)

    def take(self, name: str, weights: Tensor, *twins: str) -> bool:
        """Quantize and keep a tensor, if this precision quantizes it; return whether it does.

        `twins` are other names of the same tensor in this network: they share its matrix.
        """
        if self._precision in ("fp32", "bf16") or not is_quantized(name, weights.shape):
            return False
        if name not in self._matrices:
            self._matrices |= dict.fromkeys((name, *twins), quantized(weights, self._precision))
        return True

    def place(self) -> None:
        """Replace the modules whose tensors were taken by quantized ones."""
        for name, matrix in self._matrices.items():
            self._put(name, matrix)

    def _put(self, name: str, matrix: Matrix) -> None:
        path, _, parameter = name.rpartition(".")
        owner: Any = self._network.get_submodule(path)
        parent, _, attribute = path.rpartition(".")
        if parameter in (GATE_UP, DOWN):
            if not isinstance(owner, QuantizedExperts):
                owner = QuantizedExperts(owner.act_fn)
                setattr(self._network.get_submodule(parent), attribute, owner)
            setattr(owner, parameter, matrix)
        else:
            setattr(self._network.get_submodule(parent), attribute, QuantizedLinear(matrix, owner.bias))


def count_parameters(*networks: nn.Module) -> int:
    """Return the number of weights in networks. Shared weights count once, quantized ones as before quantization."""
    counts: dict[int, int] = {}
    for network in networks:
        counts |= {id(weight): weight.numel() for weight in network.parameters()}
        for module in network.modules():
            matrices = [module.matrix] if isinstance(module, QuantizedLinear) else []
            matrices += module.stacks if isinstance(module, QuantizedExperts) else []
            counts |= {id(matrix): math.prod(matrix.shape) for matrix in matrices}
    return sum(counts.values())
