"""Control records of a run: stored, sealed and committed to beside it, given to attacks, used again with it, in nothing public."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.cli.summary import run_summary_text
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.jobs.runs import reenter_run, result_object
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.plan.drafts import draft_of_run, find_draft
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.release.commitment import commitment_of_run
from sfumato.workspace.release.report import report_page
from sfumato.workspace.release.verification import find_origin, verify_release
from sfumato.workspace.service.deletion import delete_run
from sfumato.workspace.service.importing import import_file
from sfumato.workspace.service.prepare import (
    PreparedRun,
    prepare_companion_runs,
    prepare_evaluation,
    prepare_plan,
    prepare_run,
)
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.artefacts import controls_hash, count_control_records, read_released_dataset
from sfumato.workspace.store.runs import RunState, find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.integrity import NotAsSealed, verify_run
from sfumato.workspace.upkeep.maintenance import named_table_hashes
from sfumato.workspace.views.results import read_result_rows
from sfumato.workspace.views.run_detail import read_run_detail

RECIPE: dict[str, Any] = {
    "title": "Held out",
    "data": {"file": "people.csv", "holdout": 0.4},
    "variables": variables_of(
        "area: categorical quasi_identifier", "age: count quasi_identifier", "income: continuous sensitive"
    ),
    "release": {"m": 2, "seed": 3},
    "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["area", "age"]}],
    "measure": [
        {"method": "risk.singling_out", "most": 60},
        {"method": "risk.identification", "radius": {"income": "5%"}},
    ],
}
MARK = "Zqxjkvbw"
"""A level that only control records have."""


def people() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    age = rng.integers(18, 90, 100)
    return pd.DataFrame(
        {
            "area": rng.choice(["north", "south"], 100),
            "age": age,
            "income": np.round(900 + 10 * age + 200 * rng.normal(size=100), 2),
            "held": np.where(np.arange(100) % 4 == 0, "yes", "no"),
        }
    )


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace with a key of its own, and the file beside it."""
    people().to_csv(tmp_path / "people.csv", index=False)
    with Workspace.create(tmp_path / "own", bytes(range(32))) as made:
        yield made


def prepared(own: Workspace, **changes: Any) -> PreparedRun:
    path = own.directory.parent / "recipe.toml"
    table = {**RECIPE, **changes}
    table["data"] = {**table["data"], "file": str(own.directory.parent / "people.csv")}
    path.write_text(Recipe.from_table(table).to_toml(), "utf-8")
    return prepare_run(find_recipe(str(path)), key=own.read_workspace_key())


def run_to_end(own: Workspace, **changes: Any) -> int:
    run_id = prepared(own, **changes).enter(own)
    run_worker(own.directory, idle=0)
    assert find_run(own, run_id).state is RunState.DONE, find_run(own, run_id).error
    return run_id


def releases(own: Workspace, run_id: int) -> list[Microdata]:
    recipe = find_run(own, run_id).recipe
    return [made for draw in (1, 2) if (made := read_released_dataset(own, run_id, recipe, draw))]


@pytest.mark.slow
def test_a_run_is_made_without_its_controls_and_attacked_with_them(own: Workspace) -> None:
    run_id, entry = run_to_end(own), prepared(own)
    assert (count_control_records(own, run_id), read_run_detail(own, run_id).n_controls) == (40, 40)
    assert own.find_dataset(find_run(own, run_id).dataset_id).records == 60
    alone = execute_run(entry.recipe, entry.data, key=own.read_workspace_key())
    for ours, theirs in zip(releases(own, run_id), alone.releases, strict=True):
        assert len(ours) == 60
        pd.testing.assert_frame_equal(ours.frame, theirs.frame)
    assert [row.to_dict() for row in read_result_rows(own, run_id)] == [row.to_dict() for row in alone.rows]
    (attack,) = [
        one
        for one in result_object(own, run_id)["attacks"]
        if one["params"]["kind"] == "multivariate" and one["dataset"] == "synthetic" and "people" not in one["params"]
    ]
    assert attack["excess"]["lower"] <= attack["excess"]["value"] <= attack["excess"]["upper"]
    for shown in (run_summary_text(own, find_run(own, run_id), every_setting=True), report_page(own, run_id)):
        assert "40 hold-out records, kept from synthesis to calibrate attacks" in shown
        assert "Attacks beside control records" in shown


@pytest.mark.slow
def test_a_run_is_repeated_with_its_own_controls_though_the_file_is_gone(own: Workspace) -> None:
    first = run_to_end(own)
    (own.directory.parent / "people.csv").unlink()
    again = reenter_run(own, first)
    planned = prepare_plan(own, draft_of_run(own, first)).enter(own)
    run_worker(own.directory, idle=0)
    for other in (again, planned):
        assert controls_hash(own, other) == controls_hash(own, first) != ""
        for one, two in zip(releases(own, first), releases(own, other), strict=True):
            pd.testing.assert_frame_equal(one.frame, two.frame)
        assert [row.to_dict() for row in read_result_rows(own, other)] == [
            row.to_dict() for row in read_result_rows(own, first)
        ]
        verify_run(own, other, strict=True)
    draft = draft_of_run(own, first)
    with pytest.raises(BadInput, match="no such file"):
        prepare_plan(own, draft.with_text(draft.toml.replace("holdout = 0.4", "holdout = 0.3")))


@pytest.mark.slow
def test_records_at_risk_of_the_same_hold_out_say_less(own: Workspace) -> None:
    first = run_to_end(own)
    weights = {"run": first, "measure": "risk.identification"}
    second = run_to_end(own, weights=weights)
    assert controls_hash(own, second) == controls_hash(own, first)
    with pytest.raises(BadInput, match=r"weights.run: run 1 is of other records"):
        prepared(own, weights=weights, data={"holdout": 0.3}).enter(own)


@pytest.mark.slow
def test_controls_that_somebody_changed_or_took_away_are_found_out(own: Workspace) -> None:
    run_id = run_to_end(own)
    verify_run(own, run_id, strict=True)
    other = own.tables.write_microdata(own.read_stored_dataset(own.find_dataset(find_run(own, run_id).dataset_id)))
    with own.write_transaction() as connection:
        connection.execute("UPDATE artefact SET sha256 = ? WHERE run_id = ? AND name = 'controls'", (other, run_id))
    for act in (lambda: verify_run(own, run_id, strict=True), lambda: reenter_run(own, run_id)):
        with pytest.raises(NotAsSealed, match="table controls"):
            act()
    lost = prepared(own).enter(own)
    with own.write_transaction() as connection:
        connection.execute("DELETE FROM artefact WHERE run_id = ? AND name = 'controls'", (lost,))
    run_worker(own.directory, idle=0)
    assert find_run(own, lost).state is RunState.FAILED
    assert "the control records of the run are missing" in find_run(own, lost).error


@pytest.mark.slow
def test_controls_leave_with_the_last_run_that_has_them(own: Workspace) -> None:
    first = run_to_end(own)
    sha256, again = controls_hash(own, first), reenter_run(own, first)
    run_worker(own.directory, idle=0)
    delete_run(own, first)
    assert sha256 in named_table_hashes(own)
    delete_run(own, again)
    assert sha256 not in named_table_hashes(own)


@pytest.mark.slow
def test_a_release_commits_to_controls_and_no_public_file_tells_of_them(own: Workspace, tmp_path: Path) -> None:
    table = people()
    table.loc[table["held"] == "yes", "area"] = MARK
    table.to_csv(tmp_path / "people.csv", index=False)
    run_id = run_to_end(own, data={"holdout": "held"})
    plan, run = plan_release(own, run_id), find_run(own, run_id)
    assert plan.controls_sha256 == controls_hash(own, run_id) != ""
    bound = [
        commitment_of_run(run, own.find_dataset(run.dataset_id), plan.tables, "p", "", c)
        for c in (plan.controls_sha256, "", "0")
    ]
    assert len({one.hmac_hex(b"k", {}) for one in bound}) == 3
    assert "controls_sha256" not in bound[1].to_table()
    found = examine_release(own, plan, read_policy_of_workspace(own.directory))
    write_run_release(
        own,
        run_id,
        tmp_path / "out",
        reason="released for a test",
        waive={one.check: "released for a test" for one in found.unwaived_findings},
    )
    inside = json.loads((tmp_path / "out/internal/commitments.json").read_text("utf-8"))
    assert inside["committed"]["controls_sha256"] == plan.controls_sha256
    assert find_origin(own, verify_release(tmp_path / "out")).run == find_run(own, run_id)
    everything = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    for path in everything:
        content = path.read_bytes()
        assert MARK.encode() not in content, path.name
        if path.is_relative_to(tmp_path / "out/public"):
            for telling in (plan.controls_sha256.encode(), b"singling", b"held out", b"holdout", b"excess"):
                assert telling not in content.lower(), (path.name, telling)
    assert any(b"marks are the hold-out: no release is made of them" in path.read_bytes() for path in everything)


@pytest.mark.slow
def test_files_of_other_tools_have_controls_by_a_column_alone(own: Workspace, tmp_path: Path) -> None:
    """A share that is drawn now was among the records that the other tool had: a control like that hides every leak."""
    table = people()
    table[table["held"] == "no"].drop(columns="held").to_csv(tmp_path / "released.csv", index=False)

    def evaluated(holdout: float | str) -> PreparedRun:
        path = tmp_path / "plan.toml"
        path.write_text(Recipe.from_table({**RECIPE, "data": {"holdout": holdout}}).to_toml(), "utf-8")
        files = [str(tmp_path / name) for name in ("people.csv", "released.csv")]
        return prepare_evaluation(find_recipe(str(path)), files[0], files[1:], key=own.read_workspace_key())

    with pytest.raises(BadInput, match=r'^data.holdout: whoever made these files .* holdout = "column"'):
        evaluated(0.4)
    run_id = evaluated("held").enter(own)
    run_worker(own.directory, idle=0)
    assert count_control_records(own, run_id) == 25
    found = {
        row.params["kind"]: row.value
        for row in read_result_rows(own, run_id)
        if row.measure == "attack_success" and row.draw == 1
    }
    assert found == {"univariate": 1.0, "multivariate": 1.0}
    assert controls_hash(own, reenter_run(own, run_id)) == controls_hash(own, run_id)


def test_the_plan_of_an_import_may_hold_records_out(own: Workspace, tmp_path: Path) -> None:
    """The import stored all records; they are read again without those that the plan holds out."""
    imported = import_file(own.directory, str(tmp_path / "people.csv"), "imported")
    draft = find_draft(own, imported.project_id)
    assert draft is not None
    assert "# holdout = 0.2" in draft.toml
    step = '[[synthesis]]\ntarget = "income"\nmethod = "cart"\npredictors = ["age"]\n[[measure]]\nmethod = "risk.singling_out"\n'
    with pytest.raises(BadInput, match=r"measure\[0\].method: .* add holdout = 0.2 under \[data\]"):
        prepare_plan(own, draft.with_text(draft.toml + step))
    found = prepare_plan(own, draft.with_text(draft.toml.replace("# holdout", "holdout") + step)).data
    assert found.controls is not None
    assert (len(found), len(found.controls)) == (80, 20)
    assert sorted([*found.numbers("income"), *found.controls.numbers("income")]) == sorted(people()["income"])


def test_a_companion_has_the_same_controls(own: Workspace, tmp_path: Path) -> None:
    beside = {**RECIPE, "data": {}, "measure": [{"method": "utility.ecdf"}], "label": "beside"}
    (tmp_path / "other.toml").write_text(Recipe.from_table(beside).to_toml(), "utf-8")
    main = prepared(own, companions=["other"])
    (other,) = prepare_companion_runs(main, find_recipe(str(tmp_path / "recipe.toml")))
    assert other.recipe.data == main.recipe.data
    assert other.data is main.data
