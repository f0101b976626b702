"""What follows from approved margins: which counts of few records a reader can work out exactly, by linear programming.

A released count of a coarsened margin says that the confidential one lies in an interval: a multiple k of the limit L that it was rounded to the
nearest one, from kL - L/2 on and below kL + L/2. Together with the number of records, where that is known, and with all other margins of the same
variables, the intervals leave a polytope of tables. The confidential table is in it. A cell follows exactly where all tables of the polytope
have the same count there: its smallest and its largest value, by HiGHS through ``scipy.optimize.linprog``, are less than 1 apart.

Whole numbers are not asked of the tables: a cell that only whole numbers pin down is not seen (Dobra & Fienberg 2000 give such tables). Margins are looked at two at a time,
with all others that lie within the variables of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..arrays import Booleans, Floats, Integers
from .domain import Clique, Domain, as_clique, without_contained

LARGEST_AUDIT = 20_000
"""Cells of the variables of two margins that are looked at together."""
MOST_CELLS = 200
"""Small counts of one set of variables that get programs of their own."""
BULK = 6
"""Programs that are tried for all small counts of a set of variables together."""
APART = 1 - 1e-6


@dataclass(frozen=True, eq=False)
class Released:
    """What a margin says: the smallest and the largest count that each cell can have had."""

    clique: Clique
    low: Floats
    high: Floats

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
    by_clique = {one.clique: one for one in released}
    outer = without_contained(tuple(by_clique))
    unions = [as_clique([*a, *b]) for a, b in combinations(outer, 2) if set(a) & set(b)]
    exact = looked = undecided = too_large = done = 0
    for union in dict.fromkeys([*outer, *unions]):
        if domain.cells(union) > largest:
            too_large += 1
            continue
        inside = [one for clique, one in by_clique.items() if set(clique) <= set(union)]
        truth = answer(union)
        small = np.flatnonzero((truth.ravel() > 0) & (truth.ravel() < limit))
        done += 1
        if not len(small):
            continue
        found, left = _pinned(domain, union, inside, truth, small, records, most)
        exact, looked, undecided = exact + found, looked + len(small), undecided + left
    return Audit(exact, looked, undecided, done, too_large)


def _pinned(
    domain: Domain,
    union: Clique,
    inside: Sequence[Released],
    truth: Floats,
    small: Integers,
    records: float | None,
    most: int,
) -> tuple[int, int]:
    """How many of the small cells have one value in every table, and of how many that was not found out."""
    program = _Program.of(domain, union, inside, records)
    left = set(map(int, small))
    rng = np.random.default_rng(0)  # which tables are tried decides how many programs there are, and nothing else
    for attempt in range(BULK):  # tables far from the truth in many cells at once leave few to look at one by one
        if not left:
            break
        cost = np.zeros(truth.size)
        cells = sorted(left)
        cost[cells] = (1.0, -1.0)[attempt] if attempt < 2 else rng.choice([-1.0, 1.0], len(cells))
        other = program.solved(cost)
        if other is not None:
            left -= {cell for cell in left if abs(other[cell] - truth.ravel()[cell]) >= APART}
    exact = 0
    for cell in sorted(left)[:most]:
        low, high = program.range(cell)
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
        places = np.indices(domain.shape(union)).reshape(len(union), -1)
        blocks, lows, highs = [], [], []
        for one in inside:
            shape = domain.shape(one.clique)
            axes = [union.index(at) for at in one.clique]
            cell = np.ravel_multi_index([places[axis] for axis in axes], shape)
            blocks.append(sparse.csr_matrix((np.ones(size), (cell, np.arange(size))), shape=(one.low.size, size)))
            lows.append(one.low.ravel())
            highs.append(one.high.ravel())
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

    def range(self, cell: int) -> tuple[float, float]:
        """The smallest and the largest count of a cell; from 0 without an end where no program says."""
        cost = np.zeros(self.size)
        cost[cell] = 1.0
        least, most = self.solved(cost), self.solved(-cost)
        return 0.0 if least is None else float(least[cell]), np.inf if most is None else float(most[cell])
