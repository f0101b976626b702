"""A run and those beside it are entered together or not at all, even when the process is killed between the two."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.audit import audit_rows, chain_problem, read_head
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs import runs
from sfumato.workspace.service.prepare import PreparedRun, enter_with_companions
from sfumato.workspace.store.disk import NotEnoughDisk, estimate_run_bytes
from sfumato.workspace.store.runs import companion_ids, find_run, list_project_summaries, list_runs
from sfumato.workspace.store.workspace import Workspace

SOURCE = SourceFile("simulated.csv", b"simulated")
KILLED = """
import os, signal, sys
from pathlib import Path
from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.jobs import runs
from sfumato.workspace.service.prepare import enter_with_companions
from sfumato.workspace.ingest.files import SourceFile, read_frame
from sfumato.workspace.service.prepare import PreparedRun
from sfumato.workspace.store.workspace import Workspace

directory, data, recipe, dies_at = sys.argv[1:]
recipe = Recipe.from_toml(Path(recipe).read_text())
source = SourceFile("simulated.csv", Path(data).read_bytes())
run = PreparedRun(recipe, source, conform_to_schema(read_frame(source, recipe.schema), recipe.schema))
entered = [runs._insert_tasks]
def dying(*arguments):
    entered.append(entered[0](*arguments))
    if len(entered) - 1 == int(dies_at):
        os.kill(os.getpid(), signal.SIGKILL)
runs._insert_tasks = dying
enter_with_companions(Workspace.open(Path(directory)), run, [run, run])
"""


@pytest.fixture
def prepared(small_recipe: Callable[..., Recipe], small_data: Microdata) -> Callable[[str], PreparedRun]:
    return lambda title: PreparedRun(small_recipe(title=title), SOURCE, small_data)


def test_runs_entered_together_share_a_project_and_know_each_other(
    workspace: Workspace, prepared: Callable[[str], PreparedRun]
) -> None:
    main, *beside = enter_with_companions(workspace, prepared("Main"), [prepared("First"), prepared("Second")])
    assert companion_ids(workspace, main) == beside
    assert [find_run(workspace, run_id).title for run_id in (main, *beside)] == ["Main", "First", "Second"]
    assert [project.name for project in list_project_summaries(workspace)] == ["Main"]
    assert all(companion_ids(workspace, other) == [] for other in beside)


@pytest.mark.slow
@pytest.mark.parametrize(("dies_at", "left"), [("2", 0), ("4", 3)])
def test_a_process_killed_between_two_runs_leaves_neither(
    workspace: Workspace,
    small_recipe: Callable[..., Recipe],
    small_data: Microdata,
    tmp_path: Path,
    dies_at: str,
    left: int,
) -> None:
    """Killed after the second of three runs there is none; never killed (4), there are three."""
    small_data.frame.to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "recipe.toml").write_text(small_recipe().to_toml(), "utf-8")
    files = [str(tmp_path / name) for name in ("data.csv", "recipe.toml")]
    ended = subprocess.run([sys.executable, "-c", KILLED, str(workspace.directory), *files, dies_at], check=False)
    assert ended.returncode == (0 if left else -signal.SIGKILL)
    assert len(list_runs(workspace)) == left
    tables = ("task", "companion", "dataset", "project")
    counts = [workspace.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]
    assert all(count > 0 for count in counts) == bool(left)
    assert any(counts) == bool(left)
    assert chain_problem(audit_rows(workspace.connection), read_head(workspace.connection)) == ""


def test_the_disk_must_hold_all_of_them(
    workspace: Workspace, prepared: Callable[[str], PreparedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = prepared("One")
    enough_for_two = 2 * estimate_run_bytes(one.recipe, one.data)
    monkeypatch.setattr(
        "sfumato.workspace.store.disk.shutil.disk_usage", lambda _: type("Usage", (), {"free": enough_for_two})
    )
    with pytest.raises(NotEnoughDisk):
        enter_with_companions(workspace, one, [one, one])
    assert list_runs(workspace) == []
    assert len(enter_with_companions(workspace, one, [one])) == 2


def test_a_failure_between_two_runs_undoes_the_first(
    workspace: Workspace, prepared: Callable[[str], PreparedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = runs._insert_tasks

    def failing(connection: object, run_id: int, tasks: object) -> None:
        if run_id > 1:
            raise RuntimeError("torn")
        first(connection, run_id, tasks)  # type: ignore[arg-type]

    monkeypatch.setattr(runs, "_insert_tasks", failing)
    with pytest.raises(RuntimeError, match="torn"):
        enter_with_companions(workspace, prepared("Main"), [prepared("Beside")])
    assert list_runs(workspace) == []
