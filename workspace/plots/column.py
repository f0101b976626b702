"""Values of a variable in every dataset, their bins and densities, and the suppression of small counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.data.long_arrays import compute_column, is_long, long_blocks
from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.data.sorting import numbers_at_ranks
from sfumato.engine.statistics.columns import standard_deviation
from sfumato.workspace.plots.axes import AxisUnit

Floats = NDArray[np.float64]
NO_VALUE = "(no value)"
SHARE_LABEL = "share of records"
MOST_BINS = 16
CURVE_POINTS = 400
CELLS_PER_BANDWIDTH = 20
MOST_CELLS = 200_000
KERNEL_SUPPORT = 5.0
LEAST_RECORDS = 3
"""Smallest number of confidential records that a bar or a part of a curve may stand for."""


@dataclass(frozen=True, eq=False)
class VariableValues:
    """Values of one variable; missing ones are NaN.

    Numbers are numbers, dates days since 1970, levels their position among ``levels``.

    variable: the variable
    confidential: values of the confidential data, (n,)
    released: values of every released dataset, (n',) each
    levels: its levels
    withheld_reason: why no released values can be compared with the confidential ones
    """

    variable: Variable
    confidential: Floats
    released: tuple[Floats, ...] = ()
    levels: tuple[str, ...] = ()
    withheld_reason: str = ""

    @property
    def name(self) -> str:
        return self.variable.name

    @property
    def axis_unit(self) -> AxisUnit:
        return "date" if self.variable.kind is Kind.DATE else "number"

    def missing_share(self, draw: int | None = None) -> float:
        """Return the share of records without a value in the confidential data, or in dataset ``draw`` from 0."""
        values = self.confidential if draw is None else self.released[draw]
        return float(np.isnan(values).mean()) if values.size else 0.0


def silverman_bandwidth(values: Floats) -> float:
    """Return Silverman's bandwidth 0.9 min(sd, IQR / 1.34) n^(-1/5) of values (n,) (Silverman 1986, eq. 3.31)."""
    low, high = (_quantile_of_numbers(values, share) for share in (0.25, 0.75))
    spreads = [standard_deviation(values, ddof=1) if values.size > 1 else 0.0, float(high - low) / 1.34]
    # a measure of spread can be 0 where half of the values or more are equal; then the other one is used
    spread = min((one for one in spreads if one > 0), default=1.0)
    return 0.9 * spread / math.pow(values.size, 0.2)


def _quantile_of_numbers(values: Floats, share: float) -> float:
    """Return the quantile of values (n,) as ``np.quantile`` does."""
    if not is_long(values.size):
        return float(np.quantile(values, share))
    before, rest = divmod(share * (values.size - 1), 1)
    # between the two values beside its place
    beside = numbers_at_ranks(values, [int(before), min(int(before) + 1, values.size - 1)])
    return float(np.quantile(beside, rest))


def kernel_density(values: Floats, points: Floats, width: float) -> Floats:
    """Return the density of values (n,) at points (k,), with a normal kernel of standard deviation ``width``."""
    from scipy.ndimage import gaussian_filter1d

    low, high = float(points.min()) - KERNEL_SUPPORT * width, float(points.max()) + KERNEL_SUPPORT * width
    cells = min(MOST_CELLS, max(2, math.ceil((high - low) / width * CELLS_PER_BANDWIDTH)))
    step = (high - low) / cells
    # each value is split between the two nearest grid points, and the grid is smoothed (Silverman 1982):
    # exact sums would take n times k steps
    weights = np.zeros(cells + 1)
    for rows in long_blocks(values.size):
        own = values[rows]
        position = (own[(own >= low) & (own < high)] - low) / step
        left = np.minimum(position.astype(np.int64), cells - 1)
        share = position - left
        weights += np.bincount(left, 1 - share, cells + 1) + np.bincount(left + 1, share, cells + 1)
    smooth = gaussian_filter1d(weights, width / step, mode="constant", truncate=KERNEL_SUPPORT)
    grid = low + step * np.arange(cells + 1)
    return np.asarray(np.interp(points, grid, smooth / (values.size * step)))


def default_kernel_density(values: Floats, points: Floats) -> Floats:
    """Return the density of values (n,) at points (k,) with Silverman's bandwidth; NaN without values."""
    return kernel_density(values, points, silverman_bandwidth(values)) if values.size else np.full(points.shape, np.nan)


def curve_points(low: float, high: float) -> Floats:
    """Return the points (k,) at which a curve from ``low`` to ``high`` is computed."""
    return np.linspace(low, high, CURVE_POINTS) if high > low else np.array([low - 1, low, low + 1])


def prefers_log(values: Floats) -> bool:
    """Return whether values (n,) are positive, strongly skewed, and less skewed on the logarithmic scale."""
    if values.size < 3 or values.min() <= 0 or values.min() == values.max():
        return False
    raw = _skewness(values)
    # a long tail would crush the rest of the picture
    if not raw > 2:
        return False
    return abs(_skewness(compute_column(values.size, np.float64, lambda rows: np.log(values[rows])))) < raw


def _skewness(values: Floats) -> float:
    """Return the skewness of values (n,)."""
    mean = values.mean()
    cubes = sum(((values[rows] - mean) ** 3).sum() for rows in long_blocks(values.size)) / values.size
    squares = sum(((values[rows] - mean) ** 2).sum() for rows in long_blocks(values.size)) / values.size
    return float(cubes / squares**1.5)


def suppress_small_counts(counts: NDArray[np.integer]) -> Floats:
    """Return counts (k,) of confidential records, with NaN for those below LEAST_RECORDS."""
    # 0 is hidden too: none and a few look alike, so that bins of a few are not found
    return np.where(counts < LEAST_RECORDS, np.nan, counts.astype(np.float64))


def trimmed_range(values: Floats) -> tuple[float, float] | None:
    """Return the third smallest and the third largest of (n,) confidential values; None for fewer than three values."""
    if values.size < LEAST_RECORDS:
        return None
    low, high = map(float, numbers_at_ranks(values, (LEAST_RECORDS - 1, values.size - LEAST_RECORDS)))
    # of three to five values the third smallest may be the larger of the two
    return min(low, high), max(low, high)


def is_sparse_at(values: Floats, points: Floats, reach: float) -> NDArray[np.bool_]:
    """Mark the points (k,) that have fewer than LEAST_RECORDS of the values (n,) within ``reach``."""
    near = np.zeros(len(points), dtype=np.int64)
    for rows in long_blocks(values.size):
        ordered = np.sort(values[rows])
        near += np.searchsorted(ordered, points + reach, "right") - np.searchsorted(ordered, points - reach, "left")
    return np.asarray(near < LEAST_RECORDS)


def drawn_range(own: Floats, released: Sequence[Floats]) -> tuple[float, float]:
    """Return the range of all released values and of the confidential values without the two extremes on either side."""
    ranges = [(float(values.min()), float(values.max())) for values in released if values.size]
    ranges += [found for found in [trimmed_range(own)] if found is not None]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def bin_edges(span: tuple[float, float], width: float | None, *, whole: bool, most: int = MOST_BINS) -> Floats:
    """Return the edges (k + 1,) of bins [a, a + width) at multiples of the width, covering the span.

    The default width is the least of 1, 2, 2.5 and 5 · 10^k that makes at most ``most`` bins; for whole numbers it is
    whole.
    """
    width = width or _round_bin_width(span, most, whole=whole)
    first, last = math.floor(span[0] / width), math.floor(span[1] / width)
    return np.arange(first, last + 2, dtype=np.float64) * width


def _round_bin_width(span: tuple[float, float], most: int, *, whole: bool) -> float:
    """Return the least round width that makes at most ``most`` bins of the span."""
    if span[0] == span[1]:
        return 1.0
    exponent = math.floor(math.log10((span[1] - span[0]) / most))
    while True:
        for leading in (1.0, 2.0, 2.5, 5.0):
            width = leading * 10.0**exponent
            enough = math.floor(span[1] / width) - math.floor(span[0] / width) < most
            if enough and not (whole and width % 1):
                return width
        exponent += 1


def bin_counts(values: Floats, edges: Floats) -> NDArray[np.intp]:
    """Count the values (n,) in each bin [a, b) between the edges (k + 1,); return (k,)."""
    place = np.searchsorted(edges, values, "right") - 1
    return np.bincount(place[(place >= 0) & (place < len(edges) - 1)], minlength=len(edges) - 1)
