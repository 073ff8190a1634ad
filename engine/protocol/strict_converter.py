"""cattrs without guesses: a number is not read from a text, nor a text from a number."""

from typing import Any

import cattrs


def strict_converter() -> cattrs.Converter:
    """Return a converter that takes scalars, and None where it may stand, only as what they are; int is also float."""
    converter = cattrs.Converter(detailed_validation=False)
    for kind in (int, float, str, bool):
        converter.register_structure_hook(kind, _exact)
    for kind, optional in ((int, int | None), (float, float | None), (str, str | None)):
        converter.register_structure_hook(optional, lambda value, _, kind=kind: _or_none(value, kind))
    return converter


def _or_none(value: Any, kind: type[Any]) -> Any:
    return None if value is None else _exact(value, kind)


def _exact(value: Any, kind: type[Any]) -> Any:
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value
