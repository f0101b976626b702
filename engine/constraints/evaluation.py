"""Which records of a table keep to its constraints, which break them, and of which nobody knows.

Truth is three-valued (Kleene 1938). Each value of a record is a set of possible ones: one number or level, nothing known where it is missing, or what the label of a
generalised value holds. A comparison holds where it does for all of them, is broken where it does for none, and is unknown
otherwise (interval arithmetic: Moore 1966). A rule is broken by a record where it is known not to hold: what hangs on a missing value is not.

Sums of several columns are compared up to 1e-9 of the sum of their absolute parts, since decimal fractions are no doubles; single
numbers, dates and differences of two columns as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.conditions import OPPOSITE, All, Comparison, Condition, Constraint, Implies, Not, Presence
from ..data.conditions import Any as Some
from ..data.microdata import Microdata
from ..data.schema import Kind, Schema, Variable
from ..partition.hierarchies import interval, members
from .constraints import DAY, Bound, Linear, OneOf, bound_terms, day_of, require_levels

Mask = NDArray[np.bool_]

SLACK = 1e-9
"""Of the sum of absolute parts, by which a sum of several columns may miss."""
_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Truth:
    """For each of n records whether it is known to hold, ``yes`` (n,), or known not to, ``no`` (n,); neither is unknown."""

    yes: Mask
    no: Mask

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.yes & other.yes, self.no | other.no)

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.yes | other.yes, self.no & other.no)

    def __invert__(self) -> Truth:
        return Truth(self.no, self.yes)

    @property
    def unknown(self) -> Mask:
        """Where it is neither, (n,)."""
        return np.asarray(~(self.yes | self.no))


@dataclass(frozen=True)
class Values:
    """What is known of each record's values of a table, whose variables were those of ``schema`` before it was released."""

    data: Microdata
    schema: Schema

    def numbers(self, name: str) -> tuple[Floats, Floats]:
        """The smallest and the largest number that each record's may be, both (n,); NaN where nothing is known."""
        if name not in self.data.generalised:
            if self.data.schema[name].kind.has_levels:
                return self._nothing()
            numbers = self.data.numbers(name)
            return numbers, numbers
        column = self.data.frame[name].astype("category")
        ends = [_ends(str(label), self.schema[name].kind) for label in column.cat.categories]
        low, high = np.array([*ends, (math.nan, math.nan)]).T
        codes = column.cat.codes.to_numpy()
        return low[codes], high[codes]

    def _nothing(self) -> tuple[Floats, Floats]:
        unknown = np.full(len(self.data), math.nan)
        return unknown, unknown

    def levels(self, name: str) -> tuple[NDArray[np.intp], list[frozenset[str] | None]]:
        """Which of some sets of levels each record's is one of, (n,), and these; None is the last, of which nothing is known."""
        if name not in self.data.generalised and not self.data.schema[name].kind.has_levels:
            return np.zeros(len(self.data), dtype=np.intp), [None]
        column = self.data.frame[name].astype("category")
        labels = [str(label) for label in column.cat.categories]
        whole = name in self.data.generalised
        order = self.schema[name].levels
        sets = [_possible(label, self.schema[name], order) if whole else frozenset([label]) for label in labels]
        codes = column.cat.codes.to_numpy().astype(np.intp)
        return np.where(codes < 0, len(sets), codes), [*sets, None]

    def order(self, name: str) -> tuple[str, ...]:
        """The levels of a variable in their order."""
        if self.schema[name].levels or name in self.data.generalised:
            return self.schema[name].levels
        return tuple(str(level) for level in self.data.frame[name].cat.categories)


def _ends(label: str, kind: Kind) -> tuple[float, float]:
    """The smallest and the largest number that a label may stand for; an open end just inside it."""
    found = interval(label, kind)
    if found is None:
        values = [_read(member, kind) for member in (members(label) or (label,))]
        return (min(values), max(values)) if not any(map(math.isnan, values)) else (math.nan, math.nan)
    whole = kind is Kind.COUNT
    low = found.low if found.low_closed else (math.floor(found.low) + 1 if whole else math.nextafter(found.low, math.inf))  # fmt: skip
    high = found.high if found.high_closed or math.isinf(found.high) else (math.ceil(found.high) - 1 if whole else math.nextafter(found.high, -math.inf))  # fmt: skip
    return low, high


def _read(text: str, kind: Kind) -> float:
    try:
        if kind is Kind.DATE:
            return day_of(text, "") if DAY.fullmatch(text) else math.nan
        return float(text)
    except ValueError:
        return math.nan


def _possible(label: str, variable: Variable, order: tuple[str, ...]) -> frozenset[str] | None:
    """The levels that a label may stand for; None where it does not say."""
    if label in order:
        return frozenset([label])
    if group := members(label):
        return frozenset(group)
    between = interval(label, variable.kind, order) if order else None
    if between is None:
        return None
    ranks = np.arange(len(order), dtype=np.float64)
    return frozenset(level for level, inside in zip(order, between.contains(ranks), strict=True) if inside)


def truth(rule: Condition, values: Values) -> Truth:
    """What is known of a rule for each record."""
    if isinstance(rule, Not):
        return ~truth(rule.inner, values)
    if isinstance(rule, Implies):
        return ~truth(rule.given, values) | truth(rule.then, values)
    if isinstance(rule, All | Some):
        return reduce(and_ if isinstance(rule, All) else or_, (truth(part, values) for part in rule.parts))
    parts = (_truth(bound, values) for bound in bound_terms(rule, values.schema, ""))
    return reduce(and_ if isinstance(rule, Comparison) and rule.sign == "!=" else or_, parts)


def _truth(bound: Bound, values: Values) -> Truth:
    if isinstance(bound, Linear):
        return _of_sum(bound, values)
    if isinstance(bound, Presence):
        missing = values.data.missing(bound.column)
        return Truth(~missing, missing) if bound.present else Truth(missing, ~missing)
    codes, sets = values.levels(bound.column)
    if isinstance(bound, OneOf):
        known = [_known(levels, _meant(bound, values)) for levels in sets]
        yes, no = np.array(known, dtype=np.bool_).T
        return Truth(yes[codes], no[codes])
    others, other_sets = values.levels(bound.other)
    alike = [[_alike(one, other) for other in other_sets] for one in sets]
    same = Truth(*np.array(alike, dtype=np.bool_).transpose(2, 0, 1)[:, codes, others])
    return same if bound.sign == "=" else ~same


def _meant(bound: OneOf, values: Values) -> Callable[[str], bool]:
    if bound.sign in ("=", "!="):
        return lambda level: (level in bound.names) == (bound.sign == "=")
    order = values.order(bound.column)
    rank = {level: at for at, level in enumerate(order)}
    end = rank.get(bound.names[0], math.nan)
    return lambda level: bool(_COMPARED[bound.sign](rank.get(level, math.nan), end))


def _known(levels: frozenset[str] | None, meant: Callable[[str], bool]) -> tuple[bool, bool]:
    if not levels:
        return False, False
    found = [meant(level) for level in levels]
    return all(found), not any(found)


def _alike(one: frozenset[str] | None, other: frozenset[str] | None) -> tuple[bool, bool]:
    if not one or not other:
        return False, False
    return len(one) == 1 and one == other, one.isdisjoint(other)


def _of_sum(bound: Linear, values: Values) -> Truth:
    low = high = np.full(len(values.data), bound.constant)
    size = np.full(len(values.data), abs(bound.constant))
    for name, coefficient in bound.parts.items():
        ends = [coefficient * end for end in values.numbers(name)]
        with np.errstate(invalid="ignore"):
            low, high = low + np.fmin(*ends), high + np.fmax(*ends)
        size = size + np.fmax(*map(np.abs, ends))
    slack = np.zeros(len(size)) if bound.exact else SLACK * np.where(np.isfinite(size), size, 0.0)
    if bound.sign in (">", ">="):
        low, high = -high, -low
    sign = OPPOSITE[bound.sign] if bound.sign in (">", ">=") else bound.sign
    with np.errstate(invalid="ignore"):
        if sign == "<":
            return Truth(high < -slack, low >= -slack)
        if sign == "<=":
            return Truth(high <= slack, low > slack)
        equal = Truth((low >= -slack) & (high <= slack), (high < -slack) | (low > slack))
    return equal if sign == "=" else ~equal


def broken(constraint: Constraint, data: Microdata, schema: Schema) -> Mask:
    """Which records of a table are known to break a constraint, (n,)."""
    return truth(constraint.rule, Values(data, schema)).no


@dataclass(frozen=True, slots=True)
class Kept:
    """How many of n ``records`` break a constraint, and of how many nothing can be said."""

    constraint: Constraint
    broken: int
    unknown: int
    records: int


def compliance(data: Microdata, schema: Schema) -> tuple[Kept, ...]:
    """How a table keeps each of the schema's constraints."""
    values = Values(data, schema)
    found = []
    for constraint in schema.constraints:
        known = truth(constraint.rule, values)
        found.append(Kept(constraint, int(known.no.sum()), int(known.unknown.sum()), len(data)))
    return tuple(found)


def check_on_data(data: Microdata, schema: Schema, place: str = "constraints") -> None:
    """BadInput where a constraint names a level that no record has and the recipe does not list: misspelt, it would always hold."""
    for constraint in schema.constraints:
        for bound in bound_terms(constraint.rule, schema, f"{place}.{constraint.name}"):
            if isinstance(bound, OneOf):
                levels = tuple(str(level) for level in data.column(bound.column).cat.categories)
                hint = f"; where it is one that no record has, list it under variables.{bound.column}.levels"
                require_levels(bound, levels, f"{place}.{constraint.name}", hint)


def schema_of(confidential: Microdata) -> Schema:
    """The variables of the confidential data, with the levels that they have there: what a label of a generalised value may stand for."""
    found = []
    for variable in confidential.schema:
        levels = variable.levels
        if variable.kind.has_levels:
            levels = tuple(str(level) for level in confidential.column(variable.name).cat.categories)
        found.append(replace(variable, levels=levels))
    return replace(confidential.schema, variables=tuple(found))
