"""Average linkage clustering (UPGMA; Sokal & Michener 1958) of weighted points by Euclidean distance.

Average linkage is reducible: merging two clusters that are each other's nearest neighbours brings no third one nearer
to the result than it was to the nearer part (Bruynooghe 1978; Müllner 2011). So all such pairs may be merged at
once, round after round, and the dendrogram is that of one merge at a time. The first round finds its pairs in a k-d
tree, before there is a matrix of distances: that has a row for each cluster that is left.

The merges are those of ``scipy.cluster.hierarchy`` (a test holds that), which takes no weights and all distances at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from ..arrays import Floats, Integers


@dataclass(frozen=True)
class Dendrogram:
    """The merges of U points, (U - 1,) each: cluster ``gone`` joined cluster ``into`` at distance ``height``.

    A cluster goes by one of its points, so every point but one is ``gone`` once. A merge comes after those inside it.
    """

    into: Integers
    gone: Integers
    height: Floats

    def cut(self, clusters: int) -> Integers:
        """The cluster of each point, (U,), numbered from 0, after undoing the ``clusters`` - 1 highest merges.

        With fewer points than clusters every point is one. Of merges equally high the later are undone.
        """
        points = len(self.gone) + 1
        kept = np.argsort(self.height, kind="stable")[: max(points - clusters, 0)]
        parent = np.arange(points)
        parent[self.gone[kept]] = self.into[kept]
        while not np.array_equal(above := parent[parent], parent):
            parent = above
        return np.unique(parent, return_inverse=True)[1].astype(np.int64)


Merges = tuple[Integers, Integers, Floats]
Watch = Callable[[int], None]

ROWS_AT_ONCE = 64
SHARE_WORTH_A_PASS = 1 / 8


def unwatched(clusters: int) -> None:
    """Nobody wants to know."""


def average_linkage(points: Floats, weights: Floats, watch: Watch = unwatched) -> Dendrogram:
    """The dendrogram of U different points (U, d), point u standing for ``weights[u]`` identical records.

    Memory is 8 K^2 bytes, with K the clusters after the first round: about 0.7 U. ``watch(clusters)`` is told often how
    many clusters are left, and may raise to stop.
    """
    into, gone, height = _nearest_pairs(points)
    alone = np.setdiff1d(np.arange(len(points)), np.concatenate([into, gone]))
    names = np.concatenate([into, alone])
    mass = weights[names]
    mass[: len(gone)] += weights[gone]
    matrix = _distances(points[names], points[gone], weights[into] / mass[: len(gone)], watch)
    merges = [(into, gone, height), *_rounds(matrix, mass, names, watch)]
    return Dendrogram(*(np.concatenate(column) for column in zip(*merges, strict=True)))


def _nearest_pairs(points: Floats) -> Merges:
    """The pairs of points that are each other's nearest neighbour."""
    if len(points) < 2:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    here = np.arange(len(points))
    gap, found = cKDTree(points).query(points, k=2)
    other = np.where(found[:, 0] == here, 1, 0)
    nearest = found[here, other].astype(np.int64)
    into = np.flatnonzero((nearest[nearest] == here) & (here < nearest))
    return into, nearest[into], gap[into, other[into]]


def _distances(first: Floats, second: Floats, share: Floats, watch: Watch) -> Floats:
    """Average distances (K, K) between clusters, infinite on the diagonal.

    ``first`` (K, d) has one point of each; the J clusters that have another come first, with it in ``second`` (J, d)
    and ``share`` (J,) of their weight on the first.
    """
    clusters, pairs = len(first), len(second)
    matrix = np.empty((clusters, clusters))
    for start in range(0, clusters, ROWS_AT_ONCE):
        watch(clusters)
        end = min(start + ROWS_AT_ONCE, clusters)
        later = first[start:], second[start:], share[start:]
        block = _to_clusters(first[start:end], *later)
        stop = max(min(end, pairs) - start, 0)
        weight = share[start : start + stop, None]
        block[:stop] *= weight
        block[:stop] += (1 - weight) * _to_clusters(second[start : start + stop], *later)
        matrix[start:end, start:] = block
        matrix[end:, start:end] = block[:, end - start :].T
    np.fill_diagonal(matrix, np.inf)
    return matrix


def _to_clusters(points: Floats, first: Floats, second: Floats, share: Floats) -> Floats:
    """The average distance from each of r points to each cluster, (r, K)."""
    away = cdist(points, first)
    away[:, : len(second)] *= share
    away[:, : len(second)] += (1 - share) * cdist(points, second)
    return np.asarray(away)


def _rounds(matrix: Floats, mass: Floats, names: Integers, watch: Watch) -> Iterator[Merges]:
    """All merges of clusters with these distances, weights and names, round after round; ``matrix`` is used up."""
    nearest = np.asarray(matrix.argmin(axis=1))
    alive = np.ones(len(names), bool)
    while alive.sum() > 1:
        watch(int(alive.sum()))
        into, gone = _reciprocal_pairs(matrix, nearest)
        yield names[into], names[gone], matrix[into, gone]
        share = mass[into] / (mass[into] + mass[gone])
        mass[into] += mass[gone]
        alive[gone] = False
        stale = np.isin(nearest, np.concatenate([into, gone]))
        stale[into] = True
        if np.mean(~alive) > SHARE_WORTH_A_PASS:
            kept = np.flatnonzero(alive)
            matrix = _merge_and_pack(matrix, into, gone, share, kept)
            nearest = (np.cumsum(alive) - 1)[nearest[kept]]
            mass, names, stale, alive = mass[kept], names[kept], stale[kept], alive[kept]
        else:
            _merge_in_place(matrix, into, gone, share)
            nearest[gone] = gone
        for row in np.flatnonzero(stale & alive):
            nearest[row] = matrix[row].argmin()


def _reciprocal_pairs(matrix: Floats, nearest: Integers) -> tuple[Integers, Integers]:
    """Pairs of mutual nearest neighbours, lower first; where ties hide them all, the nearest pair there is."""
    here = np.arange(len(nearest))
    into = np.flatnonzero((nearest[nearest] == here) & (here < nearest))
    if len(into):
        return into, nearest[into]
    closest = int(matrix[here, nearest].argmin())
    pair = np.sort([closest, nearest[closest]])
    return pair[:1], pair[1:]


def _merge_in_place(matrix: Floats, into: Integers, gone: Integers, share: Floats) -> None:
    """Average the row and column of ``gone`` into those of ``into``, pair by pair: for a few pairs."""
    for i, j, part in zip(into, gone, share, strict=True):
        row = part * matrix[i] + (1 - part) * matrix[j]
        matrix[i], matrix[:, i] = row, row
        matrix[j], matrix[:, j] = np.inf, np.inf


def _merge_and_pack(matrix: Floats, into: Integers, gone: Integers, share: Floats, kept: Integers) -> Floats:
    """The same for many pairs, in one pass that also drops the rows and columns that are not ``kept``, within memory.

    A row is written at or before its own place, and ``gone`` lies after ``into``: nothing is read after it is written.
    """
    partner = dict(zip(into.tolist(), zip(gone.tolist(), share.tolist(), strict=True), strict=True))
    for place, i in enumerate(kept.tolist()):
        row = matrix[i]
        if i in partner:
            j, part = partner[i]
            row = part * row + (1 - part) * matrix[j]
        row[into] = share * row[into] + (1 - share) * row[gone]
        matrix[place, : len(kept)] = row[kept]
        matrix[place, place] = np.inf
    return matrix[: len(kept), : len(kept)]
