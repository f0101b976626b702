"""Thresholds and the verdicts they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from ..data.declaration import Param, Section
from ..data.schema import Schema
from ..errors import BadInput, suggestion
from ..methods.registry import Method, method_called
from ..methods.spec import written
from .published import included

if TYPE_CHECKING:
    from ..methods.rows import Row

Outcome = Literal["pass", "fail", "not computed"]
Bound = Literal["max", "min", "max_ratio"]
BOUNDS: tuple[Bound, ...] = get_args(Bound)


Judged = Sequence[tuple[Method, Mapping[str, Any]]]
"""What a recipe measures: each step's method and settings (``Spec.settings``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdTable(Section):
    """A ``[[threshold]]`` as a recipe writes it: the bound is the key that its limit stands under."""

    value: Annotated[str, Param("the measure that must keep to the limit", always=True)] = ""
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


@dataclass(frozen=True, slots=True)
class Threshold:
    """A bound on a measure of the release: ``max``, ``min``, or ``max_ratio`` to the confidential data's own value, or to the
    baseline of its row where the output says that it is held against that (``RiskOutput.ratio_to``).

    It holds for every series of the value that has its target, level and ``params``, whichever of them it names; all
    must keep to it. A setting that a row does not say has its method's default.
    """

    value: str
    bound: Bound
    limit: float
    target: str = ""
    level: float | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], place: str, judged: Judged, schema: Schema) -> Threshold:
        """The threshold of a recipe's ``[[threshold]]``; its value must be one that the recipe measures. Raises BadInput."""
        read = ThresholdTable.read_section(table, place)
        values = [f"{method.key}.{output.name}" for method, _ in judged for output in method.results]
        if read.value not in values:
            raise BadInput(
                f"{place}.value", f'"{read.value}" is not measured by this recipe{_hint(read.value, values)}'
            )
        limits = {bound: limit for bound in BOUNDS if (limit := getattr(read, bound)) is not None}
        if not limits:
            raise BadInput(place, f"Enter a limit: one of {', '.join(BOUNDS)}")
        if len(limits) > 1:
            raise BadInput(
                place, f"has {' and '.join(limits)}; keep one, and give the other a [[threshold]] of its own"
            )
        if read.target and read.target not in [one.name for one in schema.constraints]:
            schema.require(read.target, f"{place}.target")
        _check_params(read.params, read.value, judged, f"{place}.params")
        ((bound, limit),) = limits.items()
        return cls(read.value, bound, limit, read.target, read.level, read.params)

    def to_table(self) -> dict[str, Any]:
        """The recipe's table of this threshold."""
        return {
            **ThresholdTable(value=self.value, target=self.target, level=self.level, params=self.params).to_table(),
            self.bound: self.limit,
        }

    def speaks_of(self, row: Row) -> bool:
        """Whether the row is one that it judges: an average over the release's datasets."""
        return (
            row.key == self.value
            and row.draw is None
            and row.dataset != "confidential"
            and self.target in ("", row.target)
            and self.level in (None, row.level)
            and included(self.params, {**_defaults(row.method_key), **row.params})
        )


def _defaults(key: str) -> dict[str, Any]:
    """The settings of a method that are left at their default, by name."""
    method = method_called(key)
    infos = () if method is None else method.spec.params()
    return {info.name: written(info.default) for info in infos if not info.required}


def _check_params(params: Mapping[str, Any], value: str, judged: Judged, place: str) -> None:
    """BadInput when a setting has none of the values that the recipe's steps give it."""
    key = value.rpartition(".")[0]
    own = [{**_defaults(key), **settings} for method, settings in judged if method.key == key]
    fields = {info.name for method, _ in judged if method.key == key for info in method.spec.params()}
    for name, wanted in params.items():
        if name in fields and not any(included(wanted, settings.get(name)) for settings in own):
            used = ", ".join(dict.fromkeys(str(settings.get(name)) for settings in own))
            raise BadInput(f"{place}.{name}", f"no step of {key} in this recipe has {name} = {wanted}; there is {used}")


def _hint(value: str, values: Sequence[str]) -> str:
    """A near miss, else the measures of the method that is named, else all."""
    own = [known for known in values if known.rpartition(".")[0] == value.rpartition(".")[0]]
    near = suggestion(value.rpartition(".")[2], [known.rpartition(".")[2] for known in own])
    if own and not near:
        return f"; measured: {', '.join(dict.fromkeys(own))}"
    return suggestion(value, values) or f"; measured: {', '.join(dict.fromkeys(values)) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A threshold held against one row. ``margin`` is how far inside the bound the value lies, negative outside."""

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

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def judge(thresholds: Sequence[Threshold], rows: Sequence[Row]) -> list[Verdict]:
    """Every threshold against every row it speaks of: the averages over the release's datasets.

    A value that was not computed is no pass: its verdict is ``not computed`` with the row's reason.
    """
    return [verdict for threshold in thresholds for verdict in _judge_one(threshold, rows)]


def _judge_one(threshold: Threshold, rows: Sequence[Row]) -> list[Verdict]:
    concerned = [row for row in rows if threshold.speaks_of(row)]
    if not concerned:
        reason = "the run has no such row"
        return [
            Verdict(threshold.value, threshold.target, threshold.level, threshold.bound, threshold.limit, None, None,
                    "not computed", reason, dict(threshold.params) or None)
        ]  # fmt: skip
    own = {row.series: row for row in rows if row.dataset == "confidential"}
    return [_verdict(threshold, row, own.get(row.series)) for row in concerned]


def _verdict(threshold: Threshold, row: Row, confidential: Row | None) -> Verdict:
    observed, reason = row.value, row.reason
    if threshold.bound == "max_ratio" and observed is not None:
        observed, reason = _ratio(observed, row, confidential)
    margin: float | None = None
    outcome: Outcome = "not computed"
    if observed is not None:
        margin = observed - threshold.limit if threshold.bound == "min" else threshold.limit - observed
        outcome = "pass" if margin >= 0 else "fail"
    return Verdict(
        threshold.value, row.target, row.level, threshold.bound, threshold.limit, observed, margin, outcome, reason,
        row.params,
    )  # fmt: skip


def ratio_to(value: str) -> str:
    """What ``max_ratio`` of a measure (its key) is held against, in words, where that is the baseline of its row; else empty."""
    key, _, measure = value.rpartition(".")
    method = method_called(key)
    return next((one.risk.ratio_to for one in method.outputs if one.name == measure), "") if method else ""


def _ratio(observed: float, row: Row, confidential: Row | None) -> tuple[float | None, str]:
    if said := ratio_to(row.key):
        if not row.baseline:
            return None, f"the value {said} is {'not known' if row.baseline is None else '0'}"
        return observed / row.baseline, ""
    if confidential is None or confidential.value is None:
        return None, "the confidential data have no value to compare with"
    if confidential.value == 0:
        return None, "the confidential data's own value is 0"
    return observed / confidential.value, ""
