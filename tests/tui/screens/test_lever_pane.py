"""Levers of a run on its page: tried beside the app while one reads, and gone with what they left when one leaves."""

import os
import subprocess
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.wording import RecordCount
from sfumato.tui.app.app import SfumatoApp
from sfumato.tui.findings.lever_dialogs import FindingExplanation
from sfumato.tui.findings.lever_pane import COST_TRIED, EFFECT_TRIED, EFFECT_UNKNOWN, LeverList, LeverPane
from sfumato.tui.findings.levers import PlanChange
from sfumato.tui.parts.verdict_board import VerdictBoard
from sfumato.workspace.gate.answer import ReleaseAnswer
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.service.lever_trials import FOLDER, try_recipe
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace

WIDE = (160, 50)


def plan_of(directory):
    with Workspace.open(directory, read_only=True) as workspace:
        return find_draft(workspace, 1).toml


@pytest.fixture
def alone(monkeypatch):
    """An app that has its process to itself: only such a one tries levers."""
    monkeypatch.setattr(SfumatoApp, "owns_process", True)


def children_of_this_process():
    """Return the processes that this one has started and that compute something for it."""
    # -ww: with COLUMNS set, as in some terminals, ps would cut the command before the name that is looked for.
    listed = subprocess.check_output(["ps", "-ww", "-o", "pid=,args=", "--ppid", str(os.getpid())], text=True)
    return [line for line in listed.splitlines() if "sfumato.workspace.jobs.processes" in line]


def lever_list(seat):
    return seat.app.screen.query_one(LeverPane).query_one(LeverList)


def prompts(seat):
    return [str(option.prompt) for option in lever_list(seat).options]


@pytest.mark.slow
async def test_levers_are_tried_while_one_reads_and_say_what_they_do(sit, built_data, alone):
    async with sit(built_data, tab="verdicts", size=WIDE) as seat:
        await seat.until(lambda: lever_list(seat).sample_text, 120)
        await seat.until(lambda: not any("tr" in text.split("\n")[-1][:6] for text in prompts(seat)), 300)
        shown = prompts(seat)
        assert all("->" in text or "not tried" in text for text in shown)
        assert "Estimates from trials on " in seat.text
    assert not children_of_this_process()
    assert not (built_data / FOLDER).exists()


@pytest.mark.slow
async def test_enter_on_a_lever_and_a_key_that_runs_it_lead_to_the_new_run(sit, built_data, no_worker):
    async with sit(built_data, tab="verdicts", size=WIDE) as seat:
        await seat.until(lambda: seat.app.screen.query_one(LeverPane).has_class("found"))
        before = plan_of(built_data)
        while seat.app.focused is not lever_list(seat):
            await seat.press("tab")
        await seat.press("j")
        assert lever_list(seat).highlighted == 1
        await seat.press("k")
        assert lever_list(seat).highlighted == 0
        await seat.press("enter")
        await seat.until(lambda: isinstance(seat.app.screen, PlanChange))
        assert "+ " in seat.text
        await seat.press("R")
        await seat.until(lambda: "Run 5 started" in " ".join(seat.app.notices))
        assert plan_of(built_data) != before
        with Workspace.open(built_data, read_only=True) as workspace:
            assert find_run(workspace, 5).recipe.sha256 == Recipe.from_toml(plan_of(built_data)).sha256
        assert "run 5" in seat.text


@pytest.mark.slow
async def test_three_keys_lead_from_a_finished_run_to_the_run_of_a_lever_in_any_terminal(
    sit, built_data, no_worker, size
):
    async with sit(built_data, tab="verdicts", size=size) as seat:
        board, pane = seat.app.screen.query_one(VerdictBoard), seat.app.screen.query_one(LeverPane)
        await seat.until(lambda: board.chosen_finding is not None and lever_list(seat).found is not None)
        assert pane.levers_of_check(board.chosen_finding.check)[1]
        keys = ["enter", "enter", "R"]
        await seat.press(keys[0])
        await seat.until(lambda: isinstance(seat.app.screen, FindingExplanation))
        assert "How to fix it" in seat.text
        await seat.press(keys[1])
        await seat.until(lambda: isinstance(seat.app.screen, PlanChange))
        await seat.press(keys[2])
        await seat.until(lambda: "Run 5 started" in " ".join(seat.app.notices))
        with Workspace.open(built_data, read_only=True) as workspace:
            assert find_run(workspace, 5).recipe.sha256 != find_run(workspace, 1).recipe.sha256
        assert "run 5" in seat.text


@pytest.mark.slow
@pytest.mark.parametrize("leave", ["another place", "the app"])
async def test_a_trial_ends_when_one_leaves_and_nothing_of_it_is_left(sit, built_data, monkeypatch, leave):
    monkeypatch.setattr("sfumato.tui.session.lever_memory._make_trial", make_long_trial)

    async def until(done):
        """Wait without waiting for the trial, as ``Seat.until`` would."""
        end = time.monotonic() + 60
        while not done():
            assert time.monotonic() < end, seat.text
            await seat.pilot.pause(0.05)

    async with sit(built_data, tab="verdicts", size=WIDE) as seat:
        await seat.until(lambda: lever_list(seat).found is not None)
        seat.app.owns_process = True
        lever_list(seat).try_next()
        await until(lambda: children_of_this_process() and (built_data / FOLDER).exists())
        assert any("testing this change …" in text for text in prompts(seat))
        if leave == "another place":
            await seat.pilot.press("2")
            await until(lambda: not children_of_this_process() and not (built_data / FOLDER).exists())
            await seat.pilot.press("4")  # who comes back finds them tried again
            await until(children_of_this_process)
    end = time.monotonic() + 30
    while children_of_this_process() or (built_data / FOLDER).exists():
        assert time.monotonic() < end
        time.sleep(0.05)


def make_long_trial(directory, run_id, toml, measures, call):
    """A trial that takes longer than anybody waits."""
    return try_recipe(directory, run_id, toml, measures, lambda *_: call(time.sleep, 600, what="a trial"))


def test_what_could_not_be_tried_is_said_once_below_the_changes():
    from sfumato.tui.findings.lever_pane import UNTRIED, LeverList
    from sfumato.workspace.service.run_levers import LeverAim, LeverEffect, RunLever

    shown = LeverList()
    shown._levers = [
        RunLever(LeverAim("people"), "use larger leaves", "m = 1"),
        RunLever(LeverAim("people"), "b", "m = 2"),
    ]
    failed = LeverEffect("not tried: pareto_k is 0.852; use emcee")
    shown._effects = {0: failed, 1: failed}
    assert shown.untried_text == UNTRIED
    assert shown._lever_text(0).plain == "use larger leaves", "no error of a fit stands with the change"
    shown._effects = {0: failed, 1: LeverEffect(change="2 % -> 1 %", helps=True)}
    assert shown.untried_text == "1 of them could not be tried on a sample: its effect is not known."
    assert not shown.is_proved
    shown._effects[0] = shown._effects[1]
    assert (shown.untried_text, shown.is_proved) == ("", True)


@pytest.mark.parametrize(
    ("helps", "said"),
    [
        (
            (False, False),
            "The 2 changes that can be tried alone do not help there; together, or in a whole run, they may.",
        ),
        ((True, False), "1 other change was tried and does not help."),
        ((True, True), ""),
    ],
)
def test_what_does_not_help_alone_is_not_said_to_be_useless(helps, said):
    levers = LeverList()
    levers._levers = [object() for _ in helps]
    levers._effects = {at: SimpleNamespace(helps=one, reason="", broken_limits=0) for at, one in enumerate(helps)}
    assert levers.useless_text == said


def test_the_list_is_in_the_order_in_which_the_answer_names_its_first():
    levers = LeverList()
    levers._levers = [object() for _ in range(4)]
    effects = [(True, "", 2), (False, "", 0), (True, "", 0), (False, "not tried", 0)]
    levers._effects = {
        at: SimpleNamespace(helps=helps, reason=reason, broken_limits=broken)
        for at, (helps, reason, broken) in enumerate(effects)
    }
    assert levers.shown_levers == [2, 0, 3], "what breaks no limit, then others that help, then what is not known"


@pytest.mark.slow
async def test_the_answer_says_what_is_known_of_its_change_before_a_trial_has_ended(sit, built_data):
    async with sit(built_data, tab="verdicts", size=WIDE) as seat:
        pane = seat.app.screen.query_one(LeverPane)
        await seat.until(lambda: pane.has_class("found"))
        told = ReleaseAnswer("no", "public", "", "", 9, RecordCount(20, "people"), change="Change it.")
        assert pane.change_text(told) == f"Change it. {EFFECT_UNKNOWN}", "nothing is tried in this process"
        assert pane.change_text(replace(told, change_has_effect=True)) == "Change it."
        seat.app.owns_process = True
        assert pane.change_text(told) == f"Change it. {EFFECT_TRIED}"
        assert pane.change_text(replace(told, change_has_effect=True)) == f"Change it. {COST_TRIED}"
        seat.app.owns_process = False
