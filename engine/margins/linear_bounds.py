"""What follows from approved margins: which counts of few records a reader can work out exactly, by linear programming.

A released count of a coarsened margin says that the confidential one lies in an interval: a multiple k of the limit L that it was rounded to the
nearest one, from kL - L/2 on and below kL + L/2. Together with the number of records, where that is known, and with all other margins of the same
variables, the intervals leave a polytope of tables. The confidential table is in it. A cell follows exactly where all tables of the polytope
have the same count there: its smallest and its largest value, by HiGHS through ``scipy.optimize.linprog``, are less than 1 apart.

Tables of several releases of the same records are looked at together over categories fine enough for all of them; the categories of each
table are then sums of cells, and so are the counts that may follow.

Whole numbers are not asked of the tables: a cell that only whole numbers pin down is not seen (Dobra & Fienberg 2000 give such tables). Margins are looked at two at a time,
with all others that lie within the variables of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from .domain import Clique, Domain, as_clique, without_contained

Rows = Any
"""A sparse matrix of scipy's, which has no types."""
LARGEST_AUDIT = 20_000
"""Cells of the variables of two margins that are looked at together."""
MOST_CELLS = 200
"""Small counts of one set of variables that get programs of their own."""
BULK = 6
"""Programs that are tried for all small counts of a set of variables together."""
APART = 1 - 1e-6


@dataclass(frozen=True, eq=False)
class Released:
    """What a margin says: the smallest and the largest count that each cell can have had.

    ``groups`` give for each axis the category of the table that each category of the domain lies in; its own where there are none.
    """

    clique: Clique
    low: Floats
    high: Floats
    groups: tuple[Integers, ...] = ()

    @classmethod
    def coarsened(cls, clique: Clique, table: Floats, limit: int, impossible: Booleans | None = None) -> Released:
        """From multiples of ``limit``; cells that cannot be are 0."""
        low = np.maximum(np.ceil(table - limit / 2), 0.0)
        high = np.ceil(table + limit / 2) - 1
        if impossible is not None:
            high = np.where(impossible, 0.0, high)
        return cls(clique, low, high)

    @classmethod
    def exact(cls, clique: Clique, table: Floats) -> Released:
        return cls(clique, table, table)


@dataclass(frozen=True, slots=True)
class Audit:
    """``exact`` small counts that follow, of ``looked_at`` small counts, and ``undecided`` ones, for which there were too many programs.

    ``unions`` of variables were looked at, and ``too_large`` ones were not.
    """

    exact: int
    looked_at: int
    undecided: int
    unions: int
    too_large: int


def audit(
    domain: Domain,
    released: Sequence[Released],
    answer: Callable[[Clique], Floats],
    limit: int,
    records: float | None = None,
    largest: int = LARGEST_AUDIT,
    most: int = MOST_CELLS,
) -> Audit:
    """Whether counts of 1 to ``limit`` - 1 records follow from margins: of every margin, and of the variables of every two that share some.

    ``answer`` gives confidential counts: they say which cells are looked at, and are a table of the polytope. ``records`` is the number that is known.
    """
    outer = without_contained([one.clique for one in released])
    unions = [as_clique([*a, *b]) for a, b in combinations(outer, 2) if set(a) & set(b)]
    exact = looked = undecided = too_large = done = 0
    for union in dict.fromkeys([*outer, *unions]):
        if domain.cells(union) > largest:
            too_large += 1
            continue
        inside = [one for one in released if set(one.clique) <= set(union)]
        truth = answer(union).ravel()
        sums = _sums(domain, union, inside)
        of_sums = sums @ truth
        small = np.flatnonzero((of_sums > 0) & (of_sums < limit))
        done += 1
        if not len(small):
            continue
        found, left = _pinned(_Program.of(domain, union, inside, records), truth, sums[small], most)
        exact, looked, undecided = exact + found, looked + len(small), undecided + left
    return Audit(exact, looked, undecided, done, too_large)


def _sums(domain: Domain, union: Clique, inside: Sequence[Released]) -> Rows:
    """The counts that may follow, as sums of cells of a set of variables: each cell, and those of tables with coarser categories."""
    from scipy import sparse

    found = [sparse.identity(domain.cells(union), format="csr")]
    coarser = {
        (one.clique, *(tuple(own) for own in one.groups)): one
        for one in inside
        if any(len(np.unique(own)) < len(own) for own in one.groups)
    }
    found += [_rows(domain, union, one) for one in coarser.values()]
    return sparse.vstack(found).tocsr()


def _rows(domain: Domain, union: Clique, one: Released) -> Rows:
    """The cells of a table as sums of those of a set of variables: (cells of the table, cells of the set), 1 or 0."""
    from scipy import sparse

    size = domain.cells(union)
    places = np.indices(domain.shape(union)).reshape(len(union), -1)
    along = [places[union.index(at)] for at in one.clique]
    if one.groups:
        along = [own[place] for own, place in zip(one.groups, along, strict=True)]
    cell = np.ravel_multi_index(along, one.low.shape)
    return sparse.csr_matrix((np.ones(size), (cell, np.arange(size))), shape=(one.low.size, size))


def _pinned(program: _Program, truth: Floats, small: Rows, most: int) -> tuple[int, int]:
    """How many of the small sums have one value in every table, and of how many that was not found out."""
    left = set(range(small.shape[0]))
    confidential = small @ truth
    rng = np.random.default_rng(0)  # which tables are tried decides how many programs there are, and nothing else
    for attempt in range(BULK):  # tables far from the truth in many cells at once leave few to look at one by one
        if not left:
            break
        signs = np.zeros(small.shape[0])
        places = sorted(left)
        signs[places] = (1.0, -1.0)[attempt] if attempt < 2 else rng.choice([-1.0, 1.0], len(places))
        other = program.solved(small.T @ signs)
        if other is not None:
            left -= set(np.flatnonzero(np.abs(small @ other - confidential) >= APART).tolist())
    exact = 0
    for place in sorted(left)[:most]:
        low, high = program.range(small[place].toarray().ravel())
        exact += high - low < APART
    return exact, max(len(left) - most, 0)


@dataclass(frozen=True, eq=False)
class _Program:
    """Bounds of sums of cells (rows of a sparse matrix) that a table has to keep to."""

    rows: object
    low: Floats
    high: Floats
    size: int

    @classmethod
    def of(cls, domain: Domain, union: Clique, inside: Sequence[Released], records: float | None) -> _Program:
        from scipy import sparse

        size = domain.cells(union)
        blocks = [_rows(domain, union, one) for one in inside]
        lows, highs = [one.low.ravel() for one in inside], [one.high.ravel() for one in inside]
        if records is not None:
            blocks.append(sparse.csr_matrix(np.ones((1, size))))
            lows.append(np.array([float(records)]))
            highs.append(np.array([float(records)]))
        return cls(sparse.vstack(blocks).tocsr(), np.concatenate(lows), np.concatenate(highs), size)

    def solved(self, cost: Floats) -> Floats | None:
        """The table of the least cost; None where HiGHS finds none, or costs have no end."""
        from scipy import sparse
        from scipy.optimize import linprog

        both = sparse.vstack([self.rows, -self.rows])  # type: ignore[operator]
        bounds = np.concatenate([self.high, -self.low])
        found = linprog(cost, A_ub=both, b_ub=bounds, bounds=(0, None), method="highs")
        return np.asarray(found.x) if found.status == 0 else None

    def range(self, cells: Floats) -> tuple[float, float]:
        """The smallest and the largest sum of cells (cells,), 1 or 0; from 0 without an end where no program says."""
        least, most = self.solved(cells), self.solved(-cells)
        return 0.0 if least is None else float(cells @ least), np.inf if most is None else float(cells @ most)
