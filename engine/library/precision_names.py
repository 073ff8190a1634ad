"""The precisions by name; free of torch."""

from typing import Literal, get_args

from engine.errors import ModelError

Precision = Literal["fp32", "bf16", "fp8", "int8", "int4"]
Wish = Literal["auto", "bf16", "int8", "int4", "fp8", "fp32"]
"""What a user may ask for; "auto" takes the best that fits."""

WISHES: tuple[Wish, ...] = get_args(Wish)


def check_wish(name: str) -> Wish:
    """Return what a user asks for. Raises ModelError for a name that is no precision."""
    for wish in WISHES:
        if wish == name:
            return wish
    raise ModelError(f"unknown precision {name!r}; use one of {', '.join(WISHES)}")
