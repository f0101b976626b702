"""Drawing of records from tables of shares within rounding.

Every cell gets its expected number of records, or one more or less. Systematic rounding (Madow 1949): cumulated shares
are multiplied by the number of records, moved by one random number, and rounded down; the differences are the counts.
"""

from __future__ import annotations

import numpy as np

from ..data.arrays import Floats, Integers


def draw_given(shares: Floats, groups: Integers, rng: np.random.Generator) -> Integers:
    """Draw a category of each record, (n,), by its group's row of ``shares`` (groups, categories).

    The order within a group is random. Of n records of a group, category k has floor or ceil of n times its share. Rows
    need not sum to 1; those of groups with records must be above 0 somewhere.
    """
    count = np.bincount(groups, minlength=len(shares)).astype(np.float64)
    upto = np.cumsum(shares, axis=1)
    last = upto[:, -1:]
    upto = np.divide(upto, last, out=np.zeros_like(upto), where=last > 0)
    upto[:, -1] = 1.0
    # Systematic rounding (Madow 1949): independent draws would add their own sampling error to what was fitted.
    places = np.floor(upto * count[:, None] + rng.random((len(shares), 1)))
    places[:, -1] = count  # the move is below 1: rounding down ends at the number of records
    times = np.diff(places, axis=1, prepend=0.0).astype(np.int64)
    values = np.repeat(np.tile(np.arange(shares.shape[1]), len(shares)), times.ravel())
    order = np.argsort(groups, kind="stable")
    shuffled = np.argsort(groups[order] + rng.random(len(groups)), kind="stable")
    drawn = np.empty(len(groups), dtype=np.int64)
    drawn[order] = values[shuffled]
    return drawn


def draw_cells(shares: Floats, records: int, rng: np.random.Generator) -> tuple[Integers, ...]:
    """Draw the categories of ``records`` records along each axis of a table, each (records,)."""
    cells = draw_given(shares.reshape(1, -1), np.zeros(records, dtype=np.int64), rng)
    return tuple(np.asarray(found, dtype=np.int64) for found in np.unravel_index(cells, shares.shape))
