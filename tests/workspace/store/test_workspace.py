"""A workspace's directory, and the projects and datasets in it."""

from __future__ import annotations

import sqlite3
import stat
import threading
from pathlib import Path

import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.workspace.errors import NotAWorkspace, NotFound
from sfumato.workspace.store.runs import list_project_summaries
from sfumato.workspace.store.workspace import Workspace


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.slow
def test_a_new_workspace_is_its_owners_alone(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir(mode=0o755)
    for name in ("new", "deep/down/new", "empty"):
        Workspace.create(tmp_path / name).close()
        assert mode(tmp_path / name) == 0o700


def test_creating_twice_opens_what_is_there(tmp_path: Path) -> None:
    first = Workspace.create(tmp_path / "workspace")
    with first.write_transaction():
        number = first.ensure_project("mine")
    second = Workspace.create(tmp_path / "workspace")
    assert [(project.id, project.name) for project in list_project_summaries(second)] == [(number, "mine")]
    first.close()
    second.close()


def test_a_directory_with_other_things_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "mother.txt").touch()
    before = mode(tmp_path / "letters")
    for name in ("letters", "letters/mother.txt"):
        with pytest.raises(NotAWorkspace, match="name a new or empty directory"):
            Workspace.create(tmp_path / name)
    assert mode(tmp_path / "letters") == before


def test_opening_what_is_no_workspace_names_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(NotAWorkspace, match="sfumato init"):
        Workspace.open(tmp_path)


@pytest.mark.parametrize(
    "content", [b"no database, though it has many bytes" * 40, b"SQLite format 3\0" + b"\1" * 4096]
)
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "workspace.db").write_bytes(content)
    with pytest.raises(NotAWorkspace, match="cannot be opened"):
        Workspace.open(tmp_path)


def test_closing_is_no_end(workspace: Workspace) -> None:
    workspace.close()
    workspace.close()
    assert list_project_summaries(workspace) == []


def test_the_data_version_changes_when_another_has_written_and_only_then(workspace: Workspace) -> None:
    other = Workspace.open(workspace.directory)
    before = workspace.data_version
    assert workspace.data_version == before
    with other.write_transaction():
        other.ensure_project("theirs")
    assert workspace.data_version != before
    other.close()


def test_a_reader_sees_the_old_state_and_does_not_wait_while_another_writes(workspace: Workspace) -> None:
    writing, seen = threading.Event(), threading.Event()

    def write() -> None:
        other = Workspace.open(workspace.directory)
        with other.write_transaction():
            other.ensure_project("unfinished")
            writing.set()
            assert seen.wait(10)
        other.close()

    thread = threading.Thread(target=write)
    thread.start()
    assert writing.wait(10)
    assert list_project_summaries(workspace) == []
    seen.set()
    thread.join()
    assert [project.name for project in list_project_summaries(workspace)] == ["unfinished"]


def test_the_same_table_of_the_same_file_is_one_dataset(workspace: Workspace, small_data: Microdata) -> None:
    with workspace.write_transaction():
        project = workspace.ensure_project("study")
        assert workspace.ensure_project("study") == project
        first = workspace.add_dataset(project, "a.csv", "sha", small_data)
        assert workspace.add_dataset(project, "a.csv", "sha", small_data) == first
        assert workspace.add_dataset(project, "b.csv", "sha", small_data) != first
    assert len(workspace.list_datasets(project)) == 2
    assert len(list(workspace.tables.directory.iterdir())) == 1


def test_a_dataset_comes_back_as_it_was(workspace: Workspace, small_data: Microdata) -> None:
    with workspace.write_transaction():
        number = workspace.add_dataset(workspace.ensure_project("study"), "a.csv", "sha", small_data)
    dataset = workspace.find_dataset(number)
    read = workspace.read_stored_dataset(dataset)
    assert (dataset.records, dataset.source_sha256, dataset.schema) == (len(small_data), "sha", small_data.schema)
    pd.testing.assert_frame_equal(read.frame, small_data.frame, check_exact=True)
    assert read.origin == small_data.origin


def test_a_dataset_that_is_not_there_is_named(workspace: Workspace) -> None:
    with pytest.raises(NotFound, match="no dataset 12"):
        workspace.find_dataset(12)


def test_what_is_opened_to_be_looked_at_cannot_be_written(workspace: Workspace) -> None:
    with Workspace.open(workspace.directory, read_only=True) as looked_at:
        with pytest.raises(sqlite3.OperationalError, match="readonly"), looked_at.write_transaction():
            looked_at.ensure_project("never")
        assert list_project_summaries(looked_at) == []
    with Workspace.open(workspace.directory) as written, written.write_transaction():
        written.ensure_project("kept")
    assert [project.name for project in list_project_summaries(workspace)] == ["kept"]
