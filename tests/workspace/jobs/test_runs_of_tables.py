"""Runs of recipes with tables: tables are protected, audited and stored, alone or beside datasets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from run_tables import RunTables, list_run_tables

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.protecting import audit_protected_tables, protect_tables_of_recipe, table_rows
from sfumato.engine.execution.tasks import plan_tasks
from sfumato.engine.methods.run import Progress
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.sources import SourceFile
from sfumato.workspace.jobs.queue import TaskResult, claim_task, finish_task, requeue_run, stop_run
from sfumato.workspace.jobs.run_task import read_task_input, run_task
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.library import synthesise
from sfumato.workspace.service.prepare import prepare_on_source
from sfumato.workspace.store.protected_tables import (
    read_run_protected_tables,
    write_protected_tables,
)
from sfumato.workspace.store.runs import RunState, find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows, read_verdicts

pytestmark = pytest.mark.slow

VARIABLES = {
    "region": {"kind": "categorical"},
    "sex": {"kind": "binary"},
    "trade": {"kind": "categorical"},
    "pay": {"kind": "continuous"},
    "firm": {"kind": "categorical", "role": "identifier"},
}
TABLES: dict[str, Any] = {
    "variables": VARIABLES,
    "table": [
        {"name": "people", "by": ["region", "sex"]},
        {"name": "trades", "by": ["trade", "region"], "also": {"region": {"coast": [["a", "sea"], ["b", "sea"], ["c", "land"], ["d", "land"]]}}},
        {"name": "pay", "by": ["trade"], "value": "pay"},
    ],
    "tables": {"threshold": 4, "p_percent": 15},
}  # fmt: skip


def people(n: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "region": rng.choice(list("abcd"), n, p=[0.5, 0.3, 0.15, 0.05]),
            "sex": rng.choice(["f", "m"], n),
            "trade": rng.choice(["food", "iron", "wool"], n, p=[0.6, 0.3, 0.1]),
            "pay": rng.lognormal(3, 1.2, n).round(2),
            "firm": [f"f{at // 2}" for at in range(n)],
        }
    )


def run_tables(directory: Path, recipe: Mapping[str, Any] = TABLES) -> tuple[int, RunTables]:
    number = synthesise(people(), recipe, directory)
    with Workspace.open(directory, read_only=True) as opened:
        found = list_run_tables(opened, number)
        assert found is not None
        return number, found


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables") / "workspace"


@pytest.fixture(scope="module")
def tables(directory: Path) -> RunTables:
    return run_tables(directory)[1]


def test_tables_alone_are_protected_and_audited(tables: RunTables) -> None:
    assert [(one.name, one.variables, one.value_name) for one in tables.tables] == [
        ("people", ("region", "sex"), "count"), ("trades", ("trade", "region"), "count"), ("pay", ("trade",), "pay"),
    ]  # fmt: skip
    counts = tables.counts
    assert counts["primary"] > 0
    assert counts["secondary"] > 0
    for number in ("exact_outside", "exact_zeros_shown", "exact_contributor", "short_of_level", "undecided"):
        assert counts[number] == 0, number
    assert tables.find_table("2") is tables.find_table("trades")
    assert tables.find_table("4") is None
    assert tables.tables[1].groupings == (("",), ("", "coast"))


def test_a_cell_says_what_it_is_and_why(tables: RunTables) -> None:
    frame, table = people(), tables.tables[0]
    hidden = 0
    for cell in table.cells():
        labels = {name: label for name, (_, label) in cell.labels.items() if label}
        own = frame
        for name, label in labels.items():
            own = own[own[name] == label]
        assert (cell.value, cell.units, cell.text) == (len(own), len(own), str(len(own)))
        assert (cell.rules == ("threshold",)) == (0 < len(own) < 4)
        assert cell.standing == "primary" or not cell.rules
        hidden += cell.is_hidden
        if cell.rules:
            assert cell.safety == "yes"
            assert cell.lowest is not None
            assert cell.highest is not None
            assert cell.lowest <= cell.value <= cell.highest
            assert cell.lowest < cell.highest
    assert hidden == table.hidden_count == len(table.hidden_places()) > 0


def test_a_certificate_fits_all_that_is_printed(tables: RunTables) -> None:
    system, audit = tables.stored.system, tables.stored.audit
    looked = 0
    for number in np.flatnonzero(~audit.published).tolist():
        other = tables.certificate_of(number)
        assert other is not None
        assert np.allclose(other[audit.published], system.values[audit.published])
        assert abs(other[number] - system.values[number]) > 1e-9
        looked += 1
    assert looked > 0


def test_two_runs_leave_equal_bytes(directory: Path, tables: RunTables, tmp_path: Path) -> None:
    number, _ = run_tables(tmp_path / "other")
    with Workspace.open(directory) as one, Workspace.open(tmp_path / "other") as other:
        hashes = [
            dict(opened.connection.execute("SELECT name, sha256 FROM artefact WHERE run_id = ?", (run,)).fetchall())
            for opened, run in ((one, tables.run_id), (other, number))
        ]
        assert hashes[0] == hashes[1]
        assert set(hashes[0]) == {"tables", "tables/audit"}
        stored = read_run_protected_tables(one, tables.run_id)
        assert stored is not None
        assert write_protected_tables(one.tables, stored) == hashes[0]["tables/audit"]


def test_tables_stand_beside_datasets(tmp_path: Path) -> None:
    recipe = {
        **TABLES,
        "synthesis": [{"target": "sex", "method": "cart", "predictors": ["region"]}],
        "release": {"m": 2},
    }
    assert [task.key for task in plan_tasks(Recipe.from_table(recipe))] == [
        "tables", "tables/audit", "fit/0", "draw/1", "draw/2", "combine",
    ]  # fmt: skip
    number, found = run_tables(tmp_path / "both", recipe)
    assert found.counts["primary"] > 0
    with Workspace.open(tmp_path / "both", read_only=True) as opened:
        assert find_run(opened, number).state == "done"


def test_a_recipe_of_tables_alone_measures_no_dataset(tmp_path: Path) -> None:
    recipe = {**TABLES, "measure": [{"method": "risk.identification", "known": ["region"]}]}
    with pytest.raises(BadInput, match="this recipe makes none: it has tables alone"):
        synthesise(people(), recipe, tmp_path / "workspace")


def test_a_run_reports_numbers_of_its_tables_with_limits(tmp_path: Path) -> None:
    limits = [
        {"value": "tables.numbers.exact_zeros_shown", "max": 0},
        {"value": "tables.numbers.hidden_share", "max": 0.001},
    ]
    number, found = run_tables(tmp_path / "w", {**TABLES, "threshold": limits})
    with Workspace.open(tmp_path / "w", read_only=True) as opened:
        rows = {row.measure: row for row in read_result_rows(opened, number) if "rule" not in row.params}
        verdicts = {one.value.rpartition(".")[2]: one.outcome for one in read_verdicts(opened, number)}
    assert {name: row.value for name, row in rows.items()} == {
        name: value for name, value in found.counts.items() if not name.startswith("primary_")
    }
    assert verdicts == {"exact_zeros_shown": "met", "hidden_share": "not met"}


def test_what_was_not_examined_is_no_number() -> None:
    counts = {"cells": 9.0, "exact_contributor": float("nan"), "smallest_interval": 2.0, "primary_threshold": 3.0}
    rows = table_rows(Recipe.from_table(TABLES), counts)
    by_name = {row.measure: row for row in rows}
    assert (by_name["exact_contributor"].status, by_name["exact_contributor"].value) == ("not computed", None)
    assert "was not examined" in by_name["exact_contributor"].reason
    assert by_name["primary"].params == {"rule": "threshold"}


def test_exact_tables_do_not_stand_beside_a_privacy_account(tmp_path: Path) -> None:
    variables = {name: own for name, own in VARIABLES.items() if name != "pay"}
    private = {"target": ["region", "sex", "trade"], "method": "margins", "epsilon": 1.0}
    recipe = {"variables": variables, "table": TABLES["table"][:1], "tables": {"threshold": 4}, "synthesis": [private]}
    with pytest.raises(BadInput, match="printed sums are exact and have no epsilon"):
        synthesise(people(), recipe, tmp_path / "workspace")


def test_a_run_that_was_stopped_goes_on_with_the_audit_and_leaves_equal_bytes(
    directory: Path, tables: RunTables, tmp_path: Path
) -> None:
    with Workspace.create(tmp_path / "w") as workspace:
        source = SourceFile("frame.parquet", people().to_parquet(index=False))
        number = prepare_on_source(Recipe.from_table(TABLES), source, key=workspace.read_workspace_key()).enter(
            workspace
        )
        lease = claim_task(workspace, "a worker")
        assert lease is not None
        assert lease.key == "tables"
        done = run_task(workspace.directory, read_task_input(workspace, lease), database=False)
        assert isinstance(done, TaskResult)
        assert finish_task(workspace, lease, done)
        assert stop_run(workspace, number, RunState.CANCELLED)
        assert requeue_run(workspace, number)
        run_worker(workspace.directory, idle=0)
        assert find_run(workspace, number).state == "done"
        with Workspace.open(directory) as other:
            hashes = [
                dict(one.connection.execute("SELECT name, sha256 FROM artefact WHERE run_id = ?", (run,)).fetchall())
                for one, run in ((workspace, number), (other, tables.run_id))
            ]
        assert hashes[0] == hashes[1]


def test_tasks_of_tables_say_from_inside_how_far_they_have_come() -> None:
    recipe = Recipe.from_table(TABLES)
    data = conform_to_schema(people(), recipe.schema, MissingPolicy.KEEP)
    seen: list[Progress] = []
    found = protect_tables_of_recipe(recipe, data, seen.append)
    assert {one.what for one in seen} >= {"cells", "unsafe cells"}
    assert all(0 <= one.done <= one.total for one in seen)
    assert seen[-1] == Progress(found.system.cell_count, found.system.cell_count, "cells")
    again: list[Progress] = []
    assert recipe.table_protection is not None
    none = np.zeros(0, dtype=np.int64)
    audit_protected_tables(
        found.system, found.protected.audit, recipe.table_protection.rules, none, contributors=True, report=again.append
    )
    assert again[-1].what in ("unsafe cells", "contributors")
