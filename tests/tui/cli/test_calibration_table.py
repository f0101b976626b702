"""What the command line says of a calibration."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sfumato.engine.methods.registry import find_method
from sfumato.engine.methods.rows import Row, row_params
from sfumato.engine.recipe.published import PublishedFigure
from sfumato.engine.studies.calibration import summarise_calibration
from sfumato.tui.cli.summary import study_text


def simulated(level: float, score: float, lost: int) -> Row:
    counts = {"tests": 10, "lost": lost, "spurious": 0, "sign_flip": 0}
    params = {"generator": int(level) % 2, "size": 100, "subset": 0, "k": 2, **counts}
    return Row("studies", "calibration", "rho", "age", "confidential", None, level, score, params=params)


ROWS = summarise_calibration(
    [simulated(0, 0.99, 0), simulated(1, 0.95, 1), simulated(2, 0.50, 6), simulated(3, 0.4, 4)]
)


def published(measure: str, figure: float, **params: Any) -> PublishedFigure:
    value = f"studies.calibration.{measure}"
    return PublishedFigure(value=value, dataset="confidential", figure=figure, source="the paper", params=params)


def calibration_text(rows: Sequence[Row], figures: Sequence[PublishedFigure] = ()) -> str:
    return study_text(find_method("studies.calibration", ""), rows, figures)


def lines(*figures: PublishedFigure) -> list[list[str]]:
    return [line.split() for line in calibration_text(ROWS, figures).splitlines()]


def test_areas_and_errors_stand_beside_the_paper_s() -> None:
    shown = lines(
        published("auc", 0.69, score="rho", generators="all"),
        published("errors", 0.0432, passed=True),
        published("errors", 0.2571, passed=False),
    )
    assert [" ".join(line) for line in shown[:3]] == [
        "The study trained 2 generators.",
        "The study generated 4 original tables.",
        "The study scored and tested 4 anonymised tables.",
    ]
    auc = next(row.value for row in ROWS if row.measure == "auc" and row.params["generators"] == "all")
    heads = next(line for line in calibration_text(ROWS).splitlines() if line.startswith("score"))
    assert re.split("  +", heads)[1:5] == ["good", "suggested", "AUC", "AUC best"]
    assert next(line for line in shown if line and line[0] == "rho")[1:5] == ["0.725", "0.51", f"{auc:.4f}", "0.69"]
    assert ["any", "error", "0.05", "0.0432", "0.5", "0.2571"] in shown
    assert ["tests", "20", "20"] in shown
    heads = next(line for line in calibration_text(ROWS).splitlines() if line.startswith("share of tests"))
    assert re.split("  +", heads) == ["share of tests", "tables that pass", "the others"]


def test_a_setting_called_generators_is_not_taken_for_whose_area_a_row_is() -> None:
    step = find_method("studies.calibration", "")
    told = [replace(row, params=row_params(step, row.params, {"generators": 2, "originals": 2})) for row in ROWS]
    assert calibration_text(told) == calibration_text(ROWS)


def test_without_figures_there_are_no_columns_for_them() -> None:
    assert "published" not in calibration_text(ROWS)
    assert ["any", "error", "0.05", "0.5"] in lines()


def test_what_was_not_computed_is_a_dash() -> None:
    lacking = [replace(row, value=None) if row.measure == "suggested_threshold" else row for row in ROWS]
    measure = next(line for line in calibration_text(lacking).splitlines() if line.startswith("rho"))
    assert measure.split()[2] == "-"
