"""In which precision a released model is loaded: the user's setting, within the limits of memory and hardware."""

import logging
from collections.abc import Sequence
from pathlib import Path

import attrs
import torch

from engine.errors import ModelError
from engine.library.device_memory import DeviceMemory, gigabytes, memory_of
from engine.library.precision_names import Precision, PrecisionSetting
from engine.library.weights_header import WeightsHeader, read_files

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
