"""The limits of a Fill's fields. Without them one client could block the engine for all others."""

from engine.protocol.messages import Fill

_RANGES: dict[str, tuple[float, float]] = {
    "id": (0, 2**63 - 1),
    "budget_ms": (1, 600_000),
    "max_tokens": (1, 2048),
    "steps": (0, 2048),
    "candidates": (1, 8),
    "temperature": (0, 2),
    "top_p": (0.01, 1),
    "seed": (0, 2**63 - 1),
}
_MAX_CHARACTERS = {"prefix": 1_000_000, "suffix": 1_000_000, "path": 4096, "language": 64}
_MAX_SNIPPETS = 64


def limit_error(fill: Fill) -> str | None:
    """Return one line that names the first field outside its limits and what is allowed; None for a valid fill."""
    for name, (low, high) in _RANGES.items():
        value = getattr(fill, name)
        if not low <= value <= high:  # also rejects NaN
            return f"{name} is {value}; it can be {low} to {high}"
    for name, maximum in _MAX_CHARACTERS.items():
        length = len(getattr(fill, name))
        if length > maximum:
            return f"{name} has {length} characters; at most {maximum} are allowed"
    if len(fill.snippets) > _MAX_SNIPPETS:
        return f"there are {len(fill.snippets)} snippets; at most {_MAX_SNIPPETS} are allowed"
    return None
