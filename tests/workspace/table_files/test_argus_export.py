"""A protected table in files of tau-ARGUS: they are read back, and the engine makes the same table of them."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.engine.errors import BadInput
from sfumato.engine.partition.hierarchies import Hierarchy
from sfumato.engine.tables.declared_table import DeclaredTable, Grouping, TableVariable
from sfumato.engine.tables.rules import TableRules, find_unsafe_cells
from sfumato.engine.tables.system import build_system
from sfumato.workspace.table_files.argus_export import argus_files
from sfumato.workspace.table_files.argus_hierarchies import read_hierarchy
from sfumato.workspace.table_files.argus_metadata import read_metadata
from sfumato.workspace.table_files.argus_tables import declare_argus_table, read_table
from sfumato.workspace.table_files.printed_tables import CellStatuses

TREE = Hierarchy((("a1", "a", "*"), ("a2", "a", "*"), ("b", "b", "*")))
REGION = ["a1"] * 5 + ["a2"] * 2 + ["b"] * 3
SEX = ["f", "f", "f", "m", "m", "f", "f", "m", "m", "m"]


def axes(total: bool = True) -> tuple[TableVariable, TableVariable]:
    values = Grouping.from_values(REGION)
    nodes = Grouping.from_values([{"a1": "a", "a2": "a", "b": "b"}[one] for one in REGION], "level 1")
    return TableVariable("the region", (values, nodes), total), TableVariable.from_values("sex", SEX)


def exported(table: DeclaredTable, trees: dict[str, Hierarchy] | None = None) -> dict[str, str]:
    system = build_system([table])
    unsafe = find_unsafe_cells(system, TableRules(threshold=3))
    statuses = CellStatuses(
        system.values,
        system.cell_is_whole,
        ~unsafe.unsafe,
        unsafe.unsafe,
        system.unit_counts,
        unsafe.by_rule,
        unsafe.levels,
    )
    files = argus_files("out", system.tables[0], statuses, trees)
    return {name: content.decode() for name, content in files.items()}


@pytest.mark.parametrize("value", [None, np.array([0.5, 2.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])])
def test_what_is_written_is_read_back_to_the_same_table(value: np.ndarray | None) -> None:
    table = DeclaredTable("people", axes(), value, "count" if value is None else "pay")
    files = exported(table, {"the region": TREE})
    assert set(files) == {"out.tab", "out.rda", "out_the_region.hrc"}
    metadata = read_metadata(files["out.rda"], "out.rda", is_table=True)
    cells = read_table(files["out.tab"], metadata, "out.tab")
    # b stands at two levels and is one code.
    assert sorted({one.codes[0] for one in cells}) == ["", "a", "a1", "a2", "b"]
    assert {one.status for one in cells} == {"safe", "unsafe", "empty"}
    tree = read_hierarchy(files["out_the_region.hrc"], "out.hrc")
    again = build_system([declare_argus_table(cells, metadata, {"the_region": tree}, "people", "out.tab")])
    system = build_system([table])
    for one in cells:
        region, sex = one.codes
        labels = {"the region": "level 1:a" if region == "a" else f":{region}" if region == "b" else region, "sex": sex}
        cell = system.find_cell("people", labels)
        own = again.find_cell("people", {name.replace(" ", "_"): label for name, label in labels.items()})
        if one.status == "empty":
            assert cell == own == -1
        else:
            assert system.values[cell] == pytest.approx(again.values[own], rel=1e-12)
            assert system.unit_counts[cell] == again.unit_counts[own]


def test_what_tau_argus_does_not_know_is_refused() -> None:
    with pytest.raises(BadInput, match='has no total over "the region"'):
        exported(DeclaredTable("people", axes(total=False)), {"the region": TREE})
    with pytest.raises(BadInput, match=r'has a second grouping of "the region" \(level 1\)'):
        exported(DeclaredTable("people", axes()))
    quoted = TableVariable.from_values("sex", ['"f"'] * 10)
    with pytest.raises(BadInput, match="cannot be a code of tau-ARGUS"):
        exported(DeclaredTable("people", (quoted,)))
