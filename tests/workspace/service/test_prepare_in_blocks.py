"""A run on a long table is prepared in blocks: the same records, refusals and tasks as if it were read at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest import conformed_blocks
from sfumato.workspace.ingest.conformed_blocks import ConformedBlocks
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plan.drafts import PlanDraft, draft_of_run
from sfumato.workspace.recipes import RecipeFile
from sfumato.workspace.service.importing import import_file
from sfumato.workspace.service.prepare import PreparedRun, prepare_plan, prepare_run
from sfumato.workspace.store import table_manifests
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.stored_blocks import StoredBlocks
from sfumato.workspace.store.tables import TableStore
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.quick
N, PART = 700, 100
KEY = b"k" * 32
STEP = {"target": "income", "method": "linear_regression", "predictors": ["region", "age"], "prior": "scaled"}
PLAN: dict[str, Any] = {
    "variables": {
        "region": {"kind": "categorical"},
        "age": {"kind": "continuous", "bounds": [0, 200]},
        "visits": {"kind": "count"},
        "income": {"kind": "continuous"},
    },
    "release": {"m": 1, "seed": 3},
    "synthesis": [STEP],
    "measure": [
        {"method": "utility.ecdf"},
        {
            "method": "risk.identification",
            "known": ["region", "visits"],
            "radius": {"income": "5%"},
            "synthesised": ["income"],
        },
    ],
}


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(table_manifests, "PART_ROWS", PART)
    monkeypatch.setattr(conformed_blocks, "ROWS_AT_ONCE", 90)


def people(**changes: Any) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    region, age = np.sort(rng.integers(0, 3, N)), rng.normal(50, 10, N).round(4)
    columns = {
        "region": np.array(["north", "south", "west"])[region],
        "age": age,
        "visits": rng.poisson(3, N),
        "income": np.exp(1 + 0.01 * age + rng.normal(0, 0.3, N)),
    }
    return pd.DataFrame({**columns, **changes})


def prepare_both(tmp_path: Path, frame: pd.DataFrame, **changes: Any) -> list[PreparedRun | str]:
    """Prepare a run of a file in blocks and at once; return what it is or what is said."""
    frame.to_csv(tmp_path / "people.csv", index=False)
    plan = RecipeFile(
        "plan", Recipe.from_table({**PLAN, "data": {"file": "people.csv"}, **changes}).to_toml(), tmp_path
    )
    found: list[PreparedRun | str] = []
    for directory in (tmp_path / "w", None):
        try:
            found.append(prepare_run(plan, key=KEY, directory=directory))
        except BadInput as error:
            found.append(str(error))
    assert not (tmp_path / "w").exists()
    return found


def test_a_long_file_is_prepared_in_blocks_and_entered_as_the_same_run(tmp_path: Path) -> None:
    in_blocks, at_once = prepare_both(tmp_path, people())
    assert isinstance(in_blocks, PreparedRun)
    assert isinstance(at_once, PreparedRun)
    assert isinstance(in_blocks.data, ConformedBlocks)
    assert isinstance(at_once.data, Microdata)
    assert in_blocks.data.data_sha256 == at_once.data.sha256
    stored = []
    for name, prepared in (("a", in_blocks), ("b", at_once)):
        with Workspace.create(tmp_path / name, KEY) as workspace:
            number = prepared.enter(workspace)
            run_worker(workspace.directory, 0, idle=0)
            run = find_run(workspace, number)
            assert run.state.value == "done", run.error
            artefacts = workspace.connection.execute("SELECT name, sha256 FROM artefact ORDER BY name").fetchall()
            stored.append(([tuple(row) for row in artefacts], workspace.find_dataset(run.dataset_id).table_sha256))
    assert stored[0] == stored[1]


@pytest.mark.parametrize(
    ("columns", "changes"),
    [
        ({"income": np.ones(N)}, {}),
        ({"region": ["north"] * N}, {}),
        ({"age": [None] * 650 + [50.0] * 50}, {}),
        ({"age": [None] * 650 + [50.0 + i for i in range(50)]}, {"data": {"file": "people.csv", "missing": "keep"}}),
        ({"age": [500.0] + [50.0 + i for i in range(N - 1)]}, {}),
        ({"income": [-1.0] + [1.0 + i for i in range(N - 1)]}, {"synthesis": [{**STEP, "transform": "log"}]}),
        ({"age": np.arange(N) % 100 * 1.0, "visits": np.arange(N) % 100}, {"synthesis": [{**STEP, "predictors": ["age", "visits"]}]}),
        ({"visits": np.ones(N, dtype=int)}, {"synthesis": [{"target": "visits", "method": "zero_inflated_truncated_poisson", "predictors": ["age"]}]}),
        ({"visits": ["many", *["1"] * (N - 1)]}, {}),
        ({"other": [1] * N}, {"variables": {**PLAN["variables"], "gone": {"kind": "count"}}}),
    ],
)  # fmt: skip
def test_bad_input_is_refused_as_at_once(columns: dict[str, Any], changes: dict[str, Any], tmp_path: Path) -> None:
    in_blocks, at_once = prepare_both(tmp_path, people(**columns), **changes)
    assert isinstance(in_blocks, str)
    assert in_blocks == at_once


@pytest.mark.parametrize(
    "changes",
    [
        {"synthesis": [{"target": "income", "method": "cart", "predictors": ["region"], "proper": True}]},
        {"data": {"file": "people.csv", "sample": 300}},
        {"data": {"file": "people.csv", "holdout": 0.2}},
        {"data": {"file": "people.csv", "where": "visits > 1"}},
    ],
)
def test_what_needs_all_records_is_read_at_once(changes: dict[str, Any], tmp_path: Path) -> None:
    found, at_once = prepare_both(tmp_path, people(), **changes)
    assert isinstance(found, PreparedRun)
    assert isinstance(at_once, PreparedRun)
    assert isinstance(found.data, Microdata)
    assert isinstance(at_once.data, Microdata)
    assert found.data.sha256 == at_once.data.sha256


def planned(workspace: Workspace, file: Path, **changes: Any) -> PlanDraft:
    """Return the draft of a project into which a file was imported, with the plan of these tests."""
    found = import_file(workspace.directory, str(file), "people")
    variables = {**PLAN["variables"], "visits": {"kind": "count", "role": "quasi_identifier"}}
    table = {**PLAN, "variables": variables, "data": {"file": str(file)}, **changes}
    dataset = workspace.list_datasets(found.project_id)[0]
    drawn_from = draft_of_import_text(table)
    return PlanDraft(found.project_id, dataset.id, drawn_from, Recipe.from_table(table).to_toml())


def draft_of_import_text(table: dict[str, Any]) -> str:
    return json.dumps({"file": table["data"]["file"]}, sort_keys=True)


def test_the_plan_of_a_long_stored_table_is_prepared_in_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    with Workspace.create(tmp_path / "w", KEY) as workspace:
        draft = planned(workspace, tmp_path / "people.csv")
        prepared = prepare_plan(workspace, draft)
        assert isinstance(prepared.data, StoredBlocks)
        stored = workspace.find_dataset(draft.dataset_id).table_sha256
        run = find_run(workspace, prepared.enter(workspace, "people"))
        assert workspace.find_dataset(run.dataset_id).table_sha256 == stored
        again = prepare_plan(workspace, draft_of_run(workspace, run.id))
        assert isinstance(again.data, StoredBlocks)
        with monkeypatch.context() as patch:
            patch.setattr("sfumato.workspace.service.prepare._stored_blocks", lambda *_: None)
            whole = prepare_plan(workspace, draft)
        assert isinstance(whole.data, Microdata)
        assert whole.data.sha256 == prepared.data.data_sha256
        other = find_run(workspace, whole.enter(workspace, "people"))
        assert other.dataset_id == run.dataset_id


@pytest.mark.parametrize(
    "changes",
    [
        {"variables": {**PLAN["variables"], "visits": {"kind": "continuous"}}},
        {"variables": {**PLAN["variables"], "age": {"kind": "continuous", "bounds": [40, 200]}}},
    ],
)
def test_a_plan_that_reads_other_values_is_prepared_at_once(
    changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    with Workspace.create(tmp_path / "w", KEY) as workspace:
        said = []
        draft = planned(workspace, tmp_path / "people.csv", **changes)
        for blocks in (True, False):
            with monkeypatch.context() as patch:
                if not blocks:
                    patch.setattr("sfumato.workspace.service.prepare._stored_blocks", lambda *_: None)
                try:
                    found = prepare_plan(workspace, draft)
                except BadInput as error:
                    said.append(str(error))
                else:
                    assert isinstance(found.data, Microdata)
                    said.append(found.data.sha256)
        assert said[0] == said[1]


@pytest.mark.parametrize("variables", [4, 3])
def test_a_run_takes_the_stored_table_where_its_plan_has_all_columns(
    variables: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    written: list[str] = []
    write = TableStore.write_microdata

    def note(self: TableStore, data: Any) -> str:
        written.append(write(self, data))
        return written[-1]

    fewer = dict(list(PLAN["variables"].items())[:2]) | {"income": {"kind": "continuous"}}
    changes = {"variables": fewer, "measure": PLAN["measure"][:1]} if variables == 3 else {}
    with Workspace.create(tmp_path / "w", KEY) as workspace:
        prepared = prepare_plan(workspace, planned(workspace, tmp_path / "people.csv", **changes))
        assert isinstance(prepared.data, StoredBlocks)
        monkeypatch.setattr(TableStore, "write_microdata", note)
        run = find_run(workspace, prepared.enter(workspace))
        table = workspace.find_dataset(run.dataset_id).table_sha256
        assert written == ([table] if variables == 3 else [])
        assert (table == prepared.data.sha256) == (variables == 4)
        assert write(workspace.tables, prepared.data) == table
