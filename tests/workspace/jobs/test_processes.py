"""A call in a process of its own: its value comes back, its refusals are told, and its death is one clear message."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sfumato.engine.errors import BadInput, Cancelled
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.jobs.processes import call_in_process, from_json, to_json
from sfumato.workspace.service.importing import ImportResult, import_file
from sfumato.workspace.store.runs import ProjectSummary, list_project_summaries
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow


def people(path: Path, records: int = 30) -> str:
    path.write_text("age,cost\n" + "\n".join(f"{20 + i},{i / 2}" for i in range(records)))
    return str(path)


def test_a_file_is_imported_and_what_it_is_comes_back(tmp_path):
    file = people(tmp_path / "people.csv")
    found = call_in_process(import_file, tmp_path / "w", file, "", what="the import")
    assert isinstance(found, ImportResult)
    assert (found.project_id, found.project, found.records, found.dropped) == (1, "people", 30, 0)
    assert [column.variable.name for column in found.columns] == ["age", "cost"]
    again = import_file(tmp_path / "w", file, "")
    assert again == found
    with Workspace.open(tmp_path / "w", read_only=True) as workspace:
        assert [(project.name, project.datasets) for project in list_project_summaries(workspace)] == [("people", 1)]


@pytest.mark.parametrize("content", ["", "a,b\n", "\x00\x01"])
def test_what_cannot_be_used_is_refused_in_the_same_words_and_nothing_is_stored(tmp_path, content):
    (tmp_path / "people.csv").write_text(content)
    arguments = tmp_path / "w", str(tmp_path / "people.csv"), ""
    with pytest.raises(BadInput) as here:
        import_file(*arguments)
    with pytest.raises(BadInput) as there:
        call_in_process(import_file, *arguments, what="the import")
    assert str(there.value) == str(here.value)
    assert there.value.place == here.value.place
    assert not (tmp_path / "w").exists()


def test_errors_of_the_workspace_are_told(tmp_path):
    (tmp_path / "w").write_text("no directory")
    with pytest.raises(WorkspaceError, match="is a file; name a new or empty directory"):
        call_in_process(import_file, tmp_path / "w", people(tmp_path / "people.csv"), "", what="the import")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_process_that_a_signal_ends_is_one_clear_message(number):
    with pytest.raises(
        WorkspaceError, match=f"^the import was ended by {number.name}; the machine may be short of memory$"
    ):
        call_in_process(signal.raise_signal, int(number), what="the import")


def test_so_is_memory_that_is_not_there():
    with pytest.raises(WorkspaceError, match=r"^the import failed: the machine may be short of memory$"):
        call_in_process(bytes, 1 << 60, what="the import")


def test_of_other_errors_only_the_type_is_told():
    with pytest.raises(WorkspaceError, match=r"^the import failed: ValueError$"):
        call_in_process(int, "4711 is somebody's income", what="the import")
    with pytest.raises(WorkspaceError, match="ended without an answer"):
        call_in_process(os._exit, 3, what="the import")


def test_what_is_printed_is_no_part_of_the_answer(capfd):
    assert call_in_process(print, "4711", what="the import") is None
    assert "4711" not in "".join(capfd.readouterr())


def test_an_answer_that_is_not_wanted_any_more_is_not_waited_for():
    started = time.monotonic()
    with pytest.raises(Cancelled):
        call_in_process(time.sleep, 60, what="the import", is_unwanted=lambda: time.monotonic() > started + 0.5)
    assert time.monotonic() < started + 20


def test_values_come_back_from_json_as_they_were():
    project = ProjectSummary(3, "people", "today", 1, 0, None)
    assert from_json(ProjectSummary, to_json(project)) == project
    assert from_json(tuple[tuple[str, float], ...], to_json((("a", 0.5), ("b", 2)))) == (("a", 0.5), ("b", 2))
    assert from_json(dict[str, Path], to_json({"a": Path("/x")})) == {"a": Path("/x")}
    assert from_json(signal.Signals | None, to_json(None)) is None
    assert from_json(signal.Signals | None, to_json(signal.SIGHUP)) is signal.SIGHUP


def test_an_answer_stands_whatever_libraries_do_when_python_ends():
    """A thread that still holds memory then makes the process abort; here it is told to."""
    abort = "import atexit, os; atexit.register(os.abort)"
    assert subprocess.run([sys.executable, "-c", abort], check=False).returncode == -signal.SIGABRT, "the control"
    assert call_in_process(exec, abort, what="the import") is None
