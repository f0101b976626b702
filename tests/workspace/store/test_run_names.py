"""Names and notes of runs: what may be one, that a name finds its run, that the audit log holds both, that none is public."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.errors import BadInput
from sfumato.workspace.audit import AuditAct, audit_rows
from sfumato.workspace.errors import NotFound
from sfumato.workspace.jobs.queue import stop_run
from sfumato.workspace.service.deletion import delete_run
from sfumato.workspace.store import database
from sfumato.workspace.store.run_names import MAX_NAME_LENGTH, MAX_NOTE_LENGTH, check_run_name, name_run
from sfumato.workspace.store.runs import RunState, find_run, list_runs
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.adopting import adopt_workspace
from sfumato.workspace.upkeep.integrity import verify_workspace

Enter = Callable[..., int]


def test_a_name_finds_its_run_in_any_case_and_form(workspace: Workspace, enter: Enter) -> None:
    first, second = enter(), enter()
    name_run(workspace, first, "  Référence ", "for the board")
    assert (find_run(workspace, first).name, find_run(workspace, first).note) == ("Référence", "for the board")
    for written in ("Référence", "RÉFÉRENCE", "Re\u0301fe\u0301rence"):
        assert find_run(workspace, written).id == first
    assert find_run(workspace, second).name == find_run(workspace, second).note == ""
    assert find_run(workspace, first).label == "Référence"
    assert find_run(workspace, second).label == find_run(workspace, second).title


def test_what_is_left_out_stays_and_what_is_empty_goes(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    name_run(workspace, run_id, "reference", "first")
    name_run(workspace, run_id, note="second")
    assert (find_run(workspace, run_id).name, find_run(workspace, run_id).note) == ("reference", "second")
    name_run(workspace, run_id, name="")
    assert (find_run(workspace, run_id).name, find_run(workspace, run_id).note) == ("", "second")
    with pytest.raises(NotFound):
        find_run(workspace, "reference")
    with pytest.raises(NotFound):
        find_run(workspace, "")


def test_one_name_is_one_run_and_a_refusal_changes_nothing(workspace: Workspace, enter: Enter) -> None:
    first, second = enter(), enter()
    name_run(workspace, first, "Reference")
    before = len(audit_rows(workspace.connection))
    with pytest.raises(BadInput, match='name: run 1 is called "REFERENCE" already'):
        name_run(workspace, second, "REFERENCE", "a note")
    assert find_run(workspace, second).note == ""
    assert len(audit_rows(workspace.connection)) == before
    name_run(workspace, first, "")
    name_run(workspace, second, "REFERENCE")
    assert find_run(workspace, "reference").id == second


@pytest.mark.parametrize(
    "name", ["3", " 03 ", "+3", "3.0", "1e0", "1_0", "\u0663", "\u2462", "0x1", "last", "LAST", "-n", "a\nb", "a\x1b[2J", "a\u202eb",
             "x" * (MAX_NAME_LENGTH + 1)]
)  # fmt: skip
def test_a_name_that_could_mean_another_run_or_command_a_terminal_is_refused(
    workspace: Workspace, enter: Enter, name: str
) -> None:
    enter()
    with pytest.raises(BadInput, match=r"^name: "):
        name_run(workspace, 1, name)
    assert find_run(workspace, 1).name == ""


def test_a_note_is_one_line_of_plain_text(workspace: Workspace, enter: Enter) -> None:
    enter()
    for note in ("a\nb", "\x1b]52;c;eA==\x07", "x" * (MAX_NOTE_LENGTH + 1)):
        with pytest.raises(BadInput, match=r"^note: "):
            name_run(workspace, 1, note=note)


@given(st.text(max_size=8))
def test_no_name_is_read_as_a_number_by_the_database(name: str) -> None:
    """SQLite compares text that writes a number with a number; none of these may be a name."""
    try:
        kept = check_run_name(name)
    except BadInput:
        return
    with closing(database.open_database(Path(":memory:"))) as connection:
        connection.execute("CREATE TABLE run (id INTEGER PRIMARY KEY)")
        connection.executemany("INSERT INTO run VALUES (?)", [(number,) for number in range(200)])
        assert connection.execute("SELECT id FROM run WHERE id = ?", (kept,)).fetchall() == []


def test_the_audit_log_holds_names_and_never_their_words(workspace: Workspace, enter: Enter) -> None:
    run_id, other = enter(), enter()
    name_run(workspace, run_id, "Aachen", "three persons of 44")
    last = audit_rows(workspace.connection)[-1]
    assert (last.act, last.subject, last.details_table["name"], last.details_table["note"]) == (
        AuditAct.RUN_NAMED,
        "run 1",
        "given",
        "given",
    )
    assert not any("Aachen" in row.details or "persons" in row.details for row in audit_rows(workspace.connection))
    name_run(workspace, run_id, "Aachen", "three persons of 44")
    assert audit_rows(workspace.connection)[-1] == last, "nothing was changed"
    assert verify_workspace(workspace).wrong == ()
    for statement, said in (
        ("UPDATE run_name SET name = 'Bonn', folded = 'bonn'", "the name of run 1 is not as it was sealed"),
        ("DELETE FROM run_name", "the name of run 1 is not as it was sealed"),
        (f"INSERT INTO run_name VALUES ({other}, 'x', 'x', '')", "the name of run 2 was added by other means"),
    ):
        workspace.connection.execute("BEGIN")
        workspace.connection.execute(statement)
        assert verify_workspace(workspace).wrong == (said,)
        workspace.connection.execute("ROLLBACK")


def test_a_run_that_is_deleted_gives_its_name_back(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    name_run(workspace, run_id, "reference")
    stop_run(workspace, run_id, RunState.INTERRUPTED)
    delete_run(workspace, run_id)
    assert verify_workspace(workspace).wrong == ()
    name_run(workspace, enter(), "reference")


def test_an_adopted_workspace_keeps_the_names_of_its_runs(workspace: Workspace, enter: Enter, tmp_path: Path) -> None:
    name_run(workspace, enter(), "reference", "theirs")
    adopt_workspace(workspace.directory, tmp_path / "mine")
    with Workspace.open(tmp_path / "mine") as copy:
        assert find_run(copy, "reference").note == "theirs"
        assert verify_workspace(copy).wrong == ()


def test_what_another_program_wrote_is_cut_to_its_length(workspace: Workspace, enter: Enter) -> None:
    enter()
    workspace.connection.execute("INSERT INTO run_name VALUES (1, ?, 'x', ?)", ("n" * 10_000, "o" * 10_000))
    found = list_runs(workspace)[0]
    assert (len(found.name), len(found.note)) == (MAX_NAME_LENGTH, MAX_NOTE_LENGTH)


def test_a_workspace_of_the_version_before_gets_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = [step.__name__ for step in database.MIGRATIONS].index("run_names")
    with monkeypatch.context() as older:
        older.setattr(database, "MIGRATIONS", database.MIGRATIONS[:at])
        with Workspace.create(tmp_path / "old") as made:
            assert "run_name" not in {row[0] for row in made.connection.execute("SELECT name FROM sqlite_schema")}
    with Workspace.open(tmp_path / "old") as opened:
        assert list_runs(opened) == []
        assert opened.connection.execute("SELECT count(*) FROM run_name").fetchone()[0] == 0
