"""Printed tables: hidden cells are marks and say no reason in public; the internal file has values, rules and intervals."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.recipe.declared_tables import protect_recipe_tables
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.tables.declared_table import DeclaredTable, TableVariable
from sfumato.engine.tables.rules import TableRules, find_unsafe_cells
from sfumato.engine.tables.system import TableSystem, build_system
from sfumato.workspace.table_files.printed_tables import (
    HIDDEN_MARK,
    CellStatuses,
    public_table_csv,
    status_table_csv,
)

REGION = ["a1"] * 5 + ["a2"] * 2 + ["b1"] * 3
COUNTY = ["a"] * 7 + ["b"] * 3
SEX = ["f", "f", "f", "m", "m", "f", "f", "m", "m", "m"]


@pytest.fixture
def system() -> TableSystem:
    region = TableVariable.from_values("region", REGION, {"county": COUNTY})
    sex = TableVariable.from_values("sex", SEX)
    value = np.array([0.1, 0.2, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    return build_system(
        [
            DeclaredTable("people", (region, sex)),
            DeclaredTable("sums", (TableVariable.from_values("sex", SEX),), value, "pay"),
        ]
    )


@pytest.fixture
def statuses(system: TableSystem) -> CellStatuses:
    unsafe = find_unsafe_cells(system, TableRules(threshold=3))
    published = ~unsafe.unsafe
    # One more, for the sake of the others.
    published[system.find_cell("people", {"region": "a1", "sex": "f"})] = False
    rise = np.where(published, np.nan, 2.0)
    return CellStatuses(
        system.values, system.cell_is_whole, published, unsafe.unsafe, system.unit_counts, unsafe.by_rule, unsafe.levels, rise, rise / 2,
        ~published & (system.values > 2),
    )  # fmt: skip


def read(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def line_of(lines: list[dict[str, str]], **labels: str) -> dict[str, str]:
    (found,) = [line for line in lines if labels.items() <= line.items()]
    return found


def test_hidden_cells_are_marks_and_say_no_reason(system: TableSystem, statuses: CellStatuses) -> None:
    lines = read(public_table_csv(system.tables[0], statuses))
    assert len(lines) == system.tables[0].cells.size
    primary, secondary = line_of(lines, region="a1", sex="m"), line_of(lines, region="a1", sex="f")
    assert (primary["count"], primary["status"]) == (secondary["count"], secondary["status"]) == (HIDDEN_MARK, "hidden")
    assert {line["count"] for line in lines if line["status"] == "hidden"} == {HIDDEN_MARK}
    total = line_of(lines, region="total", sex="total")
    assert (total["count"], total["status"]) == ("10", "published")
    assert set(lines[0]) == {"region", "region grouping", "sex", "count", "status"}


def test_a_cell_without_records_is_0_or_hidden_as_the_rules_say(system: TableSystem, statuses: CellStatuses) -> None:
    lines = read(public_table_csv(system.tables[0], statuses))
    assert line_of(lines, region="b1", sex="f")["count"] == "0"
    hidden = read(public_table_csv(system.tables[0], replace(statuses, are_zeros_hidden=True)))
    assert line_of(hidden, region="b1", sex="f") | {"region": ""} == {
        "region": "", "region grouping": "", "sex": "f", "count": HIDDEN_MARK, "status": "hidden",
    }  # fmt: skip


def test_the_public_file_tells_no_reason_for_two_hidden_cells(system: TableSystem, statuses: CellStatuses) -> None:
    """With primary and secondary exchanged, the bytes are the same."""
    hidden = ~statuses.published
    other = replace(statuses, primary=hidden & ~statuses.primary, values=np.where(hidden, 77.0, statuses.values))
    assert public_table_csv(system.tables[0], statuses) == public_table_csv(system.tables[0], other)
    assert status_table_csv(system.tables[0], statuses) != status_table_csv(system.tables[0], other)


def test_sums_show_no_digits_of_their_order(system: TableSystem, statuses: CellStatuses) -> None:
    lines = read(public_table_csv(system.tables[1], statuses, "pay"))
    assert line_of(lines, sex="f")["pay"] == "10.3"


def test_the_internal_file_has_values_rules_and_intervals(system: TableSystem, statuses: CellStatuses) -> None:
    lines = read(status_table_csv(system.tables[0], statuses))
    small = line_of(lines, region="a1", sex="m")
    assert (small["count"], small["status"], small["rules"], small["units"]) == ("2", "primary", "threshold", "2")
    assert (small["lowest"], small["highest"], small["safe"]) == ("1", "4", "yes")
    other = line_of(lines, region="a1", sex="f")
    assert (other["status"], other["rules"], other["safe"]) == ("secondary", "", "")
    total = line_of(lines, region="total", sex="total")
    assert (total["status"], total["lowest"]) == ("published", "")


def test_labels_are_no_formulas_and_a_label_called_total_is_no_total() -> None:
    own = TableVariable.from_values("=x", ["=1+1", "total", "total"])
    system = build_system([DeclaredTable("t", (own,))])
    every = np.ones(system.cell_count, dtype=np.bool_)
    statuses = CellStatuses(system.values, system.cell_is_whole, every, ~every, system.unit_counts)
    text = public_table_csv(system.tables[0], statuses).decode()
    assert text == "'=x,count,status\ntotal*,3,published\n'=1+1,1,published\ntotal,2,published\n"


@pytest.mark.slow
def test_a_protected_table_of_a_recipe_is_printed() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"region": rng.choice(list("abcd"), 60, p=[0.5, 0.3, 0.15, 0.05]), "sex": rng.choice(list("fm"), 60)}
    )
    recipe = Recipe.from_table(
        {
            "variables": {"region": {"kind": "categorical"}, "sex": {"kind": "categorical"}},
            "table": [{"name": "people", "by": ["region", "sex"]}],
            "tables": {"threshold": 5},
        }
    )
    assert recipe.table_protection is not None
    data = conform_to_schema(frame, recipe.schema)
    made = protect_recipe_tables(data, recipe.tables, recipe.table_protection)
    statuses = CellStatuses.from_protected(made)
    public = read(public_table_csv(made.system.tables[0], statuses))
    internal = read(status_table_csv(made.system.tables[0], statuses))
    assert {line["status"] for line in internal} == {"published", "primary", "secondary"}
    for shown, own in zip(public, internal, strict=True):
        hidden = own["status"] != "published"
        assert shown["count"] == (HIDDEN_MARK if hidden else own["count"])
        count = int(own["count"])
        assert own["rules"] == ("threshold" if 0 < count < 5 else "")
        if own["status"] == "primary":
            assert float(own["lowest"]) <= count <= float(own["highest"])
            assert own["lowest"] != own["highest"]
            assert own["safe"] == "yes"


@pytest.mark.slow
def test_zeros_that_are_unsafe_are_hidden_wherever_they_stand() -> None:
    frame = pd.DataFrame({"region": ["a"] * 6 + ["b"] * 6 + ["c"] * 5, "sex": ["f", "m"] * 6 + ["f"] * 5})
    recipe = Recipe.from_table(
        {
            "variables": {
                "region": {"kind": "categorical", "levels": ["a", "b", "c", "d"]},
                "sex": {"kind": "categorical"},
            },
            "table": [{"name": "people", "by": ["region", "sex"]}],
            "tables": {"zeros": "unsafe"},
        }
    )
    assert recipe.table_protection is not None
    made = protect_recipe_tables(conform_to_schema(frame, recipe.schema), recipe.tables, recipe.table_protection)
    lines = read(public_table_csv(made.system.tables[0], CellStatuses.from_protected(made)))
    assert line_of(lines, region="c", sex="m")["status"] == "hidden"
    assert line_of(lines, region="d", sex="total")["status"] == "hidden"
    # What is 0 beside it would tell it.
    assert line_of(lines, region="c", sex="f")["status"] == "hidden"
    assert "0" not in {line["count"] for line in lines}
