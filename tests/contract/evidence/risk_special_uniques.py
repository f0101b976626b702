"""What ``risk.special_uniques`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

from oracles import Answers, Case, in_given_bins, series
from relations import JOINT, OWN_TABLE, Expected, equals, higher, not_computed, same

from evidence import Evidence


def special_uniques(case: Case) -> dict[str, Answers]:
    """Every set of keys of every record, the smallest first."""
    keys, n = case.spec.keys, len(case.released)
    shown = [
        [str(value) for value in case.released.frame[name]]
        if name in case.released.generalised
        else in_given_bins(case, name, case.released_values(name))
        for name in keys
    ]
    most = min(case.spec.largest or len(keys), len(keys))
    score, part = [0] * n, [[0] * n for _ in keys]
    sizes = dict.fromkeys(range(1, most + 1), 0)
    for i in range(n):
        minimal: list[set[int]] = []
        for size in range(1, most + 1):
            for chosen in combinations(range(len(keys)), size):
                alone = not any(all(shown[k][i] == shown[k][j] for k in chosen) for j in range(n) if j != i)
                if alone and not any(smaller < set(chosen) for smaller in minimal):
                    minimal.append(set(chosen))
                    points = math.prod(len(keys) - k for k in range(size, min(most, len(keys) - 1) + 1))
                    score[i] += points
                    sizes[size] += 1
                    for k in chosen:
                        part[k][i] += points
    times = [sum(all(column[i] == column[j] for column in shown) for j in range(n)) for i in range(n)]
    unique, paired, f = times.count(1), times.count(2), Fraction(case.spec.sampling_fraction)
    whole = unique * f / (unique * f + paired * (1 - f)) if unique else None
    scored = [float(points) for points in score if points]
    largest: float | None = None if whole is None else 0.0
    if whole is not None and scored:
        h = 1 + (8 - len(keys)) / 20
        dealt = max(scored) ** h * sum(points**-h for points in scored)
        largest = 1 / (1 + (len(scored) / float(whole) - len(scored)) / dealt)
    total = sum(score)
    found: dict[str, Answers] = {
        "special_uniques": {series(): len(scored)},
        "minimal_uniques": {series(size=size): count for size, count in sizes.items()},
        "mean_score": {series(): Fraction(total, n)},
        "largest_score": {series(): max(score)},
        "dis": {series(): whole},
        "largest_dis": {series(): largest},
        "attribute_contribution": {},
        "level_contribution": {},
    }
    for k, name in enumerate(keys):
        found["attribute_contribution"][series(name)] = Fraction(sum(part[k]), total) if total else None
        if case.released.schema[name].kind.has_levels:
            column = case.released.frame[name]
            levels = {str(level): str(level) for level in column.cat.categories}
            if column.isna().any():
                levels["missing value"] = "nan"
            for level, text in levels.items():
                own = sum(points for points, value in zip(part[k], column, strict=True) if str(value) == text)
                found["level_contribution"][series(name, level=level)] = Fraction(own, total) if total else None
    return found


EVIDENCE = Evidence(
    oracle=special_uniques,
    outputs=(
        *("special_uniques", "minimal_uniques", "mean_score", "largest_score", "dis", "largest_dis"),
        *("attribute_contribution", "level_contribution"),
    ),
    tiny=[
        ("linked", {"sampling_fraction": 0.2}),
        ("unlinked", {"keys": ["region", "size", "days", "illness", "joined"], "sampling_fraction": 0.01}),
        ("unlinked", {"keys": ["region", "sex", "visits", "days"], "largest": 2, "bins": {"days": "at 1, 4"}}),
        ("itself", {"keys": ["income"], "largest": 3}),
        ("generalised", {"keys": ["region", "sex", "days"], "sampling_fraction": 0.5}),
        ("suppressed", {"keys": ["region", "size", "sex"]}),
    ],
    settings={"keys": ["region", "sex", "size", "days"], "sampling_fraction": 0.1},
    expected={
        "special_uniques": Expected(doubled=equals(0), copy=same, permuted=JOINT, noise=OWN_TABLE),
        "minimal_uniques": Expected(doubled=equals(0), copy=same, permuted=JOINT, noise=OWN_TABLE),
        "mean_score": Expected(doubled=equals(0), copy=same, permuted=JOINT, noise=higher),
        "largest_score": Expected(doubled=equals(0), copy=same, permuted=JOINT, noise=OWN_TABLE),
        "dis": Expected(doubled=not_computed, copy=same, permuted=JOINT, noise=higher),
        "largest_dis": Expected(doubled=not_computed, copy=same, permuted=JOINT, noise=OWN_TABLE),
        "attribute_contribution": Expected(doubled=not_computed, copy=same, permuted=JOINT, noise=OWN_TABLE),
        "level_contribution": Expected(doubled=not_computed, copy=same, permuted=JOINT, noise=OWN_TABLE),
    },
)
