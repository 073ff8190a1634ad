"""In which precision a released model is loaded: what its user asks for, as far as memory and hardware have it."""

import logging
from pathlib import Path

import attrs
import torch

from engine.errors import ModelError
from engine.library.device_memory import DeviceMemory, gigabytes, memory_of
from engine.library.precision_names import Precision, PrecisionSetting
from engine.library.weights_header import WeightsHeader, read_files
from engine.models.stock.tensors import weight_files

_log = logging.getLogger(__name__)
_AUTOMATIC: tuple[Precision, ...] = ("fp32", "bf16", "int8", "int4")


@attrs.frozen
class Choice:
    """How a model's weights are held: the matrices of its layers in `precision`, all else in `dtype`, in which it
    computes."""

    precision: Precision
    dtype: torch.dtype

    @property
    def name(self) -> str:
        """As ModelInfo.dtype has it."""
        plain = self.precision in ("fp32", "bf16")
        return str(self.dtype).removeprefix("torch.") if plain else self.precision


def choose(folder: Path, precision: PrecisionSetting, device: torch.device, room: DeviceMemory | None = None) -> Choice:
    """Choose how to hold the checkpoint in `folder`, by its files' headers; nothing is loaded.

    "auto" is the best that fits the memory that is free: bf16 (fp32 on a processor without bf16 instructions, if that
    fits), else int8, else int4. `room` None is the device's own memory. Raises ModelError where nothing fits, and for
    fp8 on hardware without it.
    """
    room = room or memory_of(device.type)
    if precision == "fp8" and "fp8" not in room.precisions:
        raise ModelError("fp8 needs a GPU of compute capability 8.9 or newer; use int8")
    header = read_files(weight_files(folder))
    best, *others = [each for each in room.precisions if each in _AUTOMATIC] if precision == "auto" else [precision]
    for precision in (best, *others):
        if _needed(room, precision, header) <= room.free:
            if precision != best:
                _log.warning(
                    "the model in %s is held in %s: %s needs %s, and %s has %s free",
                    *(folder, precision, best, gigabytes(_needed(room, best, header)), room.name, gigabytes(room.free)),
                )
            return Choice(precision, _computed_in(precision, room))
    raise ModelError(_why_not(folder, header, precision, room))


def _needed(room: DeviceMemory, precision: Precision, header: WeightsHeader) -> int:
    return room.bytes_needed(precision, header.loaded, header.plain)


def _computed_in(precision: Precision, room: DeviceMemory) -> torch.dtype:
    if precision in ("fp32", "bf16"):
        return torch.float32 if precision == "fp32" else torch.bfloat16
    return torch.float32 if room.plain_bytes == 4 else torch.bfloat16


def _why_not(folder: Path, header: WeightsHeader, precision: PrecisionSetting, room: DeviceMemory) -> str:
    smallest = min(room.precisions, key=lambda each: _needed(room, each, header))
    asked = smallest if precision == "auto" else precision
    found = (
        f"the model in {folder} needs {gigabytes(_needed(room, asked, header))} in {asked}, "
        f"and {room.name} has {gigabytes(room.free)} free"
    )
    fitting = [each for each in room.precisions if _needed(room, each, header) <= room.free]
    if fitting:
        return f'{found}; use --precision {fitting[0]}, or the setting midspan.precision "{fitting[0]}"'
    return f"{found}; no precision fits: close other programs, or use a smaller model"
