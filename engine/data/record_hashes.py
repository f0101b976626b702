"""Hashes of records by their numbers: equal records have equal hashes, in every process and on every machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .arrays import Floats

_MISSING = np.uint64(0x9E3779B97F4A7C15)
_STEP = np.uint64(0xD1B54A32D192ED03)
_MIXERS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST_SHIFT = np.uint64(31)


def hash_records(columns: Sequence[Floats], rows: slice) -> NDArray[np.uint64]:
    """Return a hash of each record in ``rows`` by its columns (n,), 64 bits, mixed as in SplitMix64 (Steele, Lea & Flood
    2014). A missing value (NaN) equals another one.
    """
    found = np.zeros(rows.stop - rows.start, np.uint64)
    for column in columns:
        # -0.0 + 0.0 is 0.0: equal numbers have equal bits.
        values = column[rows] + 0.0
        bits = values.view(np.uint64)
        bits[np.isnan(values)] = _MISSING
        found = found * _STEP + bits + _MISSING
        for shift, factor in _MIXERS:
            found = (found ^ (found >> shift)) * factor
        found ^= found >> _LAST_SHIFT
    return found
