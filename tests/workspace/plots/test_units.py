"""Axes of numbers, of logarithms and of days."""

import datetime as dt
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.workspace.plots.axes import unit_text, unit_ticks
from sfumato.workspace.plots.figure import Figure, Panel
from sfumato.workspace.plots.series import Series
from sfumato.workspace.plots.svg import figure_svg

SVG = "{http://www.w3.org/2000/svg}"
EPOCH = dt.date(1970, 1, 1)


def day(text):
    return (dt.date.fromisoformat(text) - EPOCH).days


@pytest.mark.parametrize(
    ("low", "high", "most", "labels"),
    [
        ("2019-03-01", "2019-03-03", 4, ["2019-03-01", "2019-03-02", "2019-03-03"]),
        ("2018-12-15", "2019-04-15", 5, ["2019-01", "2019-02", "2019-03", "2019-04"]),
        ("2018-12-15", "2019-12-15", 5, ["2019-01", "2019-04", "2019-07", "2019-10"]),
        ("1969-06-01", "1975-06-01", 4, ["1970", "1972", "1974"]),
        ("1951-01-01", "1999-06-01", 5, ["1960", "1970", "1980", "1990"]),
    ],
)
def test_days_are_marked_at_the_beginnings_of_periods(low, high, most, labels):
    ticks, found = unit_ticks(day(low), day(high), most, "date")
    assert found == labels
    starts = [f"{label}-01-01"[:10] if len(label) != 7 else f"{label}-01" for label in labels]
    assert ticks.tolist() == [day(start) for start in starts]


@given(st.integers(-100_000, 100_000), st.integers(1, 200_000), st.integers(0, 12), st.sampled_from(["date", "log10"]))
def test_ticks_lie_inside_in_order_and_are_few(low, span, most, unit):
    scale = 1.0 if unit == "date" else 1e-4
    ticks, labels = unit_ticks(low * scale, (low + span) * scale, most, unit)
    assert len(labels) == len(ticks) <= most
    assert all(low * scale - 1e-6 <= tick <= (low + span) * scale + 1e-6 for tick in ticks)
    assert all(np.diff(ticks) > 0)


def test_logarithms_are_named_by_their_numbers():
    ticks, labels = unit_ticks(0, 3, 4, "log10")
    assert (ticks.tolist(), labels) == ([0, 1, 2, 3], ["1", "10", "100", "1000"])
    assert unit_text(2.0, "log10") == "100"
    assert unit_text(day("2019-07-31") + 0.5, "date") == "2019-07-31"


def sweep(log, values=(0.001, 0.01, 0.1, 0.0)):
    lower = [0.0, 0.005, 0.05, 0.0]
    series = Series("synthetic", range(4), values, lower, [2 * value for value in values])
    return ET.fromstring(str(figure_svg(Figure("t", "sweep", (Panel("p", (series,), "S", log_y=log),)), "f")))


def heights(root):
    return [
        float(pair.split(",")[1])
        for line in root.iter(f"{SVG}polyline")
        if len(line.get("points").split()) > 2
        for pair in line.get("points").split()
    ]


def test_on_a_logarithmic_axis_equal_ratios_are_equal_distances_and_0_is_not_drawn():
    drawn = heights(sweep(True))
    assert len(drawn) == 3
    assert drawn[0] - drawn[1] == pytest.approx(drawn[1] - drawn[2], abs=0.2)
    assert len(heights(sweep(False))) == 4
    texts = [text.text for text in sweep(True).iter(f"{SVG}text")]
    assert {"0.01", "0.1"} <= set(texts)


def test_a_band_that_reaches_0_ends_at_the_bottom_of_a_logarithmic_axis():
    root = sweep(True)
    (polygon,) = root.iter(f"{SVG}polygon")
    ends = [float(pair.split(",")[1]) for pair in polygon.get("points").split()]
    assert all(math.isfinite(end) for end in ends)
    assert max(ends) == max(float(line.get("y1")) for line in root.iter(f"{SVG}line") if line.get("stroke") == "#333333")  # fmt: skip


def test_without_a_value_above_0_a_logarithmic_axis_is_linear():
    assert heights(sweep(True, (0.0, 0.0, 0.0, 0.0))) == heights(sweep(True, (0.0, 0.0, 0.0, 0.0)))


def test_a_series_may_be_drawn_unlike_the_others():
    points = Series("runs", [0, 1], [0, 1])
    line = Series("limit", [0, 1], [0.5, 0.5], marker="line")
    figure = Figure("t", "map", (Panel("p", (points, line)),))
    assert (figure.series_marker("runs"), figure.series_marker("limit")) == ("points", "line")
    root = ET.fromstring(str(figure_svg(figure, "f")))
    assert len(list(root.iter(f"{SVG}polyline"))) == 2
