"""Missing values beside numbers and levels, for statistics that need every record."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats
from .collinearity import column_scales

OWN_LEVEL = -1.0


def with_own_level(codes: Floats) -> Floats:
    """Codes of levels (n,), at least 0, with one level more for those that are missing (NaN)."""
    return np.where(np.isnan(codes), OWN_LEVEL, codes)


def filled_with_mean(values: Floats) -> tuple[Floats, Floats]:
    """Numbers (n,), the missing ones (NaN) at the mean of the others, and who is missing: both (n,).

    The mean does not depend on the order of the records. Where no number is present all are 0.
    """
    missing = np.isnan(values)
    if not missing.any():
        return values, missing.astype(np.float64)
    present = np.sort(values[~missing])
    mean = (present / (scale := column_scales(present))).mean() * scale if present.size else 0.0
    return np.where(missing, mean, values), missing.astype(np.float64)


def left_out(missing: int, records: int) -> str:
    """``12 of 120 records have no value``; empty where none is missing."""
    return f"{missing:,} of {records:,} records have no value" if missing else ""
