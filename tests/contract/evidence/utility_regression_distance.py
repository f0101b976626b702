"""What ``utility.regression_distance`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from oracles import Answers, Case, coefficients, series
from relations import Expected, apart, equals, higher, same

from evidence import Evidence


def regression_distance(case: Case) -> dict[str, Answers]:
    found: dict[str, Answers] = {"distance": {}, "relative_deviation": {}}
    for model in case.spec.models:
        target = model.response.split(" >")[0]
        own, theirs = (coefficients(case, data, model) for data in (case.confidential, case.released))
        total: float | None = 0.0
        for term, interval in own.items():
            other, value = theirs[term], None
            assert interval is not None
            assert other is not None
            if abs(interval[0]) >= case.spec.near_zero * interval[1]:
                value = (other[0] - interval[0]) / interval[0]
            total = None if total is None or value is None else total + abs(value)
            found["relative_deviation"][series(target, estimand="relative deviation", term=term)] = value
        found["distance"][series(target)] = total
    return found


EVIDENCE = Evidence(
    oracle=regression_distance,
    outputs=("distance", "relative_deviation"),
    larger=[
        ("linked", {"models": ["days ~ region + visits", "logit: income > 20 ~ visits + sex"]}),
        ("unlinked", {"models": ["income ~ size + days"], "near_zero": 0.5}),
        ("unlinked", {"models": ["logit: illness ~ visits + sex"], "near_zero": 1.5}),
    ],
    settings={"models": ["income ~ visits", "logit: illness ~ days"], "near_zero": 0.0},
    expected={
        "distance": Expected(doubled=same, copy=equals(0), permuted=higher, noise=higher),
        "relative_deviation": Expected(doubled=same, copy=equals(0), permuted=apart, noise=apart),
    },
)
