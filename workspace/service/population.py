"""Populations of a workspace: statements about whose data a project has, and the ledgers of what was spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.population import check_population_name, fold_population_name

from ..audit import user
from ..errors import NotFound, NotReleased
from ..gate.gate import may_waive
from ..gate.ledger import read_all_charges, spending_of_charges, total_delta
from ..policy.justification import checked_full_justification
from ..policy.policy import Policy, read_policy_of_workspace
from ..store.ledger import LedgerCharge, PopulationChange, enter_statement, read_charges, read_population_registry
from ..store.workspace import Workspace


@dataclass(frozen=True)
class PopulationLedger:
    """Everything that was charged to one population.

    name: its name
    projects: names of the projects that are of it now
    charges: what each release added, oldest first
    changes: statements by which projects came to it, oldest first
    people: the largest number of people that is known of it; 0 where none is known
    budget, delta_limit: limits of the policy; None where it has none
    """

    name: str
    projects: tuple[str, ...]
    charges: tuple[LedgerCharge, ...]
    changes: tuple[PopulationChange, ...]
    people: int
    budget: float | None
    delta_limit: float | None

    @property
    def unbounded_runs(self) -> tuple[int, ...]:
        """Return the runs whose cost no proof bounds."""
        return tuple(one.run_id for one in self.charges if not one.covered)

    @property
    def epsilon(self) -> float | None:
        """Return the epsilon that was spent; None where no proof bounds it."""
        return None if self.unbounded_runs else math.fsum(one.epsilon for one in self.charges)

    @property
    def delta(self) -> float | None:
        """Return the delta that was spent; None where it is unknown."""
        return None if self.unbounded_runs else total_delta(self.charges)

    @property
    def epsilon_left(self) -> float | None:
        """Return what is left of the policy's budget, at least 0; None without a budget or a known cost."""
        spent = self.epsilon
        return None if spent is None or self.budget is None else max(0.0, self.budget - spent)

    @property
    def largest_delta(self) -> float | None:
        """Return the limit of the sum of the deltas: the policy's or 1 / people; None where neither is known."""
        limits = [self.delta_limit, 1 / self.people if self.people else None]
        return min((one for one in limits if one is not None), default=None)

    def to_table(self) -> dict[str, Any]:
        """Return the ledger as ``sfumato population --json`` writes it."""
        return {
            "population": self.name,
            "projects": list(self.projects),
            "people": self.people or None,
            "epsilon": self.epsilon,
            "epsilon_budget": self.budget,
            "epsilon_left": self.epsilon_left,
            "delta": self.delta,
            "delta_limit": self.largest_delta,
            "charges": [
                {
                    "run": one.run_id,
                    "project": one.project,
                    "time": one.time,
                    "user": one.user,
                    "epsilon": one.epsilon if one.covered else None,
                    "figures_epsilon": one.figures_epsilon,
                    "delta": one.delta,
                    "undone": one.is_undone,
                }
                for one in self.charges
            ],
            "statements": [
                {
                    "time": one.time,
                    "user": one.user,
                    "population": one.population,
                    "previous": one.previous,
                    "others_asked": one.begins_population,
                    "reason": one.reason,
                }
                for one in self.changes
            ],
        }


def list_population_ledgers(workspace: Workspace, policy: Policy | None = None) -> list[PopulationLedger]:
    """Return the ledgers of all populations of a workspace by name. Raises BadInput for a policy that cannot be read."""
    policy = read_policy_of_workspace(workspace.directory) if policy is None else policy
    registry, charges = read_population_registry(workspace.connection), read_all_charges(workspace)
    projects: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    for row in workspace.connection.execute("SELECT id, name FROM project ORDER BY id"):
        population = registry.population_of_project(int(row[0]))
        names.setdefault(registry.key_of(population), registry.display_name(population))
        projects.setdefault(registry.key_of(population), []).append(str(row[1]))
    for one in charges:
        for name in (*one.populations, *one.recognised):
            names.setdefault(registry.key_of(name), registry.display_name(name))
    ledgers = []
    for key, name in names.items():
        of = [one for one in charges if key in map(registry.key_of, (*one.populations, *one.recognised))]
        changes = [one for one in registry.changes if registry.key_of(one.population) == key]
        people = max((registry.size_of(name), *(one.people for one in of)))
        ledgers.append(
            PopulationLedger(
                name,
                tuple(projects.get(key, ())),
                tuple(spending_of_charges(None, of)),
                tuple(changes),
                people,
                policy.epsilon,
                policy.delta,
            )
        )
    return sorted(ledgers, key=lambda one: one.name.casefold())


def find_project(workspace: Workspace, name: str) -> int:
    """Return the number of the project with a name. Raises NotFound."""
    row = workspace.connection.execute("SELECT id FROM project WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise NotFound(f"there is no project {name}; sfumato lists them")
    return int(row[0])


def ledger_of_project(workspace: Workspace, project_id: int) -> PopulationLedger:
    """Return the ledger of the population that a project is of."""
    registry = read_population_registry(workspace.connection)
    name = registry.display_name(registry.population_of_project(project_id))
    return next(one for one in list_population_ledgers(workspace) if one.name == name)


def state_population(
    workspace: Workspace, project_id: int, name: str, size: int | None = None, identifier: str | None = None
) -> None:
    """State that the people of a project are those of a population, and join both ledgers. Raises BadInput."""
    name = check_population_name(name, "--name")
    with workspace.write_transaction() as connection:
        enter_statement(connection, project_id, name, size=size, identifier=identifier)


def begin_population(workspace: Workspace, project_id: int, name: str, reason: str) -> None:
    """State that other people were asked for a project than before, so that a new population with a new ledger begins.

    The audit log keeps who stated it, and why. Raises BadInput for a weak reason or a name that is in use, and
    NotReleased where the policy does not let this account waive.
    """
    name = check_population_name(name, "--others")
    reason = checked_full_justification(reason, "--reason")
    policy = read_policy_of_workspace(workspace.directory)
    # It frees a budget as a waiver does.
    if not may_waive(policy, user()):
        raise NotReleased(
            f"{user()} may not state that other people were asked; the policy lets {', '.join(policy.waivers)}"
        )
    with workspace.write_transaction() as connection:
        registry, folded = read_population_registry(connection), fold_population_name(name)
        # Of a deleted project the charges alone remain.
        charged = (fold_population_name(old) for one in read_charges(connection) for old in one.populations)
        if registry.is_known(name) or folded in charged:
            raise BadInput(
                "--others",
                f'"{name}" is a population of this workspace already; choose a new name, or join it with --name',
            )
        enter_statement(connection, project_id, name, reason=reason)
