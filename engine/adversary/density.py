"""Nearest-neighbour estimate of the ratio of a release's density to that of other people at a record.

The density of N records at a point is c / (N r^d), with r the distance of the k-th nearest, c the number of records
within r, and d the number of variables. A record's score is its log density in the release less that in the reference,
people of the same population who are not in the data (van Breugel, Sun, Qian & van der Schaar 2023, eq. 2, there with
other density estimates).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Floats
from ..statistics.gower import GowerDistance
from .nearest_records import NearestRecords


@dataclass(frozen=True, eq=False)
class NeighbourDistances:
    """Distances of the k nearest records to each of q points.

    distances: distances of the k nearest, ascending, (q, k)
    n_within: number of records as near as the k-th, (q,)
    n_records: number of records searched
    """

    distances: Floats
    n_within: Floats
    n_records: int

    @classmethod
    def from_places(cls, gower: GowerDistance, places: Floats, table: Floats, neighbours: int) -> NeighbourDistances:
        """Find the nearest of at least one record at positions ``table`` (r, d) to ``places`` (q, d)."""
        near = NearestRecords.from_places(gower, places, table, neighbours)
        which = near.searched.combination_of
        return cls(near.k_distances[which], near.count_records().astype(np.float64)[which], len(table))

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
            # Ties with a table's own k-th distance are not among its k distances.
            np.where(one.kth_distance == reach[:, 0], one.n_within, (one.distances <= reach).sum(axis=1))
            for one in tables
        ]
        return cls(nearest, np.sum(counts, axis=0), sum(one.n_records for one in tables))


def log_density_ratio(inside: NeighbourDistances, outside: NeighbourDistances, variables: int) -> Floats:
    """Return the density scores of q points, (q, 2), to be ordered by the first column, then by the second.

    The first column is 1 for an infinite ratio, -1 for a ratio of 0, else 0; the second is the log ratio without zero
    distances.
    """
    # An equal record makes r = 0. The two columns have the order of the ratio as r approaches 0: by the shares c / N
    # where both are 0.
    endless = (inside.kth_distance == 0).astype(np.float64) - (outside.kth_distance == 0)
    own, other = (np.log(np.where(one.kth_distance > 0, one.kth_distance, 1.0)) for one in (inside, outside))
    more = np.log(inside.n_within / inside.n_records) - np.log(outside.n_within / outside.n_records)
    return np.stack([endless, more + variables * (other - own)], axis=1)
