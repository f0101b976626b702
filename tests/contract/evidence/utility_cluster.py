"""What ``utility.cluster`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from fractions import Fraction

from oracles import Answers, Case, present, series
from relations import JOINT, Expected, equals, higher, same

from evidence import Evidence


def cluster(case: Case) -> dict[str, Answers]:
    """Merge the two clusters of least average distance until G are left, every pair of rows looked at each time."""
    n = len(case.confidential)
    points = [tuple(row) for row in zip(*columns_to_cluster(case), strict=True)]
    if len(set(points)) < 2:
        return {"u_c": {series(): None}}
    clusters = [[i for i, other in enumerate(points) if other == point] for point in sorted(set(points))]
    while len(clusters) > case.spec.clusters:
        pairs = [(i, j) for i in range(len(clusters)) for j in range(i)]
        i, j = min(
            pairs,
            key=lambda pair: statistics.fmean(
                math.dist(points[a], points[b]) for a in clusters[pair[0]] for b in clusters[pair[1]]
            ),
        )
        clusters[j] += clusters[i]
        del clusters[i]
    c = Fraction(len(points) - n, len(points))
    total = Fraction(0)
    for rows in clusters:
        weight = Fraction(len(rows), len(points)) if case.spec.weights == "share" else 1
        total += weight * (Fraction(sum(row >= n for row in rows), len(rows)) - c) ** 2
    return {"u_c": {series(): total / len(clusters)}}


def columns_to_cluster(case: Case) -> Iterator[list[float]]:
    for name in case.spec.variables:
        values = case.both_values(name)
        if case.kind(name).has_levels:
            levels = sorted(set(values), key=str)
            if len(levels) > 1:
                yield from ([float(value == level) for value in values] for level in levels)
            continue
        there = [float(value) for value in present(values)]
        mean = statistics.fmean(there)
        filled = [mean if value is None else float(value) for value in values]
        spread = {"none": 1.0, "standard": statistics.pstdev(filled), "range": max(filled) - min(filled)}
        if max(filled) > min(filled):
            yield [(value - mean) / spread[case.spec.scaling] for value in filled]
        if None in values:
            yield [float(value is None) for value in values]


EVIDENCE = Evidence(
    oracle=cluster,
    outputs=("u_c",),
    tiny=[("linked", {"variables": ["region"], "clusters": 2})],
    larger=[
        ("linked", {"variables": ["income"], "clusters": 4, "scaling": "none"}),
        ("unlinked", {"variables": ["income", "region"], "clusters": 5, "weights": "equal"}),
        ("unlinked", {"variables": ["income", "joined"], "clusters": 3, "scaling": "range"}),
    ],
    expected={
        "u_c": Expected(doubled=same, copy=equals(0), permuted=JOINT, noise=higher),
    },
)
