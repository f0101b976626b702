"""Published figures beside several runs' own rows."""

from __future__ import annotations

from dataclasses import replace

from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.published import (
    FigureComparison,
    PublishedFigure,
    RunFigures,
    ratio_to_published,
    source_tables,
)

RISK, GAP = "risk.attribute.risk", "utility.ecdf.max_abs_difference"


def row(value: float | None, dataset: str = "synthetic", radius: int = 5, draw: int | None = None) -> Row:
    return Row("risk", "attribute", "risk", "", dataset, draw, None, value, params={"radius": {"days": radius}})


def figure(
    value: float, dataset: str = "synthetic", radius: int | None = 5, source: str = "Table 3"
) -> PublishedFigure:
    params = {} if radius is None else {"radius": {"days": radius}}
    return PublishedFigure(value=RISK, dataset=dataset, figure=value, source=source, params=params)  # type: ignore[arg-type]


BAYES = RunFigures(
    "Bayesian",
    [figure(636.0, "confidential"), figure(126.0), figure(146.0, radius=10), figure(126.07, source="Table 8")],
    [row(640.0, "confidential"), row(120.0), row(130.0, draw=1), row(660.0, "confidential", 10), row(150.0, radius=10)],
)
CART = RunFigures(
    "CART", [figure(238.5, source="Table 8")], [row(641.0, "confidential"), row(250.0), row(280.0, radius=10)]
)


def test_a_line_has_the_confidential_data_and_every_run_beside_the_published() -> None:
    third, eighth = source_tables([BAYES, CART])
    assert (third.source, third.columns) == ("Table 3", ("confidential", "Bayesian", "CART"))
    assert [line.cells for line in third.lines] == [
        (FigureComparison(640.0, 636.0), FigureComparison(120.0, 126.0), FigureComparison(250.0, None)),
        (FigureComparison(660.0, None), FigureComparison(150.0, 146.0), FigureComparison(280.0, None)),
    ]
    assert eighth.source == "Table 8"
    (line,) = eighth.lines
    assert line.cells == (
        FigureComparison(640.0, None),
        FigureComparison(120.0, 126.07),
        FigureComparison(250.0, 238.5),
    )
    assert (line.value, line.params, line.note) == (RISK, {"radius": {"days": 5}}, "")


def test_a_figure_without_parameters_stands_beside_every_row_it_speaks_of() -> None:
    (table,) = source_tables([replace(BAYES, published=[figure(130.0, radius=None)])])
    assert [line.cells[1] for line in table.lines] == [FigureComparison(120.0, 130.0), FigureComparison(150.0, 130.0)]


def test_the_first_rows_of_all_figures_come_before_the_second() -> None:
    rows = [row(1.0), row(2.0, radius=10), replace(row(3.0), level=0.1), replace(row(4.0, radius=10), level=0.1)]
    figures = [figure(9.0, radius=None), replace(figure(9.0, radius=None), level=0.1)]
    (table,) = source_tables([RunFigures("x", figures, rows)])
    assert [line.cells[1].ours for line in table.lines] == [1.0, 3.0, 2.0, 4.0]


def test_a_figure_without_a_row_is_shown_as_such() -> None:
    lost = replace(figure(0.008), value=GAP, target="days")
    inherent = replace(figure(0.5, "confidential"), value=GAP)
    (table,) = source_tables([replace(BAYES, published=[lost]), replace(CART, published=[inherent])])
    assert [line.cells for line in table.lines] == [
        (FigureComparison(), FigureComparison(None, 0.008), FigureComparison()),
        (FigureComparison(None, 0.5), FigureComparison(), FigureComparison()),
    ]
    assert {line.note for line in table.lines} == {"the run has no such row"}


def test_a_confidential_figure_of_a_companion_may_find_its_row_in_the_main_run() -> None:
    without = replace(CART, published=[figure(636.0, "confidential")], rows=[row(250.0)])
    (table,) = source_tables([replace(BAYES, published=[]), without])
    assert [line.cells for line in table.lines] == [
        (FigureComparison(640.0, 636.0), FigureComparison(120.0, None), FigureComparison(250.0, None))
    ]


def test_a_value_that_was_not_computed_keeps_its_reason() -> None:
    uncomputed = replace(row(None), status="not computed", reason="no record has a unique match")
    (table,) = source_tables([RunFigures("x", [figure(0.9)], [uncomputed])])
    assert table.lines[0].cells == (FigureComparison(), FigureComparison(None, 0.9))
    assert table.lines[0].note == "no record has a unique match"


def test_a_ratio_needs_both_values_and_a_published_one_that_is_not_0() -> None:
    assert ratio_to_published(3.0, 2.0) == 1.5
    assert ratio_to_published(0.0, 2.0) == 0.0
    assert ratio_to_published(3.0, 0.0) is None
    assert ratio_to_published(None, 2.0) is None
    assert ratio_to_published(3.0, None) is None
    assert FigureComparison(1.0, 4.0).ratio == 0.25
    assert source_tables([]) == ()
