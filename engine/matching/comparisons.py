"""Comparison of a confidential and a released record by variable: equal, within a radius, near, or apart.

    level 0          the values are equal, or both are missing
    level 1, 2       of a number or date with a radius: within it; within ``near`` times it
    the last level   anything else

Codes and ranks of values are compared, so that code that works on pairs sees no value of the data. The levels of all
variables of a pair are its agreement pattern.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.record_keys import KeyNumbers
from ..data.rows import distinct_codes
from .radius import Radius

MAX_PATTERNS = 4096
"""Largest number of patterns of one group of variables."""

AgreementLevels = NDArray[np.int8]
PatternCodes = list[NDArray[Any]]


@dataclass(frozen=True, eq=False)
class VariableComparison:
    """One variable of n confidential and m released records, prepared for comparison.

    name: name of the variable
    confidential_codes: codes of the confidential values, in the order of the values, (n,)
    released_codes: codes of the released values, equal to those of equal values, (m,)
    released_rank: rank of each released number, -1 if missing, (m,)
    windows: first and last rank inside each window, (n,) each, the narrowest window first
    """

    name: str
    confidential_codes: Integers
    released_codes: Integers
    released_rank: Integers
    windows: tuple[tuple[Integers, Integers], ...] = ()

    @classmethod
    def from_tables(
        cls, confidential: Microdata, released: Microdata, name: str, radius: Radius | None, near: float
    ) -> VariableComparison:
        """Prepare a variable with the window of its radius and one ``near`` times as wide.

        Raises NotComputable if it is released as labels.
        """
        ours, theirs = _value_codes(confidential, released, name)
        if radius is None:
            return cls(name, ours, theirs, np.zeros(len(theirs), dtype=np.int64))
        centre, numbers = confidential.numbers(name), released.numbers(name)
        distinct = np.unique(numbers[~np.isnan(numbers)])
        place = np.where(np.isnan(numbers), -1, np.searchsorted(distinct, numbers)).astype(np.int64)
        wide = replace(radius, amount=radius.amount * near)
        return cls(
            name, ours, theirs, place, tuple(_window_ranks(one.window(centre), distinct) for one in (radius, wide))
        )

    @property
    def level_count(self) -> int:
        """Return the number of agreement levels."""
        return 2 + len(self.windows)

    def agreement_levels(self, i: Integers, j: Integers) -> AgreementLevels:
        """Return the agreement levels of pairs of confidential records and released records.

        ``i`` and ``j`` are broadcast together.
        """
        found = np.full(np.broadcast_shapes(i.shape, j.shape), self.level_count - 1, dtype=np.int8)
        place = self.released_rank[j]
        # The widest window first, so that narrower ones overwrite it.
        for level, (first, last) in reversed(tuple(enumerate(self.windows, start=1))):
            found[(first[i] <= place) & (place <= last[i])] = level
        found[self.confidential_codes[i] == self.released_codes[j]] = 0
        return found

    @property
    def confidential_columns(self) -> tuple[Integers, ...]:
        """Return the columns that decide how a confidential record is compared, (n,) each."""
        return (self.confidential_codes, *(end for window in self.windows for end in window))


def _value_codes(confidential: Microdata, released: Microdata, name: str) -> tuple[Integers, Integers]:
    """Return codes of both tables' values, (n,) and (m,), in the order of the values; missing is a value."""
    numbers, tables = KeyNumbers.from_tables([name], [confidential, released]), (confidential, released)
    both = np.concatenate([numbers.columns_of(data)[0] for data in tables])
    codes = np.nan_to_num(both, nan=-1.0) if name in numbers.levels else distinct_codes(both).codes
    ours, theirs = np.split(codes.astype(np.int64), [len(confidential)])
    return ours, theirs


def _window_ranks(window: tuple[Floats, Floats], distinct: Floats) -> tuple[Integers, Integers]:
    """Return the first and last of the ``distinct`` numbers inside each window; first after last if empty."""
    lower, upper = window
    missing = np.isnan(lower)
    first = np.searchsorted(distinct, np.where(missing, 0.0, lower), side="left")
    last = np.searchsorted(distinct, np.where(missing, 0.0, upper), side="right") - 1
    nowhere = missing | (first > last)
    return np.where(nowhere, 0, first).astype(np.int64), np.where(nowhere, -1, last).astype(np.int64)


def compare_variables(
    confidential: Microdata,
    released: Microdata,
    names: Sequence[str],
    radius: Mapping[str, Radius],
    near: float,
) -> tuple[VariableComparison, ...]:
    """Return the comparison of each variable."""
    return tuple(VariableComparison.from_tables(confidential, released, name, radius.get(name), near) for name in names)


@dataclass(frozen=True)
class AgreementPatterns:
    """Agreement patterns as one code for each group of variables."""

    groups: tuple[tuple[VariableComparison, ...], ...]

    @classmethod
    def from_comparisons(cls, comparisons: Sequence[VariableComparison]) -> AgreementPatterns:
        """Group the variables, each group with at most ``MAX_PATTERNS`` patterns."""
        groups: list[list[VariableComparison]] = [[]]
        for one in comparisons:
            if math.prod(other.level_count for other in groups[-1]) * one.level_count > MAX_PATTERNS:
                groups.append([])
            groups[-1].append(one)
        return cls(tuple(map(tuple, groups)))

    def pattern_codes(self, i: Integers, j: Integers) -> PatternCodes:
        """Return the pattern codes of pairs of confidential records and released records.

        ``i`` and ``j`` are broadcast together.
        """
        found: PatternCodes = []
        for group in self.groups:
            codes = np.zeros(np.broadcast_shapes(i.shape, j.shape), dtype=np.int16)
            for one in group:
                codes *= np.int16(one.level_count)
                codes += one.agreement_levels(i, j)
            found.append(codes)
        return found

    def levels_of_patterns(self, codes: PatternCodes) -> Integers:
        """Return the level of every variable in each of p patterns, (p, variables)."""
        columns: list[Any] = []
        for group, numbers in zip(self.groups, codes, strict=True):
            columns += np.unravel_index(numbers, [one.level_count for one in group]) if group else []
        return np.column_stack(columns) if columns else np.zeros((len(codes[0]), 0), dtype=np.int64)

    def pattern_weights(self, level_weights: Sequence[Floats]) -> list[Floats]:
        """Return the match weight of each pattern of each group, (patterns,), given the weights of the levels."""
        left, tables = iter(level_weights), []
        for group in self.groups:
            total = np.zeros(1)
            for _ in group:
                total = (total[:, None] + next(left)[None, :]).ravel()
            tables.append(total)
        return tables
