"""Combining rules of synthetic data, and averages of quantities within the bounds of a variable, on result rows.

``by_combining_rules`` is for methods with rows of an ``estimate`` and its ``standard_error`` for each estimand and
dataset, whose params have ``synthesis`` ("partial" or "full") and ``confidence``; other measures are averaged.
Intermediate outputs supply the rest, in rows that share target, params and level: the ``size_ratio`` n_l / n of each
dataset, ``lower_bound`` and ``upper_bound`` of a bounded quantity, and the ``design_degrees`` of a survey estimate's
variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.intervals import Range
from ..methods.outputs import Output
from ..methods.results import Estimate
from ..methods.rows import Row, average_each_series, average_series, group_by_series
from ..statistics.columns import column_scales
from ..statistics.combining import CombinedEstimate, combine_full_synthesis, combine_partial_synthesis

BOUNDS = (
    Output("lower_bound", "smallest value that what has these parameters can have", "none", intermediate=True),
    Output("upper_bound", "largest value that what has these parameters can have", "none", intermediate=True),
)

DEGREES = Output(
    "design_degrees", "degrees of freedom of the variance of one dataset's estimate", "none", intermediate=True
)

ONE_DATASET = "one dataset alone does not show how much datasets differ, which the interval of the combination needs"
ADJUSTED = (
    "the variance of full synthesis came out negative, or with less than one degree of freedom; it is the adjusted one, "
    "the mean over the datasets of (n_syn / n) times the variance (Reiter 2002)"
)

Estimand = tuple[Any, ...]
"""What the rows of an estimand share: target, parameters and level."""


@dataclass(frozen=True, slots=True)
class _EstimatesByDataset:
    """Values of single datasets by estimand, measure and dataset, and the size ratio of each dataset."""

    values: Mapping[tuple[Estimand, str], Mapping[int | None, float]]
    size_ratios: Mapping[int | None, float]

    @classmethod
    def from_rows(cls, rows: Sequence[Row]) -> _EstimatesByDataset:
        """Create the collection from rows of single datasets."""
        values: dict[tuple[Estimand, str], dict[int | None, float]] = {}
        ratios: dict[int | None, float] = {}
        for row in rows:
            if row.value is not None and row.measure == "size_ratio":
                ratios[row.draw] = row.value
            elif row.value is not None:
                values.setdefault((row.series[1:], row.measure), {})[row.draw] = row.value
        return cls(values, ratios)

    def values_of(self, estimand: Estimand, measure: str) -> Mapping[int | None, float]:
        """Return the values of a measure by dataset."""
        return self.values.get((estimand, measure), {})

    def bounds_of(self, estimand: Estimand) -> Range:
        """Return the bounds stated by the rows, None for a missing one."""
        lower, upper = (self.values_of(estimand, output.name).values() for output in BOUNDS)
        return min(lower, default=None), max(upper, default=None)

    def combine(self, row: Row) -> tuple[CombinedEstimate, float]:
        """Return the combined estimate of the row's estimand by the rule that it names, and its unit."""
        estimates, errors = (self.values_of(row.series[1:], name) for name in ("estimate", "standard_error"))
        # A power of two near the values, so that no square leaves the range of floating-point numbers.
        unit = float(column_scales(np.array([*estimates.values(), *errors.values()])))
        values = [value / unit for value in estimates.values()]
        variances = [(error / unit) ** 2 for error in errors.values()]
        degrees = min(self.values_of(row.series[1:], DEGREES.name).values(), default=np.inf)
        if row.params["synthesis"] == "partial":
            return combine_partial_synthesis(values, variances, degrees), unit
        ratios = [self.size_ratios.get(draw, 1.0) for draw in estimates]
        return combine_full_synthesis(values, variances, ratios, degrees), unit


def stated_bounds(within: Range, target: str, params: Mapping[str, Any]) -> Iterator[Estimate]:
    """Yield the estimates of ``BOUNDS`` that state the range of a quantity with this target and these params."""
    for output, bound in zip(BOUNDS, within, strict=True):
        if bound is not None:
            yield Estimate(output.name, bound, target, params=params)


def average_within_bounds(rows: Sequence[Row], records: int | None = None) -> list[Row]:
    """Average the rows within the bounds that they state."""
    found = _EstimatesByDataset.from_rows(rows)
    return [average_series(group, records, found.bounds_of(group[0].series[1:])) for group in group_by_series(rows)]


def by_combining_rules(rows: Sequence[Row], records: int | None = None) -> list[Row]:
    """Return one row for each series of a method's ``rows`` of one dataset and level, combined by the combining rules."""
    found = _EstimatesByDataset.from_rows(rows)
    return [
        _apply_rule(row, found) if row.measure in ("estimate", "standard_error") and row.value is not None else row
        for row in average_each_series(rows, records)
    ]


def _apply_rule(row: Row, rows: _EstimatesByDataset) -> Row:
    """Return the averaged ``row`` of estimates or standard errors with the value by the rule."""
    if len(rows.values_of(row.series[1:], "estimate")) < 2:
        kept = replace(row, lower=None, upper=None, reason=_join_reasons(row.reason, ONE_DATASET))
        return kept if row.measure == "estimate" else replace(kept, value=None, status="not computed")
    found, unit = rows.combine(row)
    reason = _join_reasons(row.reason, ADJUSTED if found.is_adjusted else "")
    if row.measure == "standard_error":
        return replace(row, value=found.variance**0.5 * unit, lower=None, upper=None, reason=reason)
    low, high = rows.bounds_of(row.series[1:])
    within = (None if low is None else low / unit, None if high is None else high / unit)
    lower, upper = found.interval(row.params["confidence"], within)
    return replace(row, value=found.estimate * unit, lower=lower * unit, upper=upper * unit, reason=reason)


def _join_reasons(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))
