import time

import pytest

from sfumato.workspace.errors import NotAWorkspace, NotFound
from sfumato.workspace.jobs.queue import TaskResult, claim, fail, finish, progress, request_stop
from sfumato.workspace.jobs.runs import enter_again
from sfumato.workspace.jobs.worker import work
from sfumato.workspace.store.database import MIGRATIONS
from sfumato.workspace.store.runs import RunState, Tally, find_run, list_runs, projects, run_line, run_lines, tasks_of
from sfumato.workspace.store.workspace import Workspace


def heartbeat(workspace, at):
    with workspace.writing() as connection:
        connection.execute("INSERT OR REPLACE INTO worker VALUES ('w', 1, ?, ?, NULL)", (at, at))


def test_a_reader_sees_what_the_workspace_sees(workspace, enter):
    run_id = enter()
    with Workspace.open(workspace.directory, read_only=True) as reader:
        assert list_runs(reader) == list_runs(workspace)
        assert find_run(reader, "last") == find_run(workspace, run_id)
        assert tasks_of(reader, run_id) == tasks_of(workspace, run_id)


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
    with workspace.writing():
        workspace.ensure_project("Without runs")
    first, second = enter(title="First"), enter(title="Second")
    third = enter(title="First")
    lines = projects(workspace)
    assert [line.name for line in lines] == ["First", "Second", "Without runs"]
    assert [line.last.run.id if line.last else None for line in lines] == [third, second, None]
    assert [(line.datasets, line.runs) for line in lines] == [(1, 2), (1, 1), (0, 0)]
    assert [line.run.id for line in run_lines(workspace, lines[0].id)] == [third, first]


@pytest.mark.slow
def test_verdicts_are_counted(workspace, enter):
    run_id = enter()
    assert run_line(workspace, run_id).tally == Tally()
    work(workspace.directory, idle=0)
    assert run_line(workspace, run_id).tally == Tally(met=1)
    with workspace.writing() as connection:
        for position, outcome in enumerate(["fail", "undecided", "not computed", "not met"], start=1):
            verdict = f'{{"outcome": "{outcome}"}}'
            connection.execute("INSERT INTO verdict VALUES (?, ?, ?)", (run_id, position, verdict))
    tally = run_line(workspace, run_id).tally
    assert (tally, tally.total) == (Tally(1, 2, 1, 1), 5)


def test_what_a_worker_does_is_told_while_the_run_goes_on(workspace, enter):
    run_id = enter()
    assert run_line(workspace, run_id).doing == ""
    held = claim(workspace, "w")
    assert run_line(workspace, run_id).doing == held.kind
    progress(workspace, held, 1200, 2000, "emcee")
    assert run_line(workspace, run_id).doing == f"{held.kind} 1,200/2,000 emcee"
    request_stop(workspace, run_id, RunState.INTERRUPTED)
    assert run_line(workspace, run_id).doing == ""


def test_a_run_that_nobody_works_on_is_stalled(workspace, enter):
    run_id = enter()
    assert not run_line(workspace, run_id).stalled  # its worker may be starting
    with workspace.writing() as connection:
        connection.execute("UPDATE run SET created = created - 60")
    assert run_line(workspace, run_id).stalled
    assert run_line(workspace, run_id).resumable
    heartbeat(workspace, time.time())
    assert not run_line(workspace, run_id).stalled
    assert not run_line(workspace, run_id).resumable
    heartbeat(workspace, time.time() - 60)
    assert run_line(workspace, run_id).stalled
    fail(workspace, claim(workspace, "w"), "no")
    assert not run_line(workspace, run_id).stalled
    assert run_line(workspace, run_id).resumable


def test_seconds_left_follow_from_the_tasks_done(workspace, enter):
    run_id = enter()
    held = claim(workspace, "w")
    assert find_run(workspace, run_id).seconds_left is None
    finish(workspace, held, TaskResult(seconds=10.0))
    run = find_run(workspace, run_id)
    assert run.seconds_left == pytest.approx(10 * (run.tasks_total - 1))


@pytest.mark.slow
def test_a_run_entered_again_has_the_same_recipe_data_and_tasks(workspace, enter):
    run_id = enter()
    work(workspace.directory, idle=0)
    again = enter_again(workspace, run_id)
    old, new = find_run(workspace, run_id), find_run(workspace, again)
    assert (new.recipe_toml, new.dataset_id, new.project_id, new.seed) == (
        old.recipe_toml, old.dataset_id, old.project_id, old.seed,
    )  # fmt: skip
    assert [task.key for task in tasks_of(workspace, again)] == [task.key for task in tasks_of(workspace, run_id)]
    assert new.state is RunState.QUEUED
    with pytest.raises(NotFound):
        enter_again(workspace, 99)
