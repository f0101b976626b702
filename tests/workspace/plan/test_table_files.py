"""Files that the tables of a recipe name: trees and second groupings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.plan.drafts import write_plan
from sfumato.workspace.plan.edits import parse_plan
from sfumato.workspace.plan.recipe_files import read_recipe_files

VARIABLES = {"region": {"kind": "categorical"}, "coast": {"kind": "categorical"}}


def plan(**table: Any) -> dict[str, Any]:
    own = {"name": "people", "by": ["region"], **table}
    return {"variables": VARIABLES, "table": [own], "tables": {"threshold": 3}}


def test_trees_and_groupings_are_read_from_files_beside_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "regions.hrc").write_text("a\n@a1\n@a2\nb\n@b1\n", "utf-8")
    (tmp_path / "coast.csv").write_text("a1;north\nb1;south\n", "utf-8")
    given = plan(hierarchies={"region": "regions.hrc"}, also={"region": {"coast": "coast.csv"}})
    table = Recipe.from_table(read_recipe_files(given, tmp_path)).tables[0]
    assert table.hierarchies["region"].rows == (("a1", "a", "*"), ("a2", "a", "*"), ("b1", "b", "*"))
    assert table.also["region"].rows == {"coast": (("a1", "north"), ("b1", "south"))}


def test_a_second_grouping_by_a_variable_is_no_file(tmp_path: Path) -> None:
    read = read_recipe_files(plan(also={"region": "coast"}), tmp_path)
    assert Recipe.from_table(read).tables[0].also["region"].variables == ("coast",)


def test_a_file_that_is_not_there_is_named_at_its_place(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        read_recipe_files(plan(also={"region": {"coast": "coast.csv"}}), tmp_path)
    assert caught.value.place == "table[0].also.region.coast"


def test_decided_cells_are_read_from_csv_and_from_tau_argus(tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text("region,status\na1,published\n", "utf-8-sig")
    (tmp_path / "cells.hst").write_text("a1,p\nTotal,c,5\n", "utf-8")
    in_csv = {**plan(), "tables": {"threshold": 3, "fixed": "cells.csv"}}
    wanted = {"table": "people", "cell": {"region": "a1"}, "status": "published"}
    assert read_recipe_files(in_csv, tmp_path)["tables"]["fixed"] == [wanted]
    for fixed in ("cells.hst", {"people": "cells.hst"}):
        read = read_recipe_files({**plan(), "tables": {"threshold": 3, "fixed": fixed}}, tmp_path)
        assert read["tables"]["fixed"] == [wanted, {"table": "people", "cost": 5.0}]
        protection = Recipe.from_table(read).table_protection
        assert protection is not None
        assert protection.fixed[0].status == "published"


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ("cells.csv", 'tables.fixed: "cells.csv" cannot be read'),
        ({"peple": "cells.hst"}, 'tables.fixed.peple: there is no table "peple"; did you mean "people"?'),
        ({"people": "bad.hst"}, 'tables.fixed.people, "bad.hst", line 2: "q" decides nothing'),
        ({"people": 5}, "tables.fixed.people: must be the name of a file"),
        ("bad.csv", 'tables.fixed, "bad.csv", line 2: "oops" is not one of'),
    ],
)
def test_a_wrong_file_of_decided_cells_is_named(tmp_path: Path, fixed: Any, message: str) -> None:
    (tmp_path / "bad.hst").write_text("a1,p\na2,q\n", "utf-8")
    (tmp_path / "bad.csv").write_text("region,status\na1,oops\n", "utf-8")
    with pytest.raises(BadInput) as caught:
        read_recipe_files({**plan(), "tables": {"threshold": 3, "fixed": fixed}}, tmp_path)
    assert str(caught.value).startswith(message)


def test_a_plan_with_tables_can_be_run() -> None:
    view = parse_plan(write_plan(plan()))
    assert (view.problem, bool(view.sha256), view.table["table"][0]["name"]) == ("", True, "people")
