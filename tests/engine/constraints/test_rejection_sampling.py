"""Datasets that keep to their constraints: what is drawn anew, what is computed, what is said where neither helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from sfumato.engine.constraints.constraints import read_constraints
from sfumato.engine.constraints.evaluation import count_compliance
from sfumato.engine.constraints.rejection_sampling import ConstrainedDataset, plan_constraints, round_significant
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput, ConstraintsUnmet
from sfumato.engine.execution.tasks import draw_dataset, execute_run, fit_model
from sfumato.engine.methods.privacy import PrivacyAccount
from sfumato.engine.methods.run import PUBLIC, Randomness
from sfumato.engine.recipe.budget import privacy_accounts
from sfumato.engine.recipe.recipe import Recipe

KEY = b"k" * 32


def people(n: int = 400, seed: int = 3) -> pd.DataFrame:
    """Records that keep to all rules of ``RULES``."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 90, n)
    married = np.where((age >= 15) & (rng.random(n) < 0.6), "yes", "no")
    wage = np.where(age < 15, 0.0, np.round(rng.gamma(2, 900, n), 2))
    rent = np.round(rng.gamma(1, 200, n), 2)
    born = pd.Timestamp("2020-01-01") - pd.to_timedelta(age * 365, unit="D")
    entered = born + pd.to_timedelta(rng.integers(0, 3000, n), unit="D")
    return pd.DataFrame(
        {
            "region": rng.choice(["n", "s", "w"], n),
            "age": age,
            "married": married,
            "wage": wage,
            "rent": rent,
            "income": np.round(wage + rent, 2),
            "born": born,
            "entered": entered,
        }
    )


VARIABLES: dict[str, Any] = {
    "region": {"kind": "categorical", "levels": ["n", "s", "w"]},
    "age": {"kind": "count", "bounds": [0, 120]},
    "married": {"kind": "categorical"},
    "wage": {"kind": "continuous", "bounds": [0, ""]},
    "rent": {"kind": "continuous", "bounds": [0, ""]},
    "income": {"kind": "continuous"},
    "born": {"kind": "date"},
    "entered": {"kind": "date"},
}
RULES: dict[str, Any] = {
    "adult_spouse": "married = 'yes' -> age >= 15",
    "total": "income = wage + rent",
    "order": "born <= entered",
    "children": "age < 15 -> wage = 0",
}
STEPS = [
    {"target": "age", "method": "cart", "predictors": ["region"]},
    {"target": "married", "method": "cart", "predictors": ["region"]},
    {"target": "wage", "method": "cart", "predictors": ["married"]},
    {"target": "rent", "method": "cart", "predictors": ["wage"]},
    {"target": "income", "method": "cart", "predictors": ["region"]},
    {"target": "born", "method": "cart", "predictors": ["region"]},
    {"target": "entered", "method": "cart", "predictors": ["region"]},
]


def recipe(
    constraints: Mapping[str, Any] | None = None, steps: list[dict[str, Any]] | None = None, **changes: Any
) -> Recipe:
    table = {
        "variables": VARIABLES,
        "release": {"m": 1, "seed": 1},
        "synthesis": STEPS if steps is None else steps,
        "constraints": RULES if constraints is None else constraints,
    }
    return Recipe.from_table({**table, **changes})


def fit_and_draw(plan: Recipe, data: Microdata, draw: int = 1, key: bytes = KEY) -> Microdata:
    fits = [fit_model(plan, k, data, key=key) for k in range(len(plan.synthesis))]
    return draw_dataset(plan, draw, data, fits, key=key)


def table(plan: Recipe, frame: pd.DataFrame | None = None, policy: MissingPolicy = MissingPolicy.REFUSE) -> Microdata:
    return conform_to_schema(people() if frame is None else frame, plan.schema, policy)


def test_without_constraints_the_bytes_are_those_of_the_steps_alone() -> None:
    plan = recipe({})
    data = table(plan)
    fits = [fit_model(plan, k, data, key=PUBLIC) for k in range(len(plan.synthesis))]
    found = draw_dataset(plan, 2, data, fits, key=PUBLIC)
    before = Microdata(data.schema, data.frame, "synthetic")
    streams = Randomness(plan.seed, PUBLIC)
    step = plan.synthesis[0]
    values = step.method.draw_targets(
        fits[0], step.spec, step.targets, data, before, 1, streams.generator("draw", 2, 0)
    )
    assert found.frame["age"].tolist() == values["age"].tolist()


@pytest.mark.slow
def test_the_same_recipe_gives_the_same_bytes_and_another_draw_others() -> None:
    plan = recipe(release={"m": 2, "seed": 1, "redraws": 200})
    data = table(plan)
    one, again, other = fit_and_draw(plan, data), fit_and_draw(plan, data), fit_and_draw(plan, data, 2)
    pd.testing.assert_frame_equal(one.frame, again.frame)
    assert not one.frame.equals(other.frame)


# what is accepted has the model's distribution given the constraint

P_Y = {"a": np.array([0.5, 0.3, 0.2]), "b": np.array([0.1, 0.2, 0.7])}
LEVELS = ("p", "q", "r")
FORBIDDEN = {"a": {"p"}, "b": {"r"}}


def conditioned(n: int, seed: int) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """X, kept as it is, and y of n records, drawn by P_Y until it keeps to the rules."""
    variables = (
        Variable("x", Kind.CATEGORICAL, levels=("a", "b")),
        Variable("y", Kind.CATEGORICAL, levels=LEVELS),
    )
    rules = {"a": "x = 'a' -> y != 'p'", "b": "not (x = 'b' and y = 'r')"}
    schema = Schema(variables, read_constraints(rules, Schema(variables)))
    rng = np.random.default_rng(seed)
    x = rng.choice(["a", "b"], n)
    data = conform_to_schema(pd.DataFrame({"x": x, "y": rng.choice(LEVELS, n)}), schema)
    upto = np.cumsum([P_Y[level] for level in x], axis=1)

    def draw(rng: np.random.Generator) -> Mapping[str, NDArray[np.generic]]:
        return {"y": (rng.random(n)[:, None] > upto).sum(axis=1).astype(np.float64)}

    step = recipe({}).synthesis[0]
    made = ConstrainedDataset(data, schema, plan_constraints([("y",)], schema), 200, "fail", "dataset 1")
    one = type(step)("synthesis[0]", step.method, step.spec, ("y",))
    columns = made.make_columns(0, one, data, draw, lambda attempt: np.random.default_rng([seed, attempt]))
    return x, columns["y"].to_numpy(dtype=object)


def p_value(x: NDArray[Any], y: NDArray[Any], level: str, given: NDArray[np.float64]) -> float:
    """Of Pearson's test that y given x = level has these probabilities."""
    own = y[x == level]
    allowed = [name for name in LEVELS if name not in FORBIDDEN[level]]
    expected = np.array([given[LEVELS.index(name)] for name in allowed])
    counts = np.array([(own == name).sum() for name in allowed])
    return float(stats.chisquare(counts, expected / expected.sum() * counts.sum()).pvalue)


def test_redrawn_records_have_the_truncated_conditional_distribution_by_enumeration() -> None:
    x, y = conditioned(60_000, 1)
    for level in "ab":
        assert not set(y[x == level]) & FORBIDDEN[level]
        assert p_value(x, y, level, P_Y[level]) > 1e-3
    # negative controls: the wrong model, and offending records put to the next level that is allowed, are found out
    assert p_value(x, y, "a", np.array([0.5, 0.32, 0.18])) < 1e-3
    rng = np.random.default_rng(2)
    first = rng.choice(LEVELS, 30_000, p=P_Y["a"])
    repaired = np.where(first == "p", "q", first).astype(object)
    assert p_value(np.full(30_000, "a"), repaired, "a", P_Y["a"]) < 1e-10


@pytest.mark.slow
def test_p_values_of_the_truncated_distribution_are_uniform() -> None:
    found = []
    for seed in range(24):
        x, y = conditioned(600, 100 + seed)
        found.append(p_value(x, y, "b", P_Y["b"]))
    assert stats.kstest(found, "uniform").pvalue > 1e-3


# computed variables

SUM = {"total": "income = wage + rent"}


def test_the_last_variable_of_a_sum_is_computed_to_the_cent() -> None:
    plan = recipe(SUM)
    released = fit_and_draw(plan, table(plan)).frame
    assert (released["income"] == np.round(released["wage"] + released["rent"], 2)).all()
    assert not released["income"].equals(people()["income"])


def test_a_part_is_computed_where_it_is_made_last_and_keeps_to_its_bounds_by_redrawing_the_step_before() -> None:
    steps = [STEPS[4], STEPS[2] | {"predictors": ["income"]}, STEPS[0], STEPS[3]]
    plan = recipe(SUM, steps, release={"m": 1, "seed": 1, "redraws": 500})
    released = fit_and_draw(plan, table(plan)).frame
    assert plan.constraint_plan.step_of_computed == {"rent": 1}
    assert (released["rent"] >= 0).all()
    assert np.allclose(released["income"], released["wage"] + released["rent"], atol=1e-6)


def test_a_count_that_would_not_be_whole_is_drawn_anew() -> None:
    variables = {name: {"kind": "count"} for name in ("both", "half")} | {"kept": {"kind": "count"}}
    rng = np.random.default_rng(1)
    half = rng.integers(0, 30, 300)
    frame = pd.DataFrame({"both": 2 * half, "half": half, "kept": rng.integers(0, 3, 300)})
    steps = [
        {"target": "both", "method": "linear_regression", "predictors": ["kept"]},
        {"target": "half", "method": "cart", "predictors": ["kept"]},
    ]
    table = {"variables": variables, "release": {"m": 1}, "synthesis": steps, "constraints": {"twice": "both = 2 * half"}}  # fmt: skip
    plan = Recipe.from_table(table)
    released = fit_and_draw(plan, conform_to_schema(frame, plan.schema)).frame
    assert (released["both"] == 2 * released["half"]).all()
    assert released["both"].nunique() > 10


def test_where_a_part_is_missing_the_variables_own_model_draws_it() -> None:
    frame = people()
    frame.loc[:99, "rent"] = None
    plan = recipe(SUM, data={"missing": "keep"})
    released = fit_and_draw(plan, table(plan, frame, MissingPolicy.KEEP))
    kept = count_compliance(released, plan.schema)[0]
    assert kept.broken == 0
    assert kept.unknown == int(released.missing_mask("rent").sum()) > 0
    assert released.frame["income"].notna().all()


def test_a_variable_computed_early_waits_for_its_own_step_where_a_part_is_missing() -> None:
    frame = people()
    frame.loc[:99, "wage"] = None
    steps = [STEPS[4], STEPS[2] | {"predictors": ["income"]}, STEPS[0], STEPS[3]]
    rules = {**SUM, "low": "rent <= 5000"}
    plan = recipe(rules, steps, data={"missing": "keep"}, release={"m": 1, "seed": 1, "redraws": 500})
    released = fit_and_draw(plan, table(plan, frame, MissingPolicy.KEEP))
    assert [one.broken for one in count_compliance(released, plan.schema)] == [0, 0]
    waited = released.missing_mask("wage")
    assert waited.any()
    same = released.frame.loc[waited, "rent"].to_numpy() == frame.loc[waited, "rent"].to_numpy()
    assert same.mean() < 0.2  # drawn, not left as it is in the confidential data


def test_a_variable_that_would_follow_from_confidential_values_is_refused() -> None:
    with pytest.raises(BadInput, match="are released unchanged") as refused:
        recipe(SUM, [STEPS[4]])
    assert refused.value.place == "constraints.total"


def test_rules_that_determine_each_other_or_what_is_already_made_are_refused() -> None:
    with pytest.raises(BadInput, match="follow from"):
        recipe({"one": "income = wage + rent", "two": "wage = income - rent"})
    with pytest.raises(BadInput, match="later steps make"):
        recipe({"one": "income = wage + rent", "two": "income = age + 5"})


# what cannot be

NEVER = {"never": "married = 'yes' -> age > 200", "total": "income = wage + rent"}


def test_a_redraw_that_cannot_succeed_says_which_constraint_and_how_often() -> None:
    plan = recipe({"never": "region = 'n' -> age > 200", **SUM})
    data = table(plan)
    count = int((data.frame["region"] == "n").sum())
    with pytest.raises(ConstraintsUnmet) as unmet:
        fit_and_draw(plan, data)
    assert f"dataset 1, synthesis[0]: constraint never: {count:,} of 400 records, after 50 redraws" in str(unmet.value)
    assert unmet.value.left == {"never": count}


def test_such_records_are_kept_only_where_the_recipe_says_so_and_then_they_are_counted() -> None:
    rules = {"never": "region = 'n' -> age > 200", **SUM}
    plan = recipe(rules, release={"m": 1, "seed": 1, "redraws": 2, "unmet": "keep"})
    data = table(plan)
    found = {one.constraint.name: one.broken for one in count_compliance(fit_and_draw(plan, data), plan.schema)}
    assert found == {"never": int((data.frame["region"] == "n").sum()), "total": 0}


@pytest.mark.parametrize(
    ("release", "place"),
    [({"redraws": -1}, "release.redraws"), ({"redraws": 10**6}, "release.redraws"), ({"unmet": "mend"}, "release.unmet")],
)  # fmt: skip
def test_what_is_said_of_redraws_is_checked(release: dict[str, Any], place: str) -> None:
    with pytest.raises(BadInput) as refused:
        recipe(release=release)
    assert refused.value.place == place


def test_a_recipe_with_constraints_is_written_as_it_was_read() -> None:
    plan = recipe({**RULES, "found": {"holds": "age >= 0", "source": "data"}}, release={"m": 3, "redraws": 9, "unmet": "keep"})  # fmt: skip
    again = Recipe.from_toml(plan.to_toml())
    assert again == plan
    assert again.schema.constraints == plan.schema.constraints
    assert (again.form.redraws, again.form.unmet) == (9, "keep")


@pytest.mark.slow
def test_a_threshold_may_be_of_one_rule_or_of_all() -> None:
    value = "utility.constraint_violations.broken_records"
    data = table(recipe(SUM))
    for target, passed in (("total", True), ("never", False), ("", False)):
        rules = {"never": "region = 'n' -> age > 200", **SUM}
        threshold = [{"value": value, "max": 0} | ({"target": target} if target else {})]
        plan = recipe(rules, release={"m": 1, "seed": 1, "redraws": 1, "unmet": "keep"}, threshold=threshold)
        verdicts = execute_run(plan, data, key=KEY).verdicts
        assert verdicts
        assert all(verdict.outcome == "met" for verdict in verdicts) is passed
    with pytest.raises(BadInput, match='no column "totl"'):
        recipe(SUM, threshold=[{"value": value, "max": 0, "target": "totl"}])


# where the proof or the likelihood does not hold

GIBBS = {"target": ["region", "married"], "method": "perturbed_gibbs", "epsilon": 1.0}
PLAIN = {"region": VARIABLES["region"], "married": {"kind": "categorical", "levels": ["no", "yes"]}}


def private(constraints: Mapping[str, Any], **step: Any) -> Recipe:
    return Recipe.from_table(
        {
            "variables": PLAIN,
            "release": {"m": 1, "records": 50},
            "synthesis": [{**GIBBS, **step}],
            "constraints": constraints,
        }
    )


def test_a_step_with_a_privacy_account_draws_nothing_anew() -> None:
    with pytest.raises(BadInput, match=r"privacy account of synthesis\.perturbed_gibbs covers records drawn once"):
        private({"c": "region = 'n' -> married = 'no'"})


def test_a_method_that_draws_its_parameters_with_its_records_is_refused() -> None:
    for name in ("dirichlet_multinomial", "marginal_bootstrap"):
        steps = [{"target": ["region", "married"], "method": name}]
        with pytest.raises(BadInput, match="draws its parameters with its records"):
            recipe({"c": "region = 'n' -> married = 'no'"}, steps)


def test_a_rule_learned_from_the_data_is_outside_the_proof_of_privacy() -> None:
    variables = {name: {"kind": "count", "bounds": [0, 9]} for name in "ab"}
    step = {"target": ["a", "b"], "method": "perturbed_gibbs", "bins": {"a": "at 3, 6", "b": "at 3, 6"}, "seeds": "uniform", "epsilon": 1.0}  # fmt: skip
    frame = pd.DataFrame({"a": [1, 4, 7] * 20, "b": [1, 4, 7] * 20})
    found = {}
    for source in ("declared", "data"):
        rule = {"same": {"holds": "a = b", "source": source}}
        plan = Recipe.from_table(
            {"variables": variables, "release": {"m": 1, "records": 50}, "synthesis": [step], "constraints": rule}
        )
        ((_, account),) = privacy_accounts(plan, conform_to_schema(frame, plan.schema), secret=True)
        assert isinstance(account, PrivacyAccount)
        found[source] = [one.message for one in account.uncovered if "constraints" in one.message]
    assert found == {"declared": [], "data": ["constraints were learned from the data (same)"]}


def test_a_sum_that_leaves_its_bounds_is_not_drawn_anew_by_a_step_with_a_privacy_account() -> None:
    variables = {"a": {"kind": "count", "bounds": [0, 9]}, "b": {"kind": "count", "bounds": [0, 4]}}
    step = {"target": ["a", "b"], "method": "perturbed_gibbs", "bins": {"a": "at 3, 6", "b": "at 2"}, "seeds": "uniform", "epsilon": 1.0}  # fmt: skip
    frame = pd.DataFrame({"a": [1, 4, 7] * 20, "b": [1, 4, 2] * 20})
    plan = Recipe.from_table(
        {"variables": variables, "release": {"m": 1, "records": 50}, "synthesis": [step], "constraints": {"same": "a = b"}}
    )  # fmt: skip
    with pytest.raises(ConstraintsUnmet, match=r"constraint same: .* of 50 records, after 0 redraws"):
        fit_and_draw(plan, conform_to_schema(frame, plan.schema))


def test_whoever_asks_how_probable_the_release_is_is_refused() -> None:
    step = {"target": "rent", "method": "linear_regression", "predictors": ["age"]}
    measure = [{"method": "risk.bayesian_posterior"}]
    recipe({"kept": "married = 'yes' -> age >= 15"}, [step], measure=measure)  # of variables that nobody draws
    with pytest.raises(BadInput, match="do not know that records are redrawn"):
        recipe({"c": "rent <= wage"}, [step], measure=measure)


def test_numbers_are_rounded_to_twelve_digits_whatever_their_size() -> None:
    values = np.array([0.1 + 0.2, -1e-7 / 3, 1e300 / 3, 0.0, 123456789.123456789])
    found = round_significant(values)
    assert found.tolist()[0] == 0.3
    assert np.allclose(found, values, rtol=1e-11, atol=0)
    assert np.isinf(round_significant(np.array([np.inf]))).all()


@pytest.mark.slow
def test_a_joint_step_that_makes_records_anew_is_held_to_constraints_too() -> None:
    rng = np.random.default_rng(1)
    a = rng.choice(["x", "y", "z"], 300)
    frame = pd.DataFrame({"a": a, "b": np.where(a == "x", "x", rng.choice(["x", "y", "z"], 300))})
    levels = {"kind": "categorical", "levels": ["x", "y", "z"]}
    step = {"target": ["a", "b"], "method": "dpmpm", "classes": 5, "sweeps": 200, "burn_in": 100, "accept_unconverged": True}  # fmt: skip
    plan = Recipe.from_table(
        {"variables": {"a": levels, "b": levels}, "release": {"m": 1, "records": 777}, "synthesis": [step], "constraints": {"c": "a = 'x' -> b = 'x'"}}
    )  # fmt: skip
    released = execute_run(plan, conform_to_schema(frame, plan.schema), key=KEY).releases[0]
    assert len(released) == 777
    assert count_compliance(released, plan.schema)[0].broken == 0


@pytest.mark.slow
def test_no_record_of_ten_thousand_breaks_a_rule() -> None:
    """Of the same steps without rules hundreds do: ``RULES`` are not what the models would give."""
    frame = people(10_000)
    plan, free = recipe(release={"m": 1, "seed": 1, "redraws": 200}), recipe({})
    released, without = fit_and_draw(plan, table(plan, frame)), fit_and_draw(free, table(free, frame))
    assert len(released) == 10_000
    assert [(one.broken, one.unknown) for one in count_compliance(released, plan.schema)] == [(0, 0)] * 4
    assert all(one.broken > 500 for one in count_compliance(without, plan.schema))


@pytest.mark.slow
def test_adult_keeps_to_its_rules_where_redraws_suffice_and_says_which_where_not(
    public_data: Callable[[str], Path],
) -> None:
    names = ["age", "workclass", "education", "marital_status", "relationship", "sex", "occupation", "capital_gain", "capital_loss"]  # fmt: skip
    counts = ("age", "capital_gain", "capital_loss")
    targets = {"age": "sex", "marital_status": "sex", "relationship": "age", "occupation": "education", "capital_gain": "age", "capital_loss": "age"}  # fmt: skip
    rules = {
        "husbands": "relationship = 'Husband' -> marital_status = 'Married-civ-spouse' | 'Married-AF-spouse'",
        "men": "relationship = 'Husband' -> sex = 'Male'",
        "never": "workclass = 'Never-worked' -> occupation is missing",
        "one_of_both": "capital_gain = 0 or capital_loss = 0",
    }
    plans = {
        redraws: Recipe.from_table(
            {
                "variables": {name: {"kind": "count" if name in counts else "categorical"} for name in names},
                "release": {"m": 1, "seed": 1, "redraws": redraws},
                "synthesis": [
                    {"target": name, "method": "cart", "predictors": [given]} for name, given in targets.items()
                ],
                "constraints": rules,
            }
        )
        for redraws in (1, 1000)
    }
    frame = pd.read_csv(public_data("adult.csv"), na_values=["?"])[names]
    frame = frame.sample(10_000, random_state=1).reset_index(drop=True)
    data = table(plans[1], frame, MissingPolicy.KEEP)
    assert [one.broken for one in count_compliance(fit_and_draw(plans[1000], data), plans[1000].schema)] == [0] * 4
    with pytest.raises(
        ConstraintsUnmet, match=r"constraint husbands: \d[\d,]* of 10,000 records; constraint men: .* after 1 redraw;"
    ):
        fit_and_draw(plans[1], data)
