"""The command population: what was spent of a budget, statements about whose data a project has, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prepared_populations import BUDGET, EPSILON, PEOPLE, PROJECT, REASON, WEAK_REASON, charged_workspace

from sfumato.workspace.audit import AuditAct, AuditRow, append_act, audit_rows, user
from sfumato.workspace.store.ledger import read_charges
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
LEDGER_KEYS = [
    "population", "projects", "people", "epsilon", "epsilon_budget", "epsilon_left", "delta", "delta_limit", "charges", "statements",
]  # fmt: skip
CHARGE_KEYS = ["run", "project", "time", "user", "epsilon", "figures_epsilon", "delta", "undone"]
STATEMENT_KEYS = ["time", "user", "population", "previous", "others_asked", "reason"]

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def charged(home: Path) -> str:
    """A workspace with a release that is charged, and a run of other people that is not released."""
    return str(charged_workspace(home / "w"))


@pytest.fixture
def call(charged: str, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> Call:
    """Call the command on the workspace; return its status, what it prints and what it reports."""

    def run_population(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = sfumato("population", *arguments, "--workspace", charged)
        out, err = capsys.readouterr()
        return status, out, err

    return run_population


def log_of(directory: str) -> list[AuditRow]:
    with Workspace.open(Path(directory)) as workspace:
        return audit_rows(workspace.connection)


def read_json(call: Call, *arguments: str) -> dict[str, Any]:
    status, out, _ = call(*arguments, "--json", "-")
    assert status == 0
    table = json.loads(out)
    assert isinstance(table, dict)
    return table


def test_an_empty_workspace_says_that_there_is_none(
    home: Path, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    Workspace.create(home / "w").close()
    assert sfumato("population", "--workspace", "w") == 0
    assert "no project yet, and nothing was released" in capsys.readouterr().out


def test_the_list_and_one_ledger_show_what_is_spent_and_left(call: Call) -> None:
    status, out, _ = call()
    assert status == 0
    head, _, row = out.splitlines()
    assert head.split() == ["population", "projects", "epsilon", "spent", "left", "delta", "spent", "limit", "runs"]
    assert row.split() == [*PROJECT.split() * 2, "2", "1", "1e-09", f"{1 / PEOPLE:.6g}", "1"]
    status, out, _ = call(PROJECT)
    assert status == 0
    assert out.splitlines()[:3] == [
        f'The population "{PROJECT}": 1 release charged, epsilon 2, delta 1e-09.',
        "Of the budget of epsilon 3, 1 is left.",
        f"All deltas together may reach {1 / PEOPLE:.3g} for {PEOPLE} people.",
    ]
    assert out.splitlines()[-1].split()[:3] == ["1", *PROJECT.split()]


def test_json_has_the_same_keys_for_all_ledgers_and_for_one(call: Call) -> None:
    everything, ledger = read_json(call), read_json(call, PROJECT)
    assert everything == {"populations": [ledger]}
    assert list(ledger) == LEDGER_KEYS
    (charge,) = ledger["charges"]
    assert list(charge) == CHARGE_KEYS
    assert (charge["run"], charge["project"], charge["user"], charge["epsilon"]) == (1, PROJECT, user(), EPSILON)
    assert (ledger["population"], ledger["projects"], ledger["people"]) == (PROJECT, [PROJECT], PEOPLE)
    assert (ledger["epsilon"], ledger["epsilon_budget"]) == (EPSILON, BUDGET)
    assert ledger["epsilon_left"] == BUDGET - EPSILON
    assert ledger["delta_limit"] == pytest.approx(1 / PEOPLE)
    assert (charge["undone"], ledger["statements"]) == (False, [])


def test_an_unbounded_release_is_null_in_json_and_never_a_sum(call: Call, charged: str) -> None:
    """A cost that no proof bounds is not 0, and nothing is said to be left."""
    with Workspace.open(Path(charged)) as workspace, workspace.write_transaction() as connection:
        (charge,) = read_charges(connection)
        unknown = replace(charge, run_id=2, covered=False, epsilon=0.0, delta=None, datasets="other")
        append_act(connection, AuditAct.RELEASE_BEGUN, "run 2", **unknown.to_details())
    ledger = read_json(call, PROJECT)
    assert [ledger[key] for key in ("epsilon", "epsilon_left", "delta")] == [None] * 3
    assert [one["epsilon"] for one in ledger["charges"]] == [EPSILON, None]
    _, out, _ = call(PROJECT)
    assert "No proof bounds the cost of run 2, so what is left is unknown." in out
    assert "is left." not in out


@pytest.mark.parametrize("reason", [WEAK_REASON, "", "other"])
def test_a_weak_reason_begins_no_ledger(call: Call, charged: str, reason: str) -> None:
    before = len(log_of(charged))
    status, out, err = call(PROJECT, "--others", "Spring 2026", "--reason", reason)
    assert (status, out) == (2, "")
    assert err.splitlines() == ["sfumato: --reason: needs at least 3 different words that say who was asked, and when"]
    assert len(log_of(charged)) == before
    assert read_json(call, PROJECT)["population"] == PROJECT


def test_a_good_reason_begins_a_ledger_and_the_audit_log_keeps_it(call: Call, charged: str) -> None:
    status, out, _ = call(PROJECT, "--others", "Spring 2026", "--reason", REASON)
    assert status == 0
    lines = out.splitlines()
    assert lines[:2] == [
        'The population "Spring 2026": no release is charged yet.',
        "Of the budget of epsilon 3, 3 is left.",
    ]
    assert f'that these are other people than those of "{PROJECT}": "{REASON}".' in lines[-1]
    row = log_of(charged)[-1]
    assert row.act == AuditAct.POPULATION_BEGUN
    assert (row.details_table["reason"], row.details_table["user"]) == (REASON, user())
    ledgers = {one["population"]: one for one in read_json(call)["populations"]}
    assert {name: one["epsilon"] for name, one in ledgers.items()} == {"Spring 2026": 0, PROJECT: EPSILON}
    (statement,) = ledgers["Spring 2026"]["statements"]
    assert list(statement) == STATEMENT_KEYS
    assert (statement["others_asked"], statement["reason"], statement["previous"]) == (True, REASON, PROJECT)


@pytest.mark.parametrize("name", [PROJECT, "TOWN  survey", "town-survey"])
def test_a_name_in_use_begins_no_ledger_in_any_spelling(call: Call, charged: str, name: str) -> None:
    before = len(log_of(charged))
    status, _, err = call(PROJECT, "--others", name, "--reason", REASON)
    assert status == 2
    (line,) = err.splitlines()
    assert f'--others: "{name}" is in use in this workspace; choose a new name' in line
    assert len(log_of(charged)) == before


def test_a_name_frees_no_budget(call: Call, charged: str) -> None:
    """The population has another name; what was spent of it stays spent."""
    status, out, _ = call(PROJECT, "--name", "Residents", "--size", "20000")
    assert status == 0
    assert out.splitlines()[:3] == [
        'The population "Residents": 1 release charged, epsilon 2, delta 1e-09.',
        "Of the budget of epsilon 3, 1 is left.",
        "All deltas together may reach 5e-05 for 20,000 people.",
    ]
    assert log_of(charged)[-1].act == AuditAct.POPULATION_STATED
    (ledger,) = read_json(call)["populations"]
    assert (ledger["epsilon"], ledger["people"]) == (EPSILON, 20_000)
    (statement,) = ledger["statements"]
    assert (statement["others_asked"], statement["population"]) == (False, "Residents")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), 'there is no project "nowhere"; sfumato population lists all of them'),
        (("nowhere", "--name", "Residents"), 'there is no project "nowhere"'),
        (("nowhere", "--others", "Spring", "--reason", REASON), 'there is no project "nowhere"'),
        (("--name", "Residents"), "name the project that the statement is about"),
        ((PROJECT, "--others", "Spring"), "--others and --reason go together"),
        ((PROJECT, "--reason", REASON), "--others and --reason go together"),
        ((PROJECT, "--size", "7"), "--size and --identifier go with --name"),
        ((PROJECT, "--name", "A", "--others", "B", "--reason", REASON), "either --name"),
        ((PROJECT, "--name", "..."), "--name: must be the name of the people"),
        (
            (PROJECT, "--name", "A", "--identifier", "regoin"),
            '--identifier: no table of the project has a variable "regoin"; did you mean "region"?',
        ),
    ],
)
def test_what_cannot_be_stated_is_one_message_and_changes_nothing(
    call: Call, charged: str, arguments: tuple[str, ...], message: str
) -> None:
    before = log_of(charged)
    status, out, err = call(*arguments)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert message in line
    assert log_of(charged) == before
