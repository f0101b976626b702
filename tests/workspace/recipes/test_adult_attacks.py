"""The recipe that attacks a release of Adult: what smooth trees keep to themselves, deep ones give away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_run

DEEP = [f"synthesis[{k}].minbucket=2" for k in range(1, 7)]


@pytest.mark.study  # of drawn tables with and without a leak tests/engine/risk/test_added_risk.py shows it
def test_deep_trees_give_occupations_away_and_smooth_ones_do_not(public_data: Callable[[str], Path]) -> None:
    def attacked(settings: list[str]) -> Mapping[str, tuple[float, float]]:
        small = ["data.sample=1500", "release.m=1", *settings]
        prepared = prepare_run(find_recipe("adult-attacks"), str(public_data("adult.csv")), None, small, key=PUBLIC)
        assert prepared.data.controls is not None
        rows = execute_run(prepared.recipe, prepared.data, key=PUBLIC).rows
        return {
            f"{row.method}.{row.measure} {row.target}": (row.lower, row.upper)
            for row in rows
            if row.dataset == "synthetic" and row.draw is None and row.lower is not None and row.upper is not None
            if not {"guesses", "people"} & row.params.keys()
        }

    smooth, deep = attacked([]), attacked(DEEP)
    assert smooth["attribute_inference.excess_risk occupation"][0] < 0.05
    assert deep["attribute_inference.excess_risk occupation"][0] > 0.1
    assert deep["membership_inference.auc "][0] > smooth["membership_inference.auc "][1]
    assert {"singling_out.excess_risk ", "attribute_inference.excess_risk hours_per_week"} <= smooth.keys()
