"""One variable: the confidential data beside every released dataset, as shares, a density or a distribution function."""

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
    SHARE,
    Column,
    bin_counts,
    bin_edges,
    curve_points,
    density,
    drawn_range,
)
from .figure import CONFIDENTIAL, Figure, Panel
from .series import Marker, Series

Floats = NDArray[np.float64]
Draws = Literal["band", "each"] | int
"""All datasets as their mean with a band from the least to the greatest, or as lines of their own; or one, from 0."""
Picture = Literal["histogram", "density", "ecdf", "difference", "shares"]

MOST_LEVELS = 40
STEP_POINTS = 1500
MOST_STRETCHED = 3 * MOST_BINS
"""Bins of the width that the report has; where a few values far out would make more, they are wider."""
TITLES = {
    "histogram": "Histogram",
    "density": "Density",
    "ecdf": "Distribution function",
    "difference": "Difference of distribution functions",
    "shares": "Shares",
}


@dataclass(frozen=True, eq=False)
class Marginal:
    """A figure, and what it leaves out or sums up, in words."""

    figure: Figure
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Drawable:
    """The values present, (k,) each: of ``own`` and of every dataset of ``released``."""

    own: Floats
    released: tuple[Floats, ...]
    unit: AxisUnit

    @property
    def every(self) -> tuple[Floats, ...]:
        return (self.own, *self.released)


def pictures_of(column: Column) -> tuple[Picture, ...]:
    """The pictures that there are of a variable."""
    released = ("difference",) if column.released else ()
    return ("shares", *released) if column.levels else ("histogram", "density", "ecdf", *released)


def marginal(
    column: Column, picture: Picture, draws: Draws = "band", origin: str = "synthetic", *, log: bool = False
) -> Marginal:
    """A picture of one variable; ``log`` draws it by its base 10 logarithm, and leaves out what is not above 0."""
    if column.levels:
        return _by_level(column, draws, origin, differences=picture == "difference")
    data = _drawable(column, log=log)
    make: dict[Picture, Callable[[], tuple[list[Series], Panel]]] = {
        "histogram": lambda: _histogram(column, data, draws, origin),
        "density": lambda: _density(column, data, draws, origin),
        "ecdf": lambda: _steps(column, data, draws, origin),
        "difference": lambda: _differences(column, data, draws, origin),
    }
    notes = [*_missing_notes(column, origin), *_log_notes(column, origin, log=log)]
    if not any(values.size for values in data.every):
        return Marginal(
            Figure(f"{TITLES[picture]} of {column.name}", "density", (Panel("", (), column.name),)), tuple(notes)
        )
    series, panel = make[picture]()
    if picture in ("ecdf", "difference") and data.released:
        notes.insert(0, _distance_note(data, draws))
    kind = "ecdf" if picture == "difference" else picture
    drawn = Panel("", tuple(series), panel.x_label, panel.y_label, panel.x_names, panel.bar, x_unit=data.unit)
    return Marginal(Figure(f"{TITLES[picture]} of {column.name}", kind, (drawn,)), tuple(notes))


def _drawable(column: Column, *, log: bool) -> _Drawable:
    def present(values: Floats) -> Floats:
        kept = values[~np.isnan(values)]
        return np.log10(kept[kept > 0]) if log else kept

    unit: AxisUnit = "log10" if log else column.unit
    return _Drawable(present(column.confidential), tuple(map(present, column.released)), unit)


def _missing_notes(column: Column, origin: str) -> list[str]:
    """``no value: confidential 3.1 %, synthetic 3.0 %``; nothing where no value is missing."""
    shares = [column.missing(draw) for draw in range(len(column.released))]
    if not column.missing() and not any(shares):
        return []
    released = f", {origin} {100 * float(np.mean(shares)):.2g} %" if shares else ""
    return [f"no value: {CONFIDENTIAL} {100 * column.missing():.2g} %{released}"]


def _log_notes(column: Column, origin: str, *, log: bool) -> list[str]:
    left = [float(np.mean(values <= 0)) for values in (column.confidential, *column.released)] if log else []
    if not any(left):
        return []
    released = f", {origin} {100 * float(np.mean(left[1:])):.2g} %" if left[1:] else ""
    return [f"not above 0, not drawn: {CONFIDENTIAL} {100 * left[0]:.2g} %{released}"]


def _released(curves: Sequence[Floats], x: Floats, draws: Draws, origin: str, marker: Marker | None) -> list[Series]:
    """The curves (each of the shape of ``x``) of all released datasets as ``draws`` says."""
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


def _histogram(column: Column, data: _Drawable, draws: Draws, origin: str) -> tuple[list[Series], Panel]:
    """The share of all records in each bin [a, b)."""
    edges = _edges(data)
    middles = (edges[:-1] + edges[1:]) / 2
    own, *released = (
        bin_counts(values, edges) / max(1, total.size)
        for values, total in zip(data.every, (column.confidential, *column.released), strict=True)
    )
    series = [Series(CONFIDENTIAL, middles, own), *_released(released, middles, draws, origin, None)]
    return series, Panel("", (), column.name, SHARE, bar=float(edges[1] - edges[0]))


def _edges(data: _Drawable) -> Floats:
    """Bins as those of the report, and as many more as hold every value, for here all records are shown."""
    whole = data.unit != "log10" and all(np.array_equal(values, np.floor(values)) for values in data.every)
    span = _span(data)
    if data.own.size >= LEAST_RECORDS or any(values.size for values in data.released):
        first, second, *_ = bin_edges(drawn_range(data.own, data.released), None, whole=whole)
        if (span[1] - span[0]) / (second - first) < MOST_STRETCHED:
            return bin_edges(span, second - first, whole=whole)
    return bin_edges(span, None, whole=whole)


def bar_records(column: Column, bar: int, *, log: bool = False) -> NDArray[np.intp]:
    """The confidential records, from 0, that make up a bar of the histogram, or of the shares of levels, in ascending order."""
    if column.levels:
        return np.flatnonzero(_level_bars(column)[1] == bar)
    data = _drawable(column, log=log)
    edges, values = _edges(data), column.confidential
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(values > 0, np.log10(values), np.nan) if log else values
    found = np.searchsorted(edges, values, side="right") - 1
    return np.flatnonzero((found == bar) & ~np.isnan(values))


def _span(data: _Drawable) -> tuple[float, float]:
    ends = [(float(values.min()), float(values.max())) for values in data.every if values.size]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _density(column: Column, data: _Drawable, draws: Draws, origin: str) -> tuple[list[Series], Panel]:
    """Gaussian kernel densities, each by its own rule of thumb."""
    points = curve_points(*_span(data))
    own, *released = (density(values, points) for values in data.every)
    series = [Series(CONFIDENTIAL, points, own), *_released(released, points, draws, origin, None)]
    unit = f"density of log10 {column.name}" if data.unit == "log10" else "density"
    return series, Panel("", (), column.name, unit)


def ecdf(values: Floats, points: Floats) -> Floats:
    """The share of ``values`` (n,) that are at most each of ``points`` (k,): (k,), NaN without values."""
    if not values.size:
        return np.full(points.shape, np.nan)
    return np.searchsorted(np.sort(values), points, side="right") / values.size


def _points(data: _Drawable) -> Floats:
    """Where distribution functions are read: at every value, or at the values of so many even ranks."""
    pooled = np.unique(np.concatenate(data.every))
    if pooled.size <= STEP_POINTS:
        return pooled
    ranks = np.linspace(0, pooled.size - 1, STEP_POINTS).astype(np.intp)
    by_share = np.quantile(np.concatenate(data.every), np.linspace(0, 1, STEP_POINTS), method="inverted_cdf")
    return np.unique(np.concatenate([pooled[ranks], by_share]))


def _steps(column: Column, data: _Drawable, draws: Draws, origin: str) -> tuple[list[Series], Panel]:
    points = _points(data)
    own, *released = (ecdf(values, points) for values in data.every)
    series = [Series(CONFIDENTIAL, points, own), *_released(released, points, draws, origin, None)]
    return series, Panel("", (), column.name, "share at most x")


def _differences(column: Column, data: _Drawable, draws: Draws, origin: str) -> tuple[list[Series], Panel]:
    points = _points(data)
    own, *released = (ecdf(values, points) for values in data.every)
    less = [one - own for one in released]
    series = [*_released(less, points, draws, origin, None), Series("no difference", points[[0, -1]], np.zeros(2))]
    return series, Panel("", (), column.name, f"{origin} less {CONFIDENTIAL}")


def _distance_note(data: _Drawable, draws: Draws) -> str:
    """The two-sample Kolmogorov-Smirnov statistic: of one dataset, or the mean over all."""
    chosen = [data.released[min(draws, len(data.released) - 1)]] if isinstance(draws, int) else data.released
    distances = []
    for values in chosen:
        points = np.unique(np.concatenate([data.own, values]))
        distances.append(float(np.abs(ecdf(values, points) - ecdf(data.own, points)).max(initial=0.0)))
    return f"largest difference {np.mean(distances):.3g}" + (" on average" if len(distances) > 1 else "")


def _by_level(column: Column, draws: Draws, origin: str, *, differences: bool) -> Marginal:
    """The share of records of each level: of many the most frequent ones, the others together; missing is one more."""
    names, tables = _level_shares(column)
    places = np.arange(float(len(names)))
    own, *released = tables
    if differences:
        drawn = _released([one - own for one in released], places, draws, origin, "bars")
        figure = Figure(
            f"Difference of shares of {column.name}", "shares",
            (Panel("", tuple(drawn), column.name, f"{origin} less {CONFIDENTIAL}", names),),
        )  # fmt: skip
    else:
        drawn = [Series(CONFIDENTIAL, places, own), *_released(released, places, draws, origin, None)]
        figure = Figure(f"Shares of {column.name}", "shares", (Panel("", tuple(drawn), column.name, SHARE, names),))
    chosen = [released[min(draws, len(released) - 1)]] if isinstance(draws, int) and released else released
    distance = [0.5 * float(np.abs(one - own).sum()) for one in chosen]
    notes = (
        [f"total variation distance {np.mean(distance):.3g}" + (" on average" if len(distance) > 1 else "")]
        if distance
        else []
    )
    return Marginal(figure, (*notes, *_missing_notes(column, origin)))


def _level_shares(column: Column) -> tuple[tuple[str, ...], list[Floats]]:
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


def _level_bars(column: Column) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """The names of the bars, and the bar of each confidential record (n,)."""
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
    """Records by level, and at the end those without: (levels + 1,)."""
    return np.bincount(np.where(np.isnan(codes), levels, codes).astype(np.intp), minlength=levels + 1).astype(
        np.float64
    )
