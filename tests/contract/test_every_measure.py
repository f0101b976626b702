"""What every measure of utility, quality and risk must satisfy."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from method_contract import (
    SELF_SCORING,
    answers,
    assert_sound,
    every_measure,
    recipe_of,
    run_of,
    spec_of,
    with_missing,
    without_identifiers,
)

from sfumato.engine.errors import NotComputable
from sfumato.engine.execution import anonymise, combined_rows, rows_of
from sfumato.engine.methods import Method, registry
from sfumato.engine.microdata import Microdata
from sfumato.engine.recipe import Recipe
from sfumato.engine.results import Estimate, Measure
from sfumato.engine.run import Run


def measured(method: Method, confidential: Microdata, released: Microdata, run: Run) -> Measure:
    measure: Measure = method.func(confidential, released, spec_of(method, confidential.schema), run)
    return measure


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
        released = anonymise(Recipe.from_table(table), data).data
        try:
            found = measured(method, data, released, run_of()).estimates
        except NotComputable as error:
            found = tuple(Estimate.not_computed(output.name, error.reason) for output in method.outputs)
        assert_sound(method, found)


@every_measure
def test_measure_is_sound_where_values_are_missing(
    method: Method, confidential: Microdata, releases: list[Microdata]
) -> None:
    data = with_missing(confidential, 1)
    for released in (*(with_missing(release, seed) for seed, release in enumerate(releases, 2)), releases[0], data):
        if released.origin == "synthetic" or method.confidential:
            assert_sound(method, measured(method, data, released, run_of()).estimates)


def shuffled(release: Microdata, *, linked: bool) -> Microdata:
    frame = release.frame.iloc[np.random.default_rng(9).permutation(len(release))].reset_index(drop=True)
    return replace(release, frame=frame, linked=linked)


def values(method: Method, confidential: Microdata, released: Microdata) -> dict[tuple[str, str, str], Any]:
    """What it measures by measure, target and parameters; the reason where the whole is not computed."""
    try:
        measure = measured(method, confidential, released, run_of())
    except NotComputable as error:
        return {("", "", ""): error.reason}
    assert released.linked or not measure.per_record
    return {(e.measure, e.target, repr(e.params)): e.value for e in measure.estimates}


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
        key: value if isinstance(value, str | None) else pytest.approx(value) for key, value in plain.items()
    }


def test_a_measure_that_takes_row_i_for_record_i_would_be_noticed(
    confidential: Microdata, releases: list[Microdata]
) -> None:
    for key in ("risk.identification", "quality.pearson"):
        method = registry()[key]
        plain, found = (values(method, confidential, one) for one in (releases[0], shuffled(releases[0], linked=True)))
        assert plain != found
