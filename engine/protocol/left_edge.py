"""Where a long text is cut on its left, so that most keystrokes leave the cut where it is."""


def left_edge(length: int, room: int, stride: int) -> int:
    """Return the index of the first character or token to keep, so that at most `room` of `length` remain.

    The edge is 0 while everything fits, and else a multiple of `stride`: as the text grows at its end, the edge stays
    for `stride` keystrokes. A larger stride moves the edge less often and keeps less text. A stride below 1 counts as
    1. With no room the edge may lie past the end.
    """
    stride = max(stride, 1)
    return max(0, -(-(length - room) // stride) * stride)
