"""Trials of levers: what they say comes from a run of the changed recipe on the sample, and nothing is left of them."""

import hashlib
import hmac
import os
from dataclasses import replace

import pytest
from prepared_tables import HOUSEHOLD_PLAN, household_survey
from prepared_workspaces import finished_workspace, run_recipe

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.recoding_rules import RecodeRule
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import Cancelled
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate.gate import Finding
from sfumato.workspace.plan.change_parts import parts_of_change
from sfumato.workspace.plan.drafts import write_plan
from sfumato.workspace.plan.edits import parse_plan, replace_sections
from sfumato.workspace.plan.levers import change_words, find_column_levers, find_finding_levers
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.service import lever_trials
from sfumato.workspace.service.examination import examine_run
from sfumato.workspace.service.lever_trials import (
    FOLDER,
    KEY_LABEL,
    PAYS,
    LeverTrial,
    carry_out_trial,
    sampled_rows,
    try_recipe,
    untried_reason,
)
from sfumato.workspace.service.run_levers import (
    FindingAim,
    LeverAim,
    compare_trials,
    find_run_levers,
    finding_aims,
    sample_text,
)
from sfumato.workspace.store.places import state_directory
from sfumato.workspace.store.runs import find_run, read_run_records
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_verdicts

KEY = bytes(range(32))
KEPT = FindingAim("kept_keys", "block", "people found by columns released unchanged")
NO_STUDY = {name: part for name, part in HOUSEHOLD_PLAN.items() if name != "study"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A workspace with a run that is done, of a survey whose people can be found by the columns that it keeps."""
    return finished_workspace(tmp_path_factory.mktemp("levers") / "w", [NO_STUDY], household_survey(), key=KEY)


def recipe_of(directory, run_id=1):
    with Workspace.open(directory, read_only=True) as workspace:
        return find_run(workspace, run_id).recipe_toml


def files_of(directory):
    return sorted(
        str(path.relative_to(directory)) for path in directory.rglob("*") if not path.name.endswith(("-shm", "-wal"))
    )


@pytest.mark.slow
@pytest.mark.parametrize("most", [1000, 50])
def test_a_trial_says_what_a_run_of_the_changed_recipe_on_the_same_sample_says(finished, tmp_path, monkeypatch, most):
    monkeypatch.setattr(lever_trials, "MOST_RECORDS", most)
    levers = find_run_levers(finished, 1, (KEPT,)).levers
    lever = next(one for one in levers if one.text == "show visits in steps of 2")
    tried = try_recipe(finished, 1, lever.toml, ("risk.identification",), carry_out_trial)
    assert tried.reason == ""
    with Workspace.open(finished, read_only=True) as workspace:
        whole = read_run_records(workspace, find_run(workspace, 1))
        own = hmac.digest(workspace.read_workspace_key(), KEY_LABEL, hashlib.sha256)
    rows = sampled_rows(whole, most)
    assert (len(rows) == len(whole)) == tried.is_whole == (most == 1000)
    table = read_toml(lever.toml)
    table["measure"] = [one for one in table["measure"] if one["method"] != "utility.summary"]
    recipe = Recipe.from_table(table)
    sample = conform_to_schema(whole.frame.iloc[rows].reset_index(drop=True), recipe.schema)
    with Workspace.create(tmp_path / "beside", own) as beside:
        number = run_recipe(beside, recipe, sample)
        verdicts = read_verdicts(beside, number)
    found = {one.check: one for one in examine_run(tmp_path / "beside", number).examination.findings}
    for one in tried.findings:
        assert (one.status, one.people, one.value) == (
            found[one.check].status,
            found[one.check].people,
            found[one.check].compared_value,
        ), one.check
    assert [(one.value, one.target, one.outcome, one.observed) for one in tried.limits] == [
        (one.value, one.target, one.outcome, one.observed) for one in verdicts
    ]


@pytest.mark.slow
def test_nothing_is_left_of_a_trial_neither_in_the_workspace_nor_outside(finished):
    toml = recipe_of(finished)
    before, heads = files_of(finished), files_of(state_directory())
    assert try_recipe(finished, 1, toml, (), carry_out_trial).reason == ""
    assert files_of(finished) == before
    assert files_of(state_directory()) == heads
    with Workspace.open(finished, read_only=True) as workspace:
        assert workspace.connection.execute("SELECT count(*) FROM run").fetchone()[0] == 1


def test_nothing_is_left_of_a_trial_that_is_not_wanted_any_more_or_that_fails(finished):
    def leave_half(*arguments):
        (arguments[-1] / "table.parquet").write_bytes(b"confidential")
        raise Cancelled("a trial is not wanted any more")

    with pytest.raises(Cancelled):
        try_recipe(finished, 1, recipe_of(finished), (), leave_half)
    assert not (finished / FOLDER).exists()


def test_what_a_killed_process_left_is_removed_by_the_next_trial(finished):
    left = finished / FOLDER / "999999999-x"
    left.mkdir(parents=True)
    (left / "table.parquet").write_bytes(b"confidential")
    seen = []
    try_recipe(
        finished,
        1,
        recipe_of(finished),
        (),
        lambda *given: seen.append([one.name for one in given[-1].parent.iterdir()]),
    )
    assert seen == [[name for name in seen[0] if name.startswith(f"{os.getpid()}-")]]
    assert not (finished / FOLDER).exists()


def test_a_recipe_that_pays_with_an_epsilon_is_not_tried(finished):
    pays = replace_sections(
        recipe_of(finished),
        {
            "threshold": None,
            "measure": None,
            "synthesis": [
                {
                    "method": "margins",
                    "target": ["region"],
                    "epsilon": 1.0,
                }
            ],
        },
    )
    called = []
    assert parse_plan(pays).problem == ""
    assert untried_reason(pays) == PAYS
    tried = try_recipe(finished, 1, pays, (), lambda *_: called.append(1))
    assert tried.reason == PAYS
    assert called == []
    assert compare_trials(LeverAim("", "kept_keys"), tried, tried).text == PAYS


@pytest.mark.slow
def test_findings_that_warn_have_levers_and_each_changes_the_recipe(finished):
    warning = FindingAim("worst_records", "warn", "the record that is most at risk")
    found = find_run_levers(finished, 1, (KEPT, warning))
    own = parse_plan(found.toml).sha256
    assert found.levers
    assert all(one.lines and parse_plan(one.toml).sha256 not in ("", own) for one in found.levers)
    assert len({parse_plan(one.toml).sha256 for one in found.levers}) == len(found.levers)
    (coarser,) = find_finding_levers("worst_records", found.toml)
    assert read_toml(coarser.toml)["release"]["recode"] == {"visits": 5}
    # it stands with the limit that it serves too, which is worse than a warning
    assert coarser.toml in [one.toml for one in find_run_levers(finished, 1, (warning,)).levers]
    assert not any("(m)" in one.text for one in found.levers if one.aim.check)
    # What the gate's answer advises comes first: the kept columns by which the measure matches, coarser or made.
    first = find_run_levers(finished, 1, (warning,)).levers
    named = [one for one in first if one.aim.check == "worst_records"]
    assert named[0].text == "show visits in steps of 2", [one.text for one in named]
    assert [one.text for one in named[1:3]] == ["synthesise region", "synthesise visits"], [one.text for one in named]


@pytest.mark.slow
def test_what_decides_comes_first_in_the_order_of_its_advice(finished):
    listed = find_run_levers(finished, 1, (KEPT,)).levers
    own = [one for one in listed if one.aim.check == "kept_keys"]
    assert all(one.parts for one in listed), "each says as data what it changes"
    last = own[-1]
    (first, *others) = find_run_levers(finished, 1, (replace(KEPT, advised=(last.parts,)),)).levers
    assert first == last
    assert [one for one in others if one.aim.check == "kept_keys"] == own[:-1], "of the others the order stays"
    warning = FindingAim("worst_records", "warn", "the record that is most at risk")
    assert find_run_levers(finished, 1, (warning, KEPT)).levers[0].aim.check == "worst_records"


def test_the_finding_about_most_people_decides_and_brings_what_the_answer_advises():
    few, many = (
        Finding(key, "warn", key, "said", people=people, change="synthesise it", advised=(parts_of_change([("synthesise", [key])]),))
        for key, people in (("few", 3), ("many", 30))
    )  # fmt: skip
    block = Finding("block", "block", "block", "said")
    assert [one.check for one in finding_aims([few, many])] == ["many", "few"]
    assert [len(one.advised) for one in finding_aims([few, many])] == [1, 0], "only what decides is advised first"
    assert [one.check for one in finding_aims([few, many, block])] == ["block", "few", "many"]
    assert [one.check for one in finding_aims([block, few, many], waived=("block",))] == ["many", "block", "few"]


def test_a_model_that_has_not_converged_on_the_sample_is_used_and_said_to_be_rough():
    table = {
        "title": "t",
        "variables": {"visits": {"kind": "count", "bounds": [0, 50]}, "sex": {"kind": "binary"}},
        "synthesis": [{"target": "visits", "method": "zero_inflated_truncated_poisson", "predictors": ["sex"]}],
    }
    rough = lever_trials._accept_unconverged(Recipe.from_table(table))
    assert rough is not None
    assert rough.synthesis[0].spec.accept_unconverged
    table["synthesis"] = [{"target": "visits", "method": "cart", "predictors": ["sex"]}]
    assert lever_trials._accept_unconverged(Recipe.from_table(table)) is None, "no method of it has the setting"
    good, bad = LeverTrial(records=9), LeverTrial(records=9, unconverged=("visits",))
    assert "rough" not in sample_text(good, good)
    assert sample_text(good, bad).endswith("; the model of visits had not converged there: they are rough.")


@pytest.mark.slow
def test_a_trial_is_carried_out_again_where_a_model_has_not_converged(finished, monkeypatch):
    measure, tried = lever_trials._measure_recipe, []

    def measure_second(directory, own, key, prepared, utility_key):
        tried.append(own.name)
        if len(tried) == 1:
            raise lever_trials.TrialUnconverged("visits: k has not converged")
        return measure(directory, own, key, prepared, utility_key)

    monkeypatch.setattr(lever_trials, "_measure_recipe", measure_second)
    refused = try_recipe(finished, 1, recipe_of(finished), (), carry_out_trial)
    assert refused.reason == "not tried: visits: k has not converged", (
        "no model of this recipe may be used all the same"
    )
    tried.clear()
    monkeypatch.setattr(lever_trials, "_accept_unconverged", lambda recipe: recipe)
    assert try_recipe(finished, 1, recipe_of(finished), (), carry_out_trial).reason == ""
    assert tried == ["workspace", "rough"]


def test_a_lever_is_told_in_plain_words():
    told = change_words("use larger leaves in the trees (minbucket)", ("- minbucket = 5", "+ minbucket = 10"))
    assert told == "use larger leaves in the trees: at least 10 records in each"
    coarser = change_words("make them coarser ([release] recode)", ("+ recode = { age = 5, region = { a = ['b'] } }",))
    assert coarser == "make them coarser: age in steps of 5"
    assert change_words("show age in steps of 5", ("+ recode = { age = 5 }",)) == "show age in steps of 5"
    assert change_words("draw beside (smoothing)", ("+ smoothing = true",)) == "draw beside"
    assert change_words("release fewer datasets (m)", ("- m = 5", "+ m = 3")) == "release fewer datasets: 3 of them"


@pytest.mark.slow
def test_column_levers_protect_people_and_a_column_that_is_synthesised_has_none(finished):
    with Workspace.open(finished, read_only=True) as workspace:
        run = find_run(workspace, 1)
        data = read_run_records(workspace, run)
    levers = {one.text: read_toml(one.toml) for one in find_column_levers(run.recipe_toml, data, Policy())}
    assert levers["show visits in steps of 2"]["release"]["recode"] == {"visits": 2}
    made = levers["synthesise region"]["synthesis"]
    assert (made[0]["target"], made[0]["predictors"]) == ("region", ["visits"])
    assert not any("income" in text for text in levers)
    (ends,) = [text for text in levers if " as " in text]
    rule = levers[ends]["release"]["recode"]["visits"]
    assert ends == f"show visits {RecodeRule.parse(rule).ends_text}"
    (absent,) = [text for text in levers if text.startswith("leave out ")]
    assert absent.removeprefix("leave out ") not in levers[absent]["variables"]


@pytest.mark.slow
def test_codes_of_the_ends_and_a_column_left_out_help_in_a_trial(finished):
    with Workspace.open(finished, read_only=True) as workspace:
        run = find_run(workspace, 1)
        data = read_run_records(workspace, run)
    levers = [one for one in find_column_levers(run.recipe_toml, data, Policy()) if one.text.startswith("leave out ")]
    levers += [one for one in find_column_levers(run.recipe_toml, data, Policy()) if " as " in one.text]
    before = try_recipe(finished, 1, run.recipe_toml, (), carry_out_trial)
    for lever in levers:
        after = try_recipe(finished, 1, lever.toml, (), carry_out_trial)
        assert after.reason == ""
        assert compare_trials(LeverAim("", "kept_keys"), before, after).helps, lever.text


def test_the_key_that_joins_releases_is_left_out_only_for_what_it_joins():
    plan = {**NO_STUDY, "variables": {**NO_STUDY["variables"], "person": {"kind": "categorical", "role": "identifier"}}}
    plan["release"] = {**plan["release"], "surrogate_keys": ["person"], "surrogate_scope": "one"}
    toml = write_plan(plan)
    assert parse_plan(toml).problem == ""
    (lever,) = [one for one in find_finding_levers("joined_releases", toml) if "surrogate" in one.text]
    assert lever.text == "leave out the surrogate key of person"
    assert "surrogate_keys" not in read_toml(lever.toml)["release"]
    assert "surrogate_scope" not in read_toml(lever.toml)["release"]
    assert not any("surrogate" in one.text for one in find_finding_levers("memorised", toml))
    assert not any("surrogate" in one.text for one in find_finding_levers("kept_keys", toml)), (
        "no unit of several records"
    )


@pytest.mark.slow
def test_a_lever_that_does_not_help_is_said_not_to(finished):
    aim = LeverAim("", "kept_keys")
    before = try_recipe(finished, 1, recipe_of(finished), (), carry_out_trial)
    fewer = recipe_of(finished).replace("m = 3", "m = 2")
    after = try_recipe(finished, 1, fewer, (), carry_out_trial)
    assert not compare_trials(aim, before, after).helps
    coarser = replace_sections(recipe_of(finished), {"release": {"m": 3, "seed": 7, "recode": {"visits": 5}}})
    effect = compare_trials(aim, before, try_recipe(finished, 1, coarser, (), carry_out_trial))
    assert effect.helps
    assert "of people" in effect.change
    assert effect.utility.startswith("utility ")
    assert effect.utility.partition(" and the plan's limit is ")[0].endswith(
        (", where 1 is best", ", where less is better")
    )
    assert effect.text.endswith(f"{effect.utility} ({effect.utility_word})")
