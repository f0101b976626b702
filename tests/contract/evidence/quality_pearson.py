"""What ``quality.pearson`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from oracles import Answers, Case, columnwise, variance
from relations import Expected, at_most, equals, same

from evidence import Evidence

RHO = Expected(doubled=same, copy=equals(1), permuted=at_most(0.5), noise=at_most(0.5))


def correlation(case: Case, original: Sequence[Fraction], released: Sequence[Fraction]) -> tuple[float] | None:
    if len(set(original)) < 2 or len(set(released)) < 2:
        return None
    means = [sum(values) / Fraction(len(values)) for values in (original, released)]
    shared = sum((a - means[0]) * (b - means[1]) for a, b in zip(original, released, strict=True))
    spread = variance(original) * variance(released) * (len(original) - 1) ** 2
    return (0.0,) if shared <= 0 else (math.sqrt(shared * shared / spread),)


def pearson(case: Case) -> dict[str, Answers]:
    return columnwise(case, ("rho",), "minimum_rho", correlation)


EVIDENCE = Evidence(
    oracle=pearson,
    outputs=("rho", "minimum_rho"),
    tiny=[
        ("linked", {"variables": ["days", "income", "visits"]}),
        ("micro_aggregated", {"count_suppressed": True}),
        ("suppressed", {"count_suppressed": True}),
        ("generalised", {}),
    ],
    settings={"variables": ["days", "income"]},
    expected={
        "rho": RHO,
        "minimum_rho": RHO,
    },
)
