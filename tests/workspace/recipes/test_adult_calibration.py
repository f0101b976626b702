"""The shipped calibration on Adult, on few records: every figure it quotes finds its row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.published import RunFigures, source_tables
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_run

pytestmark = pytest.mark.slow

FEW = ["data.sample=3000", "study[0].generators=1", "study[0].originals=2", "study[0].subsets=2"]
SMALL = [*FEW, "study[0].sizes=[800, 1500]", "study[0].ks=[2, 60]"]


def test_every_figure_of_the_paper_finds_its_row(public_data: Callable[[str], Path]) -> None:
    found = prepare_run(find_recipe("adult-calibration"), str(public_data("adult.csv")), None, SMALL, key=PUBLIC)
    assert len(found.data) == 3000
    tables = source_tables(
        [RunFigures("run", found.recipe.published, execute_run(found.recipe, found.data, key=PUBLIC).rows)]
    )
    lines = [line for table in tables for line in table.lines]
    assert [[line.cells[0].published for line in table.lines] for table in tables] == [
        [0.69, 0.66],
        [0.0278, 0.0154, 0.0, 0.0432, 0.1529, 0.0985, 0.0057, 0.2571],
    ]
    assert not [line for line in lines if line.note == "the run has no such row"]
    assert all(line.cells[0].ours is not None for line in lines if line.params.get("passed") is not True)
