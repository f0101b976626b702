"""Printed tables are judged together with the rounded tables and the coarser columns that readers have beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from printed_table_runs import finding, run

from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow

TABLE: dict[str, Any] = {
    "variables": {
        "region": {"kind": "categorical", "levels": ["a", "b", "c", "d"]},
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "pay": {"kind": "continuous", "bounds": [0, 100]},
    },
    "table": [{"name": "people", "by": ["region", "sex"]}],
    "tables": {"threshold": 5},
}
COARSE = {**TABLE, "synthesis": [{"target": "pay", "method": "cart", "predictors": ["sex"]}]}


def records(counts: dict[tuple[str, str], int]) -> pd.DataFrame:
    rows = [key for key, number in counts.items() for _ in range(number)]
    frame = pd.DataFrame(rows, columns=["region", "sex"])
    return frame.assign(pay=np.random.default_rng(1).uniform(0, 100, len(frame)).round(1))


UNEVEN = records(
    {
        ("a", "f"): 3, ("a", "m"): 40, ("b", "f"): 41, ("b", "m"): 20,
        ("c", "f"): 30, ("c", "m"): 28, ("d", "f"): 25, ("d", "m"): 33,
    }
)  # fmt: skip


def recoded(west: list[str], east: list[str]) -> dict[str, Any]:
    return {**COARSE, "release": {"m": 1, "recode": {"region": {"west": west, "east": east}}}}


def test_a_group_of_regions_in_a_dataset_gives_a_hidden_cell_away(tmp_path: Path) -> None:
    """Regions a and c hide both sexes; the group of a and b, of which b is printed, shows the women of a."""
    found = finding(tmp_path / "w", run(tmp_path / "w", UNEVEN, recoded(["a", "b"], ["c", "d"])), "kept_tables")
    assert found.status == "block", found.message
    assert "the groups of region in datasets" in found.message
    assert "region=a, sex=f" in found.message


def test_a_group_of_the_hidden_regions_says_nothing_new(tmp_path: Path) -> None:
    """The control: the group of a and c has what the printed cells add up to."""
    found = finding(tmp_path / "w", run(tmp_path / "w", UNEVEN, recoded(["a", "c"], ["b", "d"])), "kept_tables")
    assert found.status == "pass", found.message


def test_coarser_columns_of_an_earlier_release_are_looked_at(tmp_path: Path) -> None:
    alone = {name: value for name, value in recoded(["a", "b"], ["c", "d"]).items() if not name.startswith("table")}
    first = run(tmp_path / "w", UNEVEN, alone)
    with Workspace.open(tmp_path / "w") as opened:
        write_run_release(opened, first, tmp_path / "out", reason="checked by two people of the methods unit")
    found = finding(tmp_path / "w", run(tmp_path / "w", UNEVEN, TABLE), "kept_tables")
    assert found.status == "block", found.message
    assert "region=a, sex=f" in found.message


def rounded(**step: Any) -> dict[str, Any]:
    own = {"method": "margins", "target": ["region", "sex"], "margins": ["region : sex"], "limit": 10, "audit": True}
    return {**TABLE, "synthesis": [{**own, **step}], "release": {"m": 1}}


def with_women(of_a: int, of_c: int) -> pd.DataFrame:
    return records(
        {
            ("a", "f"): of_a, ("a", "m"): 40, ("b", "f"): 41, ("b", "m"): 35,
            ("c", "f"): of_c, ("c", "m"): 20, ("d", "f"): 45, ("d", "m"): 38,
        }
    )  # fmt: skip


def test_a_rounded_table_narrows_a_hidden_cell_to_one_value(tmp_path: Path) -> None:
    """4 women of a and 34 of c are hidden; 38 in all, at most 34 in c (30 to tens) and at most 4 in a (0) leave 4."""
    found = finding(tmp_path / "w", run(tmp_path / "w", with_women(4, 34), rounded()), "kept_tables")
    assert found.status == "block", found.message
    assert "together with the datasets of this release and rounded tables" in found.message
    assert "region=a, sex=f" in found.message


def test_a_rounded_table_that_leaves_several_values_passes(tmp_path: Path) -> None:
    """The control: with 30 women of c, 33 in all, a may have 1 to 4."""
    found = finding(tmp_path / "w", run(tmp_path / "w", with_women(3, 30), rounded()), "kept_tables")
    assert found.status == "pass", found.message
    assert "rounded tables" in found.message


def test_tables_that_are_too_large_beside_others_are_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.engine.tables.bounded.MOST_COMBINATIONS", 3)
    for number, (recipe, words) in enumerate(
        ((rounded(), "the rounded tables"), (recoded(["a", "b"], ["c", "d"]), "the datasets show of region"))
    ):
        place = tmp_path / f"w{number}"
        found = finding(place, run(place, UNEVEN, recipe), "kept_tables")
        assert found.status == "not checked", found.message
        assert words in found.message


def test_a_table_of_some_records_is_not_compared_with_groups(tmp_path: Path) -> None:
    some = {**recoded(["a", "c"], ["b", "d"]), "table": [{**TABLE["table"][0], "where": "pay >= 1"}]}
    found = finding(tmp_path / "w", run(tmp_path / "w", UNEVEN, some), "kept_tables")
    assert found.status == "not checked", found.message
    assert '"people" was not compared' in found.message


def test_what_an_earlier_release_hid_by_stricter_rules_is_unsafe_by_these(tmp_path: Path) -> None:
    """A threshold of 25 hid 20 men of c; tables by a threshold of 5 print them."""
    first = run(tmp_path / "w", with_women(30, 30), {**TABLE, "tables": {"threshold": 25}})
    with Workspace.open(tmp_path / "w") as opened:
        write_run_release(opened, first, tmp_path / "out", reason="checked by two people of the methods unit")
    loose = {**TABLE, "table": [{"name": "men", "by": ["region"], "where": "sex = 'm'"}]}
    found = finding(tmp_path / "w", run(tmp_path / "w", with_women(30, 30), loose), "kept_tables")
    assert found.status == "block", found.message
    assert "region=c, sex=m" in found.message


def test_contributors_of_too_many_cells_are_not_called_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control passes, with as many cells as are looked at."""
    own = recoded(["a", "c"], ["b", "d"])
    assert finding(tmp_path / "w", run(tmp_path / "w", UNEVEN, own), "kept_tables").status == "pass"
    monkeypatch.setattr("sfumato.engine.tables.bounded.MOST_CELLS_OF_CONTRIBUTORS", 3)
    found = finding(tmp_path / "x", run(tmp_path / "x", UNEVEN, own), "kept_tables")
    assert found.status == "not checked", found.message
    assert "what contributors, who know their own part of each cell, work out" in found.message
