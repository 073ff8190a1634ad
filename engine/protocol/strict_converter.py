"""A cattrs converter that does not convert between scalar types, such as a string to a number."""

from typing import Any

import cattrs


def strict_converter() -> cattrs.Converter:
    """Return a converter that raises TypeError for a scalar of another type. It accepts an int for a float."""
    converter = cattrs.Converter(detailed_validation=False)
    for scalar in (int, float, str, bool):
        converter.register_structure_hook(scalar, _exact)
    for scalar, optional in ((int, int | None), (float, float | None), (str, str | None)):
        converter.register_structure_hook(optional, lambda value, _, scalar=scalar: _exact_or_none(value, scalar))
    return converter


def _exact_or_none(value: Any, scalar: type[Any]) -> Any:
    return None if value is None else _exact(value, scalar)


def _exact(value: Any, scalar: type[Any]) -> Any:
    if scalar is float and type(value) is int:
        return float(value)
    if type(value) is not scalar:
        raise TypeError(f"expected {scalar.__name__}, got {type(value).__name__}")
    return value
