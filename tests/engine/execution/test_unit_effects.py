"""Steps with ``unit_effect``: members of a unit are as alike in a release as in the data, and nothing else changes."""

from __future__ import annotations

from typing import Any

import census
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe

SHARE = 0.6
VARIABLES: dict[str, Any] = {
    "home": {"kind": "count", "role": "unit"},
    "line": {"kind": "count"},
    "group": {"kind": "binary"},
    "x": {"kind": "continuous"},
    "y": {"kind": "continuous"},
}
TREE = {"target": "y", "method": "cart", "predictors": ["group", "x"], "minbucket": 50}
REGRESSION = {"target": "y", "method": "linear_regression", "predictors": ["group", "x"], "prior": "scaled"}


def homes(seed: int = 1, units: int = 1500, share: float = SHARE) -> pd.DataFrame:
    """Records whose y follows group and x, with residuals that a home shares; in the group "0" half of all y are 0."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, units)
    home = np.repeat(np.arange(units), sizes)
    n = len(home)
    table = pd.DataFrame({"home": home, "line": np.concatenate([np.arange(1, size + 1) for size in sizes])})
    table["group"], table["x"] = rng.choice(["0", "1"], n), rng.normal(size=n)
    residual = np.sqrt(share) * rng.normal(size=units)[home] + np.sqrt(1 - share) * rng.normal(size=n)
    table["y"] = 10 + 2 * (table["group"] == "1") + table["x"] + 1.5 * residual
    return table


def drawn(step: dict[str, Any], table: pd.DataFrame, units: str = "kept") -> tuple[pd.DataFrame, Fit]:
    steps: list[dict[str, Any]] = [step]
    if units == "drawn":
        steps = [
            {"target": "line", "method": "cart", "predictors": ["place"], "minbucket": 1},
            {"target": "group", "method": "cart"},
            {"target": "x", "method": "cart"},
            step,
        ]
    recipe = Recipe.from_table(
        {
            "variables": VARIABLES,
            "data": {"order": "line", "missing": "keep"},
            "release": {"m": 1, "seed": 1, "units": units},
            "synthesis": steps,
        }
    )
    data = conform_to_schema(table, recipe.schema, MissingPolicy.KEEP)
    fits = [fit_model(recipe, item, data, key=PUBLIC) for item in range(len(recipe.synthesis))]
    item = [one.target for one in recipe.synthesis].index("y")
    return draw_dataset(recipe, 1, data, fits, key=PUBLIC).frame, fits[item]


def likeness(table: pd.DataFrame) -> float:
    """The correlation of the residuals of all pairs of records of a home."""
    x = sm.add_constant(np.column_stack([table["group"] == "1", table["x"]]).astype(float))
    residual = table["y"] - x @ np.linalg.lstsq(x, table["y"].to_numpy(), rcond=None)[0]
    own = pd.DataFrame({"home": table["home"].to_numpy(), "r": residual.to_numpy()})
    pairs = own.reset_index().merge(own.reset_index(), on="home")
    pairs = pairs[pairs["index_x"] != pairs["index_y"]]
    return float(np.corrcoef(pairs["r_x"], pairs["r_y"])[0, 1])


@pytest.mark.parametrize("step", [TREE, REGRESSION], ids=lambda one: str(one["method"]))
@pytest.mark.parametrize("units", ["kept", "drawn"])
def test_members_are_as_alike_as_they_are_and_without_it_they_are_not(step: dict[str, Any], units: str) -> None:
    table = homes()
    found, fit = drawn({**step, "unit_effect": True}, table, units)
    assert float(fit.arrays["unit_share"][0]) == pytest.approx(SHARE, abs=0.05)
    assert likeness(found) == pytest.approx(likeness(table), abs=0.07)
    without, _ = drawn(step, table, units)
    assert abs(likeness(without)) < 0.1
    # What a record has by itself is as it was.
    for one in (found, without):
        assert one["y"].std() == pytest.approx(table["y"].std(), rel=0.05)


@pytest.mark.parametrize("step", [TREE, REGRESSION], ids=lambda one: str(one["method"]))
def test_strangers_share_nothing(step: dict[str, Any]) -> None:
    table = homes(share=0.0)
    found, fit = drawn({**step, "unit_effect": True}, table)
    assert float(fit.arrays["unit_share"][0]) < 0.05
    assert abs(likeness(found)) < 0.1


def test_a_tree_draws_values_of_its_leaf_and_its_heaps_stay() -> None:
    table = homes(2)
    zero = (table["group"] == "0") & (np.random.default_rng(5).random(len(table)) < 0.5)
    table["y"] = table["y"].mask(zero, 0.0).mask(table["group"] == "1", table["y"] + 100)
    found, _ = drawn({**TREE, "unit_effect": True}, table)
    assert set(found["y"]) <= set(table["y"])
    assert ((found["y"] > 60) == (found["group"] == "1")).all()
    assert (found["y"] == 0).mean() == pytest.approx(zero.mean(), abs=0.03)


def test_values_are_missing_as_often_among_high_ones_as_among_low_ones() -> None:
    table = homes(3)
    table["y"] = table["y"].mask((table["group"] == "0") & (np.random.default_rng(6).random(len(table)) < 0.3))
    found, _ = drawn({**TREE, "unit_effect": True, "predictors": ["group"]}, table)
    own = found[found["group"] == "0"]
    assert own["y"].isna().mean() == pytest.approx(0.3, abs=0.03)
    assert own["y"].max() > table.loc[table["group"] == "0", "y"].quantile(0.99)
    assert found.loc[found["group"] == "1", "y"].notna().all()


def test_coefficients_are_as_uncertain_as_correlated_records_leave_them() -> None:
    """Generalised least squares of statsmodels with the known covariance; ordinary ones are too sure of the group."""
    table = homes(4, units=300)
    table["group"] = table.groupby("home")["group"].transform("first")  # the same in all records of a home
    spread = {}
    for effect in (True, False):
        _, fit = drawn({**REGRESSION, "unit_effect": effect}, table)
        sds = [one.value for one in fit.diagnostics if one.name == "posterior_sd"][:3]
        means = [one.value for one in fit.diagnostics if one.name == "posterior_mean"][:3]
        share = float(fit.arrays["unit_share"][0]) if effect else 0.0
        same = table["home"].to_numpy()[:, None] == table["home"].to_numpy()
        covariance = share * same + (1 - share) * np.eye(len(table))
        x = np.column_stack([np.ones(len(table)), table["group"] == "1", table["x"]]).astype(float)
        expected = sm.GLS(table["y"].to_numpy(), x, sigma=covariance).fit()
        np.testing.assert_allclose(means, expected.params, atol=0.05 * expected.bse.max())
        np.testing.assert_allclose(sds, expected.bse, rtol=0.05)
        spread[effect] = sds[1]
    assert spread[True] > 1.2 * spread[False]


@pytest.mark.parametrize(
    ("step", "release", "place", "says"),
    [
        ({**TREE, "unit_effect": True}, {}, "synthesis[0].unit_effect", 'set units = "drawn" or "kept"'),
        ({"target": "group", "method": "cart", "unit_effect": True}, {"units": "kept"}, "synthesis[0].unit_effect", "has levels"),
        ({**TREE, "unit_effect": "yes"}, {"units": "kept"}, "synthesis[0].unit_effect", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_at_its_place(step: Any, release: dict[str, Any], place: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        Recipe.from_table({"variables": VARIABLES, "release": release, "synthesis": [step]})
    assert (caught.value.place, says in caught.value.message) == (place, True), caught.value


def test_a_step_of_units_and_a_column_of_the_same_name_are_refused() -> None:
    level = {**VARIABLES, "x": {"kind": "continuous", "level": "unit"}}
    table = {"variables": level, "release": {"units": "kept"}}
    with pytest.raises(BadInput, match="one value a unit"):
        Recipe.from_table({**table, "synthesis": [{"target": "x", "method": "cart", "unit_effect": True}]})
    named = {**VARIABLES, "unit effect": {"kind": "continuous"}}
    with pytest.raises(BadInput, match="rename this one"):
        Recipe.from_table({**table, "variables": named, "synthesis": [{**TREE, "unit_effect": True}]})


def test_incomes_of_a_household_are_alike_by_their_effect_alone() -> None:
    table = census.draw_census(4000, 1)
    found = {}
    for effect in (True, False):
        step = {
            "target": "income", "method": "cart", "predictors": ["age", "region", "relation"], "minbucket": 40,
            "unit_effect": effect,
        }  # fmt: skip
        recipe = Recipe.from_table({**census.census_recipe(20, "kept"), "synthesis": [step]})
        data: Microdata = conform_to_schema(table, recipe.schema)
        fits = [fit_model(recipe, 0, data, key=PUBLIC)]
        found[effect] = census.intraclass_correlation(draw_dataset(recipe, 1, data, fits, key=PUBLIC).frame)
    assert found[True] > 0.40
    assert found[False] < 0.1
