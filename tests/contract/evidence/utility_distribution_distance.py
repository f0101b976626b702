"""What ``utility.distribution_distance`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from oracles import Answers, Case, cells, in_bins, series, shows_levels
from relations import Expected, at_least, equals, higher, same

from evidence import Evidence


def squared_distance(ours: Sequence[Any], theirs: Sequence[Any]) -> Fraction:
    """Of the shares of each value; 2 where there are none of one table."""
    if not ours or not theirs:
        return Fraction(2)
    return sum(
        (
            (Fraction(theirs.count(value), len(theirs)) - Fraction(ours.count(value), len(ours))) ** 2
            for value in {*ours, *theirs}
        ),
        Fraction(0),
    )


def distribution_distance(case: Case) -> dict[str, Answers]:
    names = dict.fromkeys([*case.spec.variables, *case.spec.given])
    hidden = {name for name in names if not shows_levels(case, name)}
    both = {name: tuple(in_bins(case, name, cells(data, name)) for data in (case.confidential, case.released))
            for name in names if name not in hidden}  # fmt: skip
    found: dict[str, Answers] = {"marginal": {}, "conditional": {}}
    for name in case.spec.variables:
        found["marginal"][series(name)] = None if name in hidden else squared_distance(*both[name])
        for given in case.spec.given:
            if given == name:
                continue
            if {name, given} & hidden:
                found["conditional"][series(name, condition=given)] = None
                continue
            ours, theirs = (list(zip(a, b, strict=True)) for a, b in zip(both[name], both[given], strict=True))
            found["conditional"][series(name, condition=given)] = sum(
                squared_distance([v for v, w in ours if w == level], [v for v, w in theirs if w == level])
                for level in {w for _, w in (*ours, *theirs)}
            )
    return found


EVIDENCE = Evidence(
    oracle=distribution_distance,
    outputs=("marginal", "conditional"),
    tiny=[
        ("linked", {"given": ["region", "visits"], "bins": {"days": "3 equal count", "visits": "width 2"}}),
        (
            "unlinked",
            {"variables": ["size", "income", "sex"], "given": ["illness"], "bins": {"income": "3 equal width"}},
        ),
        ("unlinked", {"variables": ["joined", "visits"], "given": ["region"], "bins": {"visits": "at 1, 2.5"}}),
        ("generalised", {"variables": ["region", "visits", "days"], "given": ["sex", "illness"]}),
        ("micro_aggregated", {"variables": ["visits", "sex", "days"], "given": ["region", "sex"]}),
    ],
    settings={"variables": ["days", "income"], "given": ["region"]},
    expected={
        "marginal": Expected(doubled=same, copy=equals(0), permuted=equals(0), noise=at_least(0.5)),
        "conditional": Expected(doubled=same, copy=equals(0), permuted=higher, noise=at_least(1)),
    },
)
