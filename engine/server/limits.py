"""What a Fill may ask for, so that no client can tie up the engine that all of them share."""

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
_CHARACTERS = {"prefix": 1_000_000, "suffix": 1_000_000, "path": 4096, "language": 64}
_SNIPPETS = 64


def what_is_wrong(fill: Fill) -> str | None:
    """Return one line that names the first field out of bounds and what is allowed; None when the fill is all right."""
    for name, (low, high) in _RANGES.items():
        value = getattr(fill, name)
        if not low <= value <= high:  # false for NaN, too
            return f"{name} is {value}; it can be {low} to {high}"
    for name, most in _CHARACTERS.items():
        length = len(getattr(fill, name))
        if length > most:
            return f"{name} has {length} characters; at most {most} are allowed"
    if len(fill.snippets) > _SNIPPETS:
        return f"there are {len(fill.snippets)} snippets; at most {_SNIPPETS} are allowed"
    return None
