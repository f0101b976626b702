"""The check of a workspace reads every byte of the tables and of the releases that its audit log records."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from keyed_workspace import KEY
from prepared_workspaces import run_recipe

from sfumato.tui.session.audit_verification import verify_sealed_workspace
from sfumato.workspace.release import recorded_releases
from sfumato.workspace.service.deletion import delete_run
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.ledger import read_charges
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.recorded_tables import recorded_tables

pytestmark = pytest.mark.slow

PLAIN: dict[str, Any] = {"measure": [{"method": "utility.ecdf"}], "threshold": []}


@pytest.fixture
def workspace(tmp_path: Path, computed: Callable[..., Path]) -> Iterator[Workspace]:
    shutil.copytree(computed(key=KEY, **PLAIN), tmp_path / "workspace")
    with Workspace.open(tmp_path / "workspace") as copied:
        yield copied


def test_a_cut_or_changed_or_missing_table_is_named_whichever_it_is(workspace: Workspace) -> None:
    whole = verify_sealed_workspace(workspace, None)
    tables = recorded_tables(workspace.connection)
    sizes = {name: workspace.tables.path_of(name).stat().st_size for name in tables}
    assert whole.unchanged
    assert (whole.files, whole.bytes) == (len(tables), sum(sizes.values()))
    assert f"{len(tables)} tables ({whole.bytes:,} bytes)" in whole.text
    assert len(tables) >= 4, "the confidential table, and the datasets"
    for name, owners in tables.items():
        path = workspace.tables.path_of(name)
        content = path.read_bytes()
        for damaged in (content[:-50], content[:99] + bytes([content[99] ^ 1]) + content[100:], content + b"\0"):
            path.write_bytes(damaged)
            found = verify_sealed_workspace(workspace, None)
            assert not found.unchanged
            assert "has changed since it was written" in found.text
            assert owners[0] in found.text
        path.unlink()
        assert "is gone from the workspace" in verify_sealed_workspace(workspace, None).text
        path.write_bytes(content)
    assert verify_sealed_workspace(workspace, None).unchanged


def test_a_table_of_a_run_that_is_deleted_meanwhile_is_not_missed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.workspace.upkeep import integrity

    read = integrity.read_recorded_tables

    def delete_first(own: Workspace, recorded: Any) -> Any:
        with Workspace.open(own.directory) as other:
            delete_run(other, 1)
        for name, owners in recorded.items():
            if not any(owner.startswith("dataset") for owner in owners):
                own.tables.path_of(name).unlink(missing_ok=True)
        return read(own, recorded)

    monkeypatch.setattr(integrity, "read_recorded_tables", delete_first)
    assert verify_sealed_workspace(workspace, None).unchanged


def exchange(out: Path) -> None:
    """Put a folder of somebody else in place: its manifests agree with its files."""
    shutil.move(out, out.with_name("taken"))
    shutil.copytree(out.with_name("other"), out)


def exchange_public(out: Path) -> None:
    shutil.rmtree(out / "internal")
    shutil.rmtree(out / "public")
    shutil.copytree(out.with_name("other") / "public", out / "public")


def truncate_dataset(out: Path) -> None:
    path = out / "public/dataset-SYNTHETIC-02.csv"
    os.truncate(path, path.stat().st_size - 1)


def empty_folder(out: Path) -> None:
    shutil.rmtree(out)
    out.mkdir()


def link_public(out: Path) -> None:
    """A link to a folder with the true manifest and another dataset."""
    shutil.move(out / "public", out.with_name("elsewhere"))
    (out.with_name("elsewhere") / "dataset-SYNTHETIC-01.csv").write_text("forged", "utf-8")
    (out / "public").symlink_to(out.with_name("elsewhere"))


def flatten(out: Path) -> None:
    """A forged package that is the folder itself, so that no folder has the name of a package."""
    shutil.rmtree(out)
    shutil.copytree(out.with_name("other") / "public", out)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (link_public, "public: is a link, not a package of the release"),
        (flatten, "public/manifest.json is not the one that was written"),
        (exchange, "internal/manifest.json is not the one that was written"),
        (exchange_public, "public/manifest.json is not the one that was written"),
        (truncate_dataset, "public/dataset-SYNTHETIC-02.csv: changed since it was released"),
        (empty_folder, "is not the release of run 1 in row"),
    ],
)
def test_a_release_that_lies_where_it_was_written_is_read_too(
    workspace: Workspace, tmp_path: Path, change: Callable[[Path], None], said: str
) -> None:
    out = tmp_path / "out"
    write_run_release(workspace, 1, out, reason="no risk is measured")
    write_run_release(workspace, 1, tmp_path / "other", "parquet", reason="no risk is measured")
    found = verify_sealed_workspace(workspace, None)
    files = [path for name in ("out", "other") for path in (tmp_path / name).rglob("*") if path.is_file()]
    tables = recorded_tables(workspace.connection)
    assert found.unchanged
    size = sum(path.stat().st_size for path in (*files, *map(workspace.tables.path_of, tables)))
    # The manifests are read, and name the other files.
    assert (found.files, found.bytes) == (len(tables) + len(files) - 4, size)
    change(out)
    changed = verify_sealed_workspace(workspace, None)
    assert not changed.unchanged
    assert said in changed.text


def test_a_release_that_was_moved_away_is_mentioned_and_no_fault(workspace: Workspace, tmp_path: Path) -> None:
    write_run_release(workspace, 1, tmp_path / "out", reason="no risk is measured")
    shutil.move(tmp_path / "out", tmp_path / "sent")
    found = verify_sealed_workspace(workspace, None)
    assert found.unchanged
    assert "does not lie in" in found.text
    shutil.move(tmp_path / "sent", tmp_path / "out")
    shutil.rmtree(tmp_path / "out/internal")
    halved = verify_sealed_workspace(workspace, None)
    assert halved.unchanged, "the half that stays inside may lie elsewhere"
    assert "internal/ of the release of run 1 does not lie in" in halved.text


def test_the_manifest_that_is_compared_is_the_one_by_which_the_files_were_read(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An intruder puts the true folder back after a forged one was read."""
    out, other = tmp_path / "out", tmp_path / "other"
    for folder, form in ((out, "csv"), (other, "parquet")):
        write_run_release(workspace, 1, folder, form, reason="no risk is measured")  # type: ignore[arg-type]
    read = recorded_releases.verify_release

    def read_forged(folder: Path) -> Any:
        if folder != out:
            return read(folder)
        out.rename(tmp_path / "true")
        other.rename(out)
        try:
            return read(folder)
        finally:
            out.rename(other)
            (tmp_path / "true").rename(out)

    monkeypatch.setattr(recorded_releases, "verify_release", read_forged)
    found = verify_sealed_workspace(workspace, None)
    assert not found.unchanged
    assert "public/manifest.json is not the one that was written" in found.text


def test_a_file_that_was_put_among_the_tables_is_mentioned(workspace: Workspace) -> None:
    (workspace.tables.directory / f"{'0' * 64}.parquet").write_bytes(b"not ours")
    found = verify_sealed_workspace(workspace, None)
    assert found.unchanged
    assert "1 file in tables/ that the database does not record (000" in found.text


def test_the_marks_of_people_are_read_too(tmp_path: Path, small_recipe: Callable[..., Any], small_data: Any) -> None:
    """Without them a person in common is recognised in no later release."""
    with Workspace.create(tmp_path / "marked") as own:
        frame = small_data.frame.assign(code=[f"{i * 7919 % 100_003:x}" for i in range(len(small_data))])
        table = small_recipe(**PLAIN).to_table()
        table["variables"]["code"] = {"kind": "categorical", "role": "identifier"}
        run_id = run_recipe(own, {**table, "population": {"name": "A", "identifier": "code"}}, frame)
        write_run_release(own, run_id, tmp_path / "out", reason="simulated people of no town")
        (charge,) = read_charges(own.connection)
        assert charge.identifiers
        assert verify_sealed_workspace(own, None).unchanged
        os.truncate(own.tables.path_of(charge.identifiers), 50)
        found = verify_sealed_workspace(own, None)
        assert not found.unchanged
        assert f"the people of the release of run {run_id}" in found.text


def test_the_answer_says_what_it_is_worth(workspace: Workspace, tmp_path: Path) -> None:
    found = verify_sealed_workspace(workspace, None)
    assert found.worth in found.text
    assert str(workspace.directory / "key") in found.worth
    with Workspace.create(tmp_path / "public", b"") as shared:
        assert "the key is public: this shows accidents only" in verify_sealed_workspace(shared, None).worth
