"""The gate finds the same of a table whose columns lie on the disk as of one in memory, whatever the size of blocks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import run_recipe

from sfumato.engine.adversary import neighbours
from sfumato.engine.adversary.cells import number_keys, round_to_40_bits, row_keys
from sfumato.engine.data import blocks
from sfumato.workspace.gate.checks import record_numbers
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.store import table_manifests
from sfumato.workspace.store.tables import TableStore
from sfumato.workspace.store.workspace import Workspace

PLAN: dict[str, Any] = {
    "variables": {
        "region": {"kind": "categorical", "role": "quasi_identifier"},
        "age": {"kind": "count", "role": "quasi_identifier"},
        "visits": {"kind": "count", "role": "sensitive"},
        "income": {"kind": "continuous", "role": "sensitive"},
    },
    "release": {"m": 2, "seed": 3},
    "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["region"], "prior": "scaled"}],
    "measure": [
        {"method": "risk.identification", "known": ["region", "age"], "synthesised": ["income"], "radius": {"income": "5%"}}
    ],
}  # fmt: skip


def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "region": rng.choice(["n", "s", "w"], 700),
            "age": rng.integers(18, 60, 700),
            "visits": rng.poisson(3, 700),
            "income": np.exp(rng.normal(0, 1, 700)),
        }
    )


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(table_manifests, "PART_ROWS", 150)
    with Workspace.create(tmp_path / "w", b"k" * 32) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("order", ["shuffled", "original"])
@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("most_sorted", [neighbours.MOST_SORTED, 150])
def test_findings_are_those_in_memory(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, order: str, copied: bool, most_sorted: int
) -> None:
    monkeypatch.setattr(neighbours, "MOST_SORTED", most_sorted)
    plan = {**PLAN, "release": {**PLAN["release"], "order": order}}
    if copied:
        plan["synthesis"] = [{"target": "visits", "method": "cart", "predictors": ["age"], "minbucket": 1}]
        plan["measure"] = [{"method": "utility.ecdf"}]
    run_id = run_recipe(workspace, plan, people())
    found = examine_release(workspace, plan_release(workspace, run_id), Policy())

    @contextlib.contextmanager
    def in_memory(self: TableStore) -> Iterator[None]:
        yield None

    mapped = []
    read = TableStore._read_mapped_microdata
    monkeypatch.setattr(TableStore, "_read_mapped_microdata", lambda *given: (mapped.append(1), read(*given))[1])
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 64)
    assert examine_release(workspace, plan_release(workspace, run_id), Policy()).to_table() == found.to_table()
    assert mapped, "columns lay on the disk"
    mapped.clear()
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 4_000_000)
    monkeypatch.setattr(TableStore, "mapping_long_tables", in_memory)
    assert examine_release(workspace, plan_release(workspace, run_id), Policy()).to_table() == found.to_table()
    assert not mapped
    assert workspace.tables.mapped_arrays is None


@pytest.mark.quick
def test_keys_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.concatenate(
        [np.arange(50.0), [-0.0, np.nan, 2.0**45 + 1, 0.1, -1e-300, np.inf], np.sqrt(np.arange(99))]
    )
    cells = {"a": number_keys(round_to_40_bits(numbers)), "b": number_keys(round_to_40_bits(numbers[::-1].copy()))}
    rows = row_keys(cells, ["a", "b"])
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 7)
    again = {"a": number_keys(round_to_40_bits(numbers)), "b": number_keys(round_to_40_bits(numbers[::-1].copy()))}
    assert all(np.array_equal(cells[name], again[name]) for name in cells)
    assert np.array_equal(row_keys(again, ["a", "b"]), rows)
    assert not np.array_equal(row_keys(again, ["b"]), rows)


@pytest.mark.quick
def test_numbers_of_many_records_take_few_bytes_and_read_as_integers() -> None:
    found = record_numbers(np.array([3, 5, 70_000]))
    assert list(found) == [3, 5, 70_000]
    assert found == (3, 5, 70_000)
    assert found != (3, 5)
    assert found[1:] == (5, 70_000)
    assert type(found[0]) is int
    assert np.asarray(found, dtype=np.int64).tolist() == [3, 5, 70_000]
    assert not record_numbers(np.zeros(0, dtype=np.int64))
