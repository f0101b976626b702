"""Statements of people about whose data a project has, and the ledger of its population."""

from __future__ import annotations

import sqlite3

from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.engine.recipe.population import check_population_name, fold_population_name

from ..audit import user
from ..errors import NotFound, NotReleased
from ..gate.gate import may_waive
from ..gate.ledger import list_population_ledgers
from ..policy.justification import checked_full_justification
from ..policy.policy import read_policy_of_workspace
from ..reporting.ledger import PopulationLedger
from ..store.ledger import enter_statement, read_charges, read_population_registry
from ..store.workspace import Workspace


def find_project(workspace: Workspace, name: str) -> int:
    """Return the number of the project with a name. Raises NotFound."""
    row = workspace.connection.execute("SELECT id FROM project WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise NotFound(f'there is no project "{name}"; sfumato population lists all of them')
    return int(row[0])


def ledger_of_project(workspace: Workspace, project_id: int) -> PopulationLedger:
    """Return the ledger of the population that a project is of."""
    registry = read_population_registry(workspace.connection)
    name = registry.display_name(registry.population_of_project(project_id))
    return next(one for one in list_population_ledgers(workspace) if one.name == name)


def state_population(
    workspace: Workspace, project_id: int, name: str, size: int | None = None, identifier: str | None = None
) -> None:
    """State that the people of a project are those of a population, and join both ledgers.

    Raises BadInput for a name that nobody could read, or for an identifier that no table of the project has.
    """
    name = check_population_name(name, "--name")
    known = {one for dataset in workspace.list_datasets(project_id) for one in dataset.schema.names}
    # A misspelt identifier would recognise nobody, without a word.
    if identifier is not None and known and identifier not in known:
        hint = near_miss_hint(identifier, sorted(known))
        raise BadInput("--identifier", f'no table of the project has a variable "{identifier}"{hint}')
    with workspace.write_transaction() as connection:
        enter_statement(connection, project_id, name, size=size, identifier=identifier)


def population_names_in_use(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the folded names of all populations that a project was ever of, or a release was charged to."""
    # Of a deleted project the charges alone remain.
    charged = {fold_population_name(name) for one in read_charges(connection) for name in one.populations}
    return read_population_registry(connection).folded_names | charged


def check_new_population(name: object, in_use: frozenset[str], place: str) -> str:
    """Return the name of a population that begins, without blanks around it. Raises BadInput where it is in use."""
    name = check_population_name(name, place)
    if fold_population_name(name) in in_use:
        join = "sfumato population PROJECT --name NAME"
        raise BadInput(place, f'"{name}" is in use in this workspace; choose a new name, or join those people: {join}')
    return name


def begin_population(workspace: Workspace, project_id: int, name: str, reason: str) -> None:
    """State that other people were asked for a project than before, so that a new population with a new ledger begins.

    The audit log keeps who stated it, and why. Raises BadInput for a weak reason or a name that is in use, and
    NotReleased where the policy does not let this account waive.
    """
    reason = checked_full_justification(reason, "--reason")
    policy = read_policy_of_workspace(workspace.directory)
    # It frees a budget as a waiver does.
    if not may_waive(policy, user()):
        raise NotReleased(
            f"{user()} may not state that other people were asked; the policy lets {', '.join(policy.waivers)}"
        )
    with workspace.write_transaction() as connection:
        name = check_new_population(name, population_names_in_use(connection), "--others")
        enter_statement(connection, project_id, name, reason=reason)
