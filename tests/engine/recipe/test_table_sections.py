"""Tables of a recipe: what is read, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.table_sections import refuse_tables
from sfumato.engine.tables.rules import TableRules

TREE = [["a1", "a", "*"], ["a2", "a", "*"], ["b1", "b", "*"]]
VARIABLES: dict[str, Any] = {
    "region": {"kind": "categorical"},
    "coast": {"kind": "categorical"},
    "age": {"kind": "count"},
    "turnover": {"kind": "continuous"},
    "weight": {"kind": "continuous", "role": "weight"},
    "group": {"kind": "categorical"},
    "firm": {"kind": "categorical", "role": "unit"},
}
TABLE: dict[str, Any] = {"name": "t", "by": ["region"], "value": "turnover"}
PLAN: dict[str, Any] = {"variables": VARIABLES, "table": [TABLE], "tables": {"threshold": 3}}


def plan(own: dict[str, Any] | None = None, **changes: Any) -> Recipe:
    return Recipe.from_table({**PLAN, **({} if own is None else {"table": [{**TABLE, **own}]}), **changes})


def refusal(own: dict[str, Any] | None = None, **changes: Any) -> str:
    with pytest.raises(BadInput) as caught:
        plan(own, **changes)
    return str(caught.value)


FULL: dict[str, Any] = {
    **PLAN,
    "table": [
        {
            "name": "turnover by region",
            "by": ["region", "age"],
            "value": "turnover",
            "unit": "group",
            "weights": "weight",
            "hierarchies": {"region": TREE},
            "widths": {"age": [5.0, 10.0]},
            "levels": {"region": [0]},
            "also": {"region": {"coast": [["a1", "north"], ["b1", "south"]]}},
            "without_total": ["age"],
            "where": "age >= 15 and region != b1",
        },
        {"name": "people", "by": ["region"], "also": {"region": "coast"}},
        {"name": "all"},
    ],
    "tables": {
        "threshold": 3,
        "dominance": [[1, 50.0], [2, 85.0]],
        "p_percent": 15.0,
        "prior_posterior": [10.0, 40.0],
        "zeros": "unsafe",
        "weights": "sample",
        "cost": "weight",
        "fixed": [
            {"table": "people", "cell": {"region": "a1"}, "status": "published"},
            {"table": "all", "cost": 5.0},
        ],
        "changes": False,
    },
}


def test_a_recipe_of_tables_alone_is_written_as_it_was_read() -> None:
    recipe = Recipe.from_table(FULL)
    written = recipe.to_table()
    assert (written["table"], written["tables"]) == (FULL["table"], FULL["tables"])
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    assert not recipe.makes_release


def test_the_hash_of_a_recipe_has_its_tables_in_it() -> None:
    assert len({plan().sha256, plan({"where": "age > 3"}).sha256, plan(tables={"threshold": 4}).sha256}) == 3


def test_the_rules_are_those_of_the_engine() -> None:
    protection = Recipe.from_table(FULL).table_protection
    assert protection is not None
    assert protection.rules == TableRules(3, ((1, 50.0), (2, 85.0)), 15.0, (10.0, 40.0), "unsafe", "sample")
    one = plan(tables={"dominance": [2, 85]}).table_protection
    assert one is not None
    assert one.rules.dominance == ((2, 85.0),)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"naem": "a"}, 'table[0].naem: unknown key; did you mean "name"?'),
        ({"name": " "}, "table[0].name: must be text"),
        ({"by": ["regoin"]}, 'table[0].by[0]: no column "regoin"; did you mean "region"?'),
        ({"by": ["region", "region"]}, 'table[0].by[1]: "region" is listed twice'),
        ({"by": ["firm"]}, 'table[0].by[0]: "firm" is the role unit, and its values name somebody'),
        ({"by": ["turnover"]}, 'table[0].by[0]: "turnover" is continuous and has no groups; say their widths'),
        ({"value": "region"}, 'table[0].value: "region" is categorical; this needs count or continuous'),
        ({"unit": "frim"}, 'table[0].unit: no column "frim"; did you mean "firm"?'),
        ({"hierarchies": {"coast": TREE}}, 'table[0].hierarchies.coast: the table is not by "coast"'),
        ({"hierarchies": {"region": [["a1", "*"], ["a1", "*"]]}}, 'table[0].hierarchies.region: "a1" has 2 rows'),
        ({"levels": {"region": [1]}}, 'table[0].levels.region: "region" has neither a tree nor widths'),
        ({"hierarchies": {"region": TREE}, "levels": {"region": [2]}}, "table[0].levels.region: must be levels of its tree, from 0, the values, to 1"),
        ({"by": ["age"], "widths": {"age": [10]}, "levels": {"age": [0]}}, "table[0].levels.age: must be levels of its widths, from 1 to 1"),
        ({"by": ["age"], "widths": {"age": [5, 7]}}, "table[0].widths.age: each width must be a multiple"),
        ({"also": {"region": "region"}}, 'table[0].also.region: "region" is no second grouping of itself'),
        ({"also": {"region": "age"}}, 'table[0].also.region: "age" is count; this needs categorical'),
        ({"also": {"region": {"c": [["a1", "x"], ["a1", "y"]]}}}, 'table[0].also.region: "c": "a1" has 2 rows; leave one'),
        ({"also": {"region": 5}}, 'table[0].also.region: must be a variable, such as "coast"'),
        ({"where": "age >> 5"}, "table[0].where: "),
        ({"where": "agee > 5"}, "table[0].where: "),
        ({"without_total": ["age"]}, 'table[0].without_total[0]: the table is not by "age"'),
    ],
)  # fmt: skip
def test_a_wrong_table_names_its_place_and_the_fix(table: dict[str, Any], message: str) -> None:
    assert refusal(table).startswith(message)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({}, "tables: no rule says when a cell is unsafe; add one, such as threshold = 10"),
        ({"treshold": 3}, 'tables.treshold: unknown key; did you mean "threshold"?'),
        ({"threshold": 0}, "tables.threshold: 0 must be at least 1"),
        ({"dominance": [2]}, "tables.dominance: [2] must be n and k in percent, such as [2, 85]"),
        ({"dominance": [[2, 85], [1]]}, "tables.dominance: [1] must be n and k"),
        ({"dominance": [0, 85]}, "tables.dominance: must be n >= 1 and 0 < k < 100, is (0, 85)"),
        ({"dominance": [1.5, 85]}, "tables.dominance: [1.5, 85] must be n and k"),
        ({"prior_posterior": [40, 10]}, "tables.prior_posterior: must be 0 < p < q, is (40, 10)"),
        ({"zeros": "hidden"}, 'tables.zeros: "hidden" is not one of safe, unsafe'),
        ({"threshold": 3, "cost": "valeu"}, 'tables.cost: "valeu" is neither value, cells nor a variable; did you mean "value"?'),
        ({"threshold": 3, "cost": "region"}, 'tables.cost: "region" is categorical'),
        ({"threshold": 3, "fixed": [{"table": "u", "status": "safe"}]}, 'tables.fixed[0].table: there is no table "u"'),
        ({"threshold": 3, "fixed": [{"table": "t", "cell": {"coast": "x"}, "cost": 2}]}, 'tables.fixed[0].cell.coast: the table is not by "coast"'),
        ({"threshold": 3, "fixed": [{"table": "t"}]}, "tables.fixed[0]: decides nothing"),
        ({"threshold": 3, "fixed": [{"table": "t", "status": "safe", "level": 2}]}, "tables.fixed[0].level: an unsafe cell has one, this is safe"),
        ({"threshold": 3, "fixed": [{"table": "t", "factor": 3, "cost": 2}]}, "tables.fixed[0].factor: the cost is said already"),
    ],
)  # fmt: skip
def test_a_wrong_rule_names_its_place_and_the_fix(rules: dict[str, Any], message: str) -> None:
    assert refusal(tables=rules).startswith(message)


def test_rules_and_tables_need_each_other() -> None:
    assert refusal(table=[]) == ("tables: there is no table that these rules are for; add [[table]], or leave them out")
    counts = {"name": "people", "by": ["region"]}
    assert refusal(table=[counts], tables={"p_percent": 10}).startswith(
        "tables.p_percent: is a rule for sums of values, and no table has a value"
    )
    assert Recipe.from_table({"variables": VARIABLES}).table_protection is None


def test_tables_have_names_of_their_own_and_one_unit_for_one_measure() -> None:
    assert refusal(table=[TABLE, TABLE]).startswith('table[1].name: two tables are called "t"')
    other = {**TABLE, "name": "u", "unit": "group"}
    assert refusal(table=[TABLE, other]).startswith('table[1].unit: is not that of "t"')
    assert plan(table=[{**TABLE, "unit": "firm"}, {**TABLE, "name": "u"}]).tables[1].unit is None


def test_a_search_has_no_tables() -> None:
    refuse_tables(())
    with pytest.raises(BadInput, match=r"table\[0\]: a search compares plans of datasets"):
        refuse_tables(plan().tables)


def test_a_rule_that_leaves_something_open_is_a_remark() -> None:
    assert plan().warnings == ()
    assert plan(tables={"dominance": [1, 50]}).warnings[0].startswith("A rule of dominance for one unit does not see")
