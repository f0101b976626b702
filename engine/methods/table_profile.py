"""Profile of a table for drafting a plan: a few statistics of each variable, and the mutual information between
variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..data.microdata import Microdata
from ..data.schema import Kind, Schema, Variable

SAMPLE = 2000
"""Number of records by which variables are compared with each other."""
GROUPS = 8
"""Groups of values that each variable has then."""
MOST_SKEWED = 2.0
"""Skewness from which on a tail is long; that of an exponential distribution."""


@dataclass(frozen=True, slots=True)
class VariableProfile:
    """Profile of a variable and its values.

    variable: its declaration
    missing: number of records without a value
    distinct: number of distinct values
    commonest: share of the most frequent value
    zeros: share of 0
    smallest, largest, mean, variance: of numbers and dates (in days)
    spread: distance of the 5 % and the 95 % quantile, or of the smallest and the largest value where that is 0
    skewness: of the values
    log_skewness: of their logarithms, where all are above 0
    """

    variable: Variable
    missing: int
    distinct: int
    commonest: float = 0.0
    zeros: float = 0.0
    smallest: float | None = None
    largest: float | None = None
    mean: float | None = None
    variance: float | None = None
    spread: float = 0.0
    skewness: float | None = None
    log_skewness: float | None = None

    @property
    def name(self) -> str:
        return self.variable.name

    @property
    def varies(self) -> bool:
        """Return whether records differ in it, including some with a missing value."""
        return self.distinct + (self.missing > 0) > 1

    @property
    def long_tailed(self) -> bool:
        """Return whether its skewness is that of a long right tail."""
        return self.skewness is not None and self.skewness >= MOST_SKEWED


@dataclass(frozen=True, eq=False)
class TableProfile:
    """Profile of some variables of a table.

    records: number of records
    variables: profiles of the variables
    groups: group of each sampled record's value, (up to SAMPLE, variables)
    records_of_a_unit: mean number of records of a unit, 1 where each record is a unit
    """

    records: int
    variables: tuple[VariableProfile, ...]
    groups: NDArray[np.int64] = field(repr=False)
    records_of_a_unit: float = 1.0

    def __iter__(self) -> Iterator[VariableProfile]:
        return iter(self.variables)

    def __getitem__(self, name: str) -> VariableProfile:
        return self._profiles_by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._profiles_by_name

    @cached_property
    def _profiles_by_name(self) -> Mapping[str, VariableProfile]:
        return {seen.name: seen for seen in self.variables}

    def with_schema(self, schema: Schema) -> TableProfile:
        """Return the profile of the same records for the variables of a schema, as the schema declares them."""
        places = {seen.name: place for place, seen in enumerate(self.variables)}
        found = [variable for variable in schema if variable.name in places]
        own = tuple(replace(self[variable.name], variable=variable) for variable in found)
        groups = self.groups[:, [places[variable.name] for variable in found]]
        return TableProfile(self.records, own, groups, self.records_of_a_unit)

    def order_by_mutual_information(self, target: str, among: Sequence[str]) -> tuple[str, ...]:
        """Return variables ordered by mutual information with the target, largest first; ties keep their order."""
        places = {seen.name: place for place, seen in enumerate(self.variables)}
        own = self.groups[:, places[target]]
        told = {name: _mutual_information(own, self.groups[:, places[name]]) for name in among}
        return tuple(sorted(among, key=lambda name: -told[name]))


def profile_table(data: Microdata, rng: np.random.Generator | None = None) -> TableProfile:
    """Profile the records; ``rng`` chooses the sample for mutual information, which is evenly spaced without it."""
    rows = np.arange(len(data))
    if len(data) > SAMPLE:
        spaced = np.linspace(0, len(data) - 1, SAMPLE).astype(np.int64)
        rows = spaced if rng is None else rng.choice(len(data), SAMPLE, replace=False)
    groups = [_value_groups(data, name, rows) for name in data.schema.names]
    profiles = tuple(_profile_variable(data, v) for v in data.schema)
    return TableProfile(len(data), profiles, np.column_stack(groups), len(data) / data.n_units)


def placeholder_profile(schema: Schema, records: int) -> TableProfile:
    """Create a profile of a table without reading its values.

    Numbers all differ, categorical variables have five levels, and variables are not informative about each other.
    """
    seen = tuple(VariableProfile(v, 0, 5 if v.kind.has_levels else max(2, records), 1 / 5, spread=1.0) for v in schema)
    return TableProfile(records, seen, np.zeros((1, len(seen)), dtype=np.int64))


def _profile_variable(data: Microdata, variable: Variable) -> VariableProfile:
    """Return the profile of one variable of the data."""
    values = data.present_numbers(variable.name)
    missing = len(data) - len(values)
    if not len(values):
        return VariableProfile(variable, missing, 0)
    distinct, counts = np.unique(values, return_counts=True)
    commonest = float(counts.max() / len(values))
    if variable.kind.has_levels:
        return VariableProfile(variable, missing, len(distinct), commonest)
    low, high = (float(end) for end in np.quantile(values, (0.05, 0.95)))
    return VariableProfile(
        variable,
        missing,
        len(distinct),
        commonest,
        float(np.mean(values == 0)),
        float(distinct[0]),
        float(distinct[-1]),
        float(values.mean()),
        float(values.var()),
        high - low or float(distinct[-1] - distinct[0]),
        _skewness(values),
        _skewness(np.log(values)) if variable.kind is not Kind.DATE and distinct[0] > 0 else None,
    )


def _skewness(values: NDArray[np.float64]) -> float | None:
    """Return the third standardised moment; None where values do not differ or are too far apart to be squared."""
    # Squares of values that are far apart overflow; the result is then None.
    with np.errstate(all="ignore"):
        sd = values.std()
        skew = float(np.mean(((values - values.mean()) / sd) ** 3)) if sd > 0 else float("nan")
    return skew if np.isfinite(skew) else None


def _value_groups(data: Microdata, name: str, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the group of each selected record's value, (k,): 0 for a missing value, else the rank of a level, or a
    quantile group.
    """
    values = data.numbers(name)[rows]
    present = ~np.isnan(values)
    found = np.zeros(len(rows), dtype=np.int64)
    if not present.any():
        return found
    distinct, codes, counts = np.unique(values[present], return_inverse=True, return_counts=True)
    if data.schema[name].kind.has_levels or len(distinct) <= GROUPS:
        # The rank by frequency: the rarest levels share the last group.
        order = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
        found[present] = 1 + np.minimum(order, GROUPS - 1)[codes.ravel()]
    else:
        edges = np.unique(np.quantile(values[present], np.linspace(0, 1, GROUPS + 1)[1:-1]))
        found[present] = 1 + np.searchsorted(edges, values[present], side="right")
    return found


def _mutual_information(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Return the bias-corrected mutual information in nats of two columns (k,) of groups from 0."""
    width = int(other.max()) + 1
    table = np.bincount(one * width + other, minlength=(int(one.max()) + 1) * width).reshape(-1, width)
    shares = table[table.any(axis=1)][:, table.any(axis=0)] / len(one)
    product = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0, keepdims=True)
    some = shares > 0
    found = float((shares[some] * np.log(shares[some] / product[some])).sum())
    rows, columns = shares.shape
    # Less its expectation under independence, (r - 1)(c - 1) / 2n (Miller 1955); otherwise variables of many groups
    # would look informative.
    return float(found - (rows - 1) * (columns - 1) / (2 * len(one)))
