"""Records drawn from protected margins: what is kept, what is not, what is refused, and what it costs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.contract.privacy import VARIANTS, neighbour_differences, private_table, vary_recipe
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.margins import private_domain
from sfumato.engine.margins.zcdp import largest_rho
from sfumato.engine.methods.privacy import PrivacyAccount
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.results import Fit
from sfumato.engine.recipe.budget import privacy_accounts
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.synthesis import margins
from sfumato.engine.synthesis.margins import protected_margins

KEY = bytes(range(32))
VARIABLES: dict[str, Any] = {
    "area": {"kind": "categorical", "levels": ["city", "town", "village"]},
    "sex": {"kind": "binary", "levels": ["0", "1"]},
    "age": {"kind": "count", "bounds": [0, 99]},
    "pay": {"kind": "continuous", "bounds": [0, 5000]},
}
BINS = {"age": "at 15, 40, 65", "pay": "5 equal width"}


def table(records: int = 2_000, gaps: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    age = rng.integers(0, 100, records)
    pay = np.where(age < 15, 0.0, np.clip(age * 30 + rng.normal(0, 400, records), 0, 5000))
    sex = (rng.random(records) < 0.3 + 0.004 * age).astype(int).astype(str)
    area = np.where(rng.random(records) < 0.1 + 0.7 * (sex == "1"), "city", rng.choice(["town", "village"], records))
    frame = pd.DataFrame({"area": area, "sex": sex, "age": age.astype(float), "pay": pay})
    frame.loc[rng.random(records) < gaps, "pay"] = np.nan
    return frame


def planned(frame: pd.DataFrame | None = None, **step: Any) -> tuple[Recipe, Microdata]:
    variables = {name: dict(own) for name, own in VARIABLES.items()}
    frame = table() if frame is None else frame
    gaps = bool(frame["pay"].isna().any())
    if gaps:
        variables["pay"]["may_be_missing"] = True
    if "w" in frame:
        variables["w"] = {"kind": "continuous", "role": "weight"}
    recipe = Recipe.from_table(
        {
            "variables": variables,
            "data": {"missing": "keep" if gaps else "refuse"},
            "synthesis": [{"method": "margins", "target": list(VARIABLES), "bins": BINS, **step}],
            "release": {"m": 2, "seed": 1, **({} if "w" in frame else {"records": 5_000})},
        }
    )
    return recipe, conform_to_schema(frame, recipe.schema, MissingPolicy.KEEP if gaps else MissingPolicy.REFUSE)


def fit_and_draw(recipe: Recipe, data: Microdata) -> tuple[Fit, pd.DataFrame]:
    check_steps(recipe, data)
    fit = fit_model(recipe, 0, data, key=KEY)
    return fit, draw_dataset(recipe, 1, data, [fit], key=KEY).frame


def together(frame: pd.DataFrame, a: str, b: str) -> pd.Series:
    cut = pd.cut(frame["age"], [0, 15, 40, 65, 100], right=False)
    return frame.assign(age=cut).groupby([a, b], observed=False).size() / len(frame)


def apart(one: pd.DataFrame, other: pd.DataFrame, a: str, b: str) -> float:
    return float((together(one, a, b) - together(other, a, b)).abs().sum() / 2)


def test_kept_pairs_are_kept_and_no_other() -> None:
    recipe, data = planned(margins=["area : sex", "sex : age"], limit=10)
    fit, released = fit_and_draw(recipe, data)
    assert len(released) == 5_000
    assert apart(released, data.frame, "area", "sex") < 0.01
    assert apart(released, data.frame, "sex", "age") < 0.01
    assert abs(released["age"].corr(released["pay"])) < 0.1
    assert data.frame["age"].corr(data.frame["pay"]) > 0.7
    assert all((counts % 10 == 0).all() for counts in protected_margins(fit).values())
    passed = {one.name: one.passed for one in fit.diagnostics}
    assert passed["small_counts_that_follow"] is True


def test_a_release_follows_from_the_protected_margins_alone() -> None:
    """Tables whose rounded margins are equal have equal fits, and so would have equal records by equal random numbers."""
    frame = table()
    recipe, data = planned(frame, margins=["area : sex"], limit=50)
    one = fit_model(recipe, 0, data, key=KEY)
    swapped = frame.assign(age=frame["age"].to_numpy()[::-1].copy(), pay=frame["pay"].to_numpy()[::-1].copy())
    other = fit_model(recipe, 0, conform_to_schema(swapped, recipe.schema), key=KEY)
    assert all(np.array_equal(one.arrays[name], other.arrays[name]) for name in one.arrays)
    changed = frame.assign(area=np.where(frame.index < 200, "village", frame["area"]))
    third = fit_model(recipe, 0, conform_to_schema(changed, recipe.schema), key=KEY)
    assert not np.array_equal(one.arrays["joint"], third.arrays["joint"]), "the control: other margins"


def test_impossible_combinations_and_missing_values() -> None:
    recipe, data = planned(
        table(gaps=0.2), margins=["area : sex", "age : pay"], impossible=["age < 15 & pay >= 1000"], limit=5
    )
    _, released = fit_and_draw(recipe, data)
    assert not ((released["age"] < 15) & (released["pay"] >= 1000)).any()
    assert released["pay"].isna().mean() == pytest.approx(data.frame["pay"].isna().mean(), abs=0.01)
    _, loose = fit_and_draw(*planned(table(gaps=0.2), margins=["area : sex"], limit=5))
    assert ((loose["age"] < 15) & (loose["pay"] >= 1000)).any(), "the control: without the condition"


def test_survey_weights_count_the_population() -> None:
    frame = table()
    frame["w"] = np.where(frame["area"] == "city", 5.0, 1.0)
    weighted = frame.loc[frame["area"] == "city", "w"].sum() / frame["w"].sum()
    for survey, expected in ((True, weighted), (False, (frame["area"] == "city").mean())):
        recipe, data = planned(frame, margins=["area : sex"], survey_weights=survey)
        released = draw_dataset(recipe, 1, data, [fit_model(recipe, 0, data, key=KEY)], key=KEY).frame
        assert (released["area"] == "city").mean() == pytest.approx(expected, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("selection", ["aim", "mst", "pairs"])
def test_much_epsilon_keeps_relations_and_little_does_not(selection: str) -> None:
    recipe, data = planned(epsilon=100.0, selection=selection)
    _, released = fit_and_draw(recipe, data)
    assert apart(released, data.frame, "area", "sex") < 0.03
    assert released["age"].corr(released["pay"]) > 0.7
    _, noisy = fit_and_draw(*planned(epsilon=0.001, selection=selection))
    assert apart(noisy, data.frame, "area", "sex") > 0.1, "the control: nearly nothing is known"


def account_of(**step: Any) -> PrivacyAccount:
    recipe, data = planned(**step)
    ((_, found),) = privacy_accounts(recipe, data, secret=True)
    assert isinstance(found, PrivacyAccount)
    return found


def test_the_account_is_the_epsilon_of_the_recipe_whatever_is_drawn() -> None:
    found = account_of(epsilon=2.0, delta=1e-7)
    assert found.release == 2.0
    assert found.substitution is not None
    assert 2.0 < found.substitution < 4.0
    values = {one.measure: one.value for one in found.estimates()}
    assert values["delta"] == 1e-7
    assert values["rho"] == pytest.approx(largest_rho(2.0, 1e-7))
    assert values["sample_records"] is None


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"protection": "gaussian"}, "noise needs an epsilon"),
        ({"protection": "coarsened", "epsilon": 1.0}, "only noise has an epsilon"),
        ({"selection": "given"}, "name the margins"),
        ({"selection": "pairs", "margins": ["area : sex"]}, "leave one of the two out"),
        ({"selection": "mutual_information", "epsilon": 1.0}, "mutual information is read without noise"),
        ({"selection": "aim"}, "aim chooses by noisy margins"),
        ({"epsilon": 1.0, "survey_weights": True}, "a weight has no bound"),
        ({"survey_weights": True}, "no variable is the survey weight"),
        ({"margins": ["area : hair"]}, 'no column "hair"'),
        ({"margins": ["area : area"]}, "is no margin"),
        ({"impossible": ["sex = 1 & area = city"]}, "records of the data are like that"),
        ({"limit": 2}, "at least 3"),
        ({"figures": 0.1}, "it belongs to noise"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(step: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        check_steps(*planned(**step))


def test_a_limit_that_leaves_nothing_is_refused_with_the_names() -> None:
    recipe, data = planned(table(12), margins=["area : age"], limit=50)
    with pytest.raises(BadInput, match="every count of area and age is rounded to 0"):
        fit_model(recipe, 0, data, key=KEY)


def test_a_tree_and_soft_records_draw_no_level_that_no_table_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = table()
    frame.loc[:2, "area"] = "village"
    frame.loc[3:, "area"] = np.where(frame.loc[3:, "area"] == "village", "town", frame.loc[3:, "area"])
    recipe, data = planned(frame, selection="pairs", audit=False)
    monkeypatch.setattr(margins, "LARGEST_TABLE", 0)
    monkeypatch.setattr(margins, "SOFT_STEPS", 60)
    fit, released = fit_and_draw(recipe, data)
    assert "soft" in fit.arrays
    assert set(released["area"]) == {"city", "town"}
    monkeypatch.setattr(margins, "LARGEST_TABLE", 70)
    recipe, data = planned(frame, margins=["area : sex", "sex : age"], audit=False)
    fit, released = fit_and_draw(recipe, data)
    assert "clique/0.1" in fit.arrays
    assert set(released["area"]) == {"city", "town"}
    assert apart(released, data.frame, "area", "sex") < 0.01


def test_a_substitution_costs_what_two_cells_and_twice_the_score_cost() -> None:
    budget = margins.PrivacyBudget.from_total(1.0, 4, "aim")
    assert math.isclose(budget.single_margins + budget.joint_margins + budget.choices, 1.0)
    share = 2 * (budget.single_margins + budget.joint_margins) + 4 * budget.choices
    found = account_of(epsilon=1.0).concentrated
    assert found is not None
    assert found.substitution == pytest.approx(found.rho * share)


def undeclared(frame: pd.DataFrame, **step: Any) -> tuple[Recipe, Microdata]:
    """A recipe that declares no levels and no bounds of all that it makes."""
    recipe = Recipe.from_table(
        {
            "variables": {name: {"kind": own["kind"]} for name, own in VARIABLES.items()},
            "synthesis": [
                {
                    "method": "margins",
                    "target": list(VARIABLES),
                    "bins": {"age": "4 equal count", "pay": "5 equal width"},
                    **step,
                }
            ],
            "release": {"m": 1, "seed": 1, "records": 3_000},
        }
    )
    return recipe, conform_to_schema(frame, recipe.schema)


@pytest.mark.slow
def test_a_file_without_declared_levels_and_bounds_is_private_too() -> None:
    frame = table(20_000)
    frame.loc[7, "area"] = "a village that one person has"
    frame.loc[9, "pay"] = 9e7
    recipe, data = undeclared(frame, epsilon=3.0)
    ((_, found),) = privacy_accounts(recipe, data, secret=True)
    assert isinstance(found, PrivacyAccount)
    assert found.release == 3.0
    cost = found.concentrated
    assert cost is not None
    assert cost.failure_delta == pytest.approx(cost.delta / 2)
    assert cost.rho == pytest.approx(largest_rho(3.0, cost.delta / 2))
    assert cost.rho == pytest.approx(sum(cost.parts.values()))
    assert cost.parts["levels and ranges"] == pytest.approx(0.1 * cost.rho)
    fit, released = fit_and_draw(recipe, data)
    assert set(released["area"]) == {"city", "town", "village"}
    assert released["pay"].max() < 10_000, "the control is the largest value, 9e7"
    assert apart(released, frame, "area", "sex") < 0.05
    assert released["age"].corr(released["pay"]) > 0.6
    step = recipe.synthesis[0]
    assert isinstance(step.spec, margins.MarginsSpec)
    tables = margins.publishable_tables(fit, step.spec, step.targets, data)
    labels = {label for one in tables for axis in one.categories for label in axis}
    assert "a village that one person has" not in labels
    assert "(other levels)" in labels


def test_noise_that_leaves_no_level_says_what_to_do() -> None:
    recipe, data = undeclared(table(50), epsilon=0.1)
    with pytest.raises(BadInput, match=r'variables.area: no level of "area" .* name its levels, or allow more epsilon'):
        fit_model(recipe, 0, data, key=KEY)


@pytest.mark.slow
def test_a_threshold_that_is_too_low_is_noticed_by_the_neighbour_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours with new levels and extreme values: one claim and one domain, and another one as soon as a level needs no count."""
    recipe = vary_recipe(private_table(registry()["synthesis.margins"]), **VARIANTS["no levels or bounds of the first"])
    assert neighbour_differences(recipe) == []
    monkeypatch.setattr(private_domain, "level_threshold", lambda *given: -math.inf)
    monkeypatch.setattr(margins, "SOFT_STEPS", 10)
    found = neighbour_differences(recipe)
    assert any("region: a new level: releases" in one for one in found), found
