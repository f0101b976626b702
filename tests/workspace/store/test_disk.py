"""A disk that is full, small or read-only: said in words, and nothing is lost. Mounts need root, else tests are skipped."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from loaded_process import run_loaded
from prepared_workspaces import enter_recipe, run_recipe

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store import disk, table_manifests
from sfumato.workspace.store.disk import NotEnoughDisk, disk_error_message, estimate_run_bytes
from sfumato.workspace.store.runs import RunState, find_run, list_runs
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.maintenance import AGE_SECONDS, find_orphans, remove_orphans
from sfumato.workspace.views.results import read_result_rows

Enter = Callable[..., int]
MANY = {"m": 40, "seed": 3}


@contextmanager
def mounted(directory: Path, *options: str) -> Iterator[None]:
    done = subprocess.run(["mount", *options, str(directory)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("mounting is not permitted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


def sfumato(workspace: Path, *arguments: str) -> tuple[int, str]:
    command = [
        sys.executable,
        "-P",
        "-c",
        "from sfumato.tui.cli.main import main; main()",
        *arguments,
        "--workspace",
        str(workspace),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr.strip()


def test_a_run_is_not_entered_where_there_is_too_little_space_for_it(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 99, 1 << 20))  # type: ignore[attr-defined]
    with pytest.raises(
        NotEnoughDisk, match=r"the run may need 3\d MiB and the disk of .* has 1 MiB free; nothing was stored"
    ):
        enter()
    assert list_runs(workspace) == []
    assert not workspace.tables.directory.exists()


@pytest.mark.slow
def test_the_estimate_is_more_than_what_a_run_leaves(
    workspace: Workspace, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    recipe = small_recipe(release=MANY)
    run_recipe(workspace, recipe, small_data, "simulated.csv", b"")
    left = sum(file.stat().st_size for file in workspace.directory.rglob("*") if file.is_file())
    needed = estimate_run_bytes(recipe, small_data)
    assert left < needed < left + 2 * disk.BASE_BYTES


@pytest.mark.quick
def test_a_long_table_needs_room_for_files_that_are_gone_when_the_run_ends(
    small_recipe: Callable[..., Recipe], small_data: Microdata, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = small_recipe(release=MANY)
    short = estimate_run_bytes(recipe, small_data)
    monkeypatch.setattr(table_manifests, "PART_ROWS", len(small_data) - 1)
    more = estimate_run_bytes(recipe, small_data) - short
    assert more == disk.SCRATCH_BYTES_PER_VALUE * len(small_data) * len(recipe.schema)


def test_what_a_disk_refuses_is_told_from_other_errors(tmp_path: Path) -> None:
    assert "full" in disk_error_message(OSError(errno.ENOSPC, "x"))
    assert "full" in disk_error_message(OSError(errno.EDQUOT, "x"))
    assert "read-only" in disk_error_message(OSError(errno.EROFS, "x"))
    assert disk_error_message(FileNotFoundError(errno.ENOENT, "x")) == ""
    assert disk_error_message(ValueError("disk full")) == ""
    connection = sqlite3.connect(f"file:{tmp_path / 'none.db'}?mode=ro", uri=True, isolation_level=None, timeout=0) if (
        sqlite3.connect(tmp_path / "none.db").close() is None) else None  # fmt: skip
    assert connection is not None
    with pytest.raises(sqlite3.OperationalError) as refused:
        connection.execute("CREATE TABLE a (b)")
    connection.close()
    assert "read-only" in disk_error_message(refused.value)


@pytest.mark.slow
def test_a_disk_that_fills_in_mid_run_stops_it_in_words_and_it_goes_on_when_there_is_room(
    tmp_path: Path, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    with mounted(small, "-t", "tmpfs", "-o", "size=40m", "tmpfs"):
        directory = small / "workspace"
        workspace = Workspace.create(directory, PUBLIC)
        recipe = small_recipe(release=MANY)
        run_id = enter_recipe(workspace, recipe, small_data, "simulated.csv", b"")
        ballast = small / "ballast"
        free = shutil.disk_usage(small).free
        with ballast.open("wb") as file:
            file.write(b"x" * (free - (160 << 10)))
        status, said = sfumato(directory, "resume", str(run_id), "--jobs", "1")
        assert status == 2, said
        assert "disk is full" in said
        assert "Traceback" not in said
        finished = find_run(workspace, run_id).tasks_done
        assert finished > 0
        ballast.unlink()
        status, said = sfumato(directory, "resume", str(run_id), "--jobs", "1")
        assert status in (0, 1), said
        assert find_run(workspace, run_id).state is RunState.DONE
        assert workspace.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        rows = read_result_rows(workspace, run_id)
        workspace.close()
    elsewhere = Workspace.create(tmp_path / "roomy", PUBLIC)
    other = run_recipe(elsewhere, recipe, small_data, "simulated.csv", b"")
    assert rows == read_result_rows(elsewhere, other)
    elsewhere.close()


@pytest.mark.slow
def test_a_read_only_workspace_is_refused_in_words_by_every_command_and_stays_as_it_is(
    workspace: Workspace, enter: Enter
) -> None:
    run_id = enter()
    run_worker(workspace.directory, idle=0)
    rows = read_result_rows(workspace, run_id)
    workspace.close()
    with mounted(workspace.directory, "--bind", str(workspace.directory)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(workspace.directory)], check=True)
        for arguments in (["run", "randhie", "--set", "release.m=1"], ["resume", "1"], ["cancel", "1"], ["worker"]):
            done = run_loaded(*arguments, "--workspace", str(workspace.directory))
            assert done.returncode == 2, (arguments, done.stderr)
            assert "read-only" in done.stderr.lower(), (arguments, done.stderr)
            assert "Traceback" not in done.stderr
        for arguments in (["results"], ["runs"], ["runs", "1"], ["audit", "verify"]):
            done = run_loaded(*arguments, "--workspace", str(workspace.directory))
            assert (done.returncode, done.stderr) == (0, ""), arguments
    assert read_result_rows(workspace, run_id) == rows


def orphan(workspace: Workspace, name: str, age: float) -> Path:
    path = workspace.tables.directory / name
    path.write_bytes(b"x")
    then = time.time() - age
    os.utime(path, (then, then))
    return path


@pytest.mark.slow
def test_only_old_files_that_no_row_names_are_removed(workspace: Workspace, enter: Enter) -> None:
    enter()
    run_worker(workspace.directory, idle=0)
    named = sorted(workspace.tables.directory.iterdir())
    for table in named:
        os.utime(table, (0, 0))
    lost = [
        orphan(workspace, f"{'0' * 64}.parquet", 2 * AGE_SECONDS),
        orphan(workspace, ".writing-abc", 2 * AGE_SECONDS),
    ]
    young = [orphan(workspace, f"{'1' * 64}.parquet", 60), orphan(workspace, ".writing-def", 60)]
    assert find_orphans(workspace) == sorted(lost)
    assert remove_orphans(workspace) == 2
    assert sorted(workspace.tables.directory.iterdir()) == sorted([*named, *young])
    last = workspace.connection.execute("SELECT act FROM audit ORDER BY number DESC LIMIT 1").fetchone()[0]
    assert last == "files removed"
    assert remove_orphans(workspace) == 0


def test_an_old_table_that_is_written_again_counts_as_new(workspace: Workspace, small_data: Microdata) -> None:
    sha256 = workspace.tables.write_microdata(small_data)
    os.utime(workspace.tables.path_of(sha256), (0, 0))
    assert find_orphans(workspace) == [workspace.tables.path_of(sha256)]
    assert workspace.tables.write_microdata(small_data) == sha256
    assert find_orphans(workspace) == []


@pytest.mark.slow
def test_a_flipped_byte_in_any_table_is_found_and_the_table_named(workspace: Workspace, enter: Enter) -> None:
    from sfumato.workspace.upkeep.maintenance import check_workspace_health

    enter()
    run_worker(workspace.directory, idle=0)
    assert not [
        finding
        for finding in check_workspace_health(workspace.directory)
        if finding.what in ("table", "audit log") and finding.state == "problem"
    ]
    for table in sorted(workspace.tables.directory.iterdir()):
        content = table.read_bytes()
        for at in (0, len(content) // 2, len(content) - 1):
            table.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            problems = [f.text for f in check_workspace_health(workspace.directory) if f.what == "table"]
            assert problems == [f"the table {table.name} has changed since it was written"]
        table.write_bytes(content)
