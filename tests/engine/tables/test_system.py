"""Atoms and cells: what is one cell, whatever its names, and that no order of input changes it."""

from __future__ import annotations

import time

import numpy as np
import pytest

from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.tables.declared_table import DeclaredTable, Grouping, TableVariable
from sfumato.engine.tables.rules import TableRules, find_unsafe_cells, list_cell_units
from sfumato.engine.tables.system import EMPTY, TableSystem, build_system

REGION = ["a1", "a1", "a2", "a2", "b1", "b1", "b1"]
COUNTY = ["a", "a", "a", "a", "b", "b", "b"]
SEX = ["f", "m", "f", "f", "m", "m", "f"]


def small() -> TableSystem:
    region = TableVariable.from_values("region", REGION, {"county": COUNTY})
    return build_system([DeclaredTable("people", (region, TableVariable.from_values("sex", SEX)))])


def test_cells_are_sums_of_atoms() -> None:
    system = small()
    values = {
        (region, sex): system.values[system.find_cell("people", {"region": region, "sex": sex})]
        for region, sex in [("a1", "f"), ("a", "f"), ("b", "m"), ("", "f"), ("", "")]
    }
    assert values == {("a1", "f"): 1, ("a", "f"): 3, ("b", "m"): 2, ("", "f"): 4, ("", ""): 7}
    assert system.find_cell("people", {"region": "a2", "sex": "m"}) == EMPTY
    assert (system.unit_counts == system.values).all()


def test_a_total_of_one_child_is_the_child() -> None:
    system = small()
    assert system.find_cell("people", {"region": "b", "sex": "f"}) == system.find_cell(
        "people", {"region": "b1", "sex": "f"}
    )
    # a2 has women alone: its total is their cell.
    assert system.find_cell("people", {"region": "a2"}) == system.find_cell("people", {"region": "a2", "sex": "f"})
    assert len(np.unique(system.columns.T.toarray(), axis=0)) == system.cell_count


def test_a_common_margin_of_two_tables_is_one_cell_and_two_measures_are_two() -> None:
    region, sex = TableVariable.from_values("region", REGION), TableVariable.from_values("sex", SEX)
    value = np.arange(7.0)
    system = build_system(
        [
            DeclaredTable("one", (region,)),
            DeclaredTable("two", (region, sex)),
            DeclaredTable("three", (region,), value, "income"),
        ]
    )
    assert system.find_cell("one", {"region": "a1"}) == system.find_cell("two", {"region": "a1"})
    own = system.find_cell("three", {"region": "a1"})
    assert own != system.find_cell("one", {"region": "a1"})
    assert system.values[own] == 1
    assert system.cell_is_whole[own] == np.False_


def test_groupings_need_not_nest() -> None:
    ages = np.array([16, 17, 18, 19, 24, 25])
    bands = [str(age // 5 * 5) for age in ages]
    school = ["minor" if age < 18 else "adult" for age in ages]
    system = build_system([DeclaredTable("t", (TableVariable.from_values("age", bands, {"law": school}),))])
    assert system.values[system.find_cell("t", {"age": "law:minor"})] == 2
    assert system.values[system.find_cell("t", {"age": "15"})] == 4


def test_a_record_of_no_group_is_in_the_total_alone() -> None:
    codes = np.array([0, 0, -1, 1])
    variable = TableVariable("v", (Grouping("", codes, ("x", "y")),))
    system = build_system([DeclaredTable("t", (variable,))])
    assert system.values[system.find_cell("t", {})] == 4
    assert system.values[system.find_cell("t", {"v": "x"})] == 2


def test_where_weights_units_and_rows_that_stand_for_several() -> None:
    region = TableVariable.from_values("region", REGION)
    value, weights = np.arange(1.0, 8.0), np.full(7, 2.0)
    units = np.array([0, 0, 1, 1, 2, 2, 2])
    some = np.array([True] * 6 + [False])
    system = build_system([DeclaredTable("t", (region,), value, "v", units, weights, where=some)])
    total = system.find_cell("t", {})
    assert system.values[total] == 2 * 21
    assert system.unit_counts[total] == 3
    assert system.sole_units[system.find_cell("t", {"region": "b1"})] == 2
    own = list_cell_units(system, np.array([total]))
    assert own.sizes.tolist() == [11, 7, 3]
    assert own.totals.tolist() == [42]
    counted = build_system([DeclaredTable("t", (region,), records=np.array([3, 0, 1, 1, 0, 0, 0]))])
    assert counted.values[counted.find_cell("t", {"region": "a1"})] == 3
    assert counted.unit_counts[counted.find_cell("t", {"region": "a1"})] == 3


def test_releases_share_what_did_not_change() -> None:
    first, second = np.array([1, 1, 1, 1, 1, 1, 0], dtype=bool), np.array([1] * 5 + [0, 1], dtype=bool)
    region = TableVariable.from_values("region", REGION)
    system = build_system(
        [
            DeclaredTable("t", (region,), where=first, release="2025"),
            DeclaredTable("t", (region,), where=second, release="2026"),
        ]
    )
    # Nobody of a1 changed: this year's cell is last year's. In b1 one left and one came.
    assert system.find_cell("t", {"region": "a1"}, "2025") == system.find_cell("t", {"region": "a1"}, "2026")
    pairs = system.list_changes("2025", "2026")
    changed = [
        (system.find_cell("t", own, "2025"), system.find_cell("t", own, "2026")) for own in ({}, {"region": "b1"})
    ]
    assert sorted(pairs) == sorted(changed)


def test_changes_are_seen_whatever_a_table_is_called_and_has_besides() -> None:
    first, second = np.array([1, 1, 1, 1, 1, 1, 0], dtype=bool), np.array([1] * 5 + [0, 1], dtype=bool)
    region = TableVariable.from_values("region", REGION)
    sex = TableVariable.from_values("sex", list("fmfmfmm"))
    for name, variables in (("u", (region,)), ("t", (region, sex)), ("u", (sex, region))):
        system = build_system(
            [
                DeclaredTable("t", (region,), where=first, release="2025"),
                DeclaredTable(name, variables, where=second, release="2026"),
            ]
        )
        changed = [
            (system.find_cell("t", own, "2025"), system.find_cell(name, own, "2026")) for own in ({}, {"region": "b1"})
        ]
        assert sorted(system.list_changes("2025", "2026")) == sorted(changed)


def test_changes_are_seen_where_variables_and_groups_were_renamed() -> None:
    first, second = np.array([1] * 7 + [0], dtype=bool), np.array([0] + [1] * 7, dtype=bool)
    codes = np.array([0] * 6 + [1] * 2)
    region = TableVariable("region", (Grouping("", codes, ("a", "b")),))
    for later in (
        TableVariable("area", (Grouping("", codes, ("a", "b")),)),
        TableVariable("region", (Grouping("", codes, ("A", "B")),)),
    ):
        system = build_system(
            [
                DeclaredTable("t", (region,), where=first, release="1"),
                DeclaredTable("t", (later,), where=second, release="2"),
            ]
        )
        label = later.groupings[0].labels[0]
        pair = (system.find_cell("t", {"region": "a"}, "1"), system.find_cell("t", {later.name: label}, "2"))
        assert pair in system.list_changes("1", "2")


def test_a_value_that_was_revised_is_another_one() -> None:
    region = TableVariable.from_values("region", ["a", "a", "b"])
    old, new = np.array([1.0, 2, 3]), np.array([1.0, 5, 3])
    system = build_system(
        [
            DeclaredTable("t", (region,), old, "v", release="1"),
            DeclaredTable("t", (region,), new, "v", release="2"),
        ]
    )
    assert system.values[system.find_cell("t", {"region": "a"}, "1")] == 3
    assert system.values[system.find_cell("t", {"region": "a"}, "2")] == 6
    assert system.find_cell("t", {"region": "b"}, "1") == system.find_cell("t", {"region": "b"}, "2")
    # The record is one unit in both.
    assert system.unit_counts[system.find_cell("t", {"region": "a"}, "2")] == 2


def test_no_order_of_input_changes_the_system() -> None:
    rng = np.random.default_rng(5)
    region, sex, age = (rng.integers(0, size, 60).astype(str) for size in (5, 2, 3))
    county = np.array([code in "01" for code in region])
    value = rng.integers(1, 9, 60).astype(float)

    def build(rows: np.ndarray, swap: bool) -> TableSystem:
        one = TableVariable.from_values("region", region[rows], {"county": county[rows]})
        two, three = TableVariable.from_values("sex", sex[rows]), TableVariable.from_values("age", age[rows])
        tables = [
            DeclaredTable("x" if swap else "y", (two, one) if swap else (one, two)),
            DeclaredTable("z", (three, one)),
            DeclaredTable("v", (one, three), value[rows], "value"),
        ]
        return build_system(tables[::-1] if swap else tables)

    one, two = build(np.arange(60), swap=False), build(rng.permutation(60), swap=True)
    assert (one.columns != two.columns).nnz == 0
    assert one.cell_names == two.cell_names
    assert one.atom_values.tolist() == two.atom_values.tolist()
    rules = TableRules(threshold=3, p_percent=10)
    assert find_unsafe_cells(one, rules).levels.tolist() == find_unsafe_cells(two, rules).levels.tolist()


def test_partitions_are_sums_that_tables_show() -> None:
    system = small()
    cell = system.find_cell
    partitions = {(parent, tuple(children.tolist())) for parent, children in system.list_partitions()}
    a, women = cell("people", {"region": "a"}), {"sex": "f"}
    below = [cell("people", {"region": name}) for name in ("a1", "a2")]
    assert (a, tuple(sorted(below))) in partitions
    assert (
        cell("people", women),
        tuple(sorted(cell("people", {"region": name, "sex": "f"}) for name in ("a", "b"))),
    ) in partitions
    for parent, children in partitions:
        assert (system.columns[:, list(children)].sum(axis=1) == system.columns[:, parent].toarray()).all()


def test_combinations_without_records() -> None:
    one, two = TableVariable.from_values("one", ["a", "b"]), TableVariable.from_values("two", ["x", "y"])
    system = build_system([DeclaredTable("t", (one, two))], complete=True)
    cell = system.find_cell("t", {"one": "a", "two": "y"})
    assert cell != EMPTY
    assert system.values[cell] == 0
    assert find_unsafe_cells(system, TableRules(zeros="unsafe")).unsafe[cell]
    many = TableVariable.from_values("many", np.arange(500))
    other = TableVariable.from_values("other", np.arange(500))
    with pytest.raises(NotComputable, match="250,000 combinations"):
        build_system([DeclaredTable("t", (many, other))], complete=True)


def test_messages_name_place_and_fix() -> None:
    region = TableVariable.from_values("region", REGION)
    with pytest.raises(BadInput, match="no table"):
        build_system([])
    with pytest.raises(BadInput, match="two tables of one release"):
        build_system([DeclaredTable("t", (region,)), DeclaredTable("t", (region,))])
    with pytest.raises(BadInput, match="different numbers of records"):
        build_system([DeclaredTable("t", (region,)), DeclaredTable("u", (region,), np.ones(3), "v")])
    with pytest.raises(BadInput, match="missing or infinite"):
        build_system([DeclaredTable("t", (region,), np.full(7, np.nan), "v")])
    with pytest.raises(BadInput, match="variable twice"):
        build_system([DeclaredTable("t", (region, region))])
    units = np.arange(7)
    with pytest.raises(BadInput, match="one unit in all tables"):
        build_system([DeclaredTable("t", (region,), units=units), DeclaredTable("u", (region,), units=units // 2)])
    system = build_system([DeclaredTable("t", (region,))])
    with pytest.raises(BadInput, match='did you mean "region"'):
        system.find_cell("t", {"regoin": "a1"})
    with pytest.raises(BadInput, match='no row "a9"'):
        system.find_cell("t", {"region": "a9"})
    with pytest.raises(BadInput, match="no such table"):
        system.find_cell("s", {})


@pytest.mark.slow
def test_many_records_become_a_system_in_seconds() -> None:
    """200,000 records took 9 s of processor time where a matrix of all their groups was sorted."""
    rng = np.random.default_rng(0)
    variables = []
    for name, size in (("a", 60), ("b", 40), ("c", 20)):
        codes = rng.choice(size, 200_000)
        labels = (tuple(map(str, range(size))), tuple(map(str, range(size // 5))))
        variables.append(
            TableVariable(name, (Grouping("", codes, labels[0]), Grouping("above", codes // 5, labels[1])))
        )
    tables = [DeclaredTable("ab", (variables[0], variables[1])), DeclaredTable("bc", (variables[1], variables[2]))]
    start = time.process_time()
    system = build_system(tables)
    assert time.process_time() - start < 5
    assert system.values[system.find_cell("ab", {})] == 200_000
