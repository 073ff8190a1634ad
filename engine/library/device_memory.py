"""The memory of this machine and of its GPUs, and whether a model fits before it is loaded.

Imports torch only where there is a GPU driver.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

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
UNKNOWN = sys.maxsize
"""The bytes of a memory whose size the system does not tell."""
_FIRST_CAPABILITY_WITH_FP8 = (8, 9)
_OPERATIONS_A_CYCLE = {(8, 0): 2048, (9, 0): 4096, (10, 0): 8192, (10, 3): 8192}
_OPERATIONS_A_CYCLE_OF_OTHERS = 512
"""Each multiprocessor's, in bf16 with sums in fp32: 312 TFLOP/s on an A100, 71 on an RTX 3090."""
_COPIED, _SIDE = 1 << 25, 768
"""What is copied (bytes) and multiplied (sides) to measure a processor."""
_GPU_DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@attrs.frozen
class DeviceMemory:
    """The memory of a device, in bytes: the total, and what is free now.

    `precisions` are those that the device computes in, the best first. In a quantized model, a weight that is never
    quantized takes `plain_bytes`. `bytes_per_s` and `operations_per_s` (of floating point) are what the device can move
    and multiply, and `kernel_bytes_per_s` what of weights our kernel reads; 0 if not known.
    """

    name: str
    total: int
    free: int
    precisions: tuple[Precision, ...]
    plain_bytes: int = 2
    bytes_per_s: float = 0.0
    operations_per_s: float = 0.0
    is_gpu: bool = False
    kernel_bytes_per_s: float = 0.0

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
    weights = bytes_of_weights(parameters, precision, plain, plain_bytes)
    return round(weights * (1 + ALLOWANCE_SHARE)) + ALLOWANCE_BYTES


def bytes_of_weights(parameters: int, precision: Precision, plain: int = 0, plain_bytes: int = 2) -> float:
    """Return the bytes of the weights alone. `plain` parameters are never quantized."""
    size = BYTES_PER_PARAMETER[precision]
    return (parameters - plain) * size + plain * (size if precision in ("fp32", "bf16") else plain_bytes)


def device_memories() -> list[DeviceMemory]:
    """Return the machine's memory, if the system tells it, and the memory of each GPU that torch finds."""
    machine = machine_memory()
    return ([machine] if machine else []) + _gpu_memories()


def memory_of(device: str) -> DeviceMemory:
    """Return the memory of "cpu" or "cuda". If the system does not tell it, the result is practically unlimited."""
    memory = next(iter(_gpu_memories()), None) if device == "cuda" else machine_memory()
    return memory or DeviceMemory("memory", UNKNOWN, UNKNOWN, *_processor_precisions())


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
        name, speeds = torch.cuda.get_device_name(index), _gpu_speeds(torch.cuda.get_device_properties(index))
        memories.append(DeviceMemory(name, total, free, precisions, 2, *speeds, is_gpu=True))
    return memories


def _gpu_speeds(properties: Any) -> tuple[float, float]:
    """Return bytes and operations a second in bf16, as the maker states them, from torch's properties of a GPU."""
    memory_hertz, hertz = (1000 * getattr(properties, name, 0) for name in ("memory_clock_rate", "clock_rate"))
    bytes_per_s = 2 * memory_hertz * getattr(properties, "memory_bus_width", 0) / 8  # two transfers a cycle
    each = _OPERATIONS_A_CYCLE.get((properties.major, properties.minor), _OPERATIONS_A_CYCLE_OF_OTHERS)
    return float(bytes_per_s), float(each * properties.multi_processor_count * hertz)


def with_measured_speed(memory: DeviceMemory) -> DeviceMemory:
    """Return the machine's memory with the speed of its processor, from a copy and a product of some milliseconds."""
    import numpy as np  # an editor's process that only counts bytes needs none

    source = np.ones(_COPIED // 8)
    side = np.ones((_SIDE, _SIDE), np.float32)
    target = np.empty_like(source)
    copying = _fastest(lambda: np.copyto(target, source))
    multiplying = _fastest(lambda: side @ side)
    return attrs.evolve(memory, bytes_per_s=2 * source.nbytes / copying, operations_per_s=2 * _SIDE**3 / multiplying)


def _fastest(work: Callable[[], object]) -> float:
    """Return the seconds of the fastest of a few runs."""
    times = []
    for _ in range(4):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def unseen_gpu(version: str) -> str:
    """Return what to do where a GPU's driver is, but torch sees no GPU."""
    return (
        f"there is a GPU's driver, but torch {version} sees no GPU, so larger models run on the processor; install the "
        "build of torch for this GPU (pip install --force-reinstall torch), or update the driver"
    )
