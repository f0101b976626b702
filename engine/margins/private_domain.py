"""Levels, ranges and cut points from noisy counts, where a recipe declares none: a domain at a privacy cost.

Levels: only those that occur are counted, and a level is kept whose noisy count is above a threshold (Korolova et al.
2009; Bun, Nissim & Stemmer 2016, stability-based histograms). Ranges and cuts: the cells that are counted are the same
for every table (eighths of powers of two, and equal parts of a range that was found so), so that noise alone is their
cost. The first counts say from which power of two to which the numbers reach; the second, within that, where they end
and where equally many lie. Numbers beyond are taken for the nearest end.

Whoever counts c records of a person passes in noise for c of them (``sigma``), and their number (``person_records``):
they may be c new levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ..data.arrays import Booleans, Floats, Integers
from .zcdp import sigma_of_rho

SMALLEST_POWER, LARGEST_POWER = -20, 60
"""Powers of two that are distinguished: numbers nearer to 0 count as 0, larger ones as the largest."""
PARTS_OF_POWER = 8
"""Cells of a power of two, of equal width."""
FINEST_PART = 2.0**-10
"""Part of the range below which powers of two are not distinguished."""
EQUAL_PARTS = 128
"""Cells of the whole range besides: dates and the like lie within one power of two."""
FALSE_ALARM_CHANCE = 0.01
"""How often noise alone makes one of all empty cells look full."""


def level_threshold(sigma: float, delta: float, person_records: int = 1) -> float:
    """Return the noisy count above which a level is kept.

    One person's new levels pass it with a probability of at most ``delta``, all together.
    """
    # If c records of a person make k levels new, each count is at most c and k is at most c.
    return person_records + sigma * float(-ndtri(delta / person_records))


def select_levels(
    counts: Floats, sigma: float, delta: float, rng: np.random.Generator, person_records: int = 1
) -> Integers:
    """Return the places of the levels that are kept, (kept,), given their counts (levels,)."""
    # Levels that do not occur cannot be listed, so they get no noise. Those that both of two neighbours have cost
    # Gaussian noise as elsewhere; that new ones may appear is the delta (Bun & Steinke 2016, Definition 8.1).
    occur = np.flatnonzero(counts > 0)
    noisy = counts[occur] + rng.normal(0.0, sigma, len(occur))
    return occur[noisy > level_threshold(sigma, delta, person_records)].astype(np.int64)


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


def count_noisy_cells(
    values: Floats, declared: DeclaredRange, rho: float, rng: np.random.Generator
) -> NoisyCells | None:
    """Return cells of the range of ``values`` (n,) with noisy counts; None where noise hides the range.

    The cost is ``rho``.
    """
    low, high = declared.low, declared.high
    if not declared.is_complete:
        # Two tables are counted: one to find the range, one within it.
        rho = rho / 2
        edges = _power_edges(declared.is_whole)
        found = _full_cell_range(_count_in_cells(values, edges), sigma_of_rho(rho), rng)
        if found is None:
            return None
        low = float(edges[found[0]]) if low is None else low
        high = float(edges[found[1] + 1]) if high is None else high
    assert low is not None
    assert high is not None
    if high <= low:
        return NoisyCells(np.array([low, np.nextafter(low, np.inf)]), np.ones(1))
    edges = _cell_edges(low, high, declared.is_whole)
    sigma = sigma_of_rho(rho)
    noisy = np.rint(_count_in_cells(values, edges) + rng.normal(0.0, sigma, len(edges) - 1))
    first = 0 if declared.low is not None else _first_full_cell(noisy, sigma)
    last = len(noisy) if declared.high is not None else len(noisy) - _first_full_cell(noisy[::-1], sigma)
    if first >= last:
        first, last = 0, len(noisy)
    return NoisyCells(edges[first : last + 1], _make_ascending(np.cumsum(noisy[first:last])))


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """Cells of a range with cumulated noisy counts.

    edges: edges of the cells, ascending, (cells + 1,)
    cumulated_counts: records up to the end of each cell, (cells,)
    """

    edges: Floats
    cumulated_counts: Floats

    def cut_points(self, pieces: int) -> Floats:
        """Return the inner edges that cut the records most evenly into ``pieces``, (at most pieces - 1,)."""
        if len(self.cumulated_counts) < 2 or self.cumulated_counts[-1] <= 0:
            return np.empty(0)
        wanted = np.arange(1, pieces) / pieces * self.cumulated_counts[-1]
        places = np.abs(self.cumulated_counts[None, :-1] - wanted[:, None]).argmin(axis=1)
        return np.unique(self.edges[1:-1][places])


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


def _full_cell_range(counts: Floats, sigma: float, rng: np.random.Generator) -> tuple[int, int] | None:
    """Return the first and the last cell whose count exceeds the noise; None if there is none."""
    # Over all cells together: with hundreds of empty cells a threshold for one cell would be passed by noise.
    full: Booleans = counts + rng.normal(0.0, sigma, len(counts)) > -sigma * float(
        ndtri(FALSE_ALARM_CHANCE / len(counts))
    )
    places = np.flatnonzero(full)
    return (int(places[0]), int(places[-1])) if len(places) else None


def _make_ascending(upto: Floats) -> Floats:
    """Return sums made ascending: half way between the largest one before and the smallest one after."""
    # Noise makes cumulated counts go up and down.
    return np.asarray((np.maximum.accumulate(upto) + np.minimum.accumulate(upto[::-1])[::-1]) / 2)


def _first_full_cell(noisy: Floats, sigma: float) -> int:
    """Return the first cell at which the cumulated count exceeds its noise."""
    upto = np.cumsum(noisy)
    # A sum over m cells has the noise of m cells.
    far = -float(ndtri(FALSE_ALARM_CHANCE / len(noisy))) * sigma * np.sqrt(np.arange(1, len(noisy) + 1))
    over = np.flatnonzero(upto > far)
    return int(over[0]) if len(over) else len(noisy)
