"""The risk-utility map: which runs stand where, and which none of the others beats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows
from sfumato.workspace.views.risk_utility import (
    MapAxis,
    MapCoordinate,
    RiskUtilityMap,
    finished_run_ids,
    read_risk_utility_map,
)

Enter = Callable[..., int]
RISK = MapAxis("risk.a.rate", "", "{}", None, "low", "")
USE = MapAxis("utility.b.overlap", "", "{}", None, "high", "")
SPARSE = [{"target": name, "method": "linear_regression", "predictors": ["region"]} for name in ("visits", "income")]
PLAIN = MapAxis("utility.b.estimate", "", "{}", None, "none", "")


@pytest.mark.slow
def test_every_average_of_every_run_that_is_done_is_an_axis(workspace: Workspace, enter: Enter) -> None:
    one, two = enter(), enter(synthesis=SPARSE)
    run_worker(workspace.directory, idle=0)
    enter()
    with Workspace.open(workspace.directory, read_only=True) as reader:
        found = read_risk_utility_map(reader, 1)
        assert finished_run_ids(reader, 1) == tuple(found.run_titles) == (one, two)
    for run_id in (one, two):
        for row in read_result_rows(workspace, run_id):
            if row.draw is None and row.dataset != "confidential" and row.value is not None:
                (axis,) = [a for a in found.axes if (a.key, a.target, a.settings) == (row.key, row.target, row.params)]
                place = found.coordinates[axis.ident][run_id]
                assert (place.value, place.lower, place.upper) == (row.value, row.lower, row.upper)
    own = {
        row.key: row.value
        for row in read_result_rows(workspace, one)
        if row.dataset == "confidential" and row.value is not None
    }
    named = {axis.ident: axis for axis in found.axes}
    assert {named[ident].key for ident in found.confidential_values if ident in named} <= set(own)
    assert any(
        found.confidential_values[axis.ident] == own[axis.key]
        for axis in found.axes
        if axis.ident in found.confidential_values
    )
    goals = {axis.key: axis.goal for axis in found.axes}
    assert goals["risk.identification.true_match_rate"] == goals["utility.ecdf.max_abs_difference"] == "low"


def on(*values: tuple[float, float], axes: tuple[MapAxis, MapAxis] = (RISK, USE)) -> RiskUtilityMap:
    places = {
        axis.ident: {run: MapCoordinate(pair[i], None, None) for run, pair in enumerate(values, start=1)}
        for i, axis in enumerate(axes)
    }
    return RiskUtilityMap({run: f"run {run}" for run in range(1, len(values) + 1)}, axes, places, {})


def test_a_run_is_efficient_by_the_goals_of_both_axes() -> None:
    found = on((0.1, 0.5), (0.2, 0.9), (0.3, 0.8), (0.05, 0.1)).points_on(RISK, USE)
    assert {point.run_id: point.is_efficient for point in found} == {4: True, 1: True, 2: True, 3: False}
    assert [point.x.value for point in found] == [0.05, 0.1, 0.2, 0.3]


def test_where_1_is_best_a_copy_is_not_efficient() -> None:
    """Equal risk: a copy has 0, a fitted model 1.1, a poor one 4."""
    ratio = replace(PLAIN, goal="one")
    found = on((0.2, 0.0), (0.2, 1.1), (0.2, 4.0), axes=(RISK, ratio)).points_on(RISK, ratio)
    assert {point.y.value: point.is_efficient for point in found} == {0.0: False, 1.1: True, 4.0: False}


def test_without_a_goal_no_run_is_better() -> None:
    found = on((1, 1), (2, 2), axes=(RISK, PLAIN)).points_on(RISK, PLAIN)
    assert [point.is_efficient for point in found] == [None, None]


@pytest.mark.parametrize("axes", [(RISK, PLAIN), (PLAIN, PLAIN)])
def test_a_run_without_one_of_the_numbers_is_left_out(axes: tuple[MapAxis, MapAxis]) -> None:
    assert on((1, 1), axes=(RISK, USE)).points_on(*axes) == []


def test_the_map_opens_on_the_pair_of_numbers_that_most_runs_have() -> None:
    """One of three runs has the first risk; two have the second, and the second utility with it."""
    risks = [MapAxis(f"risk.identification.{name}", "", "{}", None, "low", "share") for name in ("a", "b")]
    utilities = [MapAxis(f"utility.ecdf.{name}", "", "{}", None, "low", "share") for name in ("a", "b")]
    place = MapCoordinate(0.5, None, None)
    runs_of = {risks[0]: [1], risks[1]: [2, 3], utilities[0]: [1, 2], utilities[1]: [2, 3]}
    places = {axis.ident: dict.fromkeys(runs, place) for axis, runs in runs_of.items()}
    found = RiskUtilityMap({1: "a", 2: "b", 3: "c"}, (*risks, *utilities), places, {})
    assert found.most_shared_axes == (risks[1], utilities[1])
    one_family = RiskUtilityMap({1: "a"}, (utilities[0],), places, {})
    assert one_family.most_shared_axes == (utilities[0], utilities[0])
