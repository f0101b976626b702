"""The key of a workspace: made once, its owner's alone, never replaced in silence."""

from __future__ import annotations

import contextlib
import os
import pickle
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from prepared_workspaces import set_back_before_seals

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC as ENGINES_PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.audit import audit_rows
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.queue import claim_task, requeue_run
from sfumato.workspace.jobs.run_task import read_task_input
from sfumato.workspace.jobs.runs import enter_run, reenter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store import database
from sfumato.workspace.store.keys import PUBLIC_KEY, NoKey, compute_fingerprint, generate_key, read_key, write_key
from sfumato.workspace.store.runs import RunState, find_run, list_runs
from sfumato.workspace.store.workspace import Workspace, export_key, future_workspace_key
from sfumato.workspace.upkeep.maintenance import check_workspace_health
from sfumato.workspace.views.results import read_result_rows

SOURCE = SourceFile("simulated.csv", b"simulated")


@pytest.fixture
def own(tmp_path: Path) -> Workspace:
    """A workspace with a key of its own."""
    return Workspace.create(tmp_path / "own")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_workspace_is_made_with_a_key_that_no_other_has(tmp_path: Path, own: Workspace) -> None:
    with Workspace.create(tmp_path / "other") as other:
        assert len(own.read_workspace_key()) == len(other.read_workspace_key()) == 32
        assert own.read_workspace_key() != other.read_workspace_key()
    assert mode(own.directory / "key") == 0o600
    assert (
        own.stored_fingerprint
        == compute_fingerprint(own.read_workspace_key())
        != compute_fingerprint(other.read_workspace_key())
    )
    assert PUBLIC_KEY == ENGINES_PUBLIC
    assert (compute_fingerprint(PUBLIC_KEY), len(own.stored_fingerprint)) == ("public", 16)


def test_the_mode_does_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_key(tmp_path / "key", generate_key())
    finally:
        os.umask(before)
    assert mode(tmp_path / "key") == 0o600


def test_no_link_is_followed_and_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"x" * 32)
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "dangling").symlink_to("nothing")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "short").write_bytes(b"x" * 31)
    (tmp_path / "folder").mkdir()
    for name, said in {
        "link": "a link",
        "pipe": "no file",
        "short": "32 bytes",
        "folder": "no file",
        "gone": "no key",
    }.items():
        with pytest.raises(NoKey, match=said):
            read_key(tmp_path / name)
    for name in ("target", "link", "dangling"):
        with pytest.raises(NoKey, match="name a new file"):
            write_key(tmp_path / name, generate_key())
    assert (tmp_path / "target").read_bytes() == b"x" * 32
    assert not (tmp_path / "nothing").exists()


def test_a_workspace_without_its_key_is_looked_at_and_computes_nothing(
    own: Workspace, small_recipe: Callable[..., Recipe], small_data: Microdata, tmp_path: Path
) -> None:
    run_id = enter_run(own, small_recipe(), SOURCE, small_data)
    own.connection.execute("UPDATE run SET state = 'interrupted'")
    export_key(own, tmp_path / "kept")
    (own.directory / "key").unlink()
    with Workspace.open(own.directory) as opened:
        assert [run.id for run in list_runs(opened)] == [run_id]
        for act in (
            lambda: enter_run(opened, small_recipe(), SOURCE, small_data),
            lambda: reenter_run(opened, run_id),
            lambda: requeue_run(opened, run_id),
        ):
            with pytest.raises(NoKey, match=r"sfumato init .* --key FILE"):
                act()
        assert len(list_runs(opened)) == 1
    assert not (own.directory / "key").exists(), "no new key was made"
    (check,) = [one for one in check_workspace_health(own.directory) if one.what == "key"]
    assert check.state == "problem"
    with pytest.raises(NoKey, match="another key"):
        Workspace.create(own.directory, generate_key())
    assert not (own.directory / "key").exists()
    with Workspace.create(own.directory, read_key(tmp_path / "kept")) as restored:
        assert requeue_run(restored, run_id)
        assert [row.act for row in audit_rows(restored.connection)][-3:] == [
            "key exported",
            "key restored",
            "run resumed",
        ]


def test_a_key_put_in_the_place_of_another_is_noticed(
    own: Workspace, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    enter_run(own, small_recipe(), SOURCE, small_data)
    (own.directory / "key").unlink()
    for planted in (generate_key(), PUBLIC_KEY):
        write_key(own.directory / "key", planted)
        with pytest.raises(NoKey, match="another key than the workspace's"):
            enter_run(own, small_recipe(), SOURCE, small_data)
        run_worker(own.directory, idle=0)
        run = find_run(own, 1)
        assert run.state is RunState.FAILED
        assert "another key" in run.error
        (own.directory / "key").unlink()


def test_a_leftover_key_of_a_workspace_that_was_never_made_is_its_key(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    write_key(tmp_path / "w" / "key", generate_key())
    kept = read_key(tmp_path / "w" / "key")
    assert future_workspace_key(tmp_path / "w") == kept
    with Workspace.create(tmp_path / "w", kept) as made:
        assert made.read_workspace_key() == kept


@pytest.fixture
def older(
    tmp_path: Path,
    small_recipe: Callable[..., Recipe],
    small_data: Microdata,
) -> Path:
    """A workspace of the version before keys, with a run half done."""
    directory = tmp_path / "older"
    with Workspace.create(directory, PUBLIC_KEY) as made:
        enter_run(made, small_recipe(), SOURCE, small_data)
        made.connection.execute("UPDATE run SET state = 'interrupted'")
        set_back_before_seals(made)
        at = [step.__name__ for step in database.MIGRATIONS].index("keys")
        made.connection.execute("DROP TABLE workspace_key")
        for column in ("key_public", "key_fingerprint"):
            made.connection.execute(f"ALTER TABLE run DROP COLUMN {column}")
        made.connection.execute("DELETE FROM migration WHERE number > ?", (at,))
        made.connection.execute(f"PRAGMA user_version = {at}")
    (directory / "key").unlink()
    return directory


@pytest.mark.slow
def test_a_workspace_of_the_version_before_gets_a_key_and_its_runs_stay_public(
    older: Path, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    with Workspace.open(older) as migrated:
        assert len(migrated.read_workspace_key()) == 32
        assert [row.act for row in audit_rows(migrated.connection)][-1] == "key made"
        assert find_run(migrated, 1).key_public
        requeue_run(migrated, 1)
        again = reenter_run(migrated, 1)
        assert not find_run(migrated, again).key_public
        run_worker(older, idle=0)
        plain = list(execute_run(small_recipe(), small_data, key=PUBLIC_KEY).rows)
        assert read_result_rows(migrated, 1) == plain, "what it began without a key it ends without"
        assert (
            read_result_rows(migrated, again)
            == list(execute_run(small_recipe(), small_data, key=migrated.read_workspace_key()).rows)
            != plain
        )
    with Workspace.open(older) as opened:
        assert opened.read_workspace_key() == migrated.read_workspace_key()


def test_what_a_task_is_sent_with_has_the_fingerprint_and_not_the_key(
    own: Workspace, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    """It goes to other processes and machines, and a scheduler may keep or show it."""
    enter_run(own, small_recipe(), SOURCE, small_data)
    held = claim_task(own, "w")
    assert held is not None
    sent = pickle.dumps(read_task_input(own, held))
    assert own.read_workspace_key() not in sent
    assert own.stored_fingerprint.encode() in sent


@pytest.mark.slow
def test_a_shuffled_release_needs_the_key_that_its_run_was_entered_with(
    own: Workspace, small_recipe: Callable[..., Recipe], small_data: Microdata, tmp_path: Path
) -> None:
    run_id = enter_run(own, small_recipe(), SOURCE, small_data)
    run_worker(own.directory, idle=0)
    (own.directory / "key").rename(tmp_path / "kept")
    with pytest.raises(NoKey, match="is missing"):
        write_run_release(own, run_id, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "own"]
    (tmp_path / "kept").rename(own.directory / "key")
    assert write_run_release(own, run_id, tmp_path / "out").files


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [0, 2])
def test_workers_read_the_key_and_no_row_or_log_has_it(
    own: Workspace, small_recipe: Callable[..., Recipe], small_data: Microdata, jobs: int
) -> None:
    run_id = enter_run(own, small_recipe(), SOURCE, small_data)
    run_worker(own.directory, jobs=jobs, idle=0)
    key = own.read_workspace_key()
    assert read_result_rows(own, run_id) == list(execute_run(small_recipe(), small_data, key=key).rows)
    own.close()
    with contextlib.closing(database.open_database(own.directory / database.DATABASE)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for path in own.directory.rglob("*"):
        if path.is_file() and path.name != "key":
            content = path.read_bytes()
            assert key not in content
            assert key.hex().encode() not in content.lower()
