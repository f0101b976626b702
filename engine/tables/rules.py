"""Which cells are unsafe in themselves, and how far above its value each must stay possible.

x1 >= x2 >= ... are the contributions of the units of a cell, X their sum:

    threshold n               fewer than n units                          anything but the value must stay possible
    dominance (n, k)          x1 + ... + xn > k/100 X                     100/k (x1 + ... + xn) - X
    p_percent p               X - x1 - x2 < p/100 x1                      p/100 x1 - (X - x1 - x2)
    prior_posterior (p, q)    X - x1 - x2 < p/q x1                        p/q x1 - (X - x1 - x2)

Source: Hundepool et al., Handbook on Statistical Disclosure Control, chapter 4; tau-ARGUS manual 4.1, section 4.4.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..errors import BadInput
from .system import TableSystem

Weighting = Literal["expanded", "sample"]
Zeros = Literal["safe", "unsafe"]
THRESHOLD, DOMINANCE, P_PERCENT, PRIOR_POSTERIOR, ZEROS = (
    "threshold",
    "dominance",
    "p_percent",
    "prior_posterior",
    "zeros",
)
# A share at its limit is no breach: sums of decimal numbers differ in their last digits.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class TableRules:
    """Rules by which a cell is unsafe.

    threshold: fewest units of a safe cell
    dominance: n and k in percent of each rule of dominance
    p_percent: p in percent
    prior_posterior: p and q in percent
    zeros: whether cells without records are unsafe
    weights: whether a record of weight w counts as w contributors of its size, or the weighted total is compared with
        observed contributions
    """

    threshold: int = 0
    dominance: tuple[tuple[int, float], ...] = ()
    p_percent: float | None = None
    prior_posterior: tuple[float, float] | None = None
    zeros: Zeros = "safe"
    weights: Weighting = "expanded"

    def __post_init__(self) -> None:
        """Raise BadInput for numbers that are no rule."""
        if self.threshold < 0:
            raise BadInput("tables.threshold", f"must be at least 0, is {self.threshold}")
        for number, percent in self.dominance:
            if number < 1 or not 0 < percent < 100:
                raise BadInput("tables.dominance", f"must be n >= 1 and 0 < k < 100, is ({number}, {percent:g})")
        if self.p_percent is not None and self.p_percent <= 0:
            raise BadInput("tables.p_percent", f"must be above 0, is {self.p_percent:g}")
        if self.prior_posterior is not None:
            p, q = self.prior_posterior
            if not 0 < p < q:
                raise BadInput("tables.prior_posterior", f"must be 0 < p < q, is ({p:g}, {q:g})")
        if self.zeros not in ("safe", "unsafe"):
            raise BadInput("tables.zeros", 'must be "safe" or "unsafe"')
        if self.weights not in ("expanded", "sample"):
            raise BadInput("tables.weights", 'must be "expanded" or "sample"')

    @property
    def judges_sizes(self) -> bool:
        """Return whether a rule looks at the contributions of units."""
        return bool(self.dominance) or self.p_percent is not None or self.prior_posterior is not None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what the rules leave open."""
        if any(number == 1 for number, _ in self.dominance) and self.p_percent is None and self.prior_posterior is None:
            return (
                "A rule of dominance for one unit does not see what the second largest unit knows of the largest one. "
                "Add p_percent, or a rule of dominance for two units.",
            )
        return ()


@dataclass(frozen=True, eq=False)
class CellUnits:
    """Contributions of the units of some cells, cell after cell, the largest first.

    cells: number of the cell of each contribution, ascending, (m,)
    sizes: contributions, (m,)
    weights: how many contributors of the size each stands for, (m,)
    totals: sum with which contributions are compared, by cell, (cells,)
    counts: units of each cell, (cells,)
    """

    cells: Integers
    sizes: Floats
    weights: Floats
    totals: Floats
    counts: Integers

    @classmethod
    def from_lists(
        cls, cells: Integers, sizes: Floats, weights: Floats, number: int, weighting: Weighting
    ) -> CellUnits:
        """Build from the unordered contributions of units to ``number`` cells, with the sampling weight of each."""
        order = np.lexsort((-sizes, cells))
        cells, sizes, weights = cells[order], sizes[order], weights[order]
        totals = np.asarray(np.bincount(cells, sizes * weights, number), dtype=np.float64)
        if weighting == "sample":
            weights = np.ones(len(sizes))
        # A record of a weight below 1 is in the total with less than its size.
        sizes, weights = np.where(weights < 1, sizes * weights, sizes), np.maximum(weights, 1.0)
        return cls(cells, sizes, weights, totals, np.bincount(cells, minlength=number).astype(np.int64))

    def sum_largest(self, number: int) -> Floats:
        """Return the sum of the largest ``number`` contributors of each cell, (cells,)."""
        # With weights, the largest record alone may stand for all of them.
        before = np.cumsum(self.weights) - self.weights
        first = np.searchsorted(self.cells, np.arange(len(self.counts)))
        start = np.append(before, 0.0)[first]
        taken = np.clip(number - (before - start[self.cells]), 0.0, self.weights)
        return np.asarray(np.bincount(self.cells, self.sizes * taken, len(self.counts)), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class UnsafeCells:
    """Cells that are unsafe in themselves.

    by_rule: for each rule in force the cells that it finds, (cells,)
    levels: how far above its value each unsafe cell must stay possible, 0 where any other value is enough, (cells,)
    warnings: what the rules leave open
    """

    by_rule: Mapping[str, Booleans]
    levels: Floats
    warnings: tuple[str, ...]

    @property
    def unsafe(self) -> Booleans:
        """Return the cells that any rule finds, (cells,)."""
        return np.asarray(np.logical_or.reduce([np.zeros(len(self.levels), dtype=np.bool_), *self.by_rule.values()]))

    def with_decisions(self, safe: Booleans, levels: Floats) -> UnsafeCells:
        """Return what is unsafe once an a priori file has its say.

        ``safe`` are cells that no rule finds, ``levels`` how far above its value each cell must stay possible at least
        where it is unsafe, (cells,) each.
        """
        by_rule = {rule: cells & ~safe for rule, cells in self.by_rule.items()}
        return UnsafeCells(by_rule, np.where(safe, 0.0, np.maximum(self.levels, levels)), self.warnings)


def judge_units(units: CellUnits, rules: TableRules, place: str = "table") -> UnsafeCells:
    """Return which cells are unsafe by the contributions of their units. Raises BadInput for sizes below 0."""
    found = dict[str, Booleans]()
    levels = np.zeros(len(units.counts))
    if rules.threshold:
        found[THRESHOLD] = (units.counts > 0) & (units.counts < rules.threshold)
    if rules.judges_sizes:
        if (units.sizes < 0).any():
            raise BadInput(
                place,
                "has values below 0, which rules of dominance do not fit; take a threshold alone, or another value",
            )
        slack = ROUNDING * units.totals
        for number, percent in rules.dominance:
            largest = units.sum_largest(number)
            breach = largest - percent / 100 * units.totals > slack
            found[DOMINANCE] = found.get(DOMINANCE, np.zeros_like(breach)) | breach
            levels = np.where(breach, np.maximum(levels, 100 / percent * largest - units.totals), levels)
        first, two = units.sum_largest(1), units.sum_largest(2)
        ratios = [(P_PERCENT, None if rules.p_percent is None else rules.p_percent / 100)]
        if rules.prior_posterior is not None:
            ratios.append((PRIOR_POSTERIOR, rules.prior_posterior[0] / rules.prior_posterior[1]))
        for rule, ratio in ratios:
            if ratio is None:
                continue
            # Below 0 only where the weighted total leaves out what was observed.
            rest = np.maximum(units.totals - two, 0.0)
            breach = ratio * first - rest > slack
            found[rule] = breach
            levels = np.where(breach, np.maximum(levels, ratio * first - rest), levels)
    return UnsafeCells(found, levels, rules.warnings)


def find_unsafe_cells(system: TableSystem, rules: TableRules) -> UnsafeCells:
    """Return which cells of a system are unsafe in themselves.

    The threshold is for all cells; rules of contributions are for those of tables with a value.
    """
    units = system.unit_counts
    found = {THRESHOLD: (units > 0) & (units < rules.threshold)} if rules.threshold else {}
    levels = np.zeros(system.cell_count)
    whole = system.cell_is_whole
    if rules.judges_sizes and not whole.all():
        for cells in _blocks_of_cells(system, np.flatnonzero(~whole)):
            own = judge_units(list_cell_units(system, cells, rules.weights), rules)
            for rule, breach in own.by_rule.items():
                found.setdefault(rule, np.zeros(system.cell_count, dtype=np.bool_))[cells] = breach
            levels[cells] = own.levels
    if rules.zeros == "unsafe":
        found[ZEROS] = units == 0
    return UnsafeCells(found, levels, rules.warnings)


def _blocks_of_cells(system: TableSystem, cells: Integers) -> list[Integers]:
    """Return the cells in blocks of about 10^7 contributions."""
    rows = np.bincount(system.contributions.atoms, minlength=system.columns.shape[0])
    entries = np.cumsum(system.columns[:, cells].T @ rows) // 10_000_000
    return [cells[entries == number] for number in np.unique(entries)]


def list_cell_units(
    system: TableSystem, cells: Integers, weighting: Weighting = "expanded", columns: Any = None
) -> CellUnits:
    """Return the contributions of the units of some cells, or of other sets of atoms, (atoms, k), sparse."""
    own = system.contributions
    chosen = (system.columns[:, cells] if columns is None else columns).tocsc()
    order = np.argsort(own.atoms, kind="stable")
    start = np.searchsorted(own.atoms[order], np.arange(system.columns.shape[0] + 1))
    number = np.diff(start)[chosen.indices]
    cell = np.repeat(np.repeat(np.arange(chosen.shape[1]), np.diff(chosen.indptr)), number)
    within = np.arange(len(cell)) - np.repeat(np.cumsum(number) - number, number)
    rows = order[np.repeat(start[chosen.indices], number) + within]
    present = own.records[rows] > 0
    cell, rows = cell[present], rows[present]
    span = int(own.units.max(initial=0)) + 1
    keys, place = np.unique(cell * span + own.units[rows], return_inverse=True)
    sizes: Floats = np.asarray(np.bincount(place, own.sizes[rows] * own.records[rows], len(keys)), dtype=np.float64)
    amounts = np.bincount(place, own.sizes[rows] * own.weights[rows] * own.records[rows], len(keys))
    weights = np.divide(amounts, sizes, out=np.ones(len(sizes)), where=sizes != 0)
    return CellUnits.from_lists(keys // span, sizes, weights, chosen.shape[1], weighting)
