"""The audit log: every act is in it, and whatever is done to its rows is found and named."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.workspace.audit import (
    HEAD_FILE,
    AuditAct,
    AuditHead,
    AuditRow,
    append_act,
    audit_rows,
    chain_problem,
    read_head,
    read_head_file,
    verify_audit_log,
    write_head_file,
)
from sfumato.workspace.jobs.queue import claim_task, fail_task, requeue_run, stop_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.runs import RunState
from sfumato.workspace.store.workspace import Workspace

Enter = Callable[..., int]
COLUMNS = ("number", "time", "act", "subject", "details", "previous", "hash")


def chain(length: int) -> tuple[list[AuditRow], AuditHead]:
    rows: list[AuditRow] = []
    previous = ""
    for number in range(1, length + 1):
        bare = AuditRow(number, f"2026-01-{number:02}", "run entered", f"run {number}", "{}", previous, "")
        previous = bare.compute_hash()
        rows.append(AuditRow(*[getattr(bare, name) for name in COLUMNS[:-1]], previous))
    return rows, AuditHead(length, previous)


def acts(workspace: Workspace) -> list[tuple[str, str]]:
    return [(row.act, row.subject) for row in audit_rows(workspace.connection)]


def wrong(workspace: Workspace) -> str:
    return verify_audit_log(workspace.connection, workspace.directory)[1]


def test_what_changes_a_project_is_written_down_in_its_order(workspace: Workspace, enter: Enter) -> None:
    first, second = enter(), enter()
    stop_run(workspace, first, RunState.INTERRUPTED)
    requeue_run(workspace, first)
    stop_run(workspace, first, RunState.CANCELLED)
    held = claim_task(workspace, "me")
    assert held is not None
    fail_task(workspace, held, "it did not converge")
    requeue_run(workspace, second)
    run_worker(workspace.directory, idle=0)
    assert acts(workspace) == [
        ("workspace made", "workspace"),
        ("project made", "project 1"),
        ("dataset imported", "dataset 1"),
        ("run entered", "run 1"),
        ("run entered", "run 2"),
        ("run interrupted", "run 1"),
        ("run resumed", "run 1"),
        ("run cancelled", "run 1"),
        ("run failed", "run 2"),
        ("run resumed", "run 2"),
        ("run finished", "run 2"),
    ]
    assert wrong(workspace) == ""


def test_an_act_that_changed_nothing_leaves_no_row(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    stop_run(workspace, run_id, RunState.CANCELLED)
    before = acts(workspace)
    assert not stop_run(workspace, run_id, RunState.CANCELLED)
    assert not requeue_run(workspace, 99)
    assert acts(workspace) == before


def test_an_act_that_is_rolled_back_leaves_no_row(workspace: Workspace) -> None:
    before = acts(workspace)
    with pytest.raises(RuntimeError), workspace.write_transaction() as connection:  # noqa: PT012
        append_act(connection, AuditAct.RUN_DELETED, "run 7")
        raise RuntimeError
    assert acts(workspace) == before
    assert wrong(workspace) == ""


def test_the_database_itself_refuses_to_change_or_remove_a_row(workspace: Workspace) -> None:
    for statement in ("UPDATE audit SET act = 'nothing'", "DELETE FROM audit"):
        with pytest.raises(sqlite3.IntegrityError, match="only added to"):
            workspace.connection.execute(statement)


def tampered(workspace: Workspace, *statements: str) -> str:
    for act in ("UPDATE", "DELETE"):
        workspace.connection.execute(f"DROP TRIGGER IF EXISTS audit_keeps_{act}")
    for statement in statements:
        workspace.connection.execute(statement)
    return wrong(workspace)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["UPDATE audit SET details = '{}' WHERE number = 3"], "row 3 was changed"),
        (["UPDATE audit SET hash = upper(hash) WHERE number = 3"], "row 3 was changed"),
        (["DELETE FROM audit WHERE number = 2"], "row 2 is missing"),
        (["DELETE FROM audit WHERE number = 1"], "row 1 is missing"),
        (["DELETE FROM audit WHERE number >= 4"], "row 4 is missing: rows 4 to 5 were removed at the end"),
        (["DELETE FROM audit"], "row 1 is missing: rows 1 to 5"),
        (
            ["UPDATE audit SET number = -1 WHERE number = 3", "UPDATE audit SET number = 3 WHERE number = 4",
             "UPDATE audit SET number = 4 WHERE number = -1"],
            "row 3 was changed",
        ),
        (["INSERT INTO audit SELECT 6, time, act, subject, details, previous, hash FROM audit WHERE number = 5"], "row 6 was"),
        (["UPDATE audit_head SET hash = 'x'"], "row 5 is not the one"),
    ],
)  # fmt: skip
def test_a_row_changed_removed_moved_or_added_is_named(
    workspace: Workspace, enter: Enter, statements: list[str], said: str
) -> None:
    enter()
    enter()
    assert wrong(workspace) == ""
    assert tampered(workspace, *statements).startswith(said)


def test_rows_removed_at_the_end_with_the_head_in_the_database_are_missed_by_the_head_beside_it(
    workspace: Workspace, enter: Enter
) -> None:
    enter()
    forged = [
        "DELETE FROM audit WHERE number = 4",
        "UPDATE audit_head SET number = 3, hash = (SELECT hash FROM audit WHERE number = 3)",
    ]
    assert tampered(workspace, *forged).startswith("row 4 is missing")
    (workspace.directory / HEAD_FILE).unlink()
    assert wrong(workspace) == "", "nobody can know any more: this is why a head can be noted elsewhere"


def test_the_head_is_there_from_the_start_and_follows_every_act_and_nothing_else(
    workspace: Workspace, enter: Enter
) -> None:
    assert read_head_file(workspace.directory) == read_head(workspace.connection)
    enter()
    assert read_head_file(workspace.directory) == read_head(workspace.connection)
    (workspace.directory / HEAD_FILE).unlink()
    with workspace.write_transaction():
        pass
    assert read_head_file(workspace.directory) is None, (
        "a write that is no act must not cover up rows that were removed"
    )


def test_a_head_that_lags_behind_after_a_crash_is_no_alarm(workspace: Workspace, enter: Enter) -> None:
    enter()
    early = audit_rows(workspace.connection)[1]
    write_head_file(workspace.directory, AuditHead(early.number, early.hash))
    assert wrong(workspace) == ""


@pytest.mark.slow
@given(st.integers(1, 6), st.data())
def test_any_change_of_any_field_of_any_row_is_found_in_that_row(length: int, data: st.DataObject) -> None:
    rows, head = chain(length)
    assert chain_problem(rows, head) == ""
    at = data.draw(st.integers(0, length - 1))
    column = data.draw(st.sampled_from(COLUMNS[1:]))
    old = getattr(rows[at], column)
    new = data.draw(st.text(max_size=8).filter(lambda text: text != old))
    changed = AuditRow(*[new if name == column else getattr(rows[at], name) for name in COLUMNS])
    assert chain_problem([*rows[:at], changed, *rows[at + 1 :]], head) == f"row {at + 1} was changed"


@given(st.integers(2, 6), st.data())
def test_a_forged_row_with_a_right_hash_breaks_the_row_after_it_or_the_head(length: int, data: st.DataObject) -> None:
    rows, head = chain(length)
    at = data.draw(st.integers(0, length - 1))
    bare = AuditRow(at + 1, "2026", "run deleted", "run 1", "{}", rows[at].previous, "")
    forged = AuditRow(*[getattr(bare, name) for name in COLUMNS[:-1]], bare.compute_hash())
    said = chain_problem([*rows[:at], forged, *rows[at + 1 :]], head)
    assert said.startswith(f"row {min(at + 2, length)} ")


def test_the_log_holds_no_value_of_the_data(workspace: Workspace, enter: Enter) -> None:
    enter()
    run_worker(workspace.directory, idle=0)
    for row in audit_rows(workspace.connection):
        details = json.loads(row.details)
        assert set(details) <= {
            "user", "runs_before", "project", "origin", "source_sha256", "table_sha256", "records", "dataset",
            "recipe_sha256", "seed", "tasks", "tasks_done", "seal", "under_policy",
        }  # fmt: skip


def test_rows_that_others_add_while_the_log_is_verified_are_no_alarm(workspace: Workspace) -> None:
    def add() -> None:
        with contextlib.closing(Workspace.open(workspace.directory)) as own:
            while not ended.is_set():
                with own.write_transaction() as connection:
                    append_act(connection, AuditAct.FILES_REMOVED, "workspace", files=0)

    ended = threading.Event()
    adding = threading.Thread(target=add)
    adding.start()
    said = set()
    try:
        for _ in range(100_000):
            rows, wrong = verify_audit_log(workspace.connection, workspace.directory)
            said.add(wrong)
            if len(rows) > 20:
                break
    finally:
        ended.set()
        adding.join()
    assert said == {""}
