from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from sfumato.engine.methods.registry import find_method
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.rows import Row, average_series, row_from_estimate, with_confidential_baseline

ECDF = find_method("utility.ecdf", "")
SUMMARY = find_method("utility.summary", "")


def row(value: float | None, draw: int | None = 1, **changes: object) -> Row:
    plain = Row("risk", "identification", "unique_matches", "", "synthetic", draw, None, value)
    if value is None:
        plain = replace(plain, status="not computed", reason="no unique match")
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_an_estimate_becomes_a_row_of_plain_values() -> None:
    estimate = Estimate(
        "max_abs_difference", np.float64(0.25), "price", baseline=np.float64(0.01), params={"known": ("a", "b")}
    )
    found = row_from_estimate(ECDF, estimate, "synthetic", 3, 0.5)
    assert found.key == "utility.ecdf.max_abs_difference"
    assert type(found.value) is float
    assert json.loads(json.dumps(found.to_dict())) == {
        "family": "utility", "method": "ecdf", "measure": "max_abs_difference", "target": "price",
        "dataset": "synthetic", "draw": 3, "level": 0.5, "value": 0.25, "lower": None, "upper": None,
        "baseline": 0.01, "unit": "", "status": "computed", "reason": "", "params": {"known": ["a", "b"]},
    }  # fmt: skip


def test_the_unit_is_the_estimates_or_else_the_declared_one() -> None:
    share = Estimate("share", 0.5, "room", params={"level": "flat"})
    assert row_from_estimate(SUMMARY, share, "synthetic", 1).unit == "share"
    assert row_from_estimate(SUMMARY, replace(share, unit="%"), "synthetic", 1).unit == "%"


def test_what_was_not_computed_says_why() -> None:
    found = row_from_estimate(ECDF, Estimate.not_computed("max_abs_difference", "no records", "price"), "synthetic", 1)
    assert (found.value, found.status, found.reason) == (None, "not computed", "no records")


def test_an_undeclared_measure_is_an_error() -> None:
    with pytest.raises(KeyError):
        row_from_estimate(ECDF, Estimate("maximum", 1.0), "synthetic", 1)


def test_the_average_has_its_monte_carlo_interval() -> None:
    values = [3.0, 5.0, 10.0]
    rows = [row(value, draw, baseline=draw * 1.0) for draw, value in enumerate(values, start=1)]
    error = np.std(values, ddof=1) / np.sqrt(3)
    found = average_series([replace(row, family="utility", method="summary", measure="mean") for row in rows])
    assert (found.draw, found.value, found.baseline) == (None, 6.0, 2.0)
    assert (found.lower, found.upper) == pytest.approx(t.interval(0.95, 2, 6, error))


def test_the_interval_of_an_average_stays_inside_the_range_of_its_measure() -> None:
    """A number of records on the log scale; 3, 5 and 10 would otherwise have the interval -2.96 to 14.96."""
    values = [3.0, 5.0, 10.0]
    found = average_series([row(value, draw) for draw, value in enumerate(values, start=1)])
    factor = np.exp(t.isf(0.025, 2) * np.std(values, ddof=1) / np.sqrt(3) / 6)
    assert (found.value, found.lower, found.upper) == pytest.approx((6, 6 / factor, 6 * factor))


def test_an_average_of_a_measure_that_nobody_declares_has_the_interval_of_student() -> None:
    rows = [replace(row(value, draw), method="of_another_version") for draw, value in enumerate((1.0, 3.0), start=1)]
    found = average_series(rows)
    assert (found.lower, found.upper) == pytest.approx(t.interval(0.95, 1, 2, 1))


def test_one_dataset_has_no_interval() -> None:
    found = average_series([row(4.0, lower=3.0, upper=5.0)])
    assert (found.value, found.lower, found.upper) == (4.0, None, None)


@pytest.mark.parametrize(
    ("values", "mean", "status", "reason"),
    [
        ([None, None], None, "not computed", "no unique match"),
        ([None, 2.0, 4.0], 3.0, "computed", "average over 2 of 3 datasets; the others: no unique match"),
        ([2.0, 4.0], 3.0, "computed", ""),
    ],
)
def test_datasets_without_a_value_are_left_out_and_counted(
    values: list[float | None], mean: float | None, status: str, reason: str
) -> None:
    found = average_series([row(value, draw) for draw, value in enumerate(values, start=1)])
    assert (found.value, found.status, found.reason) == (mean, status, reason)


def test_the_confidential_value_is_the_baseline_of_what_has_none() -> None:
    own = row(9.0, None, dataset="confidential")
    rows = [own, row(1.0), row(2.0, baseline=5.0), row(3.0, level=0.1), row(4.0, params={"radius": 5})]
    found = with_confidential_baseline(iter(rows))
    assert [r.baseline for r in found] == [None, 9.0, 5.0, None, None]
    assert rows[1].baseline is None


def test_a_confidential_value_that_was_not_computed_is_no_baseline() -> None:
    found = with_confidential_baseline([row(None, None, dataset="confidential"), row(1.0)])
    assert found[1].baseline is None


def test_rows_of_one_series_differ_in_dataset_and_draw_only() -> None:
    assert row(1.0, 1).series == row(2.0, None, dataset="confidential").series
    assert row(1.0, params={"a": 1, "b": 2}).series == row(1.0, params={"b": 2, "a": 1}).series
    for changes in ({"target": "price"}, {"level": 0.1}, {"params": {"a": 1}}, {"measure": "other"}):
        assert row(1.0, **changes).series != row(1.0).series


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_not_finite_is_not_computed(value: float) -> None:
    found = row_from_estimate(ECDF, Estimate("max_abs_difference", value, lower=0.0, upper=value), "synthetic", 1)
    assert (found.value, found.lower, found.upper, found.status) == (None, None, None, "not computed")
    assert found.reason == "the result is not a finite number"


def test_a_study_at_no_uncertainty_has_the_interval_of_the_risk_for_units_too() -> None:
    from sfumato.engine.data.provenance import ReleaseProvenance
    from sfumato.engine.studies.intruder_uncertainty import combine_layouts

    values = [147.0, 135.0, 116.0, 108.0, 53.0]
    for unit in ("records", "units"):
        rows = [row(value, draw, unit=unit, params={"by": "unit"}) for draw, value in enumerate(values, start=1)]
        found = average_series(rows, 400)
        of_study = [replace(one, family="studies", method="intruder_uncertainty", level=0.0) for one in rows]
        (study,) = combine_layouts(of_study, ReleaseProvenance("synthetic", 400, (400,) * 5, (), ()))
        assert found.upper is not None
        assert found.upper < 400
        assert (study.value, study.lower, study.upper) == (found.value, found.lower, found.upper)
