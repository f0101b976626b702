"""Levels, ranges and cut points from noisy counts, where a recipe declares none: a domain at a privacy cost.

Levels: only those that occur are counted, and a level is kept whose noisy count is above a threshold (Korolova et al.
2009; Bun, Nissim & Stemmer 2016, stability-based histograms). Ranges and cuts: the cells that are counted are the same
for every table (eighths of powers of two, and equal parts of a range that was found so), so that noise alone is their
cost. The first counts say from which power of two to which the numbers reach; the second, within that, where they end
and where equally many lie. Numbers beyond are taken for the nearest end.

Whoever counts c records of a unit passes in noise for c of them (``sigma``), and their number (``unit_records``): they
may be c new levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ..data.arrays import Floats, Integers
from .zcdp import sigma_of_rho

SMALLEST_POWER, LARGEST_POWER = -20, 60
"""Powers of two that are distinguished: numbers nearer to 0 count as 0, larger ones as the largest."""
PARTS_OF_POWER = 8
"""Cells of a power of two, of equal width."""
FINEST_PART = 2.0**-10
"""Part of the range below which powers of two are not distinguished."""
EQUAL_PARTS = 128
"""Cells of the whole range besides: dates and the like lie within one power of two."""
FALSE_ALARM_CHANCE = 0.002
"""How often noise alone makes one of all empty cells look full."""

# No theory gives the rest: ``tests/benchmarks/found_ranges.py`` has the figures that they were chosen by.
POWERS_SHARE, PARTS_SHARE = 0.375, 0.25
"""Parts of the cost of a range: for the powers of two, and for the first equal parts of it."""
CUTS_SHARE = 0.2
"""Part of the cost of ranges and cut points together that is for the cut points."""
RANGE_PARTS = 16
"""Equal parts of a range by which its ends are found: fewer cells have less noise in their sums."""
TAIL_POWERS = 6
"""Powers of two beyond the last full one that may belong to the tail."""
TOLERATED_SHARE = 0.01
"""Share of the records that a power of two or a tail has which may be left out, if noise lets one know that it is small."""
NEAR_CELLS = 4
"""Cells next to an end that hold most of a tail; sums of more have too much noise to show that it is small."""
EMPTY_ERRORS = 0.5
"""Standard errors below which the sum of outer cells is taken for that of empty ones."""
TAIL_ERRORS = 1.645
"""Standard errors in the upper bound of the records beyond an end."""


def level_threshold(sigma: float, delta: float, unit_records: int = 1) -> float:
    """Return the noisy count above which a level is kept.

    One unit's new levels pass it with a probability of at most ``delta``, all together.
    """
    # If c records of a unit make k levels new, each count is at most c and k is at most c.
    return unit_records + sigma * float(-ndtri(delta / unit_records))


def select_levels(
    counts: Floats, sigma: float, delta: float, rng: np.random.Generator, unit_records: int = 1
) -> Integers:
    """Return the places of the levels that are kept, (kept,), given their counts (levels,)."""
    # Levels that do not occur cannot be listed, so they get no noise. Those that both of two neighbours have cost
    # Gaussian noise as elsewhere; that new ones may appear is the delta (Bun & Steinke 2016, Definition 8.1).
    occur = np.flatnonzero(counts > 0)
    noisy = counts[occur] + rng.normal(0.0, sigma, len(occur))
    return occur[noisy > level_threshold(sigma, delta, unit_records)].astype(np.int64)


@dataclass(frozen=True, slots=True)
class DeclaredRange:
    """Ends of the numbers of a variable that a recipe declares.

    low, high: ends; None where they are not declared
    is_whole: whether the numbers are whole
    """

    low: float | None
    high: float | None
    is_whole: bool

    @property
    def is_complete(self) -> bool:
        return self.low is not None and self.high is not None


@dataclass(frozen=True, slots=True)
class RangeTail:
    """Records that may lie beyond an end of a range that noise found.

    count: upper bound of their number, by noisy counts; 0 where the end is declared
    outer_end: the number beyond which no record is expected
    """

    count: float
    outer_end: float


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """Cells of a range with cumulated noisy counts.

    edges: edges of the cells, ascending, (cells + 1,)
    cumulated_counts: records up to the end of each cell, (cells,)
    tails: what may lie below the first edge and above the last
    """

    edges: Floats
    cumulated_counts: Floats
    tails: tuple[RangeTail, RangeTail]

    def cut_points(self, pieces: int) -> Floats:
        """Return the inner edges that cut the records most evenly into ``pieces``, (at most pieces - 1,)."""
        if len(self.cumulated_counts) < 2 or self.cumulated_counts[-1] <= 0:
            return np.empty(0)
        wanted = np.arange(1, pieces) / pieces * self.cumulated_counts[-1]
        places = np.abs(self.cumulated_counts[None, :-1] - wanted[:, None]).argmin(axis=1)
        return np.unique(self.edges[1:-1][places])


def count_noisy_cells(
    values: Floats, declared: DeclaredRange, rho: float, rng: np.random.Generator, needs_cuts: bool = True
) -> NoisyCells | None:
    """Return cells of the range of ``values`` (n,) with noisy counts; None where noise hides the range.

    The cost is ``rho``. Without ``needs_cuts`` only the ends are found, in one cell, and all of the cost is theirs.
    """
    if declared.is_complete:
        assert declared.low is not None
        assert declared.high is not None
        low, high = declared.low, declared.high
        tails = (RangeTail(0.0, low), RangeTail(0.0, high))
    else:
        cuts_cost = CUTS_SHARE * rho if needs_cuts else 0.0
        ends = _find_ends(values, declared, rho - cuts_cost, rng)
        if ends is None:
            return None
        low, high, tails, rho = ends.low, ends.high, ends.tails, cuts_cost
    if high <= low:
        return NoisyCells(np.array([low, np.nextafter(low, np.inf)]), np.ones(1), tails)
    if not needs_cuts:
        return NoisyCells(np.array([low, high]), np.ones(1), tails)
    edges = _cell_edges(low, high, declared.is_whole)
    noisy = np.rint(_count_in_cells(values, edges) + rng.normal(0.0, sigma_of_rho(rho), len(edges) - 1))
    return NoisyCells(edges, _make_ascending(np.cumsum(noisy)), tails)


@dataclass(frozen=True, slots=True)
class _Ends:
    """Ends of a range, and what may lie beyond them, below and above."""

    low: float
    high: float
    tails: tuple[RangeTail, RangeTail]


@dataclass(frozen=True, eq=False)
class _NoisyCounts:
    """Counts of cells with noise; the outermost cells count the values beyond them too.

    edges: edges of the cells, (cells + 1,)
    counts: noisy counts, (cells,)
    sigma: standard deviation of the noise in a cell
    """

    edges: Floats
    counts: Floats
    sigma: float

    @classmethod
    def measure(cls, values: Floats, edges: Floats, rho: float, rng: np.random.Generator) -> _NoisyCounts:
        """Count ``values`` (n,) in the cells, at a cost of ``rho``."""
        sigma = sigma_of_rho(rho)
        return cls(edges, _count_in_cells(values, edges) + rng.normal(0.0, sigma, len(edges) - 1), sigma)

    def average_with(self, other: _NoisyCounts) -> _NoisyCounts:
        """Return the average, by inverse variance, of two measurements of the same cells."""
        own, others = self.sigma**-2, other.sigma**-2
        counts = (own * self.counts + others * other.counts) / (own + others)
        return _NoisyCounts(self.edges, counts, (own + others) ** -0.5)

    def empty_cells(self, declared: DeclaredRange) -> tuple[int, int]:
        """Return the number of outer cells, below and above, that are empty or as good as empty.

        It is 0 at a declared end.
        """
        tolerated = TOLERATED_SHARE * max(float(self.counts.sum()), 0.0)
        below = _count_empty(self.counts, self.sigma, tolerated) if declared.low is None else 0
        above = _count_empty(self.counts[::-1], self.sigma, tolerated) if declared.high is None else 0
        return (below, above) if below + above < len(self.counts) else (0, 0)

    def largest_count(self, cells: Floats) -> float:
        """Return the upper bound of the records in some of the cells, given their noisy counts."""
        return max(float(cells.sum()), 0.0) + TAIL_ERRORS * self.sigma * math.sqrt(len(cells))


def _find_ends(values: Floats, declared: DeclaredRange, rho: float, rng: np.random.Generator) -> _Ends | None:
    """Return the ends of ``values`` (n,) by noisy counts, at a cost of ``rho``; None where noise hides them."""
    # Three tables, each of cells that follow from the one before: powers of two; equal parts of the powers that are
    # populated; equal parts of these again, of a smaller range if most parts were empty.
    costs = [part * rho for part in (POWERS_SHARE, PARTS_SHARE, 1 - POWERS_SHARE - PARTS_SHARE)]
    powers = _NoisyCounts.measure(values, _power_edges(declared.is_whole), costs[0], rng)
    reach = _populated_powers(powers, declared)
    if reach is None:
        return None
    if reach[1] <= reach[0]:
        return _Ends(reach[0], reach[1], (RangeTail(0.0, reach[0]), RangeTail(0.0, reach[1])))
    parts = _NoisyCounts.measure(values, _equal_edges(*reach, declared.is_whole), costs[1], rng)
    tails = [_tail_of_powers(powers, reach[side], bool(side)) for side in (0, 1)]
    below, above = (max(empty - 1, 0) for empty in parts.empty_cells(declared))
    smaller = float(parts.edges[below]), float(parts.edges[len(parts.counts) - above])
    if smaller[1] - smaller[0] <= (reach[1] - reach[0]) / 2:
        if below:
            tails[0] = RangeTail(parts.largest_count(parts.counts[:below]), reach[0])
        if above:
            tails[1] = RangeTail(parts.largest_count(parts.counts[-above:]), reach[1])
        parts = _NoisyCounts.measure(values, _equal_edges(*smaller, declared.is_whole), costs[2], rng)
    else:
        parts = parts.average_with(_NoisyCounts.measure(values, parts.edges, costs[2], rng))
    below, above = parts.empty_cells(declared)
    if below:
        tails[0] = RangeTail(parts.largest_count(parts.counts[:below]), reach[0])
    if above:
        tails[1] = RangeTail(parts.largest_count(parts.counts[-above:]), reach[1])
    low, high = float(parts.edges[below]), float(parts.edges[len(parts.counts) - above])
    if declared.low is not None:
        tails[0] = RangeTail(0.0, low)
    if declared.high is not None:
        tails[1] = RangeTail(0.0, high)
    elif declared.is_whole:
        # A cell of whole numbers ends one below its upper edge.
        high = max(high - 1, low)
    return _Ends(low, high, (tails[0], tails[1]))


def _populated_powers(powers: _NoisyCounts, declared: DeclaredRange) -> tuple[float, float] | None:
    """Return the ends of the powers of two that are populated, and of those beside them that may be.

    Declared ends are returned as they are. None if no power is populated beyond doubt.
    """
    counts, sigma = powers.counts, powers.sigma
    # Over all cells together: with hundreds of empty cells a threshold for one cell would be passed by noise.
    full = np.flatnonzero(counts > -sigma * float(ndtri(FALSE_ALARM_CHANCE / len(counts))))
    if not len(full):
        return None
    records = float(counts[full].sum())
    first = int(full[0]) - _count_tail_cells(counts[: full[0]][::-1], sigma, records)
    last = int(full[-1]) + _count_tail_cells(counts[full[-1] + 1 :], sigma, records)
    low, high = float(powers.edges[first]), float(powers.edges[last + 1])
    # From a quarter of the other end to 0 the range grows by little, and has any number of powers.
    if 0 < low <= high / 4:
        low = 0.0
    if low / 4 <= high < 0:
        high = 0.0
    return low if declared.low is None else declared.low, high if declared.high is None else declared.high


def _count_tail_cells(counts: Floats, sigma: float, records: float) -> int:
    """Return how many cells after the last full one may be populated, given their noisy counts from there outward."""
    # Single cells of a long tail drown in the noise that their sum exceeds.
    counts = counts[:TAIL_POWERS]
    sums = np.cumsum(counts)
    populated = np.flatnonzero(sums > 2 * sigma * np.sqrt(np.arange(1, len(sums) + 1)))
    found = int(populated[-1]) + 1 if len(populated) else 0
    # One power more unless its count is no more than noise, or a small share of the records. The next tables correct
    # a range that is too wide; none corrects one that is too narrow.
    if found < len(counts) and counts[found] > max(0.0, TOLERATED_SHARE * records - TAIL_ERRORS * sigma):
        found += 1
    return found


def _count_empty(counts: Floats, sigma: float, tolerated: float) -> int:
    """Return how many cells are empty or as good as empty, given their noisy counts from the outermost inward."""
    found = 0
    for number in range(1, len(counts)):
        # What would be cut off, from its inner cell outward: each of these sums is of records that lie side by side.
        sums = np.cumsum(counts[:number][::-1])
        errors = sigma * np.sqrt(np.arange(1, number + 1))
        is_small = (sums + errors)[:NEAR_CELLS].max() <= tolerated and (sums < 2 * errors).all()
        if is_small or (sums < EMPTY_ERRORS * errors).all():
            found = number
        if sums[-1] > 3 * errors[-1]:
            break
    return found


def _tail_of_powers(powers: _NoisyCounts, end: float, is_above: bool) -> RangeTail:
    """Return the tail beyond ``end``, which reaches to the next power of two."""
    at = int(np.searchsorted(powers.edges, end))
    cell = at if is_above else at - 1
    if not 0 <= cell < len(powers.counts):
        return RangeTail(0.0, end)
    return RangeTail(
        powers.largest_count(powers.counts[cell : cell + 1]), float(powers.edges[cell + 1 if is_above else cell])
    )


def _equal_edges(low: float, high: float, whole: bool) -> Floats:
    """Return the edges of equal parts between two numbers."""
    edges = low + (high - low) * (np.arange(RANGE_PARTS + 1) / RANGE_PARTS)
    return np.unique(np.ceil(edges)) if whole else np.unique(edges)


def _power_edges(whole: bool) -> Floats:
    """Return cell edges at 0 and at the powers of two on both sides of it."""
    start = 0 if whole else SMALLEST_POWER
    up = 2.0 ** np.arange(start, LARGEST_POWER + 1)
    return np.concatenate([-up[::-1], [0.0], up])


def _cell_edges(low: float, high: float, whole: bool) -> Floats:
    """Return cell edges between two numbers: eighths of the powers of two, but for tiny ones, and equal parts."""
    powers = _power_edges(whole)
    eighths = (powers[:-1, None] + np.diff(powers)[:, None] * np.arange(PARTS_OF_POWER) / PARTS_OF_POWER).ravel()
    equal = low + (high - low) * np.arange(1, EQUAL_PARTS) / EQUAL_PARTS
    inside = np.concatenate([eighths, equal])
    # Between whole numbers an edge at a fraction would make cells that no number can be in.
    if whole:
        inside = np.ceil(inside)
    inside = np.unique(np.append(inside[np.abs(inside) >= (high - low) * FINEST_PART], 0.0))
    return np.array([low, *inside[(inside > low) & (inside < high)], high])


def _count_in_cells(values: Floats, edges: Floats) -> Floats:
    """Count the values of each cell, (cells,), closed below; values beyond an end are in the outermost cell."""
    places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(places, minlength=len(edges) - 1).astype(np.float64)


def _make_ascending(upto: Floats) -> Floats:
    """Return sums made ascending: half way between the largest one before and the smallest one after."""
    # Noise makes cumulated counts go up and down.
    return np.asarray((np.maximum.accumulate(upto) + np.minimum.accumulate(upto[::-1])[::-1]) / 2)
