"""Do the combined intervals cover the population's values? Simulated populations, synthesised by Bayesian regressions.

x ~ Normal(1, 1) and y ~ Normal(1.5 + x / 2, 1), 200 records. Partial synthesis draws y given x, five times; full synthesis
draws x and then y, for files four times as large, twenty times, or as large, once, twice or a hundred times. The negative
controls are the intervals that forget the variance between datasets, or that within them, and the rules of earlier versions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.provenance import ReleaseProvenance
from sfumato.engine.execution.tasks import combine_series, fit_model, measure_dataset
from sfumato.engine.methods.rows import Row, average_each_series
from sfumato.engine.methods.run import PUBLIC, Randomness
from sfumato.engine.recipe.provenance import release_provenance
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.combining import t_quantile

pytestmark = pytest.mark.slow

RECORDS = 200
TRUTH = {"mean": 2.0, "intercept": 1.5, "x": 0.5}

Interval = tuple[float, float]
Rule = Callable[[list[Row], ReleaseProvenance], dict[str, Interval]]


@dataclass(frozen=True)
class Design:
    """Kind of synthesis, datasets, and how many times as large as the sample each is."""

    synthesis: str
    m: int
    size_ratio: int = 1

    @property
    def recipe(self) -> Recipe:
        given = (
            [] if self.synthesis == "partial" else [{"target": "x", "method": "linear_regression", "prior_sd": 100.0}]
        )
        y = {"target": "y", "method": "linear_regression", "predictors": ["x"], "prior_sd": 100.0}
        measure = {
            "method": "utility.interval_overlap",
            "means": ["y"],
            "models": ["y ~ x"],
        }
        return Recipe.from_table(
            {
                "variables": {"x": {"kind": "continuous"}, "y": {"kind": "continuous"}},
                "release": {"m": self.m},
                "synthesis": [*given, y],
                "measure": [measure],
            }
        )


PARTIAL = Design("partial", 5)
FULL = Design("full", 20, 4)
FULL_OF_EQUAL_SIZE = Design("full", 100)
TWO_FULL, ONE_FULL = Design("full", 2), Design("full", 1)


def population_sample(recipe: Recipe, seed: int) -> Microdata:
    rng = np.random.default_rng([2024, seed])
    x = rng.normal(1, 1, RECORDS)
    return conform_to_schema(pd.DataFrame({"x": x, "y": 1.5 + x / 2 + rng.normal(size=RECORDS)}), recipe.schema)


def rows_of_population(design: Design, recipe: Recipe, seed: int) -> list[Row]:
    """The rows of every released dataset of one population's sample."""
    recipe = replace(recipe, seed=seed)
    data = population_sample(recipe, seed)
    fits = [fit_model(recipe, item, data, key=PUBLIC) for item in range(len(recipe.synthesis))]
    frame = data.frame.iloc[np.tile(np.arange(RECORDS), design.size_ratio)].reset_index(drop=True)
    rows = []
    for draw in range(1, design.m + 1):
        released = Microdata(data.schema, frame, "synthetic")
        for item, (step, fit) in enumerate(zip(recipe.synthesis, fits, strict=True)):
            assert step.method.synthesis.draw is not None
            rng = Randomness(seed, PUBLIC).generator("draw", draw, item)
            values = step.method.synthesis.draw(fit, step.spec, step.target, data, released, draw - 1, rng)
            released = released.with_columns({step.target: pd.Series(values)}, "synthetic")
        rows += measure_dataset(recipe, 0, data, released, draw, key=PUBLIC)[1]
    return rows


def by_estimand(rows: list[Row], measure: str) -> dict[str, Row]:
    return {row.params.get("term", "mean"): row for row in rows if row.measure == measure}


def by_the_rule(rows: list[Row], release: ReleaseProvenance) -> dict[str, Interval]:
    found = by_estimand(combine_series(rows, release), "estimate")
    # None, where the models do not keep an estimate, is rare: one in a thousand by chance
    return {name: (row.lower, row.upper) for name, row in found.items() if row.lower is not None}  # type: ignore[misc]


def by_between_alone(rows: list[Row], release: ReleaseProvenance) -> dict[str, Interval]:
    """The variance b / m: what an average's own interval has."""
    found = by_estimand(average_each_series(rows), "estimate")
    return {name: (row.lower, row.upper) for name, row in found.items()}  # type: ignore[misc]


def by_within_alone(rows: list[Row], release: ReleaseProvenance) -> dict[str, Interval]:
    """The mean variance u, as if the datasets were the confidential one."""
    return _interval_of_rows(rows, lambda b, u, m: (u, np.inf))


def by_partial_rule(rows: list[Row], release: ReleaseProvenance) -> dict[str, Interval]:
    """T_p = u + b/m of Reiter, whatever the number of rows."""
    return _interval_of_rows(rows, lambda b, u, m: (u + b / m, (m - 1) * (1 + m * u / b) ** 2))


def by_full_rule(rows: list[Row], release: ReleaseProvenance) -> dict[str, Interval]:
    """T_f = (1 + 1/m) b - u of Raghunathan, Reiter & Rubin, or u where that has less than one degree of freedom."""

    def variance(b: float, u: float, m: int) -> tuple[float, float]:
        total = (1 + 1 / m) * b - u
        degrees = (m - 1) * (1 - u / ((1 + 1 / m) * b)) ** 2 if total > 0 else 0.0
        return (total, degrees) if degrees >= 1 else (u, np.inf)

    return _interval_of_rows(rows, variance)


def _interval_of_rows(
    rows: list[Row], variance: Callable[[float, float, int], tuple[float, float]]
) -> dict[str, Interval]:
    """The interval around the mean by a variance and degrees of freedom of b, u and m."""
    found = {}
    for name in TRUTH:
        q, errors = (
            np.array(
                [row.value for row in rows if row.measure == measure and row.params.get("term", "mean") == name],
                dtype=np.float64,
            )
            for measure in ("estimate", "standard_error")
        )
        total, degrees = variance(float(q.var(ddof=1)) if len(q) > 1 else 0.0, float(np.mean(errors**2)), len(q))
        half = t_quantile(degrees, 0.95) * np.sqrt(total)
        found[name] = (float(q.mean() - half), float(q.mean() + half))
    return found


def coverages(design: Design, populations: int, *rules: Rule) -> list[dict[str, float]]:
    """The share of populations whose value each rule's interval covers, by estimand."""
    hits = [dict.fromkeys(TRUTH, 0) for _ in rules]
    recipe = design.recipe
    release = release_provenance(recipe, RECORDS, [RECORDS * design.size_ratio] * design.m)
    with threadpool_limits(limits=1):
        for seed in range(populations):
            rows = rows_of_population(design, recipe, seed)
            for rule, count in zip(rules, hits, strict=True):
                for name, (lower, upper) in rule(rows, release).items():
                    count[name] += lower <= TRUTH[name] <= upper
    return [{name: hit / populations for name, hit in count.items()} for count in hits]


@pytest.mark.parametrize(
    ("design", "naive"),
    [
        (PARTIAL, by_between_alone),
        (ONE_FULL, by_within_alone),
        pytest.param(FULL, by_within_alone, marks=pytest.mark.study),
    ],
)
def test_combined_intervals_cover_within_the_binomial_error_and_naive_ones_do_not(design: Design, naive: Rule) -> None:
    populations = 60
    lowest = 0.95 - 3 * np.sqrt(0.95 * 0.05 / populations)
    right, wrong = coverages(design, populations, by_the_rule, naive)
    assert min(right.values()) > lowest, right
    assert max(wrong.values()) < lowest, wrong


@pytest.mark.study
@pytest.mark.parametrize(
    ("design", "populations", "naive"),
    [
        (PARTIAL, 2000, (by_between_alone, by_within_alone)),
        (TWO_FULL, 1000, (by_full_rule, by_within_alone)),
        (FULL, 1000, (by_between_alone, by_within_alone, by_partial_rule)),
        (FULL_OF_EQUAL_SIZE, 500, (by_between_alone,)),
    ],
)
def test_combined_intervals_cover_in_93_to_97_per_cent_of_populations(
    design: Design, populations: int, naive: tuple[Rule, ...]
) -> None:
    right, *wrong = coverages(design, populations, by_the_rule, *naive)
    assert all(0.93 <= share <= 0.97 for share in right.values()), right
    for shares in wrong:
        assert all(share < 0.93 for share in shares.values()), shares
