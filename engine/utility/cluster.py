"""Cluster analysis: whether records that lie close together are as often released as confidential.

Stack both tables, cluster the N rows by average linkage (UPGMA), cut G clusters, and take
``u_c`` = 1/G sum_j w_j (n_js / n_j - c)^2, with n_j rows in cluster j, n_js of them released, and c the share of
released rows among all (Woo et al. 2009; Guo & Hu §3.1). Numbers are scaled on the pooled rows; a variable with
levels enters as one indicator a level, so that two different levels lie sqrt(2) apart. Missing is a level; a missing number
stands at the pooled mean, beside an indicator of who is missing.

Its baseline is the mean over all ways to label the rows of the same clusters: n_js is then hypergeometric, so
E (n_js / n_j - c)^2 = c (1 - c) (N - n_j) / (n_j (N - 1)), and with w_j = n_j / N the baseline is c (1 - c) (G - 1) / (G (N - 1)).
A partly synthetic release repeats its other columns, which keeps a record and its copy together: it lies below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from ..arrays import Floats, Integers
from ..errors import NotComputable
from ..methods import method
from ..microdata import Microdata
from ..outputs import Output
from ..results import Estimate, Measure
from ..run import Progress, Run
from ..schema import Role
from ..spec import Param, Spec
from ..statistics.average_linkage import average_linkage
from ..statistics.bounded_interval import SHARE
from ..statistics.collinearity import column_scales
from ..statistics.missing_values import filled_with_mean, with_own_level


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterSpec(Spec):
    """How many clusters, of what, and how they are weighed."""

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
        Param("rows of both tables above which a sample of so many is clustered; memory grows with its square", ge=2),
    ] = 20_000


@dataclass(frozen=True, slots=True)
class ClusterDifference:
    """``u_c`` and its mean over all labellings of the same clusters."""

    u_c: float
    expected: float


def cluster_difference(confidential: Integers, released: Integers, equal_weights: bool = False) -> ClusterDifference:
    """Both numbers from the rows of each table in each cluster, (G,) each; no cluster is empty."""
    rows = confidential + released
    total, clusters = rows.sum(), len(rows)
    c = released.sum() / total
    weight = np.ones(clusters) if equal_weights else rows / total
    variance = c * (1 - c) * (total - rows) / (rows * (total - 1))
    return ClusterDifference(float(weight @ (released / rows - c) ** 2) / clusters, float(weight @ variance) / clusters)


@method(
    "Cluster analysis",
    spec=ClusterSpec,
    source="Woo et al. (2009); Guo & Hu §3.1; UPGMA: Sokal & Michener (1958)",
    outputs=(
        Output(
            "u_c",
            "mean squared distance, over clusters of similar records, of the share of released records from the share "
            "in both tables; its baseline is what released and confidential labels dealt at random give, and columns "
            "that are not synthesised make it smaller",
            "low",
            range=SHARE,
        ),
    ),
)
def cluster(confidential: Microdata, released: Microdata, spec: ClusterSpec, run: Run) -> Measure:
    """``u_c`` beside its mean over random labels; on a sample of the rows where there are more than ``limit``.

    Identical rows are one point, so the order of the rows does not matter. Ties between distances, frequent among
    whole numbers, fall by the order of the values: programs that break them otherwise may cut other clusters.

    Raises:
        NotComputable: when no column varies over the two tables.
    """
    ours, theirs = _sample(len(confidential), len(released), spec.limit, run.rng)
    names = spec.variables or tuple(v.name for v in confidential.schema if v.role is not Role.IDENTIFIER)
    points = _points(confidential, released, names, spec.scaling)[np.concatenate([ours, len(confidential) + theirs])]
    unique, point = np.unique(points, axis=0, return_inverse=True)
    if len(unique) < 2:
        raise NotComputable("no variable varies, so there are no clusters")
    rows = np.bincount(point).astype(np.float64)
    same_shape = unique / column_scales(unique.ravel())  # squares of distances neither overflow nor vanish
    label = average_linkage(same_shape, rows, _watch(run, len(unique))).cut(spec.clusters)[point]
    counts = [np.bincount(part, minlength=label.max() + 1) for part in (label[: len(ours)], label[len(ours) :])]
    found = cluster_difference(counts[0], counts[1], spec.weights == "equal")
    reason = _reason(len(ours) + len(theirs), len(confidential) + len(released), len(unique), spec.clusters)
    return Measure((Estimate("u_c", found.u_c, baseline=found.expected, reason=reason),))


def _watch(run: Run, points: int) -> Callable[[int], None]:
    return lambda clusters: run.report(Progress(points - clusters, points, "clusters merged"))


def _sample(n: int, m: int, limit: int, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Rows of each table, ``limit`` together, in proportion; the same records where the tables have equally many."""
    if n + m <= limit:
        return np.arange(n), np.arange(m)
    ours = min(max(round(limit * n / (n + m)), 1), limit - 1)
    if n == m:
        rows = rng.choice(n, limit // 2, replace=False)
        return rows, rows
    return rng.choice(n, ours, replace=False), rng.choice(m, limit - ours, replace=False)


def _reason(rows: int, total: int, points: int, clusters: int) -> str:
    remarks = []
    if rows < total:
        remarks.append(f"on a sample of {rows:,} of the {total:,} rows")
    if points < clusters:
        remarks.append(f"{points} clusters, as many as there are different rows")
    return "; ".join(remarks)


def _points(confidential: Microdata, released: Microdata, names: tuple[str, ...], scaling: str) -> Floats:
    """Scaled numbers and indicators of the levels that occur, (N, d); columns that do not vary are left out."""
    columns = [np.empty((len(confidential) + len(released), 0))]
    for name in names:
        values = np.concatenate([confidential.numbers(name), released.numbers(name)])
        if released.schema[name].kind.has_levels:
            columns.append(_indicators(with_own_level(values)))
            continue
        filled, missing = filled_with_mean(values)
        columns += [_scaled(filled, scaling)[:, None]] if np.ptp(filled) > 0 else []
        columns += [missing[:, None]] if np.ptp(missing) > 0 else []
    return np.hstack(columns)


def _indicators(codes: Floats) -> Floats:
    """One column for each level that occurs, none where there is one level: (N, L)."""
    occurring = np.unique(codes)
    return np.equal(codes[:, None], occurring if len(occurring) > 1 else occurring[:0]).astype(np.float64)


def _scaled(values: Floats, scaling: str) -> Floats:
    """(N,), the same for the same value whatever the order of the rows: sums depend on theirs."""
    if scaling == "none":
        return values
    ordered = np.sort(values) / np.abs(values).max()
    spread = ordered.std() if scaling == "standard" else np.ptp(ordered)
    return np.asarray((values / np.abs(values).max() - ordered.mean()) / spread)
