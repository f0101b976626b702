"""What every measure of utility, quality and risk, and every study must satisfy; two uses of one method stay apart."""

from __future__ import annotations

import dataclasses
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
from ..execution.tasks import anonymise, combined_rows, execute, gather_blocks, measure_block, rows_of
from ..methods.labels import label_of, labels_of, quantity_of, sentence_of
from ..methods.protocols import MEASURES
from ..methods.registry import Method
from ..methods.results import Estimate, Measure, WholeMeasure
from ..methods.rows import Row
from ..methods.run import PUBLIC, Run
from ..methods.spec import ParamInfo
from ..recipe.recipe import Recipe
from .examples import (
    MODEL,
    SETTINGS,
    SYNTHESISED,
    answers,
    assert_sound,
    every_measure,
    every_study,
    every_whole_measure,
    recipe_of,
    refuses_missing,
    run_of,
    seen_by,
    spec_of,
    table_of,
    with_missing,
    without_identifiers,
)  # fmt: skip

every_self_scoring = pytest.mark.sfumato_contract(*MEASURES, confidential=True)
every_measure_and_study = pytest.mark.sfumato_contract(*MEASURES, "studies")


def measured(method: Method, confidential: Microdata, released: Microdata, run: Run) -> Measure:
    """What a measure says of a release."""
    return method.measure(seen_by(method, confidential), released, spec_of(method, confidential.schema), run)


@every_measure
def test_measure_is_sound(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    measure = measured(method, confidential, releases[0], run_of())
    assert_sound(method, measure.estimates)
    for name, array in measure.per_record.items():
        assert array.shape[0] == len(confidential), name


@every_self_scoring
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


def assert_declared_estimated(method: Method, first: Sequence[Estimate], second: Sequence[Estimate]) -> None:
    """Every value that is another with another seed is an estimate by its output; one that looks exact has an interval without width in neither."""

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
    first, second = (measured(method, confidential, releases[0], run_of(seed)) for seed in (1, 2))
    assert_declared_estimated(method, first.estimates, second.estimates)


@every_measure
def test_measure_leaves_its_inputs_alone(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    before = confidential.frame.copy(deep=True), releases[0].frame.copy(deep=True)
    measured(method, confidential, releases[0], run_of())
    pd.testing.assert_frame_equal(confidential.frame, before[0])
    pd.testing.assert_frame_equal(releases[0].frame, before[1])


def answered(method: Method, confidential: Microdata, released: Microdata) -> tuple[Estimate, ...]:
    """What a measure says, or why it says nothing."""
    try:
        return measured(method, confidential, released, run_of()).estimates
    except NotComputable as error:
        return tuple(Estimate.not_computed(output.name, error.reason) for output in method.outputs)


@every_measure
def test_measure_answers_or_says_why_on_few_records(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    for records in (1, 2):
        few = Microdata(confidential.schema, confidential.frame.head(records))
        same = Microdata(confidential.schema, releases[0].frame.head(records), "synthetic")
        assert_sound(method, answered(method, few, same))


@every_measure
def test_its_datasets_are_combined_into_one_row_a_series(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    recipe = recipe_of(method, confidential.schema)
    settings = recipe.settings(recipe.measures[0])
    rows = [
        row
        for draw, release in enumerate(releases, start=1)
        for row in rows_of(
            method, measured(method, confidential, release, run_of(draw)), "synthetic", draw, settings=settings
        )
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
        released = anonymise(Recipe.from_table(table), data, key=PUBLIC).data
        assert_sound(method, answered(method, data, released))


@every_measure
def test_measure_is_sound_where_values_are_missing(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    data = with_missing(confidential, 1)
    for released in (*(with_missing(release, seed) for seed, release in enumerate(releases, 2)), releases[0], data):
        if released.origin == "synthetic" or method.measurement.confidential:
            assert_sound(method, measured(method, data, released, run_of()).estimates)


def shuffled(release: Microdata, *, linked: bool) -> Microdata:
    """The release with its records in another order."""
    frame = release.frame.iloc[np.random.default_rng(9).permutation(len(release))].reset_index(drop=True)
    return replace(release, frame=frame, linked=linked)


def values(method: Method, confidential: Microdata, released: Microdata) -> dict[tuple[str, str, str], Any]:
    """What it measures by measure, target and parameters, and record by record; the reason where the whole is not computed."""
    try:
        measure = measured(method, confidential, released, run_of())
    except NotComputable as error:
        return {("", "", ""): error.reason}
    arrays = {("per record", name, ""): array.tolist() for name, array in measure.per_record.items()}
    return {**{(e.measure, e.target, repr(e.params)): e.value for e in measure.estimates}, **arrays}


@every_measure
def test_measure_of_records_in_any_order_is_the_same_or_not_computed(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    """Where nothing says whose record a released one is, a measure must not take row i for record i."""
    plain = values(method, confidential, replace(releases[0], linked=False))
    found = values(method, confidential, shuffled(releases[0], linked=False))
    if reason := plain.get(("", "", "")):
        assert "whose" in reason
    assert found == {
        key: value if isinstance(value, str | None) else pytest.approx(value, nan_ok=True)
        for key, value in plain.items()
    }


@every_measure
def test_arrays_of_single_records_are_declared(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    measure = measured(method, confidential, releases[0], run_of())
    assert set(measure.per_record) <= {array.name for array in method.measurement.per_record}


def whole_measure(method: Method, data: Microdata, releases: list[Microdata], seed: int | None = None) -> WholeMeasure:
    """What a measure of a whole release says, by the models of the examples' recipe."""
    recipe, data = recipe_of(method, data.schema), seen_by(method, data)
    if seed is not None:
        recipe = replace(recipe, seed=seed)
    parts = [measure_block(recipe, 0, block, data, releases, key=PUBLIC) for block in recipe.measures[0].spec.grid()]
    return gather_blocks(recipe, 0, data, releases, parts)[0]


@every_whole_measure
def test_measure_of_a_whole_release_is_sound(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    before = confidential.frame.copy(deep=True), releases[0].frame.copy(deep=True)
    found = whole_measure(method, confidential, releases)
    assert len(found.datasets) in ((0,) if method.measurement.refits else (len(releases),))
    for measure in (found.whole, *found.datasets):
        assert_sound(method, measure.estimates)
        assert set(measure.per_record) <= {array.name for array in method.measurement.per_record}
        assert all(len(array) == len(confidential) for array in measure.per_record.values())
    assert answers(found.whole) == answers(whole_measure(method, confidential, releases).whole)
    pd.testing.assert_frame_equal(confidential.frame, before[0])
    pd.testing.assert_frame_equal(releases[0].frame, before[1])


@every_whole_measure
def test_what_the_seed_changes_of_a_whole_release_is_declared_estimated(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    first, second = (whole_measure(method, confidential, releases, seed) for seed in (1, 2))
    assert_declared_estimated(method, first.whole.estimates, second.whole.estimates)


@every_whole_measure
def test_measure_of_a_whole_release_in_any_order_is_the_same(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    first = whole_measure(method, confidential, releases)
    second = whole_measure(method, confidential, [shuffled(release, linked=False) for release in releases])
    for one, other in zip((first.whole, *first.datasets), (second.whole, *second.datasets), strict=True):
        assert [e.value for e in other.estimates] == pytest.approx([e.value for e in one.estimates], nan_ok=True)


@every_whole_measure
def test_measure_of_a_whole_release_answers_or_says_why_on_few_records(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    for records in (1, 2):
        few = Microdata(confidential.schema, confidential.frame.head(records))
        same = Microdata(confidential.schema, releases[0].frame.head(records), "synthetic")
        assert_sound(method, whole_measure(method, few, [same]).whole.estimates)


@every_whole_measure
def test_measure_of_a_whole_release_is_sound_where_values_are_missing(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    data = with_missing(confidential, 1)
    found = whole_measure(method, data, [with_missing(release, seed) for seed, release in enumerate(releases, 2)])
    assert_sound(method, found.whole.estimates)


@every_whole_measure
def test_measure_of_a_whole_release_asks_for_its_models(method: Method, confidential: Microdata) -> None:
    table = recipe_of(method, confidential.schema).to_table()
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
    spec = spec_of(method, confidential.schema)
    assert spec.grid()
    every, together = [], method.study.points
    for point in spec.grid():
        found = method.point(confidential, releases, point, spec, run_of())
        every.append(found)
        assert len(found.releases) == len(releases)
        for measure in (*found.releases, *([found.confidential] if found.confidential else [])):
            assert_sound(method, measure.estimates)
    if together is not None:
        runs = [run_of() for _ in spec.grid()]
        assert repr(list(together(confidential, releases, spec.grid(), spec, runs))) == repr(every)


@pytest.mark.slow
@every_study
def test_study_answers_the_same_twice(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    spec = spec_of(method, confidential.schema)
    before = confidential.frame.copy(deep=True)
    with ThreadPoolExecutor(2) as pool:
        first, second = (
            method.point(confidential, releases, spec.grid()[-1], spec, run_of(pool=kind)) for kind in (map, pool.map)
        )
    assert [answers(measure) for measure in first.releases] == [answers(measure) for measure in second.releases]
    pd.testing.assert_frame_equal(confidential.frame, before)


@pytest.mark.slow
@every_study
def test_what_the_seed_changes_of_a_study_is_declared_estimated(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    spec = spec_of(method, confidential.schema)
    first, second = (method.point(confidential, releases, spec.grid()[-1], spec, run_of(seed)) for seed in (1, 2))
    for one, other in zip(first.releases, second.releases, strict=True):
        assert_declared_estimated(method, one.estimates, other.estimates)
    if first.confidential is not None and second.confidential is not None:
        assert_declared_estimated(method, first.confidential.estimates, second.confidential.estimates)


@pytest.mark.slow
@every_study
def test_study_is_sound_where_values_are_missing(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    data, spec = with_missing(confidential, 1), spec_of(method, confidential.schema)
    if refuses_missing(method, data):
        return
    found = method.point(data, [with_missing(release, 2) for release in releases], spec.grid()[-1], spec, run_of())
    for measure in (*found.releases, *([found.confidential] if found.confidential else [])):
        assert_sound(method, measure.estimates)


def another(info: ParamInfo, value: Any, schema: Schema) -> list[Any]:
    """Other values of a parameter that has this one; empty where none can be derived."""
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


def recipe_with(method: Method, schema: Schema, steps: list[dict[str, Any]]) -> Recipe:
    """A recipe with these steps of the method."""
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


def plain_table(method: Method, schema: Schema) -> dict[str, Any]:
    """The method's recipe table, with what keeps a study short."""
    return {**table_of(method, schema), **SETTINGS.get(f"{method.key} twice", {})}


def changed_tables(method: Method, data: Microdata) -> Mapping[str, dict[str, Any]]:
    """The method's table with one parameter changed, by the parameter's name, where a recipe takes it."""
    table, found = plain_table(method, data.schema), {}
    for info in method.spec.params():
        value = table.get(info.name, None if info.default is dataclasses.MISSING else info.default)
        for other in another(info, value, data.schema) if value is not None else []:
            changed = {**table, info.name: other}
            try:
                recipe = recipe_with(method, data.schema, [changed])
            except BadInput:
                continue
            step = (*recipe.measures, *recipe.studies)[0]
            if step.spec != method.spec.from_table(table, "step") and info.name not in found:
                found[info.name] = changed
    return found


def assert_readable(row: Row, records: int) -> None:
    """Assert that the row's name and sentence have its value and its variable, and neither keys nor unfilled braces."""
    sentence = sentence_of(row, records)
    for text in (label_of(row), sentence):
        assert row.key not in text
        assert row.target in text
        assert not set("{}") & set(text.replace(row.target, ""))
    value = quantity_of(row.key, row.value, records, row.params, unit=row.unit) if row.value is not None else row.reason
    assert value in sentence


def results(recipe: Recipe, data: Microdata, releases: list[Microdata]) -> list[Row]:
    """The rows of all datasets together and of the confidential data."""
    (step,) = {one.method for one in (*recipe.measures, *recipe.studies)}
    return [row for row in execute(recipe, seen_by(step, data), releases, key=PUBLIC).rows if row.draw is None]


@pytest.mark.slow
@every_measure_and_study
def test_two_uses_of_one_method_stay_apart(method: Method, confidential: Microdata, releases: list[Microdata]) -> None:
    table, schema = plain_table(method, confidential.schema), confidential.schema
    changed = list(changed_tables(method, confidential).values())
    uses = [table, *(changed[:1] if method.family == "studies" else changed)]
    alone = [row for use in uses for row in results(recipe_with(method, schema, [use]), confidential, releases)]
    together = results(recipe_with(method, schema, uses), confidential, releases)
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
    table = plain_table(method, confidential.schema)
    with pytest.raises(BadInput):
        recipe_with(method, confidential.schema, [table, dict(table)])
