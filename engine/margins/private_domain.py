"""Levels, ranges and cut points that noisy counts of the records say, where a recipe declares none: a domain that is paid for.

Levels: only those that occur are counted, and a level is kept whose noisy count is above a threshold (Korolova et al. 2009; Bun, Nissim & Stemmer
2016, stability-based histograms). A level that a single person brings passes it with a chance of at most ``delta``: the counts of levels that both of
two neighbours have are Gaussian noise as elsewhere, so that the whole is delta-approximately rho-zCDP (Bun & Steinke 2016, Definition 8.1).

Ranges and cuts: the cells that are counted are the same for every table (sixteenths of powers of two, and equal parts of a range that was found so),
so that noise alone is their cost. The first counts say from which power of two to which the numbers reach; the second, within that, where they
end and where equally many lie. Numbers beyond are taken for the nearest end.

Whoever counts c records of a person hands in noise for c of them (``sigma``), and says so (``person_records``): they may be c new levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ..arrays import Booleans, Floats, Integers
from .consistency import nearest_shares
from .zcdp import sigma_of

SMALLEST_POWER, LARGEST_POWER = -20, 60
"""Powers of two that are told apart: numbers nearer to 0 count as 0, larger ones as the largest."""
PARTS = 16
"""Cells of a power of two, of equal width."""
EQUAL_PARTS = 128
"""Cells of the whole range besides: dates and the like lie within one power of two."""
CHANCE = 0.01
"""How often noise alone makes one of all empty cells look full."""


def level_threshold(sigma: float, delta: float, person_records: int = 1) -> float:
    """The noisy count above which a level may be kept: one person's new levels pass it with a chance of at most ``delta``, all together.

    Of c records of a person that make k levels new, each count is at most c and there are at most c of them.
    """
    return person_records + sigma * float(-ndtri(delta / person_records))


def kept_levels(
    counts: Floats, sigma: float, delta: float, rng: np.random.Generator, person_records: int = 1
) -> Integers:
    """The places of the levels that are kept, of (levels,) counts; those that do not occur get no noise and are never kept."""
    occur = np.flatnonzero(counts > 0)
    noisy = counts[occur] + rng.normal(0.0, sigma, len(occur))
    return occur[noisy > level_threshold(sigma, delta, person_records)].astype(np.int64)


@dataclass(frozen=True, slots=True)
class Ends:
    """What a recipe says of the numbers of a variable: ends that it declares, and whether they are whole."""

    low: float | None
    high: float | None
    whole: bool

    @property
    def known(self) -> bool:
        return self.low is not None and self.high is not None


def noisy_cells(
    values: Floats, ends: Ends, rho: float, rng: np.random.Generator, fine: bool = True
) -> NoisyCells | None:
    """Cells of the range of ``values`` (n,) and noisy shares of them, at a cost of ``rho``; None where noise hides the range.

    Without ``fine`` and with both ends known nothing is counted: one cell.
    """
    low, high = ends.low, ends.high
    if not ends.known:
        rho = rho / 2
        edges = _powers(ends.whole)
        found = _reach(_counted(values, edges), sigma_of(rho), rng)
        if found is None:
            return None
        low = float(edges[found[0]]) if low is None else low
        high = float(edges[found[1] + 1]) if high is None else high
    elif not fine:
        assert low is not None
        assert high is not None
        return NoisyCells(np.array([low, high]), np.ones(1))
    assert low is not None
    assert high is not None
    if high <= low:
        return NoisyCells(np.array([low, np.nextafter(low, np.inf)]), np.ones(1))
    edges = _cells(low, high, ends.whole)
    sigma = sigma_of(rho)
    noisy = np.rint(_counted(values, edges) + rng.normal(0.0, sigma, len(edges) - 1))
    first = 0 if ends.low is not None else _beginning(noisy, sigma)
    last = len(noisy) if ends.high is not None else len(noisy) - _beginning(noisy[::-1], sigma)
    if first >= last:
        first, last = 0, len(noisy)
    kept = noisy[first:last]
    total = float(kept.sum())
    shares = nearest_shares(kept / total) if total > 0 else np.full(len(kept), 1 / len(kept))
    return NoisyCells(edges[first : last + 1], shares)


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """Cells between ``edges`` (cells + 1,), ascending, and their shares (cells,) of the records by noisy counts."""

    edges: Floats
    shares: Floats

    def cuts(self, pieces: int) -> Floats:
        """Edges nearest to where the records are cut into so many equal parts, (at most pieces - 1,), none of them twice or at an end."""
        upto = np.cumsum(self.shares)[:-1]
        if not len(upto):
            return np.empty(0)
        wanted = np.arange(1, pieces) / pieces
        places = np.abs(upto[None, :] - wanted[:, None]).argmin(axis=1)
        return np.unique(self.edges[1:-1][places])


def _powers(whole: bool) -> Floats:
    """Edges at 0 and at the powers of two on both sides of it, the outermost open to both sides in counting."""
    start = 0 if whole else SMALLEST_POWER
    up = 2.0 ** np.arange(start, LARGEST_POWER + 1)
    return np.concatenate([-up[::-1], [0.0], up])


def _cells(low: float, high: float, whole: bool) -> Floats:
    """Edges of sixteenths of the powers of two between two numbers, and of equal parts."""
    powers = _powers(whole)
    sixteenths = (powers[:-1, None] + np.diff(powers)[:, None] * np.arange(PARTS) / PARTS).ravel()
    equal = low + (high - low) * np.arange(1, EQUAL_PARTS) / EQUAL_PARTS
    inside = np.concatenate([sixteenths, equal])
    if whole:
        inside = np.ceil(inside)
    inside = np.unique(inside)
    return np.array([low, *inside[(inside > low) & (inside < high)], high])


def _counted(values: Floats, edges: Floats) -> Floats:
    """How many values each cell has, (cells,): closed below, those beyond an end in the outermost cells."""
    places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(places, minlength=len(edges) - 1).astype(np.float64)


def _reach(counts: Floats, sigma: float, rng: np.random.Generator) -> tuple[int, int] | None:
    """The first and the last cell whose noisy count is more than noise."""
    full: Booleans = counts + rng.normal(0.0, sigma, len(counts)) > -sigma * float(ndtri(CHANCE / len(counts)))
    places = np.flatnonzero(full)
    return (int(places[0]), int(places[-1])) if len(places) else None


def _beginning(noisy: Floats, sigma: float) -> int:
    """The first cell at which the counts up to it are more than their noise."""
    upto = np.cumsum(noisy)
    far = -float(ndtri(CHANCE / len(noisy))) * sigma * np.sqrt(np.arange(1, len(noisy) + 1))
    over = np.flatnonzero(upto > far)
    return int(over[0]) if len(over) else len(noisy)
