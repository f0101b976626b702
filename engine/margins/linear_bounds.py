"""Disclosure audit of published margins: which counts of few records a reader can work out exactly.

A released count of a coarsened margin bounds the confidential one. Together with the number of records, where that is
known, and with all other margins, the bounds leave a set of tables of whole numbers, of which the confidential table is
one. A count follows exactly where all these tables have the same one.

Margins that share variables are **one system** and are audited together, for every count of any number of its
variables. Three methods take turns; each leaves less to the next, and none calls a count safe without a table of whole
numbers in which it is another one:

1. Moves of single records (``record_moves``). They need no table of all variables, and mostly show that nothing
follows.
2. Where the table of all variables is small enough: programs for many counts at once, whose solutions are tables in
which many counts differ.
3. The smallest and the largest value of each count that is left, by HiGHS.

A system whose table of all variables is too large, and that moves do not clear, is searched in parts. Tables of several
releases of the same records are audited together over categories fine enough for all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any, cast

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..data.provenance import ReleaseProvenance
from ..data.rows import distinct_rows
from .domain import Clique, Domain, as_clique, drop_contained
from .record_moves import MAX_WALKS, PublishedBounds, VariableGrouping, find_closed_groupings, list_groupings

__all__ = ["MarginAudit", "PublishedBounds", "audit_margins", "known_record_range"]

MAX_AUDITED_CELLS = 20_000
"""Number of cells of all variables of a system that is looked at as a whole, at most."""
MAX_COUNTS = 2_000_000
"""Counts of all sets of variables of such a system."""
MAX_COUNT_PROGRAMS = 200
"""Number of small counts of one system that get programs of their own, at most."""
BULK_PROGRAMS = 6
"""Programs that are tried for all small counts of a system together."""
FEW_WALKS = 1
"""Walks of records where programs can decide what these leave."""
MAX_PARTS = 40
"""Parts that are searched of a system that is too large."""
MAX_SEARCH_NODES = 2_000
"""Number of nodes of the search tree of one whole-number program: a number and no time, so that results are the same on
any machine.
"""
# Another whole number differs by 1; the solver's objective is exact to about its tolerance only.
MIN_DIFFERENCE = 1 - 1e-6
CountOfCategories = tuple[tuple[int, tuple[int, ...]], ...]
"""A count by the variables that it is of and the categories of each that it sums over."""


@dataclass(frozen=True, slots=True)
class MarginAudit:
    """Numbers of small counts that follow from published tables.

    exact: small counts that follow
    looked_at: small counts that were looked at one by one
    undecided: small counts of which it was not found out
    unions: systems of margins that share variables
    too_large: systems that could not be looked at as a whole, and of which something is undecided
    variables: sets of variables with the number of their small counts that follow, the fewest variables first
    names: name of each variable, where the positions alone do not say
    """

    exact: int
    looked_at: int
    undecided: int
    unions: int
    too_large: int
    variables: tuple[tuple[Clique, int], ...] = ()
    names: tuple[str, ...] = ()


def known_record_range(releases: Sequence[ReleaseProvenance]) -> tuple[float, float]:
    """Return the smallest and the largest number of confidential records that released numbers of rows leave possible.

    A dataset with as many rows as there are records shows the number. A number of rows that ends in zeros may be
    rounded to these: it leaves the numbers that are rounded to it, if the true one is among them. Another number says
    nothing.

    ``releases`` are those of the same records that a reader holds.
    """
    low, high = 0.0, math.inf
    for records, rows in ((release.records, rows) for release in releases for rows in release.rows):
        if rows == records:
            return float(records), float(records)
        unit = 1
        while rows and rows % (10 * unit) == 0:
            unit *= 10
        if abs(rows - records) <= unit / 2:
            low, high = max(low, math.ceil(rows - unit / 2)), min(high, math.floor(rows + unit / 2))
    return low, high


def audit_margins(
    domain: Domain,
    released: Sequence[PublishedBounds],
    codes: Integers,
    limit: int,
    records: tuple[float, float] = (0.0, math.inf),
    max_cells: int = MAX_AUDITED_CELLS,
    max_programs: int = MAX_COUNT_PROGRAMS,
) -> MarginAudit:
    """Audit which counts of 1 to ``limit`` - 1 records follow from margins, for any set of variables.

    Args:
        domain: categories of each variable.
        released: published margins; the counts of ``codes`` lie within their bounds.
        codes: category of each confidential record in each variable, (n, d). They say which counts are small, and are
        one of the tables that are left.
        limit: smallest count that is not small.
        records: smallest and largest number of records that is known in addition to the margins.
        max_cells: most cells of a system that is audited as a whole.
        max_programs: small counts of a system that get programs of their own.
    """
    records = _record_count_bounds(released, records)
    exact, left = set[CountOfCategories](), 0
    looked = too_large = 0
    systems = _connected_variables([one.clique for one in released])
    for variables in systems:
        tables = [one for one in released if set(one.clique) <= set(variables)]
        groupings = list_groupings(variables, domain.sizes, tables)
        rng = np.random.default_rng(0)  # which tables are tried decides how fast it is, and nothing else
        small_enough = _is_small_enough(domain, variables, groupings, max_cells)
        walks = FEW_WALKS if small_enough else MAX_WALKS  # where programs can decide, they take what is left
        closed = find_closed_groupings(domain.sizes, tables, codes, groupings, limit, rng, records, walks)
        if small_enough:
            part = _MarginSystem.from_margins(domain, variables, tables, codes, groupings, closed, limit, records)
            outcome = part.search_counts(max_programs)
            exact |= outcome.exact
            looked, left = looked + outcome.looked_at, left + outcome.undecided
            continue
        own, small = _closed_patterns(codes, groupings, closed, limit)
        looked += _count_small_counts(variables, tables, codes, limit)
        if not len(own):
            continue
        too_large += 1
        # That nothing follows from the parts proves nothing for the whole, so its counts stay undecided; what follows
        # from a part follows from the whole.
        left += small
        for union in islice(_parts_of_system(domain, tables, own, groupings, max_cells), MAX_PARTS):
            inside = [one for one in tables if set(one.clique) <= set(union)]
            of_union = [at for at, grouping in enumerate(groupings) if grouping.variable in union]
            if not _is_small_enough(domain, union, [groupings[at] for at in of_union], max_cells):
                continue
            part = _MarginSystem.from_margins(
                domain, union, inside, codes, [groupings[at] for at in of_union], closed[:, of_union], limit, records
            )
            exact |= part.search_counts(max_programs).exact
    by_variables = Counter(tuple(variable for variable, _ in count) for count in exact)
    ordered = sorted(by_variables.items(), key=lambda one: (len(one[0]), one[0]))
    return MarginAudit(len(exact), max(looked, len(exact)), left, len(systems), too_large, tuple(ordered))


def _connected_variables(cliques: Sequence[Clique]) -> list[Clique]:
    """Return the sets of variables that margins connect, in the order of their first variable."""
    found: list[set[int]] = []
    for clique in cliques:
        touching = [one for one in found if one & set(clique)]
        found = [one for one in found if not one & set(clique)] + [set(clique).union(*touching)]
    return sorted(as_clique(tuple(one)) for one in found)


def _record_count_bounds(released: Sequence[PublishedBounds], records: tuple[float, float]) -> tuple[float, float]:
    """Return the smallest and the largest number of records that all margins allow."""
    return (
        # Every margin is a table of all records, so what one system says of their number binds the others.
        max([records[0], *(float(one.low.sum()) for one in released)]),
        min([records[1], *(float(one.high.sum()) for one in released)]),
    )


def _is_small_enough(domain: Domain, variables: Clique, groupings: Sequence[VariableGrouping], largest: int) -> bool:
    """Return whether the table of these variables and all its counts are few enough to audit as a whole."""
    counts = math.prod(
        1 + sum(int(g.groups.max()) + 1 for g in groupings if g.variable == variable) for variable in variables
    )
    return domain.cell_count(variables) <= largest and counts <= MAX_COUNTS


def _closed_patterns(
    codes: Integers, groupings: Sequence[VariableGrouping], closed: Booleans, limit: int
) -> tuple[Booleans, int]:
    """Return the sets of closed groupings of records with a small count, (p, groupings), and the number of counts."""
    patterns = np.unique(closed[closed.any(axis=1)], axis=0)
    kept, number = [], 0
    for pattern in patterns:
        finest: dict[int, int] = {}
        for at in np.flatnonzero(pattern).tolist():
            finest.setdefault(groupings[at].variable, at)  # groupings of a variable stand finest first
        chosen = [groupings[at] for at in finest.values()]
        cells = distinct_rows((one.groups[codes[:, one.variable]] for one in chosen), len(codes))
        own = np.unique(cells.combination_of[(closed == pattern).all(axis=1)])
        # The count over all closed groupings of a record is the smallest that may follow of it. Where that is not
        # small, none is.
        few = int((cells.counts[own] < limit).sum())
        if few:
            kept.append(pattern)
            number += few
    return np.array(kept, dtype=np.bool_).reshape(-1, len(groupings)), number


def _count_small_counts(variables: Clique, tables: Sequence[PublishedBounds], codes: Integers, limit: int) -> int:
    """Count the small counts of the margins of a system and of all its variables together."""
    of_margins = [
        np.bincount(one.cells_of_records(codes)) for one in tables if np.isfinite(one.high).all()
    ]  # conditions are no margins
    of_everything = np.unique(codes[:, list(variables)], axis=0, return_counts=True)[1]
    return sum(int(((counts > 0) & (counts < limit)).sum()) for counts in [*of_margins, of_everything])


def _parts_of_system(
    domain: Domain,
    tables: Sequence[PublishedBounds],
    closed: Booleans,
    groupings: Sequence[VariableGrouping],
    largest: int,
) -> Iterator[Clique]:
    """Yield the sets of variables to search in place of a system that is too large, the most promising first.

    They are the variables of one margin, and of every two margins that share some, if a count may follow in them and
    their table is small enough.
    """
    outer = drop_contained([one.clique for one in tables])
    unions = [as_clique([*a, *b]) for a, b in combinations(outer, 2) if set(a) & set(b)]
    often = Counter(groupings[at].variable for pattern in closed for at in np.flatnonzero(pattern).tolist())
    inside = {union: sum(often[variable] for variable in union) for union in dict.fromkeys([*outer, *unions])}
    for union in sorted(inside, key=lambda union: -inside[union]):
        if domain.cell_count(union) <= largest and inside[union]:
            yield union


@dataclass(frozen=True, eq=False)
class _SearchOutcome:
    """Result of the search of one system.

    exact: small counts that follow
    looked_at: number of small counts that were looked at
    undecided: number of small counts that were not decided
    """

    exact: frozenset[CountOfCategories]
    looked_at: int
    undecided: int


@dataclass(frozen=True, eq=False)
class _CountAxis:
    """All that counts can sum over along one variable: each category, each coarser category, and all of them.

    rows: categories of each, 1 or 0, (k, size); the last row is all
    grouping: number of the grouping of each, (k,); -1 of all
    """

    rows: Floats
    grouping: Integers

    @classmethod
    def from_groupings(cls, variable: int, size: int, groupings: Sequence[VariableGrouping]) -> _CountAxis:
        """Build from the groupings of a variable that has ``size`` categories."""
        rows, owner = list[Floats](), list[int]()
        for at, grouping in enumerate(groupings):
            if grouping.variable == variable:
                for category in range(int(grouping.groups.max()) + 1):
                    rows.append((grouping.groups == category).astype(np.float64))
                    owner.append(at)
        return cls(np.stack([*rows, np.ones(size)]), np.array([*owner, -1]))


@dataclass(frozen=True, eq=False)
class _MarginSystem:
    """Margins that share variables, and all counts of sets of these variables.

    axes: what counts can sum over, for each variable; an array of counts has an axis for each, whose places are those
    of ``axes``
    variables: the variables
    shape: number of categories of each
    confidential_table: confidential counts of the cells
    program: bounds that the margins set
    small_counts: places of small counts, as flat indices, that moves of records do not show to be open; of equal counts
    one
    looked_at: number of small counts
    """

    axes: tuple[_CountAxis, ...]
    variables: Clique
    shape: tuple[int, ...]
    confidential_table: Floats
    program: _CellProgram
    small_counts: Integers
    looked_at: int

    @classmethod
    def from_margins(
        cls,
        domain: Domain,
        variables: Clique,
        tables: Sequence[PublishedBounds],
        codes: Integers,
        groupings: Sequence[VariableGrouping],
        closed: Booleans,
        limit: int,
        records: tuple[float, float],
    ) -> _MarginSystem:
        """Build from the margins of these variables, the records, and the groupings that moves left closed."""
        axes = tuple(_CountAxis.from_groupings(variable, domain.sizes[variable], groupings) for variable in variables)
        shape = domain.shape(variables)
        truth = domain.count_records(codes, variables)
        counts = _all_counts(axes, truth)
        few = (counts > 0) & (counts < limit)
        few.ravel()[-1] = False  # the number of records itself is no count of a combination
        program = _CellProgram.from_bounds(domain, variables, tables, records)
        # The sum of the random names of a count's cells identifies the set of cells.
        names = np.zeros(truth.size)
        names[program.atoms] = np.random.default_rng(1).integers(1, 2**31, len(program.atoms))
        number = np.flatnonzero(few)
        # Counts over the same cells that can hold records are one count, which the fewest variables name.
        width = _variables_of_counts(axes).ravel()[number]
        by_width = number[np.argsort(width, kind="stable")]
        _, first = np.unique(_all_counts(axes, names.reshape(shape)).ravel()[by_width], return_index=True)
        number = np.sort(by_width[first])
        open_ = _is_shown_open(domain, variables, axes, codes, closed).ravel()
        return cls(axes, variables, shape, truth, program, number[~open_[number]], len(number))

    def search_counts(self, most: int) -> _SearchOutcome:
        """Search for the small counts that have one value in every table of whole numbers."""
        left = self._drop_differing(self.small_counts, None)
        rng = np.random.default_rng(0)  # as above
        for attempt in range(
            BULK_PROGRAMS
        ):  # tables far from the truth in many counts at once leave few to look at one by one
            if not len(left):
                break
            signs = np.ones(len(left)) if attempt < 2 else rng.choice([-1.0, 1.0], len(left))
            left = self._drop_differing(
                left, self.program.find_table((-1.0) ** attempt * self._cell_weights(left, signs))
            )
        exact, undecided = list[int](), 0
        confidential = _all_counts(self.axes, self.confidential_table).ravel()
        programs = 0
        while len(left):
            place, left = int(left[0]), left[1:]
            if programs >= most:
                undecided += 1
                continue
            # A linear program bounds the count from above and below. That only whole numbers determine a count happens
            # (Dobra & Fienberg 2000), so that whole-number programs follow where it leaves the count open.
            programs += 1
            cells = self._cell_weights(np.array([place]), np.ones(1))
            above = self.program.find_table_beyond(cells, 1, confidential[place])
            below = (
                above
                if isinstance(above, np.ndarray)
                else self.program.find_table_beyond(cells, -1, confidential[place])
            )
            if isinstance(below, np.ndarray):
                left = self._drop_differing(left, below)
            elif above and below:
                exact.append(place)
            else:
                undecided += 1
        return _SearchOutcome(frozenset(map(self._count_at, exact)), self.looked_at, undecided)

    def _drop_differing(self, places: Integers, table: Floats | None) -> Integers:
        """Return those places whose counts in a ``table`` equal the confidential ones."""
        if table is None:
            return places
        difference = _all_counts(self.axes, (table - self.confidential_table.ravel()).reshape(self.shape)).ravel()
        return places[np.abs(difference[places]) < 0.5]

    def _cell_weights(self, places: Integers, weights: Floats) -> Floats:
        """Return the weights of the cells, flat, that give the weighted sum of some counts."""
        found = np.zeros(tuple(len(axis.rows) for axis in self.axes))
        found.ravel()[places] = weights
        for at, axis in enumerate(self.axes):
            found = np.moveaxis(np.tensordot(axis.rows.T, found, (1, at)), 0, at)
        return np.asarray(found.ravel())

    def _count_at(self, place: int) -> CountOfCategories:
        """Return the count at a flat place by its variables and their categories."""
        at = np.unravel_index(place, tuple(len(axis.rows) for axis in self.axes))
        return tuple(
            (variable, tuple(np.flatnonzero(axis.rows[one]).tolist()))
            for variable, axis, one in zip(self.variables, self.axes, at, strict=True)
            if axis.grouping[one] >= 0
        )


def _all_counts(axes: Sequence[_CountAxis], table: Floats) -> Floats:
    """Return all counts of all sets of variables of a table."""
    for at, axis in enumerate(axes):
        table = np.moveaxis(np.tensordot(axis.rows, table, (1, at)), 0, at)
    return np.ascontiguousarray(table)


def _variables_of_counts(axes: Sequence[_CountAxis]) -> Integers:
    """Return the number of variables of each count, in the shape of all counts."""
    found = np.zeros(tuple(len(axis.rows) for axis in axes), dtype=np.int64)
    for at, axis in enumerate(axes):
        found += (axis.grouping >= 0).reshape([-1 if other == at else 1 for other in range(len(axes))])
    return found


def _is_shown_open(
    domain: Domain, variables: Clique, axes: Sequence[_CountAxis], codes: Integers, closed: Booleans
) -> Booleans:
    """Mark the counts that contain a record which is open in one of their groupings: they do not follow."""
    shape = tuple(len(axis.rows) for axis in axes)
    found = np.zeros(shape, dtype=np.bool_)
    patterns = distinct_rows(closed.T, len(closed))
    for number, pattern in enumerate(closed[patterns.first]):
        inside = np.ones(shape, dtype=np.bool_)  # counts all of whose groupings are closed
        for at, axis in enumerate(axes):
            own = np.append(pattern, True)[axis.grouping]  # the last one, -1, stands for all categories
            inside &= own.reshape([-1 if other == at else 1 for other in range(len(axes))])
        if not inside.all():
            held = _all_counts(axes, domain.count_records(codes[patterns.combination_of == number], variables)) > 0.5
            found |= held & ~inside
    return found


@dataclass(frozen=True, eq=False)
class _CellProgram:
    """Bounds of sums of cells that every possible table of whole numbers keeps to.

    rows: cells of each sum, 1 or 0, (sums, atoms), sparse
    low, high: bounds of each sum, (sums,)
    atoms: cells that can hold records, as flat indices; no other one is in the program
    size: number of cells
    """

    rows: Any
    low: Floats
    high: Floats
    atoms: Integers
    size: int

    @classmethod
    def from_bounds(
        cls, domain: Domain, variables: Clique, tables: Sequence[PublishedBounds], records: tuple[float, float]
    ) -> _CellProgram:
        """Build from the bounds of the cells of published tables, and of the number of records."""
        from scipy import sparse

        shape, size = domain.shape(variables), domain.cell_count(variables)
        codes = np.zeros((size, len(domain)), dtype=np.int64)
        codes[:, list(variables)] = np.indices(shape).reshape(len(variables), -1).T
        cells = [one.cells_of_records(codes) for one in tables]
        possible = np.ones(size, dtype=np.bool_)
        for one, own in zip(tables, cells, strict=True):
            possible &= one.high.ravel()[own] > 0
        atoms = np.flatnonzero(possible)
        blocks = [
            sparse.csr_matrix((np.ones(len(atoms)), (own[atoms], np.arange(len(atoms)))), (one.low.size, len(atoms)))
            for one, own in zip(tables, cells, strict=True)
        ]
        blocks.append(sparse.csr_matrix(np.ones((1, len(atoms)))))
        low = np.concatenate([*(one.low.ravel() for one in tables), [records[0]]])
        high = np.concatenate([*(one.high.ravel() for one in tables), [records[1]]])
        rows = sparse.vstack(blocks).tocsr()
        # Rows without cells or without a bound would only slow the solver down.
        says = (np.diff(rows.indptr) > 0) & ((low > 0) | np.isfinite(high))
        return cls(rows[says], low[says], high[says], atoms, size)

    def find_table(self, cost: Floats) -> Floats | None:
        """Search for a table of whole numbers with a small cost of its cells (size,); return None if none is found."""
        solved = self._solve(cost, whole=False)
        if solved.x is None:
            return None
        # The linear program often ends at a corner of whole numbers, which spares the slower search.
        rounded = np.round(solved.x)
        if self._is_feasible(rounded):
            return self._spread_over_cells(rounded)
        return self._rounded_table(self._solve(cost, whole=True))

    def find_table_beyond(self, cells: Floats, sign: int, value: float) -> Floats | bool:
        """Search for a table whose sum of ``cells`` lies beyond a value, above it for ``sign`` 1, below it for -1.

        Returns the table, True if no such table exists, and False if the search was undecided.
        """
        solved = self._solve(-sign * cells, whole=False)
        if solved.status == 0 and sign * (-sign * solved.fun - value) < MIN_DIFFERENCE:
            return True
        if solved.x is not None:
            rounded = np.round(solved.x)
            if self._is_feasible(rounded) and sign * (cells[self.atoms] @ rounded - value) > 0.5:
                return self._spread_over_cells(rounded)
        solved = self._solve(-sign * cells, whole=True)
        other = self._rounded_table(solved)
        if other is not None and sign * (cells @ other - value) > 0.5:
            return other
        # Stopped at the node limit, the search still has a bound that may exclude every other value.
        bound = solved.mip_dual_bound
        return bool(bound is not None and sign * (-sign * bound - value) < MIN_DIFFERENCE)

    def _rounded_table(self, solved: Any) -> Floats | None:
        """Return a solution as a table of whole numbers; None without one, or if rounding breaks the bounds."""
        if solved.x is None:
            return None
        rounded = np.round(solved.x)
        return self._spread_over_cells(rounded) if self._is_feasible(rounded) else None

    def _is_feasible(self, table: Floats) -> bool:
        sums = self.rows @ table
        return bool((table >= 0).all() and (sums >= self.low).all() and (sums <= self.high).all())

    def _spread_over_cells(self, table: Floats) -> Floats:
        """Return values of the atoms as a table of all cells, flat."""
        found = np.zeros(self.size)
        found[self.atoms] = table
        return found

    def _solve(self, cost: Floats, whole: bool) -> Any:
        """Minimise the cost of the cells (size,) within the bounds, over whole numbers if ``whole``."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        return milp(
            cost[self.atoms],
            integrality=np.full(len(self.atoms), int(whole)),
            bounds=Bounds(0, np.inf),
            constraints=LinearConstraint(self.rows, self.low, self.high),
            options=cast(Any, {"node_limit": MAX_SEARCH_NODES, "mip_rel_gap": 0.0}),
        )
