"""How long the next draft is."""

START = 8
LONGEST = 16
"""Tokens: nine of ten fills of a line are no longer."""
_RECENT = 0.25
_WORTH = 0.5
_LONGEST_REST = 64


class DraftLength:
    """Twice the mean of what was accepted lately, and one more: a draft that is accepted whole is followed by a longer
    one, and one that is half right by one of the same length.

    Where less than half a token of a draft is accepted, drafting rests: for 2 passes, then after each further draft of
    which nothing is accepted for twice as many as before, up to 64. So a drafter that is never right costs one draft in
    65 passes, and one that is right again is noticed.
    """

    def __init__(self) -> None:
        self._mean = START / 2
        self._rest = self._left = 0

    def next(self) -> int:
        """Return how many tokens to draft for the next pass of a hole; 0 for none."""
        if self._left > 0:
            self._left -= 1
            return 0
        return min(LONGEST, 1 + round(2 * self._mean))

    def learn(self, accepted: int) -> None:
        """Take how many tokens of a draft were accepted."""
        self._mean += _RECENT * (accepted - self._mean)
        if accepted:
            self._rest = 0
        elif self._mean < _WORTH:
            self._rest = self._left = min(_LONGEST_REST, 2 * self._rest or 2)
