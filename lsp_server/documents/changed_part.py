"""The part in which two texts differ."""


def changed_part(before: str, after: str) -> tuple[int, int, int]:
    """Return the part that differs: its start in both texts, its end in `before` and its end in `after`."""
    shorter = min(len(before), len(after))
    start = _common(before, after, shorter)
    tail = _common(before[::-1], after[::-1], shorter - start)
    return start, len(before) - tail, len(after) - tail


def _common(one: str, other: str, most: int) -> int:
    """Return the length of the start that both texts share."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low
