"""The recipes that ship: valid, with companions that exist, and with figures that all find a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.published import RunFigures, source_tables
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.recipes import find_recipe, shipped_recipes
from sfumato.workspace.service.prepare import PreparedRun, prepare_companion_runs, prepare_run

SMALL = ["data.sample=400", "release.m=2"]


@pytest.mark.parametrize("name", [recipe.name for recipe in shipped_recipes()])
def test_a_shipped_recipe_is_valid_and_comes_back_the_same(name: str) -> None:
    recipe = Recipe.from_table(find_recipe(name).table)
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    assert recipe.warnings == ()
    assert all(find_recipe(other).name == other for other in recipe.companions)


def test_the_airbnb_recipes_quote_the_paper_s_tables() -> None:
    quoted = {
        name: Counter(figure.source for figure in Recipe.from_table(find_recipe(name).table).published)
        for name in ("airbnb", "airbnb-cart")
    }
    tables = {2: 6, 3: 6, 4: 8, 5: 8, 6: 32, 7: 6, 8: 6, 9: 8}
    assert quoted["airbnb"] == {f"Guo & Hu, Table {number}": figures for number, figures in tables.items()}
    assert quoted["airbnb-cart"] == {"Guo & Hu, Table 7": 6, "Guo & Hu, Table 8": 6, "Guo & Hu, Table 9": 8}


@pytest.fixture
def airbnb(public_data: Callable[[str], Path]) -> list[PreparedRun]:
    """The recipe and its companion on few listings."""
    found = find_recipe("airbnb")
    main = prepare_run(found, str(public_data("AB_NYC_2019.csv")), None, SMALL, key=PUBLIC)
    return [main, *prepare_companion_runs(main, found, SMALL)]


@pytest.mark.slow
def test_every_figure_of_the_paper_finds_its_row(airbnb: list[PreparedRun]) -> None:
    main, cart = airbnb
    assert cart.data is main.data
    assert (cart.recipe.m, cart.recipe.data) == (2, main.recipe.data)
    runs = [
        RunFigures(one.recipe.label, one.recipe.published, execute_run(one.recipe, one.data, key=PUBLIC).rows)
        for one in airbnb
    ]
    tables = source_tables(runs)
    assert [table.source for table in tables] == [f"Guo & Hu, Table {number}" for number in range(2, 10)]
    assert {table.columns for table in tables} == {("confidential", "Bayesian", "CART")}
    assert not [line for table in tables for line in table.lines if line.note == "the run has no such row"]
    eighth = next(table for table in tables if table.source.endswith("8"))
    assert [[cell.published for cell in line.cells] for line in eighth.lines] == [
        [636.40, None, None], [657.53, None, None], [816.55, None, None],
        [None, 126.07, 238.53], [None, 146.44, 264.46], [None, 291.73, 433.51],
    ]  # fmt: skip
    off = [replace(one, params={"radius": {"price": "6%"}}) for one in runs[0].published if one.params]
    lost = source_tables([replace(runs[0], published=off)])
    assert {line.note for table in lost for line in table.lines} == {"the run has no such row"}
