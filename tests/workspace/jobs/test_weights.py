"""Weights of single records by the risks of an earlier run: found, kept beside the run, given to its fits, in nothing public."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from prepared_workspaces import run_recipe

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.weights import weights_by_risk
from sfumato.tui.cli.main import sfumato
from sfumato.workspace.errors import DamagedTable, NotFound, NotReady
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs import runs as weighing
from sfumato.workspace.jobs.queue import requeue_run
from sfumato.workspace.jobs.runs import enter_run, record_weights, reenter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.release.commitment import commitment_of_run
from sfumato.workspace.service.deletion import delete_run
from sfumato.workspace.service.prepare import prepare_evaluation
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.artefacts import read_released_dataset, read_weights, weights_hash
from sfumato.workspace.store.runs import RunState, find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.integrity import NotAsSealed, verify_run
from sfumato.workspace.views.records import read_record_risks, record_measures, select_measure
from sfumato.workspace.views.run_detail import read_run_detail
from sfumato.workspace.views.weights import read_record_weights

Enter = Callable[..., int]
Small = Callable[..., Recipe]
WEIGHTS: dict[str, Any] = {"run": 1, "strength": 0.8}


@pytest.fixture
def workspace(tmp_path: Path, computed: Callable[..., Path]) -> Iterator[Workspace]:
    """A workspace with the finished run 1 of the small recipe."""
    shutil.copytree(computed(), tmp_path / "workspace")
    with Workspace.create(tmp_path / "workspace", PUBLIC) as made:
        yield made


@pytest.fixture
def repaired(workspace: Workspace, enter: Enter) -> int:
    """A finished run whose records at risk in run 1 say less."""
    made = enter(weights=WEIGHTS)
    run_worker(workspace.directory, idle=0)
    return made


def stored(workspace: Workspace, run_id: int) -> np.ndarray:
    return read_weights(workspace.tables, weights_hash(workspace, run_id))


def datasets(workspace: Workspace, run_id: int) -> list[str]:
    rows = workspace.connection.execute(
        "SELECT sha256 FROM artefact WHERE run_id = ? AND name LIKE 'draw/%' ORDER BY name", (run_id,)
    )
    return [row[0] for row in rows]


@pytest.mark.slow
def test_a_run_is_fitted_by_the_weights_that_the_stored_risks_say(
    workspace: Workspace, repaired: int, small_data: Microdata
) -> None:
    risk = read_record_risks(workspace, select_measure(record_measures(workspace, 1))).probability
    weights = stored(workspace, repaired)
    assert weights.tolist() == weights_by_risk(risk, 0.8).tolist()
    # by the best choice of variables nobody is without risk, so that no record keeps its whole weight
    assert 0 < weights.min() < weights.max() < 1
    recipe, data = find_run(workspace, repaired).recipe, small_data.with_weights(weights)
    fits = [fit_model(recipe, k, data, key=PUBLIC) for k in range(2)]
    for draw in (1, 2, 3):
        made = read_released_dataset(workspace, repaired, recipe, draw)
        assert made is not None
        assert made.frame.equals(draw_dataset(recipe, draw, data, fits, key=PUBLIC).frame)
    assert set(datasets(workspace, repaired)).isdisjoint(datasets(workspace, 1))


@pytest.mark.slow
def test_records_that_few_share_what_is_known_with_say_less_and_a_run_by_it_can_be_looked_at(
    workspace: Workspace, enter: Enter, small_data: Microdata
) -> None:
    made = enter(weights={"known": ["region"], "strength": 1.0})
    run_worker(workspace.directory, idle=0)
    run = find_run(workspace, made)
    assert run.state is RunState.DONE
    sizes = small_data.frame["region"].map(small_data.frame["region"].value_counts()).to_numpy(dtype=float)
    assert stored(workspace, made) == pytest.approx(1 - 1 / sizes)
    found = read_record_weights(workspace, made)
    assert found.risk_now is None
    assert found.risk_before == pytest.approx(1 / sizes)
    assert found.summary_text.startswith(
        "records that few share region with have less influence (strength 1): 80 of 80 records"
    )
    assert set(datasets(workspace, made)).isdisjoint(datasets(workspace, 1))


@pytest.mark.slow
def test_a_repaired_run_is_run_again_by_its_own_weights(workspace: Workspace, repaired: int) -> None:
    """The run that they were found by may be gone."""
    delete_run(workspace, 1)
    again = reenter_run(workspace, repaired)
    run_worker(workspace.directory, idle=0)
    assert stored(workspace, again).tolist() == stored(workspace, repaired).tolist()
    assert datasets(workspace, again) == datasets(workspace, repaired)
    verify_run(workspace, again, strict=True)


@pytest.mark.slow
def test_weights_that_somebody_changed_are_found_out(workspace: Workspace, repaired: int) -> None:
    verify_run(workspace, repaired, strict=True)
    with workspace.write_transaction() as connection:
        other = workspace.tables.write_arrays({"weights": np.ones(80)})
        connection.execute("UPDATE artefact SET sha256 = ? WHERE run_id = ? AND name = 'weights'", (other, repaired))
    with pytest.raises(NotAsSealed):
        verify_run(workspace, repaired, strict=True)
    with pytest.raises(NotAsSealed):
        reenter_run(workspace, repaired)


@pytest.mark.slow
def test_a_run_whose_weights_are_lost_fails_rather_than_goes_without(workspace: Workspace, enter: Enter) -> None:
    made = enter(weights=WEIGHTS)
    with workspace.write_transaction() as connection:
        kept = connection.execute("SELECT * FROM artefact WHERE run_id = ? AND name = 'weights'", (made,)).fetchone()
        connection.execute("DELETE FROM artefact WHERE run_id = ? AND name = 'weights'", (made,))
    run_worker(workspace.directory, idle=0)
    run = find_run(workspace, made)
    assert run.state is RunState.FAILED
    assert "weights of the records are missing" in run.error
    with workspace.write_transaction() as connection:
        connection.execute("INSERT INTO artefact VALUES (?, ?, ?)", tuple(kept))
    requeue_run(workspace, made)
    run_worker(workspace.directory, idle=0)
    assert find_run(workspace, made).state is RunState.DONE


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"run": 7}, 'weights.run: there is no run "7"'),
        ({"run": 1, "measure": "risk.attribute"}, 'weights.measure: no measure "risk.attribute"'),
        ({"run": 1, "measure": "measure[0]"}, r'weights.measure: no measure "measure\[0\]"'),
    ],
)
def test_weights_that_cannot_be_found_are_refused(
    workspace: Workspace, enter: Enter, weights: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        enter(weights=weights)
    assert workspace.connection.execute("SELECT count(*) FROM run").fetchone()[0] == 1


def test_weights_of_a_run_that_is_not_done_are_refused(workspace: Workspace, enter: Enter) -> None:
    waiting = enter()
    with pytest.raises(BadInput, match=f"weights.run: run {waiting} is queued, not done"):
        enter(weights={"run": waiting})


def test_weights_are_those_of_the_same_records(
    workspace: Workspace, small_recipe: Small, small_data: Microdata
) -> None:
    """One value changed, two records in each other's place, a record less: whose risk it was is not known."""
    recipe, source = small_recipe(weights=WEIGHTS), SourceFile("simulated.csv", b"simulated")
    frame = small_data.frame
    swapped = frame.iloc[[1, 0, *range(2, 80)]].reset_index(drop=True)
    changed = frame.assign(income=frame["income"].where(frame.index != 3, 1.0))
    for other in (swapped, changed, frame.head(79)):
        with pytest.raises(BadInput, match=r"weights\.run: run 1 is of other records or variables"):
            enter_run(workspace, recipe, source, Microdata(small_data.schema, other))
    assert record_weights(workspace, recipe, small_data) is not None
    assert record_weights(workspace, small_recipe(), small_data) is None


def test_a_measure_of_some_of_the_records_is_refused(
    workspace: Workspace, small_recipe: Small, small_data: Microdata, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new run would ask about the same ones, whose risk alone fell: its R would be taken for that of all."""

    def opened(*_: Any) -> Any:
        found = read_record_risks(workspace, select_measure(record_measures(workspace, 1)))
        return replace(found, probability=np.where(np.arange(80) < 30, np.nan, 0.5))

    monkeypatch.setattr(weighing, "read_record_risks", opened)
    with pytest.raises(BadInput, match=r"weights\.measure: risk\.identification did not ask about 30 of 80 records"):
        record_weights(workspace, small_recipe(weights=WEIGHTS), small_data)


@pytest.mark.slow
def test_a_release_commits_to_the_weights_and_no_public_file_tells_of_them(
    workspace: Workspace, small_recipe: Small, small_data: Microdata, tmp_path: Path
) -> None:
    recipe = small_recipe(weights=WEIGHTS, threshold=[])
    made = run_recipe(workspace, recipe, small_data)
    plan, run = plan_release(workspace, made), find_run(workspace, made)
    assert plan.weights_sha256 == weights_hash(workspace, made) != ""
    bound = [
        commitment_of_run(run, workspace.find_dataset(run.dataset_id), plan.tables, "p", w)
        for w in (plan.weights_sha256, "", "0")
    ]
    assert len({one.hmac_hex(b"k", {}) for one in bound}) == 3
    assert "weights_sha256" not in bound[1].to_table()
    found = examine_release(workspace, plan, read_policy_of_workspace(workspace.directory))
    write_run_release(
        workspace,
        made,
        tmp_path / "out",
        reason="released for a test",
        waive={one.check: "released for a test" for one in found.unwaived_findings},
    )
    inside = json.loads((tmp_path / "out/internal/commitments.json").read_text("utf-8"))
    assert inside["committed"]["weights_sha256"] == plan.weights_sha256
    for path in (tmp_path / "out/public").rglob("*"):
        if path.is_file():
            content = path.read_bytes().lower()
            for telling in (plan.weights_sha256.encode(), b"weights", b"less influence", b"at risk in run"):
                assert telling not in content, (path.name, telling)
    report = (tmp_path / "out/internal/report.html").read_text("utf-8")
    assert "Records at risk in run 1 have less influence (strength 0.8)." in report


@pytest.mark.slow
def test_the_command_weighs_by_an_earlier_run(
    workspace: Workspace, tmp_path: Path, small_recipe: Small, small_data: Microdata
) -> None:
    small_data.frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "plan.toml").write_text(small_recipe(data={"file": "people.csv"}).to_toml(), "utf-8")

    def run_plan(*arguments: str) -> Any:
        return CliRunner().invoke(
            sfumato,
            ["run", str(tmp_path / "plan.toml"), "--workspace", str(workspace.directory), "--jobs", "1", *arguments],
        )

    found = run_plan("--weights-from", "last", "--measure", "risk.identification", "--strength", "0.5")
    assert found.exit_code in (0, 1)
    assert "records at risk in run 1 by risk.identification have less influence (strength 0.5)" in found.stdout
    weighting = find_run(workspace, 2).recipe.weights
    assert weighting is not None
    assert (weighting.run, weighting.measure, weighting.strength) == (1, "risk.identification", 0.5)
    for refused in (
        run_plan("--weights-from", "1", "--strength", "2"),
        run_plan("--strength", "0.5"),
        run_plan("--weights-from", "9"),
    ):
        assert refused.exit_code == 2 or isinstance(refused.exception, BadInput | NotFound)
    assert workspace.connection.execute("SELECT count(*) FROM run").fetchone()[0] == 2


@pytest.mark.slow
def test_the_records_that_say_least_are_shown_first_beside_their_risk(workspace: Workspace, repaired: int) -> None:
    found = read_record_weights(workspace, repaired)
    weights = stored(workspace, repaired)
    assert found.measure == "risk.identification"
    assert found.ranking.tolist() == sorted(np.flatnonzero(weights < 1), key=lambda i: (weights[i], i))
    risk = read_record_risks(workspace, select_measure(record_measures(workspace, 1))).probability
    assert np.allclose(found.risk_before, risk)
    now = read_record_risks(workspace, select_measure(record_measures(workspace, repaired))).probability
    assert found.risk_now is not None
    assert found.risk_now.tolist() == now.tolist()
    fell, rose = int((now < risk - 1e-6).sum()), int((now > risk + 1e-6).sum())
    assert found.risk_changes_text == f"By risk.identification the risk of {fell} records fell and of {rose} rose"
    assert f"{(weights < 1).sum()} of 80 records" in found.summary_text
    shown = CliRunner().invoke(
        sfumato, ["records", "2", "--weights", "--top", "3", "--workspace", str(workspace.directory), "--json", "-"]
    )
    table = json.loads(shown.stdout)
    assert [one["record"] for one in table["records"]] == (found.ranking[:3] + 1).tolist()
    assert [one["weight"] for one in table["records"]] == weights[found.ranking[:3]].tolist()
    least = found.ranking[0]
    assert read_run_detail(workspace, repaired).weight_lines[0] == found.summary_text
    assert (
        read_run_detail(workspace, repaired)
        .weight_lines[1]
        .startswith(f"say least: {least + 1} ({weights[least]:.4g}), ")
    )
    delete_run(workspace, 1)
    assert np.allclose(read_record_weights(workspace, repaired).risk_before, risk)


def test_a_run_that_weighs_nothing_says_so(workspace: Workspace) -> None:
    assert read_run_detail(workspace, 1).weight_lines == ()
    with pytest.raises(NotReady, match="run 1 gives every record the same influence"):
        read_record_weights(workspace, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arrays", [{}, {"weights": np.ones(79)}, {"weights": np.full(80, 2.0)}, {"weights": np.ones((80, 1))}]
)
def test_a_table_that_holds_no_weights_is_a_damaged_one(
    workspace: Workspace, enter: Enter, arrays: dict[str, np.ndarray]
) -> None:
    made = enter(weights=WEIGHTS)
    with workspace.write_transaction() as connection:
        other = workspace.tables.write_arrays({"other": np.ones(2), **arrays})
        connection.execute("UPDATE artefact SET sha256 = ? WHERE run_id = ? AND name = 'weights'", (other, made))
    for show in (read_record_weights, read_run_detail):
        with pytest.raises(DamagedTable):
            show(workspace, made)
    run_worker(workspace.directory, idle=0)
    assert find_run(workspace, made).state is RunState.FAILED


def test_files_of_other_tools_are_scored_by_a_recipe_with_weights(
    small_recipe: Small, small_data: Microdata, tmp_path: Path
) -> None:
    """Weights are of the models that made a release, and here there are none."""
    small_data.frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "plan.toml").write_text(small_recipe(weights=WEIGHTS).to_toml(), "utf-8")
    people = str(tmp_path / "people.csv")
    prepared = prepare_evaluation(find_recipe(str(tmp_path / "plan.toml")), people, [people], key=PUBLIC)
    assert prepared.recipe.weights is None
    assert prepared.recipe.released == ("visits", "income")
