"""Runs and projects that are deleted take their files with them, and nobody else's."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.workspace.audit import AuditAct, audit_rows, verify_audit_log
from sfumato.workspace.errors import NotFound, NotReady
from sfumato.workspace.jobs.queue import claim_task
from sfumato.workspace.jobs.runs import reenter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.service import deletion
from sfumato.workspace.service.deletion import delete_project, delete_run
from sfumato.workspace.store.runs import find_run, list_project_summaries, list_runs
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

Enter = Callable[..., int]


def tables(workspace: Workspace) -> set[str]:
    return {path.stem for path in (workspace.directory / "tables").glob("*.parquet")}


def grow_old(workspace: Workspace) -> None:
    then = time.time() - 3600
    for path in (workspace.directory / "tables").iterdir():
        os.utime(path, (then, then))


def run_to_end(workspace: Workspace, run_id: int) -> int:
    run_worker(workspace.directory, idle=0)
    grow_old(workspace)
    assert find_run(workspace, run_id).state.value == "done"
    return run_id


def counts(workspace: Workspace, run_id: int) -> dict[str, int]:
    names = ("task", "artefact", "result", "verdict", "diagnostic")
    ask = workspace.connection.execute
    return {name: ask(f"SELECT count(*) FROM {name} WHERE run_id = ?", (run_id,)).fetchone()[0] for name in names}


def test_a_deleted_run_leaves_the_data_and_an_entry_in_the_audit_log(workspace: Workspace, enter: Enter) -> None:
    run_id = run_to_end(workspace, enter())
    run, (data,) = find_run(workspace, run_id), workspace.list_datasets(1)
    assert tables(workspace) > {data.table_sha256}
    assert delete_run(workspace, run_id) == 0
    assert list_runs(workspace) == []
    assert set(counts(workspace, run_id).values()) == {0}
    assert tables(workspace) == {data.table_sha256}
    assert len(workspace.read_stored_dataset(data)) == data.records
    last = audit_rows(workspace.connection)[-1]
    assert (last.act, last.subject) == (AuditAct.RUN_DELETED, f"run {run_id}")
    assert run.recipe_sha256 in last.details
    assert verify_audit_log(workspace.connection, workspace.directory)[1] == ""
    with pytest.raises(NotFound):
        find_run(workspace, run_id)


@pytest.mark.slow
def test_what_another_run_needs_stays(workspace: Workspace, enter: Enter) -> None:
    first = enter()
    second = reenter_run(workspace, first)
    run_to_end(workspace, second)
    before, rows = tables(workspace), read_result_rows(workspace, second)
    assert delete_run(workspace, first) == 0
    assert tables(workspace) == before
    assert read_result_rows(workspace, second) == rows
    assert delete_run(workspace, second) == 0
    assert tables(workspace) == {workspace.list_datasets(1)[0].table_sha256}


@pytest.mark.slow
def test_a_number_is_never_given_again(workspace: Workspace, enter: Enter) -> None:
    run_id = run_to_end(workspace, enter())
    delete_run(workspace, run_id)
    assert enter() == run_id + 1


def test_a_run_that_goes_on_is_not_deleted(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    for _ in range(2):  # queued, then running
        with pytest.raises(NotReady, match=f"run {run_id} is .*; interrupt it first"):
            delete_run(workspace, run_id)
        with pytest.raises(NotReady, match="is not finished; interrupt it first"):
            delete_project(workspace, 1)
        claim_task(workspace, "worker")
    assert counts(workspace, run_id)["task"] > 0


def test_tables_stay_while_something_is_computed(workspace: Workspace, enter: Enter) -> None:
    run_id = run_to_end(workspace, enter())
    other = reenter_run(workspace, run_id)
    claim_task(workspace, "worker")
    before = tables(workspace)
    assert delete_run(workspace, run_id) == len(before) - 1
    assert tables(workspace) == before
    assert find_run(workspace, other).state.value == "running"


def test_young_tables_stay_for_the_doctor(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    run_worker(workspace.directory, idle=0)
    assert delete_run(workspace, run_id) > 0


def test_a_project_goes_with_its_data(workspace: Workspace, enter: Enter) -> None:
    run_id = run_to_end(workspace, enter())
    log = workspace.directory / "logs" / f"run-{run_id}.log"
    assert log.is_file()
    assert delete_project(workspace, 1) == 0
    assert list_project_summaries(workspace) == []
    assert tables(workspace) == set()
    assert not log.exists()
    acts = [row.act for row in audit_rows(workspace.connection)]
    assert acts[-2:] == [AuditAct.RUN_DELETED, AuditAct.PROJECT_DELETED]
    assert verify_audit_log(workspace.connection, workspace.directory)[1] == ""
    with pytest.raises(NotFound):
        delete_project(workspace, 1)


def test_a_kill_before_the_files_are_gone_leaves_only_orphans(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.workspace.upkeep.maintenance import find_orphans, remove_orphans

    class Killed(BaseException):
        pass

    def killed(*_: object) -> int:
        raise Killed

    run_id = run_to_end(workspace, enter())
    monkeypatch.setattr(deletion, "_remove_files", killed)
    with pytest.raises(Killed):
        delete_run(workspace, run_id)
    grow_old(workspace)
    left = find_orphans(workspace, age=0)
    assert left
    assert {Path(path).stem for path in left} == tables(workspace) - {workspace.list_datasets(1)[0].table_sha256}
    assert remove_orphans(workspace, age=0) == len(left)
