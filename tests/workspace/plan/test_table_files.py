"""Files that the tables of a recipe name: trees and second groupings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.recipe import Recipe
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
