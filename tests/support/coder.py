"""Qwen2.5-Coder 0.5B with its own weights: where `make coder` puts it, and the model for tests that want it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from engine.models.left_to_right.model import LeftToRightModel

CODER = Path(__file__).parents[2] / ".editors" / "coder" / "qwen2.5-coder-0.5b.gguf"
SHA256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
HOW_TO_GET_IT = "`make coder` fetches Qwen2.5-Coder 0.5B, 491 MB"


def coder_or_skip() -> Path:
    """Return the file; skip the test without it."""
    if not CODER.exists():
        pytest.skip(f"no {CODER.name} in {CODER.parent}: {HOW_TO_GET_IT}")
    return CODER


@functools.cache
def loaded_coder() -> LeftToRightModel:
    """Return the model in the kernel, loaded once for all tests of a process; skip the test without its file."""
    from engine.models.left_to_right.load import (
        load_gguf,  # here, so that the script that fetches the file needs no engine
    )

    return load_gguf(coder_or_skip(), threads=1)
