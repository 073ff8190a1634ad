"""The sizes that shapes are rounded up to, so that few graphs serve all batches."""

import attrs


@attrs.frozen
class RowBucket:
    """How many holes, rows of each, positions that those see, and rows of each whose logits are asked for."""

    slots: int
    rows: int
    capacity: int
    wanted: int


def rounded(number: int, least: int = 1) -> int:
    """Return the smallest power of two that is at least `number` and at least `least`."""
    return 1 << (max(number, least) - 1).bit_length()


def capacity_for(length: int, least: int, most: int) -> int | None:
    """Return how many positions a step over `length` of them attends to; None where there are not so many."""
    if length > most:
        return None
    return min(rounded(length, least), most)
