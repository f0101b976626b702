"""Figures of one variable in the confidential data and in every released dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.workspace.plots.axes import AxisUnit

from .column import (
    LEAST_RECORDS,
    MOST_BINS,
    NO_VALUE,
    SHARE_LABEL,
    VariableValues,
    bin_counts,
    bin_edges,
    curve_points,
    default_kernel_density,
    drawn_range,
)
from .figure import CONFIDENTIAL, Figure, Panel
from .series import Marker, Series

Floats = NDArray[np.float64]
DatasetChoice = Literal["band", "each"] | int
"""Released datasets to draw: their mean with a band from the least to the greatest, each as a line, or one, from 0."""
MarginalPlot = Literal["histogram", "density", "ecdf", "difference", "shares"]

MOST_LEVELS = 40
STEP_POINTS = 1500
MOST_STRETCHED = 3 * MOST_BINS
"""Most bins of the report's width; where a few outlying values would need more, bins are wider."""
PLOT_TITLES = {
    "histogram": "Histogram",
    "density": "Density",
    "ecdf": "Distribution function",
    "difference": "Difference of distribution functions",
    "shares": "Shares",
}


@dataclass(frozen=True, eq=False)
class MarginalFigure:
    """Figure of one variable, with notes on what it leaves out or summarises."""

    figure: Figure
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _PresentValues:
    """Values of a variable without missing ones, (k,) each.

    confidential: of the confidential data
    released: of every released dataset
    unit: unit of the axis
    """

    confidential: Floats
    released: tuple[Floats, ...]
    unit: AxisUnit

    @property
    def all_datasets(self) -> tuple[Floats, ...]:
        """Return the values of the confidential data and of every released dataset."""
        return (self.confidential, *self.released)


def available_plots(column: VariableValues) -> tuple[MarginalPlot, ...]:
    """Return the plots that a variable can have."""
    released = ("difference",) if column.released else ()
    return ("shares", *released) if column.levels else ("histogram", "density", "ecdf", *released)


def draw_marginal(
    column: VariableValues,
    picture: MarginalPlot,
    draws: DatasetChoice = "band",
    origin: str = "synthetic",
    *,
    log: bool = False,
) -> MarginalFigure:
    """Return a plot of one variable, by its base 10 logarithm if ``log``, without values that are not above 0."""
    if column.levels:
        return _level_figure(column, draws, origin, differences=picture == "difference")
    data = _present_values(column, log=log)
    make: dict[MarginalPlot, Callable[[], tuple[list[Series], Panel]]] = {
        "histogram": lambda: _histogram_panel(column, data, draws, origin),
        "density": lambda: _density_panel(column, data, draws, origin),
        "ecdf": lambda: _ecdf_panel(column, data, draws, origin),
        "difference": lambda: _difference_panel(column, data, draws, origin),
    }
    notes = [*_missing_notes(column, origin), *_log_notes(column, origin, log=log)]
    if not any(values.size for values in data.all_datasets):
        return MarginalFigure(
            Figure(f"{PLOT_TITLES[picture]} of {column.name}", "density", (Panel("", (), column.name),)), tuple(notes)
        )
    series, panel = make[picture]()
    if picture in ("ecdf", "difference") and data.released:
        notes.insert(0, _distance_note(data, draws))
    kind = "ecdf" if picture == "difference" else picture
    drawn = Panel("", tuple(series), panel.x_label, panel.y_label, panel.x_names, panel.bar_width, x_unit=data.unit)
    return MarginalFigure(Figure(f"{PLOT_TITLES[picture]} of {column.name}", kind, (drawn,)), tuple(notes))


def _present_values(column: VariableValues, *, log: bool) -> _PresentValues:
    """Return the values that are not missing, or their logarithms where these exist."""

    def present(values: Floats) -> Floats:
        kept = values[~np.isnan(values)]
        return np.log10(kept[kept > 0]) if log else kept

    unit: AxisUnit = "log10" if log else column.axis_unit
    return _PresentValues(present(column.confidential), tuple(map(present, column.released)), unit)


def _missing_notes(column: VariableValues, origin: str) -> list[str]:
    """Return the shares of missing values: ``no value: confidential 3.1 %, synthetic 3.0 %``; nothing without any."""
    shares = [column.missing_share(draw) for draw in range(len(column.released))]
    if not column.missing_share() and not any(shares):
        return []
    released = f", {origin} {100 * float(np.mean(shares)):.2g} %" if shares else ""
    return [f"no value: {CONFIDENTIAL} {100 * column.missing_share():.2g} %{released}"]


def _log_notes(column: VariableValues, origin: str, *, log: bool) -> list[str]:
    """Return a note on the shares of values without a logarithm; none without any."""
    left = [float(np.mean(values <= 0)) for values in (column.confidential, *column.released)] if log else []
    if not any(left):
        return []
    released = f", {origin} {100 * float(np.mean(left[1:])):.2g} %" if left[1:] else ""
    return [f"not above 0, not drawn: {CONFIDENTIAL} {100 * left[0]:.2g} %{released}"]


def _released_series(
    curves: Sequence[Floats], x: Floats, draws: DatasetChoice, origin: str, marker: Marker | None
) -> list[Series]:
    """Return the curves of released datasets (each of the shape of ``x``) as the series that ``draws`` asks for."""
    if not curves:
        return []
    if isinstance(draws, int):
        number = min(draws, len(curves) - 1)
        return [Series(f"{origin} {number + 1}", x, curves[number], marker=marker)]
    if len(curves) == 1:
        return [Series(origin, x, curves[0], marker=marker)]
    every = np.array(curves)
    name = f"{origin}, mean of {len(curves)}"
    if draws == "band":
        return [Series(name, x, every.mean(axis=0), every.min(axis=0), every.max(axis=0), marker=marker)]
    return [
        Series(name, x, every.mean(axis=0), marker=marker),
        *(Series(name, x, one, marker=marker, thin=True) for one in curves),
    ]


def _histogram_panel(
    column: VariableValues, data: _PresentValues, draws: DatasetChoice, origin: str
) -> tuple[list[Series], Panel]:
    """Return the shares of all records in each bin [a, b)."""
    # every record is shown here, unlike in the report: the figure is for the analyst's screen
    edges = _histogram_edges(data)
    middles = (edges[:-1] + edges[1:]) / 2
    own, *released = (
        bin_counts(values, edges) / max(1, total.size)
        for values, total in zip(data.all_datasets, (column.confidential, *column.released), strict=True)
    )
    series = [Series(CONFIDENTIAL, middles, own), *_released_series(released, middles, draws, origin, None)]
    return series, Panel("", (), column.name, SHARE_LABEL, bar_width=float(edges[1] - edges[0]))


def _histogram_edges(data: _PresentValues) -> Floats:
    """Return bins of the report's width that cover every value."""
    whole = data.unit != "log10" and all(np.array_equal(values, np.floor(values)) for values in data.all_datasets)
    span = _value_range(data)
    if data.confidential.size >= LEAST_RECORDS or any(values.size for values in data.released):
        first, second, *_ = bin_edges(drawn_range(data.confidential, data.released), None, whole=whole)
        if (span[1] - span[0]) / (second - first) < MOST_STRETCHED:
            return bin_edges(span, second - first, whole=whole)
    return bin_edges(span, None, whole=whole)


def records_in_bar(column: VariableValues, bar: int, *, log: bool = False) -> NDArray[np.intp]:
    """Return the numbers, from 0, of the confidential records in a bar of the histogram or of the levels, ascending."""
    if column.levels:
        return np.flatnonzero(_level_bars(column)[1] == bar)
    data = _present_values(column, log=log)
    edges, values = _histogram_edges(data), column.confidential
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(values > 0, np.log10(values), np.nan) if log else values
    found = np.searchsorted(edges, values, side="right") - 1
    return np.flatnonzero((found == bar) & ~np.isnan(values))


def _value_range(data: _PresentValues) -> tuple[float, float]:
    """Return the range of all values."""
    ends = [(float(values.min()), float(values.max())) for values in data.all_datasets if values.size]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _density_panel(
    column: VariableValues, data: _PresentValues, draws: DatasetChoice, origin: str
) -> tuple[list[Series], Panel]:
    """Return Gaussian kernel densities, each with a bandwidth of its own."""
    points = curve_points(*_value_range(data))
    own, *released = (default_kernel_density(values, points) for values in data.all_datasets)
    series = [Series(CONFIDENTIAL, points, own), *_released_series(released, points, draws, origin, None)]
    unit = f"density of log10 {column.name}" if data.unit == "log10" else "density"
    return series, Panel("", (), column.name, unit)


def empirical_cdf(values: Floats, points: Floats) -> Floats:
    """Return the share of ``values`` (n,) that are at most each of ``points`` (k,); NaN without values."""
    if not values.size:
        return np.full(points.shape, np.nan)
    return np.searchsorted(np.sort(values), points, side="right") / values.size


def _distribution_points(data: _PresentValues) -> Floats:
    """Return the points at which distribution functions are computed: all values, or STEP_POINTS of many."""
    pooled = np.unique(np.concatenate(data.all_datasets))
    if pooled.size <= STEP_POINTS:
        return pooled
    ranks = np.linspace(0, pooled.size - 1, STEP_POINTS).astype(np.intp)
    # even ranks of the distinct values alone would miss where most records are
    by_share = np.quantile(np.concatenate(data.all_datasets), np.linspace(0, 1, STEP_POINTS), method="inverted_cdf")
    return np.unique(np.concatenate([pooled[ranks], by_share]))


def _ecdf_panel(
    column: VariableValues, data: _PresentValues, draws: DatasetChoice, origin: str
) -> tuple[list[Series], Panel]:
    """Return the distribution functions of the confidential data and the release."""
    points = _distribution_points(data)
    own, *released = (empirical_cdf(values, points) for values in data.all_datasets)
    series = [Series(CONFIDENTIAL, points, own), *_released_series(released, points, draws, origin, None)]
    return series, Panel("", (), column.name, "share at most x")


def _difference_panel(
    column: VariableValues, data: _PresentValues, draws: DatasetChoice, origin: str
) -> tuple[list[Series], Panel]:
    """Return the differences of the released distribution functions from the confidential one."""
    points = _distribution_points(data)
    own, *released = (empirical_cdf(values, points) for values in data.all_datasets)
    less = [one - own for one in released]
    series = [
        *_released_series(less, points, draws, origin, None),
        Series("no difference", points[[0, -1]], np.zeros(2)),
    ]
    return series, Panel("", (), column.name, f"{origin} less {CONFIDENTIAL}")


def _distance_note(data: _PresentValues, draws: DatasetChoice) -> str:
    """Return a note on the two-sample Kolmogorov-Smirnov statistic, of one dataset or averaged over all."""
    chosen = [data.released[min(draws, len(data.released) - 1)]] if isinstance(draws, int) else data.released
    distances = []
    for values in chosen:
        points = np.unique(np.concatenate([data.confidential, values]))
        distances.append(
            float(np.abs(empirical_cdf(values, points) - empirical_cdf(data.confidential, points)).max(initial=0.0))
        )
    return f"largest difference {np.mean(distances):.3g}" + (" on average" if len(distances) > 1 else "")


def _level_figure(column: VariableValues, draws: DatasetChoice, origin: str, *, differences: bool) -> MarginalFigure:
    """Return the shares of records by level, or their differences, with missing as one more level."""
    names, tables = _level_shares(column)
    places = np.arange(float(len(names)))
    own, *released = tables
    if differences:
        drawn = _released_series([one - own for one in released], places, draws, origin, "bars")
        figure = Figure(
            f"Difference of shares of {column.name}", "shares",
            (Panel("", tuple(drawn), column.name, f"{origin} less {CONFIDENTIAL}", names),),
        )  # fmt: skip
    else:
        drawn = [Series(CONFIDENTIAL, places, own), *_released_series(released, places, draws, origin, None)]
        figure = Figure(
            f"Shares of {column.name}", "shares", (Panel("", tuple(drawn), column.name, SHARE_LABEL, names),)
        )
    chosen = [released[min(draws, len(released) - 1)]] if isinstance(draws, int) and released else released
    distance = [0.5 * float(np.abs(one - own).sum()) for one in chosen]
    notes = (
        [f"total variation distance {np.mean(distance):.3g}" + (" on average" if len(distance) > 1 else "")]
        if distance
        else []
    )
    return MarginalFigure(figure, (*notes, *_missing_notes(column, origin)))


def _level_shares(column: VariableValues) -> tuple[tuple[str, ...], list[Floats]]:
    """Return the names of the bars, frequent levels and the others together, and each dataset's shares in them."""
    labels = [column.variable.labels.get(level, level) for level in column.levels]
    every = (column.confidential, *column.released)
    counts = [_level_counts(values, len(labels)) / max(1, values.size) for values in every]
    if not any(one[-1] for one in counts):
        counts = [one[:-1] for one in counts]
    else:
        labels.append(NO_VALUE)
    frequent = np.argsort(-np.sum(counts, axis=0), kind="stable")[:MOST_LEVELS]
    kept, rest = np.sort(frequent), np.setdiff1d(np.arange(len(labels)), frequent)
    names = tuple(labels[i] for i in kept)
    if not rest.size:
        return names, counts
    return (*names, f"{rest.size} other levels"), [np.append(one[kept], one[rest].sum()) for one in counts]


def _level_bars(column: VariableValues) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """Return the names of the bars, and the bar of each confidential record (n,)."""
    names, _ = _level_shares(column)
    every = (column.confidential, *column.released)
    shares = [_level_counts(values, len(column.levels)) / max(1, values.size) for values in every]
    shares = shares if any(one[-1] for one in shares) else [one[:-1] for one in shares]
    kept = np.sort(np.argsort(-np.sum(shares, axis=0), kind="stable")[:MOST_LEVELS])
    bars = np.full(len(column.levels) + 1, kept.size, dtype=np.intp)
    bars[kept] = np.arange(kept.size)
    codes = np.where(np.isnan(column.confidential), len(column.levels), column.confidential).astype(np.intp)
    return names, bars[codes]


def _level_counts(codes: Floats, levels: int) -> Floats:
    """Count the records by level, and those without a value at the end: (levels + 1,)."""
    return np.bincount(np.where(np.isnan(codes), levels, codes).astype(np.intp), minlength=levels + 1).astype(
        np.float64
    )
