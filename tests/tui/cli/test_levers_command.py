"""sfumato levers: the levers of a run as the app lists them, as text and as JSON, and a run with one of them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from prepared_tables import HOUSEHOLD_PLAN, household_survey
from prepared_workspaces import finished_workspace

from sfumato.engine.wording import RecordCount
from sfumato.tui.session.lever_lines import change_after_trials, change_as_tried, sort_by_effect
from sfumato.tui.session.lever_memory import LeverMemory
from sfumato.workspace.gate.answer import ReleaseAnswer
from sfumato.workspace.plan.change_parts import parts_of_change
from sfumato.workspace.plan.drafts import draft_of_run, find_draft, save_draft
from sfumato.workspace.reporting.findings import lead_findings
from sfumato.workspace.service import lever_trials
from sfumato.workspace.service.examination import examine_run
from sfumato.workspace.service.lever_trials import LeverTrial, TriedLimit, TriedUtility
from sfumato.workspace.service.run_levers import (
    LeverAim,
    LeverEffect,
    RunLever,
    _compare_utility,
    compare_trials,
    find_run_levers,
    finding_aims,
)
from sfumato.workspace.store.runs import RunState, find_run, list_runs
from sfumato.workspace.store.workspace import Workspace

DATA = ["--workspace", "w"]
NO_STUDY = {name: part for name, part in HOUSEHOLD_PLAN.items() if name != "study"}


@pytest.fixture
def finished(home, in_process, read_here):
    """A workspace with a run whose people can be found by the columns that it keeps."""
    return finished_workspace(home / "w", [NO_STUDY], household_survey())


def levers_of_app(directory):
    """The levers of the first page of Findings."""
    findings = lead_findings(examine_run(directory, 1).examination.findings)
    return find_run_levers(directory, 1, finding_aims(findings))


@pytest.mark.slow
def test_the_list_is_that_of_the_app_with_people_and_utility_before_and_after(sfumato, finished, capsys):
    found = levers_of_app(finished)
    assert sfumato("levers", "1", *DATA, "--json", "-") == 0
    out = capsys.readouterr()
    told = json.loads(out.out)
    assert [one["change"] for one in told["levers"]] == [one.text for one in found.levers]
    assert [one["number"] for one in told["levers"]] == list(range(1, len(found.levers) + 1))
    helping = [one for one in told["levers"] if one["helps"]]
    assert all(one["after"] < one["before"] for one in helping if one["for"]["check"] == "kept_keys")
    assert {one["utility"] for one in helping} <= {"better", "worse", "the same"}
    assert f"Trying lever 1 of {len(found.levers)}" in out.err, "progress is on standard error"
    assert sfumato("levers", "1", *DATA) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = [one["number"] for one in told["levers"] if one["helps"] or one["not_tried"]]
    assert [int(line.partition(".")[0]) for line in lines if re.match(r"\d+\. ", line)] == shown
    assert re.search(
        r"; [0-9.]+ % to [0-9.]+ % of people: better; utility [0-9.]+ to [0-9.]+, where [a-z0-9 ]+: (better|worse)",
        lines[0],
    )
    assert lines[-1] == "Next: sfumato levers 1 --apply N"
    with Workspace.open(finished, read_only=True) as workspace:
        assert len(list_runs(workspace)) == 1, "nothing is run or kept"
    assert not (finished / lever_trials.FOLDER).exists()


@pytest.mark.slow
def test_a_lever_is_applied_by_its_number_and_is_the_plan_then(sfumato, finished, capsys):
    lever = levers_of_app(finished).levers[1]
    assert sfumato("levers", "1", "--apply", "2", *DATA) in (0, 1)
    out = capsys.readouterr().out
    assert out.startswith(f"Run 2 is run 1 with a change, which is the plan of its project now: {lever.change_text}.")
    assert all(f"  {line}" in out for line in lever.lines)
    with Workspace.open(finished, read_only=True) as workspace:
        run = find_run(workspace, "2")
        assert run.state is RunState.DONE
        assert run.recipe_sha256 != find_run(workspace, "1").recipe_sha256
        assert find_draft(workspace, run.project_id).toml == lever.toml


@pytest.mark.slow
def test_a_plan_that_somebody_edited_since_stays_as_it_is(sfumato, finished, capsys):
    with Workspace.open(finished) as workspace:
        draft = draft_of_run(workspace, 1)
        edited = draft.with_text(draft.toml.replace("m = ", "m = 1"))
        save_draft(workspace, edited)
    assert sfumato("levers", "1", "--apply", "1", *DATA) in (0, 1)
    assert "the edited plan of its project is unchanged" in capsys.readouterr().out
    with Workspace.open(finished, read_only=True) as workspace:
        assert find_draft(workspace, 1).toml == edited.toml
        of_runs = [find_run(workspace, str(one)).recipe_table["release"] for one in (1, 2)]
        assert of_runs[0]["m"] == of_runs[1]["m"]


@pytest.mark.slow
def test_a_number_that_no_lever_has_changes_nothing(sfumato, finished, capsys):
    assert sfumato("levers", "1", "--apply", "99", *DATA) == 2
    assert "--apply: there is no lever 99; run 1 has " in capsys.readouterr().err
    with Workspace.open(finished, read_only=True) as workspace:
        assert len(list_runs(workspace)) == 1


@pytest.mark.slow
def test_ctrl_c_cancels_and_leaves_nothing(sfumato, finished, capsys, monkeypatch):
    def interrupt(*arguments):
        assert Path(arguments[-1]).is_dir()
        raise KeyboardInterrupt

    monkeypatch.setattr(
        LeverMemory, "try_lever", lambda *_: lever_trials.try_recipe(finished, 1, recipe, (), interrupt)
    )
    with Workspace.open(finished, read_only=True) as workspace:
        recipe = find_run(workspace, "1").recipe_toml
    assert sfumato("levers", "1", *DATA) == 3
    out = capsys.readouterr()
    assert "sfumato: interrupted" in out.err
    assert out.out == ""
    assert not (finished / lever_trials.FOLDER).exists()


@pytest.mark.slow
def test_a_run_that_is_not_done_has_no_levers(sfumato, finished, capsys):
    with Workspace.open(finished) as workspace:
        workspace.connection.execute("UPDATE run SET state = 'failed' WHERE id = 1")
        workspace.connection.commit()
    assert sfumato("levers", "1", *DATA) == 2
    assert "run 1 is not done" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "before", "after", "word"),
    [
        ("utility.propensity.s_pmse", 1.0, 2.0, "worse"),
        ("utility.propensity.s_pmse", 2.0, 1.0, "better"),
        ("utility.propensity.s_pmse", 1.0, 1.0, "the same"),
        ("", None, 1.0, ""),
    ],
)
def test_utility_is_better_or_worse_by_the_direction_of_its_measure(key, before, after, word):
    assert _compare_utility(key, before, after) == word


def test_advice_agrees_with_what_the_trials_of_its_changes_show():
    advice = "Use larger leaves, then smoothing."
    assert change_after_trials(advice, None) == (
        "What could be tried alone did not help; together they were not tried: use larger leaves, then smoothing."
    )
    lever = RunLever(LeverAim("title"), "release fewer datasets")
    helping = lever, LeverEffect(change="3 % -> 2 % of the people sampled", helps=True)
    assert change_after_trials(advice, helping) == (
        "Release fewer datasets: 3 % to 2 % of the people sampled, in trials."
    )
    costly = replace(helping[1], utility="utility 1.07 -> 96.82, where 1 is best", utility_word="worse",
                     utility_name="Difference as a multiple of chance (S-pMSE)")  # fmt: skip
    cost = "It would cost utility: difference as a multiple of chance 1.07 to 96.82, where 1 is best."
    assert change_after_trials(advice, (lever, costly)).endswith(f"in trials. {cost}")
    named = replace(helping[1], change="title: 0.1 -> 0.02 in the sample")
    assert change_after_trials(advice, (lever, named)) == (
        "Release fewer datasets: title from 0.1 to 0.02 in the sample, in trials."
    )


def settings(*names):
    """The parts of a change of settings."""
    return parts_of_change([("settings", names)])


def test_what_helps_and_breaks_no_limit_is_told_first_and_then_what_is_listed_first():
    answer = ReleaseAnswer(
        "no", "public", "", "", 9, RecordCount(20, "people"), change="Use larger leaves; then smoothing.", check="c"
    )
    aim, helps = LeverAim("title", "c"), LeverEffect(change="3 % -> 2 %", helps=True)
    leaves, smooth = (RunLever(aim, text, "x") for text in ("use larger leaves", "smoothing"))
    both = [(leaves, helps), (smooth, helps)]
    assert change_as_tried(answer, both, is_tried=True).startswith("Use larger leaves: 3 % to 2 %")
    costly = [(leaves, replace(helps, utility_limits=3, broken_limits=1)), (smooth, helps)]
    assert change_as_tried(answer, costly, is_tried=True).startswith("Smoothing: 3 % to 2 %")
    assert [lever.text for lever, _ in sort_by_effect(costly)] == ["smoothing", "use larger leaves"], "the same order"
    assert change_as_tried(answer, [(leaves, helps), (smooth, None)], is_tried=False).startswith(
        "Use larger leaves: "
    ), "the first effect stands there as soon as it is known"
    assert change_as_tried(answer, [(leaves, None), (smooth, None)], is_tried=False) == answer.change
    useless = replace(helps, helps=False)
    assert change_as_tried(answer, [(leaves, useless), (smooth, None)], is_tried=False) == answer.change
    counted = replace(helps, shares=("5.9 %", "0 %"), people=915, noun="households")
    assert change_as_tried(answer, [(leaves, counted)], is_tried=True) == (
        "Use larger leaves: such households would go from 5.9 % to 0 % of the 915 tried, in trials."
    )


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("worse", "It would cost utility: distance 1 to 2."),
        ("better", "It would help utility too: distance 1 to 2."),
        ("the same", "It would cost no utility: distance stays the same."),
        ("", ""),
    ],
)
def test_the_cost_of_a_change_is_told_in_words(word, said):
    effect = LeverEffect(utility="utility 1 -> 2", utility_word=word, utility_name="Distance")
    assert effect.cost_text == said


@pytest.mark.parametrize(
    ("parts", "check", "is_told"),
    [
        ([("join", ["region"]), ("synthesise", ["pay", "age"])], "kept_keys", True),
        ([("synthesise", ["age", "pay"])], "kept_keys", False),
        ([("synthesise", ["age"]), ("join", ["region"])], "kept_keys", False),
        ([("synthesise", ["age", "pay"]), ("join", ["region"])], "worst_records", False),
        ([("synthesise", ["height"])], "kept_keys", False),
        ([], "kept_keys", False),
    ],
)
@pytest.mark.parametrize("advice", ["Make age and pay artificial: 9 are still found.", "Reworded: fewer people."])
def test_what_advice_costs_stands_with_it_where_just_that_was_tried(advice, parts, check, is_told):
    """By what changes and never by its words: the advice may be worded in any way."""
    advised = tuple(parts_of_change(one) for one in (
        [("synthesise", ["age", "pay"]), ("join", ["region"])], [("synthesise", ["height"])]
    ))  # fmt: skip
    answer = ReleaseAnswer(
        "no", "public", "", "", 9, RecordCount(20, "people"), change=advice, check="kept_keys", advised=advised,
        change_has_effect=True,
    )  # fmt: skip
    effect = LeverEffect(utility="utility 1 -> 2", utility_word="worse", utility_name="Distance", helps=True)
    levers = [(RunLever(LeverAim("title", check), "some text", parts=parts_of_change(parts)), effect)]
    for is_tried in (True, False):
        told = change_as_tried(answer, levers, is_tried=is_tried)
        assert told == (f"{advice} It would cost utility: distance 1 to 2." if is_told else advice)


def test_limits_on_utility_that_a_change_breaks_are_told_whatever_another_number_does():
    """The first number may become better while limits on others are broken."""

    def trial(*values):
        keys = [("utility.ecdf.max_abs_difference", name) for name in ("tenure", "age")]
        return LeverTrial(
            records=9, people=9,
            limits=tuple(
                TriedLimit(key, name, None, "max", "met" if value <= 0.05 else "not met", value)
                for (key, name), value in zip(keys, values, strict=True)
            ),
            utilities=tuple(TriedUtility(key, name, value, 0.05) for (key, name), value in zip(keys, values, strict=True)),
        )  # fmt: skip

    broken = compare_trials(LeverAim("title", "kept_keys"), trial(0.02, 0.03), trial(0.01, 0.08))
    assert (broken.utility_limits, broken.broken_limits, broken.utility_word) == (2, 1, "worse")
    assert replace(broken, reason="").cost_text == (
        "It would cost utility: 1 of 2 limits on it would be broken; worst: largest gap between distributions of age 0.03 "
        "to 0.08 (limit 0.05)."
    )
    kept = compare_trials(LeverAim("title", "kept_keys"), trial(0.02, 0.03), trial(0.01, 0.04))
    assert kept.cost_text == (
        "Utility: all 2 limits on it would stay met; nearest: largest gap between distributions of age 0.03 to 0.04 (limit "
        "0.05)."
    )


def test_a_utility_stands_beside_the_limit_of_the_plan_on_it():
    tried = [
        LeverTrial(records=9, people=9, utilities=(TriedUtility("utility.propensity.pmse", "", value, limit),))
        for value, limit in ((0.0003, 0.01), (0.0037, 0.01))
    ]
    said = compare_trials(LeverAim("title", "kept_keys"), *tried).utility
    assert said == "utility 0.0003 -> 0.0037, where less is better and the plan's limit is 0.01"


def test_an_effect_is_a_sentence_without_arrows():
    effect = LeverEffect(change="11 % -> 2 % of people", utility="utility 1.3 -> 1.6", helps=True, utility_word="worse")
    assert effect.sentence == "11 % to 2 % of people: better; utility 1.3 to 1.6: worse"
    assert (
        LeverEffect("not tried: it takes longer than a minute").sentence == "not tried: it takes longer than a minute"
    )
