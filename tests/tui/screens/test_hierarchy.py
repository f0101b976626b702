"""Hierarchies are edited as trees: nodes joined, moved, renamed, dissolved, intervals given widths; what is saved stands in the plan."""

import tomllib

import pytest

from sfumato.tui.parts.form import Form
from sfumato.tui.plan.hierarchy import HierarchyEditor
from sfumato.workspace.plan.drafts import find_draft, save_draft
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
SMALL = (80, 24)
WORK = ("G", "act:hierarchy", *"work", "enter")
ROOT = "act:propose"
"""The next proposal, every value below the root."""


def stored(directory):
    with Workspace.open(directory, read_only=True) as reader:
        return find_draft(reader, 1).toml


def step_of(directory):
    return tomllib.loads(stored(directory))["anonymisation"][0]


def line_of(seat, name):
    return next(line for line in seat.text.splitlines() if name in line)


async def test_a_tree_shows_its_records_and_hides_few_of_them(sit, anonymising, size):
    async with sit(anonymising, *WORK, size=size) as seat:
        assert isinstance(seat.app.screen, HierarchyEditor)
        assert "level 1 is released" in seat.text
        assert line_of(seat, "Private").split() == ["Private", "1", "60", "✓"]
        assert "<10" in line_of(seat, "Never")
        assert "rare is learnt from the records" in seat.text.replace("\n", "").replace("  ", " ")


async def test_no_number_gives_a_hidden_one_away(sit, anonymising, write_office_policy):
    """15 + 15 + 60 of 100: where one value alone has few records, the next smallest beside it is hidden too."""
    with Workspace.open(anonymising) as workspace:
        draft = find_draft(workspace, 1)
        tree = 'hierarchies = { work = [["Private", "*"], ["State-gov", "*"], ["Local-gov", "*"], ["Never", "Never"], ["Federal-gov", "*"]] }'
        tree = tree.replace('["Never", "Never"]', '["Never", "*"]')
        save_draft(workspace, draft.with_text(draft.toml + tree + "\n"))
        write_office_policy("smallest_cell = 5\n")
    async with sit(anonymising, *WORK, size=SMALL) as seat:
        assert "<5" in line_of(seat, "Never")
        assert "hidden" in line_of(seat, "Federal-gov"), "100 - 60 - 15 - 15 - 9 is 1"
        assert "as the plan says" in seat.text


async def test_marked_values_are_grouped_under_a_name_and_saved(sit, anonymising):
    """Twelve keys and the name."""
    async with sit(anonymising, *WORK, ROOT, size=SMALL) as seat:
        assert "anonymisation[0] · 1 level above" in seat.text
        await seat.press("g", "j", "j", "space", "j", "j", "space", "n")
        assert "New node over Local-gov, State-gov" in seat.text
        await seat.press(*"regional", "enter")
        assert any(line.strip().startswith("regional") for line in seat.text.splitlines())
        await seat.press("enter")
        assert not isinstance(seat.app.screen, HierarchyEditor)
        assert "The hierarchy of work is in the plan" in seat.app.notices
    rows = step_of(anonymising)["hierarchies"]["work"]
    assert sorted(row[0] for row in rows) == ["Federal-gov", "Local-gov", "Never", "Private", "State-gov"]
    assert sum(row[1] == "regional" for row in rows) == 2
    assert "# one level up" in stored(anonymising), "comments stay"


async def test_a_name_that_is_taken_is_refused_as_it_is_typed(sit, anonymising):
    async with sit(anonymising, *WORK, "G", "n", *"Private", size=SMALL) as seat:
        assert 'a node is called "Private" already' in seat.text
        await seat.press("enter")
        assert isinstance(seat.app.screen, Form)


async def test_nodes_are_moved_renamed_dissolved_and_brought_back(sit, anonymising):
    async with sit(anonymising, *WORK, size=SMALL) as seat:
        assert "other" in seat.text
        await seat.press("G", "space", "g", "j", "a")
        assert line_of(seat, " other").split()[1] == "3"
        await seat.press("g", "j", "act:rename", "end", "ctrl+u", *"rest", "enter")
        assert line_of(seat, " rest").split()[1] == "3"
        await seat.press("X")
        assert " rest" not in seat.text
        await seat.press("u", "u", "u")
        assert line_of(seat, " other").split()[1] == "2"


async def test_what_cannot_be_is_said_and_changes_nothing(sit, anonymising):
    async with sit(anonymising, *WORK, size=SMALL) as seat:
        await seat.press("g", "X")
        assert "the root stays" in seat.app.notices[-1]
        await seat.press("G", "act:rename")
        assert "a value keeps its name" in seat.app.notices[-1]
        await seat.press("a")
        assert "no node is marked" in seat.app.notices[-1]


async def test_the_widths_of_intervals_are_changed(sit, anonymising):
    async with sit(anonymising, "G", "act:hierarchy", *"age", "enter", size=SMALL) as seat:
        assert "[15, 20)" in seat.text
        assert "give the variable bounds" in seat.text.replace("\n", "").replace("  ", " ")
        await seat.press("act:widths", "end", "ctrl+u", *"10, 25")
        assert "not 25 after 10" in seat.text
        await seat.press("backspace", *["backspace"], *"30", "enter", "enter")
    assert step_of(anonymising)["widths"] == {"age": [10, 30]}


async def test_leaving_without_saving_asks_once_and_keeps_the_plan(sit, anonymising):
    before = stored(anonymising)
    async with sit(anonymising, *WORK, ROOT, "q", size=SMALL) as seat:
        assert isinstance(seat.app.screen, HierarchyEditor)
        assert "Not saved yet" in seat.app.notices[-1]
        await seat.press("q")
        assert not isinstance(seat.app.screen, HierarchyEditor)
    assert stored(anonymising) == before


async def test_a_value_that_the_tree_lacks_is_told_of(sit, anonymising):
    with Workspace.open(anonymising) as workspace:
        draft = find_draft(workspace, 1)
        save_draft(workspace, draft.with_text(draft.toml + 'hierarchies = { work = [["Private", "*"], ["x", "*"]] }\n'))
    async with sit(anonymising, *WORK, size=(160, 50)) as seat:
        assert "4 values of the data not in the tree" in seat.text


async def test_a_plan_without_such_a_step_says_what_to_do(sit, built_data):
    async with sit(built_data, "act:hierarchy", size=SMALL, tab="plan") as seat:
        assert "No step of the plan takes a hierarchy" in seat.app.notices[-1]


async def test_it_opens_from_the_variable_too_and_the_saved_tree_runs(sit, anonymising, no_worker):
    async with sit(anonymising, "1", "j", "act:hierarchy", size=SMALL) as seat:
        assert isinstance(seat.app.screen, HierarchyEditor)
        await seat.press("enter")
    assert set(step_of(anonymising)["hierarchies"]) == {"work"}
    from sfumato.workspace.service.prepare import prepare_plan

    with Workspace.open(anonymising) as workspace:
        draft = find_draft(workspace, 1)
        assert prepare_plan(workspace, draft).recipe.anonymisation
