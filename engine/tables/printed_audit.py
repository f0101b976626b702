"""What readers work out of tables of which only what is printed is known, whoever made them.

No confidential table is at hand, and none is needed: what follows depends on what is printed alone. One table that fits
is found first; every other one is a change of it, as in the audit of own tables.

    outside       values are at least 0
    zeros_shown   a hidden number of records is at least 1, since zeros are printed
    contributor   knows, in addition, a cell that nobody else is in; looked at where the files say which cells these are
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..errors import BadInput
from .elimination import PRIME, find_following, find_known_pairs, find_known_to_unit
from .polytope import SINGLE_NODES, TOLERANCE, CellBounds, TablePolytope, find_table, search_cells
from .system import TableSystem

WIDTH_PROGRAMS = 400
"""Programs for intervals of single cells, at most."""
EXTRA_TABLES = 16
"""Random tables that are looked for such that contributors find no pair of cells that always move together."""
PAIR_PROGRAMS = 200
"""Contributors for whom programs of their own are solved, at most."""
PAIR_EFFORT = 60
"""Programs for contributors, of the effort of a large system: fewer of larger ones, and what is left is undecided."""
PAIR_BULK_PROGRAMS = 3
PAIR_SINGLE_PROGRAMS = 20
NO_TABLE = "no table fits all that is printed"


@dataclass(frozen=True, eq=False)
class KnownPair:
    """A cell that follows for whoever is alone in other ones.

    known: cells that the contributor is alone in
    cell: the cell that follows, or of which it was not found out
    undecided: whether it was not found out
    """

    known: tuple[int, ...]
    cell: int
    undecided: bool = False


@dataclass(frozen=True, eq=False)
class PrintedAudit:
    """What printed tables give away of the cells that they hide; arrays are (cells,).

    hidden: cells that the tables hide
    exact_outside, exact_zeros_shown: hidden cells that follow for each reader
    within_percent: hidden cells whose largest possible value is at most p % above the smallest one
    undecided: hidden cells of which it was not found out
    pairs: what follows for somebody who is alone in a cell
    lowest, highest: between which values other tables were found for hidden cells, NaN for others; the value itself
        where it follows
    zeros_shown: whether the reader of zeros was looked at
    contributors_in_full: whether contributors were looked at by programs too, not by equations alone
    """

    hidden: Booleans
    exact_outside: Booleans
    exact_zeros_shown: Booleans
    within_percent: Booleans
    undecided: Booleans
    pairs: tuple[KnownPair, ...]
    lowest: Floats
    highest: Floats
    zeros_shown: bool
    contributors_in_full: bool

    @property
    def exact_contributor(self) -> Booleans:
        """Return the hidden cells that follow for a contributor, (cells,)."""
        found = np.zeros(len(self.hidden), dtype=np.bool_)
        found[[pair.cell for pair in self.pairs if not pair.undecided]] = True
        return found

    @property
    def exact(self) -> Booleans:
        """Return the hidden cells that follow for any reader, (cells,)."""
        return np.asarray(self.exact_outside | self.exact_zeros_shown | self.exact_contributor)

    @property
    def failing(self) -> Booleans:
        """Return the hidden cells that are not shown to be safe, (cells,)."""
        return np.asarray(self.exact | self.within_percent | self.undecided)


def audit_printed_cells(
    system: TableSystem,
    bounds: CellBounds,
    hidden: Booleans,
    *,
    zeros_shown: bool,
    sole: Sequence[int] | Integers = (),
    p_percent: float | None = None,
    known: CellBounds | None = None,
    prime: int = PRIME,
) -> PrintedAudit:
    """Audit which hidden cells follow from what is printed.

    Args:
        system: atoms and cells of all tables; its values are not looked at.
        bounds: what is printed of each cell, (cells,) each: equal where it is printed, 0 and infinite where it is not.
        hidden: cells that are to be judged, (cells,).
        zeros_shown: whether readers see which numbers of records are 0.
        sole: cells that one contributor is alone in.
        p_percent: how near to its smallest possible value the largest one may not lie, in percent; None: not looked at.
        known: bounds of each cell where the files show what they hide; readers do not use them. With them programs are
            solved for contributors too, whose cells must have their true values.
        prime: modulus of the elimination.

    Raises BadInput where no table fits.
    """
    whole = np.array(system.whole, dtype=np.bool_)[system.atom_measures]
    lowest_known = np.where(hidden & system.cell_is_whole, np.maximum(bounds.low, 1.0), bounds.low)
    strict_bounds = CellBounds(lowest_known, bounds.high) if zeros_shown else bounds
    values, is_true = _start_table(system, bounds, strict_bounds, whole, known)
    if values is None and zeros_shown:
        # A hidden cell must be 0: zeros are hidden too, and nobody can take a hidden cell for one with records.
        zeros_shown, strict_bounds = False, bounds
        values, is_true = _start_table(system, bounds, bounds, whole, known)
    if values is None:
        raise BadInput("tables", NO_TABLE)
    cells = np.flatnonzero(hidden)
    sums = np.asarray(system.columns.T @ values)
    # The table was found to within the solver's tolerance: what it prints is what is printed.
    strict_bounds, bounds = _fit_bounds(strict_bounds, sums), _fit_bounds(bounds, sums)
    printed = np.flatnonzero(bounds.low == bounds.high)
    follows = find_following(system.columns[:, cells], system.columns[:, printed], prime)
    strict = TablePolytope(system.columns, values, strict_bounds, whole)
    found = search_cells(strict, cells, np.zeros(len(cells)), follows)
    exact_outside, exact_zeros, undecided = (np.zeros(system.cell_count, dtype=np.bool_) for _ in range(3))
    exact_outside[cells] = follows
    undecided[cells] = found.undecided
    if zeros_shown:
        exact_zeros[cells] = found.exact
        left = np.flatnonzero((found.exact | found.undecided) & ~follows)
        if len(left):
            outside = TablePolytope(system.columns, values, bounds, whole)
            own = search_cells(
                outside, cells[left], np.zeros(len(left)), np.zeros(len(left), dtype=np.bool_), list(found.witnesses)
            )
            exact_outside[cells[left]] |= own.exact
    else:
        exact_outside[cells] |= found.exact
    lowest, highest = np.full(system.cell_count, np.nan), np.full(system.cell_count, np.nan)
    lowest[cells], highest[cells] = sums[cells] - found.fall, sums[cells] + found.rise
    exact = exact_outside | exact_zeros
    lowest[exact] = highest[exact] = sums[exact]
    within = np.zeros(system.cell_count, dtype=np.bool_)
    if p_percent is not None:
        judged = cells[~exact[cells] & ~undecided[cells]]
        _judge_widths(strict, judged, sums, p_percent, lowest, highest, within, undecided)
    targets = np.flatnonzero(hidden & ~exact)
    readers = [np.array([cell], dtype=np.int64) for cell in np.asarray(sole, dtype=np.int64).tolist() if hidden[cell]]
    pairs = list[KnownPair]()
    if readers and len(targets):
        if is_true:
            tables = list(found.witnesses)
            pairs = find_pairs_of_readers(system, printed, readers, targets, strict, tables, prime)
        else:
            own_cells = np.concatenate(readers)
            triples = find_known_pairs(system.columns, system.columns[:, printed], own_cells, targets, prime)
            pairs = [KnownPair((one,), other) for one, other, _ in triples]
        for pair in pairs:
            if pair.undecided:
                undecided[pair.cell] = True
    return PrintedAudit(
        hidden.copy(),
        exact_outside,
        exact_zeros,
        within,
        undecided,
        tuple(pairs),
        lowest,
        highest,
        zeros_shown,
        is_true,
    )


def _start_table(
    system: TableSystem, bounds: CellBounds, strict: CellBounds, whole: Booleans, known: CellBounds | None
) -> tuple[Floats | None, bool]:
    """Return a table that fits, None if there is none, and whether it is the one that the files show."""
    if known is not None:
        low, high = np.maximum(strict.low, known.low), np.minimum(strict.high, known.high)
        if (low <= high).all() and (values := find_table(system.columns, CellBounds(low, high), whole)) is not None:
            return values, True
    return find_table(system.columns, strict, whole), False


def _fit_bounds(bounds: CellBounds, sums: Floats) -> CellBounds:
    """Return bounds in which the sums of a table that fits lie, equal ones staying equal."""
    same = bounds.low == bounds.high
    return CellBounds(
        np.where(same, sums, np.minimum(bounds.low, sums)), np.where(same, sums, np.maximum(bounds.high, sums))
    )


def _judge_widths(
    polytope: TablePolytope,
    cells: Integers,
    sums: Floats,
    p_percent: float,
    lowest: Floats,
    highest: Floats,
    within: Booleans,
    undecided: Booleans,
) -> None:
    """Mark the cells whose interval is narrow, and those of which it was not found out, in place."""
    share = 1 + p_percent / 100
    programs = WIDTH_PROGRAMS
    for cell in cells.tolist():
        if highest[cell] > lowest[cell] * share + TOLERANCE * max(1.0, abs(sums[cell])):
            continue
        if programs <= 0:
            undecided[cell] = True
            continue
        gain = np.asarray(polytope.columns[:, [cell]].toarray()[:, 0], dtype=np.float64)
        is_whole = all(block.whole for block in polytope.blocks if gain[block.atoms].any())
        limits = [0.0, 0.0]
        for at, sign in enumerate((-1.0, 1.0)):
            for relaxed in (True, False) if is_whole else (True,):
                change, bound = polytope.maximise(sign * gain, relaxed, SINGLE_NODES)
                programs -= 1
                limits[at] = np.floor(bound + TOLERANCE) if is_whole and np.isfinite(bound) else bound
                _widen(polytope, change, cells, sums, lowest, highest)
                reached = (highest[cell] - sums[cell]) if sign > 0 else (sums[cell] - lowest[cell])
                if reached >= limits[at] - TOLERANCE * max(1.0, abs(sums[cell])):
                    break
        if highest[cell] > lowest[cell] * share + TOLERANCE * max(1.0, abs(sums[cell])):
            continue
        narrow = sums[cell] + limits[1] <= (sums[cell] - limits[0]) * share * (1 + TOLERANCE)
        (within if narrow else undecided)[cell] = True


def _widen(
    polytope: TablePolytope, change: Floats, cells: Integers, sums: Floats, lowest: Floats, highest: Floats
) -> None:
    """Take another table into the intervals of cells, in place."""
    if not change.any():
        return
    moved = sums[cells] + np.asarray(polytope.columns[:, cells].T @ change)
    lowest[cells], highest[cells] = np.minimum(lowest[cells], moved), np.maximum(highest[cells], moved)


def find_pairs_of_readers(
    system: TableSystem,
    printed_exactly: Integers,
    readers: list[Integers],
    targets: Integers,
    polytope: TablePolytope,
    tables: list[Floats],
    prime: int = PRIME,
) -> list[KnownPair]:
    """Return which of the target cells follow for readers who know some hidden cells besides what is printed.

    ``readers`` are the cells that each of them knows, ``printed_exactly`` the cells that everybody does; ``polytope``
    has the tables that are left for the strictest reader who knows nothing besides, ``tables`` some changes to these.
    """
    if not readers or not len(targets):
        return []
    printed = system.columns[:, printed_exactly]
    found = dict[tuple[tuple[int, ...], int], KnownPair]()
    single = np.array([own[0] for own in readers if len(own) == 1], dtype=np.int64)
    for sole, cell, _ in find_known_pairs(system.columns, printed, single, targets, prime):
        found[(sole,), cell] = KnownPair((sole,), cell)
    several = [own for own in readers if len(own) > 1]
    for own, cells in zip(several, find_known_to_unit(system.columns, printed, several, targets, prime), strict=True):
        key = tuple(own.tolist())
        found.update({(key, int(cell)): KnownPair(key, int(cell)) for cell in cells})
    pairs = _PairSearch(polytope, targets, tables)
    programs, left_programs = PAIR_PROGRAMS, PAIR_EFFORT / polytope.program_effort
    pairs.add_random_tables(readers, min(EXTRA_TABLES, int(left_programs)))
    for own in readers:
        key = tuple(own.tolist())
        left = [cell for cell in pairs.cells_left(own) if (key, cell) not in found]
        if not left:
            continue
        if programs <= 0 or pairs.programs >= left_programs:
            found.update({(key, cell): KnownPair(key, cell, undecided=True) for cell in left})
            continue
        programs -= 1
        for cell, is_exact in pairs.decide(own, np.array(left, dtype=np.int64)):
            found[key, cell] = KnownPair(key, cell, undecided=not is_exact)
    return [found[key] for key in sorted(found)]


class _PairSearch:
    """Search for tables in which a contributor's cells stay and other cells change.

    polytope: tables that are left for the strictest reader who contributes nothing
    targets: cells that must be able to change, (k,)
    tables: changes to tables that fit
    programs: programs that were solved
    """

    def __init__(self, polytope: TablePolytope, targets: Integers, tables: list[Floats]) -> None:
        self.polytope, self.targets, self.tables = polytope, targets, tables
        self.columns = polytope.columns[:, targets]
        self.blocks_of_cells = [
            np.asarray(self.columns[block.atoms].T @ np.ones(len(block.atoms))) > 0 for block in polytope.blocks
        ]
        self.moves = [self._moves_by_block(change) for change in tables]
        self.programs = 0

    def _moves_by_block(self, change: Floats) -> list[Floats]:
        """Return by how much each target moves by the change of each block alone: parts of tables are tables too."""
        return [
            np.asarray(self.columns[block.atoms].T @ change[block.atoms]) if change[block.atoms].any() else np.zeros(0)
            for block in self.polytope.blocks
        ]

    def add_random_tables(self, readers: list[Integers], number: int) -> None:
        """Look for tables, as many as are said, in which some cells stay and others change."""
        rng = np.random.default_rng(1)
        for _ in range(number):
            if not any(self.cells_left(own) for own in readers):
                return
            signs = rng.choice([-1.0, 1.0], len(self.targets)) * (rng.random(len(self.targets)) + 0.1)
            signs[rng.random(len(self.targets)) < 0.7] = 0.0
            change, _ = self.polytope.maximise(np.asarray(self.columns @ signs))
            self.programs += 1
            if change.any():
                self._add_table(change)

    def _add_table(self, change: Floats) -> None:
        self.tables.append(change)
        self.moves.append(self._moves_by_block(change))

    def cells_left(self, own: Integers) -> list[int]:
        """Return the targets that are not shown to be open for one who knows the cells ``own``."""
        left = ~np.isin(self.targets, own)
        own_columns = self.polytope.columns[:, own]
        for at, block in enumerate(self.polytope.blocks):
            inside = left & self.blocks_of_cells[at]
            if not inside.any():
                continue
            part = own_columns[block.atoms]
            least = 1 - 1e-6 if block.whole else 1e-6 * block.scale
            steady, rising, falling = list[Floats](), list[tuple[Floats, Floats]](), list[tuple[Floats, Floats]]()
            for change, moves in zip(self.tables, self.moves, strict=True):
                if not len(moves[at]):
                    continue
                shift = np.asarray(part.T @ change[block.atoms])
                if (np.abs(shift) < least * 1e-3 if not block.whole else shift == 0).all():
                    steady.append(moves[at])
                elif len(own) == 1 and not block.whole:
                    # Part of one table and part of another keep the cell where it is: the tables are a convex set.
                    (rising if shift[0] > 0 else falling).append((shift, moves[at]))
            for up, down in zip(rising, falling, strict=False):
                weight = -down[0][0] / (up[0][0] - down[0][0])
                steady.append(weight * up[1] + (1 - weight) * down[1])
            for move in steady:
                left &= ~(np.abs(move) >= least)
        return [int(cell) for cell in self.targets[left]]

    def decide(self, own: Integers, cells: Integers) -> list[tuple[int, bool]]:
        """Return the cells that are not open for one who knows the cells ``own``, and whether they surely follow."""
        restricted = self.polytope.with_known_cells(own)
        search = search_cells(
            restricted,
            cells,
            np.zeros(len(cells)),
            np.zeros(len(cells), dtype=np.bool_),
            single_programs=PAIR_SINGLE_PROGRAMS,
            bulk_programs=PAIR_BULK_PROGRAMS,
        )
        self.programs += search.programs
        for change in search.witnesses:
            self._add_table(change)
        return [(int(cells[at]), bool(search.exact[at])) for at in np.flatnonzero(search.witness < 0)]
