"""Protected tables as entries of ACRO's queue: a statbarn, counts of hidden cells, and never more than a review."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sfumato.engine.tables.declared_table import DeclaredTable, TableVariable
from sfumato.engine.tables.rules import TableRules, find_unsafe_cells
from sfumato.engine.tables.system import TableSystem, build_system
from sfumato.workspace.documents.acro import printed_table_output
from sfumato.workspace.table_files.printed_tables import CellStatuses

SEX = TableVariable.from_values("sex", ["f", "f", "f", "m", "m"])


def protected(value: np.ndarray | None = None) -> tuple[TableSystem, CellStatuses]:
    system = build_system([DeclaredTable("people", (SEX,), value, "count" if value is None else "pay")])
    unsafe = find_unsafe_cells(system, TableRules(threshold=3))
    published = ~unsafe.unsafe
    published[system.find_cell("people", {"sex": "f"})] = False
    none = np.zeros(system.cell_count, dtype=np.bool_)
    return system, CellStatuses(
        system.values, system.cell_is_whole, published, unsafe.unsafe, system.unit_counts, unsafe.by_rule, failing=none
    )


def test_a_protected_table_is_for_a_person_to_review() -> None:
    system, statuses = protected()
    one = printed_table_output("people.csv", system.tables[0], statuses, "sfumato release 1")
    assert (one.status, one.statbarn) == ("review", "Frequencies")
    assert one.summary == "2 of 3 cells hidden (1 by threshold)"
    assert one.content == b"sex,count,status\ntotal,5,published\nf,x,hidden\nm,x,hidden\n"


def test_sums_are_linear_aggregations() -> None:
    system, statuses = protected(np.arange(5.0))
    one = printed_table_output("pay.csv", system.tables[0], statuses, "sfumato release 1", "pay")
    assert one.statbarn == "LinearAggregations"


@pytest.mark.parametrize("change", ["failing", "published"])
def test_a_cell_that_is_not_safe_fails(change: str) -> None:
    system, statuses = protected()
    cell = np.arange(system.cell_count) == system.find_cell("people", {"sex": "m"})
    worse = (
        replace(statuses, failing=cell)
        if change == "failing"
        else replace(statuses, published=statuses.published | cell)
    )
    one = printed_table_output("people.csv", system.tables[0], worse, "sfumato release 1")
    assert one.status == "fail"
    assert one.summary.endswith("; 1 cell not shown to be safe")


def test_without_an_audit_it_says_so() -> None:
    system, statuses = protected()
    one = printed_table_output("people.csv", system.tables[0], replace(statuses, failing=None), "sfumato release 1")
    assert one.summary.endswith("; not audited")
