"""Contract of every measure and study: sound, repeatable, and distinguishable from another use of the same method."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ..data.microdata import Microdata
from ..data.schema import Schema
from ..errors import BadInput, NotComputable
from ..execution.tasks import anonymise_data, combine_series, execute_run, gather_blocks, measure_block, rows_of_measure
from ..methods.labels import label_of, labels_of, method_and_output, quantity_of, sentence_of
from ..methods.protocols import MEASURES
from ..methods.registry import Method, registry
from ..methods.results import Estimate, Measure, WholeReleaseMeasure
from ..methods.rows import Row
from ..methods.run import PUBLIC, Run
from ..methods.spec import ParamInfo
from ..recipe.provenance import release_provenance
from ..recipe.recipe import Recipe
from .examples import (
    MODEL,
    SETTINGS,
    SYNTHESISED,
    assert_sound,
    comparable_results,
    confidential_table,
    copy_table,
    every_measure,
    every_study,
    every_whole_measure,
    example_data_for,
    example_recipe,
    example_run,
    example_spec,
    example_step_table,
    refuses_missing,
    released_tables,
    with_missing,
    without_identifiers,
)  # fmt: skip

every_self_scoring = pytest.mark.sfumato_contract(*MEASURES, confidential=True)
every_measure_and_study = pytest.mark.sfumato_contract(*MEASURES, "studies")


def measure_example(method: Method, confidential: Microdata, released: Microdata, run: Run) -> Measure:
    """Measure a release by the example's parameters."""
    return method.measure(
        example_data_for(method, confidential), released, example_spec(method, confidential.schema), run
    )


@functools.cache
def _measure_by_key(key: str) -> Measure:
    """Return what a method answers on the examples' tables, computed once for all tests that compare with it."""
    confidential = copy_table(confidential_table())
    return measure_example(registry()[key], confidential, released_tables(confidential)[0], example_run())


@every_measure
def test_measure_is_sound(method: Method, confidential: Microdata) -> None:
    measure = _measure_by_key(method.key)
    assert_sound(method, measure.estimates)
    assert set(measure.per_record) <= {array.name for array in method.measurement.per_record}, "not declared"
    for name, array in measure.per_record.items():
        assert array.shape[0] == len(confidential), name


@every_self_scoring
def test_confidential_data_score_themselves(method: Method, confidential: Microdata) -> None:
    assert_sound(method, measure_example(method, confidential, confidential, example_run()).estimates)


@every_measure
def test_measure_answers_the_same_twice_in_a_pool_too_and_leaves_its_inputs_alone(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    before = confidential.frame.copy(deep=True), releases[0].frame.copy(deep=True)
    with ThreadPoolExecutor(2) as pool:
        again = measure_example(method, confidential, releases[0], example_run(pool=pool.map))
    assert comparable_results(again) == comparable_results(_measure_by_key(method.key))
    pd.testing.assert_frame_equal(confidential.frame, before[0])
    pd.testing.assert_frame_equal(releases[0].frame, before[1])


def assert_declared_estimated(method: Method, first: Sequence[Estimate], second: Sequence[Estimate]) -> None:
    """Assert that every value that changes with the seed is declared estimated, and has no interval without width."""

    def by_series(estimates: Sequence[Estimate]) -> dict[tuple[str, ...], Estimate]:
        return {(e.measure, e.target, str(sorted(e.params.items()))): e for e in estimates}

    again = by_series(second)
    for key, one in by_series(first).items():
        other, output = again.get(key), method.output(one.measure)
        if other is None or other.value == one.value or output.intermediate:
            continue
        assert output.estimated, (
            f"{method.key}.{one.measure} is {one.value} or {other.value} by the seed: declare it estimated"
        )
        for each in (one, other):
            assert each.value is None or not (each.lower == each.value == each.upper), (
                f"{method.key}.{one.measure}: exact?"
            )


@every_measure
def test_what_the_seed_changes_is_declared_estimated(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    second = measure_example(method, confidential, releases[0], example_run(2))
    assert_declared_estimated(method, _measure_by_key(method.key).estimates, second.estimates)


def measure_or_explain(method: Method, confidential: Microdata, released: Microdata) -> tuple[Estimate, ...]:
    """Return the estimates of a measure, or rows with the reason why it is not computed."""
    try:
        return measure_example(method, confidential, released, example_run()).estimates
    except NotComputable as error:
        return tuple(Estimate.not_computed(output.name, error.reason) for output in method.outputs)


@every_measure
def test_measure_answers_or_says_why_on_few_records(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    # Too few for most statistics: a measure must say why it has no value, not fail.
    for records in (1, 2):
        few = Microdata(confidential.schema, confidential.frame.head(records))
        same = Microdata(confidential.schema, releases[0].frame.head(records), "synthetic")
        assert_sound(method, measure_or_explain(method, few, same))


@every_measure
def test_its_datasets_are_combined_into_one_row_a_series(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    recipe = example_recipe(method, confidential.schema)
    settings = recipe.settings(recipe.measures[0])
    measures = _measure_by_key(method.key), measure_example(method, confidential, releases[1], example_run(2))
    rows = [
        row
        for draw, measure in enumerate(measures, start=1)
        for row in rows_of_measure(method, measure, "synthetic", draw, settings=settings)
    ]
    sizes = [len(release) for release in releases]
    found = combine_series(rows, release_provenance(recipe, len(confidential), sizes))
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


@functools.cache
def _anonymised_tables() -> tuple[Microdata, ...]:
    """Return the examples' table, anonymised in three ways, once for all measures."""
    data = without_identifiers(confidential_table())
    found = []
    for step in (
        {"output": "generalised"}, {"output": "micro_aggregated"}, {"cuts": "strict", "max_suppressed": 0.1, "output": "generalised"}
    ):  # fmt: skip
        table = {
            "variables": {v.name: v.to_table() for v in data.schema},
            "anonymisation": [{"method": "mondrian", **step}],
        }
        found.append(anonymise_data(Recipe.from_table(table), data, key=PUBLIC).data)
    return tuple(found)


@every_measure
def test_measure_answers_or_says_why_on_anonymised_tables(method: Method, confidential: Microdata) -> None:
    for released in _anonymised_tables():
        assert_sound(method, measure_or_explain(method, without_identifiers(confidential), copy_table(released)))


@every_measure
def test_measure_is_sound_where_values_are_missing(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    data = with_missing(confidential, 1)
    for released in (with_missing(releases[0], 2), releases[0], data):
        if released.origin == "synthetic" or method.measurement.confidential:
            assert_sound(method, measure_example(method, data, released, example_run()).estimates)


def shuffle_release(release: Microdata, *, linked: bool) -> Microdata:
    """Return a release with its records in another order."""
    frame = release.frame.iloc[np.random.default_rng(9).permutation(len(release))].reset_index(drop=True)
    return replace(release, frame=frame, linked=linked)


def values_by_estimate(method: Method, confidential: Microdata, released: Microdata) -> dict[tuple[str, str, str], Any]:
    """Return the values of a measure by measure, target and parameters, and those of single records; the reason where
    it is not computed.
    """
    try:
        measure = measure_example(method, confidential, released, example_run())
    except NotComputable as error:
        return {("", "", ""): error.reason}
    arrays = {("per record", name, ""): array.tolist() for name, array in measure.per_record.items()}
    return {**{(e.measure, e.target, repr(e.params)): e.value for e in measure.estimates}, **arrays}


@every_measure
def test_measure_of_records_in_any_order_is_the_same_or_not_computed(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    """Check that a measure of an unlinked release does not depend on the order of its records."""
    # Nothing says whose record a released one is: row i must not be taken for record i.
    plain = values_by_estimate(method, confidential, replace(releases[0], linked=False))
    found = values_by_estimate(method, confidential, shuffle_release(releases[0], linked=False))
    if reason := plain.get(("", "", "")):
        # The one reason that is allowed: a refusal for anything else would hide what is tested.
        assert "whose" in reason
    assert found == {
        key: value if isinstance(value, str | None) else pytest.approx(value, nan_ok=True)
        for key, value in plain.items()
    }


def measure_whole_release(
    method: Method, data: Microdata, releases: list[Microdata], seed: int | None = None
) -> WholeReleaseMeasure:
    """Measure a whole release by the models of the example's recipe."""
    recipe, data = example_recipe(method, data.schema), example_data_for(method, data)
    if seed is not None:
        recipe = replace(recipe, seed=seed)
    parts = [measure_block(recipe, 0, block, data, releases, key=PUBLIC) for block in recipe.measures[0].spec.grid()]
    return gather_blocks(recipe, 0, data, releases, parts)[0]


@functools.cache
def _whole_measure_by_key(key: str) -> WholeReleaseMeasure:
    """Return what a method answers on the examples' release, computed once for all tests that compare with it."""
    confidential = copy_table(confidential_table())
    return measure_whole_release(registry()[key], confidential, released_tables(confidential))


@pytest.mark.slow
@every_whole_measure
def test_measure_of_a_whole_release_is_sound(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    before = confidential.frame.copy(deep=True), releases[0].frame.copy(deep=True)
    found = _whole_measure_by_key(method.key)
    assert len(found.datasets) in ((0,) if method.measurement.refits else (len(releases),))
    for measure in (found.whole, *found.datasets):
        assert_sound(method, measure.estimates)
        assert set(measure.per_record) <= {array.name for array in method.measurement.per_record}
        assert all(len(array) == len(confidential) for array in measure.per_record.values())
    assert comparable_results(found.whole) == comparable_results(
        measure_whole_release(method, confidential, releases).whole
    )
    pd.testing.assert_frame_equal(confidential.frame, before[0])
    pd.testing.assert_frame_equal(releases[0].frame, before[1])


@pytest.mark.slow
@every_whole_measure
def test_what_the_seed_changes_of_a_whole_release_is_declared_estimated(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    first, second = _whole_measure_by_key(method.key), measure_whole_release(method, confidential, releases, 2)
    assert_declared_estimated(method, first.whole.estimates, second.whole.estimates)


@pytest.mark.slow
@every_whole_measure
def test_measure_of_a_whole_release_in_any_order_is_the_same(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    first = _whole_measure_by_key(method.key)
    second = measure_whole_release(
        method, confidential, [shuffle_release(release, linked=False) for release in releases]
    )
    for one, other in zip((first.whole, *first.datasets), (second.whole, *second.datasets), strict=True):
        assert [e.value for e in other.estimates] == pytest.approx([e.value for e in one.estimates], nan_ok=True)


@every_whole_measure
def test_measure_of_a_whole_release_answers_or_says_why_on_few_records(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    for records in (1, 2):
        few = Microdata(confidential.schema, confidential.frame.head(records))
        same = Microdata(confidential.schema, releases[0].frame.head(records), "synthetic")
        assert_sound(method, measure_whole_release(method, few, [same]).whole.estimates)


@pytest.mark.slow
@every_whole_measure
def test_measure_of_a_whole_release_is_sound_where_values_are_missing(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    data = with_missing(confidential, 1)
    found = measure_whole_release(
        method, data, [with_missing(release, seed) for seed, release in enumerate(releases, 2)]
    )
    assert_sound(method, found.whole.estimates)


@every_whole_measure
def test_measure_of_a_whole_release_asks_for_its_models(method: Method, confidential: Microdata) -> None:
    table = example_recipe(method, confidential.schema).to_table()
    if not method.uses_release_models:
        return
    release = {**{k: v for k, v in table.items() if k != "synthesis"}, "release": {"m": 2, "released": ["days"]}}
    with pytest.raises(BadInput, match=r"measure\[0\].method: .* asks the models"):
        Recipe.from_table(release)
    other = [{"target": "days", "method": "cart", "predictors": ["region"]}]
    with pytest.raises(BadInput, match=r"measure\[0\].method: .* cannot ask synthesis.cart"):
        Recipe.from_table({**table, "synthesis": other})


@pytest.mark.slow
@every_study
def test_study_is_sound_at_every_point(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    spec = example_spec(method, confidential.schema)
    assert spec.grid()
    every, together = [], method.study.points
    for point in spec.grid():
        found = method.compute_point(confidential, releases, point, spec, example_run())
        every.append(found)
        assert len(found.releases) == len(releases)
        for measure in (*found.releases, *([found.confidential] if found.confidential else [])):
            assert_sound(method, measure.estimates)
    if together is not None:
        runs = [example_run() for _ in spec.grid()]
        # As text: arrays inside have no single truth value, and NaN is not equal to itself.
        assert repr(list(together(confidential, releases, spec.grid(), spec, runs))) == repr(every)


@pytest.mark.slow
@every_study
def test_study_answers_the_same_twice(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    spec = example_spec(method, confidential.schema)
    before = confidential.frame.copy(deep=True)
    with ThreadPoolExecutor(2) as pool:
        first, second = (
            method.compute_point(confidential, releases, spec.grid()[-1], spec, example_run(pool=kind))
            for kind in (map, pool.map)
        )
    assert [comparable_results(measure) for measure in first.releases] == [
        comparable_results(measure) for measure in second.releases
    ]
    pd.testing.assert_frame_equal(confidential.frame, before)


@pytest.mark.slow
@every_study
def test_what_the_seed_changes_of_a_study_is_declared_estimated(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    spec = example_spec(method, confidential.schema)
    first, second = (
        method.compute_point(confidential, releases, spec.grid()[-1], spec, example_run(seed)) for seed in (1, 2)
    )
    for one, other in zip(first.releases, second.releases, strict=True):
        assert_declared_estimated(method, one.estimates, other.estimates)
    if first.confidential is not None and second.confidential is not None:
        assert_declared_estimated(method, first.confidential.estimates, second.confidential.estimates)


@pytest.mark.slow
@every_study
def test_study_is_sound_where_values_are_missing(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    data, spec = with_missing(confidential, 1), example_spec(method, confidential.schema)
    if refuses_missing(method, data):
        return
    found = method.compute_point(
        data, [with_missing(release, 2) for release in releases], spec.grid()[-1], spec, example_run()
    )
    for measure in (*found.releases, *([found.confidential] if found.confidential else [])):
        assert_sound(method, measure.estimates)


def other_values(info: ParamInfo, value: Any, schema: Schema) -> list[Any]:
    """Return other values of a parameter than its present one; empty where none can be derived."""
    if info.choices:
        return [choice for choice in info.choices if choice != value]
    if info.param.names == "variables" and typing.get_origin(info.type) is tuple:
        return [[v.name] for v in schema if not info.param.kinds or v.kind in info.param.kinds]
    if info.type is bool:
        return [not value]
    if info.type is int:
        return [value + 1, value - 1]
    if info.type is float:
        return [value / 2, (value + 1) / 2]
    if typing.get_origin(info.type) is tuple and value:
        return [list(value)[:-1]] if isinstance(value[0], int | float) and len(value) > 1 else []
    return []


def recipe_with_steps(method: Method, schema: Schema, steps: list[dict[str, Any]]) -> Recipe:
    """Return a recipe with these steps of the method."""
    section = "study" if method.family == "studies" else "measure"
    made = {"release": {"m": 2}, "synthesis": [dict(MODEL)]}
    return Recipe.from_table(
        {
            "title": method.title,
            "variables": {variable.name: variable.to_table() for variable in schema},
            **({"data": {"holdout": 0.5}} if method.measurement.controls else {}),
            **(made if method.uses_weights else {"release": {"m": 2, "released": list(SYNTHESISED)}}),
            section: [{"method": method.key, **step} for step in steps],
        }
    )


def short_step_table(method: Method, schema: Schema) -> dict[str, Any]:
    """Return the table of the example's step, with settings that keep a study short."""
    return {**example_step_table(method, schema), **SETTINGS.get(f"{method.key} twice", {})}


def tables_with_one_change(method: Method, data: Microdata) -> Mapping[str, dict[str, Any]]:
    """Return tables of the step with one parameter changed, by the parameter's name, where a recipe accepts them."""
    table, found = short_step_table(method, data.schema), {}
    for info in method.spec.params():
        value = table.get(info.name, None if info.default is dataclasses.MISSING else info.default)
        for other in other_values(info, value, data.schema) if value is not None else []:
            changed = {**table, info.name: other}
            try:
                recipe = recipe_with_steps(method, data.schema, [changed])
            except BadInput:
                continue
            step = (*recipe.measures, *recipe.studies)[0]
            if step.spec != method.spec.from_table(table, "step") and info.name not in found:
                found[info.name] = changed
    return found


def assert_readable(row: Row, records: int) -> None:
    """Assert that a row's label and sentence contain its value and variable, and neither keys nor unfilled braces.

    A sentence that says "more" or "less" has the size of the value.
    """
    sentence = sentence_of(row, records)
    for text in (label_of(row), sentence):
        assert row.key not in text
        assert row.target in text
        assert not set("{}") & set(text.replace(row.target, ""))
    value = quantity_of(row.key, row.value, records, row.params, unit=row.unit) if row.value is not None else row.reason
    says = method_and_output(row.key)[1].label.says
    assert (value.removeprefix("-") if "{more}" in says else value) in sentence


def combined_example_rows(recipe: Recipe, data: Microdata, releases: list[Microdata]) -> list[Row]:
    """Run a recipe, and return the rows of all datasets together and of the confidential data."""
    (step,) = {one.method for one in (*recipe.measures, *recipe.studies)}
    return [
        row for row in execute_run(recipe, example_data_for(step, data), releases, key=PUBLIC).rows if row.draw is None
    ]


@pytest.mark.slow
@every_measure_and_study
def test_two_uses_of_one_method_stay_apart(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    table, schema = short_step_table(method, confidential.schema), confidential.schema
    changed = list(tables_with_one_change(method, confidential).values())
    # A study takes long: one change is enough.
    uses = [table, *(changed[:1] if method.family == "studies" else changed)]
    alone = [
        row
        for use in uses
        for row in combined_example_rows(recipe_with_steps(method, schema, [use]), confidential, releases)
    ]
    together = combined_example_rows(recipe_with_steps(method, schema, uses), confidential, releases)
    assert len(together) == len(alone)
    counted = Counter((row.dataset, row.series) for row in together)
    assert not [series for series, times in counted.items() if times > 1]
    released = [row for row in together if row.dataset != "confidential"]
    assert len(set(labels_of(released))) == len(released)
    for row in released:
        assert_readable(row, len(confidential))


@pytest.mark.slow
@every_measure_and_study
def test_the_same_step_twice_is_refused(method: Method, confidential: Microdata) -> None:
    table = short_step_table(method, confidential.schema)
    with pytest.raises(BadInput):
        recipe_with_steps(method, confidential.schema, [table, dict(table)])
