"""All tables that fit what is printed: between which values a hidden cell lies for a reader.

A reader who sees printed cells K is left with the tables f' of

    {f' >= 0 : low_k <= x_k'f' <= high_k}

whose bounds are equal where a cell is printed, apart where it is rounded, and 0 and infinite where it is hidden. What a
reader knows besides are bounds too: who sees printed zeros knows that a hidden number of records is at least 1; a
contributor knows the sum of a cell that nobody else is in.

A hidden cell is open where a table with another value of it is at hand, the **certificate**; numbers of records are
whole in it. It is exact where programs show that there is none, and undecided otherwise, which is never safe. Programs
for many cells at a time come first: each solution is a table, and a witness for all cells that differ in it.

Source: Fischetti and Salazar (2001), "Solving the cell suppression problem on tabular data with linear constraints".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from .elimination import PRIME, NullSpace

TOLERANCE = 1e-6
"""Of the largest value of a block: differences below it are none."""
MIN_DIFFERENCE = 1 - 1e-6
"""Another whole number differs by 1; the solver's objective is exact to about its tolerance only."""
BULK_PROGRAMS = 24
"""Programs for all cells that are not decided, at most."""
IDLE_PROGRAMS = 4
"""Programs that decide nothing, one after the other, after which cells get programs of their own."""
SINGLE_PROGRAMS = 200
"""Cells that get programs of their own, at most."""
BULK_NODES = 20
SINGLE_NODES = 2_000
"""Nodes of the search tree of a whole-number program: a number and no time, so that results are the same on any
machine."""
WORTH_OF_MORE, MOST_REACHED = 0.05, 20.0
"""What a cell is worth that moves further than it must, and how many times further at most."""
PACKED_ATOMS = 500
"""Atoms up to which small blocks are put into one program."""
MAX_EQUATIONS = 10_000
"""Different equations of one block up to which it is looked at."""
MAX_WHOLE_EQUATIONS = 2_500
"""Independent equations of a block of whole numbers up to which it is looked at: 3,000 took 42 s a program."""
FAST_EQUATIONS = 1_500
"""Independent equations up to which all programs are solved; above, fewer, as their time grows."""


@dataclass(frozen=True, eq=False)
class CellBounds:
    """What a reader knows of the value of each cell.

    low, high: bounds, equal where the reader knows it, (cells,)
    """

    low: Floats
    high: Floats

    @classmethod
    def of_printed(cls, values: Floats, printed: Booleans) -> CellBounds:
        """Return the bounds of a reader who sees the printed cells alone."""
        return cls(np.where(printed, values, 0.0), np.where(printed, values, np.inf))

    def with_zeros_shown(self, values: Floats, whole: Booleans) -> CellBounds:
        """Return the bounds of one who knows that a hidden number of records is none of the printed zeros."""
        return CellBounds(np.where(whole & (values > 0), np.maximum(self.low, 1.0), self.low), self.high)


@dataclass(frozen=True, eq=False)
class _Block:
    """Atoms that equations connect, and the programs over them.

    atoms: numbers of the atoms, (a,)
    rows: atoms of each equation, (rows, a), sparse
    row_low, row_high: bounds of the change of each sum, (rows,)
    low, high: bounds of the change of each atom, (a,)
    whole: whether changes are whole numbers
    scale: largest value, 1 for whole numbers
    """

    atoms: Integers
    rows: Any
    row_low: Floats
    row_high: Floats
    low: Floats
    high: Floats
    whole: bool
    scale: float

    def maximise(self, gain: Floats, relaxed: bool, nodes: int) -> tuple[Floats | None, float]:
        """Return the change (a,) with the largest gain that was found, and an upper bound of the gain."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        size = np.abs(gain).max()
        solved = milp(
            -gain / size,
            integrality=np.full(len(gain), int(self.whole and not relaxed)),
            bounds=Bounds(self.low / self.scale, self.high / self.scale),
            constraints=LinearConstraint(self.rows, self.row_low / self.scale, self.row_high / self.scale),
            options=cast(Any, {"node_limit": nodes, "mip_rel_gap": 0.5 if nodes <= BULK_NODES else 0.0}),
        )
        if solved.status == 3:  # the gain has no bound: what is printed says nothing of it
            bounded = self.with_ceiling()
            return (None, np.inf) if bounded is self else (bounded.maximise(gain, relaxed, nodes)[0], np.inf)
        limit = -solved.mip_dual_bound if self.whole and not relaxed and solved.mip_dual_bound is not None else None
        if limit is None:
            limit = -solved.fun if solved.status == 0 else np.inf
        bound = float(limit) * size * self.scale
        if solved.x is None:
            return None, bound
        change = np.asarray(solved.x) * self.scale
        if self.whole and relaxed and np.abs(change - np.rint(change)).max(initial=0.0) > TOLERANCE:
            return None, bound
        if self.whole:
            change = np.rint(change)
        return (change if self._fits(change) else None), bound

    def reach_amounts(self, columns: Any, amounts: Floats, nodes: int) -> Floats | None:
        """Return a change (a,) by which as many cells as possible rise by amounts (k,), or fall below 0; None without one.

        columns: atoms of each cell in this block, (a, k), sparse
        """
        from scipy import sparse
        from scipy.optimize import Bounds, LinearConstraint, milp

        number, size = columns.shape[1], len(self.atoms)
        # A share s + t of each amount is reached: x'z >= amount (s + t), s <= 1; more than the amount is worth little.
        reached = sparse.diags_array(self.scale / amounts) @ columns.T
        rows = sparse.vstack(
            [
                sparse.hstack([self.rows, sparse.csr_matrix((self.rows.shape[0], 2 * number))]),
                sparse.hstack([reached, -sparse.identity(number), -sparse.identity(number)]),
            ],
            format="csr",
        )
        solved = milp(
            np.concatenate([np.zeros(size), -np.ones(number), np.full(number, -WORTH_OF_MORE)]),
            integrality=np.concatenate([np.full(size, int(self.whole)), np.zeros(2 * number)]),
            bounds=Bounds(
                np.concatenate([self.low / self.scale, np.zeros(2 * number)]),
                np.concatenate([self.high / self.scale, np.ones(number), np.full(number, MOST_REACHED)]),
            ),
            constraints=LinearConstraint(
                rows,
                np.concatenate([self.row_low / self.scale, np.zeros(number)]),
                np.concatenate([self.row_high / self.scale, np.full(number, np.inf)]),
            ),
            options=cast(Any, {"node_limit": nodes, "mip_rel_gap": 0.2}),
        )
        if solved.x is None:
            return None
        change = np.asarray(solved.x)[:size] * self.scale
        if self.whole:
            change = np.rint(change)
        return change if self._fits(change) else None

    def with_ceiling(self) -> _Block:
        """Return the block with an upper bound of each atom, so that every program has a solution."""
        if np.isfinite(self.high).all():
            return self
        ceiling = 10.0 * max(1.0, float(np.abs(self.low).max(initial=0.0)), self.scale)
        high = np.where(np.isfinite(self.high), self.high, ceiling)
        return replace(self, high=high)

    def _fits(self, change: Floats) -> bool:
        slack = 0.0 if self.whole else TOLERANCE * self.scale
        sums = self.rows @ change
        return bool(
            (sums >= self.row_low - slack).all()
            and (sums <= self.row_high + slack).all()
            and (change >= self.low - slack).all()
            and (change <= self.high + slack).all()
        )


class TablePolytope:
    """All tables that a reader's bounds leave, as changes z = f' - f of the true one.

    columns: atoms of each cell, (atoms, cells), sparse by columns
    values: value of each atom, (atoms,)
    bounds: what the reader knows
    whole: which atoms are numbers of records, (atoms,)

    Attributes:
        blocks: the blocks of open atoms
        too_large: atoms of blocks that are too large to be looked at, (atoms,)
        open_atoms: atoms that the bounds do not fix at once, (atoms,)
    """

    def __init__(self, columns: Any, values: Floats, bounds: CellBounds, whole: Booleans) -> None:
        self.columns = columns.tocsc()
        self.values = values
        sums = self.columns.T @ values
        up, down = bounds.high - sums, bounds.low - sums
        rounding = 1e-12 * np.maximum(1.0, np.abs(sums))
        up[np.abs(up) <= rounding] = 0.0
        down[np.abs(down) <= rounding] = 0.0
        low, high = self._bound_atoms(up, down)
        says = np.flatnonzero((up < np.inf) | (bounds.low > 0))
        rows = self.columns[:, says].T.tocsr()
        self.open_atoms = _open_atoms(rows, low, high, up[says] <= 0, down[says] >= 0)
        self.blocks = list[_Block]()
        self.too_large = np.zeros(len(values), dtype=np.bool_)
        self._split_into_blocks(rows, down[says], up[says], low, high, whole)

    def _bound_atoms(self, up: Floats, down: Floats) -> tuple[Floats, Floats]:
        """Return bounds of the change of each atom, from those of cells of one atom."""
        low, high = -self.values.copy(), np.full(len(self.values), np.inf)
        single = np.flatnonzero(np.diff(self.columns.indptr) == 1)
        atoms = self.columns.indices[self.columns.indptr[single]]
        np.maximum.at(low, atoms, down[single])
        np.minimum.at(high, atoms, up[single])
        return np.minimum(low, 0.0), np.maximum(high, 0.0)

    def _split_into_blocks(
        self, rows: Any, down: Floats, up: Floats, low: Floats, high: Floats, whole: Booleans
    ) -> None:
        """Split the open atoms into blocks that no equation connects."""
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        atoms = np.flatnonzero(self.open_atoms)
        if not len(atoms):
            return
        rows = rows[:, atoms].tocsr()
        sizes = np.diff(rows.indptr)
        # A sum of which one atom is open bounds it, whatever atoms of it are fixed.
        single = np.flatnonzero(sizes == 1)
        of_single = atoms[rows.indices[rows.indptr[single]]]
        low, high = low.copy(), high.copy()
        np.maximum.at(low, of_single, np.minimum(down[single], 0.0))
        np.minimum.at(high, of_single, np.maximum(up[single], 0.0))
        lowest = rows @ low[atoms]
        # A lower bound that the atoms' bounds imply says nothing.
        kept = (sizes > 1) & ((up < np.inf) | (lowest < down - 1e-12))
        rows, down, up = _distinct_rows(rows[kept], down[kept], up[kept])
        edges = sparse.csr_matrix((np.ones(rows.nnz), rows.indices, rows.indptr), rows.shape)
        graph = sparse.bmat([[None, edges.T], [edges, None]]) if rows.shape[0] else sparse.csr_matrix((len(atoms),) * 2)
        _, label = connected_components(graph, directed=False)
        of_atom, of_row = label[: len(atoms)], label[len(atoms) :]
        for members, own_rows in _pack_blocks(of_atom, of_row, whole[atoms]):
            part = rows[own_rows][:, members]
            block_atoms = atoms[members]
            if part.shape[0] > MAX_EQUATIONS:
                self.too_large[block_atoms] = True
                continue
            part, part_down, part_up = _independent_rows(part, down[own_rows], up[own_rows])
            is_whole = bool(whole[block_atoms].all())
            if is_whole and part.shape[0] > MAX_WHOLE_EQUATIONS:
                self.too_large[block_atoms] = True
                continue
            scale = 1.0 if is_whole else float(max(self.values[block_atoms].max(), 1e-300))
            self.blocks.append(
                _Block(block_atoms, part, part_down, part_up, low[block_atoms], high[block_atoms], is_whole, scale)
            )

    @property
    def program_effort(self) -> float:
        """Return how long a program takes, in programs of ``FAST_EQUATIONS``; 0 without blocks of whole numbers."""
        largest = max((block.rows.shape[0] for block in self.blocks if block.whole), default=0)
        return max(float(largest / FAST_EQUATIONS) ** 3, 1e-9)

    def with_known_cells(self, cells: Integers) -> TablePolytope:
        """Return the tables that are left for one who knows the values of some cells too."""
        from scipy import sparse

        found = copy(self)
        found.blocks = []
        for block in self.blocks:
            own = self.columns[block.atoms][:, cells].T.tocsr()
            own = own[np.diff(own.indptr) > 0]
            if not own.shape[0]:
                found.blocks.append(block)
                continue
            # A cell of two blocks is known in each only as a part of its value; that each part stays is stricter.
            none = np.zeros(own.shape[0])
            rows = sparse.vstack([block.rows, own], format="csr")
            found.blocks.append(
                replace(
                    block, rows=rows, row_low=np.append(block.row_low, none), row_high=np.append(block.row_high, none)
                )
            )
        return found

    def with_contributor(self, atoms: Integers, least: Floats, fixed: Integers) -> TablePolytope:
        """Return the tables that are left for one who adds ``least`` (a,) to some atoms (a,) and knows all of others."""
        low = np.full(len(self.values), -np.inf)
        low[atoms] = np.minimum(least - self.values[atoms], 0.0)
        low[fixed] = 0.0
        is_fixed = np.zeros(len(self.values), dtype=np.bool_)
        is_fixed[fixed] = True
        found = copy(self)
        found.blocks = [
            replace(
                block,
                low=np.maximum(block.low, low[block.atoms]),
                high=np.where(is_fixed[block.atoms], 0.0, block.high),
            )
            if (low[block.atoms] > block.low).any() or is_fixed[block.atoms].any()
            else block
            for block in self.blocks
        ]
        return found

    def maximise(self, gain: Floats, relaxed: bool = False, nodes: int = BULK_NODES) -> tuple[Floats, float]:
        """Return a change z (atoms,) with a large gain z'gain, and an upper bound of the gain.

        Blocks without a solution do not change.
        """
        change, bound = np.zeros(len(self.values)), 0.0
        if (gain[self.too_large] != 0).any():
            bound = np.inf
        for block in self.blocks:
            own = gain[block.atoms]
            if not own.any():
                continue
            found, most = block.maximise(own, relaxed, nodes)
            bound += most
            if found is not None:
                change[block.atoms] = found
        return change, bound

    def reach_amounts(self, cells: Integers, amounts: Floats, nodes: int = BULK_NODES) -> Floats:
        """Return a change (atoms,) by which as many cells as possible (k,) rise by amounts (k,), or fall below 0.

        A cell of several blocks is to move in each of them. Blocks without a solution do not change.
        """
        change = np.zeros(len(self.values))
        columns = self.columns[:, cells].tocsr()
        for block in self.blocks:
            own = columns[block.atoms].tocsc()
            inside = np.flatnonzero(np.diff(own.indptr))
            if len(inside):
                found = block.reach_amounts(own[:, inside], amounts[inside], nodes)
                if found is not None:
                    change[block.atoms] = found
        return change

    def cell_interval(self, cell: int) -> tuple[float, float]:
        """Return the smallest and the largest value of one cell, by linear programs."""
        gain = np.asarray(self.columns[:, [cell]].toarray()[:, 0], dtype=np.float64)
        value = float(gain @ self.values)
        return value - self.maximise(-gain, relaxed=True)[1], value + self.maximise(gain, relaxed=True)[1]


def _open_atoms(rows: Any, low: Floats, high: Floats, no_more: Booleans, no_less: Booleans) -> Booleans:
    """Return the atoms that a printed zero, a printed atom or a sum at its least does not fix."""
    found = (low < 0) | (high > 0)
    while True:
        number = rows @ found.astype(np.int64)
        slack = rows @ np.where(found, -low, 0.0)
        # "Hidden cells that sum to their number are all 1": nothing can fall, so nothing can rise.
        fixing = (number > 0) & no_more & ((slack <= 0) | (no_less & (number == 1)))
        if not fixing.any():
            return found
        hit = np.asarray(rows[np.flatnonzero(fixing)].sum(axis=0)).ravel() > 0
        found &= ~hit


def _distinct_rows(rows: Any, down: Floats, up: Floats) -> tuple[Any, Floats, Floats]:
    """Return each set of atoms once, with the narrower bounds."""
    rows.sort_indices()
    first = dict[bytes, int]()
    place = np.empty(rows.shape[0], dtype=np.int64)
    for at in range(rows.shape[0]):
        key = rows.indices[rows.indptr[at] : rows.indptr[at + 1]].tobytes()
        place[at] = first.setdefault(key, at)
    kept, inverse = np.unique(place, return_inverse=True)
    low, high = np.full(len(kept), -np.inf), np.full(len(kept), np.inf)
    np.maximum.at(low, inverse, down)
    np.minimum.at(high, inverse, up)
    return rows[kept], low, high


def _pack_blocks(of_atom: Integers, of_row: Integers, whole: Booleans) -> Iterator[tuple[Integers, Integers]]:
    """Yield atoms and rows of programs: large blocks alone, small ones of whole numbers together."""
    order, row_order = np.argsort(of_atom, kind="stable"), np.argsort(of_row, kind="stable")
    labels, start, sizes = np.unique(of_atom[order], return_index=True, return_counts=True)
    row_start = np.searchsorted(of_row[row_order], labels, "left")
    row_end = np.searchsorted(of_row[row_order], labels, "right")
    atoms, rows, number = list[Integers](), list[Integers](), 0
    for at in range(len(labels)):
        own = order[start[at] : start[at] + sizes[at]]
        own_rows = row_order[row_start[at] : row_end[at]]
        # Sums of money differ in size from block to block: each has its own scale.
        if sizes[at] >= PACKED_ATOMS or not whole[own].all():
            yield np.sort(own), np.sort(own_rows)
            continue
        atoms.append(own)
        rows.append(own_rows)
        number += int(sizes[at])
        if number >= PACKED_ATOMS:
            yield np.sort(np.concatenate(atoms)), np.sort(np.concatenate(rows))
            atoms, rows, number = [], [], 0
    if atoms:
        yield np.sort(np.concatenate(atoms)), np.sort(np.concatenate(rows))


def _independent_rows(rows: Any, down: Floats, up: Floats) -> tuple[Any, Floats, Floats]:
    """Return rows without equations that follow from the others."""
    exact = np.flatnonzero((down == 0) & (up == 0))
    others = np.setdiff1d(np.arange(rows.shape[0]), exact)
    order = exact[np.argsort(np.diff(rows.indptr)[exact], kind="stable")]  # short equations are kept
    space = NullSpace(rows.shape[1], PRIME)
    columns = rows.T.tocsc().astype(np.int64)
    kept = list[Integers]()
    for start in range(0, len(order), 64):
        part = order[start : start + 64]
        kept.append(part[space.add_columns(columns[:, part])])
    chosen = np.sort(np.concatenate([others, *kept]))
    return rows[chosen], down[chosen], up[chosen]


@dataclass(frozen=True, eq=False)
class CellSearch:
    """What a reader can find out of some cells.

    rise, fall: how far above and below its value a table was found for each cell, (k,)
    rise_limit, fall_limit: how far it can be at most, where programs of its own say so, infinite otherwise, (k,)
    exact: cells of which there is no other value, (k,)
    short: cells that cannot reach their level, (k,)
    undecided: cells of which it was not found out, (k,)
    witness: number of the table that differs for each cell, -1 without one, (k,)
    witnesses: changes of the atoms to other tables that fit, (w, atoms)
    programs: programs that were solved
    """

    rise: Floats
    fall: Floats
    rise_limit: Floats
    fall_limit: Floats
    exact: Booleans
    short: Booleans
    undecided: Booleans
    witness: Integers
    witnesses: Floats
    programs: int

    @property
    def failing(self) -> Booleans:
        """Return the cells that are not shown to be safe, (k,)."""
        return np.asarray(self.exact | self.short | self.undecided)


class _Search:
    """The state of a search: which cells are open, and by which tables."""

    def __init__(
        self, polytope: TablePolytope, columns: Any, levels: Floats, least: Floats, known_exact: Booleans
    ) -> None:
        self.polytope, self.columns = polytope, columns.tocsc()
        self.levels, self.least = levels, least
        number = len(levels)
        self.rise, self.fall = np.zeros(number), np.zeros(number)
        self.rise_limit, self.fall_limit = np.full(number, np.inf), np.full(number, np.inf)
        self.exact = known_exact.copy()
        self.short = known_exact & (levels > 0)
        self.witness = np.full(number, -1, dtype=np.int64)
        self.witnesses = list[Floats]()
        self.programs = 0

    @property
    def undecided_cells(self) -> Booleans:
        """Return the cells that are neither open nor decided."""
        return np.asarray((self.witness < 0) & ~self.exact & ~self.short)

    def add_table(self, change: Floats) -> int:
        """Take in another table; return for how many cells it is the first witness."""
        if not change.any():
            return 0
        moved = np.asarray(self.columns.T @ change)
        self.rise, self.fall = np.maximum(self.rise, moved), np.maximum(self.fall, -moved)
        reached = np.where(self.levels > 0, moved >= self.levels * (1 - TOLERANCE), np.abs(moved) >= self.least)
        fresh = reached & (self.witness < 0)
        if fresh.any():
            self.witness[fresh] = len(self.witnesses)
            self.witnesses.append(change)
            self.exact &= ~fresh
        return int(fresh.sum())

    def gain(self, signs: Floats) -> Floats:
        """Return the gain of each atom for a weighted sum of cells with weights ``signs`` (k,)."""
        return np.asarray(self.columns @ signs)

    def maximise(self, gain: Floats, relaxed: bool, nodes: int) -> float:
        """Solve a program, take its table in, and return the upper bound of its gain."""
        self.programs += 1
        change, bound = self.polytope.maximise(gain, relaxed, nodes)
        self.add_table(change)
        return bound


def search_cells(
    polytope: TablePolytope,
    cells: Integers,
    levels: Floats,
    known_exact: Booleans,
    witnesses: Sequence[Floats] = (),
    single_programs: int = SINGLE_PROGRAMS,
    bulk_programs: int = BULK_PROGRAMS,
) -> CellSearch:
    """Search another value of each of some cells, or one that lies ``levels`` above it where that is above 0.

    Args:
        polytope: the tables that the reader is left with.
        cells: numbers of the cells, (k,).
        levels: how far above its value each must stay possible, 0 where any other value is enough, (k,).
        known_exact: cells that are known to follow, (k,).
        witnesses: changes to tables that are known to fit, (atoms,) each.
        single_programs: cells that get programs of their own, at most.
        bulk_programs: programs for all cells together, at most.
    """
    columns = polytope.columns[:, cells]
    least = least_differences(polytope, columns)
    search = _Search(polytope, columns, levels, least, known_exact)
    for change in witnesses:
        search.add_table(change)
    fixed = ~(columns.T @ polytope.open_atoms.astype(np.int64)).astype(np.bool_)
    search.exact |= fixed & (search.witness < 0)
    search.short |= fixed & (levels > 0)
    too_large = (columns.T @ polytope.too_large.astype(np.int64)) > 0
    rng = np.random.default_rng(0)  # which tables are tried decides how fast it is, and nothing else
    share = min(1.0, 1.0 / polytope.program_effort)
    bulk_programs, single_programs = max(2, int(bulk_programs * share)), int(single_programs * share)
    idle = 0
    for number in range(bulk_programs):
        left = search.undecided_cells & ~too_large
        if not left.any() or idle >= IDLE_PROGRAMS:
            break
        signs = np.ones(len(cells)) if number == 0 else -np.ones(len(cells))
        if number > 1:
            signs = rng.choice([-1.0, 1.0], len(cells))
        signs[levels > 0] = 1.0  # such a cell must be able to rise
        # With weights of their own, few tables are equally good, and whole-number programs end soon.
        signs *= rng.random(len(cells)) + 0.1
        before = int(search.undecided_cells.sum())
        search.maximise(search.gain(np.where(left, signs / np.maximum(least, levels), 0.0)), False, BULK_NODES)
        idle = 0 if int(search.undecided_cells.sum()) < before else idle + 1
    for at in np.flatnonzero(search.undecided_cells & ~too_large).tolist():
        if single_programs <= 0:
            break
        if search.undecided_cells[at]:
            single_programs -= 1
            _decide_cell(search, at)
    return CellSearch(
        search.rise,
        search.fall,
        search.rise_limit,
        search.fall_limit,
        search.exact,
        search.short,
        search.undecided_cells,
        search.witness,
        np.array(search.witnesses).reshape(-1, len(polytope.values)),
        search.programs,
    )


def least_differences(polytope: TablePolytope, columns: Any) -> Floats:
    """Return by how much another value of each cell differs: by 1, or by what the solver can tell apart, (k,)."""
    of_atom = np.zeros(len(polytope.values))
    for block in polytope.blocks:
        of_atom[block.atoms] = MIN_DIFFERENCE if block.whole else TOLERANCE * block.scale
    weighted = columns.copy().astype(np.float64)
    weighted.data = of_atom[weighted.indices]
    largest = np.zeros(columns.shape[1])
    owner = np.repeat(np.arange(columns.shape[1]), np.diff(columns.indptr))
    np.maximum.at(largest, owner, weighted.data)
    return np.where(largest > 0, largest, MIN_DIFFERENCE)


def _decide_cell(search: _Search, at: int) -> None:
    """Decide one cell by programs of its own."""
    direction = np.zeros(len(search.levels))
    direction[at] = 1.0
    gain = search.gain(direction)
    if search.levels[at] > 0:
        search.rise_limit[at] = search.maximise(gain, True, SINGLE_NODES)
        if search.rise_limit[at] < search.levels[at] * (1 - TOLERANCE):
            search.short[at] = True
            if search.rise_limit[at] < search.least[at]:
                search.fall_limit[at] = search.maximise(-gain, True, SINGLE_NODES)
                search.exact[at] = search.fall_limit[at] < search.least[at]
            return
        if search.witness[at] < 0:
            search.rise_limit[at] = search.maximise(gain, False, SINGLE_NODES)
        return
    # The relaxed program is quick, and its bound holds for whole numbers too.
    search.rise_limit[at] = search.maximise(gain, True, SINGLE_NODES)
    if search.witness[at] < 0:
        search.fall_limit[at] = search.maximise(-gain, True, SINGLE_NODES)
    for limits, sign in ((search.rise_limit, 1.0), (search.fall_limit, -1.0)):
        if search.witness[at] < 0 and limits[at] >= search.least[at]:
            limits[at] = min(limits[at], search.maximise(sign * gain, False, SINGLE_NODES))
    if search.witness[at] < 0 and max(search.rise_limit[at], search.fall_limit[at]) < search.least[at]:
        search.exact[at] = True


@dataclass(frozen=True, eq=False)
class RepairStep:
    """A way to let one cell move.

    hidden: printed cells that must be hidden for it, ascending
    change: change of the atoms by which the cell moves, (atoms,)
    """

    hidden: Integers
    change: Floats


class CellRepair:
    """The cheapest printed cells to hide so that a cell can move: min sum_k cost_k |x_k'z|, x_b'z = level, z >= -f.

    columns: atoms of each cell, (atoms, cells), sparse
    values: value of each atom, (atoms,)
    bounds: what the reader would know if nothing were printed: hidden cells' bounds, (cells,)
    fixed: cells that stay printed, (cells,)
    whole: which atoms are numbers of records, (atoms,)
    """

    def __init__(self, columns: Any, values: Floats, bounds: CellBounds, fixed: Booleans, whole: Booleans) -> None:
        self.columns, self.values, self.whole = columns.tocsc(), values, whole
        self.fixed = fixed
        sums = self.columns.T @ values
        self.down = bounds.low - sums
        self.low = -values.copy()
        single = np.flatnonzero(np.diff(self.columns.indptr) == 1)
        np.maximum.at(self.low, self.columns.indices[self.columns.indptr[single]], self.down[single])
        self.low = np.minimum(self.low, 0.0)
        of_fixed = self.columns[:, np.flatnonzero(fixed)].T.tocsr()
        every = np.ones(of_fixed.shape[0], dtype=np.bool_)
        # The cells that stay printed alone fix some atoms for good.
        self.open_atoms = _open_atoms(of_fixed, self.low, np.full(len(values), np.inf), every, every)

    def with_contributor(self, atoms: Integers, least: Floats, fixed: Integers) -> CellRepair:
        """Return the same for one who adds ``least`` (a,) to some atoms (a,) and knows all of others."""
        found = copy(self)
        found.low, found.open_atoms = self.low.copy(), self.open_atoms.copy()
        found.low[atoms] = np.maximum(found.low[atoms], np.minimum(least - self.values[atoms], 0.0))
        found.open_atoms[fixed] = False
        return found

    def find_step(
        self, cells: Sequence[int], amounts: Sequence[float], printed: Booleans, costs: Floats
    ) -> RepairStep | None:
        """Return how cells of one kind can move together, at the least cost of printed cells; None if they cannot.

        Args:
            cells: cells that must move, all of numbers of records or all of values.
            amounts: by how much each must rise at least; below 0, fall.
            printed: cells that are printed, (cells,).
            costs: what hiding a cell costs, (cells,).
        """
        from scipy import sparse
        from scipy.optimize import linprog

        is_whole = bool(self.whole[self.columns.indices[self.columns.indptr[cells[0]]]])
        atoms = np.flatnonzero(self.open_atoms & (self.whole == is_whole))
        rows = self.columns[atoms].T.tocsr()
        sizes = np.diff(rows.indptr)
        targets, amount = rows[list(cells)], np.asarray(amounts, dtype=np.float64)
        if not (np.diff(targets.indptr) > 0).all():
            return None
        largest = float(np.abs(amount).max())
        scale = max(1.0, largest) if is_whole else largest
        pays = np.flatnonzero((sizes > 0) & printed & ~self.fixed)
        stays = np.flatnonzero((sizes > 0) & self.fixed)
        lowest = rows @ self.low[atoms]
        least = np.flatnonzero((sizes > 1) & ~self.fixed & (lowest < self.down - 1e-12))
        number, paying = len(atoms), len(pays)
        # |x_k'z| is the sum of a part above and a part below 0.
        split = sparse.identity(paying, format="csr")
        equal = sparse.vstack(
            [
                sparse.hstack([rows[pays], -split, split]),
                sparse.hstack([rows[stays], sparse.csr_matrix((len(stays), 2 * paying))]),
            ],
            format="csr",
        )
        below = sparse.vstack([-rows[least], -(sparse.diags(np.sign(amount)) @ targets)], format="csr")
        below = sparse.hstack([below, sparse.csr_matrix((below.shape[0], 2 * paying))], format="csr")
        price = costs[pays] / max(costs[pays].max(initial=0.0), 1e-300)
        solved = linprog(
            np.concatenate([np.zeros(number), price, price]),
            A_ub=below,
            b_ub=np.concatenate([-self.down[least], -np.abs(amount)]) / scale,
            A_eq=equal,
            b_eq=np.zeros(equal.shape[0]),
            bounds=np.stack(
                [
                    np.concatenate([self.low[atoms] / scale, np.zeros(2 * paying)]),
                    np.full(number + 2 * paying, np.inf),
                ],
                axis=1,
            ),
            method="highs",
        )
        if solved.x is None or solved.status != 0:
            return None
        part = solved.x[:number]
        moved = np.abs(rows[pays] @ part) > TOLERANCE
        change = np.zeros(len(self.values))
        change[atoms] = part * scale
        if is_whole and np.abs(change - np.rint(change)).max() <= TOLERANCE:
            change = np.rint(change)
        return RepairStep(pays[moved], change)


def find_table(columns: Any, bounds: CellBounds, whole: Booleans) -> Floats | None:
    """Return the values of the atoms (atoms,) of one table that keeps to bounds of cells; None if none was found.

    Args:
        columns: atoms of each cell, (atoms, cells), sparse.
        bounds: bounds of each cell, (cells,) each.
        whole: which atoms are numbers of records, (atoms,).
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    if whole.any() and not whole.all():
        # Numbers of records and sums of money share no cell, and each has its own scale.
        found = np.zeros(columns.shape[0])
        of_cell = np.asarray(columns.T @ whole.astype(np.int64)) > 0
        for part, cells in ((whole, of_cell), (~whole, ~of_cell)):
            atoms = np.flatnonzero(part)
            own = find_table(
                columns.tocsr()[atoms].tocsc()[:, np.flatnonzero(cells)],
                CellBounds(bounds.low[cells], bounds.high[cells]),
                whole[atoms],
            )
            if own is None:
                return None
            found[atoms] = own
        return found
    says = np.flatnonzero((bounds.low > 0) | np.isfinite(bounds.high))
    rows = columns.tocsc()[:, says].T.tocsr().astype(np.float64)
    low, high = bounds.low[says], bounds.high[says]
    is_whole = bool(whole.all())
    finite = high[np.isfinite(high)]
    scale = 1.0 if is_whole else max(1e-300, float(finite.max(initial=0.0)))
    # Sums of decimal numbers differ in their last digits.
    slack = np.zeros(len(says)) if is_whole else 1e-9 * np.maximum(np.abs(low), scale * 1e-3)
    for integral in (False, True) if is_whole else (False,):
        solved = milp(
            np.zeros(columns.shape[0]),
            integrality=np.full(columns.shape[0], int(integral)),
            bounds=Bounds(0, np.inf),
            constraints=LinearConstraint(rows, (low - slack) / scale, (high + slack) / scale),
            options=cast(Any, {"node_limit": SINGLE_NODES}),
        )
        if solved.x is None:
            return None
        values = np.maximum(np.asarray(solved.x) * scale, 0.0)
        if not is_whole:
            return values
        values = np.rint(values)
        sums = rows @ values
        if (sums >= low).all() and (sums <= high).all():
            return values
    return None


def cell_interval(columns: Any, values: Floats, bounds: CellBounds, cell: int) -> tuple[float, float]:
    """Return the smallest and the largest value of one cell that a reader's bounds leave, by linear programs."""
    return TablePolytope(columns, values, bounds, np.zeros(len(values), dtype=np.bool_)).cell_interval(cell)
