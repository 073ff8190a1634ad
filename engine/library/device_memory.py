"""The memory of this machine and of its GPUs, and whether a model fits before it is loaded.

Imports torch only where there is a GPU driver.
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

# int4 adds a scale and a zero point, both in bf16, for every 64 weights.
BYTES_PER_PARAMETER: dict[Precision, float] = {"fp32": 4.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5625}
# Needed besides the weights: torch and its kernels, keys and values of a few thousand tokens, activations, logits, and
# one matrix while it is quantized.
ALLOWANCE_BYTES = 1_000_000_000
ALLOWANCE_SHARE = 0.1
ALLOWANCE = "weights, a tenth more, and 1 GB for everything else"
_FIRST_CAPABILITY_WITH_FP8 = (8, 9)
_GPU_DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@attrs.frozen
class DeviceMemory:
    """The memory of a device, in bytes: the total, and what is free now.

    `precisions` are those that the device computes in, the best first. In a quantized model, a weight that is never
    quantized takes `plain_bytes`.
    """

    name: str
    total: int
    free: int
    precisions: tuple[Precision, ...]
    plain_bytes: int = 2

    def verdict(self, precision: Precision, parameters: int, plain: int = 0) -> Verdict | None:
        """Tell whether a model fits; None if the device does not have this precision.

        `plain` of the `parameters` are never quantized.
        """
        if precision not in self.precisions:
            return None
        needed = self.bytes_needed(precision, parameters, plain)
        if needed > self.total:
            return "too large"
        return "fits" if needed <= self.free else "fits once other programs make room"

    def bytes_needed(self, precision: Precision, parameters: int, plain: int = 0) -> int:
        """Return the bytes that such a model needs on this device."""
        return bytes_needed(parameters, precision, plain, self.plain_bytes)


def bytes_needed(parameters: int, precision: Precision, plain: int = 0, plain_bytes: int = 2) -> int:
    """Return the bytes that a model needs: its weights and the allowance. `plain` parameters are never quantized."""
    size = BYTES_PER_PARAMETER[precision]
    weights = (parameters - plain) * size + plain * (size if precision in ("fp32", "bf16") else plain_bytes)
    return round(weights * (1 + ALLOWANCE_SHARE)) + ALLOWANCE_BYTES


def device_memories() -> list[DeviceMemory]:
    """Return the machine's memory, if the system tells it, and the memory of each GPU that torch finds."""
    machine = machine_memory()
    return ([machine] if machine else []) + _gpu_memories()


def memory_of(device: str) -> DeviceMemory:
    """Return the memory of "cpu" or "cuda". If the system does not tell it, the result is practically unlimited."""
    memory = next(iter(_gpu_memories()), None) if device == "cuda" else machine_memory()
    return memory or DeviceMemory("memory", sys.maxsize, sys.maxsize, *_processor_precisions())


def gigabytes(count: int) -> str:
    """Return a number of bytes as text for people."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def machine_memory() -> DeviceMemory | None:
    """Return the memory of the machine or of our container; None if the system does not tell it."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        total, free = page * os.sysconf("SC_PHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = 1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1])
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # the file says "max" if there is no limit
            total = min(total, int(Path(path).read_text()))
    return DeviceMemory("memory", total, min(free, total), *_processor_precisions())


def processor_has_bf16() -> bool:
    """Tell whether the processor has bf16 instructions. Without them bf16 is several times slower than fp32."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


def _processor_precisions() -> tuple[tuple[Precision, ...], int]:
    """Return the processor's precisions, the best first, and the bytes of a weight in the best one."""
    return (("bf16", "int8", "int4"), 2) if processor_has_bf16() else (("fp32", "bf16", "int8", "int4"), 4)


def has_gpu_driver() -> bool:
    """Tell whether there is a GPU's driver. Without one torch finds no GPU."""
    return any(Path(device).exists() for device in _GPU_DEVICES) or shutil.which("nvidia-smi") is not None


def _gpu_memories() -> list[DeviceMemory]:
    if not has_gpu_driver():
        return []
    try:
        import torch  # takes seconds, so only where there is a driver

        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    except (ImportError, OSError):
        return []
    memories = []
    for index in range(count):
        free, total = torch.cuda.mem_get_info(index)
        has_fp8 = torch.cuda.get_device_capability(index) >= _FIRST_CAPABILITY_WITH_FP8
        precisions: tuple[Precision, ...] = ("bf16", "fp8", "int8", "int4") if has_fp8 else ("bf16", "int8", "int4")
        memories.append(DeviceMemory(torch.cuda.get_device_name(index), total, free, precisions))
    return memories
