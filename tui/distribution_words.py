"""Pictures of distributions as plots draw them, in words, and as files that say they are confidential."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sfumato.workspace.plots.figure import CONFIDENTIAL, Bins, Figure, Panel
from sfumato.workspace.plots.figure import Series as FigureSeries
from sfumato.workspace.plots.joint import Joint, Scatter
from sfumato.workspace.plots.marginal import Marginal
from sfumato.workspace.plots.shades import percent
from sfumato.workspace.plots.units import unit_text
from sfumato.workspace.reporting.words import number

from .distributions import Shown, Subject, Wanted
from .export import Exhibit, Lines
from .widgets.series import Reading, Series

__all__ = [
    "cell_reading", "exhibit_of", "heading", "marginal_reading", "point_series", "scatter_reading", "shown_figure", "shown_lines",
]  # fmt: skip


def point_series(found: Scatter) -> list[Series]:
    """The points as plots draw them."""
    return [Series(one.name, one.x, one.y, marker="points") for one in found.series]


def heading(subject: Subject, shown: Shown, *, log_shades: bool) -> str:
    """``run 3 · price by reviews · heat map 5/6 · 20 synthetic: mean · log scale``."""
    wanted = shown.wanted
    parts = [
        f"run {subject.run.id}" if subject.run is not None else "confidential data alone",
        " across, ".join(column.name for column in shown.columns) + (" up" if len(shown.columns) > 1 else ""),
        f"{wanted.picture} {shown.pictures.index(wanted.picture) + 1}/{len(shown.pictures)}",
        _dataset_words(subject, wanted),
        "log scale" if wanted.log else "",
        "other axis log" if wanted.log_up else "",
        "shades by logarithm" if log_shades and isinstance(shown.found, Joint) else "",
    ]
    return " · ".join(part for part in parts if part)


def _dataset_words(subject: Subject, wanted: Wanted) -> str:
    if not subject.draws:
        return ""
    if isinstance(wanted.draws, int) or wanted.picture == "scatter":
        return f"{subject.origin} {wanted.draws + 1 if isinstance(wanted.draws, int) else 1}/{subject.draws}"
    if wanted.picture == "heat map":
        return f"mean of {subject.draws} {subject.origin}"
    return f"{subject.draws} {subject.origin}: {'mean, least and greatest' if wanted.draws == 'band' else 'each, and mean'}"


def marginal_reading(found: Marginal, x: float, readings: Sequence[Reading]) -> str:
    """``price 100 .. 120: confidential 0.12 · synthetic, mean of 20 0.11 (0.10 .. 0.13)``."""
    panel = found.figure.panels[0]
    named = bool(panel.x_names) and 0 <= round(x) < len(panel.x_names)
    half = panel.bar / 2
    if named:
        at = panel.x_names[round(x)]
    elif found.figure.kind == "histogram":
        at = " .. ".join(unit_text(end, panel.x_unit) for end in (x - half, x + half))
    else:
        at = unit_text(x, panel.x_unit)
    seen = {reading.name: reading for reading in reversed(readings)}
    said = []
    for name in found.figure.names:
        reading = seen.get(name)
        if reading is not None and reading.value is not None:
            band = "" if reading.lower is None else f" ({number(reading.lower)} .. {number(reading.upper)})"
            said.append(f"{_short(name)} {number(reading.value)}{band}")
    return f"{panel.x_label} {at}: {' · '.join(said)}"


def _short(name: str) -> str:
    """``synthetic`` of ``synthetic, mean of 20``."""
    return name.partition(",")[0]


def cell_reading(shown: Shown, found: Joint, at: tuple[int, int]) -> str:
    """What the bins (across, up) at the cursor hold."""
    across, up = at
    own = found.confidential
    value = float(own.shares[up, across])
    records = round(value * shown.columns[0].confidential.size)
    parts = [f"{CONFIDENTIAL} {percent(value)} ({records:,})"]
    if found.released is not None and found.difference is not None:
        parts.append(f"{_short(found.name)} {percent(float(found.released.shares[up, across]))}")
        parts.append(f"{100 * float(found.difference.shares[up, across]):+.2g} points")
    x, y = shown.columns
    return f"{x.name} {own.x.words(across)}, {y.name} {own.y.words(up)}: {' · '.join(parts)}"


def scatter_reading(shown: Shown, found: Scatter, x: float, width: float) -> str:
    """How many points lie within half a ``width`` of ``x``, and where."""
    said = []
    for one in found.series:
        near = sorted(one.y[abs(one.x - x) <= width / 2].tolist())
        if near:
            low, middle, high = (unit_text(near[i], found.y_unit) for i in (0, len(near) // 2, -1))
            said.append(f"{one.name} {len(near)} points, {low} .. {high}, median {middle}")
    across, up = shown.columns
    return f"{across.name} {unit_text(x, found.x_unit)}: {up.name} of {' · '.join(said)}"


def exhibit_of(shown: Shown, run_id: int | None) -> Exhibit:
    """The picture and its numbers as files that say they are confidential."""
    where = "" if run_id is None else f"run-{run_id}-"
    name = "-".join([*(column.name for column in shown.columns), shown.wanted.picture.replace(" ", "-")])
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
    return Exhibit(f"confidential-{where}{safe}", lambda: shown_lines(shown), lambda: shown_figure(shown))


def shown_figure(shown: Shown) -> Figure:
    """The picture for a file."""
    found = shown.found
    title = f"CONFIDENTIAL: {shown.title}"
    caption = ". ".join(("Drawn from confidential records", *shown.notes))
    if isinstance(found, Marginal):
        return Figure(title, found.figure.kind, _logged(found.figure.panels, log=shown.wanted.log_up), caption)
    names = [column.name for column in shown.columns]
    if isinstance(found, Joint):
        return Figure(title, "heat", found.figure(title, names[0], names[1]).panels, caption)
    panel = Panel("", found.series, names[0], names[1], x_unit=found.x_unit, y_unit=found.y_unit)
    return Figure(title, "scatter", (panel,), caption)


def _logged(panels: Sequence[Panel], *, log: bool) -> tuple[Panel, ...]:
    return tuple(replace(panel, title="Confidential", log_y=log) for panel in panels)


def shown_lines(shown: Shown) -> Lines:
    """The numbers of the picture, with all digits; logarithms are those of base 10."""
    found = shown.found
    if isinstance(found, Joint):
        return _cell_lines(shown, found)
    series = found.figure.panels[0].series if isinstance(found, Marginal) else found.series
    names = found.figure.panels[0].x_names if isinstance(found, Marginal) else ()
    rows = [(*_draw_name(series, one), *point) for one in series for point in _points(one, names)]
    up = "share" if isinstance(found, Marginal) else shown.columns[1].name
    return ("data", "dataset", shown.columns[0].name, up, "lower", "upper"), rows


def _draw_name(series: Sequence[FigureSeries], one: FigureSeries) -> tuple[str, int | None]:
    """The name of a series, and the number of a dataset's own line."""
    thin = [other for other in series if other.thin]
    return one.name, thin.index(one) + 1 if one.thin else None


def _points(one: FigureSeries, names: Sequence[str]) -> list[tuple[object, ...]]:
    ends = [[None] * one.x.size if bound is None else bound.tolist() for bound in (one.lower, one.upper)]
    at: Sequence[object] = [names[round(x)] for x in one.x.tolist()] if names else one.x.tolist()
    return list(zip(at, one.y.tolist(), *ends, strict=True))


def _cell_lines(shown: Shown, found: Joint) -> Lines:
    own, parts = found.confidential, (found.confidential, found.released, found.difference)
    rows: list[Sequence[object]] = []
    for up in range(len(own.y)):
        for across in range(len(own.x)):
            values = [None if one is None else float(one.shares[up, across]) for one in parts]
            if any(values):
                rows.append((*_ends(own.x, across), *_ends(own.y, up), *values))
    heads = [head for column in shown.columns for head in (f"{column.name}, from", f"{column.name}, below")]
    return (*heads, CONFIDENTIAL, found.name, "difference"), rows


def _ends(bins: Bins, i: int) -> Sequence[object]:
    return (bins.names[i], None) if bins.names else (float(bins.edges[i]), float(bins.edges[i + 1]))
