"""Units of several records: households, patients, people over time.

A record is a row; a unit is who is protected. A table has units where its schema gives a variable the role ``unit`` and
some value of it has several records. What is said of people is said of units: they are held out, sampled and exchanged
whole, and two units are equal if their records are, in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .arrays import Integers

MOST_APART = 4
"""Records by which the next records of two units that follow each other may be apart, where units come in turn."""
LEAST_IN_TURN, TIMES_CHANCE = 0.25, 4.0
"""Share of the records beyond the first of their unit that are so near, and how many times that of chance."""
FEWEST_IN_TURN = 20
"""Such records of which as many may be near each other by chance."""


@dataclass(frozen=True, eq=False)
class Units:
    """Assignment of n records to U units.

    unit_of: unit of each record, from 0 by first appearance, (n,)
    order: records unit by unit, within a unit in their order, (n,)
    """

    unit_of: Integers
    order: Integers

    @classmethod
    def from_codes(cls, codes: NDArray[Any], ranks: NDArray[Any] | None = None) -> Units:
        """Create the units of records with these codes (n,), a negative code standing for a unit of its own.

        Records of a unit are ordered by ``ranks`` (n,), equal ones and those without by their place in the table.
        """
        codes = np.asarray(codes).astype(np.int64)
        alone = codes < 0
        if alone.any():
            codes = codes.copy()
            codes[alone] = codes.max(initial=-1) + 1 + np.arange(int(alone.sum()))
        unit_of, _ = pd.factorize(codes)
        unit_of = unit_of.astype(np.int64)
        # lexsort is stable, so that equal ranks keep the order of the table
        order = np.argsort(unit_of, kind="stable") if ranks is None else np.lexsort((ranks, unit_of))
        return cls(unit_of, order.astype(np.int64))

    def __len__(self) -> int:
        """Return the number of units."""
        return len(self.sizes)

    @cached_property
    def sizes(self) -> Integers:
        """Return the number of records of each unit, (U,)."""
        return np.bincount(self.unit_of).astype(np.int64)

    @cached_property
    def starts(self) -> Integers:
        """Return the place in ``order`` of the first record of each unit, (U,)."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def first_records(self) -> Integers:
        """Return the first record of each unit, (U,)."""
        return self.order[self.starts]

    @cached_property
    def places(self) -> Integers:
        """Return the place of each record within its unit, from 1, (n,)."""
        places = np.empty(len(self.unit_of), dtype=np.int64)
        places[self.order] = np.arange(len(self.unit_of)) - np.repeat(self.starts, self.sizes) + 1
        return places

    @cached_property
    def previous_records(self) -> Integers:
        """Return the record before each record within its unit, -1 for the first, (n,)."""
        previous = np.full(len(self.unit_of), -1, dtype=np.int64)
        previous[self.order[1:]] = self.order[:-1]
        previous[self.first_records] = -1
        return previous

    @cached_property
    def come_in_turn(self) -> bool:
        """Return whether units come in nearly the same turn again and again, as people do in a panel of one wave after another.

        Of two records that follow each other in the table, the next ones of their units then nearly follow each other too,
        also where some miss a wave.
        """
        by_unit = np.argsort(self.unit_of, kind="stable")
        following = np.full(len(by_unit), -1, dtype=np.int64)
        same = self.unit_of[by_unit[1:]] == self.unit_of[by_unit[:-1]]
        following[by_unit[:-1][same]] = by_unit[1:][same]
        both = (following[1:] >= 0) & (following[:-1] >= 0)
        apart = np.diff(following)[both]
        kept = int(((apart > 0) & (apart <= MOST_APART)).sum())
        # of units in no order, as many are so near each other by chance
        by_chance = MOST_APART / max(1, len(self))
        return kept >= max(LEAST_IN_TURN, TIMES_CHANCE * by_chance) * max(FEWEST_IN_TURN, int(same.sum()))

    def records_of(self, units: Integers) -> Integers:
        """Return the records of some units (k,), unit by unit."""
        sizes = self.sizes[units]
        ends = np.cumsum(sizes)
        return self.order[np.repeat(self.starts[units] - ends + sizes, sizes) + np.arange(int(sizes.sum()))]

    def mark_records(self, units: Integers) -> NDArray[np.bool_]:
        """Mark the records of some units (k,), (n,)."""
        marked = np.zeros(len(self), dtype=np.bool_)
        marked[units] = True
        return marked[self.unit_of]

    def sum_by_unit(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sum over the records of each unit, (U,); of 64-bit keys modulo 2^64."""
        return np.asarray(np.add.reduceat(values[self.order], self.starts))

    def largest_by_unit(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the largest value over the records of each unit, (U,)."""
        return np.asarray(np.maximum.reduceat(values[self.order], self.starts))

    def differing_units(self, values: NDArray[Any]) -> Integers:
        """Return the units whose records have several values, (k,); ``values`` (n,) are codes or numbers."""
        own, first = values[self.order], np.repeat(values[self.first_records], self.sizes)
        # a missing value equals a missing one
        differs = (own != first) & ~(pd.isna(own) & pd.isna(first))
        return np.flatnonzero(np.add.reduceat(differs.astype(np.int64), self.starts))


def code_unit_numbers(values: pd.Series) -> Integers:
    """Return codes of the numbers of units (n,) that are equal where the numbers are, however they are written; -1 for none.

    ``7``, ``007``, ``7.0`` and `` 7`` are one unit: taken for several, a household would be held out in part.
    """
    plain = values.astype(object) if isinstance(values.dtype, pd.CategoricalDtype) else values
    codes, distinct = pd.factorize(plain.array)
    if not pd.api.types.is_numeric_dtype(plain.dtype):
        same, _ = pd.factorize(np.array([_plain_number(one) for one in distinct], dtype=object))
        codes = np.append(same, -1)[codes]
    return np.asarray(codes, dtype=np.int64)


def _plain_number(value: object) -> str:
    """Return the number of a unit without blanks around it, zeros before it and decimals that are zero."""
    text = str(value).strip()
    whole, point, decimals = text.partition(".")
    if whole.isdecimal() and (not point or set(decimals) <= {"0"}):
        return whole.lstrip("0") or "0"
    return text
