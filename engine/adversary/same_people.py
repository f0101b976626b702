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
from ..data.long_arrays import compress_column, compute_column, long_blocks
from ..data.microdata import Microdata
from ..data.sorting import sorted_unique
from ..statistics.ranks_and_tails import binomial_tail
from .cells import count_occurrences, distinct_key_counts

LEAST_SHARE_ALONE = 0.5
"""Share above which unique records identify, and common unique records show the same people."""
LARGEST_CHANCE = math.exp(-1)
"""Largest Poisson probability that exactly one other person has a record's values."""
LEAST_DENSITY = 0.01
"""Share of the places between the least and the largest number from which numbers may be those of any other file."""
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
    # Few records exceed half by chance.
    return bool(binomial_tail(common - 1, alone, LARGEST_CHANCE) <= OVERLAP_LEVEL)


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


def agree_at_numbers(ours: Keys, theirs: Keys, own_columns: Sequence[Keys], other_columns: Sequence[Keys]) -> bool:
    """Return whether two tables agree in some column where their numbers do, beyond what their neighbours do.

    Units that are numbered 1, 2, ... have the same numbers in any two files: only what stands beside the numbers shows the
    same people. The reference are the numbers before and after, since files that are sorted alike are alike at equal places.

    Parameters ---------- ours, theirs : keys
        Numbers of the records of either table, (n,) and (N,).
    own_columns, other_columns : sequences of keys
        The same columns of either table, (n,) and (N,) each.
    """
    mine, places, of_mine = np.unique(ours, return_index=True, return_inverse=True)
    others, of_others = np.unique(theirs, return_inverse=True)
    common, at, there = np.intersect1d(mine, others, assume_unique=True, return_indices=True)
    if len(common) < 2:
        return False
    # keys have no order of their own: neighbours are those of the file
    turn = np.argsort(places[at])
    at, there = at[turn], there[turn]
    for own, other in zip(own_columns, other_columns, strict=True):
        first, second = _least_of_groups(own, of_mine)[at], _least_of_groups(other, of_others)[there]
        # both neighbours, since of files that are sorted one may be ahead of the other
        beyond = 2 * (first == second) - sum((first == np.roll(second, by)).astype(np.int64) for by in (-1, 1))
        more, less = int((beyond > 0).sum()), int((beyond < 0).sum())
        if binomial_tail(more - 1, more + less, 0.5) <= OVERLAP_LEVEL / len(own_columns):
            return True
    return False


def _least_of_groups(values: Keys, groups: Integers) -> Keys:
    """Return the least value of each group, (g,), of values (n,) in groups (n,): the order of the records does not matter."""
    found = np.full(int(groups.max()) + 1, np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(found, groups, values)
    return found


def is_enumeration(numbers: Floats) -> bool:
    """Return whether numbers (n,) are all distinct and so dense that they number the rows of a file."""
    distinct = sorted_unique(_present_numbers(numbers))
    # Two samples of other rows have a share of such numbers in common that equals the density, so it must stay below
    # what chance may reach.
    return len(distinct) == len(numbers) and density_of_numbers(distinct) > LARGEST_CHANCE


def density_of_numbers(distinct: Floats) -> float:
    """Return the share of the places from the least to the largest of some numbers (k,), ascending, that they take.

    It is 0 where the numbers have no common step, as whole numbers have.
    """
    least = min((float(_steps_in(distinct, rows).min()) for rows in long_blocks(len(distinct) - 1)), default=0.0)
    if not least > 0:
        return 0.0
    places = float((distinct[-1] - distinct[0]) / least) + 1
    for rows in long_blocks(len(distinct) - 1):
        multiples = _steps_in(distinct, rows) / least
        if not np.allclose(multiples, np.rint(multiples), rtol=0, atol=1e-6):
            return 0.0
    return len(distinct) / places


def _steps_in(distinct: Floats, rows: slice) -> Floats:
    """Return the steps from some of the numbers (k,) to the next ones."""
    return np.diff(distinct[rows.start : rows.stop + 1])


def _present_numbers(numbers: Floats) -> Floats:
    """Return the numbers (n,) but NaN."""
    return compress_column(numbers, compute_column(len(numbers), np.bool_, lambda rows: ~np.isnan(numbers[rows])))


def density_of_identifier(data: Microdata, name: str) -> float:
    """Return the share of the places between them that the distinct values of an identifier take; 0 for texts without a number.

    Two files whose records, or units of several records, are numbered 1, 2, ... have the same ones, whoever they are about.
    """
    if data.schema[name].runs_of:
        return 1.0  # numbers of runs begin at 1 in every file
    column = data.frame[name]
    if not isinstance(column.dtype, pd.CategoricalDtype):
        numbers = data.numbers(name)
        return density_of_numbers(sorted_unique(_present_numbers(numbers)))
    numbers_in_texts = _numbers_in_texts(list(dict.fromkeys(column.dropna().astype(str))))
    return 0.0 if numbers_in_texts is None else density_of_numbers(np.unique(numbers_in_texts))


def _numbers_in_texts(texts: Sequence[str]) -> Floats | None:
    """Return the numbers of texts such as ``P001``, (k,), which begin alike; None where they have none."""
    if not texts:
        return None
    first, last = min(texts), max(texts)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    prefix = first[:same].rstrip("0123456789")
    digits = [text[len(prefix) :] for text in texts]
    return np.array(digits, dtype=np.float64) if all(one.isdecimal() for one in digits) else None


def is_enumerated(data: Microdata, name: str) -> bool:
    """Return whether a column numbers its records by whole numbers, days, or texts such as ``P001``."""
    column = data.frame[name]
    if data.schema[name].runs_of:
        return True  # numbers of runs begin at 1 in every file
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return is_enumeration(data.numbers(name))
    if len(column) != column.nunique():  # most columns with levels end here, before a text is looked at
        return False
    numbers = _numbers_in_texts(column.astype(str).tolist())
    return numbers is not None and is_enumeration(numbers)


def numbers_people(data: Microdata, name: str) -> bool:
    """Return whether the distinct values of an identifier number people or units from 1 on, as those of any other file may."""
    return density_of_identifier(data, name) > LARGEST_CHANCE


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
