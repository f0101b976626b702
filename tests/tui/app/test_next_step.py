"""The line that names the next step: what it says in every state, and that its keys are those of the app."""

import re
import shutil
from dataclasses import replace

import pytest
from prepared_workspaces import enter_recipe

from sfumato.tui.app.next_step import PlanStanding, Standing, next_step, plan_standing, standing_of
from sfumato.tui.keys.acts import BY_NAME
from sfumato.workspace.audit import AuditAct, append_act
from sfumato.workspace.store.runs import RunLine, RunState, Tally, run_line
from sfumato.workspace.store.workspace import Workspace

WHOLE = PlanStanding(roles=True, makers=1, measures=2, thresholds=1)
ROLES = '[variables]\na = { role = "sensitive" }\n'


@pytest.mark.parametrize(
    ("toml", "standing"),
    [
        ("", PlanStanding(False, 0, 0, 0)),
        ("[variables]\na = { role = 'other' }", PlanStanding(False, 0, 0, 0)),
        (ROLES, PlanStanding(True, 0, 0, 0)),
        ("[variables]\na = { role = 'known' }", PlanStanding(True, 0, 0, 0)),
        (f"{ROLES}[[synthesis]]\ntarget = 'a'\n[[measure]]\n[[study]]\n[[threshold]]\n", PlanStanding(True, 1, 2, 1)),
        ("variables = 3\nsynthesis = 'x'\nrelease = []", PlanStanding(False, 0, 0, 0)),
        ("[release]\nreleased = ['a']", PlanStanding(False, 1, 0, 0)),
        ("[[synthesis]\n", None),
    ],
)
def test_how_far_a_plan_has_come(toml, standing):
    assert plan_standing(toml) == standing


@pytest.mark.parametrize(
    ("standing", "words"),
    [
        (Standing(None, has_data=False), "{new} in Runs"),
        (Standing(None), "fix the text"),
        (Standing(replace(WHOLE, roles=False)), "{data} Data: give each variable a role"),
        (Standing(replace(WHOLE, makers=0)), "{draft} in Data ({data}) drafts the plan"),
        (Standing(replace(WHOLE, measures=0)), "without one there is no verdict"),
        (Standing(replace(WHOLE, thresholds=0)), "{run} in Plan ({plan}) runs it; without limits there is no verdict"),
        (Standing(WHOLE), "{run} in Plan ({plan}) runs it"),
    ],
)
def test_without_a_run_each_step_of_the_plan_is_named(standing, words):
    assert words in next_step(standing, None, "runs")
    for tab in ("runs", "data", "plan"):
        named = re.findall(r"\{([a-z_.]+)\}", next_step(standing, None, tab))
        assert named == [] or set(named) <= set(BY_NAME)


@pytest.fixture
def line(built_workspace) -> RunLine:
    with Workspace.open(built_workspace, read_only=True) as workspace:
        return run_line(workspace, 1)


@pytest.fixture(scope="module")
def built_workspace(tmp_path_factory):
    import pandas as pd

    from sfumato.engine.data.microdata import conform_to_schema
    from sfumato.engine.recipe.recipe import Recipe

    kinds = {"a": {"kind": "count", "role": "sensitive"}, "b": {"kind": "count"}}
    table = {"variables": kinds, "synthesis": [{"target": "a", "method": "linear_regression", "predictors": ["b"]}]}
    recipe = Recipe.from_table(table)
    data = conform_to_schema(pd.DataFrame({"a": range(20), "b": range(20)}), recipe.schema)
    with Workspace.create(tmp_path_factory.mktemp("next") / "workspace") as workspace:
        enter_recipe(workspace, recipe, data, "a.csv", b"a")
        return workspace.directory


def judged(line, **counts):
    return replace(line, run=replace(line.run, state=RunState.DONE), tally=Tally(**counts), attended=True)


@pytest.mark.parametrize(
    ("counts", "tab", "words"),
    [
        ({"met": 2}, "verdicts", "the gate has not answered yet"),
        ({"met": 2}, "runs", "{findings} Findings says whether run 1 may leave"),
        ({"met": 2, "not_met": 1}, "runs", "{findings} Findings says why 1 of 3 thresholds is not met"),
        ({"met": 2, "not_computed": 1}, "runs", "says why 1 of 3 thresholds is not computed"),
        ({"met": 1, "not_met": 2, "not_computed": 1}, "map", "says why 2 of 4 thresholds are not met"),
        ({"not_computed": 2}, "map", "says why 2 of 2 thresholds are not computed"),
        ({"not_met": 1}, "map", "says why the threshold is not met"),
        ({"met": 2, "not_met": 1}, "verdicts", "{open} explains it"),
        ({}, "results", "run 1 has no limits"),
    ],
)
def test_after_a_run_the_verdicts_say_what_is_next(line, counts, tab, words):
    said = next_step(Standing(WHOLE), judged(line, **counts), tab)
    assert words in said
    assert "{release_run}" not in said


@pytest.mark.parametrize(
    ("answer", "tab", "words"),
    [
        ("no", "verdicts", "{open} explains what blocks"),
        ("no", "runs", "{findings} Findings says what blocks"),
        ("to be judged", "verdicts", "{open} explains what you have to judge"),
        ("to be judged", "map", "{findings} Findings says what you have to judge"),
        ("yes", "verdicts", "{release_run} releases"),
        ("yes", "runs", "{release_run} releases"),
    ],
)
def test_only_the_gate_s_yes_leads_to_a_release_however_many_thresholds_are_met(line, answer, tab, words):
    said = next_step(Standing(WHOLE, answers={1: answer}), judged(line, met=2), tab)
    assert words in said
    assert ("{release_run}" in said) is (answer == "yes")
    assert "{release_run}" not in next_step(Standing(WHOLE, answers={7: "yes"}), judged(line, met=2), tab)


def test_what_blocks_comes_before_thresholds_and_limits(line):
    for counts in ({}, {"met": 1, "not_met": 1}, {"not_computed": 1}):
        assert "what blocks" in next_step(Standing(WHOLE, answers={1: "no"}), judged(line, **counts), "verdicts")


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
            assert "{release_run}" not in next_step(Standing(WHOLE), judged(line, **counts), tab)


@pytest.mark.parametrize(
    ("state", "attended", "words"),
    [
        (RunState.RUNNING, True, "keeps running if you quit"),
        (RunState.RUNNING, False, "nobody works on run 1"),
        (RunState.INTERRUPTED, True, "{interrupt} in Runs resumes run 1"),
        (RunState.CANCELLED, True, "{interrupt} in Runs resumes run 1"),
        (RunState.FAILED, True, "{plan} Plan to fix why run 1 failed"),
    ],
)
def test_a_run_that_is_not_done_says_what_can_be_done(line, state, attended, words):
    here = replace(line, run=replace(line.run, state=state, error="x\x1b[2J"), attended=attended)
    said = next_step(Standing(WHOLE), here, "runs")
    assert words in said.replace(" ({runs})", "")
    assert "\x1b" not in said


def test_a_released_run_says_so(built_workspace, line):
    with Workspace.open(built_workspace) as workspace:
        assert standing_of(workspace, line.run.project_id).released == frozenset()
        with workspace.writing() as connection:
            append_act(connection, AuditAct.RUN_RELEASED, "run 1")
        standing = standing_of(workspace, line.run.project_id)
    assert standing.released == {1}
    assert "run 1 was released" in next_step(standing, judged(line, met=1), "verdicts")


@pytest.mark.parametrize("tab", ["runs", "data", "plan"])
def test_every_key_that_a_step_names_is_known_by_its_binding(tab):
    lacks = [{}, {"roles": False}, {"makers": 0}, {"measures": 0}, {"thresholds": 0}]
    for said in (next_step(Standing(replace(WHOLE, **lack)), None, tab) for lack in lacks):
        for name in re.findall(r"\{([\w.]+)\}", said):
            assert name in BY_NAME, said


@pytest.mark.parametrize("tab", ["data", "plan"])
def test_a_plan_that_a_run_has_done_is_not_said_to_be_run_next(line, tab):
    done = judged(line, met=2, not_met=1)
    own = Standing(WHOLE, toml=line.run.recipe_toml, datasets=frozenset({line.run.dataset_id}))
    of_plan = own.beside([done])
    assert of_plan.done_by == done
    assert next_step(of_plan, done, tab) == "this plan is run 1; " + next_step(of_plan, done, "runs")
    assert "{run}" not in next_step(of_plan, done, tab)
    # another plan, other records, or a run that came to nothing, is no run of this plan
    nothing = [replace(done, run=replace(done.run, state=state)) for state in (RunState.FAILED, RunState.CANCELLED)]
    others = [
        replace(own, toml=own.toml + "\nlabel = 'x'"),
        replace(own, datasets=frozenset({99})),
        replace(own, toml="[["),
    ]
    for standing in (*(one.beside([done]) for one in others), own.beside(nothing)):
        assert standing.done_by is None
        assert "{run} in Plan" in next_step(standing, done, tab)


def test_a_plan_is_known_by_its_fingerprint_however_it_is_written(line):
    done = judged(line, met=1)
    other = Standing(WHOLE, toml="# the same in other words", datasets=frozenset({line.run.dataset_id}))
    assert other.beside([done]).done_by is None
    assert other.beside([done], done.run.recipe_sha256).done_by == done
    same = replace(other, toml=done.run.recipe_toml)
    assert same.beside([done], "0" * 64).done_by is None, "the fingerprint is of what stands there now"


def test_keys_that_release_are_not_named_for_another_run_than_the_tabs_show(line):
    done = judged(line, met=2)
    other = replace(done, run=replace(done.run, id=7))
    standing = Standing(WHOLE, toml=line.run.recipe_toml, datasets=frozenset({line.run.dataset_id})).beside([done])
    for shown in (None, other):
        said = next_step(standing, shown, "plan")
        assert said == "this plan is run 1, done: {runs} Runs shows it"
    assert "{findings} Findings says whether run 1 may leave" in next_step(standing, done, "plan")
    assert "{release_run}" in next_step(replace(standing, answers={1: "yes"}), done, "plan")


def test_a_run_of_the_plan_that_goes_on_is_said_to_go_on(line):
    running = replace(line, run=replace(line.run, state=RunState.RUNNING), attended=True)
    standing = Standing(WHOLE, toml=line.run.recipe_toml, datasets=frozenset({line.run.dataset_id})).beside([running])
    assert "run 1 keeps running if you quit" in next_step(standing, running, "plan")
    assert "{run}" not in next_step(standing, running, "plan")


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
        assert standing_of(workspace, 1).datasets == {1, 2}
        line = run_line(workspace, 1)
    drawn, others = (judged(replace(line, run=replace(line.run, dataset_id=number)), met=1) for number in (2, 3))
    standing = Standing(WHOLE, toml=line.run.recipe_toml, datasets=frozenset({1, 2}))
    assert standing.beside([drawn]).done_by == drawn
    assert standing.beside([others]).done_by is None
