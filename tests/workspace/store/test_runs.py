import time

import pytest

from sfumato.workspace.errors import NotAWorkspace, NotFound
from sfumato.workspace.jobs.queue import TaskResult, claim_task, fail_task, finish_task, record_progress, stop_run
from sfumato.workspace.jobs.runs import reenter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.database import MIGRATIONS
from sfumato.workspace.store.runs import (
    RunState,
    VerdictCounts,
    find_run,
    list_project_summaries,
    list_runs,
    list_tasks,
    summarise_run,
    summarise_runs,
)
from sfumato.workspace.store.workspace import Workspace


def heartbeat(workspace, at):
    with workspace.write_transaction() as connection:
        connection.execute("INSERT OR REPLACE INTO worker VALUES ('w', 1, ?, ?, NULL)", (at, at))


def test_a_reader_sees_what_the_workspace_sees(workspace, enter):
    run_id = enter()
    with Workspace.open(workspace.directory, read_only=True) as reader:
        assert list_runs(reader) == list_runs(workspace)
        assert find_run(reader, "last") == find_run(workspace, run_id)
        assert list_tasks(reader, run_id) == list_tasks(workspace, run_id)


def test_a_reader_notices_that_somebody_wrote(workspace, enter):
    with Workspace.open(workspace.directory, read_only=True) as reader:
        before = reader.data_version
        assert reader.data_version == before
        enter()
        assert reader.data_version != before


def test_a_reader_refuses_what_is_no_workspace(tmp_path, workspace):
    with pytest.raises(NotAWorkspace, match="sfumato init"):
        Workspace.open(tmp_path / "nowhere", read_only=True)
    workspace.connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(NotAWorkspace, match="newer"):
        Workspace.open(workspace.directory, read_only=True)


def test_a_damaged_database_is_no_workspace(tmp_path):
    (tmp_path / "workspace.db").write_bytes(b"not a database, but long enough to be looked at" * 50)
    with pytest.raises(NotAWorkspace, match="cannot be opened"):
        Workspace.open(tmp_path, read_only=True)


def test_projects_come_with_their_newest_run_newest_first(workspace, enter):
    with workspace.write_transaction():
        workspace.ensure_project("Without runs")
    first, second = enter(title="First"), enter(title="Second")
    third = enter(title="First")
    lines = list_project_summaries(workspace)
    assert [line.name for line in lines] == ["First", "Second", "Without runs"]
    assert [line.last.run.id if line.last else None for line in lines] == [third, second, None]
    assert [(line.datasets, line.runs) for line in lines] == [(1, 2), (1, 1), (0, 0)]
    assert [line.run.id for line in summarise_runs(workspace, lines[0].id)] == [third, first]


@pytest.mark.slow
def test_verdicts_are_counted(workspace, enter):
    run_id = enter()
    assert summarise_run(workspace, run_id).verdicts == VerdictCounts()
    run_worker(workspace.directory, idle=0)
    assert summarise_run(workspace, run_id).verdicts == VerdictCounts(met=1)
    with workspace.write_transaction() as connection:
        for position, outcome in enumerate(["fail", "undecided", "not computed", "not met"], start=1):
            verdict = f'{{"outcome": "{outcome}"}}'
            connection.execute("INSERT INTO verdict VALUES (?, ?, ?)", (run_id, position, verdict))
    tally = summarise_run(workspace, run_id).verdicts
    assert (tally, tally.total) == (VerdictCounts(1, 2, 1, 1), 5)


def test_what_a_worker_does_is_told_while_the_run_goes_on(workspace, enter):
    run_id = enter()
    assert summarise_run(workspace, run_id).current_task == ""
    held = claim_task(workspace, "w")
    assert summarise_run(workspace, run_id).current_task == held.kind
    record_progress(workspace, held, 1200, 2000, "emcee")
    assert summarise_run(workspace, run_id).current_task == f"{held.kind} 1,200/2,000 emcee"
    stop_run(workspace, run_id, RunState.INTERRUPTED)
    assert summarise_run(workspace, run_id).current_task == ""


def test_a_run_that_nobody_works_on_is_stalled(workspace, enter):
    run_id = enter()
    assert not summarise_run(workspace, run_id).is_stalled  # its worker may be starting
    with workspace.write_transaction() as connection:
        connection.execute("UPDATE run SET created = created - 60")
    assert summarise_run(workspace, run_id).is_stalled
    assert summarise_run(workspace, run_id).is_resumable
    heartbeat(workspace, time.time())
    assert not summarise_run(workspace, run_id).is_stalled
    assert not summarise_run(workspace, run_id).is_resumable
    heartbeat(workspace, time.time() - 60)
    assert summarise_run(workspace, run_id).is_stalled
    fail_task(workspace, claim_task(workspace, "w"), "no")
    assert not summarise_run(workspace, run_id).is_stalled
    assert summarise_run(workspace, run_id).is_resumable


def test_seconds_left_follow_from_the_tasks_done(workspace, enter):
    run_id = enter()
    held = claim_task(workspace, "w")
    assert find_run(workspace, run_id).seconds_left is None
    finish_task(workspace, held, TaskResult(seconds=10.0))
    run = find_run(workspace, run_id)
    assert run.seconds_left == pytest.approx(10 * (run.tasks_total - 1))


@pytest.mark.slow
def test_a_run_entered_again_has_the_same_recipe_data_and_tasks(workspace, enter):
    run_id = enter()
    run_worker(workspace.directory, idle=0)
    again = reenter_run(workspace, run_id)
    old, new = find_run(workspace, run_id), find_run(workspace, again)
    assert (new.recipe_toml, new.dataset_id, new.project_id, new.seed) == (
        old.recipe_toml, old.dataset_id, old.project_id, old.seed,
    )  # fmt: skip
    assert [task.key for task in list_tasks(workspace, again)] == [task.key for task in list_tasks(workspace, run_id)]
    assert new.state is RunState.QUEUED
    with pytest.raises(NotFound):
        reenter_run(workspace, 99)
