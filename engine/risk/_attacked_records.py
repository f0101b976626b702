"""The records that an attack is tried on: a random sample of a table that does not depend on the order of its records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..data.arrays import Integers
from ..data.microdata import Microdata


def drawn(data: Microdata, most: int, rng: np.random.Generator) -> Integers:
    """Rows of ``most`` records at random, or of all where there are no more: ascending by their values, which do not tell where they stand."""
    order = np.lexsort([data.numbers(name) for name in data.schema.names])
    if len(order) <= most:
        return np.asarray(order, dtype=np.int64)
    return np.asarray(order[np.sort(rng.choice(len(order), most, replace=False))], dtype=np.int64)


def of_rows(data: Microdata, rows: Integers) -> Microdata:
    return replace(data.alone, frame=data.frame.iloc[rows].reset_index(drop=True), weights=None)
