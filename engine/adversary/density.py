"""Ratio of the density of a release to that of other people at the place of a record, from nearest neighbours.

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
from .distances import MOST_EXACT, UNIT, SubsetGowerDistances
from .nearest import iterate_near_pairs


def nearest_candidate_pairs(
    gower: Gower, places: Floats, table: Floats, k: int
) -> tuple[Integers, Integers, Floats, Floats]:
    """Return pairs that contain the k nearest records of ``table`` (r, d), r at least k, for each record at ``places`` (q, d).

    Returns the two sides of the pairs, (p,) each, their distances (p,), and the distance of the k-th nearest, (q,). Every record of the
    table
    within that distance is in a pair. Single precision selects the pairs; their distances are exact.
    """
    rough = SubsetGowerDistances.from_gower(gower)
    slack = int(2 * (~rough.levelled).sum() + len(rough.levelled) // MOST_EXACT * UNIT)
    rows, columns = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for pairs in iterate_near_pairs(rough, rough.round_places(places), rough.round_places(table), k, slack):
        rows.append(pairs.row + pairs.rows.start)
        columns.append(pairs.column)
    row, column = np.concatenate(rows), np.concatenate(columns)
    exact = gower.pairs(places, table, row, column)
    order = np.lexsort((exact, row))
    first = np.searchsorted(row[order], np.arange(len(places)))
    return row, column, exact, exact[order[first + k - 1]]


@dataclass(frozen=True, eq=False)
class NeighbourDistances:
    """Distances of the k nearest records to each of q places.

    distances: distances of the k nearest, ascending, (q, k)
    n_within: records that are as near as the last of them, (q,)
    n_records: number of records searched
    """

    distances: Floats
    n_within: Floats
    n_records: int

    @classmethod
    def from_places(cls, gower: Gower, places: Floats, table: Floats, neighbours: int) -> NeighbourDistances:
        """Find the nearest of the records at places ``table`` (r, d), r at least 1, to those at ``places`` (q, d)."""
        k = min(neighbours, len(table))
        distinct, query = np.unique(places, axis=0, return_inverse=True)
        different, held = np.unique(table, axis=0, return_counts=True)
        row, column, exact, _ = nearest_candidate_pairs(gower, distinct, different, min(k, len(different)))
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
    def kth_distance(self) -> Floats:
        """Return the distance of the k-th nearest, (q,)."""
        return self.distances[:, -1]

    @classmethod
    def from_tables(cls, tables: Sequence[NeighbourDistances], neighbours: int) -> NeighbourDistances:
        """Merge the distances to several tables into those to all their records."""
        nearest = np.sort(np.concatenate([one.distances for one in tables], axis=1), axis=1)[:, :neighbours]
        reach = nearest[:, -1:]
        counts = [
            np.where(one.kth_distance == reach[:, 0], one.n_within, (one.distances <= reach).sum(axis=1))
            for one in tables
        ]
        return cls(nearest, np.sum(counts, axis=0), sum(one.n_records for one in tables))


def log_density_ratio(inside: NeighbourDistances, outside: NeighbourDistances, variables: int) -> Floats:
    """Return the density scores of q places, (q, 2), ordered by the first column and then by the second.

    The first column is 1 for an infinite ratio, -1 for a ratio of 0, else 0; the second the logarithm of the ratio. For a ratio that is
    infinite or 0 the logarithm leaves out the distances that are 0.
    """
    endless = (inside.kth_distance == 0).astype(np.float64) - (outside.kth_distance == 0)
    own, other = (np.log(np.where(one.kth_distance > 0, one.kth_distance, 1.0)) for one in (inside, outside))
    more = np.log(inside.n_within / inside.n_records) - np.log(outside.n_within / outside.n_records)
    return np.stack([endless, more + variables * (other - own)], axis=1)
