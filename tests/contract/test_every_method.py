"""What every registered method must satisfy. A new method is covered by being registered."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest

from engine.anonymised import AnonymisationSpec, Anonymised
from engine.checks import check_steps
from engine.errors import BadInput, NotComputable
from engine.execution import anonymise, as_column, combined_rows, rows_of
from engine.methods import FAMILIES, Method, registry
from engine.microdata import Microdata
from engine.recipe import Recipe
from engine.results import Estimate, Fit, Measure
from engine.run import Run
from engine.schema import Kind, Role, Schema
from engine.spec import ParamInfo, Spec

SYNTHESISED = ("days", "income")
DRAWS = 3

REGIONS = [["north", "not south", "*"], ["west", "not south", "*"], ["south", "south", "*"]]

# What a table cannot be derived for from the declared parameters stands here, by method key.
SETTINGS: dict[str, dict[str, Any]] = {
    "anonymisation.generalisation": {
        "levels": {"visits": 1, "region": 1},
        "widths": {"visits": [5]},
        "hierarchies": {"region": REGIONS},
    },
    "anonymisation.mondrian": {"hierarchies": {"region": REGIONS}},
    "anonymisation.microaggregation": {"quasi_identifiers": ["visits", "size", "sex", "joined"]},
    "anonymisation.p_sensitive": {"sensitive": ["illness"], "hierarchies": {"region": REGIONS}},
    "anonymisation.suppression": {"quasi_identifiers": ["region", "sex"]},
    "synthesis.cart": {"predictors": ["region", "size", "visits"]},
    "synthesis.ctgan": {"predictors": ["region"], "epochs": 1},
    "utility.interval_overlap": {
        "means": ["days", "sex"],
        "quantiles": ["income"],
        "models": ["log(income) ~ region + log1p(visits)", "logit: illness ~ days"],
    },
}

METHODS = [pytest.param(found, id=key) for key, found in registry().items()]
SYNTHESIS = [param for param in METHODS if param.values[0].family == "synthesis"]
ANONYMISATION = [param for param in METHODS if param.values[0].family == "anonymisation"]
MEASURES = [param for param in METHODS if param.values[0].family in ("utility", "quality", "risk")]
STUDIES = [param for param in METHODS if param.values[0].family == "studies"]
SELF_SCORING = [param for param in MEASURES if param.values[0].confidential]
every_method = pytest.mark.parametrize("method", METHODS)
every_synthesis = pytest.mark.parametrize("method", SYNTHESIS)
every_anonymisation = pytest.mark.parametrize("method", ANONYMISATION)
every_measure = pytest.mark.parametrize("method", MEASURES)
every_study = pytest.mark.parametrize("method", STUDIES)


def target_of(method: Method, schema: Schema) -> str:
    """The variable that a synthesis method is tried on: of a kind it produces, a sensitive one if there is one."""
    suitable = [v for v in schema if v.kind in (method.targets or tuple(Kind)) and v.role is not Role.IDENTIFIER]
    return sorted(suitable, key=lambda v: v.role is not Role.SENSITIVE)[0].name


def suitable_value(info: ParamInfo, schema: Schema) -> Any:
    """A value for a parameter that names variables or terms, or that must be given; None where none can be derived."""
    variables = [v.name for v in schema if not info.param.kinds or v.kind in info.param.kinds]
    origin, arguments = typing.get_origin(info.type), get_args(info.type)
    if info.param.names == "terms":
        return ["region", "log1p(visits)"]
    if info.param.names == "variables" and isinstance(origin, type) and issubclass(origin, Mapping):
        share = "5%" if hasattr(arguments[1], "parse") else arguments[1](1)
        return {name: share for name in SYNTHESISED if name in variables}
    if not info.required:
        return None
    if info.param.names == "variables":
        known = [name for name in variables if schema[name].role is Role.KNOWN] or variables
        return known[:1] if origin is tuple else known[-1]
    if info.choices:
        return info.choices[0]
    number = next((limit for limit in (info.param.ge, info.param.le) if limit is not None), 1)
    scalars = {float: float(number), int: int(number), bool: True}
    if origin is tuple and arguments[0] in scalars:
        return [scalars[arguments[0]]]
    return scalars.get(info.type)


def table_of(method: Method, schema: Schema) -> dict[str, Any]:
    """The method's recipe table for the tests' data."""
    given = SETTINGS.get(method.key, {})
    table = {info.name: suitable_value(info, schema) for info in method.spec.params() if info.name not in given}
    for info in method.spec.params():
        if info.required and table.get(info.name, given.get(info.name)) is None:
            pytest.fail(
                f'{method.key}: no value can be derived for "{info.name}"; give one in SETTINGS["{method.key}"]'
            )
    return {key: value for key, value in {**table, **given}.items() if value not in (None, {})}


def recipe_of(method: Method, schema: Schema) -> Recipe:
    """A recipe with one step of the method, as a user would write it."""
    table: dict[str, Any] = {
        "title": method.title,
        "variables": {variable.name: variable.to_table() for variable in schema},
        "release": {"m": DRAWS, "released": list(SYNTHESISED)},
    }
    step = {"method": method.key, **table_of(method, schema)}
    if method.family == "synthesis":
        table["release"] = {"m": DRAWS}
        table["synthesis"] = [{"target": target_of(method, schema), **step}]
    elif method.family == "anonymisation":
        table["release"] = {}
        table["anonymisation"] = [step]
        table["variables"] = {v.name: v.to_table() for v in schema if v.role is not Role.IDENTIFIER}
    elif method.family == "studies":
        table["study"] = [step]
    else:
        table["measure"] = [step]
    return Recipe.from_table(table)


def spec_of(method: Method, schema: Schema) -> Any:
    """The parameters as a run hands them to the method."""
    recipe = recipe_of(method, schema)
    step = (*recipe.synthesis, *recipe.anonymisation, *recipe.measures, *recipe.studies)[0]
    return step.spec.for_release(schema, SYNTHESISED)


def run_of(seed: int = 1, pool: Any = map) -> Run:
    return Run(np.random.default_rng(seed), pool)


def answers(measure: Measure) -> Any:
    """Everything a measure says, comparable with ==."""
    arrays = {name: array.tolist() for name, array in measure.per_record.items()}
    return [dataclasses.astuple(estimate) for estimate in measure.estimates], arrays


def measured(method: Method, confidential: Microdata, released: Microdata, run: Run) -> Measure:
    measure: Measure = method.func(confidential, released, spec_of(method, confidential.schema), run)
    return measure


def fitted(method: Method, data: Microdata, run: Run) -> Fit:
    fit: Fit = method.func(data, target_of(method, data.schema), spec_of(method, data.schema), run, DRAWS)
    return fit


def drawn(method: Method, data: Microdata, fit: Fit, index: int, seed: int) -> np.ndarray:
    assert method.draw is not None
    released = Microdata(data.schema, data.frame, "synthetic")
    rng = np.random.default_rng(seed)
    target = target_of(method, data.schema)
    return np.asarray(method.draw(fit, spec_of(method, data.schema), target, data, released, index, rng))


def assert_sound(method: Method, estimates: Iterable[Estimate]) -> None:
    """Declared, never NaN, inside its interval, and with a reason where there is no value."""
    found = list(estimates)
    assert found, "no estimate at all"
    for estimate in found:
        method.output(estimate.measure)
        if estimate.value is None:
            assert estimate.reason
            continue
        for number in (estimate.value, estimate.lower, estimate.upper, estimate.baseline):
            assert number is None or np.isfinite(number), estimate
        assert estimate.lower is None or estimate.lower <= estimate.value
        assert estimate.upper is None or estimate.value <= estimate.upper
    series = [(e.measure, e.target, repr(sorted(e.params.items(), key=str))) for e in found]
    assert len(set(series)) == len(series), "two estimates that nothing tells apart"


def test_there_are_methods() -> None:
    assert SYNTHESIS
    assert MEASURES


@pytest.mark.parametrize(
    "unsound",
    [
        Estimate("pmse", float("nan")),
        Estimate("pmse", 0.1, lower=0.2, upper=0.3),
        Estimate("pmse", 0.1, baseline=float("inf")),
        Estimate("pmse", None),
        Estimate("undeclared", 0.1),
    ],
)
def test_what_is_unsound_is_noticed(unsound: Estimate) -> None:
    with pytest.raises((AssertionError, KeyError)):
        assert_sound(registry()["utility.propensity"], [unsound])


@every_method
def test_it_is_documented(method: Method) -> None:
    assert method.family in FAMILIES
    assert method.title
    assert method.source, "cite paper and section"
    assert method.func.__doc__
    assert dataclasses.is_dataclass(method.spec)
    assert issubclass(method.spec, Spec)
    assert method.spec.__dataclass_params__.frozen  # type: ignore[attr-defined]
    for info in method.spec.params():
        assert info.param.help, info.name


@every_method
def test_its_outputs_are_declared(method: Method) -> None:
    if method.family == "synthesis":
        assert method.draw is not None
        assert set(method.targets) <= set(Kind)
        return
    if method.family == "anonymisation":
        assert issubclass(method.spec, AnonymisationSpec)
        return
    assert method.outputs
    for output in method.outputs:
        assert output.meaning
        assert output.goal in ("low", "high", "none")
    assert len({output.name for output in method.outputs}) == len(method.outputs)


@every_method
def test_its_recipe_comes_back_the_same(method: Method, confidential: Microdata) -> None:
    recipe = recipe_of(method, confidential.schema)
    again = Recipe.from_toml(recipe.to_toml())
    assert again == recipe
    assert again.sha256 == recipe.sha256


@every_method
def test_its_full_table_comes_back_the_same(method: Method, confidential: Microdata) -> None:
    spec = method.spec.from_table(table_of(method, confidential.schema), "step")
    full = {key: value for key, value in spec.to_full_table().items() if value is not None}
    assert method.spec.from_table(full, "step") == spec
    assert method.spec.from_table(spec.to_table(), "step") == spec


@every_method
def test_it_refuses_a_key_it_does_not_know(method: Method, confidential: Microdata) -> None:
    with pytest.raises(BadInput, match=r"^step\.nonsense: unknown key"):
        method.spec.from_table({**table_of(method, confidential.schema), "nonsense": 1}, "step")


@every_method
def test_it_refuses_a_column_that_is_not_there(method: Method, confidential: Microdata) -> None:
    table = table_of(method, confidential.schema)
    for info in method.spec.params():
        if info.param.names is None:
            continue
        wrong = {"absent": next(iter(table[info.name].values()))} if isinstance(table.get(info.name), dict) else None
        if wrong is None:
            wrong = ["absent"] if typing.get_origin(info.type) is tuple else "absent"
        spec = method.spec.from_table({**table, info.name: wrong}, "step")
        with pytest.raises(BadInput, match='no column "absent"') as caught:
            spec.check(confidential.schema, "step")
        assert caught.value.place.startswith(f"step.{info.name}")


@every_method
def test_the_tests_data_suit_it(method: Method, confidential: Microdata) -> None:
    check_steps(recipe_of(method, confidential.schema), confidential)


@every_measure
def test_measure_is_sound(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    measure = measured(method, confidential, releases[0], run_of())
    assert_sound(method, measure.estimates)
    for name, array in measure.per_record.items():
        assert array.shape[0] == len(confidential), name


@pytest.mark.parametrize("method", SELF_SCORING)
def test_confidential_data_score_themselves(method: Method, confidential: Microdata) -> None:
    assert_sound(method, measured(method, confidential, confidential, run_of()).estimates)


@every_measure
def test_measure_answers_the_same_twice(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    first = measured(method, confidential, releases[0], run_of())
    second = measured(method, confidential, releases[0], run_of())
    assert answers(first) == answers(second)


@every_measure
def test_measure_answers_the_same_in_a_pool(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    alone = measured(method, confidential, releases[0], run_of())
    with ThreadPoolExecutor(2) as pool:
        assert answers(measured(method, confidential, releases[0], run_of(pool=pool.map))) == answers(alone)


@every_measure
def test_measure_leaves_its_inputs_alone(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    before = confidential.frame.copy(deep=True), releases[0].frame.copy(deep=True)
    measured(method, confidential, releases[0], run_of())
    pd.testing.assert_frame_equal(confidential.frame, before[0])
    pd.testing.assert_frame_equal(releases[0].frame, before[1])


@every_measure
def test_measure_answers_or_says_why_on_few_records(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    for records in (1, 2):
        few = Microdata(confidential.schema, confidential.frame.head(records))
        same = Microdata(confidential.schema, releases[0].frame.head(records), "synthetic")
        try:
            found = measured(method, few, same, run_of()).estimates
        except NotComputable as error:
            found = tuple(Estimate.not_computed(output.name, error.reason) for output in method.outputs)
        assert_sound(method, found)


@every_measure
def test_its_datasets_are_combined_into_one_row_a_series(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    rows = [
        row
        for draw, release in enumerate(releases, start=1)
        for row in rows_of(method, measured(method, confidential, release, run_of(draw)), "synthetic", draw)
    ]
    found = combined_rows(rows)
    assert {row.series for row in found} == {row.series for row in rows}
    assert len(found) == len({row.series for row in rows})
    for row in found:
        assert (row.draw, row.dataset, row.status) == (
            None,
            "synthetic",
            "computed" if row.value is not None else "not computed",
        )
        assert row.reason or row.value is not None
        for end in (row.lower, row.upper):
            assert end is None or (np.isfinite(end) and row.lower <= row.value <= row.upper)  # type: ignore[operator]


@every_synthesis
def test_fit_is_sound(method: Method, confidential: Microdata) -> None:
    fit = fitted(method, confidential, run_of())
    assert fit.arrays
    for name, array in fit.arrays.items():
        assert array.dtype != object, name
        assert array.dtype.kind not in "fc" or np.isfinite(array).all(), name
    for diagnostic in fit.diagnostics:
        assert np.isfinite(diagnostic.value), diagnostic
        assert diagnostic.parameter
        assert (diagnostic.passed is None) == (not diagnostic.rule), diagnostic


@every_synthesis
def test_drawn_values_keep_to_the_variable(method: Method, confidential: Microdata) -> None:
    fit, target = fitted(method, confidential, run_of()), target_of(method, confidential.schema)
    variable = confidential.schema[target]
    for index in range(DRAWS):
        values = drawn(method, confidential, fit, index, seed=index)
        assert values.shape == (len(confidential),)
        column = as_column(values, confidential, variable, "synthesis[0]")
        assert column.dtype == confidential.column(target).dtype
        assert not column.isna().any()
        if variable.kind is Kind.COUNT:
            assert np.array_equal(values, np.rint(values))


@every_synthesis
def test_synthesis_answers_the_same_twice(method: Method, confidential: Microdata) -> None:
    first, second = (fitted(method, confidential, run_of()) for _ in range(2))
    assert first.arrays.keys() == second.arrays.keys()
    for name, array in first.arrays.items():
        assert np.array_equal(array, second.arrays[name]), name
    assert first.diagnostics == second.diagnostics
    assert np.array_equal(drawn(method, confidential, first, 0, 5), drawn(method, confidential, second, 0, 5))


@every_synthesis
def test_draws_differ(method: Method, confidential: Microdata) -> None:
    fit = fitted(method, confidential, run_of())
    values = [drawn(method, confidential, fit, 0, seed).tolist() for seed in (5, 6)]
    assert values[0] != values[1], "another seed gives the same dataset"
    assert values[0] != confidential.numbers(target_of(method, confidential.schema)).tolist()


@every_synthesis
def test_synthesis_answers_the_same_in_a_pool(method: Method, confidential: Microdata) -> None:
    alone = fitted(method, confidential, run_of())
    with ThreadPoolExecutor(2) as pool:
        together = fitted(method, confidential, run_of(pool=pool.map))
    for name, array in alone.arrays.items():
        assert np.array_equal(array, together.arrays[name]), name


@every_synthesis
def test_synthesis_leaves_its_inputs_and_the_global_generator_alone(method: Method, confidential: Microdata) -> None:
    before = confidential.frame.copy(deep=True)
    state = np.random.get_state()  # noqa: NPY002
    fit = fitted(method, confidential, run_of())
    kept = {name: array.copy() for name, array in fit.arrays.items()}
    drawn(method, confidential, fit, 1, seed=3)
    pd.testing.assert_frame_equal(confidential.frame, before)
    for name, array in fit.arrays.items():
        assert np.array_equal(array, kept[name]), name
    after = np.random.get_state()  # noqa: NPY002
    assert state[2] == after[2]
    assert np.array_equal(state[1], after[1])


def without_identifiers(data: Microdata) -> Microdata:
    schema = Schema(tuple(v for v in data.schema if v.role is not Role.IDENTIFIER))
    return Microdata(schema, data.frame[list(schema.names)])


def anonymised(method: Method, data: Microdata, run: Run) -> Anonymised:
    found: Anonymised = method.func(data, spec_of(method, data.schema), run)
    return found


@every_anonymisation
def test_anonymised_table_is_sound(method: Method, confidential: Microdata) -> None:
    data = without_identifiers(confidential)
    found, spec = anonymised(method, data, run_of()), spec_of(method, data.schema)
    assert isinstance(spec, AnonymisationSpec)
    assert found.classes.shape == found.suppressed.shape == (len(data),)
    assert len(found.data) == int((~found.suppressed).sum()) > 0
    assert set(found.classes[~found.suppressed]) == set(range(found.classes.max() + 1))
    assert found.data.origin == "anonymised"
    assert found.data.schema == spec.released_schema(data.schema)
    assert tuple(found.data.frame.columns) == found.data.schema.names
    assert not found.data.frame.isna().any().any()
    kept = data.frame[~found.suppressed].reset_index(drop=True)
    for name in data.schema.names:
        if name not in spec.changed(data.schema):
            pd.testing.assert_series_equal(found.data.frame[name], kept[name])
    groups = found.data.frame[list(spec.keys(data.schema))].assign(of=found.classes[~found.suppressed]).groupby("of")
    assert (groups.nunique().to_numpy() == 1).all(), "a class shows two values of a quasi-identifier"
    assert {note.name for note in found.notes} >= {"classes", "smallest_class", "suppressed_records"}
    assert all(note.passed is not False for note in found.notes)


@every_anonymisation
def test_anonymised_values_keep_to_their_kind(method: Method, confidential: Microdata) -> None:
    data = without_identifiers(confidential)
    found, spec = anonymised(method, data, run_of()).data, spec_of(method, data.schema)
    for variable in found.schema:
        column = found.frame[variable.name]
        if variable.name in spec.generalised(data.schema):
            assert isinstance(column.dtype, pd.CategoricalDtype)
        elif variable.kind is Kind.CONTINUOUS:
            assert column.dtype == np.float64
        else:
            assert column.dtype == data.frame[variable.name].dtype


@every_anonymisation
def test_anonymisation_answers_the_same_twice_and_leaves_its_inputs_alone(
    method: Method, confidential: Microdata
) -> None:
    data = without_identifiers(confidential)
    before = data.frame.copy(deep=True)
    first = anonymised(method, data, run_of())
    with ThreadPoolExecutor(2) as pool:
        second = anonymised(method, data, run_of(pool=pool.map))
    pd.testing.assert_frame_equal(first.data.frame, second.data.frame)
    assert np.array_equal(first.classes, second.classes)
    pd.testing.assert_frame_equal(data.frame, before)


@every_anonymisation
def test_a_recipe_carries_the_anonymisation_out(method: Method, confidential: Microdata) -> None:
    data = without_identifiers(confidential)
    recipe = recipe_of(method, data.schema)
    assert recipe.m == 1
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    check_steps(recipe, data)
    found = anonymise(recipe, data)
    assert found.data.schema == recipe.released_schema
    assert found.data.generalised == recipe.generalised
    assert found.data.records.tolist() == np.flatnonzero(~found.suppressed).tolist()


@every_measure
def test_measure_answers_or_says_why_on_anonymised_tables(method: Method, confidential: Microdata) -> None:
    data = without_identifiers(confidential)
    for step in (
        {"output": "generalised"}, {"output": "micro_aggregated"}, {"cuts": "strict", "max_suppressed": 0.1, "output": "generalised"}
    ):  # fmt: skip
        table = {
            "variables": {v.name: v.to_table() for v in data.schema},
            "anonymisation": [{"method": "mondrian", **step}],
        }
        released = anonymise(Recipe.from_table(table), data).data
        try:
            found = measured(method, data, released, run_of()).estimates
        except NotComputable as error:
            found = tuple(Estimate.not_computed(output.name, error.reason) for output in method.outputs)
        assert_sound(method, found)


@every_study
def test_study_is_sound_at_every_point(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    spec = spec_of(method, confidential.schema)
    assert spec.grid()
    for point in spec.grid():
        found = method.func(confidential, releases, point, spec, run_of())
        assert len(found.releases) == len(releases)
        for measure in (*found.releases, *([found.confidential] if found.confidential else [])):
            assert_sound(method, measure.estimates)


@every_study
def test_study_answers_the_same_twice(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    spec = spec_of(method, confidential.schema)
    before = confidential.frame.copy(deep=True)
    with ThreadPoolExecutor(2) as pool:
        first, second = (
            method.func(confidential, releases, spec.grid()[-1], spec, run_of(pool=kind)) for kind in (map, pool.map)
        )
    assert [answers(measure) for measure in first.releases] == [answers(measure) for measure in second.releases]
    pd.testing.assert_frame_equal(confidential.frame, before)


LACKING = ("region", "size", "visits", "days", "income", "illness", "joined")


def with_missing(data: Microdata, seed: int) -> Microdata:
    """The same table with about one value in eight missing in most columns."""
    rng = np.random.default_rng(seed)
    columns = {name: data.column(name).mask(rng.random(len(data)) < 0.12) for name in LACKING}
    return data.with_columns(columns, data.origin)


def refuses_missing(method: Method, data: Microdata) -> bool:
    """Whether the check says that values are missing; any other complaint is a failure."""
    try:
        check_steps(recipe_of(method, data.schema), data)
    except BadInput as error:
        if "records have no " not in error.message:
            raise
        return True
    return False


def test_only_what_needs_every_value_refuses_missing_ones(confidential: Microdata) -> None:
    data = with_missing(without_identifiers(confidential), 1)
    refusing = {method.key for (method,) in (p.values for p in METHODS) if refuses_missing(method, data)}
    assert {"synthesis.linear_regression", "synthesis.zero_inflated_truncated_poisson"} <= refusing
    allowed = {"synthesis", "anonymisation", "studies"}
    assert {key for key in refusing if key.partition(".")[0] not in allowed} == set()
    assert not refusing & {"synthesis.cart", "studies.intruder_uncertainty"}


@every_measure
def test_measure_is_sound_where_values_are_missing(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    data = with_missing(confidential, 1)
    for released in (*(with_missing(release, seed) for seed, release in enumerate(releases, 2)), releases[0], data):
        if released.origin == "synthetic" or method.confidential:
            assert_sound(method, measured(method, data, released, run_of()).estimates)


@every_study
def test_study_is_sound_where_values_are_missing(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    data, spec = with_missing(confidential, 1), spec_of(method, confidential.schema)
    if refuses_missing(method, data):
        return
    found = method.func(data, [with_missing(release, 2) for release in releases], spec.grid()[-1], spec, run_of())
    for measure in (*found.releases, *([found.confidential] if found.confidential else [])):
        assert_sound(method, measure.estimates)


@pytest.mark.parametrize("target", [*LACKING, "sex"])
def test_trees_draw_missing_values_where_there_are_some(target: str, confidential: Microdata) -> None:
    cart = registry()["synthesis.cart"]
    data = with_missing(confidential, 1)
    spec = cart.spec.from_table({"predictors": [name for name in (*LACKING, "sex") if name != target]}, "step")
    fit = cart.func(data, target, spec, run_of(), DRAWS)
    assert cart.draw is not None
    released = with_missing(data, 5)
    values = np.asarray(cart.draw(fit, spec, target, data, released, 0, np.random.default_rng(2)))
    column = as_column(values, data, data.schema[target], "synthesis[0]")
    assert column.dtype == data.column(target).dtype
    assert column.isna().any() == (target in LACKING)
    assert set(column.dropna()) <= set(data.column(target).dropna())


@every_anonymisation
def test_anonymisation_takes_missing_values_or_refuses_them(method: Method, confidential: Microdata) -> None:
    data = with_missing(without_identifiers(confidential), 1)
    if refuses_missing(method, data):
        return
    found = anonymise(recipe_of(method, data.schema), data)
    assert found.data.frame.isna().any().any()
    assert len(found.data) == int((~found.suppressed).sum()) > 0
