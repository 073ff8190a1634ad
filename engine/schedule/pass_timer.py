"""What a pass costs, measured while the engine runs."""

_MOST_TIMES = 4.0
"""A pass counts as at most so many times the mean: a stop of the process during one says nothing of the next."""
_COLD = 3
"""Of so many first passes the fastest counts: they touch memory and code for the first time."""


class PassTimer:
    """A running mean of milliseconds a pass, by its number of rows rounded up to a power of two."""

    def __init__(self) -> None:
        self._mean: dict[int, float] = {}
        self._recorded: dict[int, int] = {}

    @staticmethod
    def bucket(rows: int) -> int:
        return 1 << max(0, rows - 1).bit_length()

    def record(self, rows: int, milliseconds: float) -> None:
        bucket = self.bucket(rows)
        known = self._mean.get(bucket, milliseconds)
        self._recorded[bucket] = self._recorded.get(bucket, 0) + 1
        if self._recorded[bucket] <= _COLD:
            self._mean[bucket] = min(known, milliseconds)
        else:
            self._mean[bucket] = known + 0.2 * (min(milliseconds, _MOST_TIMES * known) - known)

    def expect(self, rows: int) -> float:
        """Return the milliseconds that a pass of `rows` rows should take; 0.0 while nothing is measured."""
        if not self._mean:
            return 0.0
        bucket = self.bucket(rows)
        nearest = min(self._mean, key=lambda known: abs(known - bucket))
        return self._mean[nearest]

    def table(self) -> dict[str, float]:
        return {str(bucket): round(mean, 3) for bucket, mean in sorted(self._mean.copy().items())}
