"""Runs are entered whole, and read as they stand."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable

import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.toml import read_toml
from sfumato.engine.execution.tasks import plan_tasks
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe import recipe as recipe_module
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.errors import NotFound
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs import runs
from sfumato.workspace.jobs.queue import TaskLease, TaskResult, claim_task, finish_task
from sfumato.workspace.jobs.runs import enter_run, reenter_run, result_object
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.runs import RunState, find_run, list_project_summaries, list_runs, list_tasks
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_raw_rows, read_result_rows

Enter = Callable[..., int]
SOURCE = SourceFile("simulated.csv", b"simulated")


def take(workspace: Workspace) -> TaskLease:
    held = claim_task(workspace, "worker")
    assert held is not None
    return held


def count(workspace: Workspace, table: str) -> int:
    return int(workspace.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_a_run_is_entered_with_every_task_of_its_plan(
    workspace: Workspace, enter: Enter, small_recipe: Callable[..., Recipe]
) -> None:
    run_id = enter()
    tasks = plan_tasks(small_recipe())
    rows = workspace.connection.execute(
        "SELECT key, kind, item, draw, point, blockers FROM task ORDER BY id"
    ).fetchall()
    assert [tuple(row) for row in rows] == [(t.key, t.kind.value, t.item, t.draw, t.point, len(t.needs)) for t in tasks]
    needs = workspace.connection.execute(
        """SELECT task.key, needed.key FROM task_need JOIN task ON task.id = task_id
           JOIN task AS needed ON needed.id = needs_id"""
    )
    assert {tuple(row) for row in needs} == {(task.key, need) for task in tasks for need in task.needs}
    run = find_run(workspace, run_id)
    assert (run.tasks_done, run.tasks_total, run.state) == (0, len(tasks), RunState.QUEUED)


def test_a_recipe_is_read_once_however_often_a_run_is_asked_for_it(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = enter(title="read once")
    texts: list[str] = []
    monkeypatch.setattr(recipe_module, "read_toml", lambda text: (texts.append(text), read_toml(text))[1])
    found = [find_run(workspace, run_id).recipe for _ in range(41)]
    assert texts == [find_run(workspace, run_id).recipe_toml]
    assert all(recipe is found[0] for recipe in found)
    other = find_run(workspace, enter(title="another")).recipe
    assert (found[0].title, other.title) == ("read once", "another")


def test_a_run_remembers_recipe_seed_data_and_versions(
    workspace: Workspace, enter: Enter, small_recipe: Callable[..., Recipe]
) -> None:
    run = find_run(workspace, enter(release={"m": 2, "seed": 11}))
    recipe = small_recipe(release={"m": 2, "seed": 11})
    assert run.recipe == recipe
    assert (run.recipe_sha256, run.seed, run.title) == (recipe.sha256, 11, "Small study")
    assert workspace.find_dataset(run.dataset_id).source_sha256 == SOURCE.sha256
    assert set(run.versions) >= {"sfumato", "numpy", "pandas", "scipy"}


def test_a_run_that_cannot_be_entered_leaves_nothing(
    workspace: Workspace, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def torn(*_: object) -> None:
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr(runs, "_insert_tasks", torn)
    with pytest.raises(sqlite3.OperationalError, match="disk full"):
        enter()
    assert [count(workspace, table) for table in ("project", "dataset", "run", "task")] == [0, 0, 0, 0]


def test_runs_of_a_title_share_a_project_and_a_dataset(
    workspace: Workspace, enter: Enter, small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    first, second = enter(), enter(release={"m": 2})
    third = enter_run(workspace, small_recipe(title=""), SOURCE, small_data)
    fourth = enter_run(workspace, small_recipe(), SOURCE, small_data, project="Elsewhere")
    assert {project.name: project.runs for project in list_project_summaries(workspace)} == {
        "Small study": 2,
        "simulated.csv": 1,
        "Elsewhere": 1,
    }
    assert [run.id for run in list_runs(workspace)] == [fourth, third, second, first]
    shared = find_run(workspace, first)
    assert [run.id for run in list_runs(workspace, shared.project_id)] == [second, first]
    assert shared.dataset_id == find_run(workspace, second).dataset_id


def test_a_run_is_found_by_number_or_as_the_last(workspace: Workspace, enter: Enter) -> None:
    with pytest.raises(NotFound, match="no runs yet"):
        find_run(workspace, "last")
    first, second = enter(), enter()
    assert find_run(workspace, "last").id == second
    assert find_run(workspace, first).id == find_run(workspace, str(first)).id == first
    for unknown in (99, "99", "first", "1; DROP TABLE run", ""):
        with pytest.raises(NotFound, match="sfumato runs lists them"):
            find_run(workspace, unknown)


def test_entering_a_run_again_that_is_not_there_says_so(workspace: Workspace) -> None:
    with pytest.raises(NotFound):
        reenter_run(workspace, 7)
    assert count(workspace, "run") == 0


def test_time_left_is_estimated_from_the_tasks_done(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    assert find_run(workspace, run_id).seconds is None
    held = take(workspace)
    assert find_run(workspace, run_id).seconds_left is None
    finish_task(workspace, held, TaskResult(seconds=4.0))
    workspace.connection.execute("UPDATE run SET started = created, finished = created + 10")
    run = find_run(workspace, run_id)
    assert run.seconds == pytest.approx(10)
    assert run.seconds_left == pytest.approx(4 * (run.tasks_total - 1))


ROWS = [
    Row("risk", "identification", "unique_matches", "", "synthetic", 1, None, 3.0, unit="records"),
    Row("risk", "identification", "false_match_rate", "", "synthetic", 1, None, None, status="not computed", reason="none"),
    Row("utility", "ecdf", "maximum_difference", "größe", "synthetic", None, 0.05, 1 / 3, -0.0, 5e-324, 1e308, "share",
        params={"radius": {"price": "5%"}, "known": ["a", "b"]}),
]  # fmt: skip


def test_rows_come_back_as_they_were_in_the_order_of_the_plan(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    first, second = take(workspace), take(workspace)
    finish_task(workspace, second, TaskResult(ROWS[2:]))
    finish_task(workspace, first, TaskResult(ROWS[:2]))
    assert read_raw_rows(workspace, run_id) == ROWS
    assert read_result_rows(workspace, run_id) == ROWS


def test_the_result_object_keeps_the_contract(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    run_worker(workspace.directory, idle=0)
    found = json.loads(json.dumps(result_object(workspace, run_id), allow_nan=False))
    assert set(found) >= {"run", "recipe_sha256", "data_sha256", "seed", "versions", "seconds", "rows", "verdicts"}
    contract = (
        """family method measure target dataset draw level value lower upper baseline unit status reason params"""
    )
    assert all(list(row)[:15] == contract.split() for row in found["rows"])
    assert {row["dataset"] for row in found["rows"]} == {"confidential", "synthetic"}
    assert {row["draw"] for row in found["rows"]} == {None, 1, 2, 3}
    assert [verdict["outcome"] for verdict in found["verdicts"]] == ["met"]


def test_what_screens_read_is_what_the_workspace_reads(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    with Workspace.open(workspace.directory, read_only=True) as reader:
        assert find_run(reader, run_id) == find_run(workspace, run_id)
        assert list_tasks(reader, run_id) == list_tasks(workspace, run_id)


def test_deleting_a_run_leaves_nothing_of_it(workspace: Workspace, enter: Enter) -> None:
    run_id = enter()
    run_worker(workspace.directory, idle=0)
    workspace.connection.execute("DELETE FROM run WHERE id = ?", (run_id,))
    left = ("task", "task_need", "artefact", "result", "verdict", "diagnostic")
    assert [count(workspace, table) for table in left] == [0] * len(left)


def test_published_figures_stand_beside_the_rows_with_what_the_run_found(workspace: Workspace, enter: Enter) -> None:
    value = "risk.identification.true_match_rate"
    quoted = {"source": "A paper, Table 4", "value": value}
    figures = [
        {**quoted, "dataset": "synthetic", "figure": 0.02},
        {**quoted, "dataset": "confidential", "figure": 1.0},
        {**quoted, "dataset": "anonymised", "figure": 0.5, "params": {"known": ["age"]}},
    ]
    run_id = enter(published=figures)
    run_worker(workspace.directory, idle=0)
    found = json.loads(json.dumps(result_object(workspace, run_id)))
    own = {
        row["dataset"]: row["value"]
        for row in found["rows"]
        if row["measure"] == "true_match_rate" and row["draw"] is None
    }
    assert [(one["figure"], one["found"]) for one in found["published"]] == [
        (0.02, own["synthetic"]),
        (1.0, own["confidential"]),
        (0.5, None),
    ]
    assert found["published"][2] == {
        **figures[2], "target": "", "level": None, "found": None
    }  # fmt: skip


def test_a_recipe_that_quotes_nothing_has_no_published_figures(workspace: Workspace, enter: Enter) -> None:
    assert result_object(workspace, enter())["published"] == []
