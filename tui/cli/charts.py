"""Figures on the terminal: every panel a chart of characters, one below the other."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.errors import BadInput
from sfumato.workspace.plots.figure import Figure, Panel, make_shade_steps
from sfumato.workspace.plots.series import Series
from sfumato.workspace.plots.svg import figure_svg
from sfumato.workspace.reporting.terminal_text import fold_text
from sfumato.workspace.store.runs import finished_with_companions
from sfumato.workspace.views.figures import draw_run_figures
from sfumato.workspace.visible_text import replace_unprintable

from ..terminal.glyphs import find_glyphs
from ..widgets.chart import draw_chart_text
from ..widgets.heat import HeatPane, draw_heat_map
from .speech import TerminalDrawing

if TYPE_CHECKING:
    from sfumato.workspace.store.workspace import Workspace


def draw_figures(
    workspace: Workspace,
    run_id: str,
    width: int | None = None,
    height: int = 16,
    datasets: int = 3,
    widths: Sequence[str] = (),
    *,
    public: bool = False,
) -> TerminalDrawing:
    """Draw the figures of a run as text; as wide as the terminal when no width is given."""
    figures = _run_figures(workspace, run_id, datasets, widths, public=public)
    across = width or shutil.get_terminal_size().columns
    colours = terminal_colours()
    return TerminalDrawing("\n\n".join(figure_text(figure, across, height, colours) for figure in figures))


def terminal_colours() -> str | None:
    """Return Rich's name for the terminal's colours; None for a file, and where the user wants no colour."""
    if not sys.stdout.isatty():
        return None
    from rich.console import Console

    console = Console(file=sys.stdout)
    return None if console.no_color else console.color_system


def _run_figures(
    workspace: Workspace, run_id: str, datasets: int, widths: Sequence[str], *, public: bool
) -> list[Figure]:
    """Return the figures of a run and its companions; the public ones of the run alone."""
    runs = finished_with_companions(workspace, run_id)
    if not public:
        return draw_run_figures(workspace, runs, datasets, parse_bin_widths(widths))
    from sfumato.workspace.release.report import check_charged  # it loads what few figures need

    check_charged(workspace, runs[0].id)
    return draw_run_figures(workspace, runs[:1], datasets, parse_bin_widths(widths), public=True)


def write_svgs(
    workspace: Workspace, run_id: str, directory: Path, datasets: int, widths: Sequence[str], *, public: bool = False
) -> list[Path]:
    """Write one SVG file for each figure to a directory, replacing existing files; return their paths."""
    figures = _run_figures(workspace, run_id, datasets, widths, public=public)
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"figure-{i:02d}.svg" for i in range(1, len(figures) + 1)]
    for path, figure in zip(paths, figures, strict=True):
        path.write_text(f'<?xml version="1.0" encoding="UTF-8"?>\n{figure_svg(figure, path.stem)}\n', "utf-8")
    return paths


def parse_bin_widths(texts: Sequence[str]) -> dict[str, float]:
    """Parse widths such as ``availability_365=25``. Raises BadInput."""
    widths = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        try:
            widths[name.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise BadInput(f"--bin-width {text}", "write variable=width, such as availability_365=25")
    return widths


def figure_text(figure: Figure, width: int, height: int, colours: str | None = None) -> str:
    """Return title, panels and caption in lines of at most ``width`` cells, each panel ``height`` lines high."""
    # Titles, names and captions come from untrusted files: each is made printable here or where a panel is drawn.
    panels = [_panel_text(figure, panel, width, height, colours) for panel in figure.panels]
    return "\n".join(
        part
        for part in (f"{_wrap_printable(figure.title, width)}\n", *panels, _wrap_printable(figure.caption, width))
        if part
    )


def _wrap_printable(words: str, width: int) -> str:
    return "\n".join(fold_text(replace_unprintable(words), width))


def _panel_text(figure: Figure, panel: Panel, width: int, height: int, colours: str | None) -> str:
    """Return a panel as a chart of characters, with its note."""
    if panel.cells is not None:
        return heat_map_text(figure, panel, width, height)
    log = panel.log_x
    chart = draw_chart_text(
        _interval_series(panel) if figure.kind == "intervals" else figure.drawn_series(panel),
        width,
        height,
        colour=colours is not None,
        colour_system=colours or "standard",
        title=panel.title,
        x_label=panel.x_label,
        y_label=panel.y_label,
        x_names=panel.x_names,
        x_range=(-0.5, len(panel.x_names) - 0.5) if panel.x_names else None,
        x_unit="log10" if log else panel.x_unit,
        log_y=panel.log_y,
    )
    return f"{chart}\n{_wrap_printable(panel.note, width)}" if panel.note else chart


def heat_map_text(figure: Figure, panel: Panel, width: int, height: int) -> str:
    """Return a heat map in characters, with their legend."""
    assert panel.cells is not None
    # All maps of a figure have the same shades, so that they can be compared.
    alike = [one.cells for one in figure.panels if one.cells and one.cells.signed == panel.cells.signed]
    pane = HeatPane(panel.title, panel.cells, make_shade_steps(alike))
    picture = draw_heat_map([pane], (width, height), find_glyphs(), colour=False, labels=(panel.x_label, panel.y_label))
    return "\n".join(picture.row_text(row).rstrip() for row in range(picture.height))


def _interval_series(panel: Panel) -> list[Series]:
    """Return all estimates of a panel as one series."""
    # Their names stand below the axis, so they need no signs of their own.
    columns = [(one.x, one.y, _bound_or_nan(one.lower, one.x), _bound_or_nan(one.upper, one.x)) for one in panel.series]
    x, y, lower, upper = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return [Series("estimate, interval", x, y, lower, upper, marker="points")]


def _bound_or_nan(bound: NDArray[np.float64] | None, x: NDArray[np.float64]) -> NDArray[np.float64]:
    # An interval without ends is drawn as a point.
    return np.full(x.shape, np.nan) if bound is None else bound
