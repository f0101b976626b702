"""The recipe of the Consumer Expenditure Survey: scored with a radius of 20 % as the lecture does, on the sample that is public."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sfumato.engine.execution.tasks import RunResult, execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import PreparedRun, prepare_run

LECTURE = {"expected_match_risk": 10.5975 / 101.41, "true_match_rate": 0.0003896357 / 0.0045}
"""What is left of each of the original's risks in the lecture's release, of 5,133 households."""


@pytest.fixture
def households(public_data: Callable[[str], Path]) -> PreparedRun:
    return prepare_run(find_recipe("ce"), str(public_data("ce.csv")), None, [], key=PUBLIC)


@pytest.fixture
def scored(households: PreparedRun) -> RunResult:
    return execute_run(households.recipe, households.data, key=PUBLIC)


def risks(scored: RunResult, dataset: str) -> dict[str, float | None]:
    return {
        row.measure: row.value
        for row in scored.rows
        if (row.method, row.dataset, row.draw) == ("identification", dataset, None)
    }


def test_the_original_s_risks_are_those_of_the_lecture_s_own_loop(households: PreparedRun, scored: RunResult) -> None:
    """``CalculateKeyQuantities_cont`` of the lecture, r = 0.2, and ``IdentificationRiskCal``, on the original itself."""
    frame = households.data.frame
    spent, kept = (
        frame.Expenditure.to_numpy(),
        frame[["UrbanRural", "Race"]].astype(str).agg("/".join, axis=1).to_numpy(),
    )
    c = np.array(
        [
            np.sum((spent <= x + 0.2 * x) & (spent >= x - 0.2 * x) & (kept == k))
            for x, k in zip(spent, kept, strict=True)
        ]
    )
    found = risks(scored, "confidential")
    assert found["expected_match_risk"] == pytest.approx(np.sum(1 / c)) == pytest.approx(65.402, abs=5e-4)
    assert found["true_match_rate"] == np.mean(c == 1) == pytest.approx(20 / 994)
    assert (found["false_match_rate"], found["unique_matches"]) == (0, 20)


def test_the_release_keeps_about_as_small_a_part_of_the_risk_as_the_lecture_s(
    households: PreparedRun, scored: RunResult
) -> None:
    original, release = risks(scored, "confidential"), risks(scored, "synthetic")
    assert 7 < (release["expected_match_risk"] or 0) < 11
    assert (release["expected_match_risk"] or 0) / (original["expected_match_risk"] or 1) < 2 * LECTURE[
        "expected_match_risk"
    ]
    assert 0.7 < (release["false_match_rate"] or 0) < 0.95, "the lecture's 0.92: nearly every unique match is wrong"
    assert (release["true_match_rate"] or 0) < 0.25 * (original["true_match_rate"] or 0)
    beside = [row for row in scored.rows if any(figure.matches(row) for figure in households.recipe.published)]
    assert len(beside) == len(households.recipe.published) == 8
