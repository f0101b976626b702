"""The rules of a plan in the app: counted, found, taken over, written and taken out, each an edit that u takes back."""

import tomllib

import numpy as np
import pandas as pd
import pytest

from sfumato.tui.plan.rules import RulesDialog
from sfumato.workspace.plan.drafts import find_draft, save_draft
from sfumato.workspace.plan.edits import replace_sections
from sfumato.workspace.service.importing import import_file
from sfumato.workspace.store.workspace import Workspace

RULES = {"few": "visits <= 3", "sure": "visits >= 0"}


def stored(directory):
    with Workspace.open(directory, read_only=True) as reader:
        return tomllib.loads(find_draft(reader, 1).toml).get("constraints", {})


@pytest.fixture
def ruled(built_data):
    """A plan with a rule that records break, and one that they keep to."""
    with Workspace.open(built_data) as workspace:
        draft = find_draft(workspace, 1)
        save_draft(workspace, draft.with_text(replace_sections(draft.toml, {"constraints": RULES})))
    return built_data


@pytest.mark.slow
async def test_rules_are_counted_and_one_is_taken_out_and_brought_back(sit, ruled, size):
    async with sit(ruled, "act:constraints", size=size, tab="plan") as seat:
        assert isinstance(seat.app.screen, RulesDialog)
        assert "1 of 2 rules broken" in seat.text
        assert any("few" in line and "violations" in line for line in seat.text.splitlines())
        await seat.press("X")
        assert not isinstance(seat.app.screen, RulesDialog)
        assert stored(ruled) == {"sure": "visits >= 0"}
        await seat.press("u")
        assert stored(ruled) == RULES


@pytest.mark.slow
async def test_a_rule_of_ones_own_is_read_before_it_is_taken(sit, ruled):
    async with sit(ruled, "act:constraints", "a", tab="plan") as seat:
        await seat.press(*"low", "down", *"visits", "less_than_sign", "equals_sign", "x", "enter")
        assert 'no column "x"' in seat.text
        await seat.press("backspace", *"90", "enter")
        assert stored(ruled) == {**RULES, "low": "visits<=90"}


@pytest.mark.slow
async def test_escape_changes_nothing(sit, ruled):
    async with sit(ruled, "act:constraints", "escape", tab="plan"):
        assert stored(ruled) == RULES


@pytest.fixture
def imported(tmp_path):
    """A file whose records keep to a sum and an order."""
    rng = np.random.default_rng(1)
    wage, rent = rng.integers(1000, 5000, 200), rng.integers(0, 900, 200)
    pd.DataFrame({"wage": wage, "rent": rent, "income": wage + rent}).to_csv(tmp_path / "towns.csv", index=False)
    import_file(tmp_path / "workspace", str(tmp_path / "towns.csv"), "")
    return tmp_path / "workspace"


@pytest.mark.slow
async def test_marked_rules_that_the_data_keep_to_are_taken_over_as_found(sit, imported):
    async with sit(imported, "act:constraints", tab="plan") as seat:
        found = seat.app.screen._view.found
        assert [line.text for line in found][:2] == ["income = wage + rent", "wage <= income"]
        await seat.press("space", "space", "enter")
        assert stored(imported) == {line.name: {"holds": line.text, "source": "data"} for line in found[:2]}
        assert any("2 rules added (u undoes)" in str(notice) for notice in seat.app.notices)


@pytest.mark.slow
async def test_what_becomes_of_records_that_break_a_rule_stands_in_the_form_of_the_release(sit, ruled):
    async with sit(ruled, "g", "enter", tab="plan", size=(100, 40)) as seat:
        assert "Data and release" in seat.text
        await seat.press(*["down"] * 11, *"200", "down", "right", "enter")
        with Workspace.open(ruled, read_only=True) as reader:
            release = tomllib.loads(find_draft(reader, 1).toml)["release"]
        assert (release["redraws"], release["unmet"]) == (200, "keep")
        assert "redraws = 200" in await seat.press("t")
        await seat.press("escape", "enter", *["down"] * 11, "ctrl+u", *"-1")
        assert "-1 must be at least 0" in seat.text


@pytest.mark.slow
async def test_a_plan_without_rules_is_not_asked_about_them_and_keeps_what_its_text_says(sit, built_data):
    with Workspace.open(built_data) as workspace:
        draft = find_draft(workspace, 1)
        save_draft(workspace, draft.with_text(replace_sections(draft.toml, {"release": {"m": 3, "redraws": 7}})))
    async with sit(built_data, "g", "enter", tab="plan", size=(100, 40)) as seat:
        assert "how often a record that breaks" not in seat.text
        await seat.press(*["down"] * 6, "ctrl+u", *"4", "enter")
        with Workspace.open(built_data, read_only=True) as reader:
            assert tomllib.loads(find_draft(reader, 1).toml)["release"] == {"m": 4, "redraws": 7}
