"""A search carried out: its looks are runs, its judgement reads records that no look has read, and a killed one goes on to the same plans."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from keyed_workspace import KEY
from prepared_tables import variables_of

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.budget import SEARCHED, privacy_accounts
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.files import find_source, read_file_microdata
from sfumato.workspace.jobs.queue import stop_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plan.alternatives import (
    ADDED_LEVER,
    BINS,
    COARSENING_LEVER,
    JOINT_LEVER,
    PROTECTION_LEVER,
    WEIGHTS_LEVER,
    build_levers,
)
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.reporting.searches import conclusion_lines
from sfumato.workspace.service import searching
from sfumato.workspace.service.searching import (
    OUT_OF_MINUTES,
    adopt_plan,
    advance_search,
    begin_search,
    search_outcome,
    search_progress,
)
from sfumato.workspace.store.artefacts import read_released_dataset
from sfumato.workspace.store.runs import RunState, find_run
from sfumato.workspace.store.searches import count_ended_looks, stored_looks
from sfumato.workspace.store.workspace import Workspace

RECORDS = 2600
LEVERS = (
    PROTECTION_LEVER,
    "method of income",
    "method of sick",
    "order of synthesis",
    ADDED_LEVER,
    JOINT_LEVER,
    BINS,
    WEIGHTS_LEVER,
    "m",
    "cart.minbucket",
    "cart.smoothing",
)


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of people, each with a number of its own."""
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, RECORDS)
    frame = pd.DataFrame(
        {
            "number": np.arange(RECORDS) + 0.5,
            "age": age,
            "region": rng.choice(["north", "south", "east"], RECORDS),
            "income": np.round(np.exp(rng.normal(9 + age / 90, 0.5)), 0),
            "sick": rng.choice(["no", "yes"], RECORDS, p=[0.8, 0.2]),
        }
    )
    path = tmp_path_factory.mktemp("people") / "people.csv"
    frame.to_csv(path, index=False)
    return path


def plan(people: Path, **more: Any) -> dict[str, Any]:
    return {
        "title": "people",
        "data": {"file": str(people), "holdout": 0.2},
        "variables": variables_of(
            "age: count quasi_identifier",
            "region: categorical quasi_identifier",
            "income: continuous sensitive",
            "sick: binary sensitive",
        ),
        "release": {"m": 2, "seed": 3},
        "synthesis": [
            {"method": "cart", "target": "income", "predictors": ["age", "region"], "smoothing": True},
            {"method": "cart", "target": "sick", "predictors": ["age", "region", "income"]},
        ],
        "measure": [
            {"method": "utility.propensity"},
            {"method": "risk.identification", "known": ["age", "region"], "synthesised": ["sick"]},
            {"method": "risk.attribute_inference", "known": ["age", "region"], "sensitive": ["sick"]},
        ],
        "threshold": [{"value": "risk.identification.true_match_rate", "max": 0.2}],
        "search": {"looks": 10, "levers": {ADDED_LEVER: []}},
        **more,
    }


def to_the_end(workspace: Workspace, search_id: int) -> None:
    while advance_search(workspace, search_id):
        run_worker(workspace.directory, idle=0)


def tables_of(workspace: Workspace, search_id: int) -> list[tuple[int, str, str]]:
    """Of each look the names and hashes of what its run left."""
    return [
        (look.number, row[0], row[1])
        for look in stored_looks(workspace, search_id).values()
        for row in workspace.connection.execute(
            "SELECT name, sha256 FROM artefact WHERE run_id = ? ORDER BY name", (look.run_id,)
        )
    ]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory, people: Path) -> Path:
    """The directory of a workspace whose search 1 has ended: to be copied."""
    directory = tmp_path_factory.mktemp("ended") / "workspace"
    with Workspace.create(directory, KEY) as made:
        to_the_end(made, begin_search(made, plan(people)))
    return directory


@pytest.fixture
def searched(tmp_path: Path, ended: Path) -> Iterator[Workspace]:
    """A workspace of its own whose search 1 has ended."""
    shutil.copytree(ended, tmp_path / "searched")
    with Workspace.open(tmp_path / "searched") as copied:
        yield copied


@pytest.mark.slow
def test_a_search_ends_with_finalists_whose_plan_can_be_taken(searched: Workspace):
    workspace, search_id = searched, 1
    found = search_outcome(workspace, search_id)
    assert 2 <= len(found.finalists) <= 5
    assert found.n_tried <= 10
    assert found.n_failed == 0
    assert found.objective == "utility.propensity.s_pmse"
    assert all(one.full_utility is not None and len(one.verdicts) == 1 for one in found.finalists)
    run = find_run(workspace, found.finalists[0].run_id)
    assert run.recipe.search is not None
    assert run.recipe.search.looked_at == found.n_tried
    assert run.recipe.data.screen is None
    assert [step.method.key for step in run.recipe.measures][-1] == "risk.attribute_inference"
    adopt_plan(workspace, run.id)
    draft = find_draft(workspace, run.project_id)
    assert draft is not None
    assert Recipe.from_toml(draft.toml) == run.recipe
    assert advance_search(workspace, search_id) == []


@pytest.mark.slow
def test_the_progress_of_a_search_has_looks_the_best_so_far_and_the_time_left(
    tmp_path: Path, workspace: Workspace, people: Path
):
    search_id = begin_search(workspace, plan(people))
    begun = search_progress(workspace, search_id)
    assert (len(begun.ended), begun.best, begun.seconds_left, begun.has_ended) == (0, None, None, False)
    assert begun.looks_text == f"0 of {begun.n_planned} looks"
    assert begun.n_planned <= 10
    advance_search(workspace, search_id)
    run_worker(workspace.directory, idle=0)
    first = search_progress(workspace, search_id)
    screened = [look.run_id for look in stored_looks(workspace, search_id).values()]
    assert len(first.ended) == len(screened) == count_ended_looks(workspace, search_id)
    assert first.best is not None
    assert first.seconds_left is not None
    assert first.seconds_left > 0
    assert "left" in first.text
    assert first.best.n_limits == 1
    assert first.best.people.startswith("people found for certain")
    assert " of 1,000" in first.best.people
    assert first.best.utility.partition(":")[0].lower().startswith("difference as a multiple of chance")
    assert [one.number for one in first.new] == sorted(first.ended)
    assert f"look {first.new[0].number} of {first.n_planned}: " in first.new_look_lines[0]
    assert f"best so far: look {first.best.number}" in first.new_look_lines[-1]
    assert not search_progress(workspace, search_id, first.ended).new_look_lines
    to_the_end(workspace, search_id)
    last = search_progress(workspace, search_id, first.ended)
    assert last.has_ended
    assert last.time_left_text == ""
    assert len(last.ended) == last.n_planned
    assert len(last.new) == len(last.ended) - len(first.ended)
    with Workspace.open(workspace.directory, read_only=True) as reader:
        assert search_progress(reader, search_id, first.ended) == last, "it writes nothing"


@pytest.mark.slow
def test_a_search_makes_a_quasi_identifier_coarser_where_nothing_else_hides_the_people(
    workspace: Workspace, people: Path
):
    """Whoever knows the number of a person, which is kept, finds the row: only wider steps of it help."""
    known = {"method": "risk.identification", "known": ["number"], "kept_only": True}
    table = plan(
        people,
        measure=[{"method": "utility.propensity"}, known],
        threshold=[{"value": "risk.identification.true_match_rate", "max": 0.02}],
        search={"looks": 10, "levers": {name: [] for name in (*LEVERS, COARSENING_LEVER.format("age"))}},
    )
    table["variables"]["number"] = {"kind": "continuous", "role": "quasi_identifier"}
    search_id = begin_search(workspace, table)
    to_the_end(workspace, search_id)
    found = {one.label: one for one in search_outcome(workspace, search_id).finalists}
    passing = [label for label, one in found.items() if all(verdict.outcome == "met" for verdict in one.verdicts)]
    assert passing
    assert all(label.startswith("coarsening of number ") for label in passing)
    run = find_run(workspace, found[passing[0]].run_id)
    width = run.recipe.form.recode["number"].width
    assert width
    released = read_released_dataset(workspace, run.id, run.recipe, 1)
    assert released is not None
    assert (released.frame["number"] % width == 0).all()
    assert found[passing[0]].verdicts[0].observed == 0
    adopt_plan(workspace, run.id)
    draft = find_draft(workspace, run.project_id)
    assert draft is not None
    assert f"number = {width:g}" in draft.toml


@pytest.mark.slow
def test_the_utility_is_that_of_its_own_method(searched: Workspace, monkeypatch: pytest.MonkeyPatch):
    """Two methods may have an output of one name: the best is chosen by the one that the plan asks for."""

    def row(method: str, value: float, dataset: str = "synthetic", draw: int | None = None) -> Row:
        return Row("utility", method, "s_pmse", "", dataset, draw, None, value)

    rows = [row("another", 9.0), row("propensity", 8.0, "confidential"), row("propensity", 7.0, draw=1)]
    monkeypatch.setattr(searching, "read_result_rows", lambda *_: [*rows, row("propensity", 1.5)])
    assert {one.full_utility for one in search_outcome(searched, 1).finalists} == {1.5}


@pytest.mark.slow
def test_no_look_before_the_judgement_reads_the_records_that_are_held_out(workspace: Workspace, people: Path):
    table = plan(people, search={"looks": 10})
    table["variables"] = {"number": {"kind": "continuous"}, **table["variables"]}
    search_id = begin_search(workspace, table)
    to_the_end(workspace, search_id)
    read, judged = set(), set()
    for look in stored_looks(workspace, search_id).values():
        if look.run_id is None:
            continue
        run = find_run(workspace, look.run_id)
        data = read_file_microdata(
            find_source(str(people)),
            run.recipe.data,
            run.recipe.schema,
            run.recipe.seed,
            key=workspace.read_workspace_key(),
        )
        assert data.controls is not None
        members, controls = set(data.frame["number"]), set(data.controls.frame["number"])
        assert not members & controls
        stored = workspace.read_stored_dataset(workspace.find_dataset(run.dataset_id))
        assert set(stored.frame["number"]) == members
        if run.recipe.data.screen is None:
            judged |= controls
        else:
            assert len(members | controls) == run.recipe.data.screen
            read |= members | controls
    assert len(judged) == round(0.2 * RECORDS)
    assert read
    assert not judged & read


@pytest.mark.slow
@pytest.mark.parametrize(
    "holdout",
    # people who are held out change who is in the sample, not how its random numbers are drawn
    [pytest.param({}, id="no hold-out", marks=pytest.mark.study), pytest.param({"holdout": 0.2}, id="hold-out")],
)
def test_finalists_are_judged_on_datasets_that_no_look_has_seen(
    workspace: Workspace, people: Path, tmp_path: Path, holdout: dict[str, float]
):
    """Of few records the sample is all of them: a judgement with the same random numbers would only repeat what the search saw."""
    few = tmp_path / "few.csv"
    pd.read_csv(people).head(600).to_csv(few, index=False)
    table = plan(people, data={"file": str(few), **holdout})
    table["measure"] = table["measure"][:2]
    search_id = begin_search(workspace, table)
    to_the_end(workspace, search_id)
    drawn: dict[bool, set[str]] = {True: set(), False: set()}
    for look, name, sha256 in tables_of(workspace, search_id):
        if name.startswith("draw/"):
            run_id = stored_looks(workspace, search_id)[look].run_id
            assert run_id is not None
            drawn[find_run(workspace, run_id).recipe.data.screen is None].add(sha256)
    assert drawn[True]
    assert drawn[False]
    assert not drawn[True] & drawn[False]
    found = search_outcome(workspace, search_id).finalists
    assert all(one.search_utility != one.full_utility for one in found)
    assert {find_run(workspace, one.run_id).recipe.seed for one in found} == {3}


@pytest.mark.slow
def test_an_interrupted_search_goes_on_to_the_same_plans_and_bytes(searched: Workspace, people: Path):
    workspace, whole = searched, 1
    stopped = begin_search(workspace, plan(people))
    rng = random.Random(4)
    while runs := advance_search(workspace, stopped):
        assert advance_search(workspace, stopped) == runs, "a look that was entered is not entered again"
        if rng.random() < 0.7:
            stop_run(workspace, rng.choice(runs), RunState.INTERRUPTED)
        run_worker(workspace.directory, idle=0)
    assert tables_of(workspace, stopped) == tables_of(workspace, whole)
    first, second = search_outcome(workspace, whole), search_outcome(workspace, stopped)
    assert [(one.label, one.full_utility, one.verdicts) for one in first.finalists] == [
        (one.label, one.full_utility, one.verdicts) for one in second.finalists
    ]


@pytest.mark.slow
def test_a_search_whose_minutes_are_used_up_ends_its_looks_in_hand_and_judges_what_fits(
    workspace: Workspace, people: Path, monkeypatch: pytest.MonkeyPatch
):
    """By a clock by which each run takes a minute: three looks are begun, of two plans, and one finalist is judged."""

    def clock(workspace: Workspace, search_id: int, look: int | None = None) -> float:
        return 60.0 * (
            1 if look else sum(one.run_id is not None for one in stored_looks(workspace, search_id).values())
        )

    monkeypatch.setattr(searching, "seconds_worked", clock)
    search_id = begin_search(workspace, plan(people), minutes=4.5)
    to_the_end(workspace, search_id)
    looks = stored_looks(workspace, search_id)
    tried = [one for one in looks.values() if one.run_id is not None]
    found = search_outcome(workspace, search_id)
    assert [one.number for one in tried][:2] == [1, 2]
    assert (found.has_ended, len(found.finalists)) == (True, 1)
    assert found.n_failed == 0
    assert (found.not_begun, found.not_judged) == (2, 1)
    assert found.n_tried == 2
    assert all(one.reason == OUT_OF_MINUTES for one in looks.values() if one.run_id is None)
    assert "minutes were used up" in conclusion_lines(found)[0]
    monkeypatch.setattr(searching, "seconds_worked", lambda *_: 0.0)
    assert advance_search(workspace, search_id) == [], "what was not begun stays so: an ended search has its answer"
    assert stored_looks(workspace, search_id) == looks
    assert search_outcome(workspace, search_id) == found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("known", "refused", "methods"),
    [
        ("number", 1, ("linear_regression", "multinomial_logistic")),
        ("region", 0, ("linear_regression", "multinomial_logistic")),
        ("region", 0, ("cart", "cart")),
    ],
)
def test_a_search_weighs_the_records_of_each_look_by_their_own_risk(
    workspace: Workspace, people: Path, known: str, refused: int, methods: tuple[str, str]
):
    """Whoever knows the number of a person knows who it is: at strength 1 no record would say anything, and that plan is passed over."""
    names = {"number": "continuous", "age": "count", "region": "categorical", "income": "continuous", "sick": "binary"}
    steps = [
        {"method": methods[0], "target": "income", "predictors": ["age"]},
        {"method": methods[1], "target": "sick", "predictors": ["age"]},
    ]
    if methods[0] == "linear_regression":
        steps[0]["transform"] = "log"
    fixed = (
        "m",
        PROTECTION_LEVER,
        ADDED_LEVER,
        JOINT_LEVER,
        BINS,
        "order of synthesis",
        "method of income",
        "method of sick",
        *LEVERS[-2:],
    )
    fixed += (COARSENING_LEVER.format(known),) if known == "number" else ()
    table = plan(people, synthesis=steps, search={"looks": 10, "levers": {key: [] for key in fixed}})
    roles = {name: "quasi_identifier" if name == known else "other" for name in names}
    table["variables"] = {name: {"kind": kind, "role": roles[name]} for name, kind in names.items()}
    table["measure"] = table["measure"][:2]
    search_id = begin_search(workspace, table)
    to_the_end(workspace, search_id)
    found = search_outcome(workspace, search_id)
    expected = {"unchanged", f"{WEIGHTS_LEVER} strength 0.5", f"{WEIGHTS_LEVER} strength 1"}
    assert {one.label for one in found.finalists} == (
        expected if not refused else expected - {f"{WEIGHTS_LEVER} strength 1"}
    )
    assert found.n_failed == refused
    assert found.n_tried == 3


@pytest.mark.slow
def test_a_search_that_another_version_began_says_what_its_looks_changed_and_goes_on_no_more(
    searched: Workspace, monkeypatch: pytest.MonkeyPatch
):
    """Levers in another order give the same numbers other plans: a label of this version would be a wrong one."""
    workspace, search_id = searched, 1
    before = search_outcome(workspace, search_id)
    searching._parse_search_plan.cache_clear()
    monkeypatch.setattr(searching, "build_levers", lambda *given: build_levers(*given)[::-1])
    after = search_outcome(workspace, search_id)
    assert [(one.run_id, one.label) for one in after.finalists] == [(one.run_id, one.label) for one in before.finalists]
    assert [one.search_utility for one in after.finalists] == [one.search_utility for one in before.finalists]
    assert (after.n_tried, after.missed_limits, after.has_ended) == (before.n_tried, before.missed_limits, True)
    with pytest.raises(BadInput, match="another order; begin a new one"):
        advance_search(workspace, search_id)
    searching._parse_search_plan.cache_clear()


@pytest.mark.slow
def test_the_first_sample_leaves_time_for_a_second_one_by_which_the_gate_is_asked(
    workspace: Workspace, people: Path, monkeypatch: pytest.MonkeyPatch
):
    """By a clock by which each run takes half a minute, six minutes in all: four of twelve plans are screened, and the best one is looked at again."""

    def clock(workspace: Workspace, search_id: int, look: int | None = None) -> float:
        return 30.0 * (
            1 if look else sum(one.run_id is not None for one in stored_looks(workspace, search_id).values())
        )

    monkeypatch.setattr(searching, "seconds_worked", clock)
    search_id = begin_search(workspace, plan(people, search={"looks": 40, "levers": {ADDED_LEVER: []}}), minutes=6.0)
    to_the_end(workspace, search_id)
    looks = stored_looks(workspace, search_id)
    records = [find_run(workspace, one.run_id).recipe.data.screen for one in looks.values() if one.run_id is not None]
    assert records.count(1000) == 4
    assert records.count(2080) >= 2
    asked = [one for one in looks.values() if one.blocks is not None]
    assert len(asked) == len([one for one in records if one != 1000])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"threshold": []}, "no limits"),
        ({"synthesis": [], "threshold": [], "measure": [], "release": {"released": ["sick"]}}, "makes no release"),
        ({"search": {"objective": "risk.identification.expected_match_risk"}}, "is no utility that the plan measures"),
        (
            {"search": {"levers": {name: [] for name in LEVERS}}},
            "no step of the plan",
        ),
        ({"search": {"levers": {"cart.leaves": [5]}}}, "no such lever"),
        ({"search": {"looks": 3}}, "at least 10"),
        ({"companions": ["ce"]}, "a search looks at one plan alone"),
        (
            {
                "synthesis": [{"method": "linear_regression", "target": "income", "predictors": ["age"]}],
                "weights": {"run": 1},
                "measure": [{"method": "utility.propensity"}],
                "threshold": [{"value": "utility.propensity.s_pmse", "max": 10}],
            },
            r"weights.run: a search looks at samples",
        ),
    ],
)
def test_what_cannot_be_searched_is_refused_and_nothing_is_stored(workspace: Workspace, people: Path, change, said):
    with pytest.raises(BadInput, match=said):
        begin_search(workspace, plan(people, **change))
    assert workspace.connection.execute("SELECT count(*) FROM search").fetchone()[0] == 0


def test_no_epsilon_is_claimed_of_a_plan_that_a_search_chose(people: Path):
    table = plan(people, measure=[], threshold=[], search={"looked_at": 12})
    table["synthesis"] = [{"method": "perturbed_gibbs", "target": ["region", "sick"], "epsilon": 1.0}]
    table["variables"] = {name: table["variables"][name] for name in ("region", "sick")}
    for searched in (True, False):
        recipe = Recipe.from_table(table if searched else {**table, "search": {"looks": 12}})
        data = read_file_microdata(find_source(str(people)), recipe.data, recipe.schema, 1, key=b"")
        ((_, account),) = privacy_accounts(recipe, data, secret=True)
        assert (SEARCHED in account.uncovered) is searched


def test_the_section_is_written_back_as_it_was_read(people: Path):
    recipe = Recipe.from_table(plan(people))
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    assert read_toml(recipe.to_toml())["search"] == {"looks": 10, "levers": {ADDED_LEVER: []}}


def test_what_a_plan_keeps_loses_nothing_and_what_chance_explains_is_no_gain(
    workspace: Workspace, people: Path, monkeypatch: pytest.MonkeyPatch
):
    """Run 1 makes income, run 2 the age too; run 3 is as good as chance allows."""

    def row(method: str, measure: str, target: str, value: float, baseline: float | None = None) -> Row:
        return Row("utility", method, measure, target, "synthetic", None, None, value, baseline=baseline)

    gap = "max_abs_difference"
    rows = {
        1: [row("ecdf", gap, "income", 0.03, 0.02), row("propensity", "s_pmse", "", 4.0)],
        2: [row("ecdf", gap, "income", 0.025, 0.02), row("ecdf", gap, "age", 0.05, 0.02), row("propensity", "s_pmse", "", 0.98)],
        3: [row("ecdf", gap, "income", 0.001, 0.0299), row("propensity", "s_pmse", "", 1.05)],
    }  # fmt: skip
    table = plan(people)
    table["measure"] = [{"method": "utility.ecdf"}, *table["measure"][:2]]
    search = searching._SearchState.from_workspace(workspace, begin_search(workspace, table))
    assert searching.compared_utilities(search.recipe) == ("utility.propensity.s_pmse", f"utility.ecdf.{gap}")
    monkeypatch.setattr(searching, "read_result_rows", lambda _, run_id: rows[run_id])
    assert search.utility_losses(2) == pytest.approx({"utility.propensity.s_pmse": 0.1, f"utility.ecdf.{gap}": 0.075})
    found = {
        (one, other): {gain.key: gain for gain in searching._utility_gains(search, one, other)}
        for one in rows
        for other in rows
    }
    better, worse = found[2, 1]["utility.propensity.s_pmse"], found[2, 1][f"utility.ecdf.{gap}"]
    assert (better.before, better.after, better.vote) == (4.0, 0.98, 1)
    assert (worse.before, worse.after, worse.vote) == (pytest.approx(0.015), pytest.approx(0.0375), -1), (
        "of both variables"
    )
    assert [gain.vote for gain in found[3, 1].values()] == [1, 0]
    assert [gain.vote for gain in found[3, 2].values()] == [0, 1]
