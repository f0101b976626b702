"""Tables of a recipe over records: groups, missing values, conditions, units, weights, and cells that are decided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.checks import check_tables
from sfumato.engine.recipe.declared_tables import (
    DecidedCells,
    RecipeTables,
    decide_cells,
    declare_tables,
    protect_recipe_tables,
)
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.tables.rules import find_unsafe_cells
from sfumato.engine.tables.system import EMPTY, TableSystem, build_system

VARIABLES: dict[str, Any] = {
    "region": {"kind": "categorical"},
    "coast": {"kind": "categorical"},
    "age": {"kind": "count"},
    "born": {"kind": "date"},
    "turnover": {"kind": "continuous"},
    "weight": {"kind": "continuous"},
    "firm": {"kind": "categorical", "role": "unit"},
    "group": {"kind": "categorical"},
}
RECORDS = pd.DataFrame(
    {
        "region": ["a1", "a1", "a2", "b1", "b1", None],
        "coast": ["n", "n", "s", "s", None, "n"],
        "age": [9, 10, 14, 15, 100, 3],
        "born": ["2001-01-05", "2001-01-06", "2001-02-01", "2001-03-01", "2001-03-02", "2001-03-03"],
        "turnover": [1.0, 2.0, 4.0, 8.0, 16.0, np.nan],
        "weight": [1.0, 2.0, 1.0, 1.0, 1.0, 1.0],
        "firm": ["f", "f", "g", "h", "i", None],
        "group": ["x", "x", "x", "y", "y", "z"],
    }
)
TREE = [["a1", "a", "*"], ["a2", "a", "*"], ["b1", "b", "*"], ["c1", "c", "*"]]


def made(*tables: dict[str, Any], **rules: Any) -> tuple[Recipe, Microdata]:
    recipe = Recipe.from_table(
        {
            "data": {"missing": "keep"},
            "variables": VARIABLES,
            "table": [{"name": f"t{at}", **one} for at, one in enumerate(tables)],
            "tables": rules or {"threshold": 2},
        }
    )
    return recipe, conform_to_schema(RECORDS, recipe.schema, MissingPolicy.KEEP)


def system_of(*tables: dict[str, Any]) -> TableSystem:
    recipe, data = made(*tables)
    return build_system(declare_tables(data, recipe.tables))


def cells(system: TableSystem, table: str = "t0") -> dict[tuple[str, ...], float]:
    """The value of each place of a table with records, by grouping and label."""
    printed = next(one for one in system.tables if one.name == table)
    return {
        tuple(":".join(filter(None, options[at])) for options, at in zip(printed.options, places, strict=True)): float(
            system.values[cell]
        )
        for places, cell in np.ndenumerate(printed.cells)
        if cell != EMPTY
    }


def refusal(*tables: dict[str, Any]) -> str:
    with pytest.raises(BadInput) as caught:
        system_of(*tables)
    return str(caught.value)


def test_a_missing_value_is_a_row_of_its_own() -> None:
    assert cells(system_of({"by": ["region"]})) == {
        ("",): 6, ("a1",): 2, ("a2",): 1, ("b1",): 2, ("missing",): 1,
    }  # fmt: skip


def test_a_table_by_nothing_is_the_number_of_all() -> None:
    recipe, _ = made({"by": []})
    # A record without its unit is one of its own, and no values are needed.
    data = conform_to_schema(RECORDS.drop(columns="firm"), Recipe.from_table(
        {"data": {"missing": "keep"}, "variables": {name: one for name, one in VARIABLES.items() if name != "firm"}}
    ).schema, MissingPolicy.KEEP)  # fmt: skip
    assert cells(build_system(declare_tables(data, recipe.tables))) == {(): 6}


def test_a_level_called_missing_is_another_row() -> None:
    recipe, _ = made({"by": ["region"]})
    frame = RECORDS.assign(region=pd.Series(["missing", "missing", "a", "a", "a", None], dtype="object"))
    data = conform_to_schema(frame, recipe.schema, MissingPolicy.KEEP)
    own = cells(build_system(declare_tables(data, recipe.tables)))
    assert (own["missing",], own["missing*",]) == (2, 1)


def test_nodes_of_a_tree_are_rows_and_add_up_with_what_is_missing() -> None:
    own = cells(system_of({"by": ["region"], "hierarchies": {"region": TREE}}))
    assert own == {
        ("",): 6, ("a1",): 2, ("a2",): 1, ("b1",): 2, ("missing",): 1, ("level 1:a",): 3, ("level 1:b",): 2, ("level 1:missing",): 1,
    }  # fmt: skip


def test_the_levels_of_a_tree_can_be_chosen() -> None:
    own = cells(system_of({"by": ["region"], "hierarchies": {"region": TREE}, "levels": {"region": [1]}}))
    assert set(own) == {("",), ("level 1:a",), ("level 1:b",), ("level 1:missing",)}


def test_a_tree_that_lacks_a_value_is_refused() -> None:
    assert refusal({"by": ["region"], "hierarchies": {"region": TREE[:1] + TREE[2:]}}) == (
        "table[0].hierarchies.region: 1 of 3 values of the data are not in the tree; give each a row"
    )


def test_second_groupings_need_not_nest() -> None:
    rows = {"sea": [["a1", "west"], ["b1", "west"], ["z", "east"]]}
    own = cells(system_of({"by": ["region"], "also": {"region": rows}}))
    # a2 is in no group of the sea.
    assert (own["sea:west",], own["sea:missing",], own["",]) == (4, 1, 6)
    by_variable = cells(system_of({"by": ["region"], "also": {"region": "coast"}}))
    assert {key: by_variable[key] for key in [("coast:n",), ("coast:s",), ("coast:missing",)]} == {
        ("coast:n",): 3, ("coast:s",): 2, ("coast:missing",): 1,
    }  # fmt: skip


def test_rows_that_name_no_value_of_the_data_are_refused() -> None:
    message = refusal({"by": ["region"], "also": {"region": {"sea": [["q", "west"]]}}})
    assert message == 'table[0].also.region.sea: names no value of "region" that a record has'


def test_numbers_have_groups_by_widths_and_counts_their_values_in_order() -> None:
    own = cells(system_of({"by": ["age"], "widths": {"age": [5, 10]}}))
    assert (own["level 1:[5, 10)",], own["level 1:[10, 15)",], own["level 2:[10, 20)",]) == (1, 2, 3)
    values = [key[0] for key in cells(system_of({"by": ["age"]}))]
    assert values == ["", "3", "9", "10", "14", "15", "100"]
    days = cells(system_of({"by": ["born"], "widths": {"born": [31]}}))
    assert sum(days.values()) == 12


def test_a_condition_leaves_records_out_and_unknown_is_out() -> None:
    assert cells(system_of({"where": "coast = n", "by": ["region"]})) == {("",): 3, ("a1",): 2, ("missing",): 1}
    assert cells(system_of({"where": "coast != n", "by": []})) == {(): 2}
    assert refusal({"where": "coast = q"}).startswith('table[0].where: "coast" has no level "q"')
    assert refusal({"where": "age > 1000"}).startswith("table[0]: no record is in this table")


def test_a_record_without_the_value_is_not_in_a_sum() -> None:
    system = system_of({"by": ["region"], "value": "turnover"})
    assert cells(system) == {("",): 31, ("a1",): 3, ("a2",): 4, ("b1",): 24}


def test_units_are_those_of_the_role_or_of_the_table() -> None:
    recipe, data = made({"by": ["region"]}, {"by": ["region"], "value": "turnover", "unit": "group"})
    by_role, by_group = declare_tables(data, recipe.tables)
    assert by_role.units is not None
    assert by_group.units is not None
    # The record without a number is a unit of its own.
    assert len(np.unique(by_role.units)) == 5
    assert len(np.unique(by_group.units)) == 3
    system = build_system([by_role])
    assert system.unit_counts[system.find_cell("t0", {"region": "a1"})] == 1


def test_weights_make_a_measure_of_their_own() -> None:
    system = system_of({"by": ["region"], "weights": "weight"}, {"by": ["region"]})
    assert cells(system, "t0")["a1",] == 3
    assert cells(system, "t1")["a1",] == 2
    recipe, data = made({"weights": "turnover"})
    with pytest.raises(BadInput, match=r'^table\[0\].weights: 1 record has no "turnover"; leave them out by where'):
        declare_tables(data, recipe.tables)


def test_a_total_is_left_out_where_the_recipe_says_so() -> None:
    own = cells(system_of({"by": ["region", "coast"], "without_total": ["coast"]}))
    assert ("", "n") in own
    assert ("", "") not in own


def decided(tables: list[dict[str, Any]], **rules: Any) -> tuple[TableSystem, DecidedCells]:
    recipe, data = made(*tables, threshold=2, **rules)
    system = build_system(declare_tables(data, recipe.tables))
    assert recipe.table_protection is not None
    return system, decide_cells(system, data, recipe.tables, recipe.table_protection)


def test_cells_are_decided_by_their_labels() -> None:
    fixed = [
        {"table": "t0", "cell": {"region": "a1"}, "status": "published", "factor": 3.0},
        {"table": "t0", "cell": {"region": "b1"}, "status": "unsafe", "level": 0.5},
        {"table": "t0", "cell": {"region": "a2"}, "status": "hidden"},
        {"table": "t0", "cell": {"region": "level 1:a"}, "status": "safe", "cost": 7.0},
        {"table": "t0", "cell": {"region": "c1"}, "status": "safe"},
    ]
    # c1 is a level without records.
    tables = [{"by": ["region"], "hierarchies": {"region": TREE}}]
    with pytest.raises(BadInput, match=r'tables.fixed\[4\].cell.region: "t0" has no row "c1"'):
        decided(tables, fixed=fixed)
    system, own = decided(tables, fixed=fixed[:4])
    place = {name: system.find_cell("t0", {"region": name}) for name in ("a1", "b1", "a", "a2")}
    assert np.flatnonzero(own.published).tolist() == [place["a1"]]
    assert np.flatnonzero(own.safe).tolist() == [place["a"]]
    assert np.flatnonzero(own.hidden).tolist() == [place["a2"]]
    assert own.levels[place["b1"]] == own.levels.sum() == 0.5
    # b has b1 alone: they are one cell.
    assert np.flatnonzero(own.unsafe).tolist() == [place["b1"]] == [system.find_cell("t0", {"region": "b"})]
    assert [own.costs[place[name]] for name in ("a1", "a", "a2")] == [6.0, 7.0, 1.0]


def test_two_names_of_one_cell_are_decided_alike() -> None:
    tables = [{"by": ["region"], "hierarchies": {"region": TREE}}]
    fixed = [
        {"table": "t0", "cell": {"region": "b1"}, "status": "unsafe"},
        {"table": "t0", "cell": {"region": "b"}, "status": "published"},
    ]
    with pytest.raises(BadInput, match=r"^tables.fixed\[1\]: is published, and tables.fixed\[0\], which has the same"):
        decided(tables, fixed=fixed)


def test_a_cell_without_records_is_reported() -> None:
    fixed = [{"table": "t0", "cell": {"region": "a2", "coast": "n"}, "status": "safe"}]
    _, own = decided([{"by": ["region", "coast"]}], fixed=fixed)
    assert own.without_records == (0,)


def test_what_hiding_costs() -> None:
    tables = [{"by": ["region"]}]
    system, by_size = decided(tables)
    a1 = system.find_cell("t0", {"region": "a1"})
    assert by_size.costs[a1] == 2
    assert set(decided(tables, cost="cells")[1].costs) == {1.0}
    assert decided(tables, cost="turnover")[1].costs[a1] == 3


def test_the_order_of_records_changes_no_cell() -> None:
    recipe, data = made({"by": ["region", "coast"], "hierarchies": {"region": TREE}})
    system = build_system(declare_tables(data, recipe.tables))
    again = conform_to_schema(RECORDS.iloc[::-1], recipe.schema, MissingPolicy.KEEP)
    other = build_system(declare_tables(again, recipe.tables))
    assert cells(system) == cells(other)
    assert recipe.table_protection is not None
    rules = recipe.table_protection.rules
    assert (find_unsafe_cells(system, rules).unsafe == find_unsafe_cells(other, rules).unsafe).all()


def people(number: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    regions = np.array(["a1", "a2", "b1", "b2", "c1"])
    return pd.DataFrame(
        {
            "region": regions[rng.choice(5, number, p=[0.4, 0.3, 0.15, 0.1, 0.05])],
            "coast": np.array(["n", "s"])[rng.integers(0, 2, number)],
            "age": rng.integers(0, 90, number),
            "born": "2001-01-05",
            "turnover": np.round(rng.lognormal(3, 1.5, number), 2),
            "weight": 1.0,
            "firm": rng.permutation(number).astype(str),
            "group": rng.integers(0, number // 2, number).astype(str),
        }
    )


ALL = [[name, name[0], "*"] for name in ("a1", "a2", "b1", "b2", "c1")]


def protected(frame: pd.DataFrame, **rules: Any) -> RecipeTables:
    recipe, _ = made(
        {
            "by": ["region", "age"],
            "hierarchies": {"region": ALL},
            "widths": {"age": [10, 30]},
            "also": {"region": "coast"},
        },
        {"by": ["coast", "region"], "value": "turnover", "unit": "group"},
        **{"threshold": 3, "p_percent": 15, **rules},
    )
    data = conform_to_schema(frame, recipe.schema, MissingPolicy.KEEP)
    assert recipe.table_protection is not None
    return protect_recipe_tables(data, recipe.tables, recipe.table_protection)


@pytest.mark.slow
def test_the_tables_of_a_recipe_are_protected_together() -> None:
    found = protected(people(300, 1))
    primary, hidden = found.protected.primary, found.protected.hidden_cells
    assert 0 < primary.sum() < hidden.sum()
    assert (hidden[primary]).all()
    assert not found.protected.audit.failing.any()
    again = protected(people(300, 1).sample(frac=1.0, random_state=5))
    assert (again.protected.published == found.protected.published).all()


@pytest.mark.slow
def test_decided_cells_are_kept() -> None:
    fixed = [
        {"table": "t0", "cell": {"region": "c1"}, "status": "published"},
        {"table": "t0", "cell": {"region": "a1", "age": "level 2:[30, 60)"}, "status": "unsafe"},
    ]
    found = protected(people(300, 1), fixed=fixed)
    assert found.protected.published[found.decided.published].all()
    assert found.protected.primary[found.decided.unsafe].all()
    assert found.decided.unsafe.sum() == 1


@pytest.mark.slow
def test_a_cell_that_is_declared_safe_is_found_by_no_rule_and_a_level_is_kept() -> None:
    plain = protected(people(300, 1))
    by_rules = plain.protected.primary
    table = next(one for one in plain.system.tables if one.name == "t0")
    small = next(
        place
        for place in np.ndindex(*table.cells.shape)
        if table.cells[place] >= 0 and by_rules[table.cells[place]] and table.options[0][place[0]][1] in ("c1", "b2")
    )
    labels = {
        name: ":".join(filter(None, options[at]))
        for name, options, at in zip(table.variables, table.options, small, strict=True)
        if options[at][1]
    }
    cell = int(table.cells[small])
    safe = protected(people(300, 1), fixed=[{"table": "t0", "cell": labels, "status": "safe"}])
    assert not safe.protected.primary[cell]
    assert not safe.protected.audit.by_rule["threshold"][cell]
    assert safe.protected.primary.sum() == by_rules.sum() - 1
    far = protected(people(300, 1), fixed=[{"table": "t0", "cell": labels, "level": 6.0}])
    assert far.protected.audit.levels[cell] == 6
    assert far.protected.audit.rise[cell] >= 6 or far.protected.audit.short_of_level[cell]
    assert not far.protected.audit.undecided[cell]


def test_a_decided_cell_that_is_not_there_is_refused_before_a_run() -> None:
    recipe, data = made(
        {"by": ["region"]}, threshold=2, fixed=[{"table": "t0", "cell": {"region": "c1"}, "status": "hidden"}]
    )
    with pytest.raises(BadInput) as caught:
        check_tables(recipe, data)
    assert str(caught.value) == 'tables.fixed[0].cell.region: "t0" has no row "c1"; its rows are a1, a2, b1, missing'
