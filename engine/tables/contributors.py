"""What contributors work out of printed tables: they know their own part of every cell, besides all that is printed.

Where o_j is what a contributor adds to atom j, the tables f' that are left for it are those of the strictest reader with

    f'_j >= o_j             of every atom, since what others add is at least 0
    f'_j = o_j              of the atoms of a hidden cell that it is alone in

A cell that the strictest reader cannot tell may follow by this, or lie too close to its value: of two hidden cells with
a printed sum, the larger one can hardly fall for whoever makes most of it, so that the smaller one can hardly rise.

How far above X a cell must stay possible depends on who asks: by a rule with p %, one who adds o to it estimates the
largest other contribution x to within p % unless it stays possible at p/100 x - (X - x - o) above X.

Whoever is alone in a cell and nowhere else is one of them. Equations show for all of these at once what follows; what is
left is decided by tables in which a contributor's own part stays, and by programs.

Source: Fischetti and Salazar (2001), section 3, on attackers with bounds of their own; Hundepool et al., Handbook on
Statistical Disclosure Control, section 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from .elimination import PRIME, ReportSteps, find_known_pairs, find_known_to_unit, ignore_steps
from .polytope import TOLERANCE, TablePolytope, least_differences, search_cells
from .rules import TableRules
from .system import TableSystem

COMMON_PROGRAMS = 400
"""Cells for which tables are looked for in which the own parts of many contributors stay at once."""
FEW_CONTRIBUTORS = 3
"""Contributors up to which each of them gets programs of its own at once."""
CONTRIBUTOR_PROGRAMS = 400
"""Contributors for whom programs of their own are solved, at most."""
SMALL_EQUATIONS = 600
"""Equations of the largest block up to which all of these programs are solved: their time grows with the square."""
CONTRIBUTOR_EFFORT = 60
"""Programs for contributors, of the effort of a large system: fewer of larger ones, and what is left is undecided."""
SINGLE_PROGRAMS = 20
"""Cells of one contributor that get programs of their own, at most."""
REACHED = 10.0
"""Times the smallest difference by which a cell is to move where any other value is enough."""
TABLES_AT_ONCE = 16


@dataclass(frozen=True, eq=False)
class Contributor:
    """What one contributor, or several who know the same, knows besides what is printed.

    unit: number of the unit, the smallest of several
    cells: hidden cells that it is alone in, ascending
    atoms: atoms of which it knows more than others, ascending, (a,)
    least: what it adds to each of these, (a,)
    fixed: atoms of the cells that it is alone in, ascending
    """

    unit: int
    cells: Integers
    atoms: Integers
    least: Floats
    fixed: Integers


@dataclass(frozen=True, eq=False)
class ContributorFinding:
    """A cell that a contributor works out.

    known: hidden cells that the contributor is alone in
    cell: the cell that follows, or of which it was not found out
    undecided: whether it was not found out
    unit: number of the contributor, the smallest of several who know the same; -1 where the files do not say
    is_short: whether the cell does not follow exactly, and lies closer to its value than the rules allow
    """

    known: tuple[int, ...]
    cell: int
    undecided: bool = False
    unit: int = -1
    is_short: bool = False


@dataclass(frozen=True, eq=False)
class ContributorLevels:
    """How far above its value each of some cells must stay possible for those who contribute to it, and for others.

    outside: for whoever adds nothing to it, (k,)
    members: for each unit that adds to it, in the places of ``added``, (units, k), sparse by rows
    added: what each unit adds to each cell, (units, k), sparse by rows
    """

    outside: Floats
    members: Any
    added: Any

    def of_unit(self, unit: int, number: int) -> Floats:
        """Return the levels of a unit, (k,); ``number`` is how many cells there are."""
        found = np.broadcast_to(self.outside, (number,)).copy()
        start, end = self.added.indptr[unit], self.added.indptr[unit + 1]
        found[self.added.indices[start:end]] = self.members[start:end]
        return found


def list_contributors(system: TableSystem, published: Booleans, polytope: TablePolytope) -> list[Contributor]:
    """Return the contributors who know more than the strictest reader, one of those with the same knowledge.

    The order does not depend on how units are numbered.
    """
    amounts = system.unit_amounts
    slack = np.full(system.columns.shape[0], 0.0)
    is_open = np.zeros(system.columns.shape[0], dtype=np.bool_)
    for block in polytope.blocks:
        slack[block.atoms], is_open[block.atoms] = -block.low, True
    sole = system.sole_units
    alone: dict[int, list[int]] = {}
    for cell in np.flatnonzero((sole >= 0) & ~published).tolist():
        alone.setdefault(int(sole[cell]), []).append(cell)
    judges_sizes = not system.cell_is_whole.all()
    # Of an atom that everybody knows too, what one adds counts: levels are of whole cells.
    counts = is_open | (system.columns[:, np.flatnonzero(~published)].getnnz(axis=1) > 0)
    found: dict[tuple[bytes, ...], Contributor] = {}
    for unit in range(amounts.shape[0]):
        start, end = amounts.indptr[unit], amounts.indptr[unit + 1]
        if start == end and unit not in alone:
            continue
        atoms, least = amounts.indices[start:end].astype(np.int64), amounts.data[start:end]
        left = np.maximum(system.atom_values[atoms] - least, 0.0)
        says = is_open[atoms] & (left < slack[atoms] * (1 - TOLERANCE))
        cells = np.array(alone.get(unit, []), dtype=np.int64)
        fixed = np.unique(np.concatenate([system.atoms_of(cell) for cell in cells.tolist()] or [atoms[:0]]))
        if not says.any() and not is_open[fixed].any():
            continue
        # Levels depend on all that one adds where rules look at it.
        kept = counts[atoms] if judges_sizes else says
        key = (cells.astype(">i8").tobytes(), atoms[kept].astype(">i8").tobytes(), least[kept].astype(">f8").tobytes())
        found.setdefault(key, Contributor(unit, cells, atoms[says], least[says], fixed[is_open[fixed]]))
    return [found[key] for key in sorted(found)]


def contributor_of_unit(system: TableSystem, unit: int, published: Booleans) -> Contributor:
    """Return all that one unit knows besides what is printed."""
    amounts = system.unit_amounts
    start, end = amounts.indptr[unit], amounts.indptr[unit + 1]
    cells = np.flatnonzero((system.sole_units == unit) & ~published)
    fixed = [system.atoms_of(cell) for cell in cells.tolist()]
    return Contributor(
        unit,
        cells,
        amounts.indices[start:end].astype(np.int64),
        amounts.data[start:end],
        np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *fixed])),
    )


def list_sole_readers(system: TableSystem, published: Booleans) -> list[Integers]:
    """Return the hidden cells that each contributor is alone in, a contributor after the other."""
    units = system.sole_units
    cells = np.flatnonzero((units >= 0) & ~published)
    order = cells[np.lexsort((cells, units[cells]))]
    _, start = np.unique(units[order], return_index=True)
    readers = [np.sort(part) for part in np.split(order, start[1:])] if len(order) else []
    return sorted(readers, key=lambda part: tuple(part.tolist()))


def program_size(polytope: TablePolytope) -> float:
    """Return how many times the time of a program for ``SMALL_EQUATIONS`` one of this system takes, at least 1."""
    largest = max((block.rows.shape[0] for block in polytope.blocks), default=0)
    return max(1.0, float(largest / SMALL_EQUATIONS) ** 2)


def levels_of_contributors(
    system: TableSystem, cells: Integers, levels: Floats, rules: TableRules
) -> ContributorLevels:
    """Return how far above its value each cell must stay possible, by who asks.

    ``levels`` are those of the strictest rule and contributor, (k,). With weights, and where a rule of dominance or the
    recipe asks for more, these hold for everybody.
    """
    added = (system.unit_amounts @ system.columns[:, cells]).tocsr()
    rates = [rules.p_percent / 100] if rules.p_percent is not None else []
    rates += [rules.prior_posterior[0] / rules.prior_posterior[1]] if rules.prior_posterior is not None else []
    of_entries = levels[added.indices]
    if not rates or (system.contributions.weights != 1).any():
        return ContributorLevels(levels.copy(), of_entries, added)
    rate = max(rates)
    number = len(cells)
    first, second = _two_largest(added, number)
    total = system.values[cells]
    strictest = rate * first - (total - first - second)
    # What goes beyond the rule with p % is asked for whoever asks.
    beyond = levels > np.maximum(strictest, 0.0) * (1 + TOLERANCE) + 1e-12 * np.maximum(total, 1.0)
    others = np.where(added.data >= first[added.indices], second[added.indices], first[added.indices])
    members = rate * others - (total[added.indices] - others - added.data)
    outside = rate * first - (total - first)
    is_judged = levels > 0
    outside = np.where(beyond, levels, np.where(is_judged, np.maximum(outside, 0.0), 0.0))
    members = np.where(beyond[added.indices], of_entries, np.maximum(members, 0.0) * is_judged[added.indices])
    return ContributorLevels(np.minimum(outside, levels), np.minimum(members, of_entries), added)


def _two_largest(added: Any, number: int) -> tuple[Floats, Floats]:
    """Return the largest and the second largest contribution to each cell, (k,)."""
    order = np.lexsort((-added.data, added.indices))
    cells, sizes = added.indices[order], added.data[order]
    start = np.searchsorted(cells, np.arange(number + 1))
    padded = np.append(sizes, [0.0, 0.0])
    count = np.diff(start)
    return np.where(count > 0, padded[start[:-1]], 0.0), np.where(count > 1, padded[start[:-1] + 1], 0.0)


def find_contributor_findings(
    system: TableSystem,
    published: Booleans,
    printed_exactly: Integers,
    targets: Integers,
    levels: Floats,
    rules: TableRules,
    polytope: TablePolytope,
    tables: list[Floats],
    prime: int = PRIME,
    report: ReportSteps = ignore_steps,
) -> list[ContributorFinding]:
    """Return which of the target cells contributors work out, exactly or too closely.

    Args:
        system: all tables.
        published: cells that are printed, (cells,).
        printed_exactly: cells that everybody knows.
        targets: cells that the strictest reader without a contribution cannot tell, (k,).
        levels: how far above its value each must stay possible for the strictest contributor, (k,).
        rules: which cells are unsafe.
        polytope: the tables that are left for that reader.
        tables: changes of the atoms to such tables; more are added, in place.
        prime: modulus of the elimination.
        report: takes how many contributors are decided.
    """
    if not len(targets):
        return []
    contributors = list_contributors(system, published, polytope)
    if not contributors:
        return []
    own_levels = levels_of_contributors(system, targets, levels, rules)
    search = _ContributorSearch(polytope, targets, levels, own_levels, contributors)
    found = dict[tuple[int, int], ContributorFinding]()
    for at, cell in _following_by_equations(system, contributors, printed_exactly, targets, prime):
        own = contributors[at]
        place = int(np.searchsorted(targets, cell))
        found[at, cell] = ContributorFinding(tuple(own.cells.tolist()), cell, unit=own.unit)
        search.left[at, place] = False
    search.examine(tables)
    search.decide(tables, report)
    found |= search.findings
    return [found[key] for key in sorted(found)]


def _following_by_equations(
    system: TableSystem, contributors: Sequence[Contributor], printed: Integers, targets: Integers, prime: int
) -> list[tuple[int, int]]:
    """Return contributors, by place, and cells that follow by equations from those that they are alone in."""
    alone: dict[tuple[int, ...], list[int]] = {}
    for at, own in enumerate(contributors):
        if len(own.cells):
            alone.setdefault(tuple(own.cells.tolist()), []).append(at)
    columns = system.columns[:, printed]
    single = np.array([known[0] for known in alone if len(known) == 1], dtype=np.int64)
    several = [np.array(known, dtype=np.int64) for known in alone if len(known) > 1]
    pairs = [((sole,), cell) for sole, cell, _ in find_known_pairs(system.columns, columns, single, targets, prime)]
    if several:
        follow = find_known_to_unit(system.columns, columns, several, targets, prime)
        pairs += [
            (tuple(own.tolist()), int(cell)) for own, cells in zip(several, follow, strict=True) for cell in cells
        ]
    return [(at, cell) for known, cell in pairs for at in alone[known]]


class _ContributorSearch:
    """Search for tables in which a contributor's own part stays and cells change as far as they must.

    polytope: tables that are left for the strictest reader who contributes nothing
    targets: cells that must be able to change, ascending, (k,)
    levels: how far each must rise for the strictest contributor, 0 where any change is enough, (k,)
    own_levels: how far by who asks
    contributors: who asks
    left: pairs of contributor and cell that are not decided, (contributors, k)
    findings: what was found, by place of the contributor and cell
    """

    def __init__(
        self,
        polytope: TablePolytope,
        targets: Integers,
        levels: Floats,
        own_levels: ContributorLevels,
        contributors: Sequence[Contributor],
    ) -> None:
        self.polytope, self.targets, self.levels, self.own_levels = polytope, targets, levels, own_levels
        self.contributors = contributors
        self.columns = polytope.columns[:, targets].tocsr()
        self.least = least_differences(polytope, self.columns.tocsc())
        self.findings = dict[tuple[int, int], ContributorFinding]()
        self.programs = 0
        self.left = np.zeros((len(contributors), len(targets)), dtype=np.bool_)
        self.parts = list[_ContributorBlock]()
        entries = _list_entries(polytope, contributors)
        for number in range(len(polytope.blocks)):
            part = _ContributorBlock(polytope, number, self.columns, entries)
            if len(part.cells):
                self.left[np.ix_(part.touching, part.cells)] = True
                self.parts.append(part)
        for at, own in enumerate(contributors):
            self.left[at, np.isin(targets, own.cells)] = False

    def levels_of(self, at: int) -> Floats:
        """Return how far each target must rise for a contributor, (k,)."""
        return self.own_levels.of_unit(self.contributors[at].unit, len(self.targets))

    def examine(self, tables: Sequence[Floats]) -> None:
        """Take in tables: pairs whose cell changes far enough in one of them, or in a share of one, are open."""
        for start in range(0, len(tables), TABLES_AT_ONCE):
            if not self.left.any():
                return
            changes = np.array(tables[start : start + TABLES_AT_ONCE])
            for part in self.parts:
                self._examine_block(part, changes[:, part.atoms])

    def _examine_block(self, part: _ContributorBlock, changes: Floats) -> None:
        """Mark the pairs that the changes of one block open, (w, atoms of the block): parts of tables are tables."""
        changes = changes[changes.any(axis=1)]
        cells = part.cells[self.left[:, part.cells].any(axis=0)]
        rows = np.flatnonzero(self.left[:, cells].any(axis=1))
        if not len(changes) or not len(rows) or not len(cells):
            return
        shares = part.shares(changes)[:, rows]
        moves = np.asarray((self.columns[part.atoms][:, cells].T @ changes.T).T)
        levels, least = self.levels[cells], self.least[cells]
        reached = np.where(levels > 0, moves >= levels * (1 - TOLERANCE), np.abs(moves) >= least)
        opened = (shares >= 1).T.astype(np.float32) @ reached.astype(np.float32) > 0
        self.left[np.ix_(rows, cells)] &= ~opened
        if part.whole and not (levels > 0).any():
            return
        # What is still left: a share of a table may be enough, and not everybody needs the same level.
        at_rows, at_cells = np.nonzero(self.left[np.ix_(rows, cells)])
        for begin in range(0, len(at_rows), 100_000):
            own_rows, own_cells = at_rows[begin : begin + 100_000], at_cells[begin : begin + 100_000]
            needed = self._levels_of_pairs(rows[own_rows], cells[own_cells])
            moved = shares[:, own_rows] * moves[:, own_cells]
            enough = np.where(needed > 0, moved >= needed * (1 - TOLERANCE), np.abs(moved) >= least[own_cells])
            done = enough.any(axis=0)
            self.left[rows[own_rows[done]], cells[own_cells[done]]] = False

    def _levels_of_pairs(self, rows: Integers, cells: Integers) -> Floats:
        """Return how far the cells (k,) must rise for the contributors (k,)."""
        found = self.own_levels.outside[cells].copy()
        added = self.own_levels.added
        units = np.array([self.contributors[at].unit for at in rows.tolist()], dtype=np.int64)
        key = added.shape[1] * units + cells
        own = added.shape[1] * np.repeat(np.arange(added.shape[0]), np.diff(added.indptr)) + added.indices
        order = np.argsort(own)
        place = np.searchsorted(own[order], key)
        inside = place < len(own)
        inside[inside] = own[order][place[inside]] == key[inside]
        found[inside] = self.own_levels.members[order[place[inside]]]
        return found

    def decide(self, tables: list[Floats], report: ReportSteps = ignore_steps) -> None:
        """Decide all pairs that are left, as far as programs may; those that are not open are findings."""
        most = CONTRIBUTOR_EFFORT / self.polytope.program_effort
        self._look_for_common_tables(tables, most)
        allowed = int(CONTRIBUTOR_PROGRAMS / program_size(self.polytope))
        # Those for whom most is left first: tables in which their parts stay are tables for many others.
        asking = np.flatnonzero(self.left.any(axis=1))
        for at in asking[np.argsort(-self.left[asking].sum(axis=1), kind="stable")].tolist():
            places = np.flatnonzero(self.left[at])
            still = int(self.left.any(axis=1).sum())
            report(len(self.contributors) - still, len(self.contributors), "contributors")
            if not len(places):
                continue  # a table for another contributor has opened them
            own = self.contributors[at]
            known = tuple(own.cells.tolist())
            if allowed <= 0 or self.programs >= most:
                for place in places.tolist():
                    cell = int(self.targets[place])
                    self.findings[at, cell] = ContributorFinding(known, cell, True, own.unit)
                continue
            allowed -= 1
            polytope = self.polytope.with_contributor(own.atoms, own.least, own.fixed)
            for sign in (1.0, -1.0):
                places = np.flatnonzero(self.left[at])
                if len(places):
                    self._reach_together(polytope, places, self.levels_of(at)[places], sign, tables)
            places = np.flatnonzero(self.left[at])
            if not len(places):
                continue
            found = search_cells(
                polytope,
                self.targets[places],
                self.levels_of(at)[places],
                np.zeros(len(places), dtype=np.bool_),
                single_programs=SINGLE_PROGRAMS,
                bulk_programs=0,
            )
            self.programs += found.programs
            self.left[at] = False
            for place in np.flatnonzero(found.failing).tolist():
                cell = int(self.targets[places[place]])
                is_short = bool(found.short[place] and not found.exact[place])
                self.findings[at, cell] = ContributorFinding(
                    known, cell, bool(found.undecided[place]), own.unit, is_short
                )
            fresh = [change for change in found.witnesses if change.any()]
            tables += fresh
            self.examine(fresh)

    def _reach_together(
        self, polytope: TablePolytope, places: Integers, levels: Floats, sign: float, tables: list[Floats]
    ) -> None:
        """Look for a table in which as many targets as possible, by place, rise by their levels, or move at all."""
        amounts = np.where(levels > 0, levels * (1 + 1e-4), sign * REACHED * self.least[places])
        change = polytope.reach_amounts(self.targets[places], amounts)
        self.programs += 1
        if change.any():
            tables.append(change)
            self.examine([change])

    def _look_for_common_tables(self, tables: list[Floats], most: float) -> None:
        """Look for tables in which the own parts of many contributors stay at once: of all, then of those for whom a
        cell is left.
        """
        everybody = np.arange(len(self.contributors))
        for sign in (1.0, -1.0):
            places = np.flatnonzero(self.left.any(axis=0))
            if len(places) and self.programs < most:
                self._reach_together(self._common_polytope(everybody), places, self.levels[places], sign, tables)
        counts = self.left.sum(axis=0)
        number = min(int(COMMON_PROGRAMS / program_size(self.polytope)), most)
        for place in np.argsort(-counts, kind="stable")[: int(number)].tolist():
            asking = np.flatnonzero(self.left[:, place])
            # Where the parts of all of them leave no room, those of a half may.
            for own in (asking, asking[::2], asking[1::2]):
                if len(own) < FEW_CONTRIBUTORS or not self.left[own, place].any():
                    continue
                polytope = self._common_polytope(own)
                self._reach_together(polytope, np.array([place]), self.levels[[place]], 1.0, tables)

    def _common_polytope(self, asking: Integers) -> TablePolytope:
        """Return the tables in which the own part of each of some contributors stays."""
        least: Floats = np.zeros(len(self.polytope.values))
        for at in asking.tolist():
            np.maximum.at(least, self.contributors[at].atoms, self.contributors[at].least)
        atoms = np.flatnonzero(least > 0)
        return self.polytope.with_contributor(atoms, least[atoms], atoms[:0])


@dataclass(frozen=True, eq=False)
class _KnownAtoms:
    """What contributors know of atoms, an entry for each.

    who: place of the contributor, (e,)
    atoms: the atom, (e,)
    slack: how far it can fall for the contributor, (e,)
    fixed: whether the contributor knows it, (e,)
    number: how many contributors there are
    """

    who: Integers
    atoms: Integers
    slack: Floats
    fixed: Booleans
    number: int


def _list_entries(polytope: TablePolytope, contributors: Sequence[Contributor]) -> _KnownAtoms:
    """Return what contributors know of atoms."""
    none = np.zeros(0, dtype=np.int64)
    atoms = np.concatenate([none, *(part for own in contributors for part in (own.atoms, own.fixed))])
    sizes = [size for own in contributors for size in (len(own.atoms), len(own.fixed))]
    fixed = np.repeat(np.tile([False, True], len(contributors)), sizes)
    who = np.repeat(np.repeat(np.arange(len(contributors)), 2), sizes)
    slack = np.zeros(len(atoms))
    slack[~fixed] = np.maximum(
        polytope.values[atoms[~fixed]] - np.concatenate([np.zeros(0), *(own.least for own in contributors)]), 0.0
    )
    return _KnownAtoms(who, atoms, slack, fixed, len(contributors))


class _ContributorBlock:
    """The part of a block of atoms that contributors know.

    atoms: atoms of the block, (a,)
    whole: whether changes are whole numbers
    cells: places of the targets that lie in it
    touching: places of the contributors who know something of it
    """

    def __init__(self, polytope: TablePolytope, number: int, columns: Any, entries: _KnownAtoms) -> None:
        block = polytope.blocks[number]
        self.atoms, self.whole, self.scale, self.number = block.atoms, block.whole, block.scale, entries.number
        self.cells = np.flatnonzero(np.diff(columns[block.atoms].tocsc().indptr))
        place = np.full(len(polytope.values), -1, dtype=np.int64)
        place[block.atoms] = np.arange(len(block.atoms))
        inside = place[entries.atoms] >= 0
        self.who, self.entry_atoms = entries.who[inside], place[entries.atoms[inside]]
        self.slack, self.fixed = entries.slack[inside], entries.fixed[inside]
        self.touching = np.unique(self.who)

    def shares(self, changes: Floats) -> Floats:
        """Return which share of each change (w, a) keeps each contributor's part, 0 or 1 of whole numbers,
        (w, contributors).
        """
        found = np.ones((self.number, len(changes)))
        if len(self.who):
            own = changes[:, self.entry_atoms].T
            rounding = 0.0 if self.whole else TOLERANCE * self.scale
            slack = self.slack[:, None]
            too_low = own < -slack - rounding
            share = np.divide(slack, -own, out=np.ones(own.shape), where=too_low)
            share[self.fixed[:, None] & (np.abs(own) > rounding)] = 0.0
            np.minimum.at(found, self.who, share)
        return np.asarray((found >= 1 if self.whole else found).T, dtype=np.float64)
