"""Matching of released and confidential units: households, patients, people over time.

Confidential unit u matches released unit v if both have as many records and their compositions on the exact variables,
the records' keys in any order, are equal. With windows the members of both are aligned: by place where the schema
orders the records of a unit, else by the exact variables and then by the numbers in their order. Every number must then
lie in the window of its member. Risks of members are not multiplied, since members are not independent.

The key of a unit is the sum of its records' mixed keys (``sfumato.engine.adversary.cells.unit_keys``), so that any set
of exact variables costs one pass over the records. Up to two windows of a unit are counted like those of records; more so
too where units of equal composition have many pairs that lie in the first window, else by these pairs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats, Integers
from ..data.bits import MISSING_KEY, Keys, mix_bits
from ..data.units import Units
from .matching import BoxEdges, ExactKey, MatchResults, WindowKey, count_in_boxes
from .strategies import MAX_EXHAUSTIVE, BestStrategy, MatchKey, MatchTargets, TargetCounter, best_strategies
from .window_pairs import PairsInWindows

UNITS_AT_ONCE = 1 << 13
MOST_KEPT_PAIRS = 1 << 23
"""Most pairs of units that are compared once for several windows."""
PAIRS_A_NODE = 10
"""Pairs of units that are compared in the time of a dyadic interval of one side of a unit's box."""
BESIDE_ZERO = MISSING_KEY
"""Added before mixing, since the mixed bits of 0 are 0, and a record with this key would not count."""


@dataclass(frozen=True, eq=False)
class _TableOfUnits:
    """Records of one table, unit by unit.

    units: the units
    cells: mixed code of each exact variable, (n,) each
    lower, upper: ends of the window of each variable with a window, or twice its released values, (n,) each
    ranked: numbers by which members are aligned instead of ``lower``, by variable, (n,) each
    """

    units: Units
    cells: Mapping[str, Keys]
    lower: Mapping[str, Floats]
    upper: Mapping[str, Floats]
    ranked: Mapping[str, Floats] = field(default_factory=dict)

    @cached_property
    def _keys_on_all(self) -> Keys:
        """Return the key of each record on all exact variables, (n,)."""
        total = np.zeros(len(self.units.order), dtype=np.uint64)
        for cells in self.cells.values():
            total += cells
        return total

    def row_keys(self, exact: Collection[str], rows: slice = slice(None)) -> Keys:
        """Return the key of each record on some exact variables, (n,), or of some ``rows``."""
        left_out = [name for name in self.cells if name not in exact]
        if len(left_out) < len(exact):
            # Fewer passes: the keys are sums modulo 2^64.
            total = self._keys_on_all[rows].copy()
            for name in left_out:
                total -= self.cells[name][rows]
            return total
        total = np.zeros(len(self.units.order[rows]), dtype=np.uint64)
        for name in exact:
            total += self.cells[name][rows]
        return total

    def composition_keys(self, exact: Collection[str]) -> Keys:
        """Return the key of each unit on some exact variables, (U,): of the multiset of its records."""
        found = np.empty(len(self.units), dtype=np.uint64)
        starts, ends = self.units.starts, np.append(self.units.starts, len(self.units.order))
        # Blocks of units stay in the processor's cache.
        for first in range(0, len(found), UNITS_AT_ONCE):
            last = min(first + UNITS_AT_ONCE, len(found))
            rows = slice(int(ends[first]), int(ends[last]))
            keys = mix_bits(self.row_keys(exact, rows) + BESIDE_ZERO)
            found[first:last] = np.add.reduceat(keys, starts[first:last] - rows.start)
        return found

    def unit_keys(self, exact: Collection[str], *, by_place: bool) -> Keys:
        """Return the key of each unit on some exact variables, (U,), of its records in their order or in any."""
        return self.sequence_keys(self.row_keys(exact)) if by_place else self.composition_keys(exact)

    def sequence_keys(self, rows: Keys) -> Keys:
        """Return the key of the sequence of each unit's row keys, (U,)."""
        place = np.arange(len(rows)) - np.repeat(self.units.starts, self.units.sizes) + 1
        keys = mix_bits(rows + BESIDE_ZERO) + place.astype(np.uint64) * BESIDE_ZERO
        return np.asarray(np.add.reduceat(mix_bits(keys + BESIDE_ZERO), self.units.starts), dtype=np.uint64)

    def members(self, units: Integers, size: int) -> Integers:
        """Return the records of some units (k,) of one size, in their order, (k, size)."""
        return np.asarray(self.units.starts[units][:, None] + np.arange(size))

    def sorted_members(self, units: Integers, size: int, rows: Keys, windows: Sequence[str]) -> Integers:
        """Return the records of some units (k,) of one size by row key, then by the numbers in their order, (k, size)."""
        members = self.members(units, size)
        if size == 1:
            return members
        numbers = (self.ranked.get(name, self.lower[name])[members] for name in reversed(windows))
        by = (*numbers, rows[members])
        return np.take_along_axis(members, np.lexsort(by, axis=-1), axis=1)


@dataclass(frozen=True, eq=False)
class _UnitsOfSize:
    """Units of both tables that have one number of records, with their members aligned.

    queries: places of the confidential units among the targets, (k,)
    points: released units, (r,)
    of_query, of_point: records of each, in the order in which they are compared, (k, size) and (r, size)
    lower, upper: ends of the windows of all their members, (k, size times windows) each
    values: released values of all members, (r, size times windows)
    group, point_group: number of each unit's composition on the exact variables, (k,) and (r,)
    """

    queries: Integers
    points: Integers
    of_query: Integers
    of_point: Integers
    lower: Floats
    upper: Floats
    values: Floats
    group: Integers
    point_group: Integers

    def own_pairs(self, hit: Booleans, own: Integers) -> tuple[Integers, Integers, Booleans]:
        """Return the places among ``queries`` of units that are hits so far, those of their own released units among
        ``points``, and whether these lie in all windows. Both ``hit`` and ``own`` are by target, (q,).
        """
        found = np.flatnonzero(hit[self.queries])
        place = np.searchsorted(self.points, own[self.queries[found]])
        inside = (self.lower[found] <= self.values[place]) & (self.values[place] <= self.upper[found])
        return found, place, np.asarray(inside.all(axis=1))


class UnitMatcher:
    """Matcher of the units of two tables by any of some known variables."""

    def __init__(
        self, keys: Mapping[str, MatchKey], confidential: Units, released: Units, *, by_place: bool, own: Integers
    ) -> None:
        """Create the matcher from keys of records; ``own`` (U,) is the released unit of each unit, -1 for none.

        by_place: whether members are aligned by their order within the unit
        """
        self.names, self.by_place, self.own = tuple(keys), by_place, own
        self.windows = tuple(name for name, key in keys.items() if isinstance(key, WindowKey))
        tables = _TableOfUnits(confidential, {}, {}, {}), _TableOfUnits(released, {}, {}, {})
        for number, (name, key) in enumerate(keys.items()):
            tables = _with_key(tables, number, name, key)
        self.ours, self.theirs = tables

    def with_key(
        self, name: str, key: MatchKey, place: int | None = None, *, ranked: Floats | None = None
    ) -> UnitMatcher:
        """Return the matcher with one more variable, at a ``place`` among those by which members are aligned; last without.

        ``ranked`` (n,) are the numbers by which confidential members are aligned, by default the lower ends of windows.
        """
        found = copy(self)
        place = len(self.names) if place is None else place
        found.names = (*self.names[:place], name, *self.names[place:])
        ours, found.theirs = _with_key((self.ours, self.theirs), len(self.names), name, key)
        if ranked is not None:
            ours = replace(ours, ranked={**ours.ranked, name: ranked[ours.units.order]})
        found.ours, found.windows = ours, tuple(one for one in found.names if one in ours.lower)
        return found

    def with_own(self, own: Integers) -> UnitMatcher:
        """Return the matcher with other released units as own ones, (U,)."""
        found = copy(self)
        found.own = own
        return found

    def is_kept(self, name: str) -> bool:
        """Return whether each unit's own records have the same values of an exact variable, in the same order."""
        return (
            name not in self.windows
            and np.array_equal(self.own, np.arange(len(self.theirs.units)))
            and np.array_equal(self.ours.units.sizes, self.theirs.units.sizes)
            and np.array_equal(self.ours.cells[name], self.theirs.cells[name])
        )

    def match(
        self, names: Collection[str], targets: Integers, *, count: bool = True, of_hits: bool = False
    ) -> MatchResults:
        """Return candidates and hits of some units (q,) that are matched by some of the variables, (q,) each.

        Without ``count`` the candidates are 0, and the hits are found sooner; with ``of_hits`` they may be 0 of units that
        are no hits.
        """
        exact = [name for name in self.names if name in names and name not in self.windows]
        windows = [name for name in self.windows if name in names]
        by_place = self.by_place and bool(windows)
        ours, theirs = (table.unit_keys(exact, by_place=by_place) for table in (self.ours, self.theirs))
        own = self.own[targets]
        hit = own >= 0
        hit[hit] = ours[targets[hit]] == theirs[own[hit]]
        if not windows and not count:
            return MatchResults(np.zeros(len(targets), dtype=np.int64), hit)
        if not windows:
            codes = pd.factorize(np.concatenate([ours[targets], theirs]))[0]
            return MatchResults(count_in_boxes(codes[: len(targets)], codes[len(targets) :], []), hit)
        candidates = np.zeros(len(targets), dtype=np.int64)
        for some in self._sizes_of_units(exact, windows, targets, ours, theirs):
            found, _, inside = some.own_pairs(hit, own)
            hit[some.queries[found]] = inside
            if count:
                chosen = hit[some.queries] if of_hits else slice(None)
                candidates[some.queries[chosen]] = _count_in_windows(
                    some.group[chosen], some.lower[chosen], some.upper[chosen], some.point_group, some.values
                )
        return MatchResults(candidates, hit)

    def match_in_each(
        self, names: Collection[str], variable: str, windows: Sequence[WindowKey]
    ) -> list[MatchResults] | None:
        """Return candidates and hits of all units by some variables, with each of several windows of one of them.

        This matcher's window of the ``variable`` has to hold all of the ``windows``; it aligns the members for all of
        them. Returns None where so many pairs of units lie in it that counting window by window is faster.
        """
        exact = [name for name in self.names if name in names and name not in self.windows]
        among = [name for name in self.windows if name in names]
        everyone = np.arange(len(self.ours.units))
        ours, theirs = (table.unit_keys(exact, by_place=self.by_place) for table in (self.ours, self.theirs))
        equal = self.own >= 0
        equal[equal] = ours[equal] == theirs[self.own[equal]]
        ends = [[_in_order(self.ours.units, one) for one in (key.lower, key.upper)] for key in windows]
        found = [MatchResults(np.zeros(len(everyone), dtype=np.int64), equal.copy()) for _ in windows]
        left = MOST_KEPT_PAIRS
        for some in self._sizes_of_units(exact, among, everyone, ours, theirs):
            boxes = _without_repeats(some.lower, some.upper, some.values)
            pairs = PairsInWindows.from_windows(some.group, boxes[0], boxes[1], some.point_group, boxes[2])
            if pairs.number > left:
                return None
            left -= pairs.number
            own, place, near = some.own_pairs(equal, self.own)
            drawn = self.theirs.lower[variable][some.of_point]
            query, point = (np.concatenate(one) for one in zip(*pairs.chunks(), strict=True))
            for result, sides in zip(found, ends, strict=True):
                least, most = (side[some.of_query] for side in sides)
                among_pairs = _all_between(least, most, drawn, query, point)
                result.candidates[some.queries] = np.bincount(query[among_pairs], minlength=len(some.queries))
                result.hit[some.queries[own]] = near & _all_between(least, most, drawn, own, place)
        return found

    def _sizes_of_units(
        self, exact: Sequence[str], windows: Sequence[str], targets: Integers, ours: Keys, theirs: Keys
    ) -> Iterator[_UnitsOfSize]:
        """Yield the targets (q,) and all released units by their size, with their members aligned.

        ``ours`` (U,) and ``theirs`` (V,) are the keys of the units on the ``exact`` variables.
        """
        codes = pd.factorize(np.concatenate([ours[targets], theirs]))[0].astype(np.int64)
        group, point_group = codes[: len(targets)], codes[len(targets) :]
        row_keys = [table.row_keys(exact) for table in (self.ours, self.theirs)]
        sizes, point_sizes = self.ours.units.sizes[targets], self.theirs.units.sizes
        for size in np.unique(sizes):
            queries, points = np.flatnonzero(sizes == size), np.flatnonzero(point_sizes == size)
            of_query, of_point = (
                table.members(units, int(size))
                if self.by_place
                else table.sorted_members(units, int(size), keys, windows)
                for table, units, keys in zip(
                    (self.ours, self.theirs), (targets[queries], points), row_keys, strict=True
                )
            )
            lower, upper, values = (
                np.concatenate([ends[name][of] for name in windows], axis=1)
                for ends, of in (
                    (self.ours.lower, of_query),
                    (self.ours.upper, of_query),
                    (self.theirs.lower, of_point),
                )
            )
            yield _UnitsOfSize(
                queries, points, of_query, of_point, lower, upper, values, group[queries], point_group[points]
            )


def _with_key(
    tables: tuple[_TableOfUnits, _TableOfUnits], number: int, name: str, key: MatchKey
) -> tuple[_TableOfUnits, _TableOfUnits]:
    """Return the tables of confidential and of released records with one more variable, the one of this ``number``."""
    ours, theirs = tables
    if isinstance(key, ExactKey):
        both = key.any_codes()
        # Few values: the mixed bits of each are looked up. The last are those of a missing one, whose code is -1.
        distinct = np.arange(2 + max(int(codes.max(initial=0)) for codes in both)).astype(np.uint64)
        mixed = mix_bits(distinct + np.uint64((number + 1) << 48))
        cells = (mixed[_in_order(one.units, codes)] for one, codes in zip(tables, both, strict=True))
        own, drawn = ({**one.cells, name: more} for one, more in zip(tables, cells, strict=True))
        return replace(ours, cells=own), replace(theirs, cells=drawn)
    lower, upper = (_in_order(ours.units, end) for end in (key.lower, key.upper))
    values = _in_order(theirs.units, key.released)
    return (
        replace(ours, lower={**ours.lower, name: lower}, upper={**ours.upper, name: upper}),
        replace(theirs, lower={**theirs.lower, name: values}, upper={**theirs.upper, name: values}),
    )


def own_units(confidential: Units, released: Units) -> Integers:
    """Return the released unit of each confidential unit, that of its first record, (U,); -1 for none.

    Released row i is that of confidential record i.
    """
    first, n = confidential.first_records, len(released.unit_of)
    return np.where(first < n, released.unit_of[np.minimum(first, n - 1)], -1).astype(np.int64)


def _without_repeats(*columns: Floats) -> list[Floats]:
    """Return arrays (., d) without the columns that equal the one before in each, as of a variable of the unit."""
    # The first row tells nearly all columns apart.
    alike = [one[:1, 1:] == one[:1, :-1] for one in columns]
    alike = [same | (np.isnan(one[:1, 1:]) & np.isnan(one[:1, :-1])) for same, one in zip(alike, columns, strict=True)]
    may_repeat = np.append(False, np.all(np.concatenate(alike), axis=0))
    kept = [
        j
        for j in range(columns[0].shape[1])
        if not (may_repeat[j] and all(np.array_equal(one[:, j], one[:, j - 1], equal_nan=True) for one in columns))
    ]
    return [one if len(kept) == one.shape[1] else one[:, kept] for one in columns]


def _count_in_windows(group: Integers, lower: Floats, upper: Floats, point_group: Integers, values: Floats) -> Integers:
    """Count the points (r, d) of each query's group that lie in all its windows (q, d), (q,)."""
    lower, upper, values = _without_repeats(lower, upper, values)
    if values.shape[1] <= 2:
        edges = [BoxEdges.from_windows(*sides) for sides in zip(lower.T, upper.T, values.T, strict=True)]
        return np.asarray(count_in_boxes(group, point_group, edges), dtype=np.int64)
    pairs = PairsInWindows.from_windows(group, lower, upper, point_group, values)
    if pairs.number > PAIRS_A_NODE * len(group):
        edges = [BoxEdges.from_windows(*sides) for sides in zip(lower.T, upper.T, values.T, strict=True)]
        widths = sorted(float(np.mean(np.maximum(side.stop - side.start, 1))) for side in edges)
        # All sides but two are cut into dyadic intervals, about as many as the width has bits.
        nodes = np.prod(1 + np.log2(widths[:-2]))
        if pairs.number > PAIRS_A_NODE * nodes * len(group):
            return np.asarray(count_in_boxes(group, point_group, edges), dtype=np.int64)
    return pairs.count_by_query()


def _all_between(lower: Floats, upper: Floats, values: Floats, query: Integers, point: Integers) -> Booleans:
    """Return whether each pair's values lie in all windows, (p,), of windows (q, size) and values (r, size)."""
    inside = np.ones(len(query), dtype=bool)
    for member in range(lower.shape[1]):
        value = values[point, member]
        inside &= (lower[query, member] <= value) & (value <= upper[query, member])
    return inside


def _in_order(units: Units, values: NDArray[Any]) -> NDArray[Any]:
    """Return values of records (n,) unit by unit."""
    # Most tables are in this order already.
    is_ascending = (units.order[1:] > units.order[:-1]).all()
    return values if is_ascending else values[units.order]


class _UnitSubsetCounter(TargetCounter):
    """Counter of the candidates of some units for subsets of variables, in addition to those always used."""

    def __init__(self, matcher: UnitMatcher, targets: MatchTargets, always: Sequence[str]) -> None:
        """Match the units by each variable alone."""
        self.matcher, self.targets, self.always = matcher, targets, always
        # Units of equal composition on a set have equal compositions on each variable of it.
        self.agreement: Mapping[str, Booleans] = {
            # A kept variable needs no keys.
            name: targets.own_released >= 0
            if matcher.is_kept(name)
            else matcher.match([name], targets.rows, count=False).hit
            for name in matcher.names
            if name not in always
        }

    def match_targets(self, chosen: Collection[str]) -> MatchResults:
        """Return candidates and hits of the units with these variables too, (q,) each."""
        return self.matcher.match([*self.always, *chosen], self.targets.rows)


def find_best_unit_matches(
    matcher: UnitMatcher, targets: Integers, most: int = MAX_EXHAUSTIVE
) -> tuple[BestStrategy, BestStrategy]:
    """Return the strategies with the largest expected match risk and the largest true match rate of some units (q,).

    Of more than ``most`` variables those on which every unit has its own values are always used.
    """
    sought = MatchTargets(targets, matcher.own[targets])
    counter = _UnitSubsetCounter(matcher, sought, ())
    if len(matcher.names) > most:
        present = sought.own_released >= 0
        always = [name for name, agrees in counter.agreement.items() if agrees[present].all()]
        counter = _UnitSubsetCounter(matcher, sought, always)
    return best_strategies(counter, matcher.names, counter.always)
