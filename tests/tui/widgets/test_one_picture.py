"""The same plot in the terminal and in a file: what stands where must agree, whatever the characters."""

import math
import re
import subprocess
import sys

import numpy as np
import pytest

from sfumato.tui.terminal.glyphs import ASCII, BLOCK, BRAILLE
from sfumato.tui.widgets.canvas import SERIES
from sfumato.tui.widgets.chart import draw_chart
from sfumato.tui.widgets.frame import ChartStyle, PlotLabels
from sfumato.workspace.plots.figure import Figure, Panel
from sfumato.workspace.plots.series import Series
from sfumato.workspace.plots.svg import figure_svg

GLYPHS = pytest.mark.parametrize("glyphs", [BRAILLE, BLOCK, ASCII], ids=lambda glyphs: glyphs.name)
POINTS = ([0.0, 1.0, 2.5, 4.0, 7.0, 10.0], [3.0, 9.0, 1.0, 6.0, 0.0, 8.0])
SIZE = (90, 34)


def figure(kind, *series, **more):
    return Figure("Figure", kind, (Panel("", tuple(series), **more),))


def in_cells(found, glyphs):
    """Column and row of the middle of every cell that the first series inks."""
    panel = found.panels[0]
    chart = draw_chart(found.drawn_series(panel), SIZE, PlotLabels(x_names=panel.x_names), ChartStyle(glyphs))
    frame = chart.frame
    area = chart.picture.inks[frame.top : frame.top + frame.rows, frame.left : frame.left + frame.columns]
    rows, columns = np.nonzero(area == SERIES)
    return columns.astype(float), -rows.astype(float), (frame.columns, frame.rows)


def in_file(found):
    """Where the dots of the SVG are."""
    places = re.findall(r"M([-\d.]+),([-\d.]+)h0", str(figure_svg(found, "plot")))
    across, up = np.array(places, dtype=float).T
    return across, -up


def shares(values):
    return (values - values.min()) / (values.max() - values.min())


@GLYPHS
def test_points_stand_where_they_do_in_a_file_within_a_cell(glyphs):
    found = figure("scatter", Series("runs", *POINTS))
    columns, rows, (width, height) = in_cells(found, glyphs)
    across, up = in_file(found)
    assert len(across) == len(columns) == len(POINTS[0])
    drawn, written = np.argsort(columns), np.argsort(across)
    assert np.abs(shares(columns)[drawn] - shares(across)[written]).max() <= 1.5 / width
    assert np.abs(shares(rows)[drawn] - shares(up)[written]).max() <= 1.5 / height


def test_points_that_are_moved_are_noticed():
    moved = figure("scatter", Series("runs", POINTS[0], [*POINTS[1][:2], 5.0, *POINTS[1][3:]]))
    columns, rows, (_, height) = in_cells(figure("scatter", Series("runs", *POINTS)), BRAILLE)
    across, up = in_file(moved)
    assert np.abs(shares(rows)[np.argsort(columns)] - shares(up)[np.argsort(across)]).max() > 1.5 / height


ODD = {
    "bars of 0": figure("histogram", Series("a", [1, 2, 3], [0, 0, 0])),
    "one bar": figure("histogram", Series("a", [1], [4])),
    "one point": figure("scatter", Series("a", [5], [5])),
    "one point of a line": figure("sweep", Series("a", [5], [5], [4], [6])),
    "nothing": figure("sweep"),
    "an empty series": figure("sweep", Series("a", [], [])),
    "no number": figure("sweep", Series("a", [1, math.nan, math.inf], [math.nan, 1, 2])),
    "a gap": figure("sweep", Series("a", [1, 2, 3], [1, math.nan, 3], [0, math.nan, 2], [2, math.nan, 4])),
    "huge": figure("sweep", Series("a", [-1e299, 0, 1e299], [1e-299, 1, 1e299])),
    "tiny": figure("sweep", Series("a", [0, 1e-300], [1e-300, 2e-300])),
    "names": figure("intervals", Series("a", [0], [1], [0], [2]), x_names=("a",)),
}


@GLYPHS
@pytest.mark.parametrize("name", ODD)
def test_odd_data_are_drawn_in_the_terminal_and_in_a_file(name, glyphs):
    found = ODD[name]
    panel = found.panels[0]
    chart = draw_chart(found.drawn_series(panel), SIZE, PlotLabels(x_names=panel.x_names), ChartStyle(glyphs))
    text = figure_svg(found, "plot")
    assert (chart.picture.width, chart.picture.height) == SIZE
    assert not re.search(r"[\"\s(,](nan|-?inf)", str(text))


@GLYPHS
def test_a_thin_series_is_drawn_under_the_one_of_its_name_in_both(glyphs):
    thin = Series("mean", [0, 1, 2], [0, 1, 2], thin=True)
    found = figure("sweep", thin, Series("mean", [0, 1, 2], [2, 1, 0]))
    chart = draw_chart(found.drawn_series(found.panels[0]), SIZE, PlotLabels(), ChartStyle(glyphs))
    assert chart.frame.legend.n_shown == 1
    assert str(figure_svg(found, "plot")).count(">mean<") == 1


@GLYPHS
def test_a_band_ends_at_a_gap_in_both(glyphs):
    gap = [0.0, 1.0, math.nan, 3.0, 4.0]
    lower, upper = (np.array(gap) * 0 + end for end in (1.0, 5.0))
    found = figure("sweep", Series("a", range(5), np.array(gap) * 0 + 3, lower, upper))
    chart = draw_chart(found.drawn_series(found.panels[0]), SIZE, PlotLabels(), ChartStyle(glyphs))
    frame = chart.frame
    fills = chart.picture.fills[frame.top : frame.top + frame.rows, frame.left : frame.left + frame.columns]
    middle = slice(int(0.3 * frame.columns), int(0.7 * frame.columns))
    assert not fills[:, middle].any()
    assert fills[:, : int(0.2 * frame.columns)].any()
    polygons = re.findall(r'<polygon points="([^"]*)"', str(figure_svg(found, "plot")))
    assert [len(points.split()) for points in polygons] == [4, 4]


@pytest.mark.slow
def test_what_draws_in_the_terminal_waits_for_no_large_library():
    script = "import sys, sfumato.tui.widgets.heatmap, sfumato.tui.findings.study, sfumato.tui.findings.distribution; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    loaded = set(done.stdout.split())
    assert {"numpy", "textual"} <= loaded
    assert not loaded & {"scipy", "pandas", "duckdb", "pyarrow"}
