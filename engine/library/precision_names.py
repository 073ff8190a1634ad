"""The precisions by name; free of torch."""

from typing import Literal, get_args

from engine.errors import ModelError

Precision = Literal["fp32", "bf16", "fp8", "int8", "int4"]
PrecisionSetting = Literal["auto", "bf16", "int8", "int4", "fp8", "fp32"]
"""What a user may ask for; "auto" takes the best that fits."""

PRECISION_SETTINGS: tuple[PrecisionSetting, ...] = get_args(PrecisionSetting)


def check_precision_setting(name: str) -> PrecisionSetting:
    """Return what a user asks for. Raises ModelError for a name that is no precision."""
    for precision in PRECISION_SETTINGS:
        if precision == name:
            return precision
    raise ModelError(f"unknown precision {name!r}; use one of {', '.join(PRECISION_SETTINGS)}")
