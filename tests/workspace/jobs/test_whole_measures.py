"""A measure of all released datasets, whose blocks are tasks: a worker that is killed leaves those that are done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from believed import INTRUDER, RECIPE, survey
from prepared_workspaces import enter_recipe

from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.runs import RunState, find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

pytestmark = pytest.mark.slow
BLOCKS = 8
PATIENCE = 60.0
WORK = "import sys; from pathlib import Path; from sfumato.workspace.jobs.worker import run_worker; run_worker(Path(sys.argv[1]), idle=0)"


def entered(workspace: Workspace) -> int:
    measure = {"method": INTRUDER, "blocks": BLOCKS, "lacks": 2, "draws": 30}
    recipe = Recipe.from_table({**RECIPE, "measure": [measure], "threshold": []})
    return enter_recipe(workspace, recipe, survey(400)[1], "survey.csv")


def blocks(workspace: Workspace, run_id: int) -> dict[str, tuple[str, int]]:
    """State and attempts of the blocks, by the task's name."""
    rows = workspace.connection.execute(
        "SELECT key, state, attempt FROM task WHERE run_id = ? AND key LIKE '%/block/%'", (run_id,)
    )
    return {row["key"]: (row["state"], row["attempt"]) for row in rows}


def run_results(workspace: Workspace, run_id: int) -> tuple[object, ...]:
    tables = workspace.connection.execute("SELECT name, sha256 FROM artefact WHERE run_id = ? ORDER BY name", (run_id,))
    return [row.to_dict() for row in read_result_rows(workspace, run_id)], [tuple(row) for row in tables]


def test_a_run_killed_between_blocks_goes_on_with_those_that_are_left(tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "w", PUBLIC) as workspace:
        run_id = entered(workspace)
        process = subprocess.Popen([sys.executable, "-P", "-c", WORK, str(workspace.directory)])
        until = time.monotonic() + PATIENCE
        while sum(state == "done" for state, _ in blocks(workspace, run_id).values()) < 2:
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        before = blocks(workspace, run_id)
        done = {key for key, (state, _) in before.items() if state == "done"}
        assert 2 <= len(done) < BLOCKS, "killed too late to show anything"
        with workspace.write_transaction() as connection:
            connection.execute("UPDATE task SET lease_until = 0 WHERE state = 'running'")
        run_worker(workspace.directory, idle=0)
        after = blocks(workspace, run_id)
        assert find_run(workspace, run_id).state is RunState.DONE
        assert {key: after[key] for key in done} == {key: before[key] for key in done}
        assert {state for state, _ in after.values()} == {"done"}
        again = entered(workspace)
        run_worker(workspace.directory, idle=0)
        assert run_results(workspace, again) == run_results(workspace, run_id)
