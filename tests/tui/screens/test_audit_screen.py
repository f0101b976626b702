import csv
import shutil

import pytest
from textual.widgets import Input

from sfumato.tui.app.audit import AuditLogDialog
from sfumato.tui.app.project import ProjectScreen
from sfumato.tui.app.projects import ProjectsScreen
from sfumato.workspace.audit import HEAD_FILE, AuditAct, append_act, read_head, write_head_file
from sfumato.workspace.errors import BrokenHistory
from sfumato.workspace.store.places import state_directory
from sfumato.workspace.store.workspace import Workspace


@pytest.fixture
def logged(built_data):
    """The log's head kept beside the copied database, as it is beside the real one; the tables are read too."""
    directory = built_data
    workspace = Workspace.open(directory)
    write_head_file(directory, read_head(workspace.connection))
    workspace.close()
    return directory


def change(directory, number):
    workspace = Workspace.open(directory)
    workspace.connection.execute("DROP TRIGGER audit_keeps_UPDATE")
    workspace.connection.execute("UPDATE audit SET subject = 'run 99' WHERE number = ?", (number,))
    workspace.close()


@pytest.mark.slow
async def test_every_act_is_listed_newest_first_and_verified(sit, logged, size):
    async with sit(logged, "act:audit", tab="runs", size=size) as seat:
        assert isinstance(seat.app.screen, AuditLogDialog)
        assert "✓ The audit log is whole" in seat.text
        acts = [line for line in seat.text.splitlines() if "run entered" in line or "project made" in line]
        assert len(acts) >= 5
        assert "project made" in acts[0]
        assert "R Verify" in " ".join(seat.footer.split())
        assert "row " in seat.text.splitlines()[-2]
        assert max(map(len, seat.text.splitlines())) <= size[0]
        await seat.press("G")
        assert "row 1, sha256" in seat.text
        await seat.press("q")
        assert isinstance(seat.app.screen, ProjectScreen)


@pytest.mark.slow
async def test_the_first_broken_row_is_named_and_under_the_cursor(sit, logged, size):
    change(logged, 3)
    change_again = 5
    async with sit(logged, "act:audit", size=size) as seat:
        assert "✗ the audit log is broken: row 3 was changed" in seat.text
        assert "row 3, sha256" in seat.text
    workspace = Workspace.open(logged)
    workspace.connection.execute("UPDATE audit SET subject = 'run 98' WHERE number = ?", (change_again,))
    workspace.close()
    async with sit(logged, "act:audit", size=size) as seat:
        assert "row 3 was changed" in seat.text


async def test_rows_that_are_gone_at_the_end_are_noticed(sit, logged):
    workspace = Workspace.open(logged)
    workspace.connection.execute("DROP TRIGGER audit_keeps_DELETE")
    last = read_head(workspace.connection).number
    workspace.connection.execute("DELETE FROM audit WHERE number = ?", (last,))
    workspace.close()
    with pytest.raises(BrokenHistory, match=f"lacks row {last}"):
        Workspace.open(logged)
    shutil.rmtree(
        state_directory() / "heads"
    )  # on a machine that has not seen it, the head beside the database remains
    async with sit(logged, "act:audit") as seat:
        assert f"row {last} is missing" in seat.text


async def test_v_reads_the_log_again(sit, logged):
    async with sit(logged, "act:audit") as seat:
        workspace = Workspace.open(logged)
        with workspace.write_transaction() as connection:
            append_act(connection, AuditAct.FILES_REMOVED, "workspace")
        workspace.close()
        assert "files removed" not in seat.text
        await seat.press("R")
        assert "files removed" in seat.text
        assert "is whole" in seat.text


async def test_a_head_that_is_gone_is_said(sit, logged):
    (logged / HEAD_FILE).unlink()
    async with sit(logged, "act:audit", size=(200, 40)) as seat:
        assert "may go unnoticed" in seat.text


async def test_the_log_is_written_to_a_file_and_the_palette_leads_to_it(sit, logged, tmp_path):
    async with sit(logged) as seat:
        commands = {
            command.title.partition("   ")[0]: command for command in seat.app.get_system_commands(seat.app.screen)
        }
        await commands["Audit log"].callback()
        await seat.press("shift", "e")
        seat.app.screen.query_one(Input).value = str(tmp_path / "log.csv")
        await seat.press("enter", "escape")
        assert isinstance(seat.app.screen, ProjectsScreen)
    with (tmp_path / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["number"]) for row in rows] == list(range(1, len(rows) + 1))
    assert all(len(row["hash"]) == 64 for row in rows)
