"""What ``risk.exact_copies`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from fractions import Fraction

from oracles import Answers, Case, cells, in_given_bins, series
from relations import Expected, at_least, at_most, equals, same

from evidence import Evidence


def exact_copies(case: Case) -> dict[str, Answers]:
    names = case.spec.variables
    means = {name for name in names if case.kind(name) is not case.released.schema[name].kind} - set(case.spec.bins)
    if means | (set(names) & case.released.generalised):
        return {name: {series(): None} for name in ("copies", "lone_copies")}
    ours, theirs = (
        list(zip(*(in_given_bins(case, name, cells(data, name)) for name in names), strict=True))
        for data in (case.confidential, case.released)
    )
    return {
        "copies": {series(): Fraction(sum(record in ours for record in theirs), len(theirs))},
        "lone_copies": {series(): Fraction(sum(ours.count(record) == 1 for record in theirs), len(theirs))},
    }


EVIDENCE = Evidence(
    oracle=exact_copies,
    outputs=("copies", "lone_copies"),
    tiny=[
        ("linked", {}),
        ("unlinked", {"variables": ["region", "sex"]}),
        ("unlinked", {"variables": ["days", "income", "sex"], "bins": {"days": "at 1, 4", "income": "2 equal width"}}),
        ("itself", {}),
        ("generalised", {"variables": ["region", "sex"]}),
        ("micro_aggregated", {"variables": ["visits", "region"]}),
        ("micro_aggregated", {"variables": ["visits", "region"], "bins": {"visits": "width 2"}}),
    ],
    expected={
        "copies": Expected(doubled=same, copy=equals(1), permuted=at_most(0.2), noise=equals(0)),
        "lone_copies": Expected(doubled=equals(0), copy=at_least(0.9), permuted=at_most(0.2), noise=equals(0)),
    },
)
