"""Comparison of two runs: the same numbers of their releases, which is better, and whether they can be distinguished."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ..methods.registry import method_by_key, output_by_key
from ..methods.results import Goal
from ..methods.rows import Row
from ..recipe.thresholds import Verdict

BetterRun = Literal["first", "second"]
ROUNDING = 1e-12
OF_ALL_TOGETHER = "it speaks of all datasets together, so no spread of theirs gives it an interval"
OWN_RULE = "the method combines its datasets by a rule of its own, so their spread is not that of this value"


@dataclass(frozen=True, slots=True)
class RunValue:
    """Value of a compared number in one run: that of its release, and those of its datasets in order.

    ``confidential`` is the same number of the confidential data themselves, if there is one.
    """

    value: float | None
    lower: float | None
    upper: float | None
    baseline: float | None
    confidential: float | None
    draws: tuple[float, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class ComparedNumber:
    """Number of two runs' releases; a side is None where that run has no such number.

    ``difference`` is second minus first, ``lower`` and ``upper`` its 95 % Monte Carlo interval (Welch, on the values of
    the datasets) for the difference between all datasets that the two runs' models could draw. ``reason`` says why
    there is no interval.
    """

    key: str
    target: str
    params: Mapping[str, Any]
    level: float | None
    unit: str
    goal: Goal
    first: RunValue | None
    second: RunValue | None
    difference: float | None = None
    lower: float | None = None
    upper: float | None = None
    reason: str = ""

    @property
    def distinguishable(self) -> bool | None:
        """Return whether the interval excludes 0; None without an interval."""
        if self.lower is None or self.upper is None:
            return None
        return not self.lower <= 0 <= self.upper

    @property
    def better_run(self) -> BetterRun | None:
        """Return the run whose value is better by the measure's goal, even if by chance; None where neither is."""
        if not self.difference or self.goal == "none":
            return None
        if self.goal == "one":
            return self._nearer_to_one()
        return "second" if (self.difference < 0) == (self.goal == "low") else "first"

    def _nearer_to_one(self) -> BetterRun | None:
        """Return the run whose value is nearer to 1; None where both are as near."""
        first, second = (distance_from_one(side.value) for side in (self.first, self.second) if side)
        if math.isclose(first, second, rel_tol=ROUNDING):
            return None
        return "second" if second < first else "first"

    @property
    def confidential_value(self) -> float | None:
        """Return the confidential data's own value where the runs agree on it, or only one has it."""
        values = {side.confidential for side in (self.first, self.second) if side and side.confidential is not None}
        return next(iter(values)) if len(values) == 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as a table for JSON."""
        return {
            "value": self.key,
            "target": self.target,
            "params": dict(self.params),
            "level": self.level,
            "unit": self.unit,
            "goal": self.goal,
            "confidential": self.confidential_value,
            "first": _run_value_to_dict(self.first),
            "second": _run_value_to_dict(self.second),
            "difference": self.difference,
            "lower": self.lower,
            "upper": self.upper,
            "distinguishable": self.distinguishable,
            "better": self.better_run,
            "reason": self.reason,
        }


def as_cost(value: float, goal: str) -> float:
    """Return a value such that lower is better: itself, its negative, or its distance from 1."""
    if goal == "one":
        return distance_from_one(value)
    return value if goal == "low" else -value


def distance_from_one(ratio: float | None) -> float:
    """Return the distance of a ratio of at least 0 from 1 on the log scale, by which 2 and 1/2 are equally far.

    Infinite for 0.
    """
    return abs(math.log(ratio)) if ratio else math.inf


def _run_value_to_dict(side: RunValue | None) -> dict[str, Any] | None:
    """Return one side as a table for JSON."""
    if side is None:
        return None
    return {
        "value": side.value,
        "lower": side.lower,
        "upper": side.upper,
        "baseline": side.baseline,
        "confidential": side.confidential,
        "datasets": len(side.draws),
        "reason": side.reason,
    }


def goal_of(row: Row) -> Goal:
    """Return the goal of the row's measure; "none" where this version lacks the method or the measure."""
    output = output_by_key(row.key)
    return "none" if output is None else output.goal


def compare_rows(
    first: Sequence[Row], second: Sequence[Row], goal: Callable[[Row], Goal] = goal_of
) -> tuple[ComparedNumber, ...]:
    """Compare the numbers of two runs' releases, joined on key, target, parameters and level.

    A parameter that lists variables matches in any order; one that only filters rows (``Param.filters_rows``) need not
    match. Numbers of the first run come first, in their order, then those of the second alone.
    """
    # Welch's interval takes the datasets of the runs to be independent; two runs with one seed share random numbers,
    # and the interval is then rather too wide than too narrow.
    sides = _run_values(first), _run_values(second)
    keys = dict.fromkeys([*sides[0], *sides[1]])
    return tuple(_compare_values(sides[0].get(key), sides[1].get(key), goal) for key in keys)


HeadAndValue = tuple[Row, RunValue]


def _run_values(rows: Sequence[Row]) -> dict[tuple[str, ...], HeadAndValue]:
    """Return the values of a run by the key that joins them to the other run's."""
    own: dict[tuple[str, ...], float | None] = {}
    heads: dict[tuple[str, ...], Row] = {}
    draws: dict[tuple[str, ...], dict[int, float]] = {}
    joined = _join_keys(rows)
    for row in rows:
        key = joined[row.series]
        if row.dataset == "confidential":
            own[key] = row.value
        elif row.draw is None:
            heads[key] = row
        elif row.value is not None:
            draws.setdefault(key, {})[row.draw] = row.value
    return {key: (row, _run_value(row, own.get(key), draws.get(key, {}))) for key, row in heads.items()}


def _run_value(row: Row, confidential: float | None, draws: Mapping[int, float]) -> RunValue:
    values = tuple(value for _, value in sorted(draws.items()))
    return RunValue(row.value, row.lower, row.upper, row.baseline, confidential, values, row.reason)


def _join_keys(rows: Sequence[Row]) -> dict[tuple[Any, ...], tuple[str, ...]]:
    """Return the join key of each series."""
    series = {row.series: row for row in rows}
    plain = {name: _join_key(row, filter_settings(row.method_key)) for name, row in series.items()}
    shared = Counter(plain.values())
    # Filter settings are left out, unless two series of the run would then share a key.
    return {name: key if shared[key] == 1 else _join_key(series[name], ()) for name, key in plain.items()}


@cache
def filter_settings(key: str) -> tuple[str, ...]:
    """Return the settings of a method that only filter which rows there are, and do not change how they are computed."""
    method = method_by_key(key)
    return () if method is None else tuple(info.name for info in method.spec.params() if info.param.filters_rows)


def _join_key(row: Row, left_out: Sequence[str]) -> tuple[str, ...]:
    return row.key, row.target, _normalised_params(row.params, left_out), str(row.level)


def _normalised_params(params: Mapping[str, Any], left_out: Sequence[str]) -> str:
    kept = {key: _sorted_list(value) for key, value in params.items() if key not in left_out}
    return json.dumps(kept, sort_keys=True)


def _sorted_list(value: object) -> object:
    return sorted(value, key=json.dumps) if isinstance(value, (list, tuple)) else value


def _compare_values(
    first: HeadAndValue | None, second: HeadAndValue | None, goal: Callable[[Row], Goal]
) -> ComparedNumber:
    """Return the comparison of one number, of which one side may be missing."""
    row = first[0] if first else second[0] if second else None
    assert row is not None
    sides = first[1] if first else None, second[1] if second else None
    head = (row.key, row.target, row.params, row.level, row.unit, goal(row), *sides)
    return ComparedNumber(*head, *_difference_with_interval(*sides))


def _difference_with_interval(
    first: RunValue | None, second: RunValue | None
) -> tuple[float | None, float | None, float | None, str]:
    """Return the difference, its interval, and the reason why one of them is missing."""
    if first is None or second is None:
        return None, None, None, ""
    if first.value is None or second.value is None:
        return None, None, None, first.reason if first.value is None else second.reason
    alike = math.isclose(first.value, second.value, rel_tol=ROUNDING)
    difference = 0.0 if alike else second.value - first.value
    if not (_is_average(first) and _is_average(second)):
        return difference, None, None, OWN_RULE
    if not (first.draws or second.draws):
        return difference, None, None, OF_ALL_TOGETHER
    half = welch_half_width(first.draws, second.draws)
    if half is None:
        return difference, None, None, "an interval needs at least two datasets of each run"
    return difference, difference - half, difference + half, ""


def _is_average(side: RunValue) -> bool:
    """Return whether the value is the mean of the datasets' values, or there are no such values."""
    if not side.draws or side.value is None:
        return True
    scale = max(abs(value) for value in side.draws)
    return math.isclose(side.value, math.fsum(side.draws) / len(side.draws), rel_tol=1e-9, abs_tol=1e-9 * scale)


@dataclass(frozen=True, slots=True)
class ComparedVerdict:
    """Verdicts of two runs on one threshold; a side is None where that run lacks it, and limits may differ."""

    value: str
    target: str
    level: float | None
    bound: str
    params: Mapping[str, Any] | None
    first: Verdict | None
    second: Verdict | None

    @property
    def key(self) -> str:
        """Return the key of the measure, as a row has it."""
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Return both verdicts as a table for JSON."""
        return {
            "first": self.first.to_dict() if self.first else None,
            "second": self.second.to_dict() if self.second else None,
        }


def compare_verdicts(first: Sequence[Verdict], second: Sequence[Verdict]) -> tuple[ComparedVerdict, ...]:
    """Compare the verdicts of two runs, joined on value, target, level, bound and parameters, whatever the limit.

    Where a run has several such thresholds, they are joined in their order.
    """
    sides = [_by_threshold(verdicts) for verdicts in (first, second)]
    found = []
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        one, two = sides[0].get(key), sides[1].get(key)
        head = one or two
        assert head is not None
        found.append(ComparedVerdict(head.value, head.target, head.level, head.bound, head.params, one, two))
    return tuple(found)


def _by_threshold(verdicts: Sequence[Verdict]) -> dict[tuple[tuple[str, ...], int], Verdict]:
    keys = [_threshold_key(verdict) for verdict in verdicts]
    return {(key, keys[:i].count(key)): verdict for i, (key, verdict) in enumerate(zip(keys, verdicts, strict=True))}


def _threshold_key(verdict: Verdict) -> tuple[str, ...]:
    params = _normalised_params(verdict.params or {}, filter_settings(verdict.value.rpartition(".")[0]))
    return verdict.value, verdict.target, str(verdict.level), verdict.bound, params


def welch_half_width(first: Sequence[float], second: Sequence[float], confidence: float = 0.95) -> float | None:
    """Return half the width of Welch's t interval for the difference of the means of two samples (Welch 1947,
    Biometrika 34).

    Returns None where a sample has fewer than two values.
    """
    import numpy as np
    from scipy.special import stdtrit

    from ..statistics.columns import column_scales

    if len(first) < 2 or len(second) < 2:
        return None
    # exactly 0 for equal values, where subtracting a rounded mean would leave a trace
    # Squares of the values themselves may overflow.
    scale = float(column_scales(np.array([*first, *second])))
    variances = [
        0.0 if min(own) == max(own) else float(np.var(np.asarray(own) / scale, ddof=1)) for own in (first, second)
    ]
    shares = np.array([variance / len(own) for variance, own in zip(variances, (first, second), strict=True)])
    total = float(shares.sum())
    if total == 0:
        return 0.0
    weights = shares / total
    # Satterthwaite's degrees of freedom.
    freedom = 1 / float(np.sum(weights**2 / [len(first) - 1, len(second) - 1]))
    # The special function alone: importing scipy.stats takes half a second, in which Compare would stay empty, and
    # ttest_ind warns of, or has no interval for, datasets whose values are all equal. A test compares both.
    return float(stdtrit(freedom, (1 + confidence) / 2) * np.sqrt(total)) * scale
