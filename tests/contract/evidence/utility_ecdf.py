"""What ``utility.ecdf`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from fractions import Fraction

from oracles import Answers, Case, present, series
from relations import Expected, at_least, equals, same

from evidence import Evidence


def ecdf(case: Case) -> dict[str, Answers]:
    largest: Answers = {}
    square: Answers = {}
    for name in case.spec.variables:
        ours = [case.code(name, value) for value in present(case.confidential_values(name))]
        theirs = [case.code(name, value) for value in present(case.released_values(name))]
        pooled = [*ours, *theirs]
        points = sorted(set(pooled)) if case.spec.points == "distinct" else pooled
        gaps = [
            Fraction(sum(value <= z for value in ours), len(ours))
            - Fraction(sum(value <= z for value in theirs), len(theirs))
            for z in points
        ]
        largest[series(name)] = max(abs(gap) for gap in gaps)
        square[series(name)] = sum(gap * gap for gap in gaps) / len(points)
    return {"max_abs_difference": largest, "mean_squared_difference": square}


EVIDENCE = Evidence(
    oracle=ecdf,
    outputs=("max_abs_difference", "mean_squared_difference"),
    tiny=[
        ("linked", {}),
        ("unlinked", {"variables": ["income", "size", "joined", "sex"]}),
        ("unlinked", {"variables": ["days", "income"], "points": "distinct"}),
    ],
    expected={
        "max_abs_difference": Expected(doubled=same, copy=equals(0), permuted=equals(0), noise=at_least(0.9)),
        "mean_squared_difference": Expected(doubled=same, copy=equals(0), permuted=equals(0), noise=at_least(0.3)),
    },
)
