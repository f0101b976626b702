"""The combining rules of synthetic data, applied to result rows.

For methods whose rows hold, for each estimand and dataset, an ``estimate`` and its ``standard_error``, with ``synthesis``
("partial" or "full") and ``confidence`` among their params; other measures are averaged. Intermediate outputs say the rest:
``lower_bound`` and ``upper_bound`` of an estimand, where it has them, and the ``size_ratio`` n_l / n of each dataset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .rows import Row, average, by_series
from .statistics.bounded_interval import Range
from .statistics.combining import Combined, full_synthesis, partial_synthesis

__all__ = ["by_combining_rules"]

ONE_DATASET = "one dataset alone does not show how much datasets differ, which the interval of the combination needs"
ADJUSTED = (
    "the variance of full synthesis came out negative, or with less than one degree of freedom; it is the adjusted one, "
    "the mean over the datasets of (n_syn / n) times the variance (Reiter 2002)"
)

Estimand = tuple[Any, ...]
"""What the rows of an estimand share: target, parameters and level."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The values of single datasets by estimand, measure and dataset, and the size ratio of each dataset."""

    values: Mapping[tuple[Estimand, str], Mapping[int | None, float]]
    size_ratios: Mapping[int | None, float]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> _Rows:
        values: dict[tuple[Estimand, str], dict[int | None, float]] = {}
        ratios: dict[int | None, float] = {}
        for row in rows:
            if row.value is not None and row.measure == "size_ratio":
                ratios[row.draw] = row.value
            elif row.value is not None:
                values.setdefault((row.series[1:], row.measure), {})[row.draw] = row.value
        return cls(values, ratios)

    def of_estimand(self, estimand: Estimand, measure: str) -> Mapping[int | None, float]:
        """The values of a measure by dataset."""
        return self.values.get((estimand, measure), {})

    def range(self, estimand: Estimand) -> Range:
        """The bounds that the rows give, None where there is none."""
        lower, upper = (self.of_estimand(estimand, name).values() for name in ("lower_bound", "upper_bound"))
        return min(lower, default=None), max(upper, default=None)

    def combined(self, row: Row) -> Combined:
        """The estimates of the row's estimand on all datasets, by the rule that it names."""
        estimates, errors = (self.of_estimand(row.series[1:], name) for name in ("estimate", "standard_error"))
        variances = [error**2 for error in errors.values()]
        if row.params["synthesis"] == "partial":
            return partial_synthesis(list(estimates.values()), variances)
        ratios = [self.size_ratios.get(draw, 1.0) for draw in estimates]
        return full_synthesis(list(estimates.values()), variances, ratios)


def by_combining_rules(rows: Sequence[Row]) -> list[Row]:
    """The rows that combine m datasets, one for each series of ``rows`` (a method's, of one dataset and level)."""
    found = _Rows.of(rows)
    return [
        _combined(row, found) if row.measure in ("estimate", "standard_error") and row.value is not None else row
        for row in map(average, by_series(rows))
    ]


def _combined(row: Row, rows: _Rows) -> Row:
    """The average ``row`` of estimates or of standard errors, with what the rule says in its place."""
    if len(rows.of_estimand(row.series[1:], "estimate")) < 2:
        kept = replace(row, lower=None, upper=None, reason=_joined(row.reason, ONE_DATASET))
        return kept if row.measure == "estimate" else replace(kept, value=None, status="not computed")
    found = rows.combined(row)
    reason = _joined(row.reason, ADJUSTED if found.adjusted else "")
    if row.measure == "standard_error":
        return replace(row, value=found.variance**0.5, lower=None, upper=None, reason=reason)
    lower, upper = found.interval(row.params["confidence"], rows.range(row.series[1:]))
    return replace(row, value=found.estimate, lower=lower, upper=upper, reason=reason)


def _joined(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))
