"""Moves of single records that prove published counts open, for any number of variables.

Take records that have all published counts, and move one of them to another value of variable i so that all published
counts stay as they were printed. Both tables could be the confidential one, and every count of a combination that has
variable i and contained the record differs by one between them. So no such count follows, of any set of variables that
contains i. The same holds where a record goes to the values of another one: for every set of variables in which the two
differ.

A variable of a record that can move is *open*. A count can follow only where no record that it counts is open in one of
its variables. Nothing is searched in the table of all variables, so its size does not matter, and every table is one of
whole numbers. The proof goes one way: what stays closed may follow or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..data.rows import distinct_rows
from .domain import Clique

MAX_WALKS, ROUNDS = 20, 10
"""Most times that a walk starts from the confidential records, and tables on its way from which moves are tried."""
PATIENCE = 3
"""Walks without a new open variable after which the search ends."""
MOVED_SHARES = (0.25, 0.5, 0.1)
"""Shares of the records that a walk moves at random; moves of the others are tried."""
MAX_MOVED = 3_000
"""Records that are moved between two tables of a walk."""
MAX_HELPED, HELPERS = 2_000, 4
"""Closed records for which room is made in a table of a walk, and the records that are moved for each of them."""
MAX_NARROWED_PATTERNS = 300
"""Sets of closed variables that are narrowed after a walk, the most frequent first."""
MAX_VALUES_TRIED = 12
"""Other categories of a variable that are tried in one table."""
EXCHANGE_PARTNERS = 8
"""Records whose values others are moved to in a round, and whose place others take."""


@dataclass(frozen=True, eq=False)
class PublishedBounds:
    """Smallest and largest count that each cell of a published table can have had.

    clique: variables of the table
    low, high: bounds of the cells, in the shape of the table
    groups: for each axis the category of the table that each category of the domain lies in; its own without groups
    """

    clique: Clique
    low: Floats
    high: Floats
    groups: tuple[Integers, ...] = ()

    @classmethod
    def from_coarsened(cls, clique: Clique, table: Floats, limit: int, impossible: Booleans | None = None) -> Self:
        """Return the bounds of counts that were rounded to multiples of ``limit``; impossible cells are 0."""
        low = np.maximum(np.ceil(table - limit / 2), 0.0)
        # Half of a limit is rounded upwards: a count of kL lay from kL - L/2 on and below kL + L/2.
        high = np.ceil(table + limit / 2) - 1
        if impossible is not None:
            high = np.where(impossible, 0.0, high)
        return cls(clique, low, high)

    @classmethod
    def from_exact(cls, clique: Clique, table: Floats) -> Self:
        """Return the bounds of counts that are published unchanged."""
        return cls(clique, table, table)

    @classmethod
    def from_structural_zeros(cls, clique: Clique, cells: Booleans) -> Self:
        """Return the bounds of a publicly known condition: no record lies in these cells."""
        return cls(clique, np.zeros(cells.shape), np.where(cells, 0.0, np.inf))

    def cell_offsets(self, variable: int, size: int) -> Integers:
        """Return the term of each of ``size`` categories of a variable in the number of a cell, (size,)."""
        if variable not in self.clique:
            return np.zeros(size, dtype=np.int64)
        axis = self.clique.index(variable)
        stride = int(np.prod(self.low.shape[axis + 1 :], dtype=np.int64))
        groups = self.groups[axis] if self.groups else np.arange(size)
        return np.asarray(groups, dtype=np.int64) * stride

    def cells_of_records(self, codes: Integers) -> Integers:
        """Return the number of the cell of each record, (n,), from the categories of all variables ``codes`` (n, d)."""
        found = np.zeros(len(codes), dtype=np.int64)
        for axis, variable in enumerate(self.clique):
            found *= self.low.shape[axis]
            own = codes[:, variable]
            found += self.groups[axis][own] if self.groups else own
        return found


@dataclass(frozen=True)
class VariableGrouping:
    """Categories of a variable by which counts are formed: its own, or coarser ones that a published table has.

    variable: position of the variable
    groups: number of the coarser category of each category, (size,)
    """

    variable: int
    groups: Integers


def list_groupings(
    variables: Sequence[int], sizes: Sequence[int], tables: Sequence[PublishedBounds]
) -> tuple[VariableGrouping, ...]:
    """Return the groupings of each variable: its own categories, then coarser ones of published tables."""
    found: list[VariableGrouping] = []
    for variable in variables:
        own = {tuple(range(sizes[variable]))}
        for table in tables:
            if variable in table.clique and table.groups:
                own.add(tuple(table.groups[table.clique.index(variable)].tolist()))
        # A grouping into one category says nothing: a count of it is that of the other variables. Finest first, which
        # ``margin_audit`` relies on.
        several = sorted(
            (groups for groups in own if len(set(groups)) > 1), key=lambda groups: (-len(set(groups)), groups)
        )
        found += [VariableGrouping(variable, np.array(groups)) for groups in several]
    return tuple(found)


class _MovableRecords:
    """Records whose published counts stay within their bounds through every move."""

    def __init__(self, sizes: Sequence[int], tables: Sequence[PublishedBounds], codes: Integers) -> None:
        """Count the records, given by their categories ``codes`` (n, d), in every table."""
        self.sizes, self.tables = sizes, tables
        self.codes = codes.copy()
        self.cell = [table.cells_of_records(codes) for table in tables]
        self.counts = [
            np.bincount(own, minlength=table.low.size).astype(np.float64)
            for own, table in zip(self.cell, tables, strict=True)
        ]
        self.low, self.high = [one.low.ravel() for one in tables], [one.high.ravel() for one in tables]
        self.offsets = {
            variable: [
                (at, one.cell_offsets(variable, sizes[variable]))
                for at, one in enumerate(tables)
                if variable in one.clique
            ]
            for variable in range(len(sizes))
        }

    def copy_records(self) -> _MovableRecords:
        """Return an independent copy that can be moved without changing this one."""
        # Bounds and offsets are shared; only what moves change is copied.
        other = object.__new__(_MovableRecords)
        other.__dict__ |= self.__dict__
        other.codes, other.cell = self.codes.copy(), [own.copy() for own in self.cell]
        other.counts = [own.copy() for own in self.counts]
        return other

    def room_in_cells(self, at: int) -> tuple[Floats, Floats]:
        """Return how many records may leave each cell of a table, and how many may enter it."""
        return self.counts[at] - self.low[at], self.high[at] - self.counts[at]

    def may_change(self, variable: int, rows: Integers) -> Booleans:
        """Return which records may perhaps go to another category of a variable, (r,).

        They lie in no cell that is at its lower bound.
        """
        found = np.ones(len(rows), dtype=np.bool_)
        for at, _ in self.offsets[variable]:
            if not self.tables[at].groups:  # in coarser categories a record may stay in its cell
                found &= (self.room_in_cells(at)[0] >= 1)[self.cell[at][rows]]
        return found

    def may_move_to(self, variable: int, rows: Integers, to: Integers) -> Booleans:
        """Return which records may go to these categories of a variable, (r,), each if no other one moves."""
        left = np.arange(len(rows))  # a table that keeps a record spares the next ones a look
        here = self.codes[rows, variable]
        for at, offset in self.offsets[variable]:
            if not len(left):
                break
            some = rows.take(left)
            own = self.cell[at].take(some)
            new = own + (offset.take(to.take(left)) - offset.take(here.take(left)))
            leave, enter = self.room_in_cells(at)
            left = left[(new == own) | ((leave >= 1).take(own) & (enter >= 1).take(new))]
        found = np.zeros(len(rows), dtype=np.bool_)
        found[left] = True
        return found

    def may_leave(self, rows: Integers) -> Booleans:
        """Return which records may be removed if another one is added elsewhere, (r,)."""
        return self._has_room(rows, 0)

    def may_enter(self, rows: Integers) -> Booleans:
        """Return which records could be doubled, (r,): one more with the same values stays within all bounds."""
        return self._has_room(rows, 1)

    def _has_room(self, rows: Integers, side: int) -> Booleans:
        """Return which records lie in cells with room in all tables, (r,): to leave (``side`` 0) or to enter (1)."""
        left = np.arange(len(rows))
        for at, own in enumerate(self.cell):
            left = left[self.room_in_cells(at)[side][own[rows[left]]] >= 1]
        found = np.zeros(len(rows), dtype=np.bool_)
        found[left] = True
        return found

    def move_records(self, variable: int, rows: Integers, to: Integers) -> None:
        """Move as many of these different records to categories of a variable as the bounds allow."""
        able = self.may_move_to(variable, rows, to)
        rows, to = rows[able], to[able]
        here = self.codes[rows, variable]
        for at, offset in self.offsets[variable]:
            if not len(rows):
                return
            own = self.cell[at].take(rows)
            new = own + (offset.take(to) - offset.take(here))
            leave, enter = self.room_in_cells(at)
            # Records are not counted on to leave before others enter, so that any order of the moves is valid.
            kept = _is_within_room(own, leave)
            kept &= _is_within_room(new, enter)
            kept |= new == own
            if not kept.all():
                rows, to, here = rows[kept], to[kept], here[kept]
        if not len(rows):
            return
        for at, offset in self.offsets[variable]:
            own = self.cell[at][rows]
            new = own - offset[self.codes[rows, variable]] + offset[to]
            size = len(self.counts[at])
            self.counts[at] += np.bincount(new, minlength=size) - np.bincount(own, minlength=size)
            self.cell[at][rows] = new
        self.codes[rows, variable] = to


def _is_within_room(cells: Integers, room: Floats) -> Booleans:
    """Return which records are among the first of their cell, as many as the cell has room for, (r,)."""
    found = np.ones(len(cells), dtype=np.bool_)
    crowded = (np.bincount(cells, minlength=len(room)) > room).take(cells).nonzero()[0]
    if len(crowded):
        held = cells.take(crowded)
        # numbers of 16 bits are sorted by radix
        order = (held.astype(np.uint16) if len(room) <= 1 << 16 else held).argsort(kind="stable")
        in_order = held.take(order)
        place = np.arange(len(order))
        first = place.copy()
        first[1:][in_order[1:] == in_order[:-1]] = 0
        rank = place - np.maximum.accumulate(first)
        found[crowded.take(order)] = rank < room.take(in_order)
    return found


def find_closed_groupings(
    sizes: Sequence[int],
    tables: Sequence[PublishedBounds],
    codes: Integers,
    groupings: Sequence[VariableGrouping],
    limit: int,
    rng: np.random.Generator,
    records: tuple[float, float] = (0.0, np.inf),
    walks: int = MAX_WALKS,
) -> Booleans:
    """Return which groupings of which records no move opens, (n, groupings).

    A count of a combination of groupings does not follow if one of the records that it counts is open in one of them.
    Moves are tried from the confidential records, and from records that were moved at random before, with all published
    counts kept.

    Args:
        sizes: categories of each variable, (d,).
        tables: published counts; the counts of ``codes`` must lie within their bounds.
        codes: category of each record in each variable, (n, d).
        groupings: the categories by which counts are formed, as ``list_groupings`` lists them.
        limit: smallest count that is not small; records with this number of equal others are open.
        rng: decides which moves are tried.
        records: smallest and largest number of records that a reader can know of.
        walks: most walks.
    """
    distinct = distinct_rows(codes.T, len(codes))
    atoms, of, counts = codes[distinct.first], distinct.combination_of, distinct.counts
    closed = np.ones((len(atoms), len(groupings)), dtype=np.bool_)
    closed[counts >= limit] = False  # every count that has these records is at least as large
    by_atom = np.argsort(of, kind="stable")
    first = np.cumsum(counts) - counts
    start = _MovableRecords(sizes, tables, codes)
    spare = records[0] <= len(codes) - 1, len(codes) + 1 <= records[1]
    _open_by_moves(start, closed, by_atom[first], groupings, rng, spare)
    without_news = 0
    for walk in range(walks):
        if not closed.any() or without_news >= PATIENCE:
            break
        before = int(closed.sum())
        share = MOVED_SHARES[walk % len(MOVED_SHARES)]
        fibre, unmoved = start.copy_records(), np.ones(len(codes), dtype=np.bool_)
        moving = rng.choice(len(codes), max(1, round(share * len(codes))), replace=False)
        # A move is a proof only for a record that still has its confidential values.
        unmoved[moving] = False
        shown = np.full(len(atoms), -1)
        shown[of[unmoved]] = np.flatnonzero(unmoved)  # a record of each atom that stays; any will do
        for _ in range(ROUNDS):
            _move_at_random(fibre, rng.permutation(moving)[:MAX_MOVED], rng)
            _make_room(fibre, closed, shown, moving, groupings, rng)
            _open_by_moves(fibre, closed, shown, groupings, rng, spare)
            if not closed.any():
                break
        _narrow_closed(atoms, counts, closed, groupings, limit, rng)
        without_news = without_news + 1 if int(closed.sum()) == before else 0
    return closed[of]


def _narrow_closed(
    atoms: Integers,
    counts: Integers,
    closed: Booleans,
    groupings: Sequence[VariableGrouping],
    limit: int,
    rng: np.random.Generator,
) -> None:
    """Leave closed, of each atom (a, groupings), only the groupings that a small count can be formed of."""
    # The sum of random numbers of a record's categories names a combination without a table of all variables.
    names = [rng.integers(0, 2**63, int(one.groups.max()) + 1).astype(np.uint64) for one in groupings]
    hashes = np.column_stack(
        [own[one.groups[atoms[:, one.variable]]] for own, one in zip(names, groupings, strict=True)]
    )
    distinct = distinct_rows(closed.T, len(closed))
    patterns, of = closed[distinct.first], distinct.combination_of
    for number in np.argsort(-distinct.counts, kind="stable")[:MAX_NARROWED_PATTERNS]:
        if not patterns[number].any():
            continue
        rows = np.flatnonzero(of == number)
        keys = hashes[:, patterns[number]].sum(axis=1, dtype=np.uint64)
        cells = np.unique(keys[rows])
        place = np.minimum(np.searchsorted(cells, keys), len(cells) - 1)
        members = np.flatnonzero(cells[place] == keys)
        few = np.bincount(place[members], counts[members], len(cells)) < limit
        members = members[few[place[members]]]
        members = members[np.argsort(place[members], kind="stable")]
        # Whatever may follow about an atom has at least the records of the count of all its closed groupings, and all
        # these records must be closed in it.
        everywhere = np.zeros((len(cells), closed.shape[1]), dtype=np.bool_)
        if len(members):
            starts = np.flatnonzero(np.diff(place[members], prepend=-1))
            everywhere[place[members[starts]]] = np.logical_and.reduceat(closed[members], starts, axis=0)
        closed[rows] = patterns[number] & everywhere[place[rows]]


def _open_by_moves(
    fibre: _MovableRecords,
    closed: Booleans,
    rows: Integers,
    groupings: Sequence[VariableGrouping],
    rng: np.random.Generator,
    spare: tuple[bool, bool],
) -> None:
    """Open what can be opened of each atom (a, groupings).

    ``rows`` (a,) has a record of the atom that was not moved, or -1 if there is none.
    """
    some = np.flatnonzero((rows >= 0) & closed.any(axis=1))
    own = closed[some]
    _open_by_single_moves(fibre, own, rows[some], groupings, rng)
    _open_by_exchanges(fibre, own, rows[some], groupings, rng, spare)
    closed[some] = own


def _move_at_random(fibre: _MovableRecords, rows: Integers, rng: np.random.Generator) -> None:
    """Move these records to random categories, one variable after another."""
    for variable in rng.permutation(len(fibre.sizes)):
        size = fibre.sizes[variable]
        if size > 1 and fibre.offsets[int(variable)]:
            shift = rng.integers(1, size, len(rows))
            fibre.move_records(int(variable), rows, (fibre.codes[rows, variable] + shift) % size)


def _make_room(
    fibre: _MovableRecords,
    closed: Booleans,
    rows: Integers,
    moving: Integers,
    groupings: Sequence[VariableGrouping],
    rng: np.random.Generator,
) -> None:
    """Move other records into cells at their lower bound, so that closed records may leave them.

    Only cells of two variables are tried.
    """
    for at, grouping in enumerate(groupings):
        variable = grouping.variable
        records = rows[closed[:, at] & (rows >= 0)]
        records = records[rng.permutation(len(records))[:MAX_HELPED]]
        if not len(records):
            continue
        by_value = moving[np.argsort(fibre.codes[moving, variable], kind="stable")]
        values = fibre.codes[by_value, variable]
        first, last = (np.searchsorted(values, fibre.codes[records, variable], side) for side in ("left", "right"))
        for number, _ in fibre.offsets[variable]:
            clique = fibre.tables[number].clique
            full = (fibre.room_in_cells(number)[0] < 1)[fibre.cell[number][records]] & (last > first)
            if len(clique) != 2 or not full.any():
                continue
            (other,) = set(clique) - {variable}
            wanted = np.repeat(np.flatnonzero(full), HELPERS)
            helpers = by_value[rng.integers(first[wanted], last[wanted])]
            helpers, chosen = np.unique(helpers, return_index=True)
            # a helper that has moved away since has another value, and only helps less
            fibre.move_records(other, helpers, fibre.codes[records[wanted[chosen]], other])


def _open_by_single_moves(
    fibre: _MovableRecords,
    closed: Booleans,
    records: Integers,
    groupings: Sequence[VariableGrouping],
    rng: np.random.Generator,
) -> None:
    """Open the groupings of records that can go to another category of one variable.

    ``closed`` (r, groupings) belongs to ``records`` (r,) and is changed in place.
    """
    for at, grouping in enumerate(groupings):
        size = fibre.sizes[grouping.variable]
        able = np.flatnonzero(closed[:, at])
        able = able[fibre.may_change(grouping.variable, records[able])]
        for shift in rng.permutation(np.arange(1, size))[:MAX_VALUES_TRIED]:
            rows = able = able[closed[able, at]]
            if not len(rows):
                break
            here = fibre.codes[records[rows], grouping.variable]
            to = (here + shift) % size
            apart = grouping.groups[here] != grouping.groups[to]
            rows, to = rows[apart], to[apart]
            closed[rows[fibre.may_move_to(grouping.variable, records[rows], to)], at] = False


def _open_by_exchanges(
    fibre: _MovableRecords,
    closed: Booleans,
    records: Integers,
    groupings: Sequence[VariableGrouping],
    rng: np.random.Generator,
    spare: tuple[bool, bool],
) -> None:
    """Open the groupings in which a record differs from one whose values it can take, or which can take its values.

    Where there may be one record more or fewer, all groupings of a record that may be doubled or removed are opened.
    """
    # A sample of partners is enough: only a few of them are used.
    everybody = rng.permutation(len(fibre.codes))[: 50 * EXCHANGE_PARTNERS]
    for one_way, other_way, alone in (
        (fibre.may_leave, fibre.may_enter, spare[0]),
        (fibre.may_enter, fibre.may_leave, spare[1]),
    ):
        rows = np.flatnonzero(closed.any(axis=1))
        rows = rows[one_way(records[rows])]
        if alone:
            closed[rows] = False
            continue
        for partner in everybody[other_way(everybody)][:EXCHANGE_PARTNERS]:
            for at, grouping in enumerate(groupings):
                own = fibre.codes[records[rows], grouping.variable]
                theirs = fibre.codes[partner, grouping.variable]
                closed[rows[grouping.groups[own] != grouping.groups[theirs]], at] = False
