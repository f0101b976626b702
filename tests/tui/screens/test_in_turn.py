"""Keys that come without a pause: each acts on the plan as the keys before it have made it."""

from __future__ import annotations

import asyncio
import time
import tomllib

import pytest
from textual import events

from sfumato.tui.parts.form import Form
from sfumato.tui.plan.plan import PlanTab, RunPlanDialog
from sfumato.workspace.plan import edits
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow


def stored(directory):
    with Workspace.open(directory, read_only=True) as reader:
        return tomllib.loads(find_draft(reader, 1).toml)


@pytest.fixture
def slow_edits(monkeypatch):
    """Edits that take as long as those of a long plan on a busy machine."""
    for name in ("remove_step", "move_step"):
        change = getattr(edits, name)

        def slowly(*arguments, change=change):
            time.sleep(0.3)
            return change(*arguments)

        monkeypatch.setattr(edits, name, slowly)


async def type_ahead(seat, *keys, until):
    """Send keys at once, as a paste of somebody who knows them by heart, and wait for what they lead to."""
    for key in keys:
        seat.app.post_message(events.Key(key, key if len(key) == 1 else None))
    for _ in range(400):
        await asyncio.sleep(0.05)
        if until():
            return
    raise AssertionError(seat.text)


def plan_of(seat):
    return seat.app.screen.query_one(PlanTab)


async def test_a_step_that_is_taken_out_is_not_in_the_plan_that_is_run_next(sit, built_data, slow_edits, monkeypatch):
    run = []
    monkeypatch.setattr("sfumato.tui.session.jobs.run_plan", lambda _, draft: run.append(tomllib.loads(draft.toml)))
    before = stored(built_data)
    async with sit(built_data, "G", tab="plan") as seat:
        assert plan_of(seat).current_step.section == "threshold"
        await type_ahead(seat, "X", "R", until=lambda: "Run this plan" in seat.text)
        assert "2 thresholds" in seat.text.replace("\n", " ")
        await type_ahead(seat, "y", until=lambda: run)
    assert len(before["threshold"]) - 1 == len(run[0]["threshold"]) == 2
    assert run[0] == stored(built_data) != before


async def test_two_edits_in_one_breath_are_two_edits_and_both_can_be_taken_back(sit, built_data, slow_edits):
    before = stored(built_data)
    async with sit(built_data, tab="plan") as seat:
        await seat.press("G")
        section = plan_of(seat).current_step.section
        number = len(before[section])
        assert number >= 2
        await type_ahead(seat, "X", "X", until=lambda: len(stored(built_data).get(section, [])) == number - 2)
        await type_ahead(seat, "u", "u", until=lambda: stored(built_data) == before)


async def test_an_edit_that_is_taken_back_at_once_is_taken_back(sit, built_data, slow_edits):
    before = stored(built_data)
    async with sit(built_data, "j", "j", tab="plan") as seat:
        await type_ahead(
            seat, "X", "u", until=lambda: plan_of(seat)._history.future != () and not plan_of(seat)._saving
        )
        assert stored(built_data) == before


async def test_a_form_that_is_opened_after_an_edit_is_that_of_the_step_now_under_the_cursor(
    sit, built_data, slow_edits
):
    before = stored(built_data)
    async with sit(built_data, "j", "j", tab="plan") as seat:
        here = plan_of(seat).current_step
        following = before[here.section][here.index + 1]["method"]
        await type_ahead(seat, "X", "enter", until=lambda: f"({following})" in seat.text)
        assert isinstance(seat.app.screen, Form)


async def test_an_edit_that_fails_lets_the_next_key_act(sit, built_data, monkeypatch):
    from sfumato.engine.errors import BadInput

    def refuse_removal(*_):
        time.sleep(0.2)
        raise BadInput("measure[0]", "cannot be taken out")

    monkeypatch.setattr(edits, "remove_step", refuse_removal)
    before = stored(built_data)
    async with sit(built_data, "j", "j", tab="plan") as seat:
        await type_ahead(seat, "X", "R", until=lambda: "Run this plan" in seat.text and len(seat.app.notices) > 1)
        assert any("cannot be taken out" in said for said in seat.app.notices)
    assert stored(built_data) == before


async def test_what_was_typed_into_the_text_is_run_and_not_what_stood_there(sit, built_data):
    async with sit(built_data, "t", tab="plan") as seat:
        text = plan_of(seat).query_one("#plan-text")
        changed = text.text.replace("m = 3", "m = 5")
        assert changed != text.text
        text.load_text(changed)
        # the plan says it too
        await type_ahead(
            seat, "escape", "R", until=lambda: isinstance(seat.app.screen, RunPlanDialog) and "5 datasets" in seat.text
        )
        assert isinstance(seat.app.screen, RunPlanDialog)
