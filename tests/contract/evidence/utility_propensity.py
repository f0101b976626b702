"""What ``utility.propensity`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import statsmodels.api as sm
from oracles import Answers, Case, series
from relations import Expected, at_least, equals, free, higher, same, times

from evidence import Evidence

PART = free("a copy repeats every variable, what is dealt or drawn anew only some: those are what can differ")


def propensity(case: Case) -> dict[str, Answers]:
    """A saturated regression predicts the share of released records in each cell; another is fitted by statsmodels."""
    names, n, m = case.spec.variables, len(case.confidential), len(case.released)
    saturated = len(names) == 1 or (len(names) == 2 and case.spec.model == "logit_interactions")
    if saturated and all(case.kind(name).has_levels for name in names):
        cell = list(zip(*(case.both_values(name) for name in names), strict=True))
        scores: list[Any] = [
            Fraction(sum(other == one for other in cell[n:]), sum(other == one for other in cell)) for one in cell
        ]
        free = len(set(cell))
    else:
        scores, free = fitted_scores(case, names)
    if free == 1:
        return {name: {series(): None} for name in ("pmse", "null_pmse", "s_pmse")}
    c = Fraction(m, n + m)
    pmse = sum((p - (c if saturated else float(c))) ** 2 for p in scores) / (n + m)
    null = (free - 1 - of_repeated(case, names)) * c * (1 - c) ** 2 / (n + m)
    return {"pmse": {series(): pmse}, "null_pmse": {series(): null}, "s_pmse": {series(): pmse / null}}


def of_repeated(case: Case, names: Sequence[str]) -> int:
    """The coefficients of variables whose values together make the same records in both tables: they say nothing."""
    n, found = len(case.confidential), list[str]()
    for name in names:
        records = list(zip(*(case.both_values(other) for other in (*found, name)), strict=True))
        if Counter(records[:n]) == Counter(records[n:]):
            found.append(name)
    if len(found) == len(names):
        return 0
    own = [len(set(case.both_values(name))) - 1 if case.kind(name).has_levels else 1 for name in found]
    pairs = [a * b for i, a in enumerate(own) for b in own[i + 1 :]] if case.spec.model == "logit_interactions" else []
    return sum(own) + sum(pairs)


def fitted_scores(case: Case, names: Sequence[str]) -> tuple[list[float], int]:
    blocks = []
    for name in names:
        values = case.both_values(name)
        if case.kind(name).has_levels:
            blocks.append(np.array([[v == level for level in sorted(set(values))[1:]] for v in values], dtype=float))
        else:
            numbers = np.array([float(value) for value in values])
            blocks.append(((numbers - numbers.mean()) / numbers.std())[:, None])
    if case.spec.model == "logit_interactions":
        mains = list(blocks)
        for i, first in enumerate(mains):
            for second in mains[i + 1 :]:
                blocks += [first[:, [a]] * second for a in range(first.shape[1])]
    x = np.hstack([np.ones((len(blocks[0]), 1)), *blocks])
    y = np.repeat([0.0, 1.0], [len(case.confidential), len(case.released)])
    fit = sm.Logit(y, x).fit(disp=0, tol=1e-14, maxiter=200)
    return list(fit.predict()), x.shape[1]


EVIDENCE = Evidence(
    oracle=propensity,
    outputs=("pmse", "null_pmse", "s_pmse"),
    tiny=[
        ("linked", {"variables": ["illness"]}),
        ("unlinked", {"variables": ["region"]}),
        ("unlinked", {"variables": ["region", "illness"], "model": "logit_interactions"}),
    ],
    larger=[
        ("linked", {}),
        ("unlinked", {"variables": ["income", "region", "days"], "model": "logit_interactions"}),
    ],
    expected={
        "pmse": Expected(doubled=same, copy=equals(0), permuted=equals(0), noise=at_least(0.2)),
        "null_pmse": Expected(doubled=times(0.5), copy=same, permuted=PART, noise=PART),
        "s_pmse": Expected(doubled=times(2), copy=equals(0), permuted=equals(0), noise=higher),
    },
)
