"""Missing values kept as values: the representation, trees that synthesise them, and the measures of utility."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ecdf_of_arrays import ecdf_difference
from prepared_tables import schema_of
from scipy.stats import chisquare

from sfumato.engine.data.microdata import Microdata, conform_to_schema, to_column
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput, EngineError
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.rows import Row, average_series
from sfumato.engine.methods.run import Run
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.synthesis.cart import CartSpec, cart, draw
from sfumato.engine.utility.cluster import ClusterSpec, cluster
from sfumato.engine.utility.ecdf import EcdfSpec, ecdf
from sfumato.engine.utility.interval_overlap import IntervalOverlapSpec, interval_overlap
from sfumato.engine.utility.propensity import PropensitySpec, propensity
from sfumato.engine.utility.summary import SummarySpec, summary

SCHEMA = schema_of(
    Variable("group", Kind.CATEGORICAL, levels=("a", "b", "c")),
    Variable("size", Kind.ORDINAL, levels=("small", "large")),
    "age: count",
    "income: continuous",
    "joined: date",
)
SHARES = {"a": 0.1, "b": 0.5, "c": 0.9}


def example(n: int = 900, seed: int = 1) -> Microdata:
    """Ages and incomes are missing for a tenth of group a, half of b and nine tenths of c; who has none has no group."""
    rng = np.random.default_rng(seed)
    group = np.array(["a", "b", "c"])[np.arange(n) % 3]
    lacking = rng.random((3, n)) < np.array([SHARES[one] for one in group])
    frame = pd.DataFrame(
        {
            "group": group,
            "size": pd.Series(rng.choice(["small", "large"], n)).mask(lacking[2]),
            "age": pd.Series(rng.integers(18, 90, n)).mask(lacking[0]),
            "income": pd.Series(np.round(rng.lognormal(3, 1, n), 2)).mask(lacking[1]),
            "joined": pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")).mask(
                lacking[0]
            ),
        }
    )
    return conform_to_schema(frame, SCHEMA, MissingPolicy.KEEP)


def seeded_run(seed: int = 1) -> Run:
    return Run(np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("values", "kind", "dtype", "numbers"),
    [
        ([3, None, 1], Kind.COUNT, "float64", [3.0, np.nan, 1.0]),
        (["3", "", "1"], Kind.COUNT, "float64", [3.0, np.nan, 1.0]),
        ([3.5, None, 1.0], Kind.CONTINUOUS, "float64", [3.5, np.nan, 1.0]),
        (["b", None, "a"], Kind.BINARY, "category", [1.0, np.nan, 0.0]),
        ([2.0, None, 1.0], Kind.CATEGORICAL, "category", [1.0, np.nan, 0.0]),
        (["2020-01-02", None, "1970-01-01"], Kind.DATE, "datetime64[s]", [18263.0, np.nan, 0.0]),
    ],
)
def test_missing_values_are_kept_as_missing(values: list[Any], kind: Kind, dtype: str, numbers: list[float]) -> None:
    raw = pd.DataFrame({"x": values}, index=[7, 7, 3])
    data = conform_to_schema(raw, Schema((Variable("x", kind, missing=("",)),)), MissingPolicy.KEEP)
    assert str(data.column("x").dtype) == dtype
    assert np.array_equal(data.numbers("x"), numbers, equal_nan=True)
    assert data.missing_mask("x").tolist() == [False, True, False]
    assert data.present_numbers("x").tolist() == [numbers[0], numbers[2]]
    assert data.dropped == 0


def test_levels_are_those_that_are_present() -> None:
    assert list(example().column("size").cat.categories) == ["small", "large"]
    data = conform_to_schema(
        pd.DataFrame({"x": [2.0, np.nan, 10.0]}), Schema((Variable("x", Kind.CATEGORICAL),)), MissingPolicy.KEEP
    )
    assert list(data.column("x").cat.categories) == ["2", "10"]


def test_what_is_present_is_still_checked_and_all_missing_is_refused() -> None:
    schema = Schema((Variable("x", Kind.COUNT),))
    with pytest.raises(BadInput, match="1 record is not whole numbers"):
        conform_to_schema(pd.DataFrame({"x": [1.5, None]}), schema, MissingPolicy.KEEP)
    with pytest.raises(BadInput, match=r"variables\.x: no record has a value"):
        conform_to_schema(pd.DataFrame({"x": [None, None]}), schema, MissingPolicy.KEEP)


def test_a_table_without_missing_values_is_the_same_under_every_policy() -> None:
    raw = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    schema = Schema((Variable("x", Kind.COUNT), Variable("y", Kind.BINARY)))
    kept, refused = (conform_to_schema(raw, schema, policy) for policy in (MissingPolicy.KEEP, MissingPolicy.REFUSE))
    pd.testing.assert_frame_equal(kept.frame, refused.frame)


def test_a_value_that_is_lacking_where_none_may_be_is_an_error() -> None:
    data = conform_to_schema(pd.DataFrame({"x": [1.0, 2.0]}), Schema((Variable("x", Kind.CONTINUOUS),)))
    with pytest.raises(EngineError):
        to_column([np.nan, 1.0], data, data.schema["x"], "synthesis[0]")


@pytest.mark.parametrize(
    ("target", "predictors", "place", "lacking"),
    [
        ("income", ["group"], "synthesis[0].target", "income"),
        ("income", ["group", "log1p(age)"], "synthesis[0].predictors[1]", "age"),
        ("income", ["group:size"], "synthesis[0].predictors[0]", "size"),
    ],
)
def test_a_model_that_needs_every_value_says_so(target: str, predictors: list[str], place: str, lacking: str) -> None:
    table = {
        "variables": {variable.name: variable.to_table() for variable in SCHEMA},
        "synthesis": [{"target": target, "method": "linear_regression", "predictors": predictors}],
    }
    data = example()
    frame = data.frame.assign(income=1.0 + np.arange(len(data))) if lacking != "income" else data.frame
    with pytest.raises(BadInput) as caught:
        check_steps(Recipe.from_table(table), Microdata(SCHEMA, frame))
    assert caught.value.place == place
    records = int(data.missing_mask(lacking).sum())
    assert caught.value.message == (
        f'{records:,} records have no "{lacking}"; these models need every value: use cart, or missing = "drop"'
    )


def synthesised(data: Microdata, target: str, spec: CartSpec, datasets: int) -> np.ndarray:
    fit = cart(data, target, spec, seeded_run(), datasets)
    return np.stack([draw(fit, spec, target, data, data, i, np.random.default_rng(i)) for i in range(datasets)])


def share_test(
    data: Microdata, target: str, spec: CartSpec, datasets: int = 40, leaves: Iterable[str] = tuple(SHARES)
) -> float:
    """Chi-squared p-value of the missing among the synthetic values of each leaf of groups, given its confidential share."""
    missing = np.isnan(synthesised(data, target, spec, datasets))
    observed, expected = [], []
    for groups in leaves:
        rows = data.column("group").isin(list(groups)).to_numpy()
        share, draws = data.missing_mask(target)[rows].mean(), datasets * rows.sum()
        observed += [missing[:, rows].sum(), draws - missing[:, rows].sum()]
        expected += [share * draws, (1 - share) * draws]
    return float(chisquare(observed, expected, ddof=len(observed) // 2 - 1).pvalue)


@pytest.mark.parametrize("target", ["age", "income", "joined"])
def test_the_share_of_missing_values_is_that_of_the_leaf(target: str) -> None:
    assert share_test(example(), target, CartSpec(predictors=("group",), minbucket=100)) > 0.001


def test_the_share_of_missing_levels_is_that_of_groups_of_one_majority() -> None:
    """Missing is the commonest level of groups b and c: a split between them saves no error and is pruned, as in rpart."""
    spec = CartSpec(predictors=("group",), minbucket=100)
    assert share_test(example(), "size", spec, leaves=("a", "bc")) > 0.001
    assert share_test(example(), "size", spec) < 1e-9


@pytest.mark.parametrize("target", ["age", "size"])
def test_a_tree_that_does_not_see_the_group_does_not_keep_its_share(target: str) -> None:
    """The negative control."""
    assert share_test(example(), target, CartSpec()) < 1e-9


@pytest.mark.parametrize("name", ["age", "size", "income", "joined"])
def test_a_split_tells_missing_predictors_from_the_rest(name: str) -> None:
    data = example()
    lacking = data.missing_mask(name)
    mark = pd.Series(pd.Categorical(np.where(lacking, "a", "b"), ["a", "b", "c"]))
    found = synthesised(data.with_columns({"group": mark}, "confidential"), "group", CartSpec(predictors=(name,)), 3)
    assert (found == ~lacking).all()


def test_a_missing_level_is_a_level_of_its_own() -> None:
    data = example()
    blank = data.with_columns({"group": data.column("group").mask(data.column("group") == "b")}, "confidential")
    found = synthesised(blank, "income", CartSpec(predictors=("group",), minbucket=100), 40)
    rows = blank.missing_mask("group")
    assert abs(np.isnan(found[:, rows]).mean() - np.isnan(blank.numbers("income"))[rows].mean()) < 0.02


def test_the_number_and_its_absence_both_shape_the_tree() -> None:
    """Ages rise with income among those that have one, who are the poor half."""
    rng = np.random.default_rng(3)
    income = np.arange(1.0, 1001.0)
    age = pd.Series(20 + np.floor(income / 20) + rng.integers(0, 2, 1000)).mask(income > 500)
    schema = Schema((Variable("income", Kind.CONTINUOUS), Variable("age", Kind.COUNT)))
    data = conform_to_schema(pd.DataFrame({"income": income, "age": age}), schema, MissingPolicy.KEEP)
    found = synthesised(data, "age", CartSpec(predictors=("income",)), 2)
    assert np.isnan(found[:, income > 510]).all()
    assert not np.isnan(found[:, income < 490]).any()
    assert np.nanmax(np.abs(found - age.to_numpy())) <= 3


@pytest.mark.slow
def test_proper_trees_stand_resamples_without_a_present_or_a_missing_value() -> None:
    schema = Schema((Variable("x", Kind.COUNT), Variable("g", Kind.BINARY), Variable("y", Kind.CONTINUOUS)))
    for values in (
        [5.0, None, None, None, None, None],
        [None, 1.0, 2.0, 3.0, 4.0, 2.0],
        [5.0, 5.0, None, 5.0, 5.0, 5.0],
    ):
        raw = pd.DataFrame({"x": [1, 1, 2, 2, 3, None], "g": ["a", "b", None, "a", "b", "a"], "y": values})
        data = conform_to_schema(raw, schema, MissingPolicy.KEEP)
        found = synthesised(data, "y", CartSpec(predictors=("x", "g"), minbucket=1, proper=True), 40)
        assert np.isin(found[~np.isnan(found)], data.present_numbers("y")).all()


def by_name(estimates: tuple[Estimate, ...]) -> dict[tuple[Any, ...], Estimate]:
    return {(e.measure, e.target, *map(str, e.params.values())): e for e in estimates}


def test_summaries_are_of_the_values_present_and_say_how_many_are_missing() -> None:
    data = example()
    found = by_name(summary(data, data, SummarySpec(variables=("age", "size")), seeded_run()).estimates)
    assert found["share_missing", "age"].value == pytest.approx(data.frame["age"].isna().mean())
    assert found["mean", "age"].value == pytest.approx(data.frame["age"].mean())
    assert found["sd", "age"].value == pytest.approx(data.frame["age"].std())
    assert found["quantile", "age", "0.5"].value == pytest.approx(data.frame["age"].median())
    shares = data.frame["size"].value_counts(normalize=True)
    assert found["share", "size", "small"].value == pytest.approx(shares["small"])
    whole = summary(data, data, SummarySpec(variables=("group",)), seeded_run()).estimates
    assert "share_missing" not in {estimate.measure for estimate in whole}


def test_a_release_that_lacks_all_values_has_reasons_instead() -> None:
    data = example()
    empty = data.with_columns({"age": data.column("age") * np.nan}, "synthetic")
    for measure in (
        ecdf(data, empty, EcdfSpec(variables=("age",)), seeded_run()),
        summary(data, empty, SummarySpec(variables=("age",)), seeded_run()),
        interval_overlap(data, empty, IntervalOverlapSpec(means=("age",), quantiles=("age",)), seeded_run()),
    ):
        for estimate in measure.estimates:
            if estimate.measure == "share_missing":
                assert estimate.value == 1.0
            else:
                assert estimate.value is None
                assert "no released record has a value" in estimate.reason or "no record has a value" in estimate.reason


def test_distribution_functions_are_of_the_values_present() -> None:
    ours, theirs = example(seed=1), example(seed=2)
    found = by_name(ecdf(ours, theirs, EcdfSpec(variables=("age", "group")), seeded_run()).estimates)
    expected = ecdf_difference(ours.frame["age"].dropna().to_numpy(), theirs.frame["age"].dropna().to_numpy())
    assert found["max_abs_difference", "age"].value == expected.max_abs
    lacking = [int(table.missing_mask("age").sum()) for table in (ours, theirs)]
    assert found["max_abs_difference", "age"].reason == (
        f"confidential: {lacking[0]} of 900 records have no value; released: {lacking[1]} of 900 records have no value"
    )


def test_intervals_are_those_of_complete_cases() -> None:
    data, released = example(seed=1), example(seed=2)
    written = "log(income) ~ group + age"
    spec = IntervalOverlapSpec.from_table({"means": ["age"], "models": [written]}, "m")
    found = interval_overlap(data, Microdata(SCHEMA, released.frame, "synthetic"), spec, seeded_run()).estimates
    whole = released.frame.dropna(subset=["income", "age"])
    x = np.column_stack([np.ones(len(whole)), whole["group"] == "b", whole["group"] == "c", whole["age"]]).astype(float)
    expected = np.linalg.lstsq(x, np.log(whole["income"].to_numpy()), rcond=None)[0]
    coefficients = [e for e in found if e.measure == "estimate" and e.params["estimand"] == "coefficient"]
    assert [e.value for e in coefficients] == pytest.approx(list(expected))
    assert all(e.reason == f"{900 - len(whole)} of 900 records have no value" for e in coefficients)
    mean = next(e for e in found if e.measure == "estimate" and e.params["estimand"] == "mean")
    assert mean.value == pytest.approx(released.frame["age"].mean())


def test_a_remark_that_differs_between_datasets_names_its_dataset() -> None:
    rows = [
        Row("utility", "ecdf", "max", "age", "synthetic", draw, None, 0.5, reason=reason)
        for draw, reason in ((1, ""), (2, "3 missing"), (3, "4 missing"))
    ]
    assert average_series(rows).reason == "dataset 2: 3 missing"
    assert average_series(rows[:1]).reason == ""


MODELS = ["logit", "logit_interactions", "cart"]


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_classifier_sees_who_is_missing(model: str) -> None:
    """Half of the ages are taken away; the negative control is the same table."""
    data = example()
    spec = PropensitySpec(model=model, variables=("age", "size"))  # type: ignore[arg-type]
    more = data.column("age").mask(np.random.default_rng(6).random(len(data)) < 0.5)
    moved, same = (
        propensity(data, released, spec, seeded_run()).estimates[0].value
        for released in (data.with_columns({"age": more}, "synthetic"), data.with_columns({}, "synthetic"))
    )
    assert moved is not None
    assert same is not None
    assert moved > same + 0.01


def test_the_score_of_missing_numbers_is_that_of_a_mean_and_an_indicator() -> None:
    data, other = example(seed=1), example(seed=2)
    released = other.with_columns({"age": other.column("age").mask(other.column("age") < 30)}, "synthetic")
    found = propensity(data, released, PropensitySpec(variables=("age",)), seeded_run()).estimates[0].value
    stacked = pd.concat([data.column("age"), released.column("age")])
    schema = Schema((Variable("age", Kind.CONTINUOUS), Variable("lacking", Kind.BINARY, levels=("0", "1"))))
    by_hand = pd.DataFrame({"age": stacked.fillna(stacked.mean()), "lacking": stacked.isna().astype(int).astype(str)})
    tables = [conform_to_schema(by_hand[half], schema) for half in (slice(0, 900), slice(900, None))]
    assert found == pytest.approx(propensity(*tables, PropensitySpec(), seeded_run()).estimates[0].value)


def test_clusters_part_those_that_lack_a_value() -> None:
    """Two values and missing: three clusters, whose u_c is counted by hand."""
    schema = Schema((Variable("x", Kind.CONTINUOUS),))
    ours, theirs = [0.0] * 6 + [9.0] * 2 + [None] * 2, [0.0] * 4 + [9.0] * 2 + [None] * 4
    tables = [
        conform_to_schema(pd.DataFrame({"x": column}), schema, MissingPolicy.KEEP, origin)
        for column, origin in ((ours, "confidential"), (theirs, "synthetic"))
    ]  # type: ignore[arg-type]
    found = cluster(*tables, ClusterSpec(clusters=3), seeded_run()).estimates[0].value
    assert found == pytest.approx((0.5 * (0.4 - 0.5) ** 2 + 0.2 * 0 + 0.3 * (4 / 6 - 0.5) ** 2) / 3)
