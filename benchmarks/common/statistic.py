"""Percentiles of a list of numbers."""

import statistics
from collections.abc import Sequence

import attrs


@attrs.frozen
class Percentiles:
    """Three percentiles, in the unit of the values; all are 0 for no values."""

    count: int
    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Percentiles":
        """Return the percentiles of `values`."""
        if len(values) < 2:
            only = values[0] if values else 0.0
            return cls(len(values), only, only, only)
        cuts = statistics.quantiles(values, n=100, method="inclusive")
        return cls(len(values), statistics.median(values), cuts[94], cuts[98])
