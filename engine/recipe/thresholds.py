"""Thresholds of a recipe and their verdicts.

An exact value, a function of this release and these tables alone, is compared with the limit. An estimated one
(``Output.estimated``) is judged by its 95 % interval: met where all of it satisfies the limit, not met where none of it
does, undecided otherwise. An estimate that rests on no sample in this run, so that the interval of every dataset has no
width (``rows.is_exact``), is compared like an exact value. For a largest value allowed, the measure must also have had
a power of 80 % to find a leak above the limit (``Output.detectable``); otherwise the verdict is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from ..data.declaration import Param, Section
from ..data.intervals import Range
from ..data.schema import Schema
from ..errors import BadInput, near_miss_hint
from ..methods.outputs import Output
from ..methods.registry import Method, method_by_key, output_by_key
from ..methods.rows import UNIT_SIZE, exact_series
from ..methods.spec import to_plain_value
from ..statistics.comparing import distance_from_limit, is_above, is_below
from ..statistics.estimated import ValueWithInterval, difference_with_interval, ratio_with_interval, widen_for_series
from .outcomes import Outcome
from .published import includes_params

if TYPE_CHECKING:
    from ..methods.rows import Row

Bound = Literal["max", "min", "max_ratio", "max_increase"]
BOUNDS: tuple[Bound, ...] = get_args(Bound)


MeasuredSteps = Sequence[tuple[Method, Mapping[str, Any]]]
"""What a recipe measures: each step's method and settings (``Spec.settings``)."""
INSTEAD = "use max_increase in place of max_ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdTable(Section):
    """Table ``[[threshold]]`` as a recipe writes it, with the bound as the key of its limit."""

    value: Annotated[str, Param("the measure that must keep to the limit", always_written=True)] = ""
    target: Annotated[str, Param("the variable or constraint that it is about; left out, all")] = ""
    level: Annotated[float | None, Param("the level of a study that it is about; left out, all")] = None
    params: Annotated[Mapping[str, Any], Param("settings of the measures that it is about; left out, all")] = field(
        default_factory=dict
    )
    max: Annotated[float | None, Param("the largest value allowed")] = None
    min: Annotated[float | None, Param("the smallest value allowed")] = None
    max_ratio: Annotated[
        float | None, Param("the largest ratio allowed to the value of the confidential data, or to the baseline")
    ] = None
    max_increase: Annotated[
        float | None, Param("the most that the value may exceed that of the confidential data, or the baseline")
    ] = None


@dataclass(frozen=True, slots=True)
class Threshold:
    """Bound on a measure of the release: ``max``, ``min``, or ``max_ratio`` to or ``max_increase`` over the
    confidential data's value.

    With ``RiskOutput.ratio_to`` the last two compare with the baseline of the row. It applies to every series of the
    value with its target, level and ``params``, as far as it names them; all must satisfy it, those by record and those
    by unit. Rows about the units of one size are judged where it names a size. A setting that a row does not state has
    its method's default.
    """

    value: str
    bound: Bound
    limit: float
    target: str = ""
    level: float | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], place: str, judged: MeasuredSteps, schema: Schema) -> Threshold:
        """Create the threshold of a recipe's ``[[threshold]]``, whose value the recipe must measure. Raises BadInput."""
        read = ThresholdTable.read_section(table, place)
        values = [f"{method.key}.{output.name}" for method, _ in judged for output in method.result_outputs]
        if read.value not in values:
            raise BadInput(
                f"{place}.value", f'"{read.value}" is not measured by this recipe{_measured_hint(read.value, values)}'
            )
        limits = {bound: limit for bound in BOUNDS if (limit := getattr(read, bound)) is not None}
        if not limits:
            raise BadInput(place, f"Enter a limit: one of {', '.join(BOUNDS)}")
        if len(limits) > 1:
            raise BadInput(
                place, f"has {' and '.join(limits)}; keep one, and give the other a [[threshold]] of its own"
            )
        if read.target and read.target not in [one.name for one in schema.constraints]:
            schema.require_variable(read.target, f"{place}.target")
        _check_params(read.params, read.value, judged, f"{place}.params")
        ((bound, limit),) = limits.items()
        return cls(read.value, bound, limit, read.target, read.level, read.params)

    def to_table(self) -> dict[str, Any]:
        """Return the recipe's table of this threshold."""
        return {
            **ThresholdTable(value=self.value, target=self.target, level=self.level, params=self.params).to_table(),
            self.bound: self.limit,
        }

    def applies_to(self, row: Row) -> bool:
        """Return whether it judges a row, which is an average over the release's datasets."""
        return (
            row.key == self.value
            and row.draw is None
            and row.dataset != "confidential"
            and self.target in ("", row.target)
            and self.level in (None, row.level)
            and (not row.is_of_one_size or UNIT_SIZE in self.params)
            and includes_params(
                self.params, {**_default_settings(row.method_key), **_row_defaults(self.value), **row.params}
            )
        )


def _row_defaults(value: str) -> Mapping[str, str]:
    """Return the meaning of parameters that rows of an output lack, by name."""
    output = threshold_output(value)
    return {} if output is None else dict(output.row_defaults)


def _default_settings(key: str) -> dict[str, Any]:
    """Return the default settings of a method, by name."""
    method = method_by_key(key)
    infos = () if method is None else method.spec.params()
    return {info.name: to_plain_value(info.default) for info in infos if not info.is_required}


def _check_params(params: Mapping[str, Any], value: str, judged: MeasuredSteps, place: str) -> None:
    """Raise BadInput where a setting has none of the values that the recipe's steps give it."""
    key = value.rpartition(".")[0]
    own = [{**_default_settings(key), **settings} for method, settings in judged if method.key == key]
    fields = {info.name for method, _ in judged if method.key == key for info in method.spec.params()}
    for name, wanted in params.items():
        if name in _row_defaults(value):
            continue
        if name in fields and not any(includes_params(wanted, settings.get(name)) for settings in own):
            used = ", ".join(dict.fromkeys(str(settings.get(name)) for settings in own))
            raise BadInput(f"{place}.{name}", f"no step of {key} in this recipe has {name} = {wanted}; there is {used}")


def _measured_hint(value: str, values: Sequence[str]) -> str:
    """Return the most similar measure, else the measures of the named method, else all, as the end of a message."""
    own = [known for known in values if known.rpartition(".")[0] == value.rpartition(".")[0]]
    near = near_miss_hint(value.rpartition(".")[2], [known.rpartition(".")[2] for known in own])
    if own and not near:
        return f"; measured: {', '.join(dict.fromkeys(own))}"
    return near_miss_hint(value, values) or f"; measured: {', '.join(dict.fromkeys(values)) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of a threshold for one row.

    margin: distance of the value from the limit, positive inside the bound and negative outside
    lower, upper: ends of the interval of ``observed`` that decided, both None where the value itself did; the interval
        of a ratio may have no upper end
    """

    value: str
    target: str
    level: float | None
    bound: str
    limit: float
    observed: float | None
    margin: float | None
    outcome: Outcome
    reason: str = ""
    params: Mapping[str, Any] | None = None
    lower: float | None = None
    upper: float | None = None

    @property
    def key(self) -> str:
        """Return the key of the measure."""
        return self.value

    @property
    def limit_needed(self) -> float | None:
        """Return the limit at which the verdict would be ``met``: the value itself, or the far end of an estimate's
        interval.

        It is None where no limit would do.
        """
        if self.observed is None:
            return None
        if self.lower is None and self.upper is None:
            return None if self.outcome == "undecided" else self.observed
        end = self.lower if self.bound == "min" else self.upper
        kept_to = end is not None and not (
            is_below(end, self.limit) if self.bound == "min" else is_above(end, self.limit)
        )
        # The interval satisfies the limit already, and the verdict failed for lack of power.
        return None if kept_to and self.outcome != "met" else end

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def threshold_output(value: str) -> Output | None:
    """Return the output of a threshold's value, such as ``risk.identification.true_match_rate``.

    The result is None if it does not exist.
    """
    output = output_by_key(value)
    return None if output is None or output.intermediate else output


def baseline_words(value: str) -> str:
    """Return the name of the baseline that ``max_ratio`` and ``max_increase`` compare with.

    The result is empty for the confidential data's value.
    """
    output = output_by_key(value)
    return "" if output is None else output.risk.ratio_to


def judge_thresholds(thresholds: Sequence[Threshold], rows: Sequence[Row], *, among: int = 1) -> list[Verdict]:
    """Judge every threshold against every row that it applies to, the averages over the release's datasets.

    A value that was not computed has the verdict ``not computed`` with the row's reason. ``among`` is the number of
    releases of which these verdicts select the best: the intervals then cover all of them simultaneously.
    """
    return [verdict for threshold in thresholds for verdict in _ThresholdJudge(threshold, rows, among).verdicts()]


class _ThresholdJudge:
    """Judge of one threshold: the rows that it applies to, and the values that they are compared with."""

    def __init__(self, threshold: Threshold, rows: Sequence[Row], among: int = 1) -> None:
        """Collect the rows that the threshold applies to, and those for comparison."""
        self.threshold = threshold
        self.concerned = [row for row in rows if threshold.applies_to(row)]
        self.own = {row.series: row for row in rows if row.dataset == "confidential"}
        self.averages = {row.series: row for row in rows if row.dataset != "confidential" and row.draw is None}
        self.output = threshold_output(threshold.value)
        self.estimated = self.output is not None and self.output.estimated
        self.range: Range = (None, None) if self.output is None else self.output.range
        self.exact = exact_series(row for row in rows if row.key == threshold.value) if self.estimated else set()
        # Intervals of k estimated series are simultaneous, each at confidence 0.95^(1/k) (Šidák 1967); exact ones do
        # not count.
        self.series = among * sum(
            row.value is not None and row.lower is not None and not self._is_exact(row) for row in self.concerned
        )

    def _is_exact(self, row: Row) -> bool:
        """Return whether the row rests on no sample here, although its output may."""
        return (row.series, row.dataset) in self.exact

    def verdicts(self) -> list[Verdict]:
        """Return a verdict for each row, or one without a value where there is no row."""
        one = self.threshold
        if not self.concerned:
            params = dict(one.params) or None
            # A limit on units where records alone are counted: the verdict of these would look like one on units.
            by_unit = one.params.get("by") == "unit"
            reason = "it has no row by unit here, and counts records" if by_unit else "the run has no such row"
            return [
                Verdict(one.value, one.target, one.level, one.bound, one.limit, None, None, "not computed",
                        reason, params)
            ]  # fmt: skip
        return [self._judge_row(row) for row in self.concerned]

    def _judge_row(self, row: Row) -> Verdict:
        """Return the verdict on one row."""
        one = self.threshold
        verdict = Verdict(
            one.value, row.target, row.level, one.bound, one.limit, None, None,
            "not computed", row.reason, row.params,
        )  # fmt: skip
        if row.value is None:
            return verdict
        base, reason = self._comparison_base(row)
        if reason:
            return replace(verdict, reason=reason)
        observed = self._ratio_or_difference(self._with_simultaneous_interval(row, row.value), base)
        margin = distance_from_limit(observed.value, one.limit) * (1 if one.bound == "min" else -1)
        verdict = replace(verdict, observed=observed.value, margin=margin)
        outcome, reason, ends = self._decide_outcome(observed, margin)
        if outcome == "met" and (weak := self._lacking_power_reason(row, base)):
            outcome, reason = "undecided", weak
        if ends == (None, None) and outcome == "undecided":
            reason = "; ".join(filter(None, (reason, row.reason)))
        return replace(verdict, outcome=outcome, reason=reason or row.reason, lower=ends[0], upper=ends[1])

    def _with_simultaneous_interval(self, row: Row, value: float) -> ValueWithInterval:
        """Return a row's value, with its simultaneous interval where it is an estimate that has one."""
        if self.estimated and self._is_exact(row):
            return ValueWithInterval(value, value, value)
        if not self.estimated or row.lower is None or row.upper is None:
            return ValueWithInterval(value)
        return widen_for_series(ValueWithInterval(value, row.lower, row.upper), self.series, self.range)

    def _comparison_base(self, row: Row) -> tuple[ValueWithInterval | None, str]:
        """Return the value that the row is compared with, and the reason why it is missing.

        The value is None where the row is compared with the limit alone.
        """
        if self.threshold.bound in ("max", "min"):
            return None, ""
        if said := baseline_words(row.key):
            base = None if row.baseline is None else ValueWithInterval(row.baseline, row.baseline, row.baseline)
            name, missing = f"the value {said}", f"the value {said} is not known"
        else:
            own = self.own.get(row.series)
            base = None if own is None or own.value is None else self._with_simultaneous_interval(own, own.value)
            name, missing = "the confidential data's own value", "the confidential data have no value to compare with"
        if base is None:
            return None, missing
        if self.threshold.bound == "max_ratio":
            if self.range[0] is None or self.range[0] < 0:
                return None, f"a ratio says nothing of a value that may be negative; {INSTEAD}"
            if base.value <= 0:
                return None, f"{name} is {base.value:g}; {INSTEAD}"
        return base, ""

    def _ratio_or_difference(self, value: ValueWithInterval, base: ValueWithInterval | None) -> ValueWithInterval:
        """Return the ratio or difference of a value and its base, with interval; the value itself without a base."""
        if base is None:
            return value
        return (
            ratio_with_interval(value, base)
            if self.threshold.bound == "max_ratio"
            else difference_with_interval(value, base)
        )

    def _decide_outcome(
        self, observed: ValueWithInterval, margin: float
    ) -> tuple[Outcome, str, tuple[float | None, float | None]]:
        """Return the outcome, the reason why it is undecided, and the ends of the interval that decided."""
        if not self.estimated:
            return ("met" if margin >= 0 else "not met"), "", (None, None)
        low, high, limit = observed.lower, observed.upper, self.threshold.limit
        if low is None or high is None:
            return "undecided", "estimated without an interval", (None, None)
        if low == high:
            return ("met" if margin >= 0 else "not met"), "", (None, None)
        ends = (low if math.isfinite(low) else None, high if math.isfinite(high) else None)
        best, least = (high, low) if self.threshold.bound == "min" else (-low, -high)
        bound = limit if self.threshold.bound == "min" else -limit
        if not is_below(least, bound):
            return "met", "", ends
        if is_below(best, bound):
            return "not met", "", ends
        of = f" (simultaneous over {self.series} series)" if self.series > 1 else ""
        upto = f"to {high:.4g}" if math.isfinite(high) else "upwards"
        return "undecided", f"the interval {low:.4g} {upto}{of} contains the limit {limit:g}", ends

    def _lacking_power_reason(self, row: Row, base: ValueWithInterval | None) -> str:
        """Return why the measure could not have found a leak above the limit; empty where it could."""
        # Only a largest value allowed can be met by a measure that finds nothing.
        if self.threshold.bound == "min" or self.output is None or not self.output.detectable:
            return ""
        _, target, params, level = row.series
        power = self.averages.get((f"{row.method_key}.{self.output.detectable}", target, params, level))
        if power is None or power.value is None:
            why = f": {power.reason}" if power is not None and power.reason else ""
            return f"the smallest leak that the measure would find is not known{why}"
        allowed = self.threshold.limit
        if base is not None:
            allowed = allowed * base.value if self.threshold.bound == "max_ratio" else allowed + base.value
        if not is_above(power.value, allowed):
            return ""
        return f"the measure finds a leak of {power.value:.4g} or more only; limit {allowed:.4g}"
