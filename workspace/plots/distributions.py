"""Distribution of a variable in the confidential data and in released datasets (Guo & Hu, Figures 1, 7 and 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.data.long_arrays import compute_column
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Variable
from sfumato.workspace.plots.axes import short_number
from sfumato.workspace.plots.column import (
    LEAST_RECORDS,
    NO_VALUE,
    SHARE_LABEL,
    bin_counts,
    bin_edges,
    curve_points,
    default_kernel_density,
    drawn_range,
    is_sparse_at,
    prefers_log,
    silverman_bandwidth,
    suppress_small_counts,
)

from .figure import CONFIDENTIAL, Figure, Panel
from .series import Series

Floats = NDArray[np.float64]

MOST_LEVELS = 20
KERNEL_REACH = 3.0
SUPPRESSION_CAPTION = f"Bars of fewer than {LEAST_RECORDS} confidential records are left out."
_DENSITY_CAPTION = (
    "Gaussian kernel; the confidential curve is drawn where at least three records lie within three bandwidths."
)


@dataclass(frozen=True, eq=False)
class RunDatasets:
    """Name of a run and some of its released datasets."""

    name: str
    released: tuple[Microdata, ...]


def distribution_figure(
    variable: Variable,
    confidential: Microdata,
    groups: Sequence[RunDatasets],
    bin_width: float | None = None,
    *,
    public: bool = False,
) -> Figure:
    """Return a figure of the distribution of a variable, with a panel for each run.

    Levels are counted, with missing as one more; counts, dates and variables with a bin width are binned; other numbers
    are smoothed. Records without a value are left out of numbers. A ``public`` figure has the released datasets alone;
    other figures are internal, show shares of records, and leave out bars and curves of few confidential records.
    """
    name = variable.name
    own = confidential.present_numbers(name)
    panels = [(group.name, [released.present_numbers(name) for released in group.released]) for group in groups]
    caption = _datasets_caption(groups, public=public)
    tables = [
        *([] if public else [confidential]),
        *(released for group in groups for released in group.released),
    ]
    if any(table.missing_mask(name).any() for table in tables):
        caption += "" if variable.kind.has_levels else " Records without a value are not drawn."
    if variable.kind.has_levels:
        levels = [*(str(level) for level in confidential.column(name).cat.categories), NO_VALUE]
        own = _level_codes(confidential, name)
        panels = [(group.name, [_level_codes(released, name) for released in group.released]) for group in groups]
        # a public figure must not depend on confidential values in any way
        drawn = _level_panels(levels, None if public else own, panels)
        figure = Figure(
            f"Records by {name}", "shares", drawn, caption if public else f"{caption} {SUPPRESSION_CAPTION}"
        )
        return figure if public else _figure_of_shares(figure, confidential, groups)
    if variable.kind is Kind.CONTINUOUS and bin_width is None and not public:
        drawn = _density_panels(variable, own, panels)
        return Figure(f"Density of {name}", "density", drawn, f"{caption} {_DENSITY_CAPTION}")
    every = [own, *(values for _, datasets in panels for values in datasets)]
    # confidential values must not decide anything in a public figure
    known = every[1:] if public else every
    whole = variable.kind is Kind.DATE or all(np.array_equal(values, np.floor(values)) for values in known)
    span = _range_of_released(every[1:]) if public else drawn_range(own, every[1:])
    edges = bin_edges(span, bin_width, whole=whole)
    width = f"Bins are {short_number(float(edges[1] - edges[0]))} wide" + (
        " (days)." if variable.kind is Kind.DATE else "."
    )
    figure = Figure(
        f"Histogram of {name}",
        "histogram",
        _histogram_panels(variable, edges, None if public else own, panels),
        f"{caption} {width}" if public else f"{caption} {width} {SUPPRESSION_CAPTION}",
    )
    return figure if public else _figure_of_shares(figure, confidential, groups)


def _figure_of_shares(figure: Figure, confidential: Microdata, groups: Sequence[RunDatasets]) -> Figure:
    """Return the figure with shares of each table's records in place of counts."""
    own = figure.panels[0].series[0]
    # divided by all records, with and without a value, so that tables of other sizes can be compared
    ours = replace(own, y=own.y / len(confidential))
    panels = []
    for panel, group in zip(figure.panels, groups, strict=True):
        pairs = zip(panel.series[1:], group.released, strict=True)
        series = (ours, *(replace(one, y=one.y / max(1, len(released))) for one, released in pairs))
        panels.append(replace(panel, series=series, y_label=SHARE_LABEL))
    return replace(figure, panels=tuple(panels))


def _datasets_caption(groups: Sequence[RunDatasets], *, public: bool) -> str:
    """Return the sentence that names the datasets that are drawn."""
    shown = max(len(group.released) for group in groups)
    if public:
        return f"The first {shown} released datasets." if shown > 1 else "The first released dataset."
    return f"The confidential data beside the first {shown} released datasets." if shown > 1 else (
        "The confidential data beside the first released dataset."
    )  # fmt: skip


def _dataset_names(count: int) -> list[str]:
    """Return the names of the first ``count`` datasets."""
    return [f"dataset {i}" for i in range(1, count + 1)]


def _range_of_released(released: Sequence[Floats]) -> tuple[float, float]:
    """Return the range of all released values."""
    ranges = [(float(values.min()), float(values.max())) for values in released if values.size] or [(0.0, 1.0)]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _histogram_panels(
    variable: Variable,
    edges: Floats,
    own: Floats | None,
    panels: Sequence[tuple[str, list[Floats]]],
) -> tuple[Panel, ...]:
    """Return panels of bars at the middles of the bins; bars of dates are named by the first day of the bin.

    Without ``own`` the released values alone are drawn.
    """
    dates = variable.kind is Kind.DATE
    starts = np.floor(edges[:-1]).astype(np.int64).astype("datetime64[D]").astype(str).tolist() if dates else []
    middles = np.arange(len(edges) - 1.0) if dates else (edges[:-1] + edges[1:]) / 2
    confidential = (
        () if own is None else (Series(CONFIDENTIAL, middles, suppress_small_counts(bin_counts(own, edges))),)
    )
    return tuple(
        Panel(
            name,
            (
                *confidential,
                *(Series(f"dataset {i}", middles, bin_counts(v, edges)) for i, v in enumerate(datasets, start=1)),
            ),
            variable.name,
            "records",
            tuple(starts),
            1.0 if dates else float(edges[1] - edges[0]),
        )
        for name, datasets in panels
    )


def _level_panels(
    levels: list[str], own: Floats | None, panels: Sequence[tuple[str, list[Floats]]]
) -> tuple[Panel, ...]:
    """Return panels of records by level: the most frequent levels, and the others together.

    Levels that only a few confidential records have are left out. Without ``own`` levels and their order are those of
    the released values.
    """
    released = [_count_levels(values, levels) for _, datasets in panels for values in datasets]
    counts = np.sum(released, axis=0) if own is None else _count_levels(own, levels)
    shown = np.any(released, axis=0)
    # the name of a level alone would show that a few confidential records have it
    some = np.flatnonzero(shown if own is None else shown | (counts >= LEAST_RECORDS))
    frequent = some[np.argsort(-counts[some], kind="stable")][:MOST_LEVELS]
    kept, rest = np.sort(frequent), np.setdiff1d(some, frequent)
    names = [levels[i] for i in kept] + ([f"{rest.size} other levels"] if rest.size else [])
    places = np.arange(float(len(names)))

    def grouped(found: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.append(found[kept], found[rest].sum()) if rest.size else found[kept]

    confidential = () if own is None else (Series(CONFIDENTIAL, places, suppress_small_counts(grouped(counts))),)
    remaining = iter(released)
    return tuple(
        Panel(
            name,
            (
                *confidential,
                *(Series(label, places, grouped(next(remaining))) for label in _dataset_names(len(datasets))),
            ),
            "",
            "records",
            tuple(names),
        )
        for name, datasets in panels
    )


def _level_codes(data: Microdata, name: str) -> Floats:
    """Return the codes (n,) of levels; a missing value has the code after the last level."""
    codes = data.numbers(name)
    return np.where(np.isnan(codes), len(data.column(name).cat.categories), codes)


def _count_levels(values: Floats, levels: Sequence[str]) -> NDArray[np.intp]:
    """Count the records with each level, (k,)."""
    return np.bincount(values.astype(np.int64), minlength=len(levels))


def _common_logarithms(values: Floats) -> Floats:
    """Return the logarithms to base 10 of values (n,)."""
    return compute_column(values.size, np.float64, lambda rows: np.log10(values[rows]))


def _density_panels(variable: Variable, own: Floats, panels: Sequence[tuple[str, list[Floats]]]) -> tuple[Panel, ...]:
    """Return panels of density curves, on a logarithmic axis where all values are positive and strongly skewed."""
    released = [values for _, datasets in panels for values in datasets]
    log = prefers_log(own) and all(values.min(initial=1.0) > 0 for values in released)
    scaled = [_common_logarithms(values) if log else values for values in (own, *released)]
    low, high = drawn_range(scaled[0], scaled[1:])
    points = curve_points(low, high)
    curves = [default_kernel_density(values, points) for values in scaled]
    # the curve at a value that few records are near shows these records
    hidden = is_sparse_at(scaled[0], points, KERNEL_REACH * silverman_bandwidth(scaled[0]))
    x = 10.0**points if log else points
    confidential = Series(CONFIDENTIAL, x, np.where(hidden, np.nan, curves[0]))
    remaining = iter(curves[1:])
    return tuple(
        Panel(
            name,
            (confidential, *(Series(label, x, next(remaining)) for label in _dataset_names(len(datasets)))),
            variable.name,
            f"density of log10 {variable.name}" if log else "density",
            log_x=log,
        )
        for name, datasets in panels
    )
