"""Cluster analysis: whether records that lie close together are as often released as confidential.

Stack both tables, cluster the N rows by average linkage (UPGMA), cut G clusters, and take ``u_c`` = 1/G sum_j w_j (n_js
/ n_j - c)^2, with n_j rows in cluster j, n_js of them released, and c the share of released rows among all (Woo et al.
2009; Guo & Hu §3.1). Numbers are scaled on the pooled rows; a variable with levels enters as one indicator for each
level, so that two different levels lie sqrt(2) apart. Missing is a level; a missing number stands at the pooled mean,
beside an indicator of who is missing.

Its baseline is the mean over all ways to label the rows of the same clusters. A partly synthetic release repeats its
other columns, which keeps a record and its copy together: it lies below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.rows import distinct_rows
from ..errors import NotComputable
from ..methods.levers import FIDELITY
from ..methods.outputs import Label, Output
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.rows import average_with_intervals
from ..methods.run import Progress, Run
from ..methods.spec import Param, Spec
from ..statistics.columns import column_scales, fill_with_mean, missing_as_level
from ..statistics.combining import monte_carlo_mean
from ..wording import count_noun

Merges = tuple[Integers, Integers, Floats]
ReportClustersLeft = Callable[[int], None]
ROWS_AT_ONCE = 64
SHARE_WORTH_A_PASS = 1 / 8


@dataclass(frozen=True)
class LinkageTree:
    """Dendrogram of U points: the merges of clusters, (U - 1,) each.

    into: cluster that the other one joined
    gone: cluster that joined it
    height: distance at which they merged

    A cluster goes by one of its points, so every point but one is ``gone`` once. A merge comes after those inside it.
    """

    into: Integers
    gone: Integers
    height: Floats

    def cut_clusters(self, clusters: int) -> Integers:
        """Return the cluster of each point, (U,), from 0, after undoing the ``clusters`` - 1 highest merges.

        With fewer points than clusters every point is a cluster. Of equally high merges the later are undone.
        """
        points = len(self.gone) + 1
        kept = np.argsort(self.height, kind="stable")[: max(points - clusters, 0)]
        parent = np.arange(points)
        parent[self.gone[kept]] = self.into[kept]
        while not np.array_equal(above := parent[parent], parent):
            parent = above
        return np.unique(parent, return_inverse=True)[1].astype(np.int64)


def report_nothing(clusters: int) -> None: ...


def average_linkage(points: Floats, weights: Floats, watch: ReportClustersLeft = report_nothing) -> LinkageTree:
    """Cluster U distinct points (U, d) by average linkage, where point u stands for ``weights[u]`` identical records.

    watch: called often with the number of clusters left; may raise to stop

    Memory is 8 K^2 bytes, with K the clusters after the first round: about 0.7 U.
    """
    # The first round finds its pairs in a k-d tree, before there is a matrix of distances. ``scipy.cluster.hierarchy``
    # makes the same merges, but takes no weights and all distances at once.
    into, gone, height = _mutual_nearest_points(points)
    alone = np.setdiff1d(np.arange(len(points)), np.concatenate([into, gone]))
    names = np.concatenate([into, alone])
    mass = weights[names]
    mass[: len(gone)] += weights[gone]
    matrix = _cluster_distances(points[names], points[gone], weights[into] / mass[: len(gone)], watch)
    merges = [(into, gone, height), *_merge_rounds(matrix, mass, names, watch)]
    return LinkageTree(*(np.concatenate(column) for column in zip(*merges, strict=True)))


def _mutual_nearest_points(points: Floats) -> Merges:
    """Return the merges of points that are each other's nearest neighbour, with their distances."""
    from scipy.spatial import cKDTree

    if len(points) < 2:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    here = np.arange(len(points))
    gap, found = cKDTree(points).query(points, k=2)
    # The nearest of two is mostly the point itself, unless rounding puts another first.
    other = np.where(found[:, 0] == here, 1, 0)
    nearest = found[here, other].astype(np.int64)
    into = np.flatnonzero((nearest[nearest] == here) & (here < nearest))
    return into, nearest[into], gap[into, other[into]]


def _cluster_distances(first: Floats, second: Floats, share: Floats, watch: ReportClustersLeft) -> Floats:
    """Return the average distances (K, K) between clusters of one or two points, infinite on the diagonal.

    first: one point of each cluster, (K, d)
    second: the other point of the first J clusters, (J, d)
    share: share of the weight of these clusters on their first point, (J,)
    """
    clusters, pairs = len(first), len(second)
    matrix = np.empty((clusters, clusters))
    for start in range(0, clusters, ROWS_AT_ONCE):
        watch(clusters)
        end = min(start + ROWS_AT_ONCE, clusters)
        later = first[start:], second[start:], share[start:]
        block = _distances_to_clusters(first[start:end], *later)
        stop = max(min(end, pairs) - start, 0)
        weight = share[start : start + stop, None]
        block[:stop] *= weight
        block[:stop] += (1 - weight) * _distances_to_clusters(second[start : start + stop], *later)
        matrix[start:end, start:] = block
        matrix[end:, start:end] = block[:, end - start :].T
    np.fill_diagonal(matrix, np.inf)
    return matrix


def _distances_to_clusters(points: Floats, first: Floats, second: Floats, share: Floats) -> Floats:
    """Return the average distance from each of r points to each cluster of one or two points, (r, K)."""
    from scipy.spatial.distance import cdist

    away = cdist(points, first)
    away[:, : len(second)] *= share
    away[:, : len(second)] += (1 - share) * cdist(points, second)
    return np.asarray(away)


def _merge_rounds(matrix: Floats, mass: Floats, names: Integers, watch: ReportClustersLeft) -> Iterator[Merges]:
    """Yield the merges of each round until one cluster is left; ``matrix`` is overwritten.

    matrix: distances between clusters, (K, K)
    mass: weight of each cluster, (K,)
    names: name of each cluster, (K,)
    """
    nearest = np.asarray(matrix.argmin(axis=1))
    alive = np.ones(len(names), bool)
    while alive.sum() > 1:
        watch(int(alive.sum()))
        # Average linkage is reducible: merging mutual nearest neighbours brings no third cluster nearer to the result
        # than it was to the nearer part (Bruynooghe 1978; Müllner 2011). So all such pairs are merged at once, and the
        # dendrogram is that of one merge at a time.
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
    """Return the pairs of mutual nearest neighbours, or the nearest pair where ties hide them all."""
    here = np.arange(len(nearest))
    into = np.flatnonzero((nearest[nearest] == here) & (here < nearest))
    if len(into):
        return into, nearest[into]
    closest = int(matrix[here, nearest].argmin())
    pair = np.sort([closest, nearest[closest]])
    return pair[:1], pair[1:]


def _merge_in_place(matrix: Floats, into: Integers, gone: Integers, share: Floats) -> None:
    """Average the rows and columns of ``gone`` into those of ``into``, pair by pair, which is fast for a few pairs."""
    for i, j, part in zip(into, gone, share, strict=True):
        row = part * matrix[i] + (1 - part) * matrix[j]
        matrix[i], matrix[:, i] = row, row
        matrix[j], matrix[:, j] = np.inf, np.inf


def _merge_and_pack(matrix: Floats, into: Integers, gone: Integers, share: Floats, kept: Integers) -> Floats:
    """Average the rows and columns of many pairs in one pass, and return the matrix of the ``kept`` clusters in the
    same memory.
    """
    partner = dict(zip(into.tolist(), zip(gone.tolist(), share.tolist(), strict=True), strict=True))
    # A row is written at or before its own place, and ``gone`` lies after ``into``: nothing is read after it is
    # written.
    for place, i in enumerate(kept.tolist()):
        row = matrix[i]
        if i in partner:
            j, part = partner[i]
            row = part * row + (1 - part) * matrix[j]
        row[into] = share * row[into] + (1 - share) * row[gone]
        matrix[place, : len(kept)] = row[kept]
        matrix[place, place] = np.inf
    return matrix[: len(kept), : len(kept)]


@dataclass(frozen=True, slots=True)
class ClusterDifference:
    """Imbalance of clusters.

    u_c: mean squared distance of the clusters' shares of released rows from that of all rows
    expected: its mean over all labellings of the rows of the same clusters
    """

    u_c: float
    expected: float


def cluster_difference(confidential: Integers, released: Integers, equal_weights: bool = False) -> ClusterDifference:
    """Compute ``u_c`` and its expectation from the numbers of rows of each table in each cluster, (G,) each, none
    empty.
    """
    rows = confidential + released
    total, clusters = rows.sum(), len(rows)
    c = released.sum() / total
    weight = np.ones(clusters) if equal_weights else rows / total
    # Under random labels n_js is hypergeometric.
    variance = c * (1 - c) * (total - rows) / (rows * (total - 1))
    return ClusterDifference(float(weight @ (released / rows - c) ** 2) / clusters, float(weight @ variance) / clusters)


def _cluster_points(points: Floats, ours: int, spec: ClusterSpec, run: Run) -> tuple[ClusterDifference, int]:
    """Return the imbalance of clusters of points (k, d), the first ``ours`` confidential, and the number of distinct
    points.
    """
    distinct = distinct_rows(points.T, len(points))
    unique, point = points[distinct.first], distinct.combination_of
    if len(unique) < 2:
        raise NotComputable("no variable varies, so there are no clusters")
    rows = np.bincount(point).astype(np.float64)
    same_shape = unique / column_scales(unique.ravel())  # squares of distances neither overflow nor vanish

    def report_merges(clusters: int) -> None:
        """Report progress by the number of clusters left."""
        run.report(Progress(len(unique) - clusters, len(unique), "clusters merged"))

    label = average_linkage(same_shape, rows, report_merges).cut_clusters(spec.clusters)[point]
    counts = [np.bincount(part, minlength=label.max() + 1) for part in (label[:ours], label[ours:])]
    return cluster_difference(counts[0], counts[1], spec.weights == "equal"), len(unique)


def _sample_rows(n: int, m: int, limit: int, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Draw rows of each table, ``limit`` together, in proportion to their sizes."""
    if n + m <= limit:
        return np.arange(n), np.arange(m)
    ours = min(max(round(limit * n / (n + m)), 1), limit - 1)
    if n == m:
        # The same records of both: a partly synthetic release keeps a record and its copy together.
        rows = rng.choice(n, limit // 2, replace=False)
        return rows, rows
    return rng.choice(n, ours, replace=False), rng.choice(m, limit - ours, replace=False)


def _sampling_remark(rows: int, total: int, points: int, spec: ClusterSpec) -> str:
    """Describe the sample that was clustered, and where there are fewer points than clusters."""
    remarks = []
    if rows < total and spec.samples > 1:
        remarks.append(f"the mean of {spec.samples} samples of {rows:,} of the {count_noun(total, 'row')}")
    elif rows < total:
        remarks.append(f"on a sample of {rows:,} of the {count_noun(total, 'row')}; samples = 5 gives an interval")
    if points < spec.clusters:
        remarks.append(f"{points} clusters, as many as there are different rows")
    return "; ".join(remarks)


def _make_points(
    confidential: Microdata, released: Microdata, names: tuple[str, ...], scaling: str, rows: Integers
) -> Floats:
    """Return some ``rows`` (k,) of both tables as points (k, d): scaled numbers and indicators of levels, without
    constant columns.
    """
    # Not a ``Design`` of predictor terms: every level that occurs has its indicator, so that all differ by the same distance.
    columns = [np.empty((len(rows), 0))]
    for name in names:
        values = np.concatenate([confidential.numbers(name), released.numbers(name)])
        if released.schema[name].kind.has_levels:
            codes = missing_as_level(values)
            occurring = np.unique(codes)
            columns += [np.equal(codes[rows, None], occurring)] if len(occurring) > 1 else []
            continue
        filled, missing = fill_with_mean(values)
        columns += [_scale_values(filled, scaling)[rows, None]] if np.ptp(filled) > 0 else []
        columns += [missing[rows, None]] if np.ptp(missing) > 0 else []
    return np.hstack(columns)


def _scale_values(values: Floats, scaling: str) -> Floats:
    """Return values (N,) divided by their standard deviation or range."""
    if scaling == "none":
        return values
    # Sums of sorted values do not depend on the order of the rows; divided first, their squares do not overflow.
    ordered = np.sort(values) / np.abs(values).max()
    spread = ordered.std() if scaling == "standard" else np.ptp(ordered)
    return np.asarray((values / np.abs(values).max() - ordered.mean()) / spread)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterSpec(Spec):
    """Number of clusters, variables to cluster by, and weights of the clusters."""

    variables: Annotated[
        tuple[str, ...], Param("variables to cluster by; all but identifiers if empty", names="variables")
    ] = ()
    clusters: Annotated[int, Param("clusters to cut", ge=2)] = 10
    weights: Annotated[Literal["share", "equal"], Param("weight of a cluster: its share of the rows, or 1")] = "share"
    scaling: Annotated[
        Literal["standard", "range", "none"], Param("divide numbers by their standard deviation, their range, or 1")
    ] = "standard"
    limit: Annotated[
        int,
        Param("rows of both tables above which a sample of this size is clustered; memory grows with its square", ge=2),
    ] = 20_000
    samples: Annotated[
        int,
        Param(
            "samples that are clustered where there are more rows; from two on their mean has an interval, which a threshold needs",
            ge=1,
        ),
    ] = 1


@measure_method(
    "Cluster analysis",
    spec=ClusterSpec,
    repeats_analysis=True,
    source="Woo et al. (2009); Guo & Hu §3.1; UPGMA: Sokal & Michener (1958)",
    outputs=(
        Output(
            "u_c",
            "mean squared distance, over clusters of similar records, of the share of released records from the share "
            "in both tables; its baseline is what released and confidential labels dealt at random give, and columns "
            "that are not synthesised make it smaller",
            "low",
            range=SHARE,
            estimated=True,
            statbarn="Clusters",
            label=Label(
                "Imbalance of clusters",
                "Clusters of similar records mix released and confidential ones with an error of {value}; 0 is an even mix.",
                "Good is no more than for labels at random.",
                "Some kinds of records are released too often or too rarely.",
                FIDELITY,
                baseline="labels at random",
            ),
        ),
    ),
    combine=average_with_intervals,
)
def cluster(confidential: Microdata, released: Microdata, spec: ClusterSpec, run: Run) -> Measure:
    """Measure ``u_c`` and its mean over random labels; above ``limit`` rows the mean over samples, with its t interval.

    Identical rows are one point, so the order of the rows does not matter. Ties between distances, frequent among whole
    numbers, are broken by the order of the values: programs that break them otherwise may cut other clusters. Raises
    NotComputable when no column varies over the two tables.
    """
    total = len(confidential) + len(released)
    names = spec.variables or confidential.schema.non_identifiers
    sampled = total > spec.limit
    draws = [run.rng] if not sampled or spec.samples == 1 else run.rng.spawn(spec.samples)
    found, remarks = list[ClusterDifference](), list[str]()
    for rng in draws:
        ours, theirs = _sample_rows(len(confidential), len(released), spec.limit, rng)
        points = _make_points(
            confidential, released, names, spec.scaling, np.concatenate([ours, len(confidential) + theirs])
        )
        difference, points_apart = _cluster_points(points, len(ours), spec, run)
        found.append(difference)
        remarks.append(_sampling_remark(len(points), total, points_apart, spec))
    value, lower, upper = monte_carlo_mean([one.u_c for one in found], within=SHARE)
    if lower is not None and lower == upper:
        lower, upper = None, None
        remarks[0] += "; no interval: the samples agree, so how much they vary is not known"
    ends = (lower, upper) if sampled else (value, value)
    expected = float(np.mean([one.expected for one in found]))
    return Measure((Estimate("u_c", value, "", *ends, baseline=expected, reason=remarks[0]),))
