"""The multinomial logit synthesiser against statsmodels, its strata, its missing values, and what would leave as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

from sfumato.engine.data import blocks
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.design import stratified_logit
from sfumato.engine.design.completed_design import CompletedDesign, require_independent_terms
from sfumato.engine.design.stratified_logit import stratified_records
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.synthesis import multinomial_logistic as model
from sfumato.engine.synthesis.multinomial_logistic import MultinomialLogisticSpec

SCHEMA = Schema(
    (
        Variable("home", Kind.CATEGORICAL, levels=("a", "b", "c", "d", "e", "f")),
        Variable("race", Kind.CATEGORICAL, levels=("x", "y", "z")),
        Variable("age", Kind.COUNT),
        Variable("sex", Kind.BINARY, levels=("f", "m")),
    )
)
GROUPS = {"large": ("e", "f")}


def frame(n: int, seed: int) -> pd.DataFrame:
    """Homes that depend on age and sex, races that depend on the home."""
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(12, 20, n), rng.integers(0, 2, n)
    scores = np.column_stack([k * 0.3 * (age - 15) * (-1) ** k + 0.5 * sex * (k == 2) for k in range(6)])
    home = (scores / 2 + rng.gumbel(size=(n, 6))).argmax(axis=1)
    race = (np.column_stack([home * 0.4, 0.1 * (age - 15), np.full(n, 0.8)]) + rng.gumbel(size=(n, 3))).argmax(axis=1)
    return pd.DataFrame(
        {
            "home": np.array(list("abcdef"))[home],
            "race": np.array(list("xyz"))[race],
            "age": age,
            "sex": np.array(["f", "m"])[sex],
        }
    )


def table(n: int = 800, seed: int = 1) -> Microdata:
    return conform_to_schema(frame(n, seed), SCHEMA)


def fit_regression(data: Microdata, target: str, spec: MultinomialLogisticSpec, draws: int = 3) -> model.Fit:
    model.check_data(data, target, spec, "synthesis[0]")
    return model.multinomial_logistic(data, target, spec, Run(np.random.default_rng(1)), draws)


def fit_and_draw(
    data: Microdata, target: str, spec: MultinomialLogisticSpec, released: Microdata | None = None
) -> np.ndarray:
    fit = fit_regression(data, target, spec)
    return np.asarray(model.draw(fit, spec, target, data, released or data, 0, np.random.default_rng(2)))


def test_the_maximum_in_each_stratum_is_that_of_statsmodels() -> None:
    data, spec = table(), MultinomialLogisticSpec(predictors=("age", "home"), strata="sex", penalty=0.0)
    fit = fit_regression(data, "race", spec)
    raw = data.frame
    for number, sex in enumerate("fm"):
        own = raw[raw["sex"] == sex]
        x = sm.add_constant(
            pd.get_dummies(own["home"], drop_first=True).astype(float).assign(age=own["age"].astype(float))
        )
        theirs = sm.MNLogit(own["race"].cat.codes, x).fit(method="newton", disp=0, tol=1e-14, maxiter=100)
        design = CompletedDesign.from_terms(spec.predictors, data).build_matrix(data)[(raw["sex"] == sex).to_numpy()]
        scores = design @ fit.arrays[f"{number}.coefficients"][0].T
        p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        assert p == pytest.approx(np.asarray(theirs.predict()), abs=1e-8)


def test_units_of_a_number_and_the_order_of_levels_change_no_probability() -> None:
    raw = frame(500, 2)
    data = conform_to_schema(raw, SCHEMA)
    days = conform_to_schema(raw.assign(age=raw["age"] * 365), SCHEMA)
    turned = Schema((SCHEMA["home"], Variable("race", Kind.CATEGORICAL, levels=("z", "y", "x")), *SCHEMA.variables[2:]))
    spec = MultinomialLogisticSpec(predictors=("age", "sex"), penalty=2.0)

    def probabilities(one: Microdata) -> np.ndarray:
        (records,) = model.records_by_stratum(one, "race", spec)
        return np.exp(records.fit(2.0).class_log_probabilities(records.x))

    assert probabilities(days) == pytest.approx(probabilities(data), abs=1e-10)
    assert probabilities(conform_to_schema(raw, turned))[:, ::-1] == pytest.approx(probabilities(data), abs=1e-10)
    shuffled = conform_to_schema(raw.sample(frac=1, random_state=1), SCHEMA)
    assert np.sort(probabilities(shuffled), axis=0) == pytest.approx(np.sort(probabilities(data), axis=0), abs=1e-10)


def test_datasets_have_the_probabilities_of_the_model() -> None:
    data, spec = table(3000, 3), MultinomialLogisticSpec(predictors=("age", "sex"))
    (records,) = model.records_by_stratum(data, "race", spec)
    expected = np.exp(records.fit(spec.penalty).class_log_probabilities(records.x))
    fit, rng, counts = fit_regression(data, "race", spec), np.random.default_rng(4), np.zeros((2, 3))
    young = data.numbers("age") < 15
    for _ in range(30):
        values = model.draw(fit, spec, "race", data, data, 0, rng).astype(int)
        for half, inside in enumerate((young, ~young)):
            counts[half] += np.bincount(values[inside], minlength=3)
    for half, inside in enumerate((young, ~young)):
        assert stats.chisquare(counts[half], expected[inside].sum(axis=0) * 30).pvalue > 1e-4
        wrong = expected[~inside].sum(axis=0) * inside.sum() / (~inside).sum() * 30
        assert stats.chisquare(counts[half], wrong).pvalue < 1e-4, "the negative control"


def test_groups_of_the_target_keep_records_in_their_group_and_draw_its_levels_alone() -> None:
    data, spec = table(), MultinomialLogisticSpec(predictors=("age", "sex"), groups=GROUPS)
    values, own = fit_and_draw(data, "home", spec), data.numbers("home")
    large = np.isin(own, [4, 5])
    assert np.isin(values[large], [4, 5]).all()
    assert np.isin(values[~large], [0, 1, 2, 3]).all()
    assert set(values) == set(range(6))
    assert (values != own).mean() > 0.3
    free = fit_and_draw(data, "home", MultinomialLogisticSpec(predictors=("age", "sex")))
    assert not np.isin(free[large], [4, 5]).all(), "without groups they are left"
    fit = fit_regression(data, "home", spec)
    assert fit.arrays["0.classes"].tolist() == [4, 5]
    assert {d.parameter for d in fit.diagnostics} == {"large", "others"}


def test_only_levels_that_a_stratum_has_are_drawn_in_it() -> None:
    raw = frame(600, 5)
    raw.loc[(raw["sex"] == "f") & (raw["race"] == "z"), "race"] = "x"
    data = conform_to_schema(raw, SCHEMA)
    values = fit_and_draw(data, "race", MultinomialLogisticSpec(predictors=("age",), strata="sex"))
    assert set(values[(raw["sex"] == "f").to_numpy()]) == {0, 1}
    assert set(values[(raw["sex"] == "m").to_numpy()]) == {0, 1, 2}


RECIPE: dict[str, Any] = {
    "title": "homes",
    "variables": {
        "home": {"kind": "categorical", "levels": list("abcdef")},
        "race": {"kind": "categorical"},
        "age": {"kind": "count"},
        "sex": {"kind": "binary"},
    },
    "release": {"m": 2},
    "synthesis": [
        {"target": "home", "method": "multinomial_logistic", "predictors": ["age", "sex"], "groups": {"large": ["e", "f"]}},
        {"target": "race", "method": "multinomial_logistic", "predictors": ["age", "sex", "home"], "strata": "home", "groups": {"large": ["e", "f"]}},
    ],
}  # fmt: skip


@pytest.mark.slow
def test_the_second_variable_is_drawn_given_the_synthetic_values_of_the_first() -> None:
    """Races go with the synthetic home as they went with the confidential one, and not with the confidential one any more."""
    data, recipe = table(4000, 6), Recipe.from_table(RECIPE)
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    check_steps(recipe, data)
    (released, other) = execute_run(recipe, data, key=PUBLIC).releases
    assert not released.frame.equals(other.frame)

    def share(home: pd.Series) -> float:
        return float((released.frame["race"][home == "a"] == "x").mean())

    before = float((data.frame["race"][data.frame["home"] == "a"] == "x").mean())
    assert share(released.frame["home"]) == pytest.approx(before, abs=0.05)
    assert share(data.frame["home"]) > before + 0.06


@pytest.mark.parametrize(
    ("changed", "place", "message"),
    [
        ({"groups": {"large": ["e", "q"]}}, "synthesis[0].groups.large[1]", 'no level "q"'),
        ({"groups": {"large": ["e", "f"], "small": ["f"]}}, "synthesis[0].groups.small[0]", "two groups"),
        ({"groups": {"one": ["e"]}}, "synthesis[0].groups", "would be released unchanged"),
        ({"predictors": ["age", "age"]}, "synthesis[0].predictors[1]", "aliased"),
        ({"penalty": 0.0, "predictors": ["age", "separates"]}, "synthesis[0].penalty", "give a penalty"),
    ],
)
def test_what_cannot_be_fitted_or_would_be_copied_is_refused(changed: dict[str, Any], place: str, message: str) -> None:
    raw = frame(300, 7)
    raw["separates"] = np.where(raw["home"] == "b", "1", "0")
    data = conform_to_schema(raw, Schema((*SCHEMA.variables, Variable("separates", Kind.BINARY))))
    variables = {**RECIPE["variables"], "separates": {"kind": "binary"}}
    step = {"target": "home", "method": "multinomial_logistic", "predictors": ["age"], **changed}
    recipe = Recipe.from_table({**RECIPE, "variables": variables, "synthesis": [step]})
    with pytest.raises(BadInput, match=message) as caught:
        check_steps(recipe, data)
    assert caught.value.place == place


def test_strata_that_are_the_target_or_that_a_later_step_makes_are_refused() -> None:
    first, second = RECIPE["synthesis"]
    with pytest.raises(BadInput, match="its own confidential value"):
        Recipe.from_table({**RECIPE, "synthesis": [{**first, "strata": "home"}]})
    with pytest.raises(BadInput, match="synthesised by a later step"):
        Recipe.from_table({**RECIPE, "synthesis": [second, first]})


@pytest.mark.slow
def test_a_release_has_as_few_copies_as_independent_draws_and_a_single_valued_stratum_would_copy() -> None:
    data, spec = table(2000, 8), MultinomialLogisticSpec(predictors=("age", "sex"))
    (records,) = model.records_by_stratum(data, "home", spec)
    p = np.exp(records.fit(spec.penalty).class_log_probabilities(records.x))
    own = data.numbers("home").astype(int)
    same = int((fit_and_draw(data, "home", spec) == own).sum())
    assert stats.binomtest(same, 2000, float(p[np.arange(2000), own].mean())).pvalue > 1e-3


def with_gaps(n: int = 600) -> Microdata:
    raw, rng = frame(n, 9).astype("object"), np.random.default_rng(10)
    for name, share in (("race", 0.1), ("age", 0.15), ("sex", 0.1)):
        raw.loc[rng.random(n) < share, name] = None
    return conform_to_schema(raw, SCHEMA, MissingPolicy.KEEP)


def test_missing_values_are_drawn_as_a_level_or_filled() -> None:
    data = with_gaps()
    kept = fit_and_draw(data, "race", MultinomialLogisticSpec(predictors=("age", "sex")))
    assert np.isnan(kept).mean() == pytest.approx(data.missing_mask("race").mean(), abs=0.05)
    filled = fit_and_draw(data, "race", MultinomialLogisticSpec(predictors=("age", "sex"), missing="filled"))
    assert not np.isnan(filled).any()
    (records,) = stratified_records(data, "race", ("age", "sex"), filled=True)
    assert len(records.rows) == int((~data.missing_mask("race")).sum())
    names = CompletedDesign.from_terms(("age", "sex"), data).names
    assert names == ("intercept", "age", "age missing", "sex=m", "sex missing")


def test_variables_that_lack_the_same_records_are_no_aliases() -> None:
    raw = frame(300, 11).astype("object")
    raw.loc[:30, ["age", "sex"]] = None
    data = conform_to_schema(raw, SCHEMA, MissingPolicy.KEEP)
    spec = MultinomialLogisticSpec(predictors=("age", "sex"))
    fit = fit_regression(data, "race", spec)
    assert fit.arrays["0.kept"].tolist() == [True, True, True, True, False]


def test_drawn_parameters_differ_by_dataset_and_say_where_the_penalty_speaks() -> None:
    raw = frame(400, 12)
    data = conform_to_schema(raw, SCHEMA)
    spec = MultinomialLogisticSpec(predictors=("age", "sex"), parameters="drawn")
    fit = fit_regression(data, "race", spec, draws=4)
    assert fit.arrays["0.coefficients"].shape == (4, 3, 3)
    assert len(np.unique(fit.arrays["0.coefficients"][:, 0, 1])) == 4
    shift = next(d for d in fit.diagnostics if d.name == "prior_shift")
    assert shift.passed
    raw["sex"] = np.where(raw["race"] == "x", "f", "m")
    separated = fit_regression(conform_to_schema(raw, SCHEMA), "race", spec)
    assert next(d for d in separated.diagnostics if d.name == "prior_shift").passed is False
    mle = fit_regression(conform_to_schema(raw, SCHEMA), "race", MultinomialLogisticSpec(predictors=("age", "sex")))
    assert all(d.passed is not False for d in mle.diagnostics)
    assert next(d for d in mle.diagnostics if d.name == "largest_coefficient").value < 10  # type: ignore[operator]


def gappy(n: int = 400) -> Microdata:
    """Some ages and races missing, and weights of which some are 0."""
    raw = frame(n, 3)
    raw["age"] = raw["age"].astype(float).mask(np.arange(n) % 11 == 0)
    raw["race"] = raw["race"].mask(np.arange(n) % 13 == 0)
    return conform_to_schema(raw, SCHEMA, MissingPolicy.KEEP)


@pytest.mark.parametrize(
    "settings",
    [
        {"predictors": ["age", "home"]},
        {"predictors": ["age", "sex:age", "home"], "strata": "home", "groups": GROUPS},
        {"predictors": ["home"], "strata": "sex", "missing": "filled", "parameters": "drawn"},
        {"predictors": ["age"], "groups": {"one": ["a", "b", "c"]}},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_records_that_are_alike_are_one_row_of_a_large_fit(
    settings: dict[str, Any], weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, own_groups = gappy(), "groups" in settings and "strata" not in settings
    target = "home" if own_groups else "race"
    if weighted and not own_groups:  # with its own groups the target carries values past the weights
        data = data.with_weights(np.where(np.arange(400) % 7 == 0, 0.0, np.linspace(0.1, 1, 400)))
    spec = MultinomialLogisticSpec.from_table(settings, "")
    alone = fit_regression(data, target, spec)
    made = model.draw(alone, spec, target, data, data, 0, np.random.default_rng(2))
    monkeypatch.setattr(stratified_logit, "MOST_ALONE", 0)
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 50)
    together = fit_regression(data, target, spec)
    assert model.records_by_stratum(data, target, spec)[0].x.shape[0] < len(data) / 2
    assert together.arrays.keys() == alone.arrays.keys()
    for name, array in alone.arrays.items():
        assert together.arrays[name] == pytest.approx(array, rel=1e-6, abs=1e-7)
    for one, other in zip(together.diagnostics, alone.diagnostics, strict=True):
        assert (one.name, one.parameter, one.passed) == (other.name, other.parameter, other.passed)
        if one.name not in {"newton_decrement", "steps"}:
            assert one.value == pytest.approx(other.value, rel=1e-6)
    again = model.draw(together, spec, target, data, data, 0, np.random.default_rng(2))
    assert np.mean((again == made) | (np.isnan(again) & np.isnan(made))) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize(("far", "size"), [(0.0, 1.0), (1e9, 1.0), (0.0, 1e200), (1e-200, 1e-200)])
def test_columns_of_many_blocks_are_scaled_alike(far: float, size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = frame(300, 5).assign(age=far + size * np.random.default_rng(1).normal(size=300))
    raw["age"] = raw["age"].mask(np.arange(300) % 9 == 0)
    schema = Schema((*SCHEMA.variables[:2], Variable("age", Kind.CONTINUOUS), SCHEMA.variables[3]))
    data = conform_to_schema(raw, schema, MissingPolicy.KEEP)
    terms = ("home", "age", "sex:age", "race:sex")
    one = CompletedDesign.from_terms(terms, data)
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 40)
    other = CompletedDesign.from_terms(terms, data)
    assert one.names == other.names
    for own, of in zip(one.blocks, other.blocks, strict=True):
        assert own.gaps == of.gaps
        for name in ("fill", "shift", "divisor"):
            assert getattr(of, name) == pytest.approx(getattr(own, name), rel=1e-7)
    require_independent_terms(data, terms, "p")
    with pytest.raises(BadInput, match="is aliased") as error:
        require_independent_terms(data, ("home", "sex", "age", "home"), "p")
    assert error.value.place == "p[3]"
