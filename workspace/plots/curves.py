"""Figures of result rows: curves of studies along their axes, and intervals side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.engine.methods.outputs import Axis
from sfumato.engine.methods.registry import find_method, method_by_key, output_by_key
from sfumato.engine.methods.rows import Row

from .figure import CONFIDENTIAL, Figure, Panel
from .series import Series

SETTINGS = ("confidence", "synthesis")
"""Parameters that describe how an interval was computed, not what it estimates."""
_NOWHERE = float("nan")
NamedRow = tuple[str, Row]
"""Name of a run and one of its rows."""


@dataclass(frozen=True)
class RunRows:
    """Name of a run and its rows: averages of the release and values of the confidential data."""

    name: str
    rows: Sequence[Row]


def sweep_figures(runs: Sequence[RunRows]) -> list[Figure]:
    """Return a figure for each sweep of a study (Guo & Hu, Figure 4), with a panel for each measure."""
    swept: dict[str, list[NamedRow]] = {}
    for run in runs:
        for row in run.rows:
            method = method_by_key(row.method_key)
            if (
                method
                and method.study.axis
                and not method.answer_outputs
                and output_by_key(row.key) in method.curve_outputs
            ):
                key = json.dumps([row.method, row.target, row.params], sort_keys=True)
                swept.setdefault(key, []).append((run.name, row))
    return [_sweep_figure(rows) for rows in swept.values()]


def _sweep_figure(rows: Sequence[NamedRow]) -> Figure:
    """Return the figure of one sweep."""
    axis = find_method(f"studies.{rows[0][1].method}", "method").study.axis
    assert axis is not None
    panels = [
        panel
        for measure in dict.fromkeys(row.measure for _, row in rows)
        for panel in _sweep_panels(rows, measure, axis)
    ]
    params = rows[0][1].params
    of = " of ".join(str(params[name]) for name in reversed(axis.uses) if name in params)
    caption = f"{axis.label} is {axis.meaning}." + (f" Bands are {axis.bands}." if axis.bands else "")
    if params.get("by") == "unit":
        of = ", ".join(filter(None, (of, "by unit")))
    return Figure(f"{axis.heading}: {of}" if of else axis.heading, "sweep", tuple(panels), caption)


def _sweep_panels(rows: Sequence[NamedRow], measure: str, axis: Axis) -> list[Panel]:
    """Return the panels of one measure of a sweep: that of the releases, and that of the confidential data."""
    title = measure.replace("_", " ").capitalize()
    chosen = [(name, row) for name, row in rows if row.measure == measure]
    names = dict.fromkeys(name for name, _ in chosen)
    released = [
        _level_series(name, [row for n, row in chosen if n == name and row.dataset != CONFIDENTIAL]) for name in names
    ]
    own = [
        _level_series(CONFIDENTIAL, [row for n, row in chosen if n == name and row.dataset == CONFIDENTIAL])
        for name in names
    ]
    unit = chosen[0][1].unit
    sides = ((title, released), (f"{title}, confidential data", [one for one in own if one.x.size][:1]))
    drawn = [(heading, tuple(one for one in series if one.x.size)) for heading, series in sides]
    return [Panel(heading, series, axis.label, unit, log_x=axis.log) for heading, series in drawn if series]


def _level_series(name: str, rows: Sequence[Row]) -> Series:
    """Return rows as a series along their levels, with a band where intervals are known."""
    rising = sorted(rows, key=lambda row: row.level or 0.0)
    lower, upper = (np.array([_nan_if_none(getattr(row, end)) for row in rising]) for end in ("lower", "upper"))
    known = bool(np.isfinite(lower).any())
    return Series(
        name,
        [_nan_if_none(row.level) for row in rising],
        [_nan_if_none(row.value) for row in rising],
        lower if known else None,
        upper if known else None,
    )


def _nan_if_none(value: float | None) -> float:
    """Return the value, or NaN for None."""
    return _NOWHERE if value is None else value


def interval_figures(runs: Sequence[RunRows]) -> list[Figure]:
    """Return a figure for each estimand (Guo & Hu, Figures 2, 3, 5, 6, 9-12): a panel for each variable or term.

    Each panel has the estimates with intervals on the confidential data and on every release, and the interval
    overlaps.
    """
    found: dict[str, dict[str, list[NamedRow]]] = {}
    for run in runs:
        for row in run.rows:
            if (output := output_by_key(row.key)) and output.drawn:
                panels = found.setdefault(_estimand_key(row), {})
                panels.setdefault(str(row.params.get("term", row.target)), []).append((run.name, row))
    return [_interval_figure(json.loads(estimand), panels) for estimand, panels in found.items()]


def _interval_figure(estimand: Mapping[str, Any], panels: Mapping[str, Sequence[NamedRow]]) -> Figure:
    """Return the figure of one estimand."""
    rows = [row for named in panels.values() for _, row in named]
    confidence = next((row.params["confidence"] for row in rows if "confidence" in row.params), None)
    caption = (
        f"Points are estimates, lines {100 * confidence:g} % confidence intervals, of a release by its combining rule."
        if confidence is not None
        else "Points are averages over the released datasets, lines their 95 % Monte Carlo intervals."
    )
    drawn = tuple(_interval_panel(title, named) for title, named in panels.items())
    return Figure(_estimand_title(estimand), "intervals", drawn, caption)


def _estimand_key(row: Row) -> str:
    """Return the parameters that the panels of one figure share, as JSON."""
    return json.dumps({k: v for k, v in row.params.items() if k not in SETTINGS and k != "term"}, sort_keys=True)


def _estimand_title(params: Mapping[str, Any]) -> str:
    """Return the title of the figure of an estimand."""
    estimand = str(params.get("estimand", "estimate"))
    if estimand == "quantile" and "q" in params:
        return f"Estimate and interval: {100 * params['q']:g} % quantile"
    if "model" in params:
        return f"Estimate and interval: {estimand} of {params['model']}"
    return f"Estimate and interval: {estimand}"


def _interval_panel(title: str, rows: Sequence[NamedRow]) -> Panel:
    """Return the panel of a variable or term: an interval for the confidential data and for each run."""
    outputs = [(name, row, output) for name, row in rows if (output := output_by_key(row.key))]
    estimates = [(name, row) for name, row, output in outputs if output.drawn == "interval"]
    # the runs have the same data, so one interval stands for all
    own = [(CONFIDENTIAL, row) for _, row in estimates if row.dataset == CONFIDENTIAL][:1]
    shown = own + [(name, row) for name, row in estimates if row.dataset != CONFIDENTIAL]
    series = tuple(
        Series(name, [i], [_nan_if_none(row.value)], [_nan_if_none(row.lower)], [_nan_if_none(row.upper)])
        for i, (name, row) in enumerate(shown)
    )
    noted: dict[str, list[str]] = {}
    for name, row, output in outputs:
        if output.drawn == "note" and row.value is not None:
            noted.setdefault(output.title, []).append(f"{name} {row.value:.2f}")
    note = "; ".join(f"{words}: {', '.join(said)}" for words, said in noted.items())
    return Panel(title, series, x_names=tuple(name for name, _ in shown), note=note)
