"""All releases of the same people count together, those of deleted runs too: the same bytes end alike in one release or in ten."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import begin_free_release, enter_recipe, reseal

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.audit import AuditAct, audit_rows
from sfumato.workspace.errors import NotReady, NotReleased
from sfumato.workspace.gate import earlier, people_checks
from sfumato.workspace.gate.checks import CheckResult, worst_over_pools
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.ingest.files import SourceFile, read_file_microdata
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service import deletion
from sfumato.workspace.service.deletion import delete_project, delete_run
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store import database, tombstones
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.adopting import adopt_workspace
from sfumato.workspace.upkeep.integrity import verify_workspace

KEY = bytes(range(100, 132))
VARIABLES: dict[str, Any] = {
    "region": {"kind": "categorical", "role": "quasi_identifier"},
    "age": {"kind": "count", "role": "quasi_identifier", "bounds": [0, 120]},
    "visits": {"kind": "count", "role": "sensitive", "bounds": [0, 60]},
    "income": {"kind": "continuous", "role": "sensitive", "bounds": [0, 10_000]},
}
LINEAR = [
    {"target": "visits", "method": "linear_regression", "predictors": ["region", "age"]},
    {"target": "income", "method": "linear_regression", "predictors": ["region", "age", "visits"]},
]
MEASURES: list[dict[str, Any]] = [
    {"method": "utility.ecdf"},
    {"method": "risk.identification", "radius": {"income": "5%", "visits": 2}},
]


def people(count: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(20)
    return pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "west"], 80),
            "age": rng.permutation(np.arange(18, 98)),
            "visits": rng.poisson(4, 80),
            "income": np.exp(rng.normal(7, 0.4, 80)),
        }
    )[:count]


def entered(
    workspace: Workspace,
    frame: pd.DataFrame | None = None,
    content: bytes = b"people",
    project: str = "",
    **sections: Any,
) -> int:
    """Enter a run of the recipe of these tests; sections given replace its own."""
    table = {"title": "People", "variables": VARIABLES, "synthesis": LINEAR, "release": {"m": 1, "seed": 7}}
    recipe = Recipe.from_table({**table, "measure": MEASURES, **sections})
    data = conform_to_schema(people() if frame is None else frame, recipe.schema)
    return enter_recipe(workspace, recipe, data, "people.csv", content, project=project)


def run_of(workspace: Workspace, *arguments: Any, **sections: Any) -> int:
    run_id = entered(workspace, *arguments, **sections)
    run_worker(workspace.directory, idle=0)
    return run_id


def private(epsilon: float, seed: int = 7, budget: float | None = None) -> dict[str, Any]:
    """Sections of a recipe whose release costs this epsilon."""
    step = {
        "method": "perturbed_gibbs", "target": list(VARIABLES), "epsilon": epsilon, "reset": True,
        "bins": {"age": "width 20", "visits": "at 1, 3, 6", "income": "5 equal width"},
    }  # fmt: skip
    levels = {**VARIABLES, "region": {**VARIABLES["region"], "levels": ["north", "south", "west"]}}
    form = {"m": 1, "seed": seed, "records": 10, **({} if budget is None else {"epsilon": budget})}
    return {"variables": levels, "synthesis": [step], "release": form, "measure": [{"method": "utility.ecdf"}]}


def findings_by_check(workspace: Workspace, run_id: int, policy: Policy | None = None) -> dict[str, Finding]:
    examination = examine_release(workspace, plan_release(workspace, run_id), policy or Policy())
    return {one.check: one for one in examination.findings}


def let_out(workspace: Workspace, run_id: int, directory: Path) -> None:
    write_run_release(workspace, run_id, directory / f"out-{run_id}", reason="simulated people")


def swapped(workspace: Workspace, run_id: int, tables: Sequence[Microdata]) -> None:
    """Put other datasets in the place of those that a run made."""
    hashes = [workspace.tables.write_microdata(one) for one in tables]
    with workspace.write_transaction() as connection:
        connection.executemany(
            "UPDATE artefact SET sha256 = ? WHERE run_id = ? AND name = ?",
            [(sha256, run_id, f"draw/{draw}") for draw, sha256 in enumerate(hashes, start=1)],
        )
    reseal(workspace)


def noised(count: int) -> list[Microdata]:
    """Datasets whose values lie around the person's own: the mean of many gives them away, one alone hardly does."""
    rng, frame = np.random.default_rng(4), people()
    schema = Recipe.from_table({"title": "t", "variables": VARIABLES, "synthesis": LINEAR}).schema
    return [
        conform_to_schema(
            frame.assign(
                income=frame["income"] * np.exp(rng.normal(0, 0.15, 80)), visits=rng.poisson(4, 80).astype(np.int64)
            ),
            schema,
        )
        for _ in range(count)
    ]


TIMES = 6


@pytest.mark.slow
def test_many_releases_of_one_dataset_end_as_one_release_of_many(workspace: Workspace, tmp_path: Path) -> None:
    """The same datasets, at once or one after the other, deleted in between or not: blocked by the same check with the same numbers."""
    tables = noised(TIMES)
    whole = entered(workspace, release={"m": TIMES, "seed": 1})
    single = [entered(workspace, release={"m": 1, "seed": 10 + i}) for i in range(TIMES)]
    run_worker(workspace.directory, idle=0)
    swapped(workspace, whole, tables)
    for run_id, one in zip(single, tables, strict=True):
        swapped(workspace, run_id, [one])
    expected = findings_by_check(workspace, whole)["agreed_values"]
    assert expected.status == "block"
    statuses = []
    for run_id in single[:-1]:
        statuses.append(findings_by_check(workspace, run_id)["agreed_values"].status)
        let_out(workspace, run_id, tmp_path)
    assert statuses[0] == "not checked", "there is one dataset"
    last = findings_by_check(workspace, single[-1])
    assert (last["agreed_values"].status, last["agreed_values"].value) == ("block", expected.value)
    assert (last["agreed_values"].baseline, last["agreed_values"].compared_value) == (
        expected.baseline,
        expected.compared_value,
    )
    assert f"{TIMES} releases together, this one and runs 2, 3, 4, 5, 6 before" in last["agreed_values"].message
    for run_id in single[:-1]:
        delete_run(workspace, run_id)
    assert findings_by_check(workspace, single[-1]) == last


@pytest.mark.slow
def test_bytes_that_left_before_count_once(workspace: Workspace, tmp_path: Path) -> None:
    (table,) = noised(1)
    runs = [entered(workspace, release={"m": 1, "seed": seed}) for seed in (1, 2)]
    run_worker(workspace.directory, idle=0)
    for run_id in runs:
        swapped(workspace, run_id, [table])
    let_out(workspace, runs[0], tmp_path)
    finding = findings_by_check(workspace, runs[1])["agreed_values"]
    assert finding.message == "does not apply: rows of different datasets cannot be linked to the same record"


@pytest.mark.slow
def test_findings_are_the_same_before_and_after_an_earlier_run_is_deleted(workspace: Workspace, tmp_path: Path) -> None:
    first = run_of(workspace, release={"m": 2, "seed": 1})
    fewer = run_of(workspace, people(77), release={"m": 2, "seed": 2})
    let_out(workspace, first, tmp_path)
    before = findings_by_check(workspace, fewer)
    assert (before["differencing"].status, before["differencing"].value) == ("block", 3)
    assert before["released_before"].value == 1
    delete_run(workspace, first)
    assert findings_by_check(workspace, fewer) == before


@pytest.mark.slow
def test_findings_are_the_same_after_the_data_are_deleted_too(workspace: Workspace, tmp_path: Path) -> None:
    """Of the confidential records HMACs are left; here the table was saved again, so that its file is another."""
    first = run_of(workspace, people(), b"people", "Gone", release={"m": 2, "seed": 1})
    fewer = run_of(workspace, people(77), b"saved again", "Stays", release={"m": 2, "seed": 2})
    let_out(workspace, first, tmp_path)
    before = findings_by_check(workspace, fewer)
    assert before["differencing"].value == 3
    assert (
        "2 releases together" in before["equal_records"].message
        or "this release alone" in before["equal_records"].message
    )
    gone = workspace.connection.execute("SELECT id FROM project WHERE name = 'Gone'").fetchone()[0]
    delete_project(workspace, gone)
    assert findings_by_check(workspace, fewer) == before


@pytest.mark.slow
def test_anonymised_tables_intersect_with_those_of_deleted_runs(workspace: Workspace, tmp_path: Path) -> None:
    making: dict[str, Any] = {"synthesis": [], "release": {"seed": 7}, "measure": [{"method": "risk.anonymity"}]}
    runs = [
        run_of(workspace, **making, anonymisation=[{"method": "mondrian", "k": 5, **keys}])
        for keys in ({}, {"quasi_identifiers": ["age"]}, {"quasi_identifiers": ["region"]})
    ]
    for run_id in runs[:2]:
        let_out(workspace, run_id, tmp_path)
    before = findings_by_check(workspace, runs[2])
    delete_run(workspace, runs[1])
    assert findings_by_check(workspace, runs[2]) == before
    assert before["intersections"].status == "block"


def test_a_dataset_that_is_gone_is_named_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Datasets are counted from 1."""
    recipe = Recipe.from_table(
        {"variables": VARIABLES, "synthesis": [{"method": "cart", "target": "age"}], "release": {"m": 2}}
    )
    workspace = SimpleNamespace(
        sealer=None,
        tables=SimpleNamespace(count_table_records=lambda _: 9),
        find_dataset=lambda _: SimpleNamespace(records=9),
    )
    found = dict[int, str]()
    monkeypatch.setattr(earlier, "_model_hash", lambda *_: "")
    monkeypatch.setattr(earlier, "read_released_dataset", lambda _, __, ___, number, names: found.get(number))
    release = earlier.released_data_of_run(
        workspace,
        SimpleNamespace(id=7, recipe=recipe, dataset_id=1),
        ("one", "two"),  # type: ignore[arg-type]
    )
    with pytest.raises(NotReady, match="run 7 has no dataset 2"):
        release.read(1, None)
    found[2] = "the second"
    assert release.read(1, None) == "the second"


@pytest.mark.slow
def test_a_deleted_run_gives_no_budget_back(workspace: Workspace, tmp_path: Path) -> None:
    """Budget 5, two runs of 4: the second is blocked, whatever is deleted."""
    policy = Policy(epsilon=5.0)
    (workspace.directory / "policy.toml").write_text("[privacy]\nepsilon = 5.0\n", "utf-8")
    first, second = run_of(workspace, **private(4.0)), run_of(workspace, **private(4.0, seed=8))
    assert findings_by_check(workspace, second, policy)["privacy_budget"].status == "pass"
    let_out(workspace, first, tmp_path)
    before = findings_by_check(workspace, second, policy)["privacy_budget"]
    assert (before.status, before.value, before.baseline) == ("block", pytest.approx(8.0), 5.0)
    delete_run(workspace, first)
    assert findings_by_check(workspace, second, policy)["privacy_budget"] == before
    with pytest.raises(NotReleased, match="privacy_budget: epsilon of 2 releases of these people: 8, of a budget of 5"):
        write_run_release(workspace, second, tmp_path / "second", waive={"risk_measured": "simulated people"})
    assert findings_by_check(workspace, second, Policy(epsilon=20.0))["privacy_budget"].status == "pass"


@pytest.mark.slow
def test_the_smaller_of_two_budgets_holds_and_the_finding_names_it(workspace: Workspace) -> None:
    larger = run_of(workspace, **private(4.0, budget=8.0))
    finding = findings_by_check(workspace, larger, Policy(epsilon=3.0))["privacy_budget"]
    assert (finding.status, finding.baseline) == ("block", 3.0)
    assert "of a budget of 3 (policy.toml; the recipe names 8, and the smaller budget holds)" in finding.message
    stricter = findings_by_check(workspace, larger, Policy(epsilon=9.0))["privacy_budget"]
    assert (stricter.status, stricter.baseline) == ("pass", 8.0)
    assert "of a budget of 8;" in stricter.message
    unbounded = findings_by_check(workspace, run_of(workspace), Policy(epsilon=9.0))["privacy_budget"]
    assert unbounded.status == "block", "a release without an account keeps to no budget"


@dataclass
class Left:
    """A workspace from which run 1 was released and deleted, and in which run 2 waits."""

    workspace: Workspace
    directory: Path

    def gate(self) -> dict[str, Finding]:
        return findings_by_check(self.workspace, 2)

    def verified(self) -> str:
        return "; ".join(verify_workspace(self.workspace).wrong)


@pytest.fixture
def left(workspace: Workspace, tmp_path: Path) -> Left:
    run_of(workspace, release={"m": 1, "seed": 1})
    run_of(workspace, release={"m": 1, "seed": 2})
    let_out(workspace, 1, tmp_path)
    delete_run(workspace, 1)
    return Left(workspace, tmp_path)


@pytest.mark.slow
def test_a_tombstone_that_is_missing_or_changed_blocks_and_is_named(left: Left) -> None:
    assert left.gate()["earlier_records"].status == "pass"
    assert left.verified() == ""
    connection = left.workspace.connection
    content = connection.execute("SELECT content FROM tombstone").fetchone()[0]
    connection.execute("UPDATE tombstone SET content = ?", (content.replace('"steps": 0', '"steps": 1'),))
    finding = left.gate()["earlier_records"]
    assert (finding.status, finding.waivable) == ("block", False)
    assert finding.message == "the tombstone of run 1, which was released and deleted, was changed"
    assert finding.message in left.verified()
    with pytest.raises(NotReleased, match="earlier_records cannot be waived"):
        write_run_release(left.workspace, 2, left.directory / "out", reason="they asked for it")
    connection.execute("UPDATE tombstone SET content = ?", (content,))
    assert left.gate()["earlier_records"].status == "pass"
    for sha256 in json.loads(content)["datasets"]:
        left.workspace.tables.path_of(sha256).unlink()
    assert "is not whole: the table" in left.gate()["earlier_records"].message
    connection.execute("DELETE FROM tombstone_table")
    connection.execute("DELETE FROM tombstone")
    finding = left.gate()["earlier_records"]
    assert finding.status == "block"
    assert finding.message == "the tombstone of run 1, which was released and deleted, is missing"
    assert finding.message in left.verified()


@pytest.mark.slow
def test_an_earlier_run_that_was_changed_blocks(workspace: Workspace, tmp_path: Path) -> None:
    """Whoever swaps the datasets of what has left would hide what the releases show together."""
    first, second = (run_of(workspace, release={"m": 1, "seed": seed}) for seed in (1, 2))
    let_out(workspace, first, tmp_path)
    assert findings_by_check(workspace, second)["earlier_records"].status == "pass"
    other = plan_release(workspace, second).tables[0]
    with workspace.write_transaction() as connection:
        connection.execute("UPDATE artefact SET sha256 = ? WHERE run_id = ? AND name = 'draw/1'", (other, first))
    finding = findings_by_check(workspace, second)["earlier_records"]
    assert finding.status == "block"
    assert "run 1 is not as it was sealed: table draw/1" in finding.message
    workspace.connection.execute("DELETE FROM run WHERE id = ?", (first,))
    said = findings_by_check(workspace, second)["earlier_records"].message
    assert said == "run 1, released before, is gone, and the audit log does not say that it was deleted"


@pytest.mark.slow
def test_a_run_that_an_earlier_version_deleted_blocks_until_it_is_waived(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (run_of(workspace, release={"m": 1, "seed": seed}) for seed in (1, 2))
    let_out(workspace, first, tmp_path)
    with monkeypatch.context() as older:
        older.setattr(deletion, "released_run_manifests", lambda _: {})
        delete_run(workspace, first)
    finding = findings_by_check(workspace, second)["deleted_releases"]
    assert (finding.status, finding.waivable) == ("block", True)
    assert "run 1 was released, and deleted by an earlier version that left no tombstone" in finding.message
    checked = verify_workspace(workspace)
    assert checked.wrong == ()
    assert any("run 1: released, and deleted by an earlier version" in note for note in checked.notes)
    let_out(workspace, second, tmp_path)


@pytest.mark.slow
def test_a_run_that_never_left_leaves_no_tombstone(workspace: Workspace) -> None:
    run_id = run_of(workspace)
    delete_run(workspace, run_id)
    assert workspace.connection.execute("SELECT count(*) FROM tombstone").fetchone()[0] == 0
    (row,) = [row for row in audit_rows(workspace.connection) if row.act == AuditAct.RUN_DELETED]
    assert tombstones.TOMBSTONE_KEY not in row.details_table


@pytest.mark.slow
def test_a_tombstone_holds_what_left_and_of_people_hmacs_alone(workspace: Workspace, tmp_path: Path) -> None:
    """No column and no level that did not leave; without the key nobody knows a person again by the HMACs."""
    frame = people().assign(name=[f"person {i}" for i in range(80)])
    frame.loc[3, "region"] = "island"
    variables = {**VARIABLES, "name": {"kind": "categorical", "role": "identifier"}}
    steps = [{"target": "region", "method": "cart", "predictors": ["age"], "minbucket": 40}, *LINEAR]
    run_id = run_of(workspace, frame, variables=variables, synthesis=steps)
    let_out(workspace, run_id, tmp_path)
    delete_run(workspace, run_id)
    (sha256,) = tombstones.deleted_run_tombstones(workspace.connection).values()
    kept = tombstones.read_tombstone(workspace, run_id, sha256)
    (table,) = (workspace.tables.read_stored_table(one) for one in kept.datasets)
    assert set(table.column_names) == set(VARIABLES)
    column = table.column("region").combine_chunks()
    assert set(column.dictionary.to_pylist()) == {one for one in column.to_pylist() if one is not None}
    assert "person 3" not in kept.json_text
    marks = workspace.tables.read_arrays(kept.marks_table)["0"]
    rows = np.arange(80, dtype=np.uint64)
    own, other = (earlier.hmac_rows(rows, ("a",), key) for key in (workspace.sealer.key, b"another key"))
    assert len(marks) == 80
    assert not set(own.tolist()) & set(other.tolist())
    assert (own == earlier.hmac_rows(rows, ("a",), workspace.sealer.key)).all()


@pytest.mark.slow
def test_a_run_is_not_deleted_while_it_is_being_released(workspace: Workspace, tmp_path: Path) -> None:
    run_id = run_of(workspace)
    with pytest.raises(NotReady, match="is being released"), begin_free_release(workspace, run_id, tmp_path / "out"):
        delete_run(workspace, run_id)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deletion, "_write_tombstones", lambda *_: {})
        let_out(workspace, run_id, tmp_path)
        with pytest.raises(NotReady, match="was released just now; delete it again"):
            delete_run(workspace, run_id)
    delete_run(workspace, run_id)


@pytest.mark.slow
def test_an_adopted_workspace_still_counts_deleted_releases(left: Left) -> None:
    adopt_workspace(left.workspace.directory, left.directory / "mine")
    with Workspace.open(left.directory / "mine") as mine:
        assert tombstones.tombstone_faults(mine) == []
        assert findings_by_check(mine, 2)["released_before"].value == 1


@dataclass
class Some:
    """A release of a model that gives away so much."""

    model: str
    share: float


def test_a_release_of_another_model_is_not_blamed_where_it_adds_nothing() -> None:
    """The mean over datasets of one model is judged; of several models what they show together, where this release adds to it."""

    @dataclass
    class Gate:
        release: Some
        past: list[Some]

        def earlier_releases(self, fits: Callable[[Some], bool]) -> list[Some]:
            return [one for one in self.past if fits(one)]

        def pool_releases(self, *releases: Some) -> tuple[Some, ...]:
            return releases

    def seen(own: Some, *past: Some, together: bool = True) -> tuple[float, str]:
        def look(pool: Any) -> CheckResult:
            return CheckResult("said", sum(one.share for one in pool))

        one = worst_over_pools(Gate(own, list(past)), lambda _: True, look, together=together)  # type: ignore[arg-type]
        return one.compared_value, one.at_most

    assert seen(Some("a", 0.1)) == (0.1, "block")
    assert seen(Some("a", 0.1), Some("a", 0.3)) == (pytest.approx(0.4), "block")
    assert seen(Some("a", 0.1), Some("b", 0.3)) == (pytest.approx(0.4), "block")
    assert seen(Some("a", 0.0), Some("b", 0.3)) == (0.0, "block")
    assert seen(Some("a", 0.1), Some("b", 0.3), together=False) == (0.1, "block")


def test_a_workspace_of_the_version_before_gets_room_for_tombstones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = [step.__name__ for step in database.MIGRATIONS].index("tombstones")
    with monkeypatch.context() as older:
        older.setattr(database, "MIGRATIONS", database.MIGRATIONS[:at])
        with Workspace.create(tmp_path / "old", bytes(range(32))) as made:
            assert "tombstone" not in {row[0] for row in made.connection.execute("SELECT name FROM sqlite_schema")}
    with Workspace.open(tmp_path / "old") as opened:
        assert tombstones.tombstone_faults(opened) == []
        assert tombstones.deleted_without_tombstone(opened.connection) == []


@pytest.mark.slow
def test_the_record_most_at_risk_is_judged_over_all_releases(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One dataset may give a record away by chance and only warns; a second one of another run does not.

    Of records that others share the kept columns with: those that are alone with them only warn.
    """
    monkeypatch.setattr(
        people_checks, "unique_on_kept_columns", lambda case: np.zeros(len(case.confidential), dtype=np.bool_)
    )
    copies = [
        conform_to_schema(
            people(), Recipe.from_table({"title": "t", "variables": VARIABLES, "synthesis": LINEAR}).schema
        )
    ] * 2
    whole = run_of(workspace, release={"m": 2, "seed": 1})
    single = [run_of(workspace, release={"m": 1, "seed": seed}) for seed in (2, 3)]
    connection = workspace.connection
    (certain,) = connection.execute(
        "SELECT sha256 FROM artefact WHERE run_id = ? AND name = 'records/1/confidential'", (whole,)
    ).fetchone()
    connection.execute("UPDATE artefact SET sha256 = ? WHERE name LIKE 'records/1/%'", (certain,))
    for run_id in single:
        swapped(workspace, run_id, copies[:1])
    swapped(workspace, single[1], [noised(1)[0]])
    assert findings_by_check(workspace, whole)["worst_records"].status == "block"
    assert findings_by_check(workspace, single[1])["worst_records"].status == "warn"
    let_out(workspace, single[0], tmp_path)
    before = findings_by_check(workspace, single[1])["worst_records"]
    assert before.status == "block"
    assert "over 2 datasets" in before.message
    delete_run(workspace, single[0])
    assert findings_by_check(workspace, single[1])["worst_records"] == before


def listings(workspace: Workspace, path: Path, sample: int, *, one_sample: bool = True) -> Callable[[int, int], int]:
    """Runs of the shipped recipe with a random effect for each record, by the number of datasets and the seed.

    On ``one_sample``, or each on the sample of its own seed, as the command line takes it.
    """
    table = find_recipe("airbnb").table
    for section in ("companions", "study", "published", "threshold"):
        table.pop(section, None)
    attribute = next(one for one in table["measure"] if one["method"] == "risk.attribute")
    table = {**table, "measure": [attribute], "data": {**table["data"], "sample": sample}}
    source = SourceFile(path.name, path.read_bytes())
    first = Recipe.from_table(table)
    data = read_file_microdata(source, first.data, first.schema, 2020, key=KEY)

    def compute_run(m: int, seed: int) -> int:
        recipe = Recipe.from_table({**table, "release": {"m": m, "seed": seed}})
        own = data if one_sample else read_file_microdata(source, recipe.data, recipe.schema, seed, key=KEY)
        run_id = enter_run(workspace, recipe, source, own)
        run_worker(workspace.directory, idle=0)
        return run_id

    return compute_run


def releases_until_blocked(workspace: Workspace, run: Callable[[int, int], int], directory: Path, m: int) -> int:
    """Release single datasets of different seeds until ``agreed_values`` blocks as it does m datasets at once; prints the figures."""
    finding = findings_by_check(workspace, run(m, 2020))["agreed_values"]
    print(f"\nm = {m}: {finding.status}: {finding.message}")
    assert finding.status == "block"
    for count in range(1, m + 1):
        run_id = run(1, 3000 + count)
        finding = findings_by_check(workspace, run_id)["agreed_values"]
        print(f"m = 1, release {count}: {finding.status}: {finding.message}")
        if finding.status == "block":
            return count
        let_out(workspace, run_id, directory)
    raise AssertionError(f"{m} releases of one dataset were not blocked")


@pytest.mark.study  # of a small table test_many_releases_of_one_dataset_end_as_one_release_of_many shows it
def test_single_datasets_of_listings_are_blocked_as_many_at_once_are(
    workspace: Workspace, public_data: Callable[[str], Path], tmp_path: Path
) -> None:
    run = listings(workspace, public_data("AB_NYC_2019.csv"), 3000)
    assert 1 < releases_until_blocked(workspace, run, tmp_path, 5) <= 5


@pytest.mark.study
@pytest.mark.parametrize("one_sample", [True, False])
def test_single_datasets_of_the_whole_sample_of_listings_are_blocked_too(
    workspace: Workspace, public_data: Callable[[str], Path], tmp_path: Path, one_sample: bool
) -> None:
    run = listings(workspace, public_data("AB_NYC_2019.csv"), 10_000, one_sample=one_sample)
    assert 1 < releases_until_blocked(workspace, run, tmp_path, 20) <= 20
