"""Combining rules of synthetic data, and averages of quantities within the bounds of a variable, on result rows.

``by_combining_rules`` is for methods with rows of an ``estimate`` and its ``standard_error`` for each estimand and
dataset, whose params have ``confidence``; other measures are averaged. The rule follows from how the release came about
(``sfumato.engine.statistics.combining``). Intermediate outputs supply the rest, in rows that share target, params and
level: ``lower_bound`` and ``upper_bound`` of a bounded quantity, and the ``design_degrees`` of a survey estimate's
variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.intervals import Range
from ..data.provenance import ReleaseProvenance
from ..errors import NotComputable
from ..methods.outputs import Output
from ..methods.results import Estimate
from ..methods.rows import Row, average_each_series, average_series, group_by_series
from ..statistics.columns import column_scales
from ..statistics.combining import CombinedEstimate, combine_datasets

BOUNDS = (
    Output("lower_bound", "smallest value that what has these parameters can have", "none", intermediate=True),
    Output("upper_bound", "largest value that what has these parameters can have", "none", intermediate=True),
)

DEGREES = Output(
    "design_degrees", "degrees of freedom of the variance of one dataset's estimate", "none", intermediate=True
)

RULE = "interval by {formula} with k = {ratio:.3g} rows for each record: {reason}"
OTHER_THAN_CONFIDENTIAL = "the models do not keep it: the released and the confidential estimate differ by more than drawing datasets explains"

Estimand = tuple[Any, ...]
"""What the rows of an estimand share: target, parameters and level."""


@dataclass(frozen=True, slots=True)
class _EstimatesByDataset:
    """Values of single datasets by estimand, measure and dataset."""

    values: Mapping[tuple[Estimand, str], Mapping[int | None, float]]

    @classmethod
    def from_rows(cls, rows: Sequence[Row]) -> _EstimatesByDataset:
        """Create the collection from rows of single datasets."""
        values: dict[tuple[Estimand, str], dict[int | None, float]] = {}
        for row in rows:
            if row.value is not None:
                values.setdefault((row.series[1:], row.measure), {})[row.draw] = row.value
        return cls(values)

    def values_of(self, estimand: Estimand, measure: str) -> Mapping[int | None, float]:
        """Return the values of a measure by dataset."""
        return self.values.get((estimand, measure), {})

    def bounds_of(self, estimand: Estimand) -> Range:
        """Return the bounds stated by the rows, None for a missing one."""
        lower, upper = (self.values_of(estimand, output.name).values() for output in BOUNDS)
        return min(lower, default=None), max(upper, default=None)

    def combine(self, row: Row, provenance: ReleaseProvenance) -> tuple[CombinedEstimate, float]:
        """Return the combined estimate of the row's estimand, and its unit.

        Raises NotComputable where no interval of it would cover, with the reason.
        """
        estimates, errors = (self.values_of(row.series[1:], name) for name in ("estimate", "standard_error"))
        # A power of two near the values, so that no square leaves the range of floating-point numbers.
        unit = float(column_scales(np.array([*estimates.values(), *errors.values()])))
        values = [value / unit for value in estimates.values()]
        variances = [(error / unit) ** 2 for error in errors.values()]
        degrees = min(self.values_of(row.series[1:], DEGREES.name).values(), default=np.inf)
        some = provenance.select_datasets([draw for draw in estimates if draw is not None])
        found = combine_datasets(values, variances, some, degrees)
        # The row of an estimate has the confidential one as its baseline.
        if row.measure == "estimate" and row.baseline is not None and found.differs_from(row.baseline / unit):
            raise NotComputable(OTHER_THAN_CONFIDENTIAL)
        return found, unit


def stated_bounds(within: Range, target: str, params: Mapping[str, Any]) -> Iterator[Estimate]:
    """Yield the estimates of ``BOUNDS`` that state the range of a quantity with this target and these params."""
    for output, bound in zip(BOUNDS, within, strict=True):
        if bound is not None:
            yield Estimate(output.name, bound, target, params=params)


def average_within_bounds(rows: Sequence[Row], provenance: ReleaseProvenance) -> list[Row]:
    """Average the rows within the bounds that they state."""
    found = _EstimatesByDataset.from_rows(rows)
    return [
        average_series(group, provenance.records, found.bounds_of(group[0].series[1:]))
        for group in group_by_series(rows)
    ]


def by_combining_rules(rows: Sequence[Row], provenance: ReleaseProvenance) -> list[Row]:
    """Return one row for each series of a method's ``rows`` of one dataset and level, combined by the rule for the
    release.
    """
    found, averages = _EstimatesByDataset.from_rows(rows), average_each_series(rows, provenance.records)
    estimates = {row.series[1:]: row for row in averages if row.measure == "estimate"}
    return [
        _apply_rule(row, estimates.get(row.series[1:], row), found, provenance)
        if row.measure in ("estimate", "standard_error") and row.value is not None
        else row
        for row in averages
    ]


def _apply_rule(row: Row, estimate: Row, rows: _EstimatesByDataset, provenance: ReleaseProvenance) -> Row:
    """Return the averaged ``row`` of estimates or standard errors with the value by the rule.

    ``estimate`` is the row of the same estimand's estimate.
    """
    try:
        found, unit = rows.combine(estimate, provenance)
    except NotComputable as error:
        kept = replace(row, lower=None, upper=None, reason=_join_reasons(row.reason, f"no interval: {error.reason}"))
        return kept if row.measure == "estimate" else replace(kept, value=None, status="not computed")
    if row.measure == "standard_error":
        return replace(row, value=found.variance**0.5 * unit, lower=None, upper=None)
    low, high = rows.bounds_of(row.series[1:])
    within = (None if low is None else low / unit, None if high is None else high / unit)
    lower, upper = found.interval(row.params["confidence"], within)
    ratio = float(np.mean(provenance.size_ratios))
    reason = _join_reasons(row.reason, RULE.format(formula=found.rule.formula, ratio=ratio, reason=found.rule.reason))
    return replace(row, value=found.estimate * unit, lower=lower * unit, upper=upper * unit, reason=reason)


def _join_reasons(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))
