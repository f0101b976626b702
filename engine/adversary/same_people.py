"""Comparison of two tables by their common columns: whether they contain the same people.

Columns identify if more than half of the records are unique on them, in both tables; by others, everybody equals
somebody in any table. Pairs of records are counted that are unique in both tables and equal. Two tables contain the
same people if these are **more than half of all unique records of one of the two**, so that a small table within a
large one counts.

Half is beyond chance: of other people of one population, the number with a record's values is nearly Poisson, and
exactly one has them with probability x exp(-x), at most 1/e = 0.37.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from ..data.arrays import Floats, Integers
from ..data.bits import Keys
from ..data.microdata import Microdata
from .cells import count_occurrences, distinct_key_counts

LEAST_SHARE_ALONE = 0.5
"""Share above which unique records identify, and common unique records show the same people."""
LARGEST_CHANCE = math.exp(-1)
"""Largest Poisson probability that exactly one other person has a record's values."""
OVERLAP_LEVEL = 1e-3
"""Significance level of the number of common unique records."""
ALL_SUBSETS = 6
"""Number of common columns up to which all subsets are compared."""
MOST_ROWS = 4_000_000
"""Largest number of rows processed over all column sets; three sets are always compared."""


@dataclass(frozen=True, eq=False)
class PeopleOverlap:
    """Overlap of the records of a table (n,) with those of another one (N,) on common columns.

    names: the columns; empty if the tables are identical
    only_in_first: records of the first table that the second one lacks; equal records count as often as they occur
    n_only_in_second: number of records of the second table that the first one lacks
    n_common: number of records that are unique in both tables and equal
    n_unique_in_first, n_unique_in_second: number of records that are unique in their own table
    is_declared_identifier: whether the columns are a declared identifier, which excludes chance
    """

    names: tuple[str, ...]
    only_in_first: Integers
    n_only_in_second: int
    n_common: int
    n_unique_in_first: int
    n_unique_in_second: int
    is_declared_identifier: bool = False

    @property
    def share_of_first(self) -> float:
        """Return the share of the unique records of the first table that occur once in the second one."""
        return self.n_common / self.n_unique_in_first if self.n_unique_in_first else 0.0

    @property
    def share_of_second(self) -> float:
        """Return the share of the unique records of the second table that occur once in the first one."""
        return self.n_common / self.n_unique_in_second if self.n_unique_in_second else 0.0

    @property
    def could_be_same(self) -> bool:
        """Return whether there are enough unique records to detect that the people are the same."""
        alone = min(self.n_unique_in_first, self.n_unique_in_second)
        return _is_beyond_chance(alone, alone)

    @property
    def are_same(self) -> bool:
        """Return whether the tables contain the same people: more than half of one of them, and more than by chance."""
        alone = min(self.n_unique_in_first, self.n_unique_in_second)
        return 2 * self.n_common > alone and (self.is_declared_identifier or _is_beyond_chance(self.n_common, alone))


def _is_beyond_chance(common: int, alone: int) -> bool:
    """Return whether ``common`` of ``alone`` unique records are more than chance."""
    from scipy.stats import binom

    # Few records exceed half by chance.
    return bool(binom.sf(common - 1, alone, LARGEST_CHANCE) <= OVERLAP_LEVEL)


def identifies_most(rows: Keys) -> bool:
    """Return whether more than half of the rows (n,) are unique."""
    return 2 * int((distinct_key_counts(rows)[1] == 1).sum()) > len(rows)


def compare_record_rows(names: Sequence[str], ours: Keys, theirs: Keys) -> PeopleOverlap:
    """Return the overlap of rows (n,) of some columns with those of another table, (N,)."""
    mine, other = count_occurrences(ours, ours), count_occurrences(ours, theirs)
    others, back = count_occurrences(theirs, theirs), count_occurrences(theirs, ours)
    alone = mine == 1
    return PeopleOverlap(
        tuple(names),
        np.flatnonzero(other < mine),
        int((back < others).sum()),
        int((alone & (other == 1)).sum()),
        int(alone.sum()),
        int((others == 1).sum()),
    )


def compare_identifiers(names: Sequence[str], ours: Keys, theirs: Keys) -> PeopleOverlap:
    """Return the overlap by a declared identifier, each of whose values counts as one person."""
    mine, others = distinct_key_counts(ours)[0], distinct_key_counts(theirs)[0]
    common = int((count_occurrences(mine, others) > 0).sum())
    missing = np.flatnonzero(count_occurrences(ours, others) == 0)
    return PeopleOverlap(
        tuple(names),
        missing,
        int((count_occurrences(theirs, mine) == 0).sum()),
        common,
        len(mine),
        len(others),
        is_declared_identifier=True,
    )


def is_enumeration(numbers: Floats) -> bool:
    """Return whether numbers (n,) are all distinct and so dense that they number the rows of a file."""
    ascending = np.sort(numbers[~np.isnan(numbers)])
    steps = np.diff(ascending)
    if not len(steps) or len(ascending) < len(numbers) or not (least := float(steps.min())) > 0:
        return False
    multiples = steps / least
    places = float((ascending[-1] - ascending[0]) / least) + 1
    # Two samples of other rows have a share of such numbers in common that equals the density, so it must stay below
    # what chance may reach.
    return len(numbers) > LARGEST_CHANCE * places and np.allclose(multiples, np.rint(multiples), rtol=0, atol=1e-6)


def is_enumerated(data: Microdata, name: str) -> bool:
    """Return whether a column numbers its records by whole numbers, days, or texts such as ``P001``."""
    column = data.frame[name]
    if data.schema[name].runs_of:
        return True  # numbers of runs begin at 1 in every file
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return is_enumeration(data.numbers(name))
    if len(column) != column.nunique():  # most columns with levels end here, before a text is looked at
        return False
    texts = column.astype(str).tolist()
    first, last = min(texts), max(texts)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    prefix = first[:same].rstrip("0123456789")
    digits = [text[len(prefix) :] for text in texts]
    return all(one.isdecimal() for one in digits) and is_enumeration(np.array(digits, dtype=np.float64))


def common_column_sets(
    common: Sequence[str], sensitive: Collection[str], known: Collection[str], rows: int
) -> Iterator[tuple[str, ...]]:
    """Yield the sets of columns by which two tables are compared, the most promising first.

    These are all common columns, all but the sensitive ones, the known ones, and smaller sets; ``rows`` limits their
    number.
    """
    everything = tuple(common)
    stable = tuple(name for name in everything if name not in sensitive)
    quasi = tuple(name for name in everything if name in known)
    # Values that change, such as an age, distinguish the same people, so smaller sets are tried too.
    if len(everything) <= ALL_SUBSETS:
        more = [one for size in range(len(everything), 0, -1) for one in combinations(everything, size)]
    else:
        more = [tuple(name for name in some if name != one) for some in (stable, quasi) for one in some]
        more += [*combinations(quasi, 3), *combinations(quasi, 2)]
    sets = [one for one in dict.fromkeys((everything, stable, quasi, *more)) if one]
    yield from sets[: max(3, MOST_ROWS // max(1, rows))]
