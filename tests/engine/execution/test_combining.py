"""How rows of single datasets become the rows of the release."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import t

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.provenance import FitUncertainty, ReleaseProvenance, StepProvenance
from sfumato.engine.execution.combining import by_combining_rules
from sfumato.engine.execution.tasks import combine_series, execute_run
from sfumato.engine.methods.registry import find_method
from sfumato.engine.methods.rows import Row, average_each_series, group_by_series
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.combining import combine_datasets

ESTIMATES = (2.0, 4.0, 6.0)
VARIANCES = (1.0, 2.0, 3.0)
PARTIAL = ReleaseProvenance(
    "synthetic", 80, (80, 80, 80), (StepProvenance(("price",), FitUncertainty("drawn")),), ("age",)
)
FULL = replace(PARTIAL, kept=())


def row(measure: str, value: float | None, draw: int, **params: object) -> Row:
    return Row(
        "utility", "interval_overlap", measure, "price", "synthetic", draw, None, value,
        status="not computed" if value is None else "computed", reason="too few" if value is None else "",
        params={"estimand": "mean", "confidence": 0.9, "synthesis": "partial", **params},
    )  # fmt: skip


def rows(
    estimates: tuple[float | None, ...] = ESTIMATES, variances: tuple[float, ...] = VARIANCES, **params: object
) -> list[Row]:
    found = []
    for draw, (value, variance) in enumerate(zip(estimates, variances, strict=True), start=1):
        error = None if value is None else variance**0.5
        values = {"estimate": value, "standard_error": error, "overlap": 0.1 * draw}
        found += [row(measure, number, draw, **params) for measure, number in values.items()]
    return found


def by_measure(found: list[Row]) -> dict[str, Row]:
    return {row.measure: row for row in found}


def test_estimates_of_partial_synthesis_are_combined_and_overlaps_averaged() -> None:
    found = by_measure(by_combining_rules(rows(), PARTIAL))
    rule = combine_datasets(ESTIMATES, VARIANCES, PARTIAL)
    assert (found["estimate"].value, found["standard_error"].value) == (4.0, pytest.approx(rule.variance**0.5))
    assert (found["estimate"].lower, found["estimate"].upper) == pytest.approx(rule.interval(0.9))
    assert (found["standard_error"].lower, found["standard_error"].upper) == (None, None)
    assert found["overlap"] == average_each_series(rows())[2]
    assert found["overlap"].value == pytest.approx(0.2)
    assert all(row.draw is None for row in found.values())
    assert "T = k u + b/m with k = 1" in found["estimate"].reason
    assert found["standard_error"].reason == found["overlap"].reason == ""


def test_the_interval_is_not_that_of_the_average() -> None:
    """The average's own interval, which speaks of the simulation alone, is the one to be replaced."""
    average = by_measure(average_each_series(rows()))["estimate"]
    assert (average.lower, average.upper) == pytest.approx(t.interval(0.95, 2, 4, (4 / 3) ** 0.5))
    assert by_measure(by_combining_rules(rows(), PARTIAL))["estimate"].upper != pytest.approx(average.upper)


def test_the_rule_follows_from_the_release_and_not_from_what_the_rows_name() -> None:
    found = by_measure(by_combining_rules(rows(synthesis="partial"), FULL))
    rule = combine_datasets(ESTIMATES, VARIANCES, FULL)
    assert (found["estimate"].lower, found["estimate"].upper) == pytest.approx(rule.interval(0.9))
    assert "T = k u + (1 + k) u/m" in found["estimate"].reason


def test_datasets_of_unequal_size_are_combined_by_the_sizes_of_those_that_have_an_estimate() -> None:
    """Of sizes 1/2, 3 and 2 the second has no estimate: V is (10/2 + 2 x 20) / 2, and drawing adds (15 + V) / 2."""
    made = rows((2.0, None, 2.5), (10.0, 15.0, 20.0))
    found = by_measure(by_combining_rules(made, replace(FULL, rows=(40, 240, 160))))
    variance = 22.5 + (15 + 22.5) / 2
    assert (found["estimate"].value, found["standard_error"].value) == (2.25, pytest.approx(variance**0.5))
    half = t.isf(0.05, 79) * variance**0.5
    assert (found["estimate"].lower, found["estimate"].upper) == pytest.approx((2.25 - half, 2.25 + half))


def test_an_estimate_that_the_models_do_not_keep_has_no_interval() -> None:
    """The confidential estimate is 9, which drawing three datasets around 4 with u = 2 does not explain."""
    for confidential, is_kept in ((6.0, True), (9.0, False)):
        baseline = [replace(row, baseline=confidential if row.measure == "estimate" else None) for row in rows()]
        found = by_measure(by_combining_rules(baseline, FULL))
        assert (found["estimate"].lower is not None) == is_kept
        assert (found["standard_error"].value is not None) == is_kept
        assert found["estimate"].value == 4.0
        for measure in ("estimate", "standard_error"):
            assert ("the models do not keep it" in found[measure].reason) == (not is_kept)


def test_datasets_that_share_an_error_have_no_interval_and_say_why() -> None:
    noisy = (StepProvenance(("price",), FitUncertainty("estimated", "noise was added to the tables once")),)
    found = by_measure(by_combining_rules(rows(), replace(FULL, steps=noisy)))
    assert (found["estimate"].value, found["estimate"].lower, found["estimate"].upper) == (4.0, None, None)
    assert found["standard_error"].status == "not computed"
    for measure in ("estimate", "standard_error"):
        assert (
            "no interval: noise was added to the tables once, so all datasets share this error" in found[measure].reason
        )


def test_an_estimate_of_all_datasets_stays_between_the_bounds_that_the_rows_give() -> None:
    """A mean of 4 between 0 and 8 with T = 2 + 4/3 and 12.5 degrees of freedom, on the log odds of 1/2."""
    bounds = [
        row(name, value, draw) for name, value in (("lower_bound", 0.0), ("upper_bound", 8.0)) for draw in (1, 2, 3)
    ]
    half = t.isf(0.05, 12.5) * (10 / 3) ** 0.5
    for given, ends in (
        ([], (4 - half, 4 + half)),
        (bounds[:3], (4 * np.exp(-half / 4), 4 * np.exp(half / 4))),
        (bounds[3:], (8 - 4 * np.exp(half / 4), 8 - 4 * np.exp(-half / 4))),
        (bounds, (8 * expit(-half / 2), 8 * expit(half / 2))),
    ):
        found = by_measure(by_combining_rules([*rows(), *given], PARTIAL))["estimate"]
        assert found.value == 4
        assert (found.lower, found.upper) == pytest.approx(ends)


def test_the_bounds_of_one_estimand_are_not_those_of_another() -> None:
    bounds = [row("upper_bound", 6.5, draw, estimand="quantile") for draw in (1, 2, 3)]
    found = by_measure(by_combining_rules([*rows(), *bounds], PARTIAL))["estimate"]
    assert found.upper == pytest.approx(by_measure(by_combining_rules(rows(), PARTIAL))["estimate"].upper)


def test_one_dataset_has_an_estimate_and_no_interval() -> None:
    found = by_measure(by_combining_rules(rows((2.0,), (1.0,)), replace(PARTIAL, rows=(80,))))
    assert (found["estimate"].value, found["estimate"].lower) == (2.0, None)
    assert (found["standard_error"].value, found["standard_error"].status) == (None, "not computed")
    for measure in ("estimate", "standard_error"):
        assert "one dataset alone" in found[measure].reason


def test_datasets_without_an_estimate_are_left_out_and_counted() -> None:
    found = by_measure(by_combining_rules(rows((2.0, None, 6.0)), PARTIAL))
    rule = combine_datasets([2.0, 6.0], [1.0, 3.0], replace(PARTIAL, rows=(80, 80)))
    assert (found["estimate"].lower, found["estimate"].upper) == pytest.approx(rule.interval(0.9))
    assert found["estimate"].reason.startswith("average over 2 of 3 datasets; the others: too few; interval by T")


def test_without_any_estimate_the_reason_stays() -> None:
    found = by_measure(by_combining_rules(rows((None, None, None)), PARTIAL))
    for measure in ("estimate", "standard_error"):
        assert (found[measure].value, found[measure].status, found[measure].reason) == (None, "not computed", "too few")


def test_estimands_are_combined_each_for_itself() -> None:
    both = [*rows(), *rows((10.0, 10.0, 10.0), estimand="median")]
    found = by_combining_rules(both, PARTIAL)
    assert [row.value for row in found if row.measure == "estimate"] == [4.0, 10.0]
    assert found == [
        *by_combining_rules(rows(), PARTIAL),
        *by_combining_rules(rows((10.0, 10.0, 10.0), estimand="median"), PARTIAL),
    ]


def test_methods_with_a_rule_use_it_and_the_others_are_averaged_in_the_rows_order() -> None:
    other = [replace(row, method="ecdf", measure="max_abs_difference") for row in rows() if row.measure == "overlap"]
    mixed = [row for pair in zip(other, by_draw(rows()), strict=True) for row in (pair[0], *pair[1])]
    found = combine_series(mixed, PARTIAL)
    assert found == [*average_each_series(other), *by_combining_rules(rows(), PARTIAL)]


def by_draw(every: list[Row]) -> list[list[Row]]:
    return [[row for row in every if row.draw == draw] for draw in (1, 2, 3)]


def test_datasets_of_other_kinds_and_levels_are_kept_apart() -> None:
    apart = [
        rows(),
        [replace(row, level=0.5) for row in rows()],
        [replace(row, dataset="anonymised") for row in rows()],
    ]
    found = combine_series([row for part in apart for row in part], PARTIAL)
    assert len(found) == 9
    assert {(row.dataset, row.level) for row in found} == {
        ("synthetic", None),
        ("synthetic", 0.5),
        ("anonymised", None),
    }
    assert len({row.upper for row in found if row.measure == "estimate"}) == 1


def test_stored_rows_are_combined_alike() -> None:
    stored = [Row(**json.loads(json.dumps(row.to_dict()))) for row in rows()]
    assert combine_series(stored, PARTIAL) == combine_series(rows(), PARTIAL)


def test_series_come_in_the_order_of_their_first_row() -> None:
    assert [[row.draw for row in group] for group in group_by_series(rows())] == [[1, 2, 3]] * 3
    assert [group[0].measure for group in group_by_series(rows())] == ["estimate", "standard_error", "overlap"]


@pytest.mark.parametrize("key", ["risk.identification", "risk.attribute", "risk.uniqueness"])
def test_the_interval_of_a_number_of_records_ends_at_all_of_them(
    key: str, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    found = find_method(key, "")
    step = {"method": key} if key == "risk.uniqueness" else {"method": key, "radius": {"income": "900%", "visits": 60}}
    recipe = small_recipe(measure=[step], threshold=[], release={"m": 2, "seed": 1})
    counted = {output.name for output in found.outputs if output.unit == "records"}
    rows = [
        r
        for r in execute_run(recipe, small_data, key=PUBLIC).rows
        if r.measure in counted and r.draw is None and r.upper is not None
    ]
    assert rows
    for row in rows:
        assert 0 <= row.lower <= row.value <= row.upper <= len(small_data)
    like = replace(rows[0], draw=1, lower=None, upper=None)
    draws = [replace(like, draw=draw, value=value) for draw, value in ((1, 1.0), (2, 79.0))]
    assert (average_each_series(draws, 80)[0].upper or 0) <= 80 < (average_each_series(draws)[0].upper or 0), (
        "else it leaves the range"
    )
