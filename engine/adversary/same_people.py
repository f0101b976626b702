"""Comparison of two tables by the columns that they have in common: whether they are of the same people.

Columns identify where more than half of the records are alone with their values, in both tables. By columns that do not, everybody
equals somebody
of any other table, and nothing follows. By columns that do, records are counted that are alone in both tables and have the same values:
such a pair
counts the same in either direction. Two tables are of the same people where these are **more than half of all who are alone in one of
the two**,
so that a small table within a large one counts, and its share of the large one is reported too.

Half is beyond chance: of other people of one population, the number who have a record's values is nearly Poisson, and exactly one
has them with probability x exp(-x), at most 1/e = 0.37, whatever the population is. Few records reach half by chance, so that their number
has to be beyond a binomial one with this probability too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from .cells import Keys, count_occurrences, distinct_key_counts

LEAST_SHARE_ALONE = 0.5
"""More than this share of the records are alone where columns identify, and stand once in the other table where people are the same."""
LARGEST_CHANCE = math.exp(-1)
"""The largest probability that exactly one of other people has a record's values, where their number is Poisson."""
OVERLAP_LEVEL = 1e-3
"""How often as many pairs of records that are alone may be found of other people, at most."""
ALL_SUBSETS = 6
"""Number of common columns up to which all sets of them are examined."""
MOST_ROWS = 4_000_000
"""Rows that are looked at over all sets of columns of two tables; three sets are looked at however large they are."""


@dataclass(frozen=True, eq=False)
class PeopleOverlap:
    """Overlap of the records of a table (n,) with those of another one (N,), by columns that both have.

    names: the columns; none where the tables are one
    only_in_first: records of the first table, from 0, that the second one lacks; equal records count as often as they occur
    n_only_in_second: records of the second table that the first one lacks
    n_common: records that are alone in both tables and have the same values
    n_unique_in_first, n_unique_in_second: records that are alone in their own table
    is_declared_identifier: whether the columns are a declared identifier, which is no chance
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
        """Return the share of those alone in the first table who stand once in the second one."""
        return self.n_common / self.n_unique_in_first if self.n_unique_in_first else 0.0

    @property
    def share_of_second(self) -> float:
        """Return the share of those alone in the second table who stand once in the first one."""
        return self.n_common / self.n_unique_in_second if self.n_unique_in_second else 0.0

    @property
    def could_be_same(self) -> bool:
        """Return whether enough records are alone in both tables to show that people are the same, if they were."""
        alone = min(self.n_unique_in_first, self.n_unique_in_second)
        return _is_beyond_chance(alone, alone)

    @property
    def are_same(self) -> bool:
        """Return whether the tables are of the same people: more than half of one of them, and more than by chance."""
        alone = min(self.n_unique_in_first, self.n_unique_in_second)
        return 2 * self.n_common > alone and (self.is_declared_identifier or _is_beyond_chance(self.n_common, alone))


def _is_beyond_chance(common: int, alone: int) -> bool:
    from scipy.stats import binom

    return bool(binom.sf(common - 1, alone, LARGEST_CHANCE) <= OVERLAP_LEVEL)


def identifies_most(rows: Keys) -> bool:
    """Return whether more than half of the rows (n,) are alone with their values."""
    return 2 * int((distinct_key_counts(rows)[1] == 1).sum()) > len(rows)


def compare_record_rows(names: Sequence[str], ours: Keys, theirs: Keys) -> PeopleOverlap:
    """Return how rows (n,) of some columns overlap with those of another table, (N,), whether the columns identify or not."""
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
    """Return the overlap by a declared identifier: each of its values counts as a person, however many records have it."""
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
    """Return whether numbers (n,) are all different and so dense that they number the rows of a file, and identify no one.

    Two samples of other rows have a share of such numbers in common that is the density, so that it must stay below what chance may reach.
    """
    ascending = np.sort(numbers[~np.isnan(numbers)])
    steps = np.diff(ascending)
    if not len(steps) or len(ascending) < len(numbers) or not (least := float(steps.min())) > 0:
        return False
    multiples = steps / least
    places = float((ascending[-1] - ascending[0]) / least) + 1
    return len(numbers) > LARGEST_CHANCE * places and np.allclose(multiples, np.rint(multiples), rtol=0, atol=1e-6)


def is_enumerated(data: Microdata, name: str) -> bool:
    """Return whether a column numbers its records: whole numbers, days, or texts such as ``P001`` that differ in a number alone."""
    column = data.frame[name]
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
    """Yield the sets of columns by which two tables with ``rows`` rows together are compared, the likeliest first.

    These are all columns in common, all but the sensitive ones, and the known ones. Values that change, such as an age or the year,
    distinguish the same
    people, so smaller sets follow: of few columns all sets, larger ones first; of more all but one, and pairs and triples of the known
        ones.
    """
    everything = tuple(common)
    stable = tuple(name for name in everything if name not in sensitive)
    quasi = tuple(name for name in everything if name in known)
    if len(everything) <= ALL_SUBSETS:
        more = [one for size in range(len(everything), 0, -1) for one in combinations(everything, size)]
    else:
        more = [tuple(name for name in some if name != one) for some in (stable, quasi) for one in some]
        more += [*combinations(quasi, 3), *combinations(quasi, 2)]
    sets = [one for one in dict.fromkeys((everything, stable, quasi, *more)) if one]
    yield from sets[: max(3, MOST_ROWS // max(1, rows))]
