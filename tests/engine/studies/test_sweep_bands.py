"""The sweep's bands on simulated microdata: what they cover, what they say that they do not, and what they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.provenance import ReleaseProvenance
from sfumato.engine.execution.tasks import RunResult, execute_run
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.combining import monte_carlo_mean
from sfumato.engine.studies.intruder_uncertainty import (
    ALL_EQUAL,
    DATASETS_ALONE,
    EXACT,
    NO_SHARES,
    NOISE_ALONE,
    ONE_DATASET,
    ONE_EACH,
    ONE_REPLICATE,
    REPLICATES,
    SHARES,
    combine_layouts,
    summarise_variance_shares,
)

N = 60
RELEASE = ReleaseProvenance("synthetic", N, (N,) * 4, (), ())
LEVEL = 0.3
RECIPE = """
[data]
file = "simulated.csv"
[variables]
region = { kind = "categorical", role = "quasi_identifier" }
visits = { kind = "count", role = "quasi_identifier" }
income = { kind = "continuous", role = "sensitive" }
[release]
released = ["income"]
m = MANY
[[study]]
method = "studies.intruder_uncertainty"
variable = "visits"
model = "log_normal_constant"
levels = LEVELS
replicates = REPLICATES
known = ["region", "visits"]
radius = { income = "10%" }
"""


def recipe(many: int, replicates: int, seed: int = 1, levels: Sequence[float] = (0.0, LEVEL)) -> Recipe:
    text = RECIPE.replace("MANY", str(many)).replace("REPLICATES", str(replicates)).replace("LEVELS", str([*levels]))
    return replace(Recipe.from_toml(text), seed=seed)


@cache
def confidential() -> Microdata:
    rng = np.random.default_rng(5)
    visits = rng.poisson(6, N)
    frame = pd.DataFrame(
        {
            "region": rng.choice(["north", "south"], N),
            "visits": visits,
            "income": np.round(np.exp(7 + 0.05 * visits + 0.3 * rng.standard_normal(N)), 2),
        }
    )
    return conform_to_schema(frame, recipe(1, 1).schema)


def draw_released_dataset(rng: np.random.Generator) -> Microdata:
    """A fresh dataset: the incomes times factors drawn for each record, and one for all as a drawn parameter gives."""
    factors = np.exp(0.05 * rng.standard_normal() + 0.08 * rng.standard_normal(N))
    return confidential().with_columns({"income": pd.Series(confidential().numbers("income") * factors)}, "synthetic")


def swept(many: int, replicates: int, seed: int = 1, levels: Sequence[float] = (0.0, LEVEL)) -> RunResult:
    rng = np.random.default_rng(seed)
    return execute_run(
        recipe(many, replicates, seed, levels),
        confidential(),
        [draw_released_dataset(rng) for _ in range(many)],
        key=PUBLIC,
    )


def rows_of(found: RunResult, measure: str, level: float = LEVEL, dataset: str = "synthetic") -> list[Row]:
    return [row for row in found.rows if (row.measure, row.level, row.dataset) == (measure, level, dataset)]


def together(found: RunResult, measure: str, level: float = LEVEL, dataset: str = "synthetic") -> Row:
    (row,) = (row for row in rows_of(found, measure, level, dataset) if row.draw is None)
    return row


def old_band(found: RunResult, measure: str) -> tuple[float | None, float | None]:
    """As it was: Student's interval of the datasets' values."""
    values = [row.value for row in rows_of(found, measure) if row.draw is not None and row.value is not None]
    return monte_carlo_mean(values)[1:]


@cache
def truth(measure: str) -> float:
    """The mean over fresh noise and fresh datasets, of 250 layouts of 4 datasets under a noise of their own each."""
    found = [together(swept(4, 1, seed, [LEVEL]), measure).value for seed in range(10_000, 10_250)]
    return float(np.mean([value for value in found if value is not None]))


def holds(ends: Sequence[float | None], value: float) -> bool:
    lower, upper = ends
    return lower is not None and upper is not None and lower <= value <= upper


MEASURE = "expected_match_risk"
REPETITIONS = 50
LEAST = binom.ppf(1e-4, REPETITIONS, 0.93)
"""Fewer bands than this hold the truth in one of 10,000 times when their coverage is 93 %."""


@pytest.mark.study
def test_the_sweep_s_bands_hold_the_mean_over_fresh_noise_and_fresh_datasets() -> None:
    found = [together(swept(5, 4, seed, [LEVEL]), MEASURE) for seed in range(REPETITIONS)]
    assert sum(holds((row.lower, row.upper), truth(MEASURE)) for row in found) >= LEAST


@pytest.mark.study
def test_negative_control_bands_of_one_noise_over_datasets_alone_do_not() -> None:
    found = [old_band(swept(5, 1, seed, [LEVEL]), MEASURE) for seed in range(REPETITIONS)]
    assert sum(holds(ends, truth(MEASURE)) for ends in found) < LEAST


@pytest.mark.study
def test_coverage_of_the_sweep_s_bands_over_200_repetitions() -> None:
    print(f"\n{'m':>4} {'R':>4} {'measure':<22} {'truth':>8} {'new %':>7} {'old %':>7}")
    for many, replicates in ((8, 5), (5, 10), (20, 5)):
        found = [swept(many, replicates, seed, [LEVEL]) for seed in range(200)]
        for measure in (MEASURE, "true_match_rate", "attribute_risk"):
            rows = [together(one, measure) for one in found]
            new = sum(holds((row.lower, row.upper), truth(measure)) for row in rows)
            old = sum(holds(old_band(swept(many, 1, seed, [LEVEL]), measure), truth(measure)) for seed in range(200))
            print(f"{many:>4} {replicates:>4} {measure:<22} {truth(measure):>8.4g} {new / 2:>7.1f} {old / 2:>7.1f}")
            assert binom.ppf(1e-3, 200, 0.93) <= new <= binom.ppf(1 - 1e-3, 200, 0.97)


def test_five_beliefs_are_drawn_unless_the_recipe_says_otherwise() -> None:
    text = RECIPE.replace("MANY", "1").replace("replicates = REPLICATES", "").replace("LEVELS", "[0.3]")
    assert Recipe.from_toml(text).studies[0].spec.replicates == 5  # type: ignore[attr-defined]


def test_the_confidential_row_has_a_band_over_the_noise_and_is_exact_at_level_0() -> None:
    found = swept(3, 5)
    row = together(found, MEASURE, dataset="confidential")
    assert holds((row.lower, row.upper), row.value or -1.0)
    exact = together(found, MEASURE, level=0.0, dataset="confidential")
    assert (exact.lower, exact.upper, exact.reason) == (None, None, EXACT)


@pytest.mark.slow
def test_at_level_0_the_band_is_that_of_the_datasets() -> None:
    found = swept(6, 5)
    row = together(found, MEASURE, level=0.0)
    values = [one.value for one in rows_of(found, MEASURE, level=0.0) if one.draw is not None]
    expected = monte_carlo_mean([value for value in values if value is not None], within=(0.0, N))
    assert (row.value, row.lower, row.upper) == pytest.approx(expected)
    assert row.reason == ""
    of = {row.measure: row.value for row in found.rows if row.level == 0 and row.params.get("of") == MEASURE}
    assert of == {"dataset_share": 1.0, "noise_share": 0.0, "interaction_share": 0.0}


@pytest.mark.parametrize(
    ("many", "replicates", "level", "banded", "reason"),
    [
        (6, 5, LEVEL, True, ""),
        (1, 5, LEVEL, True, NOISE_ALONE),
        (6, 1, LEVEL, True, DATASETS_ALONE),
        (1, 1, LEVEL, False, ONE_EACH),
        (1, 5, 0.0, False, ONE_DATASET),
    ],
)
def test_a_row_says_what_its_band_does_not_cover(many, replicates, level, banded, reason) -> None:
    row = together(swept(many, replicates), MEASURE, level)
    assert (row.lower is not None, row.reason) == (banded, reason)


def test_one_replicate_leaves_the_confidential_row_without_a_band_and_it_says_so() -> None:
    row = together(swept(2, 1), MEASURE, dataset="confidential")
    assert (row.lower, row.reason) == (None, ONE_REPLICATE)


def test_shares_of_the_variance_stand_beside_every_measure_and_level_and_make_one() -> None:
    found = swept(6, 5)
    for measure in (MEASURE, "true_match_rate", "unique_matches", "attribute_risk"):
        rows = [row for row in found.rows if row.params.get("of") == measure and row.level == LEVEL]
        assert [row.measure for row in rows] == list(SHARES)
        assert sum(row.value or 0.0 for row in rows) == pytest.approx(1)
        assert {(row.draw, row.dataset, row.unit) for row in rows} == {(None, "synthetic", "share")}


@pytest.mark.parametrize(("many", "replicates"), [(1, 5), (6, 1)])
def test_shares_need_datasets_and_replicates_to_tell_apart(many: int, replicates: int) -> None:
    rows = [row for row in swept(many, replicates).rows if row.params.get("of") == MEASURE and row.level == LEVEL]
    assert [(row.value, row.status, row.reason) for row in rows] == [(None, "not computed", NO_SHARES)] * 3


def test_the_values_of_the_replicates_are_no_results() -> None:
    assert REPLICATES not in {row.measure for row in swept(3, 5).rows}


def single(draw: int, measure: str, value: float | None, **params: object) -> Row:
    status = "not computed" if value is None else "computed"
    return Row(
        "studies", "intruder_uncertainty", measure, "", "synthetic", draw, 0.3, value, status=status, params=params
    )


def layout(values: Sequence[Sequence[float | None]], missing: str = "", **params: object) -> list[Row]:
    rows: list[Row] = []
    for draw, line in enumerate(values, start=1):
        known = [value for value in line if value is not None]
        reasons = {"rate": missing} if len(known) < len(line) else {}
        rows.append(single(draw, "rate", float(np.mean(known)) if known else None, **params))
        rows.append(single(draw, REPLICATES, 1.0, values={"rate": list(line)}, missing=reasons, **params))
    return rows


def test_values_that_could_not_be_computed_leave_with_their_dataset_and_the_row_says_so() -> None:
    values = [[1.0, 2.0, 3.0], [2.0, None, 4.0], [4.0, 4.5, 6.0], [3.0, 4.0, 4.5]]
    (row,) = combine_layouts(layout(values, "no record has a unique match"), RELEASE)
    (whole,) = combine_layouts(layout([values[0], *values[2:]]), RELEASE)
    assert (row.value, row.lower, row.upper) == (whole.value, whole.lower, whole.upper)
    assert row.reason == "mean of 3 of 4 datasets and 3 of 3 replicates; the others: no record has a unique match"


def test_without_any_value_there_is_the_reason() -> None:
    (row,) = combine_layouts(
        [replace(row, reason="none") for row in layout([[None, None], [None, None]], "none")], RELEASE
    )
    assert (row.value, row.status, row.reason, row.draw) == (None, "not computed", "none", None)
    assert {share.reason for share in summarise_variance_shares(layout([[None, None]] * 2, "none"))} == {"none"}


def test_equal_values_have_no_band_for_they_do_not_show_how_much_they_vary() -> None:
    (row,) = combine_layouts(layout([[0.0, 0.0], [0.0, 0.0]]), RELEASE)
    assert (row.value, row.lower, row.upper, row.reason) == (0.0, None, None, ALL_EQUAL)
    assert {share.status for share in summarise_variance_shares(layout([[0.0, 0.0]] * 2))} == {"not computed"}


def test_two_uses_of_the_study_are_layouts_of_their_own() -> None:
    one, other = [[1.0, 2.0], [2.0, 4.0]], [[10.0, 20.0], [20.0, 40.0]]
    apart = [combine_layouts(layout(one, model="a"), RELEASE), combine_layouts(layout(other, model="b"), RELEASE)]
    assert combine_layouts([*layout(one, model="a"), *layout(other, model="b")], RELEASE) == [
        row for found in apart for row in found
    ]


def test_bands_stay_inside_the_range_of_what_they_estimate() -> None:
    near_nothing = [[0.0, 0.1, 0.0, 0.4], [0.0, 0.0, 0.1, 0.9], [0.0, 0.0, 0.0, 0.2], [0.1, 0.0, 0.0, 0.3]]
    rows = [replace(row, measure="false_match_rate") if row.measure == "rate" else row for row in layout(near_nothing)]
    for row in rows:
        if row.measure == REPLICATES:
            row.params["values"]["false_match_rate"] = row.params["values"]["rate"]  # type: ignore[index]
    (share,) = combine_layouts(rows, RELEASE)
    (free,) = combine_layouts(layout(near_nothing), RELEASE)
    assert free.lower is not None
    assert free.lower < 0, "without a range it leaves it"
    assert share.lower is not None
    assert share.upper is not None
    assert 0 <= share.lower < (share.value or 0.0) < share.upper <= 1
