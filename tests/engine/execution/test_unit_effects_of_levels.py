"""Regressions of counts and levels with ``unit_effect``: members are as alike as in the data, and margins stay."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import kstest, norm, poisson

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.design.completed_design import CompletedDesign
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.posterior.poisson_lognormal import PredictedRates, chances_of_counts, draw_counts, draw_counts_at
from sfumato.engine.recipe.provenance import fit_uncertainty_of_step
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.unit_effects import draw_places

SHARE = 0.5
LEVELS = ("none", "some", "much", "all")
VARIABLES: dict[str, Any] = {
    "home": {"kind": "count", "role": "unit"},
    "x": {"kind": "continuous"},
    "smokes": {"kind": "binary", "levels": ["no", "yes"]},
    "drinks": {"kind": "binary", "levels": ["no", "yes"]},
    "health": {"kind": "ordinal", "levels": list(LEVELS)},
    "region": {"kind": "categorical", "levels": ["north", "south"]},
    "visits": {"kind": "count", "bounds": [0, 60]},
}
BINARY = {"target": ["smokes", "drinks"], "method": "sequential_logistic", "predictors": ["x"]}
ORDINAL = {"target": "health", "method": "multinomial_logistic", "predictors": ["x"]}
YES_NO = {"target": "smokes", "method": "multinomial_logistic", "predictors": ["x"]}
COUNT = {"target": "visits", "method": "zero_inflated_truncated_poisson", "predictors": ["x"]}
STEPS = [BINARY, ORDINAL, YES_NO, COUNT]
NAMES = ["sequential", "ordinal", "multinomial", "counts"]


def chances_by_quadrature(eta: np.ndarray, zero: float, tau: float) -> np.ndarray:
    """The probability of a count up to 0, 1, ..., 60 of each log rate (n,): Gauss-Hermite over the record's effect."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(15)
    rate = np.exp(eta[:, None, None] + tau * nodes)
    upto = poisson.cdf(np.arange(61)[:, None], rate) / poisson.cdf(60, rate)
    return zero + (1 - zero) * (upto @ (weights / weights.sum()))


def homes(seed: int, units: int = 1200, share: float = SHARE, smallest: int = 1) -> pd.DataFrame:
    """Records with counts and levels at places that a home shares: Phi of normal numbers, each of its own variable."""
    rng = np.random.default_rng(seed)
    home = np.repeat(np.arange(units), rng.integers(smallest, 5, units) if smallest else np.ones(units, int))
    n = len(home)

    def places() -> Any:
        return norm.cdf(np.sqrt(share) * rng.normal(size=units)[home] + np.sqrt(1 - share) * rng.normal(size=n))

    table = pd.DataFrame({"home": home, "x": rng.normal(size=n)})
    x = table["x"].to_numpy()
    table["smokes"] = np.where(places() > 1 / (1 + np.exp(-0.8 - 0.8 * x)), "yes", "no")
    table["drinks"] = np.where(places() > 1 / (1 + np.exp(1.5 - 0.5 * x)), "yes", "no")
    weights = np.exp(np.outer(x, [0, 0.4, 0.8, 1.2]) + np.array([0, 0.5, 0.2, -0.5]))
    chance = (weights / weights.sum(axis=1, keepdims=True)).cumsum(axis=1)
    table["health"] = np.array(LEVELS)[np.minimum((places()[:, None] > chance).sum(axis=1), 3)]
    table["region"] = rng.choice(["north", "south"], n)
    upto = chances_by_quadrature(1.0 + 0.4 * x, 0.25, 0.5)
    table["visits"] = (places()[:, None] > upto).sum(axis=1)
    return table


def drawn(step: dict[str, Any], table: pd.DataFrame, m: int = 1, **settings: Any) -> tuple[pd.DataFrame, Fit]:
    recipe = Recipe.from_table(
        {
            "variables": VARIABLES,
            "data": {"missing": "keep"},
            "release": {"m": m, "seed": 1, "units": "kept"},
            "synthesis": [{**step, **settings}],
        }
    )
    data = conform_to_schema(table, recipe.schema, MissingPolicy.KEEP)
    fits = [fit_model(recipe, 0, data, key=PUBLIC)]
    return draw_dataset(recipe, 1, data, fits, key=PUBLIC).frame, fits[0]


def numbers(table: pd.DataFrame, name: str) -> np.ndarray:
    if name == "visits":
        return np.log1p(table[name].to_numpy(dtype=float))
    levels = list(LEVELS) if name == "health" else ["no", "yes"]
    return np.array([np.nan if pd.isna(one) else levels.index(one) for one in table[name]])


def likeness(table: pd.DataFrame, name: str) -> float:
    """The correlation of residuals of least squares over all pairs of records of a home."""
    y = numbers(table, name)
    x = np.column_stack([np.ones(len(table)), table["x"], table["x"] ** 2]).astype(float)
    residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    own = pd.DataFrame({"home": table["home"].to_numpy(), "r": residual}).reset_index()
    pairs = own.merge(own, on="home")
    pairs = pairs[pairs["index_x"] != pairs["index_y"]]
    return float(np.corrcoef(pairs["r_x"], pairs["r_y"])[0, 1])


def shares(fit: Fit) -> list[float]:
    return [float(fit.arrays[name][0]) for name in fit.arrays if name.endswith("unit_share")]


def targets(step: dict[str, Any]) -> list[str]:
    return step["target"] if isinstance(step["target"], list) else [step["target"]]


@pytest.mark.parametrize("step", STEPS, ids=NAMES)
def test_members_are_as_alike_as_they_are_and_without_it_they_are_not(step: dict[str, Any]) -> None:
    table = homes(1)
    found, fit = drawn(step, table, unit_effect=True)
    without, _ = drawn(step, table)
    assert shares(fit) == pytest.approx([SHARE] * len(targets(step)), abs=0.08)
    for name in targets(step):
        assert likeness(table, name) > 0.25
        assert likeness(found, name) == pytest.approx(likeness(table, name), abs=0.06)
        assert abs(likeness(without, name)) < 0.08
        for one in (found, without):
            assert numbers(one, name).mean() == pytest.approx(numbers(table, name).mean(), abs=0.07)


def test_new_units_are_alike_too() -> None:
    table = homes(2)
    variables = {name: VARIABLES[name] for name in ("home", "x", "smokes", "drinks", "health", "visits")}
    steps = [{"target": "x", "method": "cart"}, BINARY, ORDINAL, {**COUNT, "predictors": ["x", "health"]}]
    effects = [{**step, "unit_effect": True} if step["method"] != "cart" else step for step in steps]
    recipe = Recipe.from_table(
        {"variables": variables, "release": {"m": 1, "seed": 1, "units": "drawn"}, "synthesis": effects}
    )
    data = conform_to_schema(table[list(variables)], recipe.schema)
    fits = [fit_model(recipe, item, data, key=PUBLIC) for item in range(len(recipe.synthesis))]
    found = draw_dataset(recipe, 1, data, fits, key=PUBLIC).frame
    for name in ("smokes", "drinks", "health", "visits"):
        assert likeness(found, name) == pytest.approx(likeness(table, name), abs=0.08)


def test_targets_of_one_step_share_no_effect() -> None:
    """Their effects are drawn apart: a home where many smoke is no home where many drink."""
    table = homes(3, units=2500)
    found, _ = drawn(BINARY, table, unit_effect=True)
    for one in (table, found):
        means = pd.DataFrame({name: numbers(one, name) for name in ("smokes", "drinks")}).groupby(one["home"]).mean()
        assert abs(np.corrcoef(means["smokes"], means["drinks"])[0, 1]) < 0.12


@pytest.mark.parametrize("step", STEPS, ids=NAMES)
def test_strangers_share_nothing(step: dict[str, Any]) -> None:
    found, fit = drawn(step, homes(4, share=0.0), unit_effect=True)
    assert max(shares(fit)) < 0.1
    assert all(abs(likeness(found, name)) < 0.08 for name in targets(step))


@pytest.mark.parametrize("step", STEPS, ids=NAMES)
def test_with_one_record_a_unit_every_value_is_as_it_is_without(step: dict[str, Any]) -> None:
    table = homes(5, units=600, smallest=0)
    found, fit = drawn(step, table, unit_effect=True)
    assert shares(fit) == [0.0] * len(targets(step))
    pd.testing.assert_frame_equal(found, drawn(step, table)[0])


def test_missing_levels_are_as_frequent_among_high_places_as_among_low_ones() -> None:
    table = homes(16, units=2500)
    table["health"] = table["health"].mask(np.random.default_rng(16).random(len(table)) < 0.3)
    found, fit = drawn(ORDINAL, table, unit_effect=True)
    assert shares(fit)[0] == pytest.approx(SHARE, abs=0.08)
    for one in (table, found):
        gone = one["health"].isna()
        assert gone.mean() == pytest.approx(0.3, abs=0.03)
        # of the other members, those beside a missing value are no higher and miss theirs no more often
        code = pd.Series(numbers(one, "health"))
        others = one.assign(code=code.to_numpy(), gone=gone).groupby("home")
        beside = (others["gone"].transform("sum") - gone) / (others["gone"].transform("size") - 1)
        assert abs(np.corrcoef(beside[beside.notna()], gone[beside.notna()])[0, 1]) < 0.08
        assert abs(np.corrcoef(beside[beside.notna() & ~gone], code[beside.notna() & ~gone])[0, 1]) < 0.08
    plain, _ = drawn({**ORDINAL, "missing": "filled"}, table, unit_effect=True)
    assert plain["health"].notna().all()


def test_strata_that_lack_levels_keep_them_out() -> None:
    table = homes(7)
    table.loc[(table["region"] == "north") & (table["health"] == "all"), "health"] = "some"
    found, fit = drawn(ORDINAL, table, unit_effect=True, strata="region")
    assert shares(fit)[0] > 0.3
    assert not ((found["region"] == "north") & (found["health"] == "all")).any()


@pytest.mark.parametrize("bound", [None, 12])
@pytest.mark.parametrize(("eta", "tau"), [(-0.5, 0.01), (1.0, 0.8), (2.5, 1.5)])
def test_counts_at_uniform_places_have_the_distribution_of_the_model(eta: float, tau: float, bound: int | None) -> None:
    n, rng = 40_000, np.random.default_rng(8)
    predicted = PredictedRates(np.full(n, eta), np.full(n, -1.0), tau)
    found = draw_counts_at(rng.random(n), predicted, bound, rng)
    assert found.dtype == np.int64
    assert found.min() == 0
    assert bound is None or found.max() <= bound
    nodes = norm.ppf((np.arange(4000) + 0.5) / 4000)
    rate, cuts, zero = np.minimum(np.exp(eta + tau * nodes), 500.0), np.arange(13), 1 / (1 + np.e)
    upto = poisson.cdf(cuts[:, None], rate) / (1.0 if bound is None else poisson.cdf(bound, rate))
    expected = zero + (1 - zero) * upto.mean(axis=1)
    share = (found[:, None] <= cuts).mean(axis=0)
    assert np.abs(share - expected).max() < 4 * 0.5 / np.sqrt(n)
    plain = draw_counts(predicted, bound, "new", rng)
    assert np.abs((plain[:, None] <= cuts).mean(axis=0) - share).max() < 5 * 0.5 / np.sqrt(n)
    some = PredictedRates(np.full(500, eta), np.full(500, -1.0), tau)
    np.testing.assert_allclose(chances_of_counts(some, cuts * 1.0, bound, rng).mean(axis=0), expected, atol=0.01)


def test_counts_rise_with_their_places_and_lie_where_the_distribution_says() -> None:
    places = np.linspace(0.001, 0.999, 999)
    predicted = PredictedRates(np.full(999, 2.0), np.full(999, -1.0), 0.5)
    upto = chances_by_quadrature(np.full(1, 2.0), 1 / (1 + np.e), 0.5)[0]
    runs = [draw_counts_at(places, predicted, 60, np.random.default_rng(seed)) for seed in range(40)]
    expected = (places[:, None] > upto).sum(axis=1)
    middle = (places > 0.3) & (places < 0.97)
    assert np.abs(np.mean(runs, axis=0) - expected)[middle].max() < 1.0
    assert (np.array(runs)[:, places < 0.26] == 0).all()
    assert float(np.corrcoef(runs[0], expected)[0, 1]) > 0.98


@pytest.mark.parametrize("drawing", ["sequential_logistic", "multinomial_logistic"])
def test_levels_are_those_at_uniform_places_one_record_after_another(
    drawing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brute force: given places, each record has the first level whose cumulated probability reaches its place."""
    module = importlib.import_module(f"sfumato.engine.synthesis.{drawing}")
    seen: list[np.ndarray] = []

    def keep_places(*given: Any) -> np.ndarray:
        seen.append(draw_places(*given))
        return seen[-1]

    monkeypatch.setattr(module, "draw_places", keep_places)
    table = homes(9, units=400)
    step = BINARY if drawing == "sequential_logistic" else ORDINAL
    found, fit = drawn({**step, "target": ["smokes"]} if step is BINARY else step, table, unit_effect=True)
    place_in_home = table.groupby("home").cumcount().to_numpy()
    x = np.column_stack([np.ones(len(table)), table["x"]])
    declared = Recipe.from_table({"variables": VARIABLES, "release": {"units": "kept"}, "synthesis": [ORDINAL]})
    data = conform_to_schema(table, declared.schema)
    design = CompletedDesign.from_terms(["x"], data).build_matrix(data)
    # Units come by falling size, and those that have no further record leave.
    largest = table.groupby("home").size().sort_values(ascending=False, kind="stable")
    assert [len(one) for one in seen] == [int((largest > k).sum()) for k in range(len(seen))]
    for k, places in enumerate(seen):
        at = {home: row for row, home in enumerate(table["home"]) if place_in_home[row] == k}
        for place, home in zip(places, largest.index[largest > k], strict=True):
            row = at[home]
            if step is BINARY:
                chance = 1 / (1 + np.exp(-x[row] @ fit.arrays["smokes.coefficients"][0]))
                assert found["smokes"].iloc[row] == ("yes" if place > 1 - chance else "no")
                continue
            odds = np.exp(fit.arrays["0.coefficients"][0] @ design[row])
            level = 0
            while place > odds[: level + 1].sum() / odds.sum():
                level += 1
            assert found["health"].iloc[row] == LEVELS[level]
    assert kstest(np.concatenate(seen), "uniform").statistic < 0.08


@pytest.mark.parametrize(
    ("step", "place", "says"),
    [
        ({"target": "region", "method": "multinomial_logistic"}, "synthesis[0].unit_effect", "have no order"),
        ({"target": "smokes", "method": "cart"}, "synthesis[0].unit_effect", "only numbers"),
        ({**COUNT, "random_effect": "record"}, "synthesis[0].method", "own values"),
    ],
)
def test_what_cannot_be_is_said_at_its_place(step: dict[str, Any], place: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        Recipe.from_table(
            {"variables": VARIABLES, "release": {"units": "kept"}, "synthesis": [{**step, "unit_effect": True}]}
        )
    assert (caught.value.place, says in caught.value.message) == (place, True), caught.value


def test_a_column_with_the_name_of_an_effect_is_refused() -> None:
    named = {**VARIABLES, "unit effect on drinks": {"kind": "continuous"}}
    with pytest.raises(BadInput, match="rename this one"):
        Recipe.from_table(
            {"variables": named, "release": {"units": "kept"}, "synthesis": [{**BINARY, "unit_effect": True}]}
        )


def test_coefficients_are_as_uncertain_as_whole_units_leave_them() -> None:
    """Generalised estimating equations of statsmodels with independence and robust errors; plain ones are too sure."""
    table = homes(10, units=500)
    table["x"] = table.groupby("home")["x"].transform("first").to_numpy()
    rng = np.random.default_rng(3)
    u, e = rng.normal(size=500)[table["home"]], rng.normal(size=len(table))
    place = norm.cdf(np.sqrt(0.7) * u + np.sqrt(0.3) * e)
    table["smokes"] = np.where(place > 1 / (1 + np.exp(0.3 + 0.8 * table["x"])), "yes", "no")
    x, y = sm.add_constant(table["x"].to_numpy()), (table["smokes"] == "yes").to_numpy(dtype=float)
    expected = sm.GEE(y, x, groups=table["home"].to_numpy(), family=sm.families.Binomial()).fit()
    plain = sm.Logit(y, x).fit(disp=0)
    step, m = {**BINARY, "target": ["smokes"]}, 2000
    _, fit = drawn(step, table, m=m, unit_effect=True)
    errors = [one.value for one in fit.diagnostics if one.name == "standard_error"]
    np.testing.assert_allclose(errors, expected.bse, rtol=0.01)
    draws = fit.arrays["smokes.coefficients"]
    np.testing.assert_allclose(np.cov(draws.T), expected.cov_params(), atol=0.12 * expected.bse.max() ** 2)
    np.testing.assert_allclose(draws.mean(axis=0), expected.params, atol=4 * expected.bse.max() / np.sqrt(m))
    assert (expected.bse > 1.2 * plain.bse).all()
    _, alone = drawn({**step, "predictors": []}, table, m=m, unit_effect=True)
    share = alone.arrays["smokes.share"]
    means = table.assign(y=y).groupby("home")["y"].agg(["sum", "size"])
    error = np.sqrt(((means["sum"] - means["size"] * y.mean()) ** 2).sum()) / len(table)
    assert share.std() == pytest.approx(error, rel=0.08)
    assert share.mean() == pytest.approx(y.mean(), abs=0.005)
    same = drawn({**step, "parameters": "mle"}, table, unit_effect=True)[1].arrays["smokes.coefficients"]
    np.testing.assert_allclose(same[0], plain.params, atol=1e-5)


@pytest.mark.parametrize("settings", [{}, {"missing": "filled"}, {"strata": "region"}], ids=["all", "filled", "strata"])
def test_logit_coefficients_are_as_uncertain_as_whole_units_leave_them(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statsmodels' multinomial logit with errors by cluster, of differences from the first level."""
    table, m = homes(11, units=400, share=0.8), 1500
    table["x"] = table.groupby("home")["x"].transform("first").to_numpy()
    if "missing" in settings:
        table["health"] = table["health"].mask(np.random.default_rng(1).random(len(table)) < 0.1)
    step = {**ORDINAL, "parameters": "drawn", "penalty": 0, **settings}
    _, fit = drawn(step, table, m=m, unit_effect=True)
    declared = Recipe.from_table({"variables": VARIABLES, "release": {"units": "kept"}, "synthesis": [ORDINAL]})
    data = conform_to_schema(table, declared.schema, MissingPolicy.KEEP)
    own = table["health"].notna().to_numpy()
    if "strata" in settings:
        own = own & (table["region"] == "north").to_numpy()
    x = CompletedDesign.from_terms(["x"], data).build_matrix(data)[own]
    y, groups = numbers(table, "health")[own], table["home"].to_numpy()[own]
    ways = {"cov_type": "cluster", "cov_kwds": {"groups": groups, "use_correction": False}}
    expected = sm.MNLogit(y, x).fit(disp=0, method="newton", **ways)
    draws = fit.arrays["0.coefficients"]
    differences = (draws[:, 1:] - draws[:, :1]).reshape(m, -1)
    covariance = np.asarray(expected.cov_params())
    bound = 5 * np.diag(covariance).max() / np.sqrt(m)
    np.testing.assert_allclose(differences.mean(axis=0), expected.params.T.ravel(), atol=bound**0.5 * 0.5)
    np.testing.assert_allclose(np.cov(differences.T), covariance, atol=bound)
    plain = np.diag(sm.MNLogit(y, x).fit(disp=0).cov_params())
    assert (differences.var(axis=0) / plain).mean() > 1.3
    # Equal records of a large table are one row of the fit.
    monkeypatch.setattr("sfumato.engine.design.stratified_logit.MOST_ALONE", 10)
    np.testing.assert_allclose(drawn(step, table, m=m, unit_effect=True)[1].arrays["0.coefficients"], draws, atol=1e-6)


def test_only_coefficients_drawn_by_units_are_declared_as_drawn() -> None:
    for step, expected in ((BINARY, "drawn"), ({**ORDINAL, "parameters": "drawn"}, "drawn"), (COUNT, "unknown")):
        for effect in (True, False):
            recipe = Recipe.from_table(
                {"variables": VARIABLES, "release": {"units": "kept"}, "synthesis": [{**step, "unit_effect": effect}]}
            )
            found = fit_uncertainty_of_step(recipe, recipe.synthesis[0]).parameters
            assert found == (expected if effect else "drawn")
