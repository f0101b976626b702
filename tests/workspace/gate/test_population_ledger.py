"""A privacy budget belongs to people: every release of a population is charged to its ledger."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from test_same_people import people, run_and_release

from sfumato.engine.errors import BadInput
from sfumato.workspace.audit import AuditAct, audit_rows
from sfumato.workspace.errors import NotReleased
from sfumato.workspace.gate import earlier, ledger
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.gate.ledger import list_population_ledgers
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.service import release as service
from sfumato.workspace.service.deletion import delete_project, delete_run
from sfumato.workspace.service.population import (
    begin_population,
    find_project,
    ledger_of_project,
    state_population,
)
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.ledger import read_charges
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.maintenance import named_table_hashes

pytestmark = pytest.mark.slow
COST, DELTA = 4.0, 1e-7
COLUMNS = ["sex", "birth", "income"]
REASON = "the survey of spring 2026 asked residents of another town"
STATED = {"population": {"name": "Residents of the town"}}


@pytest.fixture(autouse=True)
def _each_release_costs_four(monkeypatch: pytest.MonkeyPatch, workspace: Workspace) -> None:
    """Let each release cost an epsilon of 4 where the policy allows 5 for all releases of the same people."""
    cost = earlier.PrivacySpending(COST, 1, covered=True, delta=DELTA)
    for module in (earlier, ledger):
        monkeypatch.setattr(module, "privacy_cost_of_run", lambda *_: cost)
    (workspace.directory / "policy.toml").write_text("[privacy]\nepsilon = 5.0\n", "utf-8")


def finding(workspace: Workspace, run_id: int, check: str = "privacy_budget", policy: Policy | None = None) -> Finding:
    found = examine_release(workspace, plan_release(workspace, run_id), policy or Policy(epsilon=5.0))
    return next(one for one in found.findings if one.check == check)


def is_charged_with_the_first(workspace: Workspace, run_id: int) -> bool:
    found = finding(workspace, run_id)
    return found.status == "block" and found.value == pytest.approx(2 * COST)


def other_people(count: int = 90, seed: int = 9) -> pd.DataFrame:
    return people(count, seed)[COLUMNS]


def run_in(workspace: Workspace, frame: pd.DataFrame, project: str, name: str, where: Path | None, **more: Any) -> int:
    """Enter a run of a file of its own in a project of this name, released where that is asked for."""
    return run_and_release(workspace, frame, where, name, project=project, **more)


def test_the_same_people_a_year_later_are_charged(workspace: Workspace, tmp_path: Path) -> None:
    """All ages moved by a year and the incomes are others: no row is equal, and the people are the same."""
    frame = people(90)[["birth", "income"]].assign(birth=lambda one: 20 + one["birth"] % 60)
    run_in(workspace, frame, "survey", "2025", tmp_path)
    later = frame.assign(birth=frame["birth"] + 1, income=frame["income"] % 977)
    assert is_charged_with_the_first(workspace, run_in(workspace, later, "survey", "2026", None))


def test_a_grown_file_is_charged(workspace: Workspace, tmp_path: Path) -> None:
    frame = other_people(60, 1)
    run_in(workspace, frame, "survey", "first", tmp_path)
    grown = pd.concat([frame, other_people(90, 2)], ignore_index=True)
    assert is_charged_with_the_first(workspace, run_in(workspace, grown, "survey", "second", None))


def test_a_renamed_column_is_charged(workspace: Workspace, tmp_path: Path) -> None:
    frame = other_people()
    run_in(workspace, frame, "survey", "first", tmp_path)
    renamed = frame.rename(columns={"income": "dose", "birth": "year"}).drop(columns="sex")
    assert is_charged_with_the_first(workspace, run_in(workspace, renamed, "survey", "second", None))


def test_other_people_of_the_project_are_charged_until_a_person_states_so(workspace: Workspace, tmp_path: Path) -> None:
    """Then they are free, and the audit log has who stated it and why."""
    run_in(workspace, other_people(90, 1), "survey", "first", tmp_path)
    second = run_in(workspace, other_people(90, 2), "survey", "second", None)
    assert is_charged_with_the_first(workspace, second)
    with pytest.raises(NotReleased, match="privacy_budget"):
        write_run_release(workspace, second, tmp_path / "out")
    project = find_project(workspace, "survey")
    begin_population(workspace, project, "Spring 2026", REASON)
    free = finding(workspace, second)
    assert (free.status, free.value) == ("pass", COST)
    assert "Spring 2026" in free.message
    assert REASON in free.message
    (row,) = [one for one in audit_rows(workspace.connection) if one.act == AuditAct.POPULATION_BEGUN]
    assert row.details_table["reason"] == REASON
    assert (row.details_table["population"], row.details_table["previous"]) == ("Spring 2026", "survey")
    third = run_in(workspace, other_people(90, 3), "survey", "third", None)
    write_run_release(workspace, second, tmp_path / "out", reason="simulated people")
    assert is_charged_with_the_first(workspace, third), "the new population has a budget of its own, which is spent"


@pytest.mark.parametrize("reason", ["", "x", "ok ok ok ok ok", "a b c", "1234 5678 9012 345", "others"])
def test_a_weak_reason_begins_no_population(workspace: Workspace, tmp_path: Path, reason: str) -> None:
    run_in(workspace, other_people(90, 1), "survey", "first", tmp_path)
    project, before = find_project(workspace, "survey"), len(audit_rows(workspace.connection))
    with pytest.raises(BadInput, match="--reason"):
        begin_population(workspace, project, "Others", reason)
    assert len(audit_rows(workspace.connection)) == before


def test_the_same_table_is_charged_whatever_is_stated(workspace: Workspace, tmp_path: Path) -> None:
    """Recognition is a second witness: a statement does not free people whose very file was released."""
    frame = other_people()
    run_in(workspace, frame, "survey", "first", tmp_path)
    begin_population(workspace, find_project(workspace, "survey"), "Others", REASON)
    again = run_in(workspace, frame, "survey", "first again", None, release={"m": 1, "seed": 2, "audience": "enclave"})
    assert is_charged_with_the_first(workspace, again)
    assert 'people of the population "survey" are recognised' in finding(workspace, again).message


@pytest.mark.parametrize("delete", ["run", "project"])
def test_a_deletion_frees_no_budget(workspace: Workspace, tmp_path: Path, delete: str) -> None:
    first = run_in(workspace, other_people(90, 1), "survey", "first", tmp_path)
    if delete == "run":
        delete_run(workspace, first)
    else:
        delete_project(workspace, find_project(workspace, "survey"))
    # The project is made again, by another spelling of its name, with other people.
    assert is_charged_with_the_first(workspace, run_in(workspace, other_people(90, 2), " SURVEY", "second", None))


@pytest.mark.parametrize(
    "name",
    [
        "Residents of the town", "residents  OF the-town", "Residents of the Ｔown.",
        # A grapheme joiner, a Hangul filler and a selector of variants show nothing, and are printable to Python.
        "Resi\u034fdents of the town\u3164", "Residents of the\ufe0f town",
    ],
)  # fmt: skip
def test_another_project_with_the_same_population_is_charged(workspace: Workspace, tmp_path: Path, name: str) -> None:
    run_in(workspace, other_people(90, 1), "survey", "first", tmp_path, **STATED)
    second = run_in(workspace, other_people(90, 2), "panel", "second", None, population={"name": name})
    assert is_charged_with_the_first(workspace, second)
    alone = run_in(workspace, other_people(90, 3), "clinic", "third", None)
    assert finding(workspace, alone).value == COST, "without a statement a project is a population of its own"


def test_a_new_name_of_a_project_is_no_new_budget_in_silence(workspace: Workspace, tmp_path: Path) -> None:
    """The same people, every birth a day later and all incomes others, in a project of another name."""
    first = other_people(90, 1)
    run_in(workspace, first, "survey", "first", tmp_path)
    moved = first.assign(birth=first["birth"] + 1, income=other_people(90, 2)["income"])
    second = run_in(workspace, moved, "panel", "second", None)
    said = finding(workspace, second)
    assert (said.status, said.value) == ("warn", COST)
    assert 'no statement says whose data the project "panel" has' in said.message
    assert 'with the people of "survey" epsilon would be 8' in said.message
    assert finding(workspace, second, policy=Policy(epsilon=9.0)).status == "pass", "all together keep the budget"
    state_population(workspace, find_project(workspace, "panel"), "patients of the clinic")
    assert finding(workspace, second).status == "pass", "a person has stated whose they are"
    state_population(workspace, find_project(workspace, "panel"), "Survey")
    assert is_charged_with_the_first(workspace, second)


def test_who_states_the_same_population_later_joins_both_ledgers(workspace: Workspace, tmp_path: Path) -> None:
    run_in(workspace, other_people(90, 1), "survey", "first", tmp_path)
    second = run_in(workspace, other_people(90, 2), "panel", "second", None)
    assert finding(workspace, second).value == COST
    for project in ("survey", "panel"):
        state_population(workspace, find_project(workspace, project), "Residents")
    assert is_charged_with_the_first(workspace, second)


def test_a_recipe_cannot_leave_the_population_of_its_project(workspace: Workspace, tmp_path: Path) -> None:
    run_in(workspace, other_people(90, 1), "survey", "first", tmp_path, **STATED)
    with pytest.raises(BadInput, match=r"population\.name: the project is of the population"):
        run_in(workspace, other_people(90, 2), "survey", "second", None, population={"name": "Somebody else"})


def test_a_run_that_states_the_old_population_is_charged_to_both(workspace: Workspace, tmp_path: Path) -> None:
    run_in(workspace, other_people(90, 1), "survey", "first", tmp_path, **STATED)
    second = run_in(workspace, other_people(90, 2), "survey", "second", None, **STATED)
    begin_population(workspace, find_project(workspace, "survey"), "Others", REASON)
    assert is_charged_with_the_first(workspace, second)


def with_identifier(count: int, seed: int, name: str) -> pd.DataFrame:
    return people(count, seed)[["person", "income"]].rename(columns={"person": name})


def test_one_person_by_a_renamed_identifier_is_enough_and_survives_deletion(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marks of people are of values alone, not of the name of their column."""
    import test_same_people

    monkeypatch.setitem(test_same_people.ROLES, "pid", ("categorical", "identifier"))
    first, second = with_identifier(80, 1, "person"), with_identifier(80, 2, "pid")
    third = with_identifier(80, 3, "pid")
    second.loc[5, "pid"] = f" {str(first.loc[7, 'person']).upper()} "
    run_in(workspace, first, "survey", "first", tmp_path, population={"name": "A", "identifier": "person"})
    stated = {"population": {"name": "B", "identifier": "pid"}}
    shared, alone = (
        run_in(workspace, one, "panel", f"run {i}", None, **stated) for i, one in enumerate((second, third))
    )
    for _ in range(2):
        assert is_charged_with_the_first(workspace, shared)
        assert "run 1 (1 person)" in finding(workspace, shared).message
        assert finding(workspace, alone).value == COST
        (charge,) = read_charges(workspace.connection)
        assert charge.identifiers in named_table_hashes(workspace), "no clean-up removes it"
        if workspace.connection.execute("SELECT 1 FROM project WHERE name = 'survey'").fetchone():
            delete_project(workspace, find_project(workspace, "survey"))


@pytest.mark.parametrize("name", ["junk", "number", "sex"])
def test_another_identifier_hides_nobody(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A recipe names a column of random texts, of running numbers or of two values in place of the stated identifier."""
    import test_same_people

    for one in ("pid", "junk"):
        monkeypatch.setitem(test_same_people.ROLES, one, ("categorical", "identifier"))
    first, second = with_identifier(80, 1, "person"), with_identifier(80, 2, "pid")
    second = second.assign(junk=people(80, 3)["person"], number=range(80), sex=["f", "m"] * 40)
    second = second[["pid", "junk", "number", "sex", "income"]]
    second.loc[5, "pid"] = first.loc[7, "person"]
    run_in(workspace, first, "survey", "first", tmp_path, population={"name": "A", "identifier": "person"})
    stated = run_in(workspace, second, "panel", "second", None, population={"name": "B", "identifier": "pid"})
    assert is_charged_with_the_first(workspace, stated)
    hidden = run_in(workspace, second, "panel", "third", None, population={"name": "B", "identifier": name})
    assert is_charged_with_the_first(workspace, hidden)
    assert "some of these people are in run 1 (1 person) too" in finding(workspace, hidden).message


def test_people_who_are_marked_by_another_key_are_unknown_and_not_others(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a workspace that was adopted, which has a key of its own."""
    import test_same_people

    monkeypatch.setitem(test_same_people.ROLES, "pid", ("categorical", "identifier"))
    first, second = with_identifier(80, 1, "person"), with_identifier(80, 2, "pid")
    second.loc[5, "pid"] = first.loc[7, "person"]
    run_in(workspace, first, "survey", "first", tmp_path, population={"name": "A", "identifier": "person"})
    later = run_in(workspace, second, "panel", "second", None, population={"name": "B", "identifier": "pid"})
    assert is_charged_with_the_first(workspace, later)
    marks = ledger.hmacs_of_people

    def by_another_key(case: Any) -> Any:
        keys, sealer = marks(case)
        return keys ^ 1, replace(sealer, name="another")

    monkeypatch.setattr(ledger, "hmacs_of_people", by_another_key)
    found = finding(workspace, later)
    assert (found.status, found.value) == ("warn", COST)
    assert "the people of run 1 are marked by another key" in found.message
    assert "with them epsilon would be 8" in found.message
    assert finding(workspace, later, policy=Policy(epsilon=9.0)).status == "pass"


def test_an_identifier_that_was_stated_by_mistake_is_corrected(workspace: Workspace, tmp_path: Path) -> None:
    """By sex all tables would have people in common."""
    first, second = (people(80, seed)[["person", "sex", "income"]] for seed in (1, 2))
    run_in(workspace, first, "survey", "first", tmp_path, population={"name": "A", "identifier": "sex"})
    mistaken = run_in(workspace, second, "panel", "second", None, population={"name": "B", "identifier": "sex"})
    assert is_charged_with_the_first(workspace, mistaken)
    corrected = run_in(workspace, second, "panel", "third", None, population={"name": "B", "identifier": "person"})
    assert finding(workspace, corrected).value == COST
    (found,) = [one for one in list_population_ledgers(workspace) if one.name == "A"]
    assert found.people == 3, "by the values that were stated"


def test_a_release_that_shares_a_person_is_charged_to_both_populations(workspace: Workspace, tmp_path: Path) -> None:
    first, second = people(80, 1)[["person", "income"]], people(80, 2)[["person", "income"]]
    second.loc[5, "person"] = first.loc[7, "person"]
    run_in(workspace, first, "survey", "first", tmp_path, population={"name": "A", "identifier": "person"})
    run_in(workspace, second, "panel", "second", tmp_path, population={"name": "B", "identifier": "person"})
    spent = {one.name: one.epsilon for one in list_population_ledgers(workspace)}
    assert spent == {"A": 2 * COST, "B": COST}


def test_the_sum_for_the_public_leaves_out_whom_the_gate_recognised_under_any_spelling(
    workspace: Workspace, tmp_path: Path
) -> None:
    """That a person is in two tables follows from the confidential data."""
    first, second = people(80, 1)[["person", "income"]], people(80, 2)[["person", "income"]]
    second.loc[5, "person"] = first.loc[7, "person"]
    run_in(workspace, other_people(90, 3), "clinic", "beside", None, population={"name": "The TOWN"})
    run_in(workspace, first, "survey", "first", tmp_path, population={"name": "the town", "identifier": "person"})
    run_in(workspace, second, "panel", "second", tmp_path, population={"name": "B", "identifier": "person"})
    (town,) = [one for one in list_population_ledgers(workspace) if one.name == "The TOWN"]
    assert town.epsilon == 2 * COST
    assert (town.sum_for_public.releases, town.sum_for_public.epsilon) == (1, COST)


def test_delta_adds_up_and_is_compared_with_one_over_the_people(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_delta(delta: float) -> None:
        cost = earlier.PrivacySpending(0.1, 1, covered=True, delta=delta)
        for module in (earlier, ledger):
            monkeypatch.setattr(module, "privacy_cost_of_run", lambda *_: cost)

    with_delta(4e-4)
    run_in(workspace, other_people(90, 1), "survey", "first", tmp_path)
    second = run_in(workspace, other_people(100, 2), "survey", "second", None)
    small = finding(workspace, second, "privacy_delta")
    assert (small.status, small.value, small.limit) == ("pass", pytest.approx(8e-4), 1)
    assert "1 / n is 0.01 for 100 people" in small.message
    limited = finding(workspace, second, "privacy_delta", Policy(delta=7e-4))
    assert (limited.status, limited.compared_value) == ("block", pytest.approx(8 / 7))
    with_delta(5e-3)
    assert finding(workspace, second, "privacy_delta").status == "warn", "above a tenth of 1 / n"
    with_delta(1e-2)
    assert finding(workspace, second, "privacy_delta").status == "block", "1 / n itself promises nothing"
    with_delta(1e-4)
    sized = run_in(workspace, other_people(100, 3), "panel", "third", None, population={"name": "All", "size": 20_000})
    assert finding(workspace, sized, "privacy_delta").status == "block", "the size that the recipe states counts"


def test_the_charge_stands_before_the_first_file_and_stays_when_the_release_is_undone(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = run_in(workspace, other_people(90, 1), "survey", "first", None)
    seen: list[int] = []

    def fail(*_: object) -> tuple[str, ...]:
        seen.append(len(read_charges(workspace.connection)))
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(service, "_write_packages", fail)
        with pytest.raises(OSError, match="full"):
            write_run_release(workspace, run_id, tmp_path / "out", reason="simulated people")
    assert seen == [1]
    assert not (tmp_path / "out").exists()
    (charge,) = read_charges(workspace.connection)
    assert charge.is_undone
    second = run_in(workspace, other_people(90, 2), "survey", "second", None)
    assert is_charged_with_the_first(workspace, second)
    assert finding(workspace, run_id).value == COST, "the same run has the same noise"
    write_run_release(workspace, run_id, tmp_path / "out", reason="simulated people")
    assert ledger_of_project(workspace, find_project(workspace, "survey")).epsilon == COST


def test_of_two_releases_at_one_time_one_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    """Each alone keeps the budget; both were examined before either was charged."""
    waive = {"kept_keys": "simulated", "unmet_thresholds": "simulated"}
    runs = [run_in(workspace, other_people(90, seed), "survey", f"run {seed}", None) for seed in (1, 2)]
    blocks = {one: {f.check for f in examine_release(workspace, plan_release(workspace, one), Policy(epsilon=5.0)).blocking_findings} for one in runs}  # fmt: skip
    assert all("privacy_budget" not in one for one in blocks.values())
    together, outcomes = threading.Barrier(2, timeout=120), dict[int, str]()
    examine, first_time = service.examine_release, set[int]()

    def examine_together(own: Workspace, plan: Any, policy: Policy) -> Any:
        found = examine(own, plan, policy)
        if plan.run.id not in first_time:
            first_time.add(plan.run.id)
            together.wait()
        return found

    def release(run_id: int) -> None:
        with Workspace.open(workspace.directory) as own:
            reasons = dict.fromkeys(blocks[run_id], "simulated people") or waive
            try:
                write_run_release(own, run_id, tmp_path / f"out-{run_id}", waive=reasons)
                outcomes[run_id] = "released"
            except NotReleased as error:
                outcomes[run_id] = str(error)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(service, "examine_release", examine_together)
        threads = [threading.Thread(target=release, args=(one,)) for one in runs]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert sorted(one == "released" for one in outcomes.values()) == [False, True], outcomes
    assert "privacy_budget" in next(one for one in outcomes.values() if one != "released")
    assert len(read_charges(workspace.connection)) == 1


def test_of_two_releases_without_an_account_one_sees_the_other(workspace: Workspace, tmp_path: Path) -> None:
    """The second is compared with the first although its files are still being written."""
    cost = earlier.PrivacySpending(0.0, 0, covered=False)
    (workspace.directory / "policy.toml").unlink()
    frame = other_people(90, 1)
    runs = [run_in(workspace, table, "survey", f"run {len(table)}", None) for table in (frame, frame[:-1])]
    write = service._write_packages
    seen: dict[int, float | None] = {}

    def release_the_other_meanwhile(own: Workspace, dossier: Any, *more: Any) -> Any:
        (before,) = [one.value for one in dossier.examination.findings if one.check == "released_before"]
        seen[dossier.plan.run.id] = before
        if len(seen) == 1:
            write_run_release(own, runs[1], tmp_path / "second", reason="simulated people")
        return write(own, dossier, *more)

    with pytest.MonkeyPatch.context() as patched:
        for module in (earlier, ledger):
            patched.setattr(module, "privacy_cost_of_run", lambda *_: cost)
        patched.setattr(service, "_write_packages", release_the_other_meanwhile)
        write_run_release(workspace, runs[0], tmp_path / "first", reason="simulated people")
    assert seen == {runs[0]: 0, runs[1]: 1}


def test_releases_without_an_account_that_were_examined_at_one_time_are_examined_again(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Both were examined before either began: the later one looks again, and finds a table that differs in one record."""
    cost = earlier.PrivacySpending(0.0, 0, covered=False)
    (workspace.directory / "policy.toml").unlink()
    frame = other_people(90, 1)
    runs = [run_in(workspace, table, "survey", f"run {len(table)}", None) for table in (frame, frame[:-1])]
    examine, looks = service.examine_release, list[tuple[int, float | None]]()

    def release_the_other_after(own: Workspace, plan: Any, policy: Policy) -> Any:
        found = examine(own, plan, policy)
        (before,) = [one.value for one in found.findings if one.check == "released_before"]
        looks.append((plan.run.id, before))
        if len(looks) == 1:
            write_run_release(own, runs[1], tmp_path / "second", reason="simulated people")
        return found

    with pytest.MonkeyPatch.context() as patched:
        for module in (earlier, ledger):
            patched.setattr(module, "privacy_cost_of_run", lambda *_: cost)
        patched.setattr(service, "examine_release", release_the_other_after)
        write_run_release(workspace, runs[0], tmp_path / "first", reason="simulated people")
    assert looks == [(runs[0], 0), (runs[1], 0), (runs[0], 1)]


def test_releases_of_an_earlier_version_are_charged_to_the_population_of_their_project(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They entered no charge: their cost is computed from run or tombstone."""
    monkeypatch.setattr(ledger.LedgerCharge, "to_details", lambda _: {})
    run_in(workspace, other_people(90, 1), "survey", "first", tmp_path)
    monkeypatch.undo()
    cost = earlier.PrivacySpending(COST, 1, covered=True)
    for module in (earlier, ledger):
        monkeypatch.setattr(module, "privacy_cost_of_run", lambda *_: cost)
    assert read_charges(workspace.connection) == []
    second = run_in(workspace, other_people(90, 2), "survey", "second", None)
    elsewhere = run_in(workspace, other_people(90, 3), "panel", "third", None)
    assert is_charged_with_the_first(workspace, second)
    assert finding(workspace, elsewhere).value == COST
    # Charged to others when it is released again, it stays charged to the people of then.
    begin_population(workspace, find_project(workspace, "survey"), "Others", REASON)
    write_run_release(workspace, 1, tmp_path / "again", reason="simulated people")
    spent = {one.name: one.epsilon for one in list_population_ledgers(workspace)}
    assert spent == {"survey": COST, "Others": COST, "panel": 0}
    state_population(workspace, find_project(workspace, "survey"), "survey")
    assert is_charged_with_the_first(workspace, second)
    delete_run(workspace, 1)
    assert is_charged_with_the_first(workspace, second)
    delete_project(workspace, find_project(workspace, "survey"))
    assert is_charged_with_the_first(workspace, run_in(workspace, other_people(90, 4), "survey", "fourth", None))
