"""Joint distribution of two variables in the confidential data and the release, binned or as a sample of points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.methods.run import Randomness
from sfumato.workspace.plots.axes import AxisUnit, Limits
from sfumato.workspace.plots.column import LEAST_RECORDS, NO_VALUE, VariableValues, prefers_log, trimmed_range
from sfumato.workspace.plots.figure import CONFIDENTIAL, AxisBins, BinShares, Figure, Panel
from sfumato.workspace.plots.marginal import DatasetChoice
from sfumato.workspace.plots.series import Series

Floats = NDArray[np.float64]
LEADING_DIGITS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
"""Round numbers of which widths of bins are multiples by a power of ten."""
MOST_POINTS = 2000
MOST_VARIABLES = 3


@dataclass(frozen=True)
class BinWindow:
    """Binning of an axis: at most ``most_bins`` bins of the values in ``span`` (None: all), of logarithms if ``log``."""

    most_bins: int
    span: Limits | None = None
    log: bool = False


@dataclass(frozen=True, eq=False)
class JointDistribution:
    """Joint distribution of two variables in the same bins.

    confidential, released, difference: shares of the records, and released less confidential
    outside_shares: shares of confidential and of released records outside all bins: without a value, not above 0 on a
        logarithmic axis, or beyond the window
    release_name: name of the release
    """

    confidential: BinShares
    released: BinShares | None
    difference: BinShares | None
    outside_shares: tuple[float, float]
    release_name: str

    def to_figure(self, title: str, x_label: str, y_label: str) -> Figure:
        """Return the heat maps of both distributions and of their difference."""
        named = (
            (CONFIDENTIAL, self.confidential),
            (self.release_name, self.released),
            (f"{self.release_name} less {CONFIDENTIAL}", self.difference),
        )
        panels = [
            Panel(name, (), x_label, y_label, cells.x.names, cells=cells) for name, cells in named if cells is not None
        ]
        return Figure(title, "heat", tuple(panels), "Shares of all records in each bin.")


def bin_axis(column: VariableValues, window: BinWindow) -> AxisBins:
    """Return the bins of an axis: round ones of numbers and dates; single levels, of many the most frequent ones."""
    if column.levels:
        return _level_bins(column, window.most_bins)
    values = np.concatenate([_log_if_requested(one, log=window.log) for one in (column.confidential, *column.released)])
    values = values[~np.isnan(values)]
    unit: AxisUnit = "log10" if window.log else column.axis_unit
    if not values.size:
        return AxisBins(np.array([0.0, 1.0]), (), unit)
    low, high = window.span or (float(values.min()), float(values.max()))
    whole = not window.log and bool((values == np.floor(values)).all())
    return AxisBins(_round_edges(low, high, window.most_bins, whole=whole), (), unit)


def _round_edges(low: float, high: float, most: int, *, whole: bool) -> Floats:
    """Return edges at multiples of the least round width that makes at most ``most`` bins [a, b) of [low, high]."""
    if not high > low:
        return np.array([low, low + 1.0])
    exponent = math.floor(math.log10((high - low) / most))
    while True:
        for leading in LEADING_DIGITS:
            width = leading * 10.0**exponent
            first, last = math.floor(low / width + 1e-9), math.floor(high / width + 1e-9)
            if last - first < most and not (whole and width % 1):
                return np.arange(first, last + 2, dtype=np.float64) * width
        exponent += 1


def _level_bins(column: VariableValues, most: int) -> AxisBins:
    """Return a bin for each level and for missing values, of many the most frequent and one for the others."""
    labels = _level_labels(column)
    names = (
        tuple(labels)
        if len(labels) <= most
        else (*(labels[i] for i in _most_frequent_levels(column, most)), "other levels")
    )
    return AxisBins(np.arange(len(names) + 1, dtype=np.float64) - 0.5, names)


def _level_labels(column: VariableValues) -> list[str]:
    """Return the labels of the levels, and after them that of missing values where there are any."""
    labels = [column.variable.labels.get(level, level) for level in column.levels]
    has_missing = any(np.isnan(values).any() for values in (column.confidential, *column.released))
    return [*labels, NO_VALUE] if has_missing else labels


def _most_frequent_levels(column: VariableValues, most: int) -> list[int]:
    """Return the codes of the ``most`` - 1 most frequent levels of all datasets, ascending."""
    codes = np.concatenate([_level_codes(column, values) for values in (column.confidential, *column.released)])
    counts = np.bincount(codes)
    return sorted(np.argsort(-counts, kind="stable")[: most - 1].tolist())


def _level_codes(column: VariableValues, values: Floats) -> NDArray[np.intp]:
    """Return the codes (n,) of levels; a missing value has the code after the last level."""
    return np.where(np.isnan(values), len(column.levels), values).astype(np.intp)


def _log_if_requested(values: Floats, *, log: bool) -> Floats:
    """Return values (n,), or their logarithms with NaN for those not above 0."""
    if not log:
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values > 0, np.log10(values), np.nan)


def _bin_of_records(column: VariableValues, values: Floats, bins: AxisBins, window: BinWindow) -> NDArray[np.intp]:
    """Return the bin of each record, (n,); -1 where it is in none."""
    if bins.names:
        codes, total = _level_codes(column, values), len(column.levels) + 1
        if len(_level_labels(column)) <= window.most_bins:
            return codes
        kept = _most_frequent_levels(column, window.most_bins)
        return np.array([kept.index(i) if i in kept else len(kept) for i in range(total)])[codes]
    found = np.searchsorted(bins.edges, _log_if_requested(values, log=window.log), side="right") - 1
    return np.where((found >= 0) & (found < len(bins)), found, -1)


def joint_shares(x: NDArray[np.intp], y: NDArray[np.intp], columns: int, rows: int) -> Floats:
    """Return the share of the records (n,) in each pair of bins, (rows, columns); records in bin -1 are in none."""
    inside = (x >= 0) & (y >= 0)
    counts = np.bincount(y[inside] * columns + x[inside], minlength=rows * columns)
    return counts.reshape(rows, columns) / max(1, x.size)


def joint_distribution(
    x: VariableValues,
    y: VariableValues,
    across: BinWindow,
    up: BinWindow,
    draws: DatasetChoice = "band",
    origin: str = "synthetic",
) -> JointDistribution:
    """Return the joint distribution of two variables; that of the release is averaged over datasets, or that of one."""
    x_bins, y_bins = bin_axis(x, across), bin_axis(y, up)

    def shares(a: Floats, b: Floats) -> Floats:
        columns, rows = _bin_of_records(x, a, x_bins, across), _bin_of_records(y, b, y_bins, up)
        return joint_shares(columns, rows, len(x_bins), len(y_bins))

    own = shares(x.confidential, y.confidential)
    pairs = list(zip(x.released, y.released, strict=False))
    if isinstance(draws, int) and pairs:
        number = min(draws, len(pairs) - 1)
        pairs, name = [pairs[number]], f"{origin} {number + 1}"
    else:
        name = f"{origin}, mean of {len(pairs)}" if len(pairs) > 1 else origin
    outside = 1 - float(own.sum())
    if not pairs:
        return JointDistribution(BinShares(own, x_bins, y_bins), None, None, (outside, 0.0), name)
    released = np.mean([shares(*pair) for pair in pairs], axis=0)
    made = [
        BinShares(values, x_bins, y_bins, signed)
        for values, signed in ((own, False), (released, False), (released - own, True))
    ]
    return JointDistribution(made[0], made[1], made[2], (outside, 1 - float(released.sum())), name)


def records_in_cell(
    x: VariableValues, y: VariableValues, across: BinWindow, up: BinWindow, at: tuple[int, int]
) -> NDArray[np.intp]:
    """Return the numbers, from 0, of the confidential records in a pair of bins, ascending."""
    columns = _bin_of_records(x, x.confidential, bin_axis(x, across), across)
    rows = _bin_of_records(y, y.confidential, bin_axis(y, up), up)
    return np.flatnonzero((columns == at[0]) & (rows == at[1]))


@dataclass(frozen=True, eq=False)
class ScatterSample:
    """Sample of points of the confidential data and of one released dataset, with a note on how it was drawn."""

    series: tuple[Series, ...]
    note: str
    x_unit: AxisUnit
    y_unit: AxisUnit


def sample_scatter(
    x: VariableValues,
    y: VariableValues,
    draws: DatasetChoice,
    streams: Randomness | None,
    origin: str = "synthetic",
    *,
    log_x: bool = False,
    log_y: bool = False,
) -> ScatterSample:
    """Draw at most MOST_POINTS points of the confidential data and of one dataset, from records with both values.

    Without ``streams`` the sample differs each time. Points are in the order of their values.
    """
    number = min(draws, len(x.released) - 1) if isinstance(draws, int) else 0
    pairs = [(CONFIDENTIAL, x.confidential, y.confidential)]
    if x.released and y.released:
        pairs.append((f"{origin} {number + 1}", x.released[number], y.released[number]))
    series, said = [], []
    for name, across, up in pairs:
        a, b = _log_if_requested(across, log=log_x), _log_if_requested(up, log=log_y)
        whole = np.flatnonzero(~np.isnan(a) & ~np.isnan(b))
        chosen = _sample_records(whole, streams)
        # in the order of the values, which reveals nothing of the order of the file
        chosen = chosen[np.lexsort((b[chosen], a[chosen]))]
        series.append(Series(name, a[chosen], b[chosen]))
        said.append(
            f"{name} {chosen.size:,} of {across.size:,}"
            + (f" ({across.size - whole.size:,} cannot be drawn)" if whole.size < across.size else "")
        )
    units: Sequence[AxisUnit] = ["log10" if log else one.axis_unit for one, log in ((x, log_x), (y, log_y))]
    return ScatterSample(
        tuple(series), f"points, drawn {_streams_text(streams)}: {', '.join(said)}", units[0], units[1]
    )


def _streams_text(streams: Randomness | None) -> str:
    """Return by what a sample was drawn, in words."""
    if streams is None:
        return "at random each time, without the key"
    return f"by {'the key and ' if streams.key else ''}seed {streams.seed}"


def _sample_records(records: NDArray[np.intp], streams: Randomness | None) -> NDArray[np.intp]:
    """Draw at most MOST_POINTS of the records without replacement."""
    if records.size <= MOST_POINTS:
        return records
    # keyed, since by the seed alone anybody could tell which lines of the file the points are;
    # by size, so that datasets of the same records have the same points
    rng = np.random.default_rng() if streams is None else streams.generator(records.size)
    return np.asarray(rng.choice(records, MOST_POINTS, replace=False))


BINS_ACROSS, BINS_UP = 30, 20


def pair_figures(columns: Sequence[VariableValues], origin: str = "synthetic") -> list[Figure]:
    """Return the joint distributions of every two of the first MOST_VARIABLES variables with released values."""
    drawn = [column for column in columns if column.released][:MOST_VARIABLES]
    return [_pair_figure(x, y, origin) for x, y in combinations(drawn, 2)]


def _pair_figure(x: VariableValues, y: VariableValues, origin: str) -> Figure:
    """Return the heat maps of two variables, without bins of few confidential records."""
    found = joint_distribution(x, y, _report_window(x, BINS_ACROSS), _report_window(y, BINS_UP), "band", origin)
    figure = _suppress_small_bins(found, x.confidential.size).to_figure(f"{x.name} by {y.name}", x.name, y.name)
    caption = f"{figure.caption} Bins of fewer than {LEAST_RECORDS} confidential records are left out."
    return replace(figure, caption=caption)


def _report_window(column: VariableValues, most: int) -> BinWindow:
    """Return the binning of a variable in reports: all released values, and confidential ones without their extremes.

    Positive numbers that are strongly skewed are binned by their logarithms.
    """
    if column.levels:
        return BinWindow(most)
    present = [values[~np.isnan(values)] for values in (column.confidential, *column.released)]
    log = column.axis_unit == "number" and prefers_log(present[0]) and all((values > 0).all() for values in present)
    scaled = [np.log10(values) if log else values for values in present]
    ranges = [(float(values.min()), float(values.max())) for values in scaled[1:] if values.size]
    ranges += [found for found in [trimmed_range(scaled[0])] if found is not None]
    span = (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None
    return BinWindow(most, span, log)


def _suppress_small_bins(found: JointDistribution, records: int) -> JointDistribution:
    """Return the distribution without the confidential share and the difference of bins with too few records."""
    # shares are counts divided by the number of records
    few = np.rint(found.confidential.shares * records) < LEAST_RECORDS

    def hide_small_bins(cells: BinShares) -> BinShares:
        return replace(cells, shares=np.where(few, np.nan, cells.shares))

    # released plus difference would give the hidden confidential share
    difference = None if found.difference is None else hide_small_bins(found.difference)
    return replace(found, confidential=hide_small_bins(found.confidential), difference=difference)
