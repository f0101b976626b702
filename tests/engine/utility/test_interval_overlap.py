from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of
from scipy.stats import norm, t

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import RunResult, execute_run
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.utility.interval_overlap import IntervalOverlapSpec, interval_overlap

VARIABLES = {
    "group": {"kind": "categorical", "role": "quasi_identifier", "levels": ["a", "b"]},
    "smoker": {"kind": "binary", "role": "quasi_identifier"},
    "days": {"kind": "count", "role": "sensitive"},
    "price": {"kind": "continuous", "role": "sensitive"},
}
SCHEMA = schema_of(
    Variable("group", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=("a", "b")),
    "smoker: binary quasi_identifier",
    "days: count sensitive",
    "price: continuous sensitive",
)


def sample(n: int = 100, seed: int = 1, shift: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "group": rng.choice(["a", "b"], n),
            "smoker": rng.choice(["no", "yes"], n, p=[0.7, 0.3]),
            "days": rng.poisson(5, n),
            "price": rng.normal(100 + shift, 10, n),
        }
    )


def micro(frame: pd.DataFrame, origin: str = "synthetic") -> Microdata:
    return conform_to_schema(frame, SCHEMA, origin=origin)  # type: ignore[arg-type]


def release_estimates(confidential: pd.DataFrame, released: Microdata, **table: object) -> list[Estimate]:
    spec = IntervalOverlapSpec.from_table(table, "measure[0]")
    run = Run(np.random.default_rng(1))
    return list(interval_overlap(micro(confidential, "confidential"), released, spec, run).estimates)


def value_of(found: list[Estimate], measure: str, **params: object) -> Estimate:
    wanted = [e for e in found if e.measure == measure and params.items() <= dict(e.params).items()]
    assert len(wanted) == 1
    return wanted[0]


def recipe(m: int = 4, **measure: object) -> Recipe:
    return Recipe.from_table(
        {
            "variables": VARIABLES,
            "release": {"m": m, "seed": 3},
            "synthesis": [
                {"target": "price", "method": "linear_regression", "predictors": ["days"], "prior_sd": 1000.0}
            ],
            "measure": [{"method": "utility.interval_overlap", **measure}],
        }
    )


def executed(m: int = 4, **measure: object) -> RunResult:
    return execute_run(recipe(m, **measure), micro(sample(), "confidential"), key=PUBLIC)


def rows_of(outcome: RunResult, measure: str, dataset: str = "synthetic") -> list[Row]:
    return [row for row in outcome.rows if (row.measure, row.dataset, row.draw) == (measure, dataset, None)]


def test_the_overlap_of_two_means_by_hand() -> None:
    """Equation 10 with t intervals."""
    tables = sample(50, 1), sample(80, 2, shift=1.0)
    (lc, uc), (ls, us) = (
        t.interval(0.9, len(x) - 1, x.mean(), x.std() / np.sqrt(len(x))) for x in (table["price"] for table in tables)
    )
    common = min(uc, us) - max(lc, ls)
    found = release_estimates(tables[0], micro(tables[1]), means=["price"], confidence=0.9)
    overlap, estimate = value_of(found, "overlap"), value_of(found, "estimate")
    assert overlap.value == pytest.approx(common / (2 * (uc - lc)) + common / (2 * (us - ls)))
    assert (estimate.lower, estimate.upper) == pytest.approx((ls, us))
    assert (estimate.baseline, overlap.baseline) == (pytest.approx(tables[0]["price"].mean()), 1.0)


def test_the_mean_of_a_binary_variable_is_its_second_levels_share() -> None:
    found = release_estimates(sample(), micro(sample()), means=["smoker"])
    assert value_of(found, "estimate").value == pytest.approx((sample()["smoker"] == "yes").mean())


def test_a_release_equal_to_the_confidential_data_overlaps_wholly() -> None:
    found = release_estimates(
        sample(), micro(sample()), means=["price", "smoker"], quantiles=["days"],
        models=["price ~ days + group", "logit: smoker ~ price"],
    )  # fmt: skip
    overlaps = [e.value for e in found if e.measure == "overlap"]
    assert len(overlaps) == 2 + 3 + 3 + 2
    assert overlaps == pytest.approx([1.0] * len(overlaps))


def test_intervals_far_apart_have_a_negative_overlap() -> None:
    found = release_estimates(sample(), micro(sample(seed=2, shift=50.0)), means=["price"])
    assert value_of(found, "overlap").value == pytest.approx(-50 / 3.97 + 1, abs=3)


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "right"), [(0.0, True), (1.0, False)])
def test_two_samples_of_one_population_overlap_by_71_per_cent(shift: float, right: bool) -> None:
    """The distance of two means is normal with variance 2 s^2 and the interval 3.92 s wide, so the expected overlap is
    1 - 2 / (3.92 sqrt(pi)) = 0.712, with a standard deviation of 0.217."""
    overlaps = [
        value_of(
            release_estimates(sample(400, seed), micro(sample(400, 9000 + seed, shift)), means=["price"]), "overlap"
        ).value
        for seed in range(120)
    ]
    expected = 1 - 2 / (3.92 * np.sqrt(np.pi))
    assert (abs(np.mean(np.array(overlaps, dtype=float)) - expected) < 3 * 0.217 / np.sqrt(120)) == right


def test_quantiles_that_never_vary_have_no_overlap_and_say_so() -> None:
    zeros = sample().assign(days=np.where(np.arange(100) < 90, 0, 3))
    found = release_estimates(zeros, micro(zeros), quantiles=["days"], probabilities=[0.25])
    overlap, estimate = value_of(found, "overlap", q=0.25), value_of(found, "estimate", q=0.25)
    assert overlap.value is None
    assert overlap.reason == "the interval of the confidential data has no width, so it has no share in common"
    assert (estimate.value, estimate.lower, estimate.upper) == (0, 0, 0)


def test_a_release_that_a_model_cannot_be_fitted_to_says_why_beside_the_rest() -> None:
    released = micro(sample().assign(price=-1.0))
    found = release_estimates(sample(), released, means=["days"], models=["days ~ log(price)"])
    for measure in ("overlap", "estimate", "standard_error"):
        missing = value_of(found, measure, term="log(price)")
        assert missing.value is None
        assert "undefined for 100 records" in missing.reason
    assert value_of(found, "overlap", estimand="mean").value == pytest.approx(1.0)


def test_the_confidential_data_have_estimates_alone() -> None:
    found = release_estimates(sample(), micro(sample(), "confidential"), means=["price"])
    assert [e.measure for e in found] == ["estimate", "standard_error"]
    assert found[0].value == pytest.approx(sample()["price"].mean())


def test_what_is_named_twice_is_estimated_once() -> None:
    found = release_estimates(sample(), micro(sample(seed=2)), means=["price", "price"], models=["price ~ days"] * 2)
    assert len(found) == 3 * (1 + 2)


def test_released_numbers_are_compared_where_nothing_is_named() -> None:
    spec = IntervalOverlapSpec().for_release(SCHEMA, ("price", "group"))
    assert (spec.means, spec.quantiles) == (("price",), ("price",))
    named = IntervalOverlapSpec(means=("days",)).for_release(SCHEMA, ("price",))
    assert (named.means, named.quantiles) == (("days",), ())


def test_fully_synthetic_datasets_of_unequal_size_are_combined_as_by_hand() -> None:
    """T = k u + b/m is the mean of (n_l / n) u_l where all means are alike."""
    made = replace(recipe(3, means=["price"], synthesis="full"), synthesis=())
    datasets = [sample(size, seed) for seed, size in enumerate((50, 100, 400), start=1)]
    for frame in datasets:
        frame["price"] += 100 - frame["price"].mean()
    outcome = execute_run(made, micro(sample(), "confidential"), [micro(frame) for frame in datasets], key=PUBLIC)
    variances = [frame["price"].var() / len(frame) for frame in datasets]
    expected = np.mean([len(frame) / 100 * u for frame, u in zip(datasets, variances, strict=True)])
    (estimate,), (error,) = rows_of(outcome, "estimate"), rows_of(outcome, "standard_error")
    assert (estimate.value, error.value) == pytest.approx((100, np.sqrt(expected)))
    assert (estimate.lower, estimate.upper) == pytest.approx(norm.interval(0.95, 100, np.sqrt(expected)))
    assert "T = k u + b/m" in estimate.reason
    assert estimate.baseline == pytest.approx(sample()["price"].mean())
    (overlap,) = rows_of(outcome, "overlap")
    assert overlap.value == pytest.approx(np.mean([r.value for r in outcome.rows if r.measure == "overlap" and r.draw]))


def test_sizes_and_bounds_are_no_results() -> None:
    outcome = executed(means=["days"], synthesis="full")
    assert {row.measure for row in outcome.rows} == {"overlap", "estimate", "standard_error"}


def test_estimates_stay_between_the_bounds_of_the_variable() -> None:
    """Two smokers of twenty: the interval of Student begins at -0.044."""
    few = sample(20).assign(smoker=["yes"] * 2 + ["no"] * 18, days=[9] + [0] * 19, price=[500.0] + [0.0] * 19)
    found = release_estimates(few, micro(few), means=["smoker", "days", "price"])
    lower = {e.target: e.lower for e in found if e.measure == "estimate"}
    assert 0 < lower["smoker"] < 0.1
    assert 0 < lower["days"] < 0.45
    assert lower["price"] < 0
    student = t.interval(0.95, 19, 0.1, np.sqrt(0.1 * 0.9 / 19))
    assert student[0] == pytest.approx(-0.044, abs=1e-3)
    bounds = {(e.measure, e.target): e.value for e in found if e.measure in ("lower_bound", "upper_bound")}
    assert bounds == {("lower_bound", "smoker"): 0, ("upper_bound", "smoker"): 1, ("lower_bound", "days"): 0}


def test_the_quantile_of_a_count_stays_at_or_above_0_over_all_datasets() -> None:
    """Medians 0, 0 and 1 of three datasets."""
    made = replace(recipe(3, quantiles=["days"], probabilities=[0.5]), synthesis=())
    counts = ([0] * 60 + [4] * 40, [0] * 60 + [3] * 40, [0] * 40 + [1] * 60)
    outcome = execute_run(
        made,
        micro(sample().assign(days=counts[0]), "confidential"),
        [micro(sample(seed=2).assign(days=days)) for days in counts],
        key=PUBLIC,
    )
    (estimate,) = rows_of(outcome, "estimate")
    assert estimate.value == pytest.approx(1 / 3)
    assert 0 < estimate.lower < 1 / 3 < estimate.upper  # type: ignore[operator]


def test_a_run_combines_its_datasets_by_the_rule() -> None:
    """T_p = u + b / m from the rows of the single datasets."""
    outcome = executed(means=["price"], quantiles=["price"])
    draws = [row for row in outcome.rows if row.draw is not None and row.params["estimand"] == "mean"]
    q = [row.value for row in draws if row.measure == "estimate"]
    u = [row.value**2 for row in draws if row.measure == "standard_error" and row.value is not None]
    b = np.var(np.array(q, dtype=float), ddof=1)
    estimate = rows_of(outcome, "estimate")[0]
    degrees = 3 * (1 + 4 * np.mean(u) / b) ** 2
    ends = t.interval(0.95, degrees, np.mean(np.array(q, dtype=float)), np.sqrt(np.mean(u) + b / 4))
    assert (estimate.lower, estimate.upper) == pytest.approx(ends)
    assert estimate.baseline == pytest.approx(sample()["price"].mean())
    assert rows_of(outcome, "standard_error")[0].value == pytest.approx(np.sqrt(np.mean(u) + b / 4))
    assert rows_of(outcome, "overlap")[0].baseline == 1.0
    assert not rows_of(outcome, "overlap", "confidential")


def test_one_dataset_gives_an_estimate_without_an_interval() -> None:
    outcome = executed(1, means=["price"])
    (estimate,) = rows_of(outcome, "estimate")
    assert estimate.value is not None
    assert (estimate.lower, estimate.upper) == (None, None)
    assert "one dataset alone" in estimate.reason
    assert rows_of(outcome, "standard_error")[0].status == "not computed"


def test_a_recipe_with_models_comes_back_the_same() -> None:
    made = recipe(models=["log(price)~group", "logit : smoker ~ days + group:days"], synthesis="full")
    assert Recipe.from_toml(made.to_toml()) == made
    assert made.measures[0].spec.to_table()["models"] == ["log(price) ~ group", "logit: smoker ~ days + group:days"]


@pytest.mark.parametrize(
    ("table", "place", "message"),
    [
        ({"models": ["price ~ dais"]}, "measure[0].models[0]", 'no column "dais"; did you mean "days"?'),
        ({"models": ["price ~ days", "price"]}, "measure[0].models[1]", "is not a model"),
        ({"models": ["group ~ days"]}, "measure[0].models[0]", 'the response "group" is categorical'),
        ({"means": ["group"]}, "measure[0].means[0]", '"group" is categorical'),
        ({"quantiles": ["smoker"]}, "measure[0].quantiles[0]", '"smoker" is binary'),
        ({"probabilities": [1.5]}, "measure[0].probabilities[0]", "at most 1"),
        ({"confidence": 1}, "measure[0].confidence", "below 1"),
        ({"synthesis": "whole"}, "measure[0].synthesis", "not one of partial, full"),
    ],
)
def test_a_recipe_that_cannot_be_used_is_refused_at_its_place(table: dict[str, Any], place: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        recipe(**table)
    assert caught.value.place == place
    assert message in caught.value.message


def test_a_release_without_numbers_needs_a_name() -> None:
    table = {
        "variables": VARIABLES,
        "release": {"released": ["group"]},
        "measure": [{"method": "utility.interval_overlap"}],
    }
    with pytest.raises(BadInput, match=r"^measure\[0\]: no released variable is count or continuous"):
        Recipe.from_table(table)


def test_a_function_outside_its_domain_is_found_before_anything_runs() -> None:
    made = recipe(models=["price ~ days", "price ~ log(days)"])
    days = np.arange(100) % 5
    with pytest.raises(BadInput, match=r"^measure\[0\].models\[1\]: log\(days\) is undefined for 20 records"):
        check_steps(made, micro(sample().assign(days=days), "confidential"))
