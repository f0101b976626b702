"""Columns of a run's releases, and the heat maps of a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Variable
from sfumato.tui.cli.charts import figure_text
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plots.column import VariableValues
from sfumato.workspace.plots.joint import pair_figures
from sfumato.workspace.store.artefacts import read_released_dataset
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.columns_beside import read_variable_values, released_dataset_hashes

Enter = Callable[..., int]


def column(name: str, own: list[float], *released: list[float]) -> VariableValues:
    return VariableValues(
        Variable(name, Kind.COUNT), np.array(own, float), tuple(np.array(one, float) for one in released)
    )


def cells_of(own: list[float], released: list[float]) -> dict[str, Any]:
    x, y = column("x", own, released), column("y", [0.0] * len(own), [0.0] * len(released))
    (figure,) = pair_figures([x, y])
    return {panel.title: panel.cells for panel in figure.panels}


def test_bins_of_one_or_two_confidential_records_are_left_out_with_their_difference() -> None:
    cells = cells_of([0, 0, 0, 1, 1, 2, 2, 2], [0, 0, 0, 1, 1, 2, 2, 2])
    assert np.isnan(cells["confidential"].shares).tolist() == [[False, True, False]]
    assert np.isnan(cells["synthetic less confidential"].shares).tolist() == [[False, True, False]]
    assert cells["synthetic"].shares.tolist() == [[0.375, 0.25, 0.375]]


@pytest.mark.parametrize(("outliers", "shown"), [(2, False), (3, True)])
def test_the_range_does_not_reach_to_the_two_largest_confidential_values(outliers: int, shown: bool) -> None:
    """Three of them are shown: the rule is about few records, not about large values."""
    cells = cells_of([0, 1, 2] * 5 + [100] * outliers, [0, 1, 2] * 5)
    assert (cells["confidential"].x.edges[-1] > 100) == shown


def test_a_figure_of_signs_can_be_printed() -> None:
    x, y = column("x", [0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1]), column("y", [0.0] * 6, [0.0] * 6)
    (figure,) = pair_figures([x, y])
    text = figure_text(figure, 60, 12)
    assert all(len(line) <= 60 for line in text.splitlines())
    assert text.count("@") > 10
    assert "up y · across x" in text
    assert "left out" in text


def test_without_a_release_there_is_nothing_to_compare() -> None:
    assert pair_figures([column("x", [1.0]), column("y", [1.0])]) == []


@pytest.mark.slow
def test_columns_are_those_of_the_tables(workspace: Workspace, enter: Enter, small_data: Microdata) -> None:
    run_id = enter()
    run_worker(workspace.directory, idle=0)
    run = find_run(workspace, run_id)
    names = [variable.name for variable in small_data.schema]
    found = read_variable_values(workspace, run.dataset_id, run, names)
    assert list(released_dataset_hashes(workspace, run_id)) == list(range(1, run.recipe.m + 1))
    for name in names:
        assert np.array_equal(found[name].confidential, small_data.numbers(name), equal_nan=True)
        assert found[name].withheld_reason == ""
        for draw, values in enumerate(found[name].released, start=1):
            released = read_released_dataset(workspace, run_id, run.recipe, draw)
            assert released is not None
            assert np.array_equal(values, released.numbers(name), equal_nan=True)
    alone = read_variable_values(workspace, run.dataset_id, None, names[:1])
    assert list(alone) == names[:1]
    assert alone[names[0]].released == ()


def test_what_is_generalised_has_nothing_beside_it_and_says_why(workspace: Workspace, enter: Enter) -> None:
    making = [{"method": "mondrian", "k": 4, "output": "generalised"}]
    run_id = enter(
        synthesis=[], release={"seed": 7}, anonymisation=making, measure=[{"method": "risk.anonymity"}], threshold=[]
    )
    run_worker(workspace.directory, idle=0)
    run = find_run(workspace, run_id)
    generalised = sorted(run.recipe.generalised)
    assert generalised
    found = read_variable_values(workspace, run.dataset_id, run, run.recipe.schema.names)
    for name, one in found.items():
        assert (not one.released) == (name in generalised)
        assert ("labels" in one.withheld_reason) == (name in generalised)
