"""What ``risk.anonymity`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from oracles import Answers, Case, cells, distance, entropy, groups, series
from relations import NOT_SYNTHESISED, Expected, free, same, times

from evidence import Evidence
from sfumato.engine.data.microdata import Microdata

WITHIN_CLASSES = free("other sensitive values fall into the classes by chance")

OF_CLASSES = Expected(doubled=same, copy=same, permuted=WITHIN_CLASSES, noise=WITHIN_CLASSES)


def matching(data: Microdata, names: Sequence[str]) -> list[list[int]]:
    """For each record those that agree with it in all columns in which both have a value."""
    rows = list(zip(*(cells(data, name) for name in names), strict=True))
    return [
        [
            place
            for place, other in enumerate(rows)
            if all(a == b or a is None or b is None for a, b in zip(row, other, strict=True))
        ]
        for row in rows
    ]


def anonymity(case: Case) -> dict[str, Answers]:
    partial = case.spec.missing == "anything"
    classes = (matching if partial else groups)(case.released, case.spec.quasi_identifiers)
    keys = list(zip(*(cells(case.released, name) for name in case.spec.quasi_identifiers), strict=True))
    valued = {row for row, key in enumerate(keys) if set(key) - {None, "*"}}
    others = [[row for row in rows if row in valued] for rows in classes]
    apart = [len(rows) for place, rows in enumerate(others) if rows and (not partial or place in valued)]
    found: dict[str, Answers] = {
        "k": {series(): min(map(len, classes))},
        "classes": {series(): None if partial else len(apart)},
        "suppressed_records": {series(): len(keys) - len(valued)},
        "k_without_suppressed": {series(): min(apart, default=None)},
        **{name: {} for name in ("l_distinct", "l_entropy", "c_recursive", "t")},
    }
    least = []
    for name in case.spec.sensitive:
        values = case.released_values(name)
        parts = [[values[row] for row in rows] for rows in classes]
        least.append(min(len(set(part)) for part in parts))
        found["l_distinct"][series(name)] = least[-1]
        found["l_entropy"][series(name)] = min(math.exp(entropy(part)) for part in parts)
        found["c_recursive"][series(name)] = recursive(parts, case.spec.l)
        found["t"][series(name)] = max(distance(case, name, part, values) for part in parts)
    return {**found, "p": {series(): min(least) if least else None}}


def recursive(parts: Sequence[Sequence[Any]], l: int) -> Fraction | None:  # noqa: E741
    """The smallest c that is not enough: r_1 / (r_l + ... + r_m) of the worst class, none where one has fewer values."""
    counts = [sorted(Counter(part).values(), reverse=True) for part in parts]
    if any(len(times) < l for times in counts):
        return None
    return max(Fraction(times[0], sum(times[l - 1 :])) for times in counts)


EVIDENCE = Evidence(
    oracle=anonymity,
    outputs=(
        "k",
        "classes",
        "suppressed_records",
        "k_without_suppressed",
        "p",
        "l_distinct",
        "l_entropy",
        "c_recursive",
        "t",
    ),
    tiny=[
        ("linked", {"sensitive": ["size", "days"]}),
        ("itself", {}),
        ("generalised", {}),
        ("micro_aggregated", {"quasi_identifiers": ["region", "visits"]}),
        ("suppressed", {"sensitive": ["joined", "illness", "income"]}),
        ("unlinked", {"quasi_identifiers": ["days", "sex"], "sensitive": ["region"]}),
        ("linked", {"sensitive": ["size", "days"], "missing": "anything"}),
        ("unlinked", {"quasi_identifiers": ["days", "sex"], "sensitive": ["region"], "missing": "anything"}),
    ],
    settings={"quasi_identifiers": ["region", "sex"]},
    expected={
        "k": Expected(doubled=times(2), copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED),
        "classes": Expected(doubled=same, copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED),
        "suppressed_records": Expected(doubled=times(2), copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED),
        "k_without_suppressed": Expected(doubled=times(2), copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED),
        "p": OF_CLASSES,
        "l_distinct": OF_CLASSES,
        "l_entropy": OF_CLASSES,
        "c_recursive": OF_CLASSES,
        "t": OF_CLASSES,
    },
)
