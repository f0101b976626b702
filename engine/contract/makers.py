"""Contract of every synthesis and anonymisation method: what their tables keep by construction."""

from __future__ import annotations

import types
import typing
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

from ..data.microdata import Microdata, to_column
from ..data.schema import Kind, Role, Schema, Variable
from ..errors import BadInput, NotComputable, NotConverged
from ..execution.tasks import anonymise_data, draw_dataset, fit_model
from ..methods.privacy import PrivacyAccount
from ..methods.registry import Method
from ..methods.release_form import AnonymisationSpec, Anonymised
from ..methods.results import Fit
from ..methods.run import PUBLIC, Run
from ..methods.spec import ParamInfo
from ..recipe.checks import check_steps
from ..recipe.recipe import Recipe
from .examples import (
    DRAWS,
    SCHEMA,
    every_anonymisation,
    every_synthesis,
    example_recipe,
    example_run,
    example_spec,
    example_target,
    refuses_missing,
    with_missing,
    without_identifiers,
)  # fmt: skip

Change = Callable[[Microdata], Microdata]
ORDER = "confidential value"
"""What every refusal for the order of synthesis says."""
MOST_ERRORS = 5.0
"""Standard errors of a correlation that must not be there; chance exceeds them once in three million times."""


def _epsilon_covers_range(method: Method, target: str, data: Microdata, kind: Kind) -> bool:
    """Return whether the method claims an epsilon though the recipe declares no bounds of the target."""
    if method.synthesis.privacy.account is None or data.schema[target].lower is not None:
        return False
    found = method.synthesis.privacy.account(data, (target,), example_spec(method, data.schema, kind), len(data), DRAWS)
    return isinstance(found, PrivacyAccount) and not found.uncovered


@pytest.fixture
def with_times(confidential: Microdata) -> Microdata:
    """Return the confidential table with times of day in its dates, some of them before 1970."""
    seconds = np.random.default_rng(3).integers(0, 86_400, len(confidential))
    # Dates before 1970 are negative numbers of days, which truncation towards 0 would move by a day.
    moments = confidential.column("joined") - pd.Timedelta(18_262, "D") + pd.to_timedelta(seconds, unit="s")
    return confidential.with_columns({"joined": moments.astype("datetime64[s]")}, "confidential")


def fit_example(method: Method, data: Microdata, run: Run, kind: Kind | None = None) -> Fit:
    """Fit a synthesis method to the example's target of this kind."""
    return method.fit(
        data, (example_target(method, data.schema, kind),), example_spec(method, data.schema, kind), run, DRAWS
    )


def draw_example(
    method: Method, data: Microdata, fit: Fit, index: int, seed: int, kind: Kind | None = None
) -> np.ndarray:
    """Draw the values of the target in dataset ``index`` with this seed, (n,)."""
    released = Microdata(data.schema, data.frame, "synthetic")
    rng = np.random.default_rng(seed)
    target = example_target(method, data.schema, kind)
    values = method.draw_targets(fit, example_spec(method, data.schema, kind), (target,), data, released, index, rng)
    return np.asarray(values[target])


@every_synthesis
def test_fit_is_sound(method: Method, with_times: Microdata) -> None:
    fit = fit_example(method, with_times, example_run())
    assert fit.arrays
    for name, array in fit.arrays.items():
        assert array.dtype != object, name
        assert array.dtype.kind not in "fc" or np.isfinite(array).all(), name
    for diagnostic in fit.diagnostics:
        assert diagnostic.value is not None
        assert np.isfinite(diagnostic.value), diagnostic
        assert diagnostic.parameter
        assert (diagnostic.passed is None) == (not diagnostic.rule), diagnostic


@pytest.mark.slow
@every_synthesis
def test_drawn_values_keep_to_the_variable(method: Method, kind: Kind, with_times: Microdata) -> None:
    fit, target = fit_example(method, with_times, example_run(), kind), example_target(method, with_times.schema, kind)
    variable, own = with_times.schema[target], with_times.column(target)
    for index in range(DRAWS):
        values = draw_example(method, with_times, fit, index, index, kind)
        assert values.shape == (len(with_times),)
        column = to_column(values, with_times, variable, "synthesis[0]")
        assert column.dtype == with_times.column(target).dtype
        assert not column.isna().any()
        if kind.has_levels:
            assert set(column) <= set(own)
        if kind is Kind.DATE:
            days = with_times.numbers(target)
            # a step whose epsilon covers undeclared ends must not end where the records do: that would tell of one of them
            beyond = float(np.ptp(days)) if _epsilon_covers_range(method, target, with_times, kind) else 0.0
            assert days.min() - beyond <= values.min() <= values.max() <= days.max() + beyond, "not in days since 1970"
            more = pd.Timedelta(days=beyond)
            assert own.min() - more <= column.min() <= column.max() <= own.max() + more
        if variable.kind is Kind.COUNT:
            assert np.array_equal(values, np.rint(values))


@pytest.mark.slow
@every_synthesis
def test_synthesis_answers_the_same_twice(method: Method, with_times: Microdata) -> None:
    first, second = (fit_example(method, with_times, example_run()) for _ in range(2))
    assert first.arrays.keys() == second.arrays.keys()
    for name, array in first.arrays.items():
        assert np.array_equal(array, second.arrays[name]), name
    assert first.diagnostics == second.diagnostics
    assert np.array_equal(draw_example(method, with_times, first, 0, 5), draw_example(method, with_times, second, 0, 5))


@every_synthesis
def test_draws_differ(method: Method, with_times: Microdata) -> None:
    fit = fit_example(method, with_times, example_run())
    values = [draw_example(method, with_times, fit, 0, seed).tolist() for seed in (5, 6)]
    assert values[0] != values[1], "another seed gives the same dataset"
    assert values[0] != with_times.numbers(example_target(method, with_times.schema)).tolist()


@pytest.mark.slow
@every_synthesis
def test_synthesis_answers_the_same_in_a_pool(method: Method, with_times: Microdata) -> None:
    alone = fit_example(method, with_times, example_run())
    with ThreadPoolExecutor(2) as pool:
        together = fit_example(method, with_times, example_run(pool=pool.map))
    for name, array in alone.arrays.items():
        assert np.array_equal(array, together.arrays[name]), name


@every_synthesis
def test_synthesis_leaves_its_inputs_and_the_global_generator_alone(method: Method, with_times: Microdata) -> None:
    before = with_times.frame.copy(deep=True)
    # A method that draws from the global generator would make one run depend on others.
    state: Any = np.random.get_state()  # noqa: NPY002
    fit = fit_example(method, with_times, example_run())
    kept = {name: array.copy() for name, array in fit.arrays.items()}
    draw_example(method, with_times, fit, 1, seed=3)
    pd.testing.assert_frame_equal(with_times.frame, before)
    for name, array in fit.arrays.items():
        assert np.array_equal(array, kept[name]), name
    after: Any = np.random.get_state()  # noqa: NPY002
    assert state[2] == after[2]
    assert np.array_equal(state[1], after[1])


def anonymise_example(method: Method, data: Microdata, run: Run) -> Anonymised:
    """Anonymise a table by the example's parameters."""
    return method.anonymise(data, example_spec(method, data.schema), run)


def variables_with_missing(schema: Schema) -> set[str]:
    """Return the variables of a schema whose values may be missing."""
    return {variable.name for variable in schema if variable.may_be_missing}


@every_anonymisation
def test_anonymised_table_is_sound(method: Method, confidential: Microdata) -> None:
    data = without_identifiers(confidential)
    found, spec = anonymise_example(method, data, example_run()), example_spec(method, data.schema)
    assert isinstance(spec, AnonymisationSpec)
    assert found.class_keys.shape == found.suppressed.shape == (len(data),)
    assert len(found.data) == int((~found.suppressed).sum()) > 0
    assert set(found.class_keys[~found.suppressed]) == set(range(found.class_keys.max() + 1))
    assert found.data.origin == "anonymised"
    assert found.data.schema == spec.released_schema(data.schema)
    assert tuple(found.data.frame.columns) == found.data.schema.names
    assert {v.name for v in found.data.schema if found.data.missing_mask(v.name).any()} <= variables_with_missing(
        found.data.schema
    )
    kept = data.frame[~found.suppressed].reset_index(drop=True)
    for name in data.schema.names:
        if name not in spec.changed(data.schema):
            pd.testing.assert_series_equal(found.data.frame[name], kept[name])
    groups = found.data.frame[list(spec.keys(data.schema))].assign(of=found.class_keys[~found.suppressed]).groupby("of")
    # A missing value is shown by a class like any other.
    assert (groups.nunique(dropna=False).to_numpy() == 1).all(), "a class shows two values of a quasi-identifier"
    assert {note.name for note in found.notes} >= {"classes", "smallest_class", "suppressed_records"}
    assert all(note.passed is not False for note in found.notes)


@every_anonymisation
def test_anonymised_values_keep_to_their_kind(method: Method, confidential: Microdata) -> None:
    data = without_identifiers(confidential)
    found, spec = anonymise_example(method, data, example_run()).data, example_spec(method, data.schema)
    for variable in found.schema:
        column = found.frame[variable.name]
        if variable.name in spec.generalised(data.schema):
            assert isinstance(column.dtype, pd.CategoricalDtype)
        elif variable.kind is Kind.CONTINUOUS or (
            variable.name in variables_with_missing(found.schema) and variable.kind is Kind.COUNT
        ):
            assert column.dtype == np.float64
        elif variable.kind.has_levels:
            assert column.cat.ordered == data.frame[variable.name].cat.ordered
        else:
            assert column.dtype == data.frame[variable.name].dtype


@every_anonymisation
def test_anonymisation_answers_the_same_twice_and_leaves_its_inputs_alone(
    method: Method, confidential: Microdata
) -> None:
    data = without_identifiers(confidential)
    before = data.frame.copy(deep=True)
    first = anonymise_example(method, data, example_run())
    with ThreadPoolExecutor(2) as pool:
        second = anonymise_example(method, data, example_run(pool=pool.map))
    pd.testing.assert_frame_equal(first.data.frame, second.data.frame)
    assert np.array_equal(first.class_keys, second.class_keys)
    pd.testing.assert_frame_equal(data.frame, before)


@every_anonymisation
def test_a_recipe_carries_the_anonymisation_out(method: Method, confidential: Microdata) -> None:
    data = without_identifiers(confidential)
    recipe = example_recipe(method, data.schema)
    assert recipe.m == 1
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    check_steps(recipe, data)
    found = anonymise_data(recipe, data, key=PUBLIC)
    assert found.data.schema == recipe.released_schema
    assert found.data.generalised == recipe.generalised
    assert found.data.linked_records.tolist() == np.flatnonzero(~found.suppressed).tolist()


@every_anonymisation
def test_anonymisation_takes_missing_values_or_refuses_them(method: Method, confidential: Microdata) -> None:
    data = with_missing(without_identifiers(confidential), 1)
    if refuses_missing(method, data):
        return
    found = anonymise_data(example_recipe(method, data.schema), data, key=PUBLIC)
    assert found.data.frame.isna().any().any()
    assert len(found.data) == int((~found.suppressed).sum()) > 0


def reverse_columns(data: Microdata) -> Microdata:
    """Return the table with its columns in reverse order."""
    schema = Schema(tuple(data.schema[name] for name in data.schema.names[::-1]))
    return replace(data, schema=schema, frame=data.frame[list(schema.names)])


def shuffle_records(data: Microdata) -> Microdata:
    """Return the table with its records in another order."""
    return replace(data, frame=data.frame.sample(frac=1, random_state=8).reset_index(drop=True))


def reorder_levels(data: Microdata) -> Microdata:
    """Return the table with the levels of a categorical variable in another order, which has no meaning."""
    region = data.schema["region"]
    levels = region.levels[::-1]
    schema = Schema(tuple(replace(v, levels=levels) if v.name == "region" else v for v in data.schema))
    column = data.frame["region"].cat.reorder_categories(list(levels))
    return replace(data, schema=schema, frame=data.frame.assign(region=column))


def add_unusual_record(data: Microdata) -> Microdata:
    """Return the table with one more record, unlike all others."""
    last = data.frame.iloc[[0]].assign(visits=data.frame["visits"].max() + 40)
    return replace(data, frame=pd.concat([data.frame, last], ignore_index=True))


def duplicate_records(data: Microdata) -> Microdata:
    return replace(data, frame=pd.concat([data.frame, data.frame], ignore_index=True))


every_change = pytest.mark.parametrize(
    "change",
    [reverse_columns, shuffle_records, reorder_levels, add_unusual_record, duplicate_records],
    ids=lambda change: change.__name__,
)


def smallest_class_size(data: Microdata, keys: tuple[str, ...]) -> int:
    """Return the size of the smallest class of records with equal quasi-identifiers."""
    # Counted one by one, independently of the code that is tested.
    return min(Counter(data.frame[list(keys)].astype("str").itertuples(index=False, name=None)).values())


@every_anonymisation
@every_change
def test_k_holds_and_other_columns_are_kept(method: Method, change: Change, confidential: Microdata) -> None:
    data = change(without_identifiers(confidential))
    recipe = example_recipe(method, data.schema)
    step = recipe.anonymisation[0].spec
    assert isinstance(step, AnonymisationSpec)
    found = anonymise_data(recipe, data, key=PUBLIC)
    if hasattr(step, "k"):
        assert smallest_class_size(found.data, step.keys(data.schema)) >= step.k
    kept = data.frame[~found.suppressed].reset_index(drop=True)
    for name in set(data.schema.names) - set(step.changed(data.schema)):
        pd.testing.assert_series_equal(found.data.frame[name], kept[name], check_exact=True)
    for name in data.schema.names:
        if found.data.schema[name].kind.has_levels and name not in recipe.generalised:
            assert set(found.data.frame[name].dropna()) <= set(data.frame[name])


def values_naming(info: ParamInfo, name: str) -> list[Any]:
    """Return values of a parameter that name a variable, in every form that the parameter's type allows."""
    return list(_values_naming(info.type, name))


def _values_naming(kind: Any, name: str) -> Iterator[Any]:
    """Yield values of a type that name a variable."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        yield from (value for one in arguments if one is not type(None) for value in _values_naming(one, name))
    elif kind is str:
        yield name
    elif origin is tuple:
        yield from ([value] for value in _values_naming(arguments[0], name))
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        other = next(iter(_values_naming(arguments[1], "region")), {float: 1.0, int: 1, bool: True}.get(arguments[1]))
        if other is not None:
            yield {name: other}
        yield from ({"region": value} for value in _values_naming(arguments[1], name))


def table_naming(method: Method, data: Microdata, info: ParamInfo, value: Any, later: str | None) -> Mapping[str, Any]:
    """Return a recipe's table with a step of the method with this parameter, and a later step that makes ``later``."""
    table = dict(example_recipe(method, data.schema).to_table())
    (first,) = table["synthesis"]
    second = [] if later is None else [{"target": later, "method": "cart"}]
    return {**table, "synthesis": [{**first, info.name: value}, *second]}


def later_target(method: Method, info: ParamInfo, schema: Schema) -> str | None:
    """Return a variable that a later step can make and this parameter may name; None where there is none."""
    step = example_recipe(method, schema).synthesis[0]
    named = {column for _, column, _ in step.spec.referenced_columns(schema, step.place)}
    suitable = [v for v in schema if not v.role.is_identifier and v.name not in (*step.targets, *named)]
    return next((v.name for v in suitable if not info.param.kinds or v.kind in info.param.kinds), None)


@every_synthesis
def test_what_it_names_keeps_to_the_order_of_synthesis(method: Method, confidential: Microdata) -> None:
    """Check that a parameter cannot name a variable that this step or a later one synthesises."""
    schema, target = confidential.schema, example_target(method, confidential.schema)
    for info in method.spec.params():
        # The value that it would read is the confidential one, which would be disclosed.
        if info.param.names is None or info.param.any_order:
            continue
        if not info.param.kinds or schema[target].kind in info.param.kinds:
            for value in values_naming(info, target):
                with pytest.raises(BadInput, match=ORDER) as caught:
                    Recipe.from_table(table_naming(method, confidential, info, value, None))
                assert caught.value.place.startswith(f"synthesis[0].{info.name}")
        if (later := later_target(method, info, schema)) is not None:
            for value in values_naming(info, later):
                with pytest.raises(BadInput, match=ORDER) as caught:
                    Recipe.from_table(table_naming(method, confidential, info, value, later))
                assert caught.value.place.startswith(f"synthesis[0].{info.name}")


@every_synthesis
def test_no_parameter_makes_it_copy_its_target(method: Method, confidential: Microdata) -> None:
    """Check that no text that a parameter takes, such as the target's own name, makes the release a copy."""
    target = example_target(method, confidential.schema)
    for info in method.spec.params():
        for value in values_naming(info, target):
            try:
                recipe = Recipe.from_table(table_naming(method, confidential, info, value, None))
                check_steps(recipe, confidential)
                fits = [fit_model(recipe, 0, confidential, key=PUBLIC)]
                released = draw_dataset(recipe, 1, confidential, fits, key=PUBLIC)
            except (BadInput, NotComputable, NotConverged):
                continue
            assert not released.frame[target].equals(confidential.frame[target]), f"{info.name} copies {target}"


@every_synthesis
def test_only_a_recipe_that_asks_for_it_draws_by_the_own_record(method: Method, confidential: Microdata) -> None:
    assert not example_spec(method, confidential.schema).uses_own_record, "a setting must ask for it, no default"


@pytest.mark.slow
@every_synthesis
@every_change
def test_only_the_target_changes_and_stays_inside(method: Method, change: Change, confidential: Microdata) -> None:
    data = change(confidential)
    recipe, target = example_recipe(method, data.schema), example_target(method, data.schema)
    fits = [fit_model(recipe, 0, data, key=PUBLIC)]
    for draw in range(1, DRAWS + 1):
        released = draw_dataset(recipe, draw, data, fits, key=PUBLIC)
        assert tuple(released.frame.columns) == data.schema.names
        pd.testing.assert_frame_equal(
            released.frame.drop(columns=target), data.frame.drop(columns=target), check_exact=True
        )
        variable, values = data.schema[target], released.frame[target]
        if variable.kind.has_levels:
            assert set(values) <= set(data.frame[target])
            continue
        assert values.dtype == data.frame[target].dtype
        if variable.kind is not Kind.DATE:
            low, high = (-np.inf, np.inf) if variable.bounds is None else variable.bounds
            assert values.between(-np.inf if low is None else low, np.inf if high is None else high).all()


def with_homes(data: Microdata, *, alike: bool = False) -> Microdata:
    """Return the table as records of homes of one to four, numbered within them; ``alike``, all of a home are equal."""
    frame = data.frame.rename(columns={"size": "extent"}).drop(columns="number")
    home = np.repeat(np.arange(len(data)), np.resize([2, 1, 4, 3], len(data)))[: len(data)]
    if alike:
        frame = frame.iloc[np.searchsorted(home, home)].reset_index(drop=True)
    frame = frame.assign(home=home, line=pd.Series(home).groupby(home).cumcount() + 1)
    level: Literal["", "unit"] = "unit" if alike else ""
    names = {"size": "extent"}
    own = [replace(one, name=names.get(one.name, one.name), level=level) for one in data.schema if one.name != "number"]
    numbers = (Variable("home", Kind.COUNT, Role.UNIT), Variable("line", Kind.COUNT))
    return Microdata(Schema((*own, *numbers), order="line"), frame)


def recipe_of_homes(method: Method, schema: Schema, units: str) -> Recipe:
    """Return a recipe with a step of the method, and with trees for all other variables where units are drawn."""
    (step,) = example_recipe(method, SCHEMA).to_table()["synthesis"]
    step = {key: _call_size_extent(value) for key, value in step.items()}
    steps, target = [step], example_target(method, schema)
    if units == "drawn":
        text = str(step)
        names = [v.name for v in schema if not v.role.is_identifier and v.name != target]
        trees = [{"target": name, "method": "cart"} for name in sorted(names, key=lambda name: name not in text)]
        before = sum(name in text for name in names)
        steps = [*trees[:before], step, *trees[before:]]
    return Recipe.from_table(
        {
            "variables": {variable.name: variable.to_table() for variable in schema},
            "data": {"order": "line"},
            "release": {"m": 1, "units": units},
            "synthesis": steps,
        }
    )


def _call_size_extent(value: Any) -> Any:
    """Return a setting with the name that a column called "size" has beside the size of units."""
    if isinstance(value, list):
        return [_call_size_extent(item) for item in value]
    return "extent" if value == "size" else value


def serves_units(method: Method) -> bool:
    """Return whether units of several records may be drawn by the method (``sfumato.engine.recipe.unit_stages``)."""
    return method.synthesis.privacy.account is None and not example_spec(method, SCHEMA).uses_own_record


@every_synthesis
@pytest.mark.parametrize("stage", ["units", "records"])
def test_it_serves_both_stages_of_units(method: Method, stage: str, confidential: Microdata) -> None:
    """Check that a step draws units, or their records place by place, and finds no value that is not drawn yet."""
    data = with_homes(confidential, alike=stage == "units")
    target = example_target(method, data.schema)
    if not serves_units(method):
        pytest.skip("units of several records are not drawn by it")
    recipe = recipe_of_homes(method, data.schema, "drawn")
    try:
        check_steps(recipe, data)
    except BadInput as error:
        pytest.skip(f"it takes no such table: {error}")
    fits = [fit_model(recipe, item, data, key=PUBLIC) for item in range(len(recipe.synthesis))]
    released = draw_dataset(recipe, 1, data, fits, key=PUBLIC)
    assert released.frame["home"].nunique() == data.n_units
    assert released.frame[target].dtype == data.frame[target].dtype
    if stage == "units":
        assert len(released.frame.drop_duplicates(["home", target])) == data.n_units


@every_synthesis
def test_no_record_follows_the_record_after_it(method: Method, confidential: Microdata) -> None:
    """Check that where records stay in their homes, no drawn value tells the confidential one of the next record."""
    data = with_homes(confidential)
    if not serves_units(method):
        pytest.skip("units of several records are not drawn by it")
    recipe, target = recipe_of_homes(method, data.schema, "kept"), example_target(method, data.schema)
    check_steps(recipe, data)
    released = draw_dataset(recipe, 1, data, [fit_model(recipe, 0, data, key=PUBLIC)], key=PUBLIC)
    home = data.frame["home"].to_numpy()
    here = np.flatnonzero(home[:-1] == home[1:])
    drawn, later = released.numbers(target)[here], data.numbers(target)[here + 1]
    if np.ptp(drawn) > 0:
        # Members of these homes have nothing in common, so that the correlation has a standard error of 1 / root(n).
        assert np.corrcoef(drawn, later)[0, 1] * np.sqrt(len(here)) < MOST_ERRORS, f"{target} follows the next record"
