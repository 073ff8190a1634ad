"""The kinds of values that settings take, and how each is read from what an editor sends."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs


@attrs.frozen
class Kind:
    """The type of a setting. `read` returns the value, or raises ValueError when it is not what `allowed` says."""

    allowed: str
    read: Callable[[object], Any]


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _flags(value: object) -> dict[str, bool]:
    if not isinstance(value, Mapping) or not all(isinstance(on, bool) for on in value.values()):
        raise ValueError
    return {str(key): on for key, on in value.items()}


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) and text for text in value):
        raise ValueError
    return tuple(value)


def integer(low: int, high: int) -> Kind:
    """Return the kind of whole numbers from `low` to `high`."""

    def read(value: object) -> int:
        # Lua and some JSON writers send 150.0 for 150. To Python, True is an int.
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise ValueError
        if not low <= value <= high:
            raise ValueError
        return int(value)

    return Kind(f"a whole number from {low} to {high}", read)


def number(low: float, high: float) -> Kind:
    """Return the kind of numbers from `low` to `high`."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ValueError
        return float(value)

    return Kind(f"a number from {low:g} to {high:g}", read)


def number_or_word(words: Iterable[str], low: float, high: float) -> Kind:
    """Return the kind of numbers from `low` to `high` and of these words."""
    numbers, allowed = number(low, high), tuple(words)

    def read(value: object) -> float | str:
        return value if isinstance(value, str) and value in allowed else float(numbers.read(value))

    return Kind(f"{', '.join(allowed)}, or {numbers.allowed}", read)


def choice(*choices: str) -> Kind:
    """Return the kind of these texts."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ValueError
        return value

    return Kind("one of " + ", ".join(choices), read)


FLAG = Kind("true or false", _flag)
FLAGS = Kind("an object of language ids and true or false", _flags)
TEXT = Kind("a text that is not empty", _text)
GLOBS = Kind("a list of file name patterns", _texts)
