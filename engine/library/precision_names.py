"""The names of the precisions. Does not import torch."""

from typing import Literal, get_args

from engine.errors import ModelError

Precision = Literal["fp32", "bf16", "fp8", "int8", "int4"]
PrecisionSetting = Literal["auto", "bf16", "int8", "int4", "fp8", "fp32"]
"""The values that a user can set. "auto" chooses the best precision that fits the memory."""

TORCH_PRECISIONS: tuple[PrecisionSetting, ...] = ("fp32", "bf16")
"""Those that the embedded model can be run in, by torch. It has the others' place filled with its own int4."""

PRECISION_SETTINGS: tuple[PrecisionSetting, ...] = get_args(PrecisionSetting)


def check_precision_setting(name: str) -> PrecisionSetting:
    """Return `name` as a precision setting. Raises ModelError for any other name."""
    for precision in PRECISION_SETTINGS:
        if precision == name:
            return precision
    raise ModelError(f"unknown precision {name!r}; use one of {', '.join(PRECISION_SETTINGS)}")
