"""Counts of a release that are closer to the confidential ones than chance lets a fitted model come.

Where many people share their values nobody stands out, and a table whose columns are copied row by row is seen in its counts alone. Rows
that are drawn from a model with the confidential shares differ from the expected counts by Pearson's chi-squared of one for each cell, those of an
independent sample by twice as much. A copy has none. Sampling without chance, such as systematic draws, looks like one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .cells import Keys
from .people import Subset

FEWEST_RECORDS, FEWEST_CELLS = 8, 10
"""Cells of fewer records, or of fewer expected rows, are not looked at, nor are sets of columns with fewer such cells: where less than one row is
expected, none is nearer to the expected count than chance."""


@dataclass(frozen=True)
class Copied:
    """How far the counts of ``cells`` cells of some columns, with ``records`` records, are from the confidential ones: Pearson's ``distance``
    for each degree of freedom, 1 for a fitted model, and the probability ``p`` of one so small.
    """

    what: str
    cells: int
    records: int
    distance: float
    p: float


def copied_counts(
    own: Mapping[str, Keys], members: int, releases: Sequence[Mapping[str, Keys]], subsets: Sequence[Subset]
) -> Copied | None:
    """The set of columns whose released counts are nearest to the members', its p times the number of tests; None without enough cells.

    ``own`` are marked cells of the joint table, its first ``members`` rows the members'.
    """
    from scipy.stats import chi2

    found = []
    for subset in subsets:
        rows = np.sum([own[name][:members] for name in subset.names], axis=0, dtype=np.uint64)
        values, counts = np.unique(rows, return_counts=True)
        for cells in releases:
            those = np.sort(np.sum([cells[name] for name in subset.names], axis=0, dtype=np.uint64))
            enough = counts * min(1.0, len(those) / members) >= FEWEST_RECORDS
            if enough.sum() < FEWEST_CELLS:
                continue
            some, expected = values[enough], counts[enough] * (len(those) / members)
            seen = np.searchsorted(those, some, side="right") - np.searchsorted(those, some)
            distance, df = float((np.square(seen - expected) / expected).sum()), len(some) - 1
            records = int(counts[enough].sum())
            found.append(Copied(subset.what, len(some), records, distance / df, float(chi2.cdf(distance, df))))
    if not found:
        return None
    best = min(found, key=lambda one: (one.p, one.distance))
    return Copied(best.what, best.cells, best.records, best.distance, min(1.0, best.p * len(found)))
