"""In which precision a released model is loaded: the user's setting, within the limits of memory and hardware.

The tensors of a network are quantized one by one while they are read, so memory never holds the full weights.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs
import torch
from torch import Tensor, nn

from engine.errors import ModelError
from engine.library.device_memory import DeviceMemory, gigabytes, memory_of
from engine.library.precision_names import Precision, PrecisionSetting
from engine.library.weights_header import WeightsHeader, is_quantized, read_files
from engine.models.quantization.experts import DOWN, FEW_ROWS, GATE_UP, StackedExperts, Way, has_grouped_products
from engine.models.quantization.matrix import (
    Fp8Matrix,
    Int4KernelMatrix,
    Int4Matrix,
    Int8Matrix,
    Matrix,
    PlainMatrix,
    has_kernel_for,
)

_log = logging.getLogger(__name__)
_AUTOMATIC: tuple[Precision, ...] = ("fp32", "bf16", "int8", "int4")


@attrs.frozen
class Choice:
    """The matrices of the layers are in `precision`. All other weights, and all computation, are in `dtype`."""

    precision: Precision
    dtype: torch.dtype

    @property
    def name(self) -> str:
        """The name of the precision, as in ModelInfo.dtype."""
        unquantized = self.precision in ("fp32", "bf16")
        return str(self.dtype).removeprefix("torch.") if unquantized else self.precision


def choose(
    files: Sequence[Path], precision: PrecisionSetting, device: torch.device, room: DeviceMemory | None = None
) -> Choice:
    """Choose the precision of the checkpoint in these safetensors files from their headers; no weights are loaded.

    "auto" takes the best precision that fits the free memory: bf16, else int8, else int4. On a processor without bf16
    instructions fp32 comes first. `room` is the memory to fit; None takes the device's own. Raises ModelError when
    nothing fits, and for fp8 on hardware that cannot multiply it.
    """
    room = room or memory_of(device.type)
    if precision == "fp8" and "fp8" not in room.precisions:
        raise ModelError("fp8 needs a GPU of compute capability 8.9 or newer; use int8")
    header, folder = read_files(files), files[0].parent
    candidates = [name for name in room.precisions if name in _AUTOMATIC] if precision == "auto" else [precision]
    best = candidates[0]
    for candidate in candidates:
        if _bytes_needed(room, candidate, header) <= room.free:
            if candidate != best:
                _log.warning(
                    "the model in %s is held in %s: %s needs %s, and %s has %s free",
                    *(folder, candidate, best),
                    *(gigabytes(_bytes_needed(room, best, header)), room.name, gigabytes(room.free)),
                )
            return Choice(candidate, _compute_dtype(candidate, room))
    raise ModelError(_too_large(folder, header, candidates[-1], room))


def _bytes_needed(room: DeviceMemory, precision: Precision, header: WeightsHeader) -> int:
    return room.bytes_needed(precision, header.loaded, header.plain)


def _compute_dtype(precision: Precision, room: DeviceMemory) -> torch.dtype:
    if precision in ("fp32", "bf16"):
        return torch.float32 if precision == "fp32" else torch.bfloat16
    return torch.float32 if room.plain_bytes == 4 else torch.bfloat16


def _too_large(folder: Path, header: WeightsHeader, precision: Precision, room: DeviceMemory) -> str:
    """Return the error text for a model that does not fit in `precision`, with a precision that fits."""
    problem = (
        f"the model in {folder} needs {gigabytes(_bytes_needed(room, precision, header))} in {precision}, "
        f"and {room.name} has {gigabytes(room.free)} free"
    )
    fitting = [name for name in room.precisions if _bytes_needed(room, name, header) <= room.free]
    if fitting:
        return f'{problem}; use --precision {fitting[0]}, or the setting midspan.precision "{fitting[0]}"'
    return f"{problem}; no precision fits: close other programs, or use a smaller model"


_KEYS = ("quantization_config", "compression_config")


def refuse_quantized(folder: Path, config: Mapping[str, object]) -> None:
    """Raise ModelError if config.json says that the weights in `folder` are quantized (GPTQ, AWQ, ...)."""
    text = config.get("text_config")
    for fields in (config, text if isinstance(text, Mapping) else {}):
        for key in _KEYS:
            if fields.get(key):
                raise ModelError(
                    f"the weights in {folder} are quantized with {_method(fields[key])}, which is not read; "
                    "pull the model that is not quantized and choose a precision: --precision int8, or int4"
                )


def _method(config: object) -> str:
    fields = config if isinstance(config, Mapping) else {}
    if method := fields.get("quant_method"):
        return str(method)
    flags = [flag for flag in ("load_in_4bit", "load_in_8bit") if fields.get(flag)]
    return f"bitsandbytes ({flags[0]})" if flags else "a method that config.json does not name"


_TOLERANCE = 0.02
"""The largest relative RMS error of the packed product when it is tried: rounding to bf16 gives 0.003."""
_TRIED = ((3, 48, 128), (40, 128))
"""The stack and the rows that are tried."""


class QuantizedLinear(nn.Module):
    """Replaces an nn.Linear and keeps its bias. If `packed`, few rows are multiplied without unpacking the matrix."""

    def __init__(self, matrix: Matrix, bias: nn.Parameter | None, packed: bool = False) -> None:
        super().__init__()
        self.matrix, self.bias, self.packed = matrix, bias, packed
        self.out_features, self.in_features = matrix.shape

    def forward(self, rows: Tensor) -> Tensor:
        """Return [..., out] for rows [..., in]."""
        flat = rows.reshape(-1, self.in_features)
        if self.packed and len(flat) <= FEW_ROWS:
            from engine.models.quantization.packed_product import packed_product

            product = packed_product(flat, self.matrix)
        else:
            product = self.matrix.product(flat)
        result = product.view(*rows.shape[:-1], self.out_features)
        return result if self.bias is None else result + self.bias


def quantized(weights: Tensor, precision: Precision) -> Matrix:
    """Return the weights [..., out, in] in a precision, on the same device."""
    match precision:
        case "int8":
            return Int8Matrix.of(weights)
        case "int4":
            return Int4KernelMatrix.of(weights) if has_kernel_for(weights) else Int4Matrix.of(weights)
        case "fp8":
            return Fp8Matrix.of(weights)
        case "bf16" | "fp32":
            return PlainMatrix(weights.to(torch.bfloat16 if precision == "bf16" else torch.float32))


@cache
def has_packed_products(device: torch.device, precision: Precision) -> bool:
    """Tell whether Triton multiplies by weights in this precision, by trying it on a small stack. Logs why it does not.

    The first try compiles the kernel, which takes seconds.
    """
    if find_spec("triton") is None:
        return False
    try:
        from engine.models.quantization.packed_product import Blocks, packed_product, stacked_product

        generator = torch.Generator().manual_seed(0)
        weights, rows = (torch.randn(*shape, generator=generator).bfloat16().to(device) for shape in _TRIED)
        stack = quantized(weights, precision)
        chosen = torch.arange(len(rows), device=device) * len(weights) // len(rows)
        found = stacked_product(
            rows, torch.arange(len(rows), device=device), stack, Blocks.of_stack(chosen, len(weights))
        )
        exact = torch.einsum("ri,roi->ro", rows.float(), stack.dense(torch.float32)[chosen])
        one, alone = packed_product(rows, stack.part(0)), rows.float() @ stack.part(0).dense(torch.float32).t()
        error = float((torch.cat([found, one]) - torch.cat([exact, alone])).norm() / torch.cat([exact, alone]).norm())
    except Exception as problem:
        # Triton and its compilers raise anything. The message is theirs, and has nothing of the user's.
        reason = f"{type(problem).__name__}: {problem}".splitlines()[0]
    else:
        if error < _TOLERANCE:
            return True
        reason = f"an error of {error:.3f}"
    _log.warning(
        "no packed products in %s (%s): matrices are unpacked for each product, which is slower", precision, reason
    )
    return False


def way_for(device: torch.device, precision: Precision) -> Way:
    """Return how experts in this precision are computed on a device."""
    quantizes = precision not in ("fp32", "bf16")
    if device.type != "cuda":
        return "one by one" if quantizes else "stock"
    if not quantizes and has_grouped_products(torch.cuda.get_device_capability(device)):
        return "stock"
    return "packed" if precision != "fp32" and has_packed_products(device, precision) else "padded"


class Quantizer:
    """Takes the tensors of a network that are to be quantized, and puts modules for them into it at the end.

    Experts are taken in every precision, unless their `way` is "stock". None chooses the way for the device.
    """

    def __init__(self, network: nn.Module, precision: Precision, device: torch.device, way: Way | None = None) -> None:
        self._network, self._precision, self._device, self._given_way = network, precision, device, way
        self._quantizes = precision not in ("fp32", "bf16")
        self._matrices: dict[str, Matrix] = {}

    @cached_property
    def _way(self) -> Way:
        return self._given_way or way_for(self._device, self._precision)

    @property
    def taken(self) -> set[str]:
        """The names of the tensors that were taken."""
        return set(self._matrices)

    def take(self, name: str, weights: Tensor, *twins: str) -> bool:
        """Quantize and keep a tensor, if it is to be replaced; return whether it is.

        `twins` are other names of the same tensor in this network: they share its matrix.
        """
        expert = name.rpartition(".")[2] in (GATE_UP, DOWN)
        if not is_quantized(name, weights.shape) or not (self._quantizes or (expert and self._way != "stock")):
            return False
        if name not in self._matrices:
            self._matrices |= dict.fromkeys((name, *twins), quantized(weights, self._precision))
        return True

    def place(self) -> None:
        """Replace the modules whose tensors were taken by quantized ones."""
        for name, matrix in self._matrices.items():
            self._put(name, matrix)

    def _packs(self, matrix: Matrix) -> bool:
        """Tell whether products with a matrix leave it packed. GPUs multiply fp8 themselves."""
        if self._precision == "fp8" or not self._quantizes or self._way != "packed":
            return False
        from engine.models.quantization.packed_product import serves

        return serves(matrix)

    def _put(self, name: str, matrix: Matrix) -> None:
        path, _, parameter = name.rpartition(".")
        owner: Any = self._network.get_submodule(path)
        parent, _, attribute = path.rpartition(".")
        if parameter in (GATE_UP, DOWN):
            if not isinstance(owner, StackedExperts):
                owner = StackedExperts(owner.act_fn, self._way)
                setattr(self._network.get_submodule(parent), attribute, owner)
            setattr(owner, parameter, matrix)
        else:
            setattr(
                self._network.get_submodule(parent), attribute, QuantizedLinear(matrix, owner.bias, self._packs(matrix))
            )


def count_parameters(*networks: nn.Module) -> int:
    """Return the number of weights in networks. Shared weights count once, quantized ones as before quantization."""
    counts: dict[int, int] = {}
    for network in networks:
        counts |= {id(weight): weight.numel() for weight in network.parameters()}
        for module in network.modules():
            matrices = [module.matrix] if isinstance(module, QuantizedLinear) else []
            matrices += module.stacks if isinstance(module, StackedExperts) else []
            counts |= {id(matrix): math.prod(matrix.shape) for matrix in matrices}
    return sum(counts.values())
