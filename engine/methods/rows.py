"""Result rows: one number each, as stored, displayed and written to JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from ..data.intervals import UNBOUNDED, Range, intersect_ranges
from ..data.provenance import ReleaseProvenance
from .registry import Method, output_by_key
from .results import Estimate
from .spec import to_plain_value

Status = Literal["computed", "not computed"]
UNIT_SIZE = "unit_size"
"""The parameter of rows about the units of one size, which explain the row of all units and decide nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """One number of a run.

    ``draw`` is None for the average over the m datasets, and for the number of the confidential data.
    """

    family: str
    method: str
    measure: str
    target: str
    dataset: str
    draw: int | None
    level: float | None
    value: float | None
    lower: float | None = None
    upper: float | None = None
    baseline: float | None = None
    unit: str = ""
    status: Status = "computed"
    reason: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return ``family.method.measure``."""
        return f"{self.family}.{self.method}.{self.measure}"

    @property
    def method_key(self) -> str:
        """Return ``family.method``."""
        return f"{self.family}.{self.method}"

    @property
    def is_of_one_size(self) -> bool:
        """Return whether the row is about the units of one size alone, beside a row of all units."""
        return UNIT_SIZE in self.params

    @property
    def series(self) -> tuple[str, str, str, float | None]:
        """Return the identity of the row's series: key, target, all ``params`` as JSON, and level.

        Rows of one series differ in dataset and draw alone.
        """
        # Sorted JSON, because params are not hashable and the order of their keys means nothing.
        return self.key, self.target, json.dumps(self.params, sort_keys=True), self.level

    def to_dict(self) -> dict[str, Any]:
        """Return the row as a dictionary for JSON."""
        return {name: getattr(self, name) for name in _NAMES} | {"params": dict(self.params)}


_NAMES = tuple(one.name for one in fields(Row))


def row_from_estimate(
    method: Method,
    estimate: Estimate,
    dataset: str,
    draw: int | None,
    level: float | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Row:
    """Create the row of an estimate of a method on one dataset; a value that is not finite counts as not computed.

    ``settings`` are those of the step (``Spec.settings``).
    """
    value = _none_if_not_finite(estimate.value)
    unit = estimate.unit or method.output(estimate.measure).unit
    return Row(
        method.family,
        method.name,
        estimate.measure,
        estimate.target,
        dataset,
        draw,
        level,
        value,
        None if value is None else _none_if_not_finite(estimate.lower),
        None if value is None else _none_if_not_finite(estimate.upper),
        _none_if_not_finite(estimate.baseline),
        unit,
        "not computed" if value is None else "computed",
        estimate.reason or ("" if value is not None else "the result is not a finite number"),
        row_params(method, {key: to_plain_value(value) for key, value in estimate.params.items()}, settings or {}),
    )


def row_params(method: Method, own: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a row: what distinguishes it from others of its step, and the step's settings
    (``Spec.settings``).

    A setting with the name of one of its own parameters is written as ``name.setting``.
    """
    # Prefixed, so that neither hides the other.
    named = {f"{method.name}.{key}" if own.get(key, value) != value else key: value for key, value in settings.items()}
    return {**named, **own}


def may_come_from_step(method: Method, params: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Return whether a row of these parameters may come from a step of the method with these settings."""
    return all(value in (params.get(key), params.get(f"{method.name}.{key}")) for key, value in settings.items())


def _none_if_not_finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def group_by_series(rows: Iterable[Row]) -> list[list[Row]]:
    """Group rows that share a series, groups and rows in the order in which they come."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(row.series, []).append(row)
    return list(groups.values())


def average_each_series(rows: Sequence[Row], records: int | None = None) -> list[Row]:
    """Average the rows of every series: the default way to combine datasets.

    ``records`` is the number of confidential records.
    """
    return [average_series(group, records) for group in group_by_series(rows)]


def average_series(rows: Sequence[Row], records: int | None = None, bounds: Range = UNBOUNDED) -> Row:
    """Average the rows of one series over the datasets, with a 95 % Monte Carlo interval inside the range of the
    measure.

    ``bounds`` are those of the variable. A count of records is at most ``records``. Datasets without a value are left
    out; the reason tells how many and why.
    """
    # Imported late: it loads SciPy.
    from ..statistics.combining import monte_carlo_mean

    computed = [row for row in rows if row.value is not None]
    first = replace(rows[0], draw=None, lower=None, upper=None)
    if not computed:
        return first
    values = [row.value for row in computed if row.value is not None]
    # A synthetic release may have more records than the data, so its largest count widens the range.
    # There are no more units than records.
    is_count = first.unit in ("records", "units")
    counted = (None, max(records, *values)) if records is not None and is_count else UNBOUNDED
    within = intersect_ranges(intersect_ranges(_range_of_measure(first), bounds), counted)
    mean, lower, upper = monte_carlo_mean(values, within=within)
    baselines = [row.baseline for row in computed if row.baseline is not None]
    return replace(
        first,
        value=mean,
        lower=lower,
        upper=upper,
        # Clipped, because the mean of equal baselines can differ from them by rounding.
        baseline=min(max(math.fsum(baselines) / len(baselines), min(baselines)), max(baselines)) if baselines else None,
        status="computed",
        reason=_incomplete_reason(rows, computed),
    )


def average_with_intervals(rows: Sequence[Row], provenance: ReleaseProvenance) -> list[Row]:
    """Average the values of every series, and the intervals of its datasets where each has one and not all are exact.

    Other series have the interval of ``average_series``.
    """
    found = []
    for group in group_by_series(rows):
        row, computed = average_series(group, provenance.records), [one for one in group if one.value is not None]
        ends = [(one.lower, one.upper) for one in computed if one.lower is not None and one.upper is not None]
        if row.value is not None and len(ends) == len(computed) and not all(map(is_exact, computed)):
            # Right where one sample examines all datasets; too wide, so on the safe side, where each dataset has its
            # own.
            low, high = (math.fsum(end) / len(ends) for end in zip(*ends, strict=True))
            row = replace(row, lower=min(low, row.value), upper=max(high, row.value))
        found.append(row)
    return found


def is_exact(row: Row) -> bool:
    """Return whether a row has an interval of zero width: the output may rest on samples, but this value does not."""
    return row.value is not None and row.lower == row.value == row.upper


def exact_series(rows: Iterable[Row]) -> set[tuple[Any, ...]]:
    """Return the (series, dataset) pairs whose rows are all exact."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault((row.series, row.dataset), []).append(row)
    # An average has a Monte Carlo interval, so it is judged by the rows of its datasets.
    alone = {key: [one for one in own if one.draw is not None] or own for key, own in found.items()}
    return {
        key
        for key, own in alone.items()
        if any(one.value is not None for one in own) and all(is_exact(one) for one in own if one.value is not None)
    }


def _range_of_measure(row: Row) -> Range:
    """Return the range of the row's measure; without ends where this version does not have the method or the measure."""
    output = output_by_key(row.key)
    return UNBOUNDED if output is None else output.range


def _incomplete_reason(rows: Sequence[Row], computed: Sequence[Row]) -> str:
    """Return the common reason of the rows, or how many datasets the average covers and why the others have no value."""
    if len(computed) == len(rows):
        if len({row.reason for row in computed}) == 1:
            return computed[0].reason
        first = next(row for row in computed if row.reason)
        return f"dataset {first.draw}: {first.reason}"
    why = next(row.reason for row in rows if row.value is None)
    return f"average over {len(computed)} of {len(rows)} datasets; the others: {why}"


def with_confidential_baseline(rows: Iterable[Row]) -> list[Row]:
    """Return the rows, each row of a release without a baseline completed by the confidential data's value."""
    kept = list(rows)
    own = {row.series: row.value for row in kept if row.dataset == "confidential"}
    return [
        replace(row, baseline=own[row.series])
        if row.dataset != "confidential" and row.baseline is None and own.get(row.series) is not None
        else row
        for row in kept
    ]
