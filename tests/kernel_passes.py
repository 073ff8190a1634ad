"""Random networks and rows for the passes of the embedded model that need no torch.

Imports NumPy, pytest, attrs and safetensors only: an emulated processor runs it too (tests/engine/run_neon.py).
"""

import pytest

from engine.models.embedded.kernel_pass import kernel_paths

KERNELS = ("avx512-vnni", "avx-vnni", "avx2", "neon-matrix", "neon-dot", "plain")
SAME_VECTORS = (("avx-vnni", "avx2"), ("neon-matrix", "neon-dot"))
"""Paths that differ in their products alone, and products are whole numbers: they compute the same bits."""


def skip_without(runner: str) -> None:
    """Skip the test if `runner` is a path of the kernel that is not here."""
    if runner in KERNELS and runner not in kernel_paths():
        pytest.skip(f"no path {runner} here: the kernel was not built, or the processor lacks the instructions")
