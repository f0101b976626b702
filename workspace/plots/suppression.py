"""Small numbers of confidential records are not drawn: a bar of one record is that record."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEAST_RECORDS", "shown_counts", "shown_range", "sparse"]

Floats = NDArray[np.float64]

LEAST_RECORDS = 3
"""A bar, or a stretch of a curve, speaks of at least so many confidential records."""


def shown_counts(counts: NDArray[np.integer]) -> Floats:
    """Counts (k,) of confidential records, NaN below three: none and a few look alike, so that a few are not found."""
    return np.where(counts < LEAST_RECORDS, np.nan, counts.astype(np.float64))


def shown_range(values: Floats) -> tuple[float, float] | None:
    """The third smallest and the third largest of (n,) confidential values; None where there are fewer than three."""
    if values.size < LEAST_RECORDS:
        return None
    ends = np.partition(values, (LEAST_RECORDS - 1, values.size - LEAST_RECORDS))
    low, high = float(ends[LEAST_RECORDS - 1]), float(ends[values.size - LEAST_RECORDS])
    return min(low, high), max(low, high)


def sparse(values: Floats, points: Floats, reach: float) -> NDArray[np.bool_]:
    """Which of the ``points`` (k,) have fewer than three of the values (n,) within ``reach``."""
    ordered = np.sort(values)
    near = np.searchsorted(ordered, points + reach, "right") - np.searchsorted(ordered, points - reach, "left")
    return np.asarray(near < LEAST_RECORDS)
