"""Units of several records: whether households, patients and panels of the release are like those of the data.

``size_distance`` and ``type_distance`` are total variations, half the sum of absolute differences of shares, of the
numbers of records and of the compositions: the multisets of a level variable over the records of a unit. Their
baselines are what a split of the pooled units at random gives on average, exactly (the mean absolute deviation of a
hypergeometric count), so that a release may be read beside another sample of as many units.

``correlation`` has four kinds: the intraclass correlation of a number (one-way analysis of variance with units of any
size; Donner 1986), the correlation between the first and the second record, and with ``[data] order`` those between a
record and the one before it and two before it. ``correlation_difference`` is the distance from the confidential one.

With ``[data] order`` there are transitions of a level variable, trajectories (its values in order), and the values of the
order at the first and the last record: entry and exit. ``transition_distance`` is the mean over the confidential
records of the total variation between the shares of the next value, 1 where the release never has the value.

Without an order the first record is the first in the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Self

import numpy as np
import pandas as pd

from ..adversary.cells import unit_keys
from ..constraints.constraints import read_constraints
from ..constraints.evaluation import violations
from ..data.arrays import Floats, Integers
from ..data.bits import mix_bits
from ..data.conditions import RecordConstraint
from ..data.intervals import SHARE
from ..data.microdata import Microdata, schema_with_levels
from ..data.schema import Kind, Role, Schema, compared_variables
from ..data.units import Units
from ..errors import NotComputable
from ..methods.drafting import Case, Offer, drafts
from ..methods.levers import CONSTRAINTS, FIDELITY
from ..methods.outputs import Label, Output
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..partition.equivalence_classes import joint_classes
from ..statistics.unit_effects import intraclass_correlation
from .constraint_violations import RulesByName

LEVELS = (Kind.CATEGORICAL, Kind.ORDINAL, Kind.BINARY)
NUMBERS = (Kind.COUNT, Kind.CONTINUOUS)
WITHIN, FIRST_TWO = "within units", "first and second record"
LAGS = {1: "lag 1", 2: "lag 2"}
MOST_EXACT = 1000
"""Units of a cell up to which the expected deviation is summed exactly; beyond, counts are close to normal."""


def total_variation(ours: Integers, theirs: Integers) -> float:
    """Return half the sum of absolute differences between the shares of codes from 0, (n,) and (m,)."""
    cells = int(max(ours.max(initial=-1), theirs.max(initial=-1))) + 1
    shares = [np.bincount(codes, minlength=cells) / len(codes) for codes in (ours, theirs)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def expected_total_variation(ours: Integers, theirs: Integers) -> float:
    """Return the mean total variation over all splits of the pooled codes (n,) and (m,) into n and m."""
    from scipy.stats import hypergeom

    n, m = len(ours), len(theirs)
    counts, times = np.unique(np.bincount(np.concatenate([ours, theirs])), return_counts=True)
    total = 0.0
    for count, cells in zip(counts.tolist(), times.tolist(), strict=True):
        mean = count * n / (n + m)
        if count <= MOST_EXACT:
            x = np.arange(count + 1)
            deviation = float(np.abs(x - mean) @ hypergeom.pmf(x, n + m, count, n))
        else:
            variance = count * (n + m - count) * n * m / ((n + m) ** 2 * max(n + m - 1, 1))
            deviation = math.sqrt(2 / math.pi * variance)
        total += cells * deviation
    return total * (1 / n + 1 / m) / 2


def _pair_correlation(values: Floats, pairs: tuple[Integers, Integers]) -> float:
    """Return the correlation over pairs of records, (k,) each. Raises NotComputable without variation."""
    first, second = values[pairs[0]], values[pairs[1]]
    present = ~(np.isnan(first) | np.isnan(second))
    first, second = first[present], second[present]
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        raise NotComputable("fewer than two pairs of records, or all values of one are equal")
    return float(np.corrcoef(first, second)[0, 1])


def _records_at_lag(units: Units, lag: int) -> tuple[Integers, Integers]:
    """Return the records that have one ``lag`` places before them in their unit, after those, (k,) each."""
    earlier = np.arange(len(units.unit_of))
    for _ in range(lag):
        earlier = np.where(earlier >= 0, units.previous_records[earlier], -1)
    found = np.flatnonzero(earlier >= 0)
    return earlier[found], found


def _correlation_kinds(schema: Schema) -> dict[str, Callable[[Floats, Units], float]]:
    """Return the kinds of correlation that the records have, each with its function of values (n,) and units."""
    found: dict[str, Callable[[Floats, Units], float]] = {
        WITHIN: intraclass_correlation,
        FIRST_TWO: lambda values, units: _pair_correlation(
            values, (units.first_records[units.sizes > 1], units.order[units.starts[units.sizes > 1] + 1])
        ),
    }
    if schema.order:
        for lag, name in LAGS.items():
            found[name] = lambda values, units, lag=lag: _pair_correlation(  # type: ignore[misc]
                values, _records_at_lag(units, lag)
            )
    return found


def _distance_estimate(name: str, ours: Integers, theirs: Integers, target: str = "") -> Estimate:
    """Return the total variation of codes (n,) and (m,) as an estimate, beside that of a split at random."""
    return Estimate(name, total_variation(ours, theirs), target, baseline=expected_total_variation(ours, theirs))


class _Tables:
    """Confidential and released records with their units."""

    def __init__(self, confidential: Microdata, released: Microdata) -> None:
        self.data = confidential, released

    @cached_property
    def units(self) -> tuple[Units, Units]:
        """Return the units of both tables.

        Raises NotComputable where every confidential record is a unit, or the release does not say its units.
        """
        if self.data[0].units is None:
            raise NotComputable(
                'every record is a unit of its own; give the variable that numbers households or people the role "unit"'
            )
        return self.data[0].units, self.data[1].require_units()

    def size_estimates(self) -> Iterator[Estimate]:
        """Yield the distance of the numbers of records."""
        try:
            ours, theirs = self.units
        except NotComputable as error:
            yield Estimate.not_computed("size_distance", error.reason)
            return
        sizes = np.unique(np.concatenate([ours.sizes, theirs.sizes]), return_inverse=True)[1].astype(np.int64)
        yield _distance_estimate("size_distance", sizes[: len(ours)], sizes[len(ours) :])

    def codes(self, name: str) -> tuple[Integers, Integers]:
        """Return codes of a variable that are equal for equal values, (n,) and (m,).

        Raises NotComputable, as ``units`` does too.
        """
        assert self.units
        return joint_classes([self.data[0].column(name)], [self.data[1].column(name)])

    def unit_codes(self, rows: tuple[Integers, Integers], *, in_order: bool = False) -> tuple[Integers, Integers]:
        """Return codes of the units of both tables, equal where the multisets of their records' codes are, (U,) each.

        in_order: compare the sequences of the codes instead
        """
        keys = []
        for own, units in zip(rows, self.units, strict=True):
            mixed = mix_bits(own.astype(np.uint64) + np.uint64(1))
            if in_order:
                mixed = mix_bits(mixed + units.places.astype(np.uint64))
            keys.append(unit_keys(mixed, units))
        codes = pd.factorize(np.concatenate(keys))[0].astype(np.int64)
        return codes[: len(keys[0])], codes[len(keys[0]) :]

    def number_estimates(self, name: str) -> Iterator[Estimate]:
        """Yield each kind of correlation of a number and its difference from the confidential one."""
        for kind, compute in _correlation_kinds(self.data[0].schema).items():
            params = {"kind": kind}
            try:
                tables = zip(self.data, self.units, strict=True)
                own, drawn = (compute(data.numbers(name), units) for data, units in tables)
            except NotComputable as error:
                for output in ("correlation", "correlation_difference"):
                    yield Estimate.not_computed(output, error.reason, name, **params)
                continue
            yield Estimate("correlation", drawn, name, baseline=own, params=params)
            yield Estimate("correlation_difference", abs(drawn - own), name, params=params)

    def level_estimates(self, name: str) -> Iterator[Estimate]:
        """Yield the distances of compositions, and those over time, of a level variable."""
        in_time = ("transition_distance", "trajectory_distance") if self.data[0].schema.order else ()
        try:
            rows = self.codes(name)
        except NotComputable as error:
            for output in ("type_distance", *in_time):
                yield Estimate.not_computed(output, error.reason, name)
            return
        yield _distance_estimate("type_distance", *self.unit_codes(rows), name)
        if in_time:
            yield self._transition_estimate(rows, name)
            yield _distance_estimate("trajectory_distance", *self.unit_codes(rows, in_order=True), name)

    def _transition_estimate(self, rows: tuple[Integers, Integers], name: str) -> Estimate:
        """Return the mean distance between the shares of the next value, given the value before."""
        levels = int(max(codes.max() for codes in rows)) + 1
        lags = [_records_at_lag(units, 1) for units in self.units]
        pairs = [codes[before] * levels + codes[after] for codes, (before, after) in zip(rows, lags, strict=True)]
        counts = [np.bincount(one, minlength=levels**2).reshape(levels, levels).astype(np.float64) for one in pairs]
        if not counts[0].any():
            return Estimate.not_computed("transition_distance", "no unit has two records", name)
        totals = [table.sum(axis=1) for table in counts]
        shares = [table / np.maximum(total, 1)[:, None] for table, total in zip(counts, totals, strict=True)]
        # a value that the release never leaves has no shares, and 1/2 of the sum would be 1/2
        apart = np.where(totals[1] > 0, np.abs(shares[0] - shares[1]).sum(axis=1) / 2, 1.0)
        both = (totals[0] > 0) & (totals[1] > 0)
        steps = ([one[one // levels == value] for one in pairs] for value in np.flatnonzero(both))
        chance = np.where(both, 0.0, 1.0)
        chance[both] = [expected_total_variation(ours, theirs) for ours, theirs in steps]
        share, expected = (float(totals[0] @ one / totals[0].sum()) for one in (apart, chance))
        return Estimate("transition_distance", share, name, baseline=expected)

    def time_estimates(self) -> Iterator[Estimate]:
        """Yield the distances of entry and exit; none where the records of a unit have no order."""
        order = self.data[0].schema.order
        if not order:
            return
        names = ("entry_distance", "exit_distance")
        try:
            rows = self.codes(order)
        except NotComputable as error:
            yield from (Estimate.not_computed(name, error.reason, order) for name in names)
            return
        ends = [(units.first_records, units.order[units.starts + units.sizes - 1]) for units in self.units]
        for place, name in enumerate(names):
            ours, theirs = (codes[end[place]] for codes, end in zip(rows, ends, strict=True))
            yield _distance_estimate(name, ours, theirs, order)

    def constraint_estimates(self, rules: Sequence[RecordConstraint]) -> Iterator[Estimate]:
        """Yield the share of the released units with a record that breaks a constraint, by constraint."""
        schema = schema_with_levels(self.data[0])
        for constraint in rules:
            try:
                own, drawn = (
                    float(units.largest_by_unit(violations(constraint, data, schema).astype(np.int64)).mean())
                    for data, units in zip(self.data, self.units, strict=True)
                )
            except NotComputable as error:
                yield Estimate.not_computed("broken_units", error.reason, constraint.name)
                continue
            yield Estimate("broken_units", drawn, constraint.name, baseline=own)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitsSpec(Spec):
    """Variables of the records that are compared unit by unit."""

    types: Annotated[
        tuple[str, ...],
        Param(
            "level variables whose compositions are compared; left out, the released ones that vary within units",
            names="variables",
            kinds=LEVELS,
            filters_rows=True,
        ),
    ] = ()
    numbers: Annotated[
        tuple[str, ...],
        Param(
            "numbers whose correlations within units are compared; left out, the released ones that vary within units",
            names="variables",
            kinds=NUMBERS,
            filters_rows=True,
        ),
    ] = ()

    rules: RulesByName = field(default_factory=dict)

    def check(self, schema: Schema, place: str) -> None:
        """Raise BadInput for an invalid rule."""
        Spec.check(self, schema, place)
        read_constraints(self.rules, schema, f"{place}.rules")

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return the parameters with the recipe's rules and the released variables that vary within units where none is
        named.
        """
        rules = self.rules or {one.name: one.text for one in schema.constraints}
        if self.types or self.numbers:
            return replace(self, rules=rules)
        out = (*schema.unit_level, *schema.names_by_role(Role.WEIGHT), schema.order)
        types, numbers = (
            tuple(name for name in compared_variables(schema, released, kinds) if name not in out)
            for kinds in (LEVELS, NUMBERS)
        )
        return replace(self, types=types, numbers=numbers, rules=rules)


def _draft_offer(case: Case) -> Offer | None:
    """Offer the measure where the records have units and the release has them too, with values in place of labels."""
    if not case.has_units or case.want == "anonymisation" or not (case.linked or case.draws_units):
        return None
    return Offer("whether the records of a unit go together as in the data")


def _distance_output(
    name: str,
    meaning: str,
    title: str,
    sentence: str,
    breached: str,
    good: str = "Lower is better; good is what another sample of units has.",
    baseline: str = "what a split of all units at random gives",
) -> Output:
    """Return the declaration of an output that is a total variation between units of both tables."""
    label = Label(title, sentence, good, breached, FIDELITY, counts="share", baseline=baseline)
    return Output(name, meaning, "low", range=SHARE, statbarn="StatisticalHypothesisTests", label=label)


@measure_method(
    "Units of several records",
    spec=UnitsSpec,
    source="Donner (1986) for the intraclass correlation; total variation of compositions and trajectories",
    outputs=(
        _distance_output(
            "size_distance",
            "total variation between the shares of units of each number of records",
            "Difference in the sizes of units",
            "Of the released units, {value} would need another number of records to match the data.",
            "Units of the release have other numbers of records.",
        ),
        _distance_output(
            "type_distance",
            "total variation between the shares of units of each composition of the variable",
            "Difference in the composition of units",
            "Of the released units, {value} would need other values of {variable} to be composed as in the data.",
            "Units of the release are composed in another way.",
        ),
        Output(
            "correlation",
            "correlation of a number between records of a unit, of the kind that the row names",
            "none",
            range=(-1.0, 1.0),
            statbarn="CorrelationCoefficients",
            label=Label(
                "Correlation between records of a unit",
                "The correlation of {variable} between records of one unit is {value}, from -1 over 0 (none) to 1.",
                "Good is the same value as in the data.",
                baseline="the confidential data",
            ),
        ),
        Output(
            "correlation_difference",
            "absolute difference of that correlation from the confidential one",
            "low",
            range=(0.0, 2.0),
            statbarn="CorrelationCoefficients",
            label=Label(
                "Difference of a correlation within units",
                "The correlation of {variable} between records of one unit is {value} away from that of the data, of at most 2.",
                "Lower is better: records of a unit are as alike as in the data.",
                "Records of a unit are less alike, or more, than in the data.",
                FIDELITY,
                bad="as many as chance rarely gives, which “Correlation between records of a unit” says",
            ),
        ),
        Output(
            "broken_units",
            "share of the units with a record that breaks the constraint",
            "low",
            "share",
            range=SHARE,
            label=Label(
                "Units that break a rule",
                "Of the released units, {value} have a record that breaks the rule {variable}.",
                "Lower is better; at 0 every unit keeps to the rule.",
                "Too many released units are impossible by the rule.",
                CONSTRAINTS,
                counts="share",
                baseline="the confidential data",
            ),
        ),
        _distance_output(
            "transition_distance",
            "mean total variation between the shares of the next value of the variable, given the one before",
            "Difference in changes from record to record",
            "Of the steps from a record of a unit to its next one, {value} would need another {variable} to match the data.",
            "The next record of a unit is otherwise than in the data.",
            baseline="what a split of all steps at random gives",
        ),
        _distance_output(
            "trajectory_distance",
            "total variation between the shares of units of each sequence of the variable",
            "Difference in the trajectories of units",
            "Of the released units, {value} would need another sequence of {variable} to match the data.",
            "Units of the release have other sequences of values.",
        ),
        _distance_output(
            "entry_distance",
            "total variation between the shares of units that begin at each value of the order",
            "Difference in where units begin",
            "Of the released units, {value} would have to begin at another {variable} to match the data.",
            "Units of the release begin at other times.",
        ),
        _distance_output(
            "exit_distance",
            "total variation between the shares of units that end at each value of the order",
            "Difference in where units end",
            "Of the released units, {value} would have to end at another {variable} to match the data.",
            "Units of the release drop out at other times.",
        ),
    ),
)
@drafts(_draft_offer)
def units(confidential: Microdata, released: Microdata, spec: UnitsSpec, run: Run) -> Measure:
    """Compare sizes, compositions, correlations and, with an order, courses of the units of both tables.

    Nothing is computed where every record is a unit, or the release does not say which records are of one.
    """
    tables = _Tables(confidential, released)
    estimates = list(tables.size_estimates())
    for name in spec.types:
        estimates.extend(tables.level_estimates(name))
    for name in spec.numbers:
        estimates.extend(tables.number_estimates(name))
    estimates.extend(tables.time_estimates())
    estimates.extend(tables.constraint_estimates(read_constraints(spec.rules, confidential.schema)))
    return Measure(tuple(estimates))
