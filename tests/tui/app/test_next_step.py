"""The line that names the next step: what it says in every state, and that its keys are those of the app."""

import re
import shutil
from dataclasses import replace

import pytest
from prepared_workspaces import enter_recipe

from sfumato.tui.app.next_step import PlanStage, ProjectStage, next_step_text, stage_of_plan, stage_of_project
from sfumato.tui.keys.acts import BY_NAME
from sfumato.workspace.audit import AuditAct, append_act
from sfumato.workspace.store.runs import RunState, RunSummary, VerdictCounts, summarise_run
from sfumato.workspace.store.workspace import Workspace

WHOLE = PlanStage(has_roles=True, makers=1, measures=2, thresholds=1)
ROLES = '[variables]\na = { role = "sensitive" }\n'


@pytest.mark.parametrize(
    ("toml", "standing"),
    [
        ("", PlanStage(False, 0, 0, 0)),
        ("[variables]\na = { role = 'other' }", PlanStage(False, 0, 0, 0)),
        (ROLES, PlanStage(True, 0, 0, 0)),
        ("[variables]\na = { role = 'known' }", PlanStage(True, 0, 0, 0)),
        (f"{ROLES}[[synthesis]]\ntarget = 'a'\n[[measure]]\n[[study]]\n[[threshold]]\n", PlanStage(True, 1, 2, 1)),
        ("variables = 3\nsynthesis = 'x'\nrelease = []", PlanStage(False, 0, 0, 0)),
        ("[release]\nreleased = ['a']", PlanStage(False, 1, 0, 0)),
        ("[[synthesis]\n", None),
    ],
)
def test_how_far_a_plan_has_come(toml, standing):
    assert stage_of_plan(toml) == standing


@pytest.mark.parametrize(
    ("standing", "words"),
    [
        (ProjectStage(None, has_data=False), "{new} runs a recipe; or {projects} opens Projects, where"),
        (ProjectStage(None), "fix the text"),
        (ProjectStage(replace(WHOLE, has_roles=False)), "{data} opens Data: give each variable a role"),
        (ProjectStage(replace(WHOLE, makers=0)), "{data} opens Data, where {draft} drafts the plan"),
        (ProjectStage(replace(WHOLE, measures=0)), "without one there is no verdict"),
        (
            ProjectStage(replace(WHOLE, thresholds=0)),
            "{plan} opens Plan, where {run} runs it; without limits there is no verdict",
        ),
        (ProjectStage(WHOLE), "{plan} opens Plan, where {run} runs it"),
    ],
)
def test_without_a_run_each_step_of_the_plan_is_named(standing, words):
    assert words in next_step_text(standing, None, "runs")
    for tab in ("runs", "data", "plan"):
        named = re.findall(r"\{([a-z_.]+)\}", next_step_text(standing, None, tab))
        assert named == [] or set(named) <= set(BY_NAME)


@pytest.fixture
def line(built_workspace) -> RunSummary:
    with Workspace.open(built_workspace, read_only=True) as workspace:
        return summarise_run(workspace, 1)


@pytest.fixture(scope="module")
def built_workspace(tmp_path_factory):
    import pandas as pd

    from sfumato.engine.data.microdata import conform_to_schema
    from sfumato.engine.recipe.recipe import Recipe

    kinds = {"a": {"kind": "count", "role": "sensitive"}, "b": {"kind": "count"}}
    table = {"variables": kinds, "synthesis": [{"target": "a", "method": "linear_regression", "predictors": ["b"]}]}
    recipe = Recipe.from_table(table)
    data = conform_to_schema(pd.DataFrame({"a": range(20), "b": range(20)}), recipe.schema)
    with Workspace.create(tmp_path_factory.mktemp("next") / "workspace", bytes(range(32))) as workspace:
        enter_recipe(workspace, recipe, data, "a.csv", b"a")
        return workspace.directory


def judged(line, **counts):
    return replace(line, run=replace(line.run, state=RunState.DONE), verdicts=VerdictCounts(**counts), is_attended=True)


@pytest.mark.parametrize(
    ("counts", "tab", "words"),
    [
        ({"met": 2}, "verdicts", "the gate has not answered yet"),
        ({"met": 2}, "runs", "{findings} opens Findings: whether run 1 may leave"),
        ({"met": 2, "not_met": 1}, "runs", "{findings} opens Findings: why 1 of 3 thresholds is not met"),
        ({"met": 2, "not_computed": 1}, "runs", ": why 1 of 3 thresholds is not computed"),
        ({"met": 1, "not_met": 2, "not_computed": 1}, "map", ": why 2 of 4 thresholds are not met"),
        ({"not_computed": 2}, "map", ": why 2 of 2 thresholds are not computed"),
        ({"not_met": 1}, "map", ": why the threshold is not met"),
        ({"met": 2, "not_met": 1}, "verdicts", "{open} explains it"),
        ({}, "results", "run 1 has no limits"),
    ],
)
def test_after_a_run_the_verdicts_say_what_is_next(line, counts, tab, words):
    said = next_step_text(ProjectStage(WHOLE), judged(line, **counts), tab)
    assert words in said
    assert "{release_run}" not in said


@pytest.mark.parametrize(
    ("answer", "tab", "words"),
    [
        ("no", "verdicts", "{open} explains what blocks"),
        ("no", "runs", "{findings} opens Findings: what blocks"),
        ("no", "sweep", "{findings} opens Verdicts: what blocks"),
        ("to be judged", "verdicts", "{open} explains what you have to judge; {release} takes your judgement"),
        ("to be judged", "map", "{findings} opens Findings: what you have to judge"),
        *(
            ("to be judged", tab, "{findings} opens Verdicts: what you")
            for tab in ("records", "results", "diagnostics")
        ),
        ("yes", "verdicts", "{release_run} releases"),
        ("yes", "runs", "{release_run} releases"),
    ],
)
def test_only_the_gate_s_yes_leads_to_a_release_however_many_thresholds_are_met(line, answer, tab, words):
    said = next_step_text(ProjectStage(WHOLE, answers={1: answer}), judged(line, met=2), tab)
    assert words in said
    assert ("{release_run}" in said) is (answer == "yes")
    assert "{release_run}" not in next_step_text(ProjectStage(WHOLE, answers={7: "yes"}), judged(line, met=2), tab)


def test_where_findings_opens_at_another_tab_its_key_is_named_twice(line):
    stage = ProjectStage(WHOLE, answers={1: "no"}, findings_tab="sweep")
    assert "{findings} twice opens Verdicts: what blocks" in next_step_text(stage, judged(line, met=2), "runs")
    assert "next: {findings} opens Verdicts:" in next_step_text(stage, judged(line, met=2), "sweep")


def test_what_blocks_comes_before_thresholds_and_limits(line):
    for counts in ({}, {"met": 1, "not_met": 1}, {"not_computed": 1}):
        assert "what blocks" in next_step_text(
            ProjectStage(WHOLE, answers={1: "no"}), judged(line, **counts), "verdicts"
        )


def test_no_thresholds_alone_lead_to_a_release(line):
    """What failed, was not computed, was never asked, or is met where the gate has not answered must not be read as safe."""
    for counts in (
        {},
        {"met": 5},
        {"not_met": 1},
        {"not_computed": 1},
        {"undecided": 1},
        {"met": 5, "undecided": 1},
        {"met": 5, "not_computed": 1},
        {"met": 5, "not_met": 1},
    ):
        for tab in ("runs", "results", "verdicts", "records", "map"):
            assert "{release_run}" not in next_step_text(ProjectStage(WHOLE), judged(line, **counts), tab)


@pytest.mark.parametrize(
    ("state", "attended", "words"),
    [
        (RunState.RUNNING, True, "keeps running if you quit"),
        (RunState.RUNNING, False, "run 1 has no worker"),
        (RunState.INTERRUPTED, True, "{interrupt} resumes run 1"),
        (RunState.CANCELLED, True, "{interrupt} resumes run 1"),
        (RunState.FAILED, True, "{plan} opens Plan to fix why run 1 failed"),
    ],
)
def test_a_run_that_is_not_done_says_what_can_be_done(line, state, attended, words):
    here = replace(line, run=replace(line.run, state=state, error="x\x1b[2J"), is_attended=attended)
    said = next_step_text(ProjectStage(WHOLE), here, "runs")
    assert words in said
    assert "\x1b" not in said


def test_a_released_run_says_so(built_workspace, line):
    with Workspace.open(built_workspace) as workspace:
        assert stage_of_project(workspace, line.run.project_id).released == frozenset()
        with workspace.write_transaction() as connection:
            append_act(connection, AuditAct.RUN_RELEASED, "run 1")
        standing = stage_of_project(workspace, line.run.project_id)
    assert standing.released == {1}
    assert "run 1 was released" in next_step_text(standing, judged(line, met=1), "verdicts")


@pytest.mark.parametrize("tab", ["runs", "data", "plan"])
def test_every_key_that_a_step_names_is_known_by_its_binding(tab):
    lacks = [{}, {"has_roles": False}, {"makers": 0}, {"measures": 0}, {"thresholds": 0}]
    for said in (next_step_text(ProjectStage(replace(WHOLE, **lack)), None, tab) for lack in lacks):
        for name in re.findall(r"\{([\w.]+)\}", said):
            assert name in BY_NAME, said


@pytest.mark.parametrize("tab", ["data", "plan"])
def test_a_plan_that_a_run_has_done_is_not_said_to_be_run_next(line, tab):
    done = judged(line, met=2, not_met=1)
    own = ProjectStage(WHOLE, toml=line.run.recipe_toml, datasets=frozenset({line.run.dataset_id}))
    of_plan = own.with_plan_run([done])
    assert of_plan.plan_run == done
    assert next_step_text(of_plan, done, tab) == "this plan is run 1; " + next_step_text(of_plan, done, "runs")
    assert "{run}" not in next_step_text(of_plan, done, tab)
    # another plan, other records, or a run that came to nothing, is no run of this plan
    nothing = [replace(done, run=replace(done.run, state=state)) for state in (RunState.FAILED, RunState.CANCELLED)]
    others = [
        replace(own, toml=own.toml + "\nlabel = 'x'"),
        replace(own, datasets=frozenset({99})),
        replace(own, toml="[["),
    ]
    for standing in (*(one.with_plan_run([done]) for one in others), own.with_plan_run(nothing)):
        assert standing.plan_run is None
        assert "{run} runs it" in next_step_text(standing, done, tab)


def test_a_plan_is_known_by_its_fingerprint_however_it_is_written(line):
    done = judged(line, met=1)
    other = ProjectStage(WHOLE, toml="# the same in other words", datasets=frozenset({line.run.dataset_id}))
    assert other.with_plan_run([done]).plan_run is None
    assert other.with_plan_run([done], done.run.recipe_sha256).plan_run == done
    same = replace(other, toml=done.run.recipe_toml)
    assert same.with_plan_run([done], "0" * 64).plan_run is None, "the fingerprint is of what stands there now"


def test_keys_that_release_are_not_named_for_another_run_than_the_tabs_show(line):
    done = judged(line, met=2)
    other = replace(done, run=replace(done.run, id=7))
    standing = ProjectStage(WHOLE, toml=line.run.recipe_toml, datasets=frozenset({line.run.dataset_id})).with_plan_run(
        [done]
    )
    for shown in (None, other):
        said = next_step_text(standing, shown, "plan")
        assert said == "this plan is run 1, done: {runs} opens Runs, which shows it"
    assert "{findings} opens Findings: whether run 1 may leave" in next_step_text(standing, done, "plan")
    assert "{release_run}" in next_step_text(replace(standing, answers={1: "yes"}), done, "plan")


def test_a_run_of_the_plan_that_goes_on_is_said_to_go_on(line):
    running = replace(line, run=replace(line.run, state=RunState.RUNNING), is_attended=True)
    standing = ProjectStage(WHOLE, toml=line.run.recipe_toml, datasets=frozenset({line.run.dataset_id})).with_plan_run(
        [running]
    )
    assert "run 1 keeps running if you quit" in next_step_text(standing, running, "plan")
    assert "{run}" not in next_step_text(standing, running, "plan")


def test_records_that_a_run_drew_from_the_file_are_the_plan_s_own_and_those_of_another_file_are_not(
    built_workspace, tmp_path
):
    """A plan with a hold-out is for the whole file, its run is on what was not held out: once it was said to be run again."""
    directory = shutil.copytree(built_workspace, tmp_path / "workspace")
    with Workspace.open(directory) as workspace:
        columns = "project_id, name, origin, source_sha256, table_sha256, schema, records, dropped, created"
        for source in ("source_sha256", "'another'"):
            workspace.connection.execute(
                f"INSERT INTO dataset ({columns}) SELECT {columns.replace('source_sha256', source)} FROM dataset WHERE id = 1"
            )
        assert stage_of_project(workspace, 1).datasets == {1, 2}
        line = summarise_run(workspace, 1)
    drawn, others = (judged(replace(line, run=replace(line.run, dataset_id=number)), met=1) for number in (2, 3))
    standing = ProjectStage(WHOLE, toml=line.run.recipe_toml, datasets=frozenset({1, 2}))
    assert standing.with_plan_run([drawn]).plan_run == drawn
    assert standing.with_plan_run([others]).plan_run is None
