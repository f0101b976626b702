"""Planes of a study whose curves are drawn together: measures along the axis, or one measure against another."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sfumato.engine.methods.outputs import Axis, Plane
from sfumato.engine.methods.registry import Method, method_by_key
from sfumato.engine.methods.rows import Row

from .axes import short_number
from .curves import RunRows
from .figure import Figure, Panel
from .series import Series

BASELINE = "baseline"
GREY = "#767676"
"""Colour of baselines and limits."""
BASELINE_CAPTION = "The baseline is what a measure would be without a difference, or without protection."
_NOWHERE = float("nan")


@dataclass(frozen=True, eq=False)
class DrawnPlane:
    """Plane of a study with its panel and the rows of the measure on its y axis."""

    plane: Plane
    panel: Panel
    rows: Sequence[Row]

    @property
    def measure(self) -> str:
        """Return the measure on the y axis."""
        return self.plane.up


def has_joint_curves(method: Method | None) -> bool:
    """Return whether the curves of a study are drawn together."""
    return method is not None and method.study.axis is not None and method.study.axis.together


def curve_name(row: Row, axis: Axis) -> str:
    """Return the name of the curve to which a row belongs."""
    return str(row.params.get(axis.curve, ""))


def draw_planes(method: Method, rows: Iterable[Row]) -> list[DrawnPlane]:
    """Return the planes of one use of a study for which something was measured, in the order of their declaration.

    ``rows`` are averages; rows of single datasets, without a level or without a curve are ignored.
    """
    assert method.study.axis is not None
    curve = method.study.axis.curve
    kept = [row for row in rows if row.draw is None and row.level is not None and curve in row.params]
    found = []
    for plane in method.study.planes:
        upward = [row for row in kept if row.measure == plane.up]
        for named in dict.fromkeys(tuple(str(row.params.get(name, "")) for name in plane.each) for row in upward):
            own = [row for row in upward if tuple(str(row.params.get(name, "")) for name in plane.each) == named]
            across = [row for row in kept if row.measure == plane.across]
            panel = _plane_panel(method, plane, named, own, across)
            if panel is not None:
                found.append(DrawnPlane(plane, panel, own))
    return found


def _plane_panel(
    method: Method, plane: Plane, named: Sequence[str], up: Sequence[Row], across: Sequence[Row]
) -> Panel | None:
    """Return the panel of a plane; None where nothing was measured for it."""
    axis = method.study.axis
    assert axis is not None
    if not any(row.value is not None for row in up) or (plane.across and all(row.value is None for row in across)):
        return None
    title = plane.title.format(**dict(zip(plane.each, named, strict=True)))
    words = method.output(plane.up)
    unit = f"{words.title}{f', {words.unit}' if words.unit else ''}"
    names = list(dict.fromkeys(curve_name(row, axis) for row in up))
    if plane.across:
        series = [one for name in names for one in _path_series(name, up, across, axis)]
        return Panel(title, tuple(series), plane.label or plane.across.replace("_", " "), unit) if series else None
    series = [_curve_series(name, [row for row in up if curve_name(row, axis) == name]) for name in names]
    series += [*_baseline_series(up), *_limit_series(up, axis)]
    return Panel(title, tuple(series), plane.label or axis.label, unit, log_x=axis.log)


def _curve_series(name: str, rows: Sequence[Row]) -> Series:
    """Return a curve along the levels, with a band where intervals are known."""
    rising = sorted(rows, key=lambda row: row.level or 0.0)
    banded = any(row.lower is not None for row in rising)
    return Series(
        name,
        [row.level or 0.0 for row in rising],
        [_nan_if_none(row.value) for row in rising],
        [_nan_if_none(row.lower) for row in rising] if banded else None,
        [_nan_if_none(row.upper) for row in rising] if banded else None,
    )


def _baseline_series(rows: Sequence[Row]) -> list[Series]:
    """Return the mean baseline of the curves at each level as a series; none without baselines."""
    known: dict[float, list[float]] = {}
    for row in rows:
        if row.baseline is not None and row.level is not None:
            known.setdefault(row.level, []).append(row.baseline)
    # baselines of curves differ by chance only, so their mean is drawn
    points = sorted((level, math.fsum(values) / len(values)) for level, values in known.items())
    levels, values = [level for level, _ in points], [value for _, value in points]
    return [Series(BASELINE, levels, values, style=GREY)] if points else []


def _limit_series(rows: Sequence[Row], axis: Axis) -> list[Series]:
    """Return a horizontal line for each limit that a curve is compared with."""
    levels = [row.level for row in rows if row.level is not None]
    limits = dict.fromkeys(float(row.params[axis.limit]) for row in rows if row.params.get(axis.limit) is not None)
    ends = [min(levels), max(levels)]
    return [Series(f"limit {short_number(limit)}", ends, [limit, limit], style=GREY) for limit in limits]


def _path_series(name: str, up: Sequence[Row], across: Sequence[Row], axis: Axis) -> list[Series]:
    """Return one measure of a curve against another as a path through the levels; one point where nothing changes."""
    heights = {row.level: row.value for row in up if curve_name(row, axis) == name}
    places = {row.level: row.value for row in across if curve_name(row, axis) == name}
    points = [
        (level, x, y)
        for level in sorted(level for level in heights if level is not None)
        if (x := places.get(level)) is not None and (y := heights[level]) is not None
    ]
    # a curve that does not depend on the axis is one point, not a path
    if len({(x, y) for _, x, y in points}) == 1:
        points = [(_NOWHERE, *points[0][1:])]
    stops = tuple("" if math.isnan(level) else short_number(level) for level, _, _ in points)
    xs, ys = [x for _, x, _ in points], [y for _, _, y in points]
    return [Series(name, xs, ys, marker="points", stops=stops)] if points else []


def _nan_if_none(value: float | None) -> float:
    """Return the value, or NaN for None."""
    return _NOWHERE if value is None else value


def plane_figures(runs: Sequence[RunRows]) -> list[Figure]:
    """Return the planes of all studies of the runs whose curves are drawn together, those of one heading in a figure."""
    found: list[Figure] = []
    for run in runs:
        uses: dict[str, list[Row]] = {}
        for row in run.rows:
            method = method_by_key(row.method_key) if row.family == "studies" else None
            if (
                method is not None
                and has_joint_curves(method)
                and method.study.axis
                and method.study.axis.curve in row.params
            ):
                uses.setdefault(_use_key(method, row), []).append(row)
        for own in uses.values():
            method = method_by_key(own[0].method_key)
            assert method is not None
            # figures of its own for each run: the lines of several could not be distinguished
            found += _figures_of_use(method, own, run.name if len(runs) > 1 else "")
    return found


def _use_key(method: Method, row: Row) -> str:
    """Return the settings that the rows of one use of a study share, as JSON."""
    assert method.study.axis is not None
    apart = {
        method.study.axis.curve,
        method.study.axis.limit,
        *(name for plane in method.study.planes for name in plane.each),
    }
    return json.dumps([row.method_key, {k: v for k, v in row.params.items() if k not in apart}], sort_keys=True)


def _figures_of_use(method: Method, rows: Sequence[Row], run: str) -> list[Figure]:
    """Return the figures of one use of a study, one for each heading."""
    axis = method.study.axis
    assert axis is not None
    planes = draw_planes(method, rows)
    said = " of ".join(f"{rows[0].params[name]:,} {name}" for name in axis.uses if name in rows[0].params)
    figures = []
    for heading in dict.fromkeys(one.plane.heading for one in planes):
        own = [one for one in planes if one.plane.heading == heading]
        along = not any(one.plane.across for one in own)
        caption = f"{axis.label.capitalize()} is {axis.meaning}{f'; datasets of {said}' if said else ''}. "
        caption += (
            BASELINE_CAPTION if along else f"Points are named by their {axis.label}, from the least to the greatest."
        )
        title = ", ".join(part for part in (heading or axis.heading, run) if part)
        figures.append(Figure(title, "sweep" if along else "map", tuple(one.panel for one in own), caption))
    return figures
