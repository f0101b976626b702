"""The triangle of pairs has each number once, in the place of its pair."""

import xml.etree.ElementTree as ET

import numpy as np

from sfumato.engine.methods.rows import Row
from sfumato.workspace.plots.figure import describe_figure
from sfumato.workspace.plots.svg import figure_svg
from sfumato.workspace.plots.triangle import triangle_figures


def row(a: str, b: str, value: float | None, dataset: str = "synthetic") -> Row:
    return Row("utility", "margin_distance", "pair", a, dataset, None, None, value, unit="share", params={"other": b})


ROWS = [row("age", "sex", 0.1), row("age", "pay", 0.2), row("sex", "pay", None), row("age", "sex", 0.9, "confidential")]


def test_numbers_stand_below_the_diagonal_and_kept_pairs_beside_them() -> None:
    (figure,) = triangle_figures(ROWS, {frozenset(("pay", "age"))})
    sizes, kept = (panel.cells for panel in figure.panels)
    assert sizes is not None
    assert kept is not None
    assert sizes.x.names == ("age", "sex", "pay")
    assert np.array_equal(sizes.shares, [[0, 0, 0], [0.1, 0, 0], [0.2, 0, 0]])
    assert np.array_equal(kept.shares, [[0, 0, 0], [0, 0, 0], [1, 0, 0]])
    assert "1 of 2 pairs are in a table" in describe_figure(figure)
    ET.fromstring(figure_svg(figure, "one"))


def test_nothing_is_drawn_without_pairs_nor_a_second_panel_without_tables() -> None:
    assert triangle_figures([row("age", "", 0.1)], set()) == []
    (figure,) = triangle_figures(ROWS, set())
    assert len(figure.panels) == 1
