"""Figures as SVG: well formed, accessible, inside their frame, told apart without colour, and safe."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sfumato.workspace.plots.figure import CONFIDENTIAL, Figure, Panel
from sfumato.workspace.plots.series import Series
from sfumato.workspace.plots.svg import SvgScale, figure_svg

NS = "{http://www.w3.org/2000/svg}"
HOSTILE = '</title><script>alert(1)</script>" onload="x\x1b[31m'
finite = st.floats(-1e6, 1e6)


def bars(*names: str, title: str = "Days") -> Figure:
    x = np.array([0.5, 1.5, 2.5])
    series = tuple(Series(name, x, [3.0 + i, np.nan, 0.0]) for i, name in enumerate(names))
    return Figure(
        title, "histogram", (Panel("A", series, "days", "records"), Panel("B", series, "days", "records")), "About."
    )


def lines(*names: str) -> Figure:
    x = np.linspace(0, 1, 9)
    y = np.where(x == 0.5, np.nan, x)
    series = tuple(Series(name, x, y + i, y + i - 0.1, y + i + 0.1) for i, name in enumerate(names))
    return Figure("Sweep", "sweep", (Panel("A", series, "S", "share"),))


def intervals(*names: str) -> Figure:
    series = tuple(Series(name, [i], [5.0 + i], [4.0], [7.0 + i]) for i, name in enumerate(names))
    return Figure("Means", "intervals", (Panel("days", series, x_names=names, note="overlap: 0.9"),))


NAMES = (CONFIDENTIAL, "Bayesian", "CART", "third", "fourth")
FIGURES = [bars(*NAMES), lines(*NAMES), intervals(*NAMES)]


def read(figure: Figure) -> ET.Element:
    return ET.fromstring(figure_svg(figure, "f1"))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.kind)
def test_a_figure_names_and_describes_itself(figure: Figure) -> None:
    root = read(figure)
    title, desc = root.find(f"{NS}title"), root.find(f"{NS}desc")
    assert root.get("role") == "img"
    assert title is not None
    assert desc is not None
    assert root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}" == "f1-title f1-desc"
    assert title.text == figure.title
    assert "confidential" in (desc.text or "")
    words = {one.text for one in root.iter(f"{NS}text")}
    assert {panel.title for panel in figure.panels} <= words


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.kind)
def test_everything_is_drawn_inside_the_frame_and_no_number_is_missing(figure: Figure) -> None:
    root = read(figure)
    width, height = map(float, root.get("viewBox", "").split()[2:])
    assert "nan" not in figure_svg(figure, "f1").lower()
    for one in root.iter():
        xs = [float(one.get(key, "0")) for key in ("x", "x1", "x2")]
        ys = [float(one.get(key, "0")) for key in ("y", "y1", "y2")]
        if one.tag == f"{NS}polyline":
            points = [tuple(map(float, pair.split(","))) for pair in one.get("points", "").split()]
            xs, ys = [x for x, _ in points], [y for _, y in points]
        assert all(-0.01 <= x <= width for x in xs)
        assert all(-0.01 <= y <= height for y in ys)


def test_series_differ_in_dashes_hatches_and_shapes_not_in_colour_alone() -> None:
    dashes = [one.get("stroke-dasharray") for one in read(lines(*NAMES)).findall(f"{NS}polyline")]
    assert len(set(dashes)) == len(NAMES)
    fills = [one.get("fill") for one in read(bars(*NAMES)).findall(f"{NS}rect")]
    assert len(set(fills)) == len(NAMES)
    shapes = [
        one.get("d", "").split(" ", 1)[1] for one in read(intervals(*NAMES[:4])).iter(f"{NS}path") if one.get("fill")
    ]
    assert len(set(shapes)) == 4


def contrast(colour: str) -> float:
    """Contrast with white (WCAG 2.1)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)


def test_lines_stand_out_from_white() -> None:
    strokes = {one.get("stroke", "") for one in read(lines(*NAMES)).findall(f"{NS}polyline")}
    assert len(strokes) == len(NAMES)
    assert all(contrast(colour) >= 3 for colour in strokes)
    assert contrast("#f0e442") < 3, "the negative control: yellow on white"


def test_a_missing_value_is_a_gap_and_an_empty_bar_is_none() -> None:
    (panel,) = read(lines("only")).findall(f"{NS}g")
    assert len(panel.findall(f"{NS}polyline")) == 2
    first = read(bars("only")).findall(f"{NS}g")[0]
    assert len(first.findall(f"{NS}rect")) == 1


def test_heights_of_bars_are_in_proportion_to_their_values() -> None:
    x = np.arange(4.0)
    series = Series("only", x, [1.0, 2.0, 4.0, 8.0])
    root = read(Figure("t", "histogram", (Panel("A", (series,)),)))
    heights = [float(one.get("height", "0")) for one in root.findall(f"{NS}g")[0].findall(f"{NS}rect")]
    assert [b / a for a, b in pairwise(heights)] == pytest.approx([2, 2, 2], abs=0.01)


def test_nothing_that_a_name_holds_becomes_an_element() -> None:
    plain = [one.tag for one in read(bars(CONFIDENTIAL, "x")).iter()]
    hostile = read(bars(CONFIDENTIAL, HOSTILE, title=HOSTILE))
    assert [one.tag for one in hostile.iter()] == plain
    assert not any(key.startswith("on") for one in hostile.iter() for key in one.attrib)
    assert "\x1b" not in figure_svg(bars(HOSTILE), "f1")


def test_only_parts_of_the_document_itself_are_referred_to() -> None:
    text = figure_svg(bars(*NAMES), "f1")
    ids = set(re.findall(r' id="([^"]*)"', text))
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= ids
    assert "href" not in text
    assert len(re.findall(r' id="', text)) == len(ids)


def test_names_of_dates_are_thinned_out_and_those_of_runs_are_cut() -> None:
    dates = tuple(f"2020-01-{i:02}" for i in range(1, 17))
    series = (Series("only", range(16), [1.0] * 16),)
    shown = [
        one.text for one in read(Figure("t", "histogram", (Panel("", series, x_names=dates),) * 2)).iter(f"{NS}text")
    ]
    assert "2020-01-01" in shown
    assert len([one for one in shown if one in dates]) < 16
    long = "a name that is far too long to stand below its place in a narrow panel"
    cut = [one for one in read(intervals("a", long, "b")).iter(f"{NS}text") if (one.text or "").endswith("…")]
    assert [one[0].text for one in cut] == [long]


@pytest.mark.slow
@given(finite, finite)
def test_a_scale_is_linear_and_its_ticks_lie_in_it(low: float, high: float) -> None:
    assume(high - low > 1e-3)
    scale = SvgScale(low, high, 300.0, 20.0)
    assert scale.to_position(low) == pytest.approx(300)
    assert scale.to_position(high) == pytest.approx(20)
    assert scale.to_position((low + high) / 2) == pytest.approx(160)
    ticks = scale.labelled_ticks(6)
    assert len(ticks) <= 6
    slack = 1e-6 * (high - low)
    assert all(low - slack <= tick <= high + slack for tick, _ in ticks)


@settings(max_examples=50)
@given(st.floats(-6, 6), st.floats(0.01, 8), st.integers(2, 8))
def test_a_logarithmic_scale_has_few_round_ticks(exponent: float, decades: float, most: int) -> None:
    low, high = 10.0**exponent, 10.0 ** (exponent + decades)
    scale = SvgScale(low, high, 0.0, 100.0, log=True)
    assert scale.to_position(math.sqrt(low * high)) == pytest.approx(50)
    ticks = [value for value, _ in scale.labelled_ticks(most)]
    assert len(ticks) <= most
    assert all(low <= value <= high for value in ticks)
