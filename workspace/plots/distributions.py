"""The distribution of a variable: the confidential data beside released datasets (Guo & Hu, Figures 1, 7 and 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Variable
from sfumato.workspace.plots.axes import short_number
from sfumato.workspace.plots.column import (
    LEAST_RECORDS,
    NO_VALUE,
    SHARE,
    bandwidth,
    bin_counts,
    bin_edges,
    curve_points,
    density,
    drawn_range,
    prefers_log,
    shown_counts,
    sparse,
)

from .figure import CONFIDENTIAL, Figure, Panel
from .series import Series

Floats = NDArray[np.float64]

MOST_LEVELS = 20
KERNEL_REACH = 3.0
SUPPRESSED = f"Bars of fewer than {LEAST_RECORDS} confidential records are left out."
_DENSITY = "Gaussian kernel; the confidential curve is drawn where at least three records lie within three bandwidths."


@dataclass(frozen=True, eq=False)
class Group:
    """One run: its name, and some of its released datasets."""

    name: str
    released: tuple[Microdata, ...]


def distribution_figure(
    variable: Variable,
    confidential: Microdata,
    groups: Sequence[Group],
    bin_width: float | None = None,
    *,
    public: bool = False,
) -> Figure:
    """One panel a run. Levels are counted; counts and dates, and whatever has a bin width, are binned; the rest is smoothed.

    Missing is one more level; numbers are those of the records that have one. A ``public`` figure shows the released datasets alone, on
    their bins and levels, and nothing is smoothed. Else it is internal, shows shares of records as the app does, and leaves out bars and
    curves of a few.
    """
    name = variable.name
    own = confidential.present_numbers(name)
    panels = [(group.name, [released.present_numbers(name) for released in group.released]) for group in groups]
    caption = _which(groups, public=public)
    tables = [
        *([] if public else [confidential]),
        *(released for group in groups for released in group.released),
    ]
    if any(table.missing_mask(name).any() for table in tables):
        caption += "" if variable.kind.has_levels else " Records without a value are not drawn."
    if variable.kind.has_levels:
        levels = [*(str(level) for level in confidential.column(name).cat.categories), NO_VALUE]
        own = _codes(confidential, name)
        panels = [(group.name, [_codes(released, name) for released in group.released]) for group in groups]
        drawn = _shares(levels, None if public else own, panels)
        figure = Figure(f"Records by {name}", "shares", drawn, caption if public else f"{caption} {SUPPRESSED}")
        return figure if public else _as_shares(figure, confidential, groups)
    if variable.kind is Kind.CONTINUOUS and bin_width is None and not public:
        drawn = _densities(variable, own, panels)
        return Figure(f"Density of {name}", "density", drawn, f"{caption} {_DENSITY}")
    every = [own, *(values for _, datasets in panels for values in datasets)]
    known = every[1:] if public else every
    whole = variable.kind is Kind.DATE or all(np.array_equal(values, np.floor(values)) for values in known)
    span = _released_range(every[1:]) if public else drawn_range(own, every[1:])
    edges = bin_edges(span, bin_width, whole=whole)
    width = f"Bins are {short_number(float(edges[1] - edges[0]))} wide" + (
        " (days)." if variable.kind is Kind.DATE else "."
    )
    figure = Figure(
        f"Histogram of {name}",
        "histogram",
        _histograms(variable, edges, None if public else own, panels),
        f"{caption} {width}" if public else f"{caption} {width} {SUPPRESSED}",
    )
    return figure if public else _as_shares(figure, confidential, groups)


def _as_shares(figure: Figure, confidential: Microdata, groups: Sequence[Group]) -> Figure:
    """The bars as shares of each table's records, those without a value among them: tables of other sizes can be laid beside it."""
    own = figure.panels[0].series[0]
    ours = replace(own, y=own.y / len(confidential))
    panels = []
    for panel, group in zip(figure.panels, groups, strict=True):
        pairs = zip(panel.series[1:], group.released, strict=True)
        series = (ours, *(replace(one, y=one.y / max(1, len(released))) for one, released in pairs))
        panels.append(replace(panel, series=series, y_label=SHARE))
    return replace(figure, panels=tuple(panels))


def _which(groups: Sequence[Group], *, public: bool) -> str:
    shown = max(len(group.released) for group in groups)
    if public:
        return f"The first {shown} released datasets." if shown > 1 else "The first released dataset."
    return f"The confidential data beside the first {shown} released datasets." if shown > 1 else (
        "The confidential data beside the first released dataset."
    )  # fmt: skip


def _names(count: int) -> list[str]:
    return [f"dataset {i}" for i in range(1, count + 1)]


def _released_range(released: Sequence[Floats]) -> tuple[float, float]:
    ranges = [(float(values.min()), float(values.max())) for values in released if values.size] or [(0.0, 1.0)]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _histograms(
    variable: Variable,
    edges: Floats,
    own: Floats | None,
    panels: Sequence[tuple[str, list[Floats]]],
) -> tuple[Panel, ...]:
    """Bars at the middles of the bins; dates are named by the day on which a bin begins. Without ``own`` of the released values alone."""
    dates = variable.kind is Kind.DATE
    starts = np.floor(edges[:-1]).astype(np.int64).astype("datetime64[D]").astype(str).tolist() if dates else []
    middles = np.arange(len(edges) - 1.0) if dates else (edges[:-1] + edges[1:]) / 2
    confidential = () if own is None else (Series(CONFIDENTIAL, middles, shown_counts(bin_counts(own, edges))),)
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


def _shares(levels: list[str], own: Floats | None, panels: Sequence[tuple[str, list[Floats]]]) -> tuple[Panel, ...]:
    """Records by level: the 20 that most records have, the others together; a level of a few confidential records only is left out.

    Without ``own`` the levels and their order are those of the released values.
    """
    released = [_by_level(values, levels) for _, datasets in panels for values in datasets]
    counts = np.sum(released, axis=0) if own is None else _by_level(own, levels)
    shown = np.any(released, axis=0)
    some = np.flatnonzero(shown if own is None else shown | (counts >= LEAST_RECORDS))
    frequent = some[np.argsort(-counts[some], kind="stable")][:MOST_LEVELS]
    kept, rest = np.sort(frequent), np.setdiff1d(some, frequent)
    names = [levels[i] for i in kept] + ([f"{rest.size} other levels"] if rest.size else [])
    places = np.arange(float(len(names)))

    def grouped(found: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.append(found[kept], found[rest].sum()) if rest.size else found[kept]

    confidential = () if own is None else (Series(CONFIDENTIAL, places, shown_counts(grouped(counts))),)
    remaining = iter(released)
    return tuple(
        Panel(
            name,
            (*confidential, *(Series(label, places, grouped(next(remaining))) for label in _names(len(datasets)))),
            "",
            "records",
            tuple(names),
        )
        for name, datasets in panels
    )


def _codes(data: Microdata, name: str) -> Floats:
    """Codes of levels (n,), that of a missing value after the last."""
    codes = data.numbers(name)
    return np.where(np.isnan(codes), len(data.column(name).cat.categories), codes)


def _by_level(values: Floats, levels: Sequence[str]) -> NDArray[np.intp]:
    return np.bincount(values.astype(np.int64), minlength=len(levels))


def _densities(variable: Variable, own: Floats, panels: Sequence[tuple[str, list[Floats]]]) -> tuple[Panel, ...]:
    released = [values for _, datasets in panels for values in datasets]
    log = prefers_log(own) and all((values > 0).all() for values in released)
    scaled = [np.log10(values) if log else values for values in (own, *released)]
    low, high = drawn_range(scaled[0], scaled[1:])
    points = curve_points(low, high)
    curves = [density(values, points) for values in scaled]
    hidden = sparse(scaled[0], points, KERNEL_REACH * bandwidth(scaled[0]))
    x = 10.0**points if log else points
    confidential = Series(CONFIDENTIAL, x, np.where(hidden, np.nan, curves[0]))
    remaining = iter(curves[1:])
    return tuple(
        Panel(
            name,
            (confidential, *(Series(label, x, next(remaining)) for label in _names(len(datasets)))),
            variable.name,
            f"density of log10 {variable.name}" if log else "density",
            log_x=log,
        )
        for name, datasets in panels
    )
