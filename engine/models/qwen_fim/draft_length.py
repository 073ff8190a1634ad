"""The length of the next draft."""

START = 8
LONGEST = 16
"""In tokens. Nine of ten fills of one line are no longer."""
_RECENT = 0.25
_WORTH = 0.5
_LONGEST_PAUSE = 64


class DraftLength:
    """A draft has twice the recent mean of accepted tokens, plus one. So after a draft that was accepted in full, the
    next is longer; after one that was half accepted, the next has the same length.

    When the mean falls below half a token, drafting pauses for 2 passes. Each further draft that is rejected in full
    doubles the pause, up to 64 passes. So a drafter that is always wrong costs one draft in 65 passes, and one that
    becomes right again is noticed.
    """

    def __init__(self) -> None:
        self._mean = START / 2
        self._pause = self._remaining = 0

    def next(self) -> int:
        """Return how many tokens to draft for the next pass of a hole; 0 during a pause."""
        if self._remaining > 0:
            self._remaining -= 1
            return 0
        return min(LONGEST, 1 + round(2 * self._mean))

    def learn(self, accepted: int) -> None:
        """Record how many tokens of a draft were accepted."""
        self._mean += _RECENT * (accepted - self._mean)
        if accepted:
            self._pause = 0
        elif self._mean < _WORTH:
            self._pause = self._remaining = min(_LONGEST_PAUSE, 2 * self._pause or 2)
