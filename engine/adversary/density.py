"""The ratio of the density of a release to that of other people at the place of a record, from nearest neighbours.

The density of N records at a place is c / (N r^d): r is the distance of the k-th nearest, c how many lie as near as that, d the number of
variables. The score of a record is the logarithm of its density in the release over that in the reference, which are people of the same
population who are not in the data (van Breugel, Sun, Qian & van der Schaar 2023, eq. 2, there with other estimates of the densities).

Where a released record equals the person, r is 0 and the density is infinite. Such scores have the order of the ratio as r approaches 0:
above all others where no reference record is equal, and by the shares c / N where both tables have equal records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Floats, Integers
from ..statistics.gower import Gower
from .distances import MOST_EXACT, UNIT, Distances
from .nearest import near


def candidates(gower: Gower, places: Floats, table: Floats, k: int) -> tuple[Integers, Integers, Floats, Floats]:
    """Pairs that contain the k nearest records of ``table`` (r, d), r at least k, for each record at ``places`` (q, d).

    Returns the two sides of the pairs, (p,) each, their distances (p,), and the distance of the k-th nearest, (q,). Every record of the table
    within that distance is in a pair. Single precision selects the pairs; their distances are exact.
    """
    rough = Distances.by(gower)
    slack = int(2 * (~rough.levelled).sum() + len(rough.levelled) // MOST_EXACT * UNIT)
    rows, columns = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for pairs in near(rough, rough.rounded(places), rough.rounded(table), k, slack):
        rows.append(pairs.row + pairs.rows.start)
        columns.append(pairs.column)
    row, column = np.concatenate(rows), np.concatenate(columns)
    exact = gower.pairs(places, table, row, column)
    order = np.lexsort((exact, row))
    first = np.searchsorted(row[order], np.arange(len(places)))
    return row, column, exact, exact[order[first + k - 1]]


@dataclass(frozen=True, eq=False)
class Near:
    """For q places the distances of the k nearest of all ``records``, ascending, (q, k), and how many records are as near as the last, (q,)."""

    nearest: Floats
    count: Floats
    records: int

    @classmethod
    def of(cls, gower: Gower, places: Floats, table: Floats, neighbours: int) -> Near:
        """Among records at places ``table`` (r, d), r at least 1, of those at ``places`` (q, d)."""
        k = min(neighbours, len(table))
        distinct, query = np.unique(places, axis=0, return_inverse=True)
        different, held = np.unique(table, axis=0, return_counts=True)
        row, column, exact, _ = candidates(gower, distinct, different, min(k, len(different)))
        order = np.lexsort((exact, row))
        exact, row, held = exact[order], row[order], held[column[order]]
        first = np.searchsorted(row, np.arange(len(distinct)))
        before = np.cumsum(held) - held
        before -= before[first][row]
        at = np.flatnonzero(before < k)
        times = np.minimum(held[at], k - before[at])
        nearest = np.repeat(exact[at], times).reshape(len(distinct), k)
        inside = np.where(exact <= nearest[row, -1], held, 0).astype(np.float64)
        count = np.bincount(row, weights=inside, minlength=len(distinct)).astype(np.float64)
        return cls(nearest[query.ravel()], count[query.ravel()], len(table))

    @property
    def reach(self) -> Floats:
        """The distance of the k-th nearest, (q,)."""
        return self.nearest[:, -1]

    @classmethod
    def together(cls, tables: Sequence[Near], neighbours: int) -> Near:
        """The same of the records of several tables in one."""
        nearest = np.sort(np.concatenate([one.nearest for one in tables], axis=1), axis=1)[:, :neighbours]
        reach = nearest[:, -1:]
        counts = [np.where(one.reach == reach[:, 0], one.count, (one.nearest <= reach).sum(axis=1)) for one in tables]
        return cls(nearest, np.sum(counts, axis=0), sum(one.records for one in tables))


def log_ratio(inside: Near, outside: Near, variables: int) -> Floats:
    """The scores, (q, 2), ordered by the first column and then by the second: 1 for an infinite ratio, -1 for a ratio of 0, else 0; and its logarithm.

    For a ratio that is infinite or 0 the logarithm leaves out the distances that are 0.
    """
    endless = (inside.reach == 0).astype(np.float64) - (outside.reach == 0)
    own, other = (np.log(np.where(one.reach > 0, one.reach, 1.0)) for one in (inside, outside))
    more = np.log(inside.count / inside.records) - np.log(outside.count / outside.records)
    return np.stack([endless, more + variables * (other - own)], axis=1)
