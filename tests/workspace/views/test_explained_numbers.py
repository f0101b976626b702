"""What is read beside a number to explain it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.explained_numbers import LOGARITHM, read_explained_number
from sfumato.workspace.views.results import read_result_rows

KNOWS = {"known": ["region", "age"], "sensitive": ["visits"]}


@pytest.mark.slow
def test_a_guess_has_what_other_records_disclose_and_a_mean_its_spread(
    workspace: Workspace, enter: Callable[..., int], small_data: Microdata
) -> None:
    run_id = enter(
        measure=[{"method": "risk.attribute", **KNOWS}, {"method": "utility.summary"}],
        study=[
            {
                "method": "studies.intruder_uncertainty",
                "variable": "age",
                "levels": [0.0, 0.1],
                **KNOWS,
                "radius": {"income": "5%"},
            }
        ],
        threshold=[],
    )
    run_worker(workspace.directory, idle=0)
    rows = [one for one in read_result_rows(workspace, run_id) if one.draw is None and one.dataset == "synthetic"]
    others = next(one for one in read_result_rows(workspace, run_id) if one.measure == "risk_excluding_self")

    def others_reveal(measure: str) -> list[float | None]:
        """What other records disclose beside each number of a measure."""
        found = [read_explained_number(workspace, run_id, one) for one in rows if one.measure == measure]
        assert found
        return [None if one.others_reveal is None else one.others_reveal.value for one in found]

    assert set(others_reveal("attribute_risk")) == {others.value}
    assert others_reveal("risk") == [None], "it has its own yardstick"
    assert set(others_reveal("true_match_rate")) == {None}, "it guesses no value"
    mean = next(one for one in rows if one.measure == "mean")
    spread = read_explained_number(workspace, run_id, mean).spread
    assert spread == pytest.approx(np.std(small_data.present_numbers(mean.target), ddof=1))
    assert read_explained_number(workspace, run_id, next(one for one in rows if one.measure == "sd")).spread is None
    for measure in ("sd", "quantile"):
        row = next(one for one in rows if one.measure == measure and one.target == mean.target)
        found = read_explained_number(workspace, run_id, row)
        own = next(one.value for one in found.series_rows if one.dataset == "confidential")
        assert found.resampled is not None
        assert own is not None
        assert found.resampled[0] <= own <= found.resampled[1]
        assert found.logarithm == ""


@pytest.mark.parametrize(
    ("title", "is_logarithm"),
    [
        ("log of the payment", True),
        ("Logarithm of pay", True),
        ("log10 of pay", True),
        ("logistics of the firm", False),
    ],
)
def test_a_title_says_that_a_variable_is_a_logarithm(title: str, is_logarithm: bool) -> None:
    assert bool(LOGARITHM.match(title)) is is_logarithm
