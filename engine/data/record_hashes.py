"""Hashes of records by their numbers: equal records have equal hashes, in every process and on every machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .arrays import Floats
from .bits import MISSING_KEY, Keys, mix_bits

_STEP = np.uint64(0xD1B54A32D192ED03)


def hash_records(columns: Sequence[Floats], rows: slice) -> Keys:
    """Return a hash of each record in ``rows`` by its columns (n,), 64 bits, mixed as in SplitMix64 (Steele, Lea & Flood
    2014). A missing value (NaN) equals another one.
    """
    found = np.zeros(rows.stop - rows.start, np.uint64)
    for column in columns:
        # -0.0 + 0.0 is 0.0: equal numbers have equal bits.
        values = column[rows] + 0.0
        bits = values.view(np.uint64)
        bits[np.isnan(values)] = MISSING_KEY
        found = mix_bits(found * _STEP + bits + MISSING_KEY)
    return found
