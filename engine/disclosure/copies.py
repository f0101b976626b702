"""Confidential records and values that a release repeats, beside how many an independent sample would repeat.

**Records.** What an independent draw from the same population would share with the confidential data is seen in these themselves, by
leaving one out: where the release keeps nothing, the share of the records that equal another one, which is computed exactly
and is unbiased for a reference of n - 1 records (halves of the data would answer for n / 2). Where it keeps variables, the drawn
ones of the nearest other record in the record's place (``sfumato.engine.disclosure.neighbours``). That record is compared with those that share
its kept values but itself, one fewer than a released row is. So what a released row gains by one more of them is added: the share of released rows
that would no longer be found if one of those records, at random, were left out; at most what the records themselves show of it, since a release
that copies records gains more. Numbers with many digits hardly ever repeat.

**Near records** agree in all levels and lie within 1 % in every number: a copy with a little noise equals nobody and is near everybody.
They are counted for at most 500 rows of each dataset, spread evenly over rows in an order that says nothing.

**Lone values** occur once in their column. An independent draw takes one with probability 2 N_2 / n, where N_2 values occur
twice (Good 1953, leaving one out): one of a pair left out makes the other one lone. A copy takes one with probability N_1 / n.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.schema import Kind
from ..data.sorting import distinct_codes, in_order, is_first, sort_order, sorted_values
from .cells import MISSING, Cells, Keys, comparable, counted_keys, occurrences, positions_in, rows_of, runs_in
from .evidence import Found
from .likeness import Likeness, standard_error
from .neighbours import MOST_RECORDS, Pairs, nearest_pairs

Flags = NDArray[np.bool_]
NEAR = 0.01
"""How near a number is, as a share of it."""


def equal_records(
    confidential: Microdata,
    own: Cells,
    releases: Sequence[Cells],
    kept: Sequence[str],
    drawn: Sequence[str],
    pairs: Pairs | None = None,
) -> Likeness:
    """The share of the released rows, on average over the datasets, that equal a confidential record in all variables.

    ``own`` and ``releases`` are the cells of the confidential data and of each dataset, ``pairs`` the nearest ones in what is kept where they
    are known. ``records`` are those that are repeated.
    A dataset that has exactly the confidential rows is a copy, however alike these are: then the baseline is 0.
    """
    n = len(confidential)
    kept_rows, drawn_rows = rows_of(own, kept, n), rows_of(own, drawn, n)
    rows, names = kept_rows + drawn_rows, (*kept, *drawn)
    ordered, lengths, copied = sorted_values(rows), list[int](), False
    classes = _Classes.of(rows, kept_rows) if kept else None
    by_one = list[float]()

    def ascending() -> Iterator[Keys]:
        nonlocal copied
        for cells in releases:
            one = sorted_values(rows_of(cells, names))
            copied |= np.array_equal(one, ordered)
            lengths.append(len(one))
            if classes is not None:
                by_one.append(classes.found_by_one(one))
            yield one

    shares, taken = _taken(ordered[is_first(ordered)], ascending())
    value, repeated = float(np.mean(shares)), np.flatnonzero(positions_in(taken, rows) >= 0)
    if copied:
        return Likeness(1.0, 0.0, records=repeated)
    if classes is None:
        repeats = runs_in(ordered)[1]
        baseline, cases = int(repeats[repeats > 1].sum()) / n, n
    else:
        pairs = nearest_pairs(confidential, kept, rows) if pairs is None else pairs
        made = kept_rows[pairs.own] + drawn_rows[pairs.other]
        found = np.searchsorted(ordered, made, side="right") - np.searchsorted(ordered, made)
        alike = kept_rows[pairs.own] == kept_rows[pairs.other]
        found -= alike
        one_fewer = pairs.share(np.where(alike & (found == 1), 1 / np.maximum(classes.sizes[pairs.own] - 1, 1), 0.0))
        baseline = min(1.0, pairs.share((found > 0).astype(np.float64)) + min(one_fewer, float(np.mean(by_one))))
        cases = pairs.cases
    noise = 2 * float(np.hypot(standard_error(baseline, cases), standard_error(baseline, lengths[0])))
    return Likeness(value, baseline, 1.0, noise, repeated)


@dataclass(frozen=True, eq=False)
class _Classes:
    """Records of the same kept values. ``sizes`` (n,): how many each record is one of. ``rows`` (u,): the different rows, ascending, with the probability
    of each, ``lost`` (u,), that no record has it any more once one of its class, at random, is left out; 0 in a class of one.
    """

    sizes: Integers
    rows: Keys
    lost: Floats

    @classmethod
    def of(cls, rows: Keys, kept_rows: Keys) -> _Classes:
        classes = distinct_codes(kept_rows)
        sizes = classes.counts[classes.codes]
        order, ascending = in_order(rows)
        first = np.flatnonzero(is_first(ascending))
        alike, counts = sizes[order[first]], np.diff(np.append(first, len(rows)))
        return cls(sizes, ascending[first], np.where((counts == 1) & (alike > 1), 1 / alike, 0.0))

    def found_by_one(self, released: Keys) -> float:
        """The share of released rows (k,) that no record would have any more."""
        places = positions_in(self.rows, released)
        return float(self.lost[places[places >= 0]].sum()) / max(1, len(released))


def rows_of_members(rows: Keys, members: int, releases: Sequence[Keys]) -> Found:
    """How many members, and how many hold-out people, have a row that some release has: the rows of both (N,), members first.

    A model that draws common rows more often than the population has them equals more confidential rows than an independent sample
    does, and as many rows of people who were held out.
    """
    shown = np.zeros(len(rows), dtype=np.bool_)
    for one in releases:
        shown |= occurrences(rows, one) > 0
    hits = int(shown[:members].sum())
    return Found("people", "", hits, members, int(shown[members:].sum()), len(rows) - members)


@dataclass(frozen=True, eq=False)
class _Table:
    """Rows to be near each other: the keys of what must be equal, (n,), and the numbers, (n, V)."""

    exact: Keys
    numbers: Floats

    @cached_property
    def _sorted(self) -> tuple[Integers, Keys]:
        return in_order(self.exact)

    def near(self, exact: Keys, numbers: Floats, but: Integers | None = None) -> Flags:
        """Whether each of k rows, keys (k,) and numbers (k, V), is near some row of the table, other than row ``but`` (k,)."""
        order, keys = self._sorted
        start, end = (np.searchsorted(keys, exact, side=side) for side in ("left", "right"))
        found = np.zeros(len(exact), dtype=np.bool_)
        for r in range(len(exact)):
            rows = order[start[r] : end[r]]
            for value, column in zip(numbers[r], self.numbers.T, strict=True):
                theirs = column[rows]
                rows = rows[np.isnan(theirs) if np.isnan(value) else np.abs(theirs - value) <= NEAR * abs(value)]
            found[r] = len(rows) > 0 if but is None else bool((rows != but[r]).any())
        return found


def near_records(
    confidential: Microdata,
    releases: Sequence[Microdata],
    own: Cells,
    cells: Sequence[Cells],
    kept: Sequence[str],
    drawn: Sequence[str],
    pairs: Pairs | None = None,
) -> Likeness:
    """The share of the released rows, on average over the datasets, that are near a confidential record in all variables.

    The baseline is that of ``equal_records``, from at most 500 confidential records. ``own`` and ``cells`` are the cells of the tables,
    ``pairs`` the nearest records in what is kept where they are known.
    """
    n, names = len(confidential), (*kept, *drawn)
    inexact = tuple(name for name in names if confidential.schema[name].kind in (Kind.COUNT, Kind.CONTINUOUS))
    exact_kept, exact_drawn = (tuple(name for name in part if name not in inexact) for part in (kept, drawn))
    numbers = np.column_stack([np.empty((n, 0)), *(comparable(confidential, name) for name in inexact)])
    kept_exact, drawn_exact, rows = rows_of(own, exact_kept, n), rows_of(own, exact_drawn, n), rows_of(own, names, n)
    table = _Table(kept_exact + drawn_exact, numbers)
    shares, looked = [], 0
    for data, those in zip(releases, cells, strict=True):
        some = _spread(rows_of(those, names, len(data)))
        chosen = data.block(some.tolist())
        theirs = np.column_stack([np.empty((len(some), 0)), *(comparable(chosen, name) for name in inexact)])
        shares.append(table.near(rows_of(those, (*exact_kept, *exact_drawn), len(data))[some], theirs).mean())
        looked += len(some)
    if kept:
        pairs = nearest_pairs(confidential, kept, rows) if pairs is None else pairs
    else:
        some = _spread(rows)
        pairs = Pairs(some, some, np.ones(len(some)), len(some))
    of_kept = np.array([name in kept for name in inexact], dtype=np.bool_)
    made = np.where(of_kept, numbers[pairs.own], numbers[pairs.other])
    found = table.near(kept_exact[pairs.own] + drawn_exact[pairs.other], made, pairs.other)
    value, baseline = float(np.mean(shares)), pairs.share(found.astype(np.float64))
    noise = 2 * float(np.hypot(standard_error(baseline, pairs.cases), standard_error(baseline, looked / len(shares))))
    return Likeness(value, baseline, 1.0, noise)


def _spread(rows: Keys) -> Integers:
    """At most 500 of the rows (n,), spread evenly over their order by key."""
    order = sort_order(rows)
    return order[np.linspace(0, len(order) - 1, min(len(order), MOST_RECORDS)).astype(np.int64)]


def lone_values(own: Keys, releases: Iterable[Keys]) -> Likeness:
    """The share of a variable's released cells, on average over the datasets, that are a value which occurs once.

    ``own`` (n,) and each of ``releases`` are cells; missing ones do not count. ``records`` are those whose lone value is released.
    """
    present = own != MISSING
    n = int(present.sum())
    values, counts = counted_keys(own if n == len(own) else own[present])
    lone = values[counts == 1]
    if not len(lone):
        return Likeness(0.0, 0.0, 0.0)
    shares, taken = _taken(lone, (one[one != MISSING] for one in releases))
    twice = int((counts == 2).sum())
    repeated = np.flatnonzero(positions_in(taken, own) >= 0)
    return Likeness(float(np.mean(shares)), 2 * twice / n, len(lone) / n, 4 * float(np.sqrt(twice + 1)) / n, repeated)


def _taken(values: Keys, releases: Iterable[Keys]) -> tuple[list[float], Keys]:
    """Of each release the share of its keys (k,) that are one of the values, ascending (n,), and which values some are."""
    shares, taken = [], np.zeros(len(values), dtype=np.bool_)
    for one in releases:
        places = positions_in(values, sorted_values(one))
        found = places[places >= 0]
        taken[found] = True
        shares.append(len(found) / len(one) if len(one) else 0.0)
    return shares, values[taken]


def rare_levels(
    own: Keys, releases: Iterable[Keys], smallest: int
) -> tuple[int, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """How many levels that fewer than ``smallest`` confidential records have are released, and these records."""
    values, counts = counted_keys(own[own != MISSING])
    rare = _taken(values[counts < smallest], releases)[1]
    return len(rare), np.flatnonzero(np.isin(own, rare))
