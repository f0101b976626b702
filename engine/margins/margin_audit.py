"""Disclosure audit of published margins: which counts of few records a reader can work out exactly.

A released count of a coarsened margin bounds the confidential one. Together with the number of records, where that is
known, and with all other margins, the bounds leave a set of tables of whole numbers, of which the confidential table is
one. A count follows exactly where all these tables have the same one.

Margins that share variables are **one system** and are audited together, for every count of any number of its
variables. Two methods take turns, and neither calls a count safe without a table of whole numbers in which it is another
one:

1. Moves of single records (``record_moves``). They need no table of all variables, and mostly show that nothing
follows.
2. Where the table of all variables is small enough, it is a system of tables like any other (``tables.polytope``): its
cells are the atoms, published counts are cells with bounds, and what is left of the small counts is searched there.

A system whose table of all variables is too large, and that moves do not clear, is searched in parts. Tables of several
releases of the same records are audited together over categories fine enough for all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..data.provenance import ReleaseProvenance
from ..data.rows import distinct_rows
from ..tables.elimination import find_following
from ..tables.polytope import CellBounds, TablePolytope, search_cells
from .domain import Clique, Domain, as_clique, drop_contained
from .record_moves import MAX_WALKS, PublishedBounds, VariableGrouping, find_closed_groupings, list_groupings

__all__ = ["MarginAudit", "PublishedBounds", "audit_margins", "known_record_range"]

MAX_AUDITED_CELLS = 20_000
"""Number of cells of all variables of a system that is looked at as a whole, at most."""
MAX_COUNTS = 2_000_000
"""Counts of all sets of variables of such a system."""
MAX_COUNT_PROGRAMS = 200
"""Number of small counts of one system that get programs of their own, at most."""
MAX_COUNT_ENTRIES = 20_000_000
"""Cells of all small counts together that a search takes at a time."""
FEW_WALKS = 1
"""Walks of records where programs can decide what these leave."""
MAX_PARTS = 40
"""Parts that are searched of a system that is too large."""
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
    program: cells that can hold records, and bounds that the margins set on sums of them
    small_counts: places of small counts, as flat indices, that moves of records do not show to be open; of equal counts
    one
    looked_at: number of small counts
    """

    axes: tuple[_CountAxis, ...]
    variables: Clique
    shape: tuple[int, ...]
    confidential_table: Floats
    program: _PublishedSums
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
        program = _PublishedSums.from_bounds(domain, variables, tables, records)
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
        from scipy import sparse

        if not len(self.small_counts):
            return _SearchOutcome(frozenset(), self.looked_at, 0)
        places, counts = self._columns_of_counts()
        published = self.program
        columns = sparse.hstack([published.rows.T, counts], format="csc")
        values = self.confidential_table.ravel()[published.atoms]
        unknown = np.zeros(len(places))
        bounds = CellBounds(
            np.concatenate([published.low, unknown]), np.concatenate([published.high, np.full(len(places), np.inf)])
        )
        polytope = TablePolytope(columns, values, bounds, np.ones(len(values), dtype=np.bool_))
        exactly = np.flatnonzero(published.low == published.high)
        follows = find_following(counts, published.rows[exactly].T.tocsc())
        cells = np.arange(len(places)) + len(published.low)
        found = search_cells(polytope, cells, unknown, follows, single_programs=most)
        exact = frozenset(map(self._count_at, places[found.exact].tolist()))
        # Counts beyond what is searched at a time were not looked at.
        undecided = int(found.undecided.sum()) + len(self.small_counts) - len(places)
        return _SearchOutcome(exact, self.looked_at, undecided)

    def _columns_of_counts(self) -> tuple[Integers, Any]:
        """Return small counts, as many as can be searched, and the cells of each, (atoms, counts), sparse."""
        from scipy import sparse

        shape = tuple(len(axis.rows) for axis in self.axes)
        atom_of = np.full(self.confidential_table.size, -1, dtype=np.int64)
        atom_of[self.program.atoms] = np.arange(len(self.program.atoms))
        parts, ends, entries = list[Integers](), [0], 0
        for place in self.small_counts.tolist():
            own = [
                np.flatnonzero(axis.rows[at])
                for axis, at in zip(self.axes, np.unravel_index(place, shape), strict=True)
            ]
            atoms = atom_of[np.ravel_multi_index(np.ix_(*own), self.shape).ravel()]
            atoms = np.sort(atoms[atoms >= 0])
            entries += len(atoms)
            if entries > MAX_COUNT_ENTRIES:
                break
            parts.append(atoms)
            ends.append(entries)
        indices = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        matrix = sparse.csc_matrix(
            (np.ones(len(indices), dtype=np.int64), indices, ends), (len(self.program.atoms), len(parts))
        )
        return self.small_counts[: len(parts)], matrix

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
class _PublishedSums:
    """Bounds of sums of cells that every possible table of whole numbers keeps to.

    rows: cells of each sum, 1 or 0, (sums, atoms), sparse
    low, high: bounds of each sum, (sums,)
    atoms: cells that can hold records, as flat indices; no other one is in the program
    """

    rows: Any
    low: Floats
    high: Floats
    atoms: Integers

    @classmethod
    def from_bounds(
        cls, domain: Domain, variables: Clique, tables: Sequence[PublishedBounds], records: tuple[float, float]
    ) -> _PublishedSums:
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
        return cls(rows[says].astype(np.int64), low[says], high[says], atoms)
