"""The combining rules of synthetic data, applied to result rows.

For methods whose rows hold, for each estimand and dataset, an ``estimate`` and its ``standard_error``, with ``synthesis``
("partial" or "full"), ``confidence`` and perhaps ``size_ratio`` (n_syn / n) among their params; other measures are averaged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .rows import Row, average, by_series
from .statistics.combining import Combined, full_synthesis, partial_synthesis

__all__ = ["by_combining_rules"]

ONE_DATASET = "one dataset alone does not show how much datasets differ, which the interval of the combination needs"
ADJUSTED = (
    "the variance of full synthesis came out negative, or with less than one degree of freedom; it is the adjusted one, "
    "(n_syn / n) times the mean variance (Reiter 2002)"
)


def by_combining_rules(rows: Sequence[Row]) -> list[Row]:
    """The rows that combine m datasets, one for each series of ``rows`` (a method's, of one dataset and level)."""
    values: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        if row.value is not None:
            values.setdefault((row.measure, *row.series[1:]), []).append(row.value)
    found = []
    for row in map(average, by_series(rows)):
        estimates, errors = (values.get((name, *row.series[1:]), []) for name in ("estimate", "standard_error"))
        ruled = row.measure in ("estimate", "standard_error") and row.value is not None
        found.append(_combined(row, estimates, [error**2 for error in errors]) if ruled else row)
    return found


def _combined(row: Row, estimates: Sequence[float], variances: Sequence[float]) -> Row:
    """The average ``row`` of estimates or of standard errors, with what the rule says in its place."""
    if len(estimates) < 2:
        kept = replace(row, lower=None, upper=None, reason=_joined(row.reason, ONE_DATASET))
        return kept if row.measure == "estimate" else replace(kept, value=None, status="not computed")
    found = _rule(row.params, estimates, variances)
    reason = _joined(row.reason, ADJUSTED if found.adjusted else "")
    if row.measure == "standard_error":
        return replace(row, value=found.variance**0.5, lower=None, upper=None, reason=reason)
    lower, upper = found.interval(row.params["confidence"])
    return replace(row, value=found.estimate, lower=lower, upper=upper, reason=reason)


def _rule(params: Mapping[str, Any], estimates: Sequence[float], variances: Sequence[float]) -> Combined:
    if params["synthesis"] == "partial":
        return partial_synthesis(estimates, variances)
    return full_synthesis(estimates, variances, params.get("size_ratio", 1.0))


def _joined(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))
