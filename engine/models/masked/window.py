"""What of a hole's sides goes into the model's window."""


def cut(before: list[int], after: list[int], room: int) -> tuple[list[int], list[int]]:
    """Return the two sides' tokens in at most `room` tokens: what is furthest from the hole goes.

    Two thirds are the prefix's and one third the suffix's; what one of them does not need is the other's.
    """
    share = max(0, room - room // 3)
    behind = min(len(after), max(room // 3, room - len(before)))
    ahead = min(len(before), max(share, room - len(after)), room - behind)
    return before[len(before) - ahead :], after[:behind]
