"""Seals: what a run found is bound to the audit log, and whatever is not as it was sealed is named."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from keyed_workspace import KEY
from prepared_workspaces import set_back_before_seals

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.audit import AuditHead, AuditRow, audit_rows, read_head, verify_audit_log, write_head_file
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.queue import claim_task, fail_task, requeue_run, stop_run
from sfumato.workspace.jobs.runs import RunEntry, enter_run, enter_runs, reenter_run, result_object
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.release.report import report_page
from sfumato.workspace.service.deletion import delete_run
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.keys import NoKey, generate_key, write_key
from sfumato.workspace.store.runs import RunState, find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.adopting import adopt_workspace
from sfumato.workspace.upkeep.integrity import NotAsSealed, verify_run, verify_workspace

Enter = Callable[..., int]
SOURCE = SourceFile("simulated.csv", b"simulated")


@pytest.fixture(scope="module")
def built_workspace(tmp_path_factory: pytest.TempPathFactory, small: tuple[Recipe, Microdata]) -> Path:
    """A workspace with a key of its own, a run that is done and one that was interrupted."""
    directory = tmp_path_factory.mktemp("sealed") / "workspace"
    with Workspace.create(directory, KEY) as workspace:
        enter_run(workspace, *_entry(small))
        run_worker(directory, idle=0)
        run_id = enter_run(workspace, *_entry(small))
        stop_run(workspace, run_id, RunState.INTERRUPTED)
    return directory


def _entry(small: tuple[Recipe, Microdata]) -> tuple[Recipe, SourceFile, Microdata]:
    return small[0], SOURCE, small[1]


@pytest.fixture
def sealed_workspace(built_workspace: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A copy of it."""
    shutil.copytree(built_workspace, tmp_path / "workspace")
    with Workspace.open(tmp_path / "workspace") as workspace:
        yield workspace


def forged(workspace: Workspace, *statements: str) -> None:
    """Change the database as somebody who may write it, and knows our source, but not the key."""
    workspace.close()
    with contextlib.closing(sqlite3.connect(workspace.directory / "workspace.db")) as connection:
        for act in ("UPDATE", "DELETE"):
            connection.execute(f"DROP TRIGGER audit_keeps_{act}")
        for statement in statements:
            connection.execute(statement)
        for act in ("UPDATE", "DELETE"):
            connection.execute(
                f"""CREATE TRIGGER audit_keeps_{act} BEFORE {act} ON audit
                BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END"""
            )
        connection.commit()


def rebuild(workspace: Workspace) -> None:
    """Give every row of the audit log the hash that it must have, and note the new head everywhere."""
    previous = ""
    statements = []
    for row in audit_rows(workspace.connection):
        bare = AuditRow(row.number, row.time, row.act, row.subject, row.details, previous, "")
        statements.append(
            f"UPDATE audit SET previous = '{previous}', hash = '{bare.compute_hash()}' WHERE number = {row.number}"
        )
        previous = bare.compute_hash()
    statements.append(f"UPDATE audit_head SET number = {len(statements)}, hash = '{previous}'")
    forged(workspace, *statements)
    write_head_file(workspace.directory, AuditHead(len(statements) - 1, previous))


def wrong(workspace: Workspace) -> str:
    return "\n".join(verify_workspace(workspace).wrong)


def test_what_nobody_touched_is_as_it_was_sealed(sealed_workspace: Workspace) -> None:
    found = verify_workspace(sealed_workspace)
    assert (found.wrong, found.notes) == ((), ())
    assert not verify_run(sealed_workspace, 1, strict=True).message
    assert not verify_run(sealed_workspace, 2, strict=True).message


FAIL_TO_PASS = """UPDATE verdict SET verdict = json_set(verdict, '$.outcome', 'pass', '$.margin', 0.25)
                  WHERE run_id = 1"""


def test_a_failed_verdict_that_is_made_a_pass_is_named_wherever_it_would_be_used(
    sealed_workspace: Workspace, tmp_path: Path
) -> None:
    forged(sealed_workspace, FAIL_TO_PASS)
    assert verify_audit_log(sealed_workspace.connection, sealed_workspace.directory)[1] == "", (
        "the control: the chain of hashes alone sees nothing"
    )
    for use in (
        lambda: write_run_release(sealed_workspace, 1, tmp_path / "out", reason="because of a backup"),
        lambda: report_page(sealed_workspace, 1),
        lambda: result_object(sealed_workspace, 1),
        lambda: verify_run(sealed_workspace, "last") and verify_run(sealed_workspace, 1),
    ):
        with pytest.raises(NotAsSealed, match=r"verdict 1 \(risk.identification.true_match_rate\)"):
            use()
    assert "verdict 1" in wrong(sealed_workspace)
    assert not (tmp_path / "out").exists()


def test_a_released_table_that_is_swapped_for_the_confidential_one_is_named(
    sealed_workspace: Workspace, tmp_path: Path
) -> None:
    forged(
        sealed_workspace,
        "UPDATE artefact SET sha256 = (SELECT table_sha256 FROM dataset LIMIT 1) WHERE name = 'draw/1' AND run_id = 1",
    )
    with pytest.raises(NotAsSealed, match="table draw/1"):
        write_run_release(sealed_workspace, 1, tmp_path / "out", reason="because of a backup")


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE run SET recipe = replace(recipe, 'max = 0.5', 'max = 0.9')", "recipe"),
        ("UPDATE run SET title = 'Another'", "title"),
        ("UPDATE run SET seed = 8", "seed"),
        ("UPDATE run SET versions = '{}'", "versions"),
        ("UPDATE run SET key_public = 1", "key"),
        ("UPDATE run SET finished = finished + 1", "times"),
        ("UPDATE run SET state = 'failed'", "its state, failed"),
        ("UPDATE dataset SET source_sha256 = 'x'", "data"),
        ("UPDATE result SET value = value + 0.125 WHERE measure = 'true_match_rate' AND draw = 2", "true_match_rate"),
        ("DELETE FROM result WHERE measure = 'true_match_rate' AND draw = 2", "are missing of"),
        ("INSERT INTO result SELECT NULL, run_id, task_id, family, method, measure, target, dataset, draw, level, 0, lower, upper,"
         " baseline, unit, status, reason, params FROM result LIMIT 1", "added to"),
        ("DELETE FROM verdict", "verdict 0 is missing"),
        ("INSERT INTO verdict SELECT run_id, 1, verdict FROM verdict", "verdict 1 was added"),
        ("UPDATE task SET seconds = 1e6 WHERE key = 'fit/0'", "task fit/0"),
        ("UPDATE diagnostic SET passed = 1", "diagnostics of"),
        ("UPDATE seal SET seal = x'00' WHERE part = 'recipe'", "recipe"),
        ("DELETE FROM seal WHERE part = 'recipe'", "recipe was added"),
        ("DELETE FROM seal", "its seals are gone"),
    ],
)  # fmt: skip
def test_what_was_changed_is_named(sealed_workspace: Workspace, statement: str, named: str) -> None:
    before = "\n".join(sealed_workspace.connection.iterdump())
    forged(sealed_workspace, statement)
    if "\n".join(sealed_workspace.connection.iterdump()) == before:
        assert "diagnostic" in statement, "linear models leave none"
        return
    with pytest.raises(NotAsSealed, match=named):
        verify_run(sealed_workspace, 1)
    assert named in wrong(sealed_workspace)


def test_a_chain_that_was_made_anew_does_not_pass(sealed_workspace: Workspace) -> None:
    forged(
        sealed_workspace, "UPDATE audit SET details = json_set(details, '$.user', 'somebody') WHERE act = 'run entered'"
    )
    assert "was changed" in wrong(sealed_workspace)
    rebuild(sealed_workspace)
    assert verify_audit_log(sealed_workspace.connection, sealed_workspace.directory)[1] == "", (
        "the control: without seals it would"
    )
    assert "was not written by this workspace: its seal does not agree" in wrong(sealed_workspace)


def test_a_run_that_is_gone_or_was_never_entered_is_named(sealed_workspace: Workspace) -> None:
    forged(sealed_workspace, "DELETE FROM run WHERE id = 2")
    assert "run 2 is gone, and the audit log does not say that it was deleted" in wrong(sealed_workspace)
    forged(
        sealed_workspace,
        "UPDATE run SET id = 9 WHERE id = 1",
        "UPDATE result SET run_id = 9",
        "UPDATE verdict SET run_id = 9",
    )
    with pytest.raises(NotAsSealed, match="the audit log does not know it"):
        verify_run(sealed_workspace, 9)


def test_a_run_that_was_deleted_is_no_alarm(sealed_workspace: Workspace) -> None:
    delete_run(sealed_workspace, 2)
    assert wrong(sealed_workspace) == ""


@pytest.mark.slow
def test_one_that_stood_beside_another_may_be_deleted(
    sealed_workspace: Workspace, small: tuple[Recipe, Microdata]
) -> None:
    recipe, data = small
    runs = enter_runs(sealed_workspace, [RunEntry(recipe, SOURCE, data), RunEntry(recipe, SOURCE, data)])
    run_worker(sealed_workspace.directory, idle=0)
    forged(sealed_workspace, "UPDATE companion SET companion_id = 1")
    with pytest.raises(NotAsSealed, match="beside it"):
        verify_run(sealed_workspace, runs[0])
    forged(sealed_workspace, f"UPDATE companion SET companion_id = {runs[1]}")
    delete_run(sealed_workspace, runs[1])
    assert verify_run(sealed_workspace, runs[0]).message == ""
    assert wrong(sealed_workspace) == ""


@pytest.mark.slow
def test_a_run_that_goes_on_is_sealed_task_by_task(
    sealed_workspace: Workspace, small: tuple[Recipe, Microdata]
) -> None:
    requeue_run(sealed_workspace, 2)
    assert wrong(sealed_workspace) == ""
    held = claim_task(sealed_workspace, "me")
    assert held is not None
    assert wrong(sealed_workspace) == ""
    fail_task(sealed_workspace, held, "it did not converge")
    assert wrong(sealed_workspace) == ""
    requeue_run(sealed_workspace, 2)
    run_worker(sealed_workspace.directory, idle=0)
    assert find_run(sealed_workspace, 2).state is RunState.DONE
    assert wrong(sealed_workspace) == ""
    again = reenter_run(sealed_workspace, 2)
    assert verify_run(sealed_workspace, again).message == ""


def test_results_of_a_run_that_was_stopped_are_held_too(sealed_workspace: Workspace) -> None:
    requeue_run(sealed_workspace, 2)
    work_a_little(sealed_workspace)
    stop_run(sealed_workspace, 2, RunState.CANCELLED)
    assert wrong(sealed_workspace) == ""
    forged(sealed_workspace, "UPDATE artefact SET sha256 = 'x' WHERE run_id = 2 AND name = 'fit/0'")
    assert "table fit/0" in wrong(sealed_workspace)


def work_a_little(workspace: Workspace) -> None:
    from sfumato.workspace.jobs.queue import finish_task
    from sfumato.workspace.jobs.run_task import TaskResult, read_task_input, run_task

    held = claim_task(workspace, "me")
    assert held is not None
    found = run_task(workspace.directory, read_task_input(workspace, held))
    assert isinstance(found, TaskResult)
    finish_task(workspace, held, found)


def test_verdicts_follow_from_the_rows_even_where_their_seal_agrees(sealed_workspace: Workspace) -> None:
    """Whoever has the key, or a worker that computes wrongly, can seal what does not follow."""
    from sfumato.workspace.audit import AuditAct, append_act
    from sfumato.workspace.store.seals import seal_run

    forged(sealed_workspace, FAIL_TO_PASS)
    with sealed_workspace.write_transaction() as connection:
        connection.execute("DELETE FROM seal WHERE part LIKE 'verdict %'")
        seal = seal_run(connection, sealed_workspace.sealer, 1)
        append_act(connection, AuditAct.RUN_FINISHED, "run 1", tasks_done=0, tasks=0, seal=seal)
    with pytest.raises(NotAsSealed, match="verdict 1 does not follow from the rows"):
        verify_run(sealed_workspace, 1)


def test_without_its_key_a_workspace_is_looked_at_and_nothing_goes_out(
    sealed_workspace: Workspace, tmp_path: Path
) -> None:
    (sealed_workspace.directory / "key").rename(tmp_path / "key")
    with Workspace.open(sealed_workspace.directory) as opened:
        assert "could not be looked at" in verify_run(opened, 1).message
        for use in (
            lambda: report_page(opened, 1),
            lambda: write_run_release(opened, 1, tmp_path / "out", reason="because of a backup"),
        ):
            with pytest.raises(NoKey):
                use()
        with pytest.raises(NoKey):
            delete_run(opened, 1)
        assert find_run(opened, 1).state is RunState.DONE
        assert "cannot be looked at" in wrong(opened)


def test_a_run_is_stopped_without_a_key_and_that_is_said(sealed_workspace: Workspace, tmp_path: Path) -> None:
    requeue_run(sealed_workspace, 2)
    (sealed_workspace.directory / "key").rename(tmp_path / "key")
    with Workspace.open(sealed_workspace.directory) as opened:
        assert stop_run(opened, 2, RunState.CANCELLED)
    (tmp_path / "key").rename(sealed_workspace.directory / "key")
    assert "(run cancelled) has no seal: it was written without the workspace's key" in wrong(sealed_workspace)


@pytest.fixture
def external_seal_key(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere" / "seal"
    path.parent.mkdir()
    write_key(path, generate_key())
    return path


@pytest.mark.slow
def test_the_policy_may_name_a_key_outside(
    sealed_workspace: Workspace,
    external_seal_key: Path,
    small: tuple[Recipe, Microdata],
    tmp_path: Path,
    write_own_policy: Callable[[str], Path],
) -> None:
    own_policy = write_own_policy(f'[seal]\nkey = "{external_seal_key}"\n')
    with Workspace.open(sealed_workspace.directory) as opened:
        assert wrong(opened) == "no row is sealed yet by the key that the policy names; the next act will be"
        run_id = enter_run(opened, *_entry(small))
        run_worker(opened.directory, idle=0)
        assert wrong(opened) == ""
        assert verify_run(opened, 1).message == verify_run(opened, run_id).message == ""
        own = opened.all_sealers()[-1]
        number = read_head(opened.connection).number
        row = opened.connection.execute("SELECT hash FROM audit WHERE number = ?", (number,)).fetchone()[0]
        import hmac

        seal = hmac.digest(own.key, b"audit row " + row.encode(), "sha256").hex()
        forged(opened, f"UPDATE audit_seal SET key = '{own.name}', seal = '{seal}' WHERE number = {number}")
        assert f"row {number} is sealed by another key than row" in wrong(opened), (
            "the workspace's own key is not enough"
        )
    own_policy.unlink()
    with Workspace.open(sealed_workspace.directory) as opened:
        assert "sealed by a key that is not at hand" in wrong(opened)


@pytest.mark.parametrize("name", ["relative", "{directory}/inside", "/not/there"])
def test_a_sealing_key_lies_outside_and_is_there(
    sealed_workspace: Workspace, name: str, write_own_policy: Callable[[str], Path]
) -> None:
    write_key(sealed_workspace.directory / "inside", generate_key())
    path = name.format(directory=sealed_workspace.directory)
    write_own_policy(f'[seal]\nkey = "{path}"\n')
    with Workspace.open(sealed_workspace.directory) as opened, pytest.raises(NoKey):
        assert opened.sealer


@pytest.mark.slow
def test_the_gate_warns_of_a_policy_that_has_changed_since(sealed_workspace: Workspace) -> None:
    assert findings(sealed_workspace)["policy_since_run"] == "pass"
    (sealed_workspace.directory / "policy.toml").write_text("smallest_cell = 11\n")
    found = verify_workspace(sealed_workspace)
    assert found.wrong == ()
    assert found.notes[0] == "run 1: the policy has changed since it ended"
    assert (findings(sealed_workspace)["policy_since_run"], findings(sealed_workspace)["run_sealed"]) == (
        "warn",
        "pass",
    )


def findings(workspace: Workspace) -> dict[str, str]:
    """What the gate says of the release of run 1, by check."""
    plan = plan_release(workspace, 1)
    return {
        one.check: one.status
        for one in examine_release(workspace, plan, read_policy_of_workspace(workspace.directory)).findings
    }


@pytest.mark.slow
def test_runs_of_an_earlier_version_say_so_and_are_no_error(sealed_workspace: Workspace) -> None:
    set_back_before_seals(sealed_workspace)
    with Workspace.open(sealed_workspace.directory) as opened:
        assert [row.act for row in audit_rows(opened.connection)][-1] == "seals begun"
        found = verify_workspace(opened)
        assert found.wrong == ()
        assert found.notes == (
            "runs 1 to 2 are of an earlier version, or taken over from another user, and not sealed",
        )
        assert "run 1 is not sealed: made by an earlier version" in verify_run(opened, 1, strict=True).message
        assert result_object(opened, 1)["rows"]
        assert findings(opened)["run_sealed"] == "block", "it goes out for a reason only"
        requeue_run(opened, 2)
        run_worker(opened.directory, idle=0)
        assert verify_run(opened, 2).message == "", "one that ends under this version is sealed"
        forged(opened, "UPDATE audit SET details = '{}' WHERE number = 2")
        rebuild(opened)
        assert "its seal does not agree" in wrong(opened), "the first seal holds what was before it"


def test_the_seals_of_a_workspace_cannot_be_taken_away(sealed_workspace: Workspace) -> None:
    forged(sealed_workspace, "DELETE FROM audit_seal WHERE number < 4")
    assert "the audit log has lost its seals" in wrong(sealed_workspace)


def test_an_adopted_workspace_says_that_its_runs_are_not_sealed(
    sealed_workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopt_workspace(sealed_workspace.directory, tmp_path / "mine")
    with Workspace.open(tmp_path / "mine") as copy:
        assert verify_workspace(copy).wrong == ()
        assert "taken over from another user" in verify_run(copy, 1).message


def test_the_database_that_acts_by_itself_or_lacks_something_is_named(sealed_workspace: Workspace) -> None:
    forged(
        sealed_workspace,
        "CREATE TRIGGER t AFTER INSERT ON run BEGIN SELECT 1; END",
        "CREATE VIEW v AS SELECT 1",
        "DROP INDEX task_claim",
    )
    said = wrong(sealed_workspace)
    for words in ("a trigger that is not ours: t", "a view that is not ours: v", "lacks the index task_claim"):
        assert words in said


def test_a_log_whose_rows_were_changed_holds_no_run(sealed_workspace: Workspace) -> None:
    forged(
        sealed_workspace,
        "UPDATE audit SET details = json_set(details, '$.user', 'somebody') WHERE act = 'dataset imported'",
    )
    with pytest.raises(NotAsSealed, match="the audit log is broken: row 3 was changed"):
        verify_run(sealed_workspace, 1)


@pytest.mark.slow
def test_a_reason_that_reads_like_a_beginning_is_none(sealed_workspace: Workspace, tmp_path: Path) -> None:
    """Rows may hold words of users; a log may not begin to be sealed at one of them."""
    write_run_release(sealed_workspace, 1, tmp_path / "out", reason='"runs_before": 99')
    forged(sealed_workspace, f"DELETE FROM audit_seal WHERE number < {read_head(sealed_workspace.connection).number}")
    assert "the audit log has lost its seals" in wrong(sealed_workspace)
