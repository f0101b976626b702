"""What ``utility.summary`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

import math
from fractions import Fraction

from oracles import Answers, Case, present, quantile, series, variance
from relations import NOT_SYNTHESISED, RECORDS, UNIT, WEIGHED, Expected, equals, free, higher, same, times

from evidence import Evidence
from sfumato.engine.data.schema import Kind


def summary(case: Case) -> dict[str, Answers]:
    found: dict[str, Answers] = {
        name: {} for name in ("mean", "sd", "quantile", "share_of_zeros", "share", "share_missing")
    }
    for name in case.spec.variables:
        values = present(case.released_values(name))
        if None in case.both_values(name):
            found["share_missing"][series(name)] = Fraction(case.released_values(name).count(None), len(case.released))
        if case.kind(name).has_levels:
            for level in case.released.frame[name].cat.categories:
                found["share"][series(name, level=level)] = Fraction(values.count(level), len(values))
            continue
        found["mean"][series(name)] = sum(values) / Fraction(len(values))
        found["sd"][series(name)] = math.sqrt(variance(values)) if len(values) > 1 else None
        for q in case.spec.quantiles:
            found["quantile"][series(name, q=q)] = quantile(sorted(values), q)
        if case.kind(name) is Kind.COUNT:
            found["share_of_zeros"][series(name)] = Fraction(values.count(0), len(values))
    return found


EVIDENCE = Evidence(
    oracle=summary,
    outputs=("mean", "sd", "quantile", "share_of_zeros", "share", "share_missing"),
    no_oracle={
        "population": "only tables with a survey weight have it; tests/contract/test_survey_weights.py sums the weights",
        "design_effect": "only tables with a survey weight have it; tests/contract/test_survey_weights.py has Kish's formula",
    },
    tiny=[
        ("unlinked", {"variables": ["income", "days", "size", "sex"]}),
        ("itself", {"variables": ["visits", "region"], "quantiles": [0.0, 0.1, 1.0]}),
    ],
    settings={"variables": ["days", "income", "region", "illness"]},
    expected={
        "mean": Expected(doubled=same, copy=same, permuted=same, noise=higher, unit=times(UNIT, "income")),
        "sd": Expected(
            doubled=times(math.sqrt(2 * (RECORDS - 1) / (2 * RECORDS - 1))),
            copy=same,
            permuted=same,
            noise=higher,
            unit=times(UNIT, "income"),
        ),
        "quantile": Expected(
            doubled=free("interpolated between other neighbours"),
            copy=same,
            permuted=same,
            noise=higher,
            unit=times(UNIT, "income"),
        ),
        "share_of_zeros": Expected(doubled=same, copy=same, permuted=same, noise=equals(0)),
        "share": Expected(doubled=same, copy=same, permuted=same, noise=NOT_SYNTHESISED),
        "population": WEIGHED,
        "design_effect": WEIGHED,
        "share_missing": Expected(doubled=same, copy=same, permuted=same, noise=NOT_SYNTHESISED),
    },
)
