"""Series of points to draw, and their values at a given x."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.workspace.plots.axes import LARGEST_VALUE, Floats, Limits, finite_limits

Marker = Literal["line", "points", "steps", "bars"]


@dataclass(frozen=True)
class SeriesReading:
    """Value and band of a series at a given x; None where it has none."""

    name: str
    value: float | None
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, eq=False)
class Series:
    """Points ``x``, ``y`` (n,) with an optional band from ``lower`` to ``upper`` (n,); missing values are NaN.

    A series of steps keeps the value of a point until the next, as a distribution function does. Without a ``marker``
    it is drawn as its figure's series are. A ``thin`` series is one of several of a name: it looks like the first of
    that name that is not thin, but faint, and is not in the legend. ``style`` is a colour (``"green"``, ``"#56b4e9"``),
    or None for the next of the palette. ``stops`` are the names of the points of a path, which a figure joins in their
    order and names at its ends. ``labels`` are texts that stand beside the points of a chart in the terminal, where there
    is room; an empty one is left out. Raises ValueError for unequal lengths.
    """

    name: str
    x: Floats
    y: Floats
    lower: Floats | None = None
    upper: Floats | None = None
    marker: Marker | None = None
    thin: bool = False
    style: str | None = None
    stops: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def __init__(
        self,
        name: str,
        x: ArrayLike,
        y: ArrayLike,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        marker: Marker | None = None,
        thin: bool = False,
        style: str | None = None,
        stops: tuple[str, ...] = (),
        labels: tuple[str, ...] = (),
    ) -> None:
        if marker not in (None, *get_args(Marker)):
            raise ValueError(f"marker must be one of {', '.join(get_args(Marker))}, not {marker!r}")
        if (lower is None) != (upper is None):
            raise ValueError(f"series {name!r}: a band needs both lower and upper")
        given = {"x": x, "y": y, "lower": lower, "upper": upper}
        columns = {key: None if value is None else _read_only_column(value) for key, value in given.items()}
        sizes = {key: column.size for key, column in columns.items() if column is not None}
        sizes |= {key: len(texts) for key, texts in (("stops", stops), ("labels", labels)) if texts}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"series {name!r}: lengths differ: {sizes}")
        told = {"name": name, "marker": marker, "thin": thin, "style": style, "stops": stops, "labels": labels}
        for key, value in {**told, **columns}.items():
            # the only way to set a field of a frozen dataclass with an initialiser of its own
            object.__setattr__(self, key, value)

    @cached_property
    def is_drawable(self) -> NDArray[np.bool_]:
        """Mark the points that can be drawn, (n,)."""
        return np.asarray((np.abs(self.x) < LARGEST_VALUE) & (np.abs(self.y) < LARGEST_VALUE))

    @property
    def with_known_x(self) -> Series:
        """Return the series without points whose x is missing."""
        known = np.abs(self.x) < LARGEST_VALUE
        if known.all():
            return self
        columns = (self.x, self.y, self.lower, self.upper)
        x, y, lower, upper = (None if column is None else column[known] for column in columns)
        assert x is not None
        assert y is not None
        stops, labels = (
            tuple(text for text, here in zip(texts, known.tolist(), strict=False) if here)
            for texts in (self.stops, self.labels)
        )
        return Series(self.name, x, y, lower, upper, self.marker, self.thin, self.style, stops, labels)

    @cached_property
    def x_order(self) -> NDArray[np.intp]:
        """Return the points with a known x by rising x, (n',); points whose y is missing stay as gaps."""
        located = np.flatnonzero(np.abs(self.x) < LARGEST_VALUE)
        return located[np.argsort(self.x[located], kind="stable")]

    @cached_property
    def x_spacing(self) -> float:
        """Return the smallest distance between distinct x; 1 for fewer than two."""
        different = np.unique(self.x[self.is_drawable])
        return float(np.diff(different).min()) if different.size > 1 else 1.0

    def read_at(self, x: float, tolerance: float = 0.0) -> SeriesReading:
        """Return the value at ``x``: lines are interpolated, steps hold, points and bars are read within ``tolerance``."""
        weights = self._reading_weights(x, tolerance)
        columns = (self.y, self.lower, self.upper)
        return SeriesReading(self.name, *(None if c is None else _weighted_sum(c, weights) for c in columns))

    def _reading_weights(self, x: float, tolerance: float) -> dict[int, float]:
        """Return the points that make up the value at ``x``, with their weights; empty without any."""
        order = self.x_order
        after = int(np.searchsorted(self.x[order], x, side="right"))
        if self.marker in ("points", "bars"):
            near = [int(i) for i in order[max(0, after - 1) : after + 1] if self.is_drawable[i]]
            nearest = min(near, key=lambda i: abs(self.x[i] - x), default=None)
            return {} if nearest is None or abs(self.x[nearest] - x) > tolerance else {nearest: 1.0}
        if after == 0:
            return {}
        before, following = int(order[after - 1]), int(order[min(after, order.size - 1)])
        if self.x[before] == x:
            return {before: 1.0}
        if after == order.size:
            return {}
        if self.marker == "steps":
            return {before: 1.0}
        share = (x - self.x[before]) / (self.x[following] - self.x[before])
        return {before: 1.0 - float(share), following: float(share)}


def _read_only_column(values: ArrayLike) -> Floats:
    """Return values as a read-only array (n,) of floats."""
    column = np.array(values, dtype=np.float64).ravel()
    column.setflags(write=False)
    return column


def _weighted_sum(column: Floats, weights: dict[int, float]) -> float | None:
    """Return the weighted sum of points of a column; None where it is not finite."""
    value = sum(weight * float(column[i]) for i, weight in weights.items()) if weights else math.nan
    return value if math.isfinite(value) else None


def x_limits(series: Sequence[Series]) -> Limits | None:
    """Return the range of x over all points that can be drawn, with half a bar at either end; None without points."""
    parts = [s.x[s.is_drawable] for s in series]
    parts += [s.x[s.is_drawable] + side * s.x_spacing / 2 for s in series if s.marker == "bars" for side in (-1, 1)]
    return finite_limits(np.concatenate(parts)) if parts else None


def y_limits(series: Sequence[Series], x: Limits, *, log: bool = False) -> Limits | None:
    """Return the range of y, bands included, over what is drawn between the limits of ``x``; None without points.

    Bars reach to 0. On a ``log`` axis only values above 0 count.
    """
    parts: list[Floats] = []
    for s in series:
        inside = s.is_drawable & (s.x >= x[0]) & (s.x <= x[1])
        parts += [column[inside] for column in (s.y, s.lower, s.upper) if column is not None]
        # a line that crosses the edge of the picture is visible up to there
        edges = [s.read_at(edge) for edge in x] if s.marker not in ("points", "bars") else []
        found = [value for e in edges for value in (e.value, e.lower, e.upper) if value is not None]
        parts.append(np.array(found + [0.0] * (s.marker == "bars" and bool(inside.any()))))
    values = np.concatenate(parts) if parts else np.empty(0)
    return finite_limits(values[values > 0] if log else values)


def point_positions(series: Sequence[Series]) -> Floats:
    """Return the distinct x at which some series has a point, rising, (k,)."""
    return np.unique(np.concatenate([s.x[s.is_drawable] for s in series])) if series else np.empty(0)


def styled_like(series: Sequence[Series], order: int) -> int:
    """Return the index of the series whose style the ``order``-th has: itself, or for a thin one the first of its name."""
    if not series[order].thin:
        return order
    alike = (i for i, other in enumerate(series) if other.name == series[order].name and not other.thin)
    return next(alike, order)
