"""Protected tables as grids: order and indent of labels, letters, why a cell is hidden, and what readers compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from protected_towns import COUNTS, RECIPE, people_of_towns, run_of_tables

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.declared_tables import protect_recipe_tables
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.library import synthesise
from sfumato.workspace.reporting.table_grids import HIDDEN_LETTERS, LETTERS, TableGrid
from sfumato.workspace.reporting.table_texts import (
    grid_object,
    grid_tables,
    legend_text,
    open_cell_phrases,
    table_list,
    tables_sentence,
)
from sfumato.workspace.reporting.tables import format_table
from sfumato.workspace.service.table_decisions import try_cell_decision
from sfumato.workspace.store.protected_tables import StoredTables
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.run_grids import RunGrids, read_run_grids

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("towns") / "workspace"
    assert run_of_tables(found) == 1
    return found


@pytest.fixture(scope="module")
def grids(directory: Path) -> RunGrids:
    with Workspace.open(directory, read_only=True) as workspace:
        found = read_run_grids(workspace, 1)
    assert found is not None
    return found


def grids_of(table: dict[str, Any], **rules: Any) -> RunGrids:
    """The tables of other recipes, without a workspace."""
    recipe = Recipe.from_table(
        {
            "variables": {
                "region": {"kind": "categorical"},
                "trade": {"kind": "categorical"},
                "sex": {"kind": "binary"},
                "pay": {"kind": "continuous"},
            },
            "table": [{"name": "t", **table}],
            "tables": rules,
        }
    )
    data = conform_to_schema(people_of_towns(), recipe.schema, MissingPolicy.KEEP)
    assert recipe.table_protection is not None
    found = protect_recipe_tables(data, recipe.tables, recipe.table_protection)
    return RunGrids.from_stored(1, recipe, StoredTables.from_protected(found))


def place_of(grid: TableGrid, **labels: str) -> tuple[int, int]:
    """Row and column of a cell."""
    wanted = {name: labels.get(name, "") for name in grid.variables}
    return next(
        (row, column)
        for row in range(len(grid.rows))
        for column in range(len(grid.columns))
        if grid.keys_at(row, column) == wanted
    )


def test_rows_are_the_first_variables_and_columns_the_last(grids: RunGrids) -> None:
    people, pay, sexes = grids.grids
    assert (people.row_names, people.column_name, people.cells.shape) == (("region",), "trade", (5, 4))
    assert [label.text for label in people.columns] == ["total", "food", "iron", "wool"]
    assert [row[0].text for row in people.rows] == ["total", "coast", "inland", "north", "south"]
    assert (pay.row_names, pay.column_name, [label.text for label in pay.columns]) == (("trade",), "", ["pay"])
    assert sexes.columns[0].text == "number of records"
    for region, own in COUNTS.items():
        for trade, n in own.items():
            assert people.values[place_of(people, region=region, trade=trade)] == n


def test_nodes_stand_above_what_lies_below_them(grids: RunGrids) -> None:
    labels = [row[0].indented for row in grids.grids[1].rows]
    assert labels == ["total", "soft", "  food", "  wool", "hard", "  iron"]


def test_intervals_nest_and_second_groupings_are_named() -> None:
    found = grids_of({"by": ["pay", "trade"], "widths": {"pay": [2, 10]}, "also": {"trade": "sex"}}, threshold=3)
    (grid,) = found.grids
    rows = [row[0].indented for row in grid.rows]
    assert rows[:4] == ["total", "[10, 20)", "  [10, 12)", "  [12, 14)"]
    assert [label.text for label in grid.columns] == ["total", "food", "iron", "wool", "sex: f", "sex: m"]
    assert grid.keys_at(0, 4) == {"pay": "", "trade": "f"}


def test_letters_say_what_becomes_of_each_cell(grids: RunGrids) -> None:
    people = grids.grids[0]
    assert people.letters[place_of(people, region="north", trade="iron")] == "P"
    assert people.letters[place_of(people, region="coast", trade="wool")] == "Z"
    assert people.letters[place_of(people)] == "."
    assert people.count_letters("P") == 1
    assert people.count_letters("S") == 3
    assert set(people.letters.ravel()) <= set(LETTERS)
    hidden = np.isin(people.letters, HIDDEN_LETTERS)
    assert (hidden == ~people.published).all()


def test_hidden_values_stand_in_no_text_that_is_not_revealed(grids: RunGrids) -> None:
    people = grids.grids[0]
    place = place_of(people, region="north", trade="iron")
    assert people.cell_text(*place, revealed=False) == "P"
    assert people.cell_text(*place, revealed=True) == "2 P"
    assert people.released_text(*place) == "x"
    assert people.released_text(*place_of(people, region="coast", trade="wool")) == "0"
    assert {one["value"] for one in grid_object(people, revealed=False)["cells"] if one["status"] == "hidden"} == {None}
    explained = grids.explain_place(people, *place)
    shown = " ".join(text for _, text in explained.facts(revealed=False))
    assert "2" not in shown.replace("12", "").replace("22", "").split()
    assert "hidden; v shows it" in shown
    assert "fewer than 5 records" in shown


def test_an_explanation_has_reasons_readers_and_a_certificate(grids: RunGrids) -> None:
    people = grids.grids[0]
    explained = grids.explain_place(people, *place_of(people, region="north", trade="iron"))
    facts = dict(explained.facts(revealed=True))
    assert facts["why"] == "2 records; a printed cell has 5 or more"
    # North prints 35 of which 20 are food: iron and wool are 15 together, and south's are 20.
    assert facts["any reader"] == "places it from 0 to 11"
    assert facts["one who uses zeros"] == "places it from 1 to 10"
    assert facts["what else fits"].startswith("2 and ")
    secondary = grids.explain_place(people, *place_of(people, region="south", trade="wool"))
    assert secondary.reasons == ("it is safe in itself; printed, it would give an unsafe cell away",)


def test_a_certificate_adds_up_with_the_printed_cells(grids: RunGrids) -> None:
    people = grids.grids[0]
    for trade in ("iron", "wool"):
        place = place_of(people, region="north", trade=trade)
        explained = grids.explain_place(people, *place)
        assert explained.certificate is not None
        assert explained.certificate != people.values[place]
        for interval in explained.intervals:
            assert interval.low <= people.values[place] <= interval.high
            assert interval.low <= explained.certificate <= interval.high


def test_dominance_names_the_share_only_where_it_is_revealed(grids: RunGrids) -> None:
    pay = grids.grids[1]
    explained = grids.explain_place(pay, *place_of(pay, trade="iron"))
    assert explained.reasons[0] == "the largest contributes more than 60 %"
    assert explained.numbers[0] == "the largest contributes 89.7 %, more than 60 %"


def test_a_concentration_rule_says_how_close_an_estimate_is() -> None:
    found = grids_of({"by": ["trade"], "value": "pay"}, p_percent=15.0)
    (grid,) = found.grids
    explained = found.explain_place(grid, *place_of(grid, trade="iron"))
    assert explained.reasons == ("the second largest could estimate the largest too closely",)
    assert explained.numbers == ("the second largest could estimate the largest to within 11.2 %, less than 15 %",)


def test_what_follows_is_marked_and_its_value_stays_hidden() -> None:
    # The recipe prints what would have to be hidden: the unsafe cell follows.
    fixed = [
        {"table": "t", "cell": {"region": region, "trade": trade}, "status": "published"}
        for region in COUNTS for trade in ("food", "iron", "wool") if (region, trade) != ("north", "iron")
    ]  # fmt: skip
    fixed += [{"table": "t", "cell": {"region": region}, "status": "published"} for region in COUNTS]
    fixed += [{"table": "t", "cell": {"trade": trade}, "status": "published"} for trade in ("food", "iron", "wool")]
    found = grids_of({"by": ["region", "trade"]}, threshold=5, fixed=fixed)
    (grid,) = found.grids
    place = place_of(grid, region="north", trade="iron")
    assert grid.letters[place] == "!"
    explained = found.explain_place(grid, *place)
    assert dict(explained.facts(revealed=False))["any reader"] == "knows it exactly"
    assert dict(explained.facts(revealed=True))["any reader"] == "knows that it is 2"
    assert explained.certificate is None
    assert grid.letters[place_of(grid, region="north", trade="food")] == "F"
    assert "follows exactly" in legend_text([grid])
    assert open_cell_phrases(found.grids) == ["1 unsafe cell follows exactly"]
    assert tables_sentence(found.grids) == "1 table, 20 cells, 1 hidden; 1 unsafe cell follows exactly"


def test_what_was_not_examined_is_never_protected() -> None:
    found = grids_of({"by": ["region", "trade"]}, threshold=5)
    stored = found.audited
    assert isinstance(stored, StoredTables)
    from dataclasses import replace

    from sfumato.workspace.reporting.table_grids import cell_letters

    letters = cell_letters(replace(stored, are_contributors_examined=False))
    assert "P" not in letters
    assert (letters == "?").sum() == 1


def test_the_next_hidden_cell_goes_round(grids: RunGrids) -> None:
    people = grids.grids[0]
    first = people.next_place(0, 0, HIDDEN_LETTERS)
    assert first is not None
    places = [first]
    while (following := people.next_place(*places[-1], HIDDEN_LETTERS)) != first:
        assert following is not None
        places.append(following)
    assert len(places) == 4
    assert people.next_place(*first, HIDDEN_LETTERS, -1) == places[-1]
    assert grids.grids[2].next_place(0, 0, HIDDEN_LETTERS) is None


def test_a_wide_table_is_printed_in_blocks_that_fit(grids: RunGrids) -> None:
    people = grids.grids[0]
    blocks = grid_tables(people, 26, revealed=False)
    assert len(blocks) == 2
    texts = [format_table(block, 26) for block in blocks]
    assert all(len(line) <= 26 for text in texts for line in text.splitlines()[1:])
    assert "columns 1 to 3 of 4" in texts[0]
    assert all("coast" in text for text in texts)
    assert "hidden to protect" in format_table(table_list(grids.grids), None)


def test_a_decision_is_audited_before_anything_is_run(directory: Path) -> None:
    unsafe = {"region": "north", "trade": "iron"}
    shown = try_cell_decision(directory, 1, "people", unsafe, "published")
    assert not shown.is_safe
    assert shown.sentences[0] == "This cell is unsafe (fewer than 5 records), and its value would be printed."
    assert any("fixed = " in line and "published" in line for line in shown.lines)
    swapped = try_cell_decision(directory, 1, "people", {"region": "south", "trade": "wool"}, "published")
    assert swapped.is_safe
    assert "hidden as well" in swapped.sentences[0]
    hidden = try_cell_decision(directory, 1, "people", {"region": "coast", "trade": "food"}, "hidden")
    assert hidden.is_safe
    recipe = Recipe.from_toml(hidden.changed.toml)
    assert recipe.table_protection is not None
    assert [(one.table, dict(one.cell), one.status) for one in recipe.table_protection.fixed] == [
        ("people", {"region": "coast", "trade": "food"}, "hidden")
    ]


def test_a_zero_cannot_be_decided_alone(directory: Path) -> None:
    with pytest.raises(BadInput, match="no records are here"):
        try_cell_decision(directory, 1, "people", {"region": "coast", "trade": "wool"}, "hidden")


def test_a_second_decision_of_a_cell_replaces_the_first() -> None:
    from sfumato.workspace.service.table_decisions import decide_cell

    recipe = Recipe.from_table(
        {
            "variables": {"region": {"kind": "categorical"}},
            "table": [{"name": "t", "by": ["region"]}],
            "tables": {"threshold": 3},
        }
    )
    once = decide_cell(recipe, "t", {"region": "north"}, "hidden")
    twice = decide_cell(once, "t", {"region": "north"}, "published")
    assert twice.table_protection is not None
    assert [one.status for one in twice.table_protection.fixed] == ["published"]


def test_a_text_that_names_cells_leads_to_the_place_of_the_first(tmp_path: Path) -> None:
    number = run_of_tables(tmp_path / "w")
    with Workspace.open(tmp_path / "w", read_only=True) as opened:
        found = read_run_grids(opened, number)
    assert found is not None
    grid = found.grids[0]
    for row, column in np.ndindex(*grid.cells.shape):
        cell = int(grid.cells[row, column])
        if cell < 0:
            continue
        name = found.audited.system.cell_names[cell]
        place = found.find_named_place(f"1 of 3 unsafe cells: {name}; count: sex=f; more")
        assert place is not None
        assert int(found.grids[place[0] - 1].cells[place[1], place[2]]) == cell
        left_out = found.find_named_place(f'{name}, without the records of "paid"')
        assert left_out == place, "a difference leads to the cell that has it"
    assert found.find_named_place("none of them") is None, "every unsafe cell is protected"


def test_a_decision_that_gives_away_by_whom_two_tables_differ_is_not_safe(tmp_path: Path) -> None:
    few = people_of_towns().assign(pay=lambda frame: np.where(np.arange(len(frame)) < 2, 1.0, 20.0))
    tables = [{"name": "all", "by": ["sex"]}, {"name": "paid", "by": ["sex"], "where": "pay >= 2"}]
    shown = [{"table": "paid", "cell": cell, "status": "published"} for cell in ({}, {"sex": "f"}, {"sex": "m"})]
    recipe = {**RECIPE, "table": tables, "tables": {"threshold": 5, "fixed": shown}}
    number = synthesise(few, recipe, tmp_path / "w")
    with Workspace.open(tmp_path / "w", read_only=True) as opened:
        found = read_run_grids(opened, number)
    assert found is not None
    hidden = [(grid, int(r), int(c)) for grid in found.grids for r, c in np.argwhere(~grid.published)]
    assert hidden, "one of each sex is in one table alone"
    for grid, row, column in hidden:
        tried = try_cell_decision(tmp_path / "w", number, grid.name, grid.keys_at(row, column), "published")
        said = " ".join(tried.sentences)
        assert not tried.is_safe
        assert "between tables of different records would follow: tables like these do not pass" in said
        assert "No unsafe cell follows" not in said
