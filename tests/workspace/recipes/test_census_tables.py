"""The recipe of tables: its limits are met, and the gate lets it leave."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_tables import list_run_tables

from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.gate.answer import answer_for_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_verdicts


@pytest.mark.slow
def test_the_tables_of_the_census_are_safe_and_may_leave(tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "w") as workspace:
        number = prepare_run(find_recipe("census-tables"), key=PUBLIC).enter(workspace)
        run_worker(workspace.directory, idle=0)
        assert {one.outcome for one in read_verdicts(workspace, number)} == {"met"}
        tables = list_run_tables(workspace, number)
        assert tables is not None
        assert [len(one.groupings[0]) for one in tables.tables] == [2, 2, 1]
        assert (tables.counts["cells"], tables.counts["primary"], tables.counts["secondary"]) == (325, 16, 13)
        answer = answer_for_run(workspace, number)
        assert answer is not None
        assert answer.may_leave == "yes"
