"""A step that makes several variables, by keys: its targets, its price before it runs, the budget that refuses it."""

from __future__ import annotations

import tomllib

import pytest
import tomli_w

from sfumato.engine.data.schema import Kind, Variable
from sfumato.tui.data.variable_forms import variable_fields
from sfumato.tui.parts.fields import parse_value
from sfumato.tui.parts.form import Form
from sfumato.workspace.plan.drafts import find_draft, save_draft
from sfumato.workspace.service.prepare import cost_notice
from sfumato.workspace.store.workspace import Workspace

STEP = {
    "method": "perturbed_gibbs", "target": ["region", "visits", "income"], "epsilon": 0.5, "reset": True,
    "bins": {"visits": "at 1, 3, 6", "income": "5 equal width"},
}  # fmt: skip
GIVEN = {"region": {"levels": ["north", "south"]}, "visits": {"bounds": [0, 500]}, "income": {"bounds": [0, 100_000]}}
pytestmark = pytest.mark.slow


def stored(directory):
    with Workspace.open(directory, read_only=True) as reader:
        return tomllib.loads(find_draft(reader, 1).toml)


def draft_with(draft, **sections):
    """A draft with these sections; what measures and judges is left out, numbers have bounds."""
    table = tomllib.loads(draft.toml)
    kept = {
        key: part
        for key, part in table.items()
        if key not in ("synthesis", "measure", "study", "threshold", "published")
    }
    variables = {name: {**own, **GIVEN.get(name, {})} for name, own in table["variables"].items()}
    return draft.with_text(tomli_w.dumps({**kept, "variables": variables, **sections}))


def plan_with(directory, **sections):
    with Workspace.open(directory) as workspace:
        save_draft(workspace, draft_with(find_draft(workspace, 1), **sections))


def words_of(seat):
    """What the screen says, without frames; of a dialog with a frame what stands in it."""
    lines = [line.split("│")[1] if line.count("│") == 2 else line for line in seat.text.splitlines()]
    return " ".join(" ".join(lines).replace("│", " ").split())


async def test_targets_of_a_step_are_given_and_taken_away_by_keys(sit, built_data):
    plan_with(built_data, release={"m": 1, "seed": 7})
    async with sit(built_data, "a", "slash", *"ed_g", "enter", size=(80, 24), tab="plan") as seat:
        assert 'such as target = ["age", "sex"]' in words_of(seat)
        await seat.press(*"region, visits", "tab", *"1", "enter")
        assert not isinstance(seat.app.screen, Form)
        assert stored(built_data)["synthesis"] == [
            {"method": "perturbed_gibbs", "target": ["region", "visits"], "epsilon": 1}
        ]
        await seat.press("enter", "end", *["backspace"] * 8, "enter")
    assert stored(built_data)["synthesis"][0]["target"] == ["region"]


async def test_the_price_is_told_before_the_run_and_the_budget_stands_in_a_form(sit, private_data):
    plan_with(private_data, synthesis=[STEP], release={"m": 1, "seed": 7})
    async with sit(private_data, "R", size=(80, 24), tab="plan") as seat:
        assert "1 dataset. No epsilon can be told: the proof does not cover that as many" in words_of(seat)
        await seat.press("n", "g", "enter", *["tab"] * 8, *"40", "tab", *"30", "enter")
        assert (stored(private_data)["release"]["records"], stored(private_data)["release"]["epsilon"]) == (40, 30)
        await seat.press("R")
        assert "1 dataset. It costs an epsilon of 2, of a budget of 30." in words_of(seat)


async def test_the_budget_refuses_before_anybody_is_asked(sit, private_data):
    plan_with(private_data, synthesis=[STEP], release={"m": 5, "seed": 7, "records": 100, "epsilon": 10})
    async with sit(private_data, "R", tab="plan") as seat:
        assert "the run would cost 25, the budget is 10" in seat.app.notices[-1]
        assert "Run this plan?" not in seat.text


def test_what_a_plan_costs_is_told_of_the_records_that_it_would_run_on(private_data):
    release = {"m": 2, "seed": 7, "records": 100}
    with Workspace.open(private_data) as workspace:
        draft = find_draft(workspace, 1)
        assert cost_notice(workspace, draft) == "", "its models keep no account"
        private = draft_with(draft, synthesis=[STEP], release=release)
        assert cost_notice(workspace, private) == "It costs an epsilon of 10."
        (private_data / "policy.toml").write_text("[privacy]\nepsilon = 20\n", "utf-8")
        assert cost_notice(workspace, private) == "It costs an epsilon of 10, of a budget of 20 (policy.toml)."
        larger = draft_with(draft, synthesis=[STEP], release={**release, "epsilon": 30})
        told = "(policy.toml; the recipe names 30, and the smaller budget holds)."
        assert cost_notice(workspace, larger).endswith(told)
        (private_data / "policy.toml").unlink()
        diverse = {**STEP, "epsilon": None, "reset": False, "privacy": "l_diversity", "l": 1.5}
        step = {name: value for name, value in diverse.items() if value is not None}
        told = cost_notice(workspace, draft_with(draft, synthesis=[step], release=release))
        assert told == "No epsilon can be told: l-diversity is no differential privacy: it has no epsilon."
        other = draft_with(draft, synthesis=[STEP], release=release, data={"file": "another.csv"})
        assert cost_notice(workspace, other) == "", "nothing is known of another file"


def test_with_a_public_key_no_plan_costs_an_epsilon(built_data):
    release = {"m": 2, "seed": 7, "records": 100, "epsilon": 20}
    with Workspace.open(built_data) as workspace:
        told = cost_notice(workspace, draft_with(find_draft(workspace, 1), synthesis=[STEP], release=release))
    assert told.startswith("No epsilon can be told: the random numbers follow from a public key")


def test_the_form_of_a_variable_declares_that_it_may_be_missing():
    form = variable_fields(Variable("visits", Kind.COUNT, may_be_missing=True))
    (field,) = (one for one in form if one.name == "may_be_missing")
    assert (field.value, parse_value("true", field.kind, field.name)) == (True, True)
    assert {one.name for one in form} >= set(Variable("visits", Kind.COUNT, may_be_missing=True).to_table())
