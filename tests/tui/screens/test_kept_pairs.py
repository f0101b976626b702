"""The triangle of kept pairs: every pair has its cell, at every size, and what is exported says the same."""

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import finished_workspace

from sfumato.tui.findings.kept_pairs import KeptPairs, pair_rows
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.reporting.pairs import VariablePairs, triangle_text
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.pairs import read_variable_pairs

NAMES = ("area", "sex", "age")


@pytest.fixture(scope="module")
def drawn_from_tables(tmp_path_factory):
    rng = np.random.default_rng(1)
    sex = rng.integers(0, 2, 400)
    frame = pd.DataFrame({"area": np.where(rng.random(400) < 0.8, sex, 1 - sex).astype(str), "sex": sex.astype(str)})
    frame["age"] = np.where(sex == 1, rng.integers(50, 90, 400), rng.integers(10, 60, 400))
    plan = {
        "variables": {
            "area": {"kind": "binary", "levels": ["0", "1"]},
            "sex": {"kind": "binary", "levels": ["0", "1"]},
            "age": {"kind": "count", "bounds": [0, 99]},
        },
        "synthesis": [
            {"method": "margins", "target": list(NAMES), "bins": {"age": "width 20"}, "margins": ["area : sex"]}
        ],
        "release": {"m": 1, "seed": 1},
        "measure": [{"method": "utility.margin_distance"}],
    }
    directory = tmp_path_factory.mktemp("tables") / "workspace"
    finished_workspace(directory, [plan], frame, "x.csv", key=bytes(range(32)), content=b"x", project="tables")
    save_state(directory, AppState(project=1, run=1, tab="runs"))
    return directory


@pytest.mark.slow
async def test_the_triangle_shows_every_pair_at_every_size(sit, drawn_from_tables, size):
    with Workspace.open(drawn_from_tables, read_only=True) as workspace:
        found, _ = read_variable_pairs(workspace, 1)
    assert found.kept_pairs == {frozenset(("area", "sex"))}
    assert found.distances[frozenset(("sex", "age"))] > 0.2 > found.distances[frozenset(("area", "sex"))]
    async with sit(drawn_from_tables, "act:pairs", size=size) as seat:
        assert isinstance(seat.app.screen, KeptPairs)
        assert all(len(line) <= size[0] for line in seat.text.splitlines())
        assert "1 of 3 pairs of variables share a table" in seat.text
        assert "Farthest off, of the others" in seat.text
        assert "sex and age" in seat.text
        exported = seat.app.screen.make_exportable()
        assert exported is not None
        assert exported.table() == pair_rows(found)
        assert exported.figure is not None
        assert "1 of 3 pairs" in exported.figure().caption


def test_each_cell_is_that_of_its_pair():
    names = tuple("abcd")
    apart = {
        frozenset(pair): 0.01 * at for at, pair in enumerate(VariablePairs(names, frozenset(), {}).all_pairs, start=1)
    }
    found = VariablePairs(names, frozenset({frozenset("ab"), frozenset("cd")}), apart)
    lines = triangle_text(found, 200).splitlines()
    assert [line.split()[2:] for line in lines[1:5]] == [
        [],
        ["#", "1"],
        [".", "2", ".", "4"],
        [".", "3", ".", "5", "#", "6"],
    ]
    narrow = triangle_text(found, 20).splitlines()
    assert [line.split()[2:] for line in narrow[1:5]] == [[], ["#"], [".", "."], [".", ".", "#"]]
    assert lines[0].split() == ["1", "2", "3"]
