"""Charges of releases to populations, and statements about populations, as values: read from no database."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

AuditDetails = Mapping[str, str | int | float | None]
CHARGED_TO = "population"
"""Detail of a row by which it is a charge: the populations that it is charged to by statement."""


@dataclass(frozen=True, slots=True)
class PopulationChange:
    """A row of the audit log about the population of a project.

    number, time, user: number of the row, when and by whom
    project_id: the project
    population, previous: its population from then on, and before
    size: number of people, where it is known
    identifier: variable that says who a person is; empty where none is stated
    reason: why other people were asked; empty where the people are the same
    """

    number: int
    time: str
    user: str
    project_id: int
    population: str
    previous: str
    size: int | None
    identifier: str
    reason: str

    @property
    def begins_population(self) -> bool:
        """Return whether other people were asked, so that a new population began."""
        return bool(self.reason)


@dataclass(frozen=True, slots=True)
class LedgerCharge:
    """What a release was charged.

    number, time, user: number of its row of the audit log, when and by whom
    run_id: number of the run
    project: name of its project
    populations: populations that project and recipe state
    recognised: populations that it was charged to because their people were recognised in it
    epsilon, figures_epsilon: cost in differential privacy, and the part of it that paid for public figures; None where unknown
    delta: chance that the promise of epsilon fails; None where unknown
    steps: number of steps that keep an account
    covered: whether a proof covers the whole release
    people: number of people in the confidential data
    source, table: hashes of the confidential file and of its stored table
    datasets: hash of the released datasets with their random key and seed; empty where unknown
    identifiers: hash of the stored HMACs of the identifier; empty where none was stated
    identifiers_key: fingerprint of the key of these HMACs
    is_undone: whether the release was undone after it had begun
    """

    number: int
    time: str
    user: str
    run_id: int
    project: str
    populations: tuple[str, ...]
    recognised: tuple[str, ...]
    epsilon: float
    figures_epsilon: float | None
    delta: float | None
    steps: int
    covered: bool
    people: int
    source: str = ""
    table: str = ""
    datasets: str = ""
    identifiers: str = ""
    identifiers_key: str = ""
    is_undone: bool = False

    def to_details(self) -> AuditDetails:
        """Return the charge as details of the row that begins the release."""
        return {
            CHARGED_TO: json.dumps(self.populations),
            "recognised": json.dumps(self.recognised) if self.recognised else None,
            "project": self.project,
            "epsilon": self.epsilon,
            "figures_epsilon": self.figures_epsilon,
            "delta": self.delta,
            "steps": self.steps,
            "covered": int(self.covered),
            "people": self.people,
            "source_sha256": self.source,
            "table_sha256": self.table,
            "datasets": self.datasets,
            "identifiers": self.identifiers or None,
            "identifiers_key": self.identifiers_key or None,
        }


def total_delta(charges: Sequence[LedgerCharge]) -> float | None:
    """Return the sum of the deltas; None where one is unknown."""
    deltas = [one.delta for one in charges]
    return None if None in deltas else math.fsum(one for one in deltas if one is not None)
