"""Which published counts stay open because single records can take other values: a proof that works for any number of variables.

Take records that have all published counts, and move one of them to another value of variable i so that all published counts stay as they were
printed. Both tables could be the confidential one, and every count of a combination that has variable i and held the record differs by one
between them. So no such count follows, of any set of variables that contains i, whatever other variables it has. The same holds where a record
goes to the values of another one: for every set of variables in which the two differ.

The moves are tried from the confidential records, and from records that were moved at random before, with all published counts kept. A variable of
a record that has moved is *open*. A count can follow only where no record that it counts is open in one of its variables. Nothing is
searched in the table of all variables, so its size does not matter, and every table is one of whole numbers.

The proof goes one way. What stays closed may follow or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from .domain import Clique

ROUNDS = 60
"""Random tables from which moves are tried."""
PATIENCE = 12
"""Rounds without a new open variable after which the search ends."""
SHARES = (0.5, 0.25, 0.1, 0.04)
"""Shares of the records that are moved at random, round after round."""
MOST_MOVED = 3_000
SWEEPS = 3
"""Times that each of these records, of which there are at most ``MOST_MOVED``, is moved in a round."""
PARTNERS = 8
"""Records whose values others are moved to in a round, and whose place others take."""


@dataclass(frozen=True, eq=False)
class Released:
    """The smallest and the largest count that each cell of a published table can have had.

    ``groups`` give for each axis the category of the table that each category of the domain lies in; its own where there are none.
    """

    clique: Clique
    low: Floats
    high: Floats
    groups: tuple[Integers, ...] = ()

    @classmethod
    def coarsened(cls, clique: Clique, table: Floats, limit: int, impossible: Booleans | None = None) -> Self:
        """Return the bounds of counts that were rounded to multiples of ``limit``; cells that cannot be are 0."""
        low = np.maximum(np.ceil(table - limit / 2), 0.0)
        high = np.ceil(table + limit / 2) - 1
        if impossible is not None:
            high = np.where(impossible, 0.0, high)
        return cls(clique, low, high)

    @classmethod
    def exact(cls, clique: Clique, table: Floats) -> Self:
        """Return the bounds of counts that are published as they are."""
        return cls(clique, table, table)

    @classmethod
    def impossible(cls, clique: Clique, cells: Booleans) -> Self:
        """Return the bounds of a condition that everybody knows: no record lies in these cells."""
        return cls(clique, np.zeros(cells.shape), np.where(cells, 0.0, np.inf))

    def offsets(self, variable: int, size: int) -> Integers:
        """Return what each of ``size`` categories of a variable adds to the number of a cell, (size,)."""
        if variable not in self.clique:
            return np.zeros(size, dtype=np.int64)
        axis = self.clique.index(variable)
        stride = int(np.prod(self.low.shape[axis + 1 :], dtype=np.int64))
        groups = self.groups[axis] if self.groups else np.arange(size)
        return np.asarray(groups, dtype=np.int64) * stride

    def cells(self, codes: Integers) -> Integers:
        """Return the number of the cell of each record, (n,), from the categories of all variables ``codes`` (n, d)."""
        found = np.zeros(len(codes), dtype=np.int64)
        for axis, variable in enumerate(self.clique):
            found *= self.low.shape[axis]
            own = codes[:, variable]
            found += self.groups[axis][own] if self.groups else own
        return found


@dataclass(frozen=True)
class Grouping:
    """Categories of a variable by which counts are formed: its own, or coarser ones that a published table has.

    groups: number of the coarser category of each category, (size,)
    """

    variable: int
    groups: Integers


def groupings_of(variables: Sequence[int], sizes: Sequence[int], tables: Sequence[Released]) -> tuple[Grouping, ...]:
    """Return the groupings of each variable: its own categories first, then those of published tables with coarser ones."""
    found: list[Grouping] = []
    for variable in variables:
        own = {tuple(range(sizes[variable]))}
        for table in tables:
            if variable in table.clique and table.groups:
                own.add(tuple(table.groups[table.clique.index(variable)].tolist()))
        several = sorted(own, key=lambda groups: (-len(set(groups)), groups))
        found += [Grouping(variable, np.array(groups)) for groups in several]
    return tuple(found)


class _Fibre:
    """Records that have all published counts, which are kept by every move."""

    def __init__(self, sizes: Sequence[int], tables: Sequence[Released], codes: Integers) -> None:
        self.sizes, self.tables = sizes, tables
        self.codes = codes.copy()
        self.cell = [table.cells(codes) for table in tables]
        self.counts = [
            np.bincount(own, minlength=table.low.size).astype(np.float64)
            for own, table in zip(self.cell, tables, strict=True)
        ]
        self.low, self.high = [one.low.ravel() for one in tables], [one.high.ravel() for one in tables]
        self.offsets = {
            variable: [
                (at, one.offsets(variable, sizes[variable])) for at, one in enumerate(tables) if variable in one.clique
            ]
            for variable in range(len(sizes))
        }

    def copy(self) -> _Fibre:
        """Return the same records, to be moved on."""
        other = object.__new__(_Fibre)
        other.__dict__ |= self.__dict__
        other.codes, other.cell = self.codes.copy(), [own.copy() for own in self.cell]
        other.counts = [own.copy() for own in self.counts]
        return other

    def room(self, at: int) -> tuple[Floats, Floats]:
        """Return how many records may leave each cell of a table, and how many may enter it."""
        return self.counts[at] - self.low[at], self.high[at] - self.counts[at]

    def movable(self, variable: int, rows: Integers, to: Integers) -> Booleans:
        """Return which records may go to these categories of a variable, each alone, (r,)."""
        found = np.ones(len(rows), dtype=np.bool_)
        here = self.codes[rows, variable]
        for at, offset in self.offsets[variable]:
            own = self.cell[at][rows]
            new = own - offset[here] + offset[to]
            leave, enter = self.room(at)
            found &= (new == own) | ((leave[own] >= 1) & (enter[new] >= 1))
        return found

    def may_leave(self, rows: Integers) -> Booleans:
        """Return which records may be taken away if another one comes anywhere else, (r,)."""
        return np.all([self.room(at)[0][own[rows]] >= 1 for at, own in enumerate(self.cell)], axis=0)

    def may_enter(self, rows: Integers) -> Booleans:
        """Return beside which records one more with their values has room, (r,)."""
        return np.all([self.room(at)[1][own[rows]] >= 1 for at, own in enumerate(self.cell)], axis=0)

    def move(self, variable: int, rows: Integers, to: Integers) -> None:
        """Move as many of these different records as have room, in any order, without counting on each other's leaving."""
        for at, offset in self.offsets[variable]:
            own = self.cell[at][rows]
            new = own - offset[self.codes[rows, variable]] + offset[to]
            leave, enter = self.room(at)
            kept = (new == own) | ((_rank(own) < leave[own]) & (_rank(new) < enter[new]))
            rows, to = rows[kept], to[kept]
        for at, offset in self.offsets[variable]:
            own = self.cell[at][rows]
            new = own - offset[self.codes[rows, variable]] + offset[to]
            size = len(self.counts[at])
            self.counts[at] += np.bincount(new, minlength=size) - np.bincount(own, minlength=size)
            self.cell[at][rows] = new
        self.codes[rows, variable] = to


def _rank(values: Integers) -> Integers:
    """Return how many equal values stand before each value, (n,)."""
    order = np.argsort(values, kind="stable")
    in_order = values[order]
    first = np.flatnonzero(np.diff(in_order, prepend=in_order[:1] - 1)) if len(values) else order
    found = np.empty(len(values), dtype=np.int64)
    found[order] = np.arange(len(values)) - np.repeat(first, np.diff(np.append(first, len(values))))
    return found


def closed_variables(
    sizes: Sequence[int],
    tables: Sequence[Released],
    codes: Integers,
    groupings: Sequence[Grouping],
    rng: np.random.Generator,
    records: tuple[float, float] = (0.0, np.inf),
) -> Booleans:
    """Return which groupings of which records no move opens, (n, groupings).

    A count of a combination of groupings does not follow if one of the records that it counts is open in one of them.

    Args:
        sizes: categories of each variable, (d,).
        tables: published counts; the counts of ``codes`` must lie within their bounds.
        codes: category of each record in each variable, (n, d).
        records: smallest and largest number of records that a reader can know of.
    """
    closed = np.ones((len(codes), len(groupings)), dtype=np.bool_)
    start = _Fibre(sizes, tables, codes)
    spare = records[0] <= len(codes) - 1, len(codes) + 1 <= records[1]
    without_news = 0
    for attempt in range(ROUNDS + 1):
        fibre, moved = start, np.zeros(len(codes), dtype=np.bool_)
        if attempt:
            fibre = start.copy()
            share = SHARES[(attempt - 1) % len(SHARES)]
            rows = np.sort(rng.choice(len(codes), min(MOST_MOVED, max(1, round(share * len(codes)))), replace=False))
            _scramble(fibre, rows, rng)
            moved[rows] = True
        before = int(closed.sum())
        _open_by_single_moves(fibre, closed, ~moved, groupings, rng)
        _open_by_exchanges(fibre, closed, ~moved, groupings, rng, spare)
        if not closed.any():
            break
        without_news = without_news + 1 if int(closed.sum()) == before else 0
        if without_news >= PATIENCE:
            break
    return closed


def _scramble(fibre: _Fibre, rows: Integers, rng: np.random.Generator) -> None:
    """Move these records at random, a variable at a time."""
    for _ in range(SWEEPS):
        for variable in rng.permutation(len(fibre.sizes)):
            size = fibre.sizes[variable]
            if size > 1:
                mixed = rng.permutation(rows)
                shift = rng.integers(1, size, len(mixed))
                fibre.move(int(variable), mixed, (fibre.codes[mixed, variable] + shift) % size)


def _open_by_single_moves(
    fibre: _Fibre, closed: Booleans, unmoved: Booleans, groupings: Sequence[Grouping], rng: np.random.Generator
) -> None:
    """Open the groupings of records that can go to another category of one variable."""
    for at, grouping in enumerate(groupings):
        size = fibre.sizes[grouping.variable]
        for shift in rng.permutation(np.arange(1, size)):
            rows = np.flatnonzero(closed[:, at] & unmoved)
            if not len(rows):
                break
            here = fibre.codes[rows, grouping.variable]
            to = (here + shift) % size
            apart = grouping.groups[here] != grouping.groups[to]
            rows, to = rows[apart], to[apart]
            closed[rows[fibre.movable(grouping.variable, rows, to)], at] = False


def _open_by_exchanges(
    fibre: _Fibre,
    closed: Booleans,
    unmoved: Booleans,
    groupings: Sequence[Grouping],
    rng: np.random.Generator,
    spare: tuple[bool, bool],
) -> None:
    """Open what records differ in, one of which can go to the values of the other; everything where there may be one record more or fewer."""
    rows = np.flatnonzero(closed.any(axis=1) & unmoved)
    if not len(rows):
        return
    everybody = rng.permutation(len(fibre.codes))[: 50 * PARTNERS]
    for one_way, other_way, alone in (
        (fibre.may_leave, fibre.may_enter, spare[0]),
        (fibre.may_enter, fibre.may_leave, spare[1]),
    ):
        able = rows[one_way(rows)]
        if alone:
            closed[able] = False
            continue
        for partner in everybody[other_way(everybody)][:PARTNERS]:
            for at, grouping in enumerate(groupings):
                own, theirs = fibre.codes[able, grouping.variable], fibre.codes[partner, grouping.variable]
                closed[able[grouping.groups[own] != grouping.groups[theirs]], at] = False
