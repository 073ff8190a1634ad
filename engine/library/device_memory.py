"""What of a model fits the memory of this machine, reckoned from its parameters before anything is loaded.

Free of torch, which is asked for GPUs alone.
"""

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Literal

import attrs

from engine.library.precision_names import Precision

Verdict = Literal["fits", "fits once other programs make room", "too large"]

# int4 has a scale and a zero point, bf16 both, for every 64 weights.
BYTES_A_PARAMETER: dict[Precision, float] = {"fp32": 4.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5625}
# What comes on top of the weights: torch and its kernels, keys and values of a context of a few thousand tokens,
# activations, logits; a matrix that is being quantized.
ALLOWANCE_BYTES = 1_000_000_000
ALLOWANCE_SHARE = 0.1
ALLOWANCE = "weights, a tenth more, and 1 GB for everything else"
_FIRST_WITH_FP8 = (8, 9)
_GPU_DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@attrs.frozen
class Room:
    """A memory that a model can be loaded into, in bytes: all of it, and what of it is free now.

    `precisions` are those that this hardware runs, the best first. A weight that is never quantized takes `plain_bytes`
    when others are.
    """

    name: str
    total: int
    free: int
    precisions: tuple[Precision, ...]
    plain_bytes: int = 2

    def verdict(self, precision: Precision, parameters: int, plain: int = 0) -> Verdict | None:
        """Whether a model of so many parameters fits, of which `plain` are never quantized; None where this hardware
        has no such precision."""
        if precision not in self.precisions:
            return None
        needed = self.bytes_needed(precision, parameters, plain)
        if needed > self.total:
            return "too large"
        return "fits" if needed <= self.free else "fits once other programs make room"

    def bytes_needed(self, precision: Precision, parameters: int, plain: int = 0) -> int:
        """Return what such a model takes here when it runs."""
        return bytes_needed(parameters, precision, plain, self.plain_bytes)


def bytes_needed(parameters: int, precision: Precision, plain: int = 0, plain_bytes: int = 2) -> int:
    """Return what a model takes when it runs, by the allowance; `plain` of its parameters are never quantized."""
    size = BYTES_A_PARAMETER[precision]
    weights = (parameters - plain) * size + plain * (size if precision in ("fp32", "bf16") else plain_bytes)
    return round(weights * (1 + ALLOWANCE_SHARE)) + ALLOWANCE_BYTES


def rooms() -> list[Room]:
    """Return the memories of this machine: its own where the system tells it, then each GPU that torch sees."""
    machine = machine_memory()
    return ([machine] if machine else []) + _gpus()


def room_on(device: str) -> Room:
    """Return the memory of a device, "cpu" or "cuda"; where the system does not tell, as if it had no end."""
    found = next(iter(_gpus()), None) if device == "cuda" else machine_memory()
    return found or Room("memory", sys.maxsize, sys.maxsize, *_of_the_processor())


def gigabytes(count: int) -> str:
    """Return bytes as people read them."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def machine_memory() -> Room | None:
    """Return the memory of the machine, or of the container that we run in; None where the system does not tell."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        total, free = page * os.sysconf("SC_PHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = 1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1])
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # "max" where there is no limit
            total = min(total, int(Path(path).read_text()))
    return Room("memory", total, min(free, total), *_of_the_processor())


def processor_has_bf16() -> bool:
    """Tell whether the processor multiplies bf16 matrices natively; without, bf16 is several times slower than fp32."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


def _of_the_processor() -> tuple[tuple[Precision, ...], int]:
    """Return the precisions that the processor runs, the best first, and the bytes of a weight in the best."""
    return (("bf16", "int8", "int4"), 2) if processor_has_bf16() else (("fp32", "bf16", "int8", "int4"), 4)


def _gpus() -> list[Room]:
    if not any(Path(device).exists() for device in _GPU_DEVICES) and shutil.which("nvidia-smi") is None:
        return []
    try:
        import torch  # takes seconds: asked only where there is a driver that it could know

        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    except (ImportError, OSError):
        return []
    found = []
    for index in range(count):
        free, total = torch.cuda.mem_get_info(index)
        has_fp8 = torch.cuda.get_device_capability(index) >= _FIRST_WITH_FP8
        precisions: tuple[Precision, ...] = ("bf16", "fp8", "int8", "int4") if has_fp8 else ("bf16", "int8", "int4")
        found.append(Room(torch.cuda.get_device_name(index), total, free, precisions))
    return found
