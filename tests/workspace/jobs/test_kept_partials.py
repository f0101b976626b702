"""Answers of blocks that outlive an interruption, and that idle workers compute for those who have a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import enter_recipe

from sfumato.engine.errors import Cancelled
from sfumato.engine.methods.run import Progress
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.jobs import run_task, worker
from sfumato.workspace.jobs.queue import TaskResult, claim_task, fail_task
from sfumato.workspace.jobs.run_task import TaskInput, TaskReturned, help_task, kept_partials, read_task_input
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.service.deletion import delete_run
from sfumato.workspace.store import table_manifests
from sfumato.workspace.store.kept_partials import KEPT_PREFIX, HelpEnded, KeptPartials
from sfumato.workspace.store.run_log import run_log_path
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

KEY = b"k" * 32
RECORDS, PART_ROWS = 1000, 100
PLAN = {
    "variables": {
        "region": {"kind": "categorical"},
        "age": {"kind": "continuous"},
        "income": {"kind": "continuous"},
    },
    "release": {"m": 1, "seed": 3},
    "synthesis": [
        {"target": "income", "method": "linear_regression", "predictors": ["region", "age"], "prior": "scaled"}
    ],
}


def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    region, age = rng.integers(0, 3, RECORDS), rng.normal(50, 10, RECORDS)
    return pd.DataFrame(
        {
            "region": np.array(["north", "south", "west"])[region],
            "age": age,
            "income": 10 + 2 * region + 0.1 * age + rng.normal(0, 0.3, RECORDS),
        }
    )


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(table_manifests, "PART_ROWS", PART_ROWS)
    with Workspace.create(tmp_path / "w", KEY) as made:
        yield made


@pytest.fixture
def fit(workspace: Workspace) -> TaskInput:
    enter_recipe(workspace, PLAN, people())
    held = claim_task(workspace, "me")
    assert held is not None
    return read_task_input(workspace, held)


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the blocks of which answers were computed."""
    passes = Recipe.from_table(PLAN).synthesis[0].method.synthesis.fit_passes
    assert passes is not None
    computed: list[int] = []
    compute = passes.block

    def count_and_compute(state: Any, data: Any) -> Any:
        computed.append(len(data))
        return compute(state, data)

    monkeypatch.setattr(type(passes), "block", staticmethod(count_and_compute))
    return computed


def kept_files(workspace: Workspace) -> list[str]:
    return sorted(path.name for path in workspace.tables.directory.glob(f"{KEPT_PREFIX}*"))


def stop_after(number: int, error: type[BaseException]) -> Callable[..., Any]:
    """A reporter of progress that stops the computation at a block."""
    reports = 0

    def report(_: Progress) -> None:
        nonlocal reports
        reports += 1
        if reports == number:
            raise error("stopped")

    return lambda *_: report


def carry_out(workspace: Workspace, task: TaskInput) -> TaskResult:
    done = run_task.run_task(workspace.directory, task, database=False)
    assert isinstance(done, TaskResult), done
    return done


def test_a_task_that_was_stopped_goes_on_with_the_block_at_which_it_was(
    workspace: Workspace, fit: TaskInput, blocks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = carry_out(workspace, fit)
    asked, passes = len(blocks), len(blocks) // (RECORDS // PART_ROWS)
    assert asked == passes * RECORDS // PART_ROWS
    assert kept_files(workspace) == []
    blocks.clear()
    stopped_at = asked - 4
    with monkeypatch.context() as patched:
        patched.setattr(run_task, "ProgressReporter", stop_after(stopped_at, Cancelled))
        assert isinstance(run_task.run_task(workspace.directory, fit), TaskReturned)
    assert len(blocks) == stopped_at
    assert len(kept_files(workspace)) == stopped_at, "the mark of whoever has the task is gone"
    again = carry_out(workspace, fit)
    assert len(blocks) == asked
    assert again.artefacts == whole.artefacts
    assert kept_files(workspace) == []


def test_a_worker_that_is_stopped_by_a_signal_leaves_the_answers(
    workspace: Workspace, fit: TaskInput, blocks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_task, "ProgressReporter", stop_after(5, SystemExit))
    with pytest.raises(SystemExit):
        run_task.run_task(workspace.directory, fit)
    assert len(kept_files(workspace)) == 5 == len(blocks)


def test_a_helper_computes_all_that_the_one_who_has_the_task_needs(
    workspace: Workspace, fit: TaskInput, blocks: list[int]
) -> None:
    whole = carry_out(workspace, fit)
    asked = len(blocks)
    kept = kept_partials(workspace.tables, fit)
    assert kept is not None
    kept.open()
    help_task(workspace.directory, fit, 1)
    assert len(blocks) == 2 * asked
    again = carry_out(workspace, fit)
    assert len(blocks) == 2 * asked, "nothing is computed twice"
    assert again.artefacts == whole.artefacts


def test_a_helper_ends_once_nobody_has_the_task(workspace: Workspace, fit: TaskInput, blocks: list[int]) -> None:
    help_task(workspace.directory, fit, 1)
    assert blocks == []
    assert kept_files(workspace) == []


def test_an_answer_that_is_not_whole_on_the_disk_is_computed_again(
    workspace: Workspace, fit: TaskInput, blocks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = carry_out(workspace, fit)
    asked = len(blocks)
    with monkeypatch.context() as patched:
        patched.setattr(run_task, "ProgressReporter", stop_after(8, Cancelled))
        run_task.run_task(workspace.directory, fit)
    broken, *_ = workspace.tables.directory.glob(f"{KEPT_PREFIX}*")
    broken.write_bytes(broken.read_bytes()[:-7])
    again = carry_out(workspace, fit)
    assert len(blocks) == 2 * asked + 1
    assert again.artefacts == whole.artefacts


def test_answers_of_another_recipe_or_table_are_not_taken(workspace: Workspace, fit: TaskInput) -> None:
    kept = kept_partials(workspace.tables, fit)
    assert kept is not None
    kept.begin_pass(shared=True)
    kept.put_partial(0, {"sums": np.arange(3.0)})
    changed = replace(fit, recipe=fit.recipe.replace('prior = "scaled"', 'prior = "published"'))
    for task, is_there in ((fit, True), (changed, False)):
        other = kept_partials(workspace.tables, task)
        assert other is not None
        other.begin_pass(shared=True)
        assert (other.find_partial(0) is not None) is is_there
        assert other.find_partial(1) is None


def test_a_pass_for_one_alone_is_no_work_for_helpers(tmp_path: Path) -> None:
    KeptPartials(tmp_path, 1, "a").begin_pass(shared=False)
    with pytest.raises(HelpEnded):
        KeptPartials(tmp_path, 1, "a", 1).begin_pass(shared=False)


@pytest.mark.parametrize("helper", [0, 1, 2, 3])
def test_everybody_looks_at_every_block(tmp_path: Path, helper: int) -> None:
    order = KeptPartials(tmp_path, 1, "a", helper).block_order(9)
    assert sorted(order) == list(range(9))
    assert (order[0], order[-1]) == {0: (0, 8), 1: (8, 0)}.get(helper, (order[0], order[-1]))


def test_a_run_that_is_deleted_leaves_no_answers(
    workspace: Workspace, fit: TaskInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_task, "ProgressReporter", stop_after(5, Cancelled))
    run_task.run_task(workspace.directory, fit)
    other = workspace.tables.directory / f"{KEPT_PREFIX}{fit.lease.run_id}1-a-0-0"
    other.touch()
    assert len(kept_files(workspace)) == 6
    fail_task(workspace, fit.lease, "stopped")
    delete_run(workspace, fit.lease.run_id)
    assert kept_files(workspace) == [other.name], "that of run 11 stays"


@pytest.mark.slow
def test_an_idle_process_helps_and_the_run_is_the_same(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plan = {**PLAN, "measure": [{"method": "utility.propensity"}]}
    run_id = enter_recipe(workspace, plan, people())
    monkeypatch.setattr(worker, "HELP_AFTER_SECONDS", 0.0)
    run_worker(workspace.directory, jobs=2, idle=0)
    assert "helper 1 begun" in run_log_path(workspace.directory, run_id).read_text("utf-8")
    assert kept_files(workspace) == []
    with Workspace.create(tmp_path / "alone", KEY) as alone:
        enter_recipe(alone, plan, people())
        run_worker(alone.directory, jobs=1, idle=0)
        assert "helper" not in run_log_path(alone.directory, 1).read_text("utf-8")
        found = [
            (
                dict(map(tuple, one.connection.execute("SELECT name, sha256 FROM artefact"))),
                [(row.measure, row.target, row.draw, row.value) for row in read_result_rows(one, number)],
            )
            for one, number in ((workspace, run_id), (alone, 1))
        ]
        assert found[0] == found[1]
