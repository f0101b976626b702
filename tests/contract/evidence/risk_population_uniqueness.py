"""What ``risk.population_uniqueness`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import statsmodels.api as sm
from oracles import Answers, Case, cells, in_given_bins, series
from relations import NOT_SYNTHESISED, Expected, equals, free, same

from evidence import Evidence


def population_uniqueness(case: Case) -> dict[str, Answers]:
    names = sorted(case.spec.keys)
    theirs = list(zip(*(in_given_bins(case, name, cells(case.released, name)) for name in names), strict=True))
    n, counts = len(theirs), Counter(theirs)
    if case.spec.weight:
        population = sum(case.confidential_values(case.spec.weight))
        given = case.released_values(case.spec.weight)
        stands_for = [weight * population / sum(given) for weight in given]
    else:
        population = len(case.confidential) / case.spec.fraction
        stands_for = [population / n] * n
    people = {key: sum(w for own, w in zip(theirs, stands_for, strict=True) if own == key) for key in counts}
    found: dict[str, Answers] = {name: {} for name in ("specification_uniques", "specification_matches")}
    models: dict[str, tuple[list[float | None], list[float]]] = {}
    for order, model in ((1, "main effects"), (2, "two-way")):
        if case.spec.model not in ("chosen", ("", "main_effects", "two_way")[order]):
            continue
        answer = by_dense_model(counts, people, order, n / (5 if order == 1 else case.spec.two_way_records))
        if answer:
            models[model] = answer
        for measure, place in (("specification_uniques", 0), ("specification_matches", 1)):
            found[measure][series(fitted=model)] = answer[0][place] if answer else None
    off = {model: max(abs(one) for one in tests if one is not None) for model, (tests, _) in models.items()}
    chosen = None
    if models:
        chosen = "main effects" if off.get("main effects", 9.0) <= 1.96 else min(off, key=lambda model: off[model])
    for place, measure in enumerate(("expected_uniques", "expected_matches")):
        found[measure] = {series(): models[chosen][1][place] if chosen else None}
    found["zayatz_uniques"] = {series(): zayatz(Counter(counts.values()), round(population), n)}
    return found


def zayatz(sizes: Mapping[int, int], population: int, n: int) -> Fraction:
    one_of = {j: Fraction(j * math.comb(population - j, n - 1), math.comb(population, n)) for j in sizes}
    below = sum(times * one_of[j] for j, times in sizes.items())
    return sizes.get(1, 0) * sizes.get(1, 0) * one_of[1] / below if sizes.get(1) else Fraction(0)


def by_dense_model(
    counts: Mapping[Any, int], people: Mapping[Any, float], order: int, most: float
) -> tuple[list[float | None], list[float]] | None:
    """Statistics of the specification test, and the expected numbers, by statsmodels on every cell; None where it is refused."""
    levels = [sorted({key[place] for key in counts}, key=str) for place in range(len(next(iter(counts))))]
    levels = [found for found in levels if len(found) > 1]
    kept = [place for place in range(len(next(iter(counts)))) if len({key[place] for key in counts}) > 1]
    short = {tuple(key[place] for place in kept): key for key in counts}
    grid = list(product(*levels))
    terms = [term for size in range(order + 1) for term in combinations(range(len(kept)), size)]
    columns = [
        [float(all(cell[place] == level for place, level in zip(term, chosen, strict=True))) for cell in grid]
        for term in terms
        for chosen in product(*(levels[place][1:] for place in term))
    ]
    if len(kept) <= order or len(columns) > most:
        return None
    design = np.array(columns).T
    f = np.array([float(counts[short[cell]]) if cell in short else 0.0 for cell in grid])
    estimated = np.array([float(people[short[cell]]) if cell in short else 0.0 for cell in grid])
    mean, expected = (
        sm.GLM(seen, design, family=sm.families.Poisson())
        .fit(tol=1e-14, maxiter=200, tol_criterion="params")
        .fittedvalues
        for seen in (f, estimated)
    )
    pi = np.minimum(mean / expected, 1)
    tests = []
    for first, second in (
        (lambda x: -math.exp(-x), lambda x: math.exp(-x)),
        (
            lambda x: (math.exp(-x) * (x + 1) - 1) / x**2,
            lambda x: (2 - math.exp(-x) * (x * x + 2 * x + 2)) / x**3,
        ),
    ):
        x = (1 - pi) * expected
        a = -expected * np.exp(-mean) * (1 - pi) * np.array([first(one) for one in x])
        b = expected * np.exp(-mean) * (1 - pi) ** 2 / (2 * pi) * np.array([second(one) for one in x])
        weighed = design * np.sqrt(mean)[:, None]
        left = a * np.sqrt(mean) - weighed @ np.linalg.lstsq(weighed, a * np.sqrt(mean), rcond=None)[0]
        variance = float(left @ left + 2 * np.sum(b**2 * mean**2))
        tests.append(float(np.sum(a * (f - mean) + b * ((f - mean) ** 2 - f))) / math.sqrt(variance))
    others = [(1 - 1 / estimated[k]) * expected[k] for k in range(len(grid)) if f[k] == 1]
    return tests, [sum(math.exp(-x) for x in others), sum((1 - math.exp(-x)) / x for x in others)]


EVIDENCE = Evidence(
    oracle=population_uniqueness,
    outputs=(
        "expected_uniques",
        "expected_matches",
        "specification_uniques",
        "specification_matches",
        "zayatz_uniques",
    ),
    no_oracle={
        "pitman_uniques": "the likelihood has its largest value where no closed form says; "
        "tests/engine/risk/test_population_uniqueness.py holds it against a grid and the probability against a chain of draws"
    },
    tiny=[
        ("linked", {"fraction": 0.25}),
        ("unlinked", {"fraction": 0.2, "bins": {"visits": "at 1, 4"}}),
        ("generalised", {"fraction": 0.25}),
        ("micro_aggregated", {"fraction": 0.25}),
    ],
    larger=[
        ("linked", {"fraction": 0.1, "bins": {"visits": "width 2"}, "two_way_records": 5}),
        (
            "itself",
            {
                "fraction": 0.3,
                "keys": ["region", "size", "visits"],
                "bins": {"visits": "at 2, 4"},
                "two_way_records": 5,
            },
        ),
        ("unlinked", {"fraction": 0.2, "keys": ["region", "size", "illness"], "two_way_records": 5}),
        ("unlinked", {"fraction": 0.2, "keys": ["visits", "size", "sex"], "model": "main_effects"}),
        (
            "unlinked",
            {
                "weight": "income",
                "keys": ["region", "size", "visits"],
                "bins": {"visits": "at 6"},
                "model": "main_effects",
            },
        ),
    ],
    settings={"fraction": 0.1, "bins": {"visits": "width 2"}},
    expected={
        **dict.fromkeys(
            ("expected_uniques", "expected_matches", "pitman_uniques", "zayatz_uniques"),
            Expected(doubled=equals(0), copy=same, permuted=NOT_SYNTHESISED, noise=NOT_SYNTHESISED),
        ),
        **dict.fromkeys(
            ("specification_uniques", "specification_matches"),
            Expected(
                doubled=free("records twice are a sample that no independent people give"),
                copy=same,
                permuted=NOT_SYNTHESISED,
                noise=NOT_SYNTHESISED,
            ),
        ),
    },
)
