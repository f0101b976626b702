"""Ledger of the population of a release, as the gate reads it: what was spent, and what this release is charged.

A release is charged to the populations that its project and its recipe state. Other populations are charged too where
their people are recognised in it: by the same file or table, by rows that identify most people of both tables, or by
one person in common by the identifier.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import math
import sqlite3
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from sfumato.engine.adversary.same_people import numbers_people
from sfumato.engine.data.bits import Keys
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution.tasks import dataset_recipe_hash

from ..audit import AuditAct, parse_details, user
from ..errors import NotFound
from ..policy.charges import LedgerCharge, PopulationChange
from ..policy.policy import Policy, read_policy_of_workspace
from ..reporting.ledger import PopulationLedger
from ..store.artefacts import weights_hash
from ..store.ledger import PopulationRegistry, last_charge_number, read_charges, read_population_registry
from ..store.runs import StoredRun, find_run
from ..store.seals import RecordSealer
from ..store.tombstones import deleted_run_tombstones, read_tombstone
from ..store.workspace import Workspace
from .checks import ExaminedRelease
from .contents import released_table_hashes
from .earlier import MARK_BYTES, EarlierRelease, packages_in_force, privacy_cost_of_run, read_release_history

SAME_COST = 1e-12
"""Below it two costs that were added up in another order are the same."""
PEOPLE_COLUMN = "people"
MOST_RECORDS_OF_A_PERSON = 10
"""Records for each value, on average, up to which a variable that was stated to identify people still counts as such."""


@dataclass(frozen=True, eq=False)
class ReleaseLedger:
    """What was charged to the populations of a release before it, and what it would be charged itself.

    own: charge of the release
    charges: charges of other releases to these populations, oldest first
    registry: which population each project is of
    changes: statements about the project of the release, oldest first
    shared_people: number of people in common by the identifier, by run of another population
    uncompared: charges of other populations whose people are marked by another key
    end: last row of the audit log that changes the ledger
    """

    own: LedgerCharge
    charges: tuple[LedgerCharge, ...]
    registry: PopulationRegistry
    changes: tuple[PopulationChange, ...]
    shared_people: Mapping[int, int]
    uncompared: tuple[LedgerCharge, ...]
    end: int

    @property
    def population(self) -> str:
        """Return the name of the population that the project is of."""
        return self.registry.display_name(self.own.populations[0])

    @property
    def opening_statement(self) -> PopulationChange | None:
        """Return the statement of other people that began the project's population; None without one."""
        key = self.registry.key_of(self.own.populations[0])
        found = (one for one in reversed(self.changes) if one.begins_population)
        return next((one for one in found if self.registry.key_of(one.population) == key), None)

    @property
    def n_people(self) -> int:
        """Return the largest number of people that is known of the populations."""
        sizes = (self.registry.size_of(name) for name in self.own.populations)
        return max(self.own.people, *sizes, *(one.people for one in self.charges))


def spending_of_charges(own: LedgerCharge | None, charges: Iterable[LedgerCharge]) -> list[LedgerCharge]:
    """Return what each release adds to a ledger: equal datasets of one noise cost once, public figures each time.

    The first item is ``own``. A run that was released again has the same noise throughout, and adds nothing.
    """
    largest: dict[int, LedgerCharge] = {}
    for one in charges:
        known = largest.get(one.run_id)
        if own is not None and one.run_id == own.run_id:
            continue
        largest[one.run_id] = one if known is None else _larger_charge(known, one)
    found = [] if own is None else [own]
    paid: dict[str, float] = {} if own is None else {own.datasets: _cost_of_datasets(own)}
    paid_delta: dict[str, float | None] = {} if own is None or not own.datasets else {own.datasets: own.delta}
    for one in largest.values():
        more = one.epsilon - paid.get(one.datasets, 0.0) if one.datasets else one.epsilon
        if one.datasets not in paid or not one.datasets or more > SAME_COST:
            # The datasets' part of delta was paid for too: figures have noise without one.
            same = one.datasets in paid_delta and paid_delta[one.datasets] == one.delta
            found.append(replace(one, epsilon=more, delta=0.0 if same else one.delta))
        if one.datasets:
            paid[one.datasets] = paid.get(one.datasets) or _cost_of_datasets(one)
            paid_delta.setdefault(one.datasets, one.delta)
    return found


def _larger_charge(first: LedgerCharge, second: LedgerCharge) -> LedgerCharge:
    """Return the charge with more epsilon of two of one run, with the larger delta; without a proof where one has none."""
    larger = second if second.epsilon > first.epsilon else first
    known = [one.delta for one in (first, second) if one.delta is not None]
    return replace(larger, covered=first.covered and second.covered, delta=max(known) if len(known) == 2 else None)


def _cost_of_datasets(charge: LedgerCharge) -> float:
    """Return the epsilon of a release's datasets, without that of its public figures; 0 where they are not separated."""
    # With 0 a later release of equal datasets counts in full: too much rather than too little.
    return 0.0 if charge.figures_epsilon is None else charge.epsilon - charge.figures_epsilon


def ledger_of_release(case: ExaminedRelease) -> ReleaseLedger:
    """Return the ledger of the populations of the examined release with its own charge, read once."""
    found = case.joints.get(ReleaseLedger)
    if not isinstance(found, ReleaseLedger):
        found = _read_ledger_of_release(case)
        case.joints[ReleaseLedger] = found
    return found


def _read_ledger_of_release(case: ExaminedRelease) -> ReleaseLedger:
    """Read the ledger of the populations of the examined release, and compute its own charge."""
    # Read first: what is charged meanwhile makes the examination stale, see ``check_ledger_unchanged``.
    end, registry = last_charge_number(case.workspace.connection), case.population_registry
    run = case.plan.run
    everything = read_all_charges(case.workspace, case.history.releases)
    stated = case.recipe.population
    names = (registry.population_of_project(run.project_id), *(() if stated is None else (stated.name,)))
    by_key = {registry.key_of(name): name for name in reversed(names)}
    names, keys = tuple(reversed(by_key.values())), set(by_key)
    own = replace(_charge_of_run(case.workspace, run, case.confidential, names), people=count_people(case))
    other = [one for one in everything if one.run_id != run.id]
    shared, uncompared = _shared_people(
        case, [one for one in other if keys.isdisjoint(map(registry.key_of, one.populations))]
    )
    known = {one.earlier.run_id for one in case.same_people_releases}
    known |= {one.run_id for one, _ in case.sharing_releases} | shared.keys()
    known |= {one.run_id for one in other if one.table == own.table or one.source == own.source}
    recognised = {registry.key_of(name): name for one in other if one.run_id in known for name in one.populations}
    own = replace(own, recognised=tuple(name for key, name in recognised.items() if key not in keys))
    keys |= recognised.keys()
    charged = tuple(
        one
        for one in other
        if one.run_id in known or not keys.isdisjoint(map(registry.key_of, (*one.populations, *one.recognised)))
    )
    return ReleaseLedger(
        own, charged, registry, tuple(registry.changes_of_project(run.project_id)), shared, uncompared, end
    )


def read_all_charges(workspace: Workspace, releases: Sequence[EarlierRelease] | None = None) -> list[LedgerCharge]:
    """Return the charges of all releases of a workspace, oldest first.

    Releases of earlier versions were charged to nobody: they count for the population that their project was of.
    ``releases`` are the earlier releases where they have been read.
    """
    charges = read_charges(workspace.connection)
    uncharged = _uncharged_releases(workspace.connection, charges)
    if not uncharged:
        return charges
    if releases is None:
        releases = read_release_history(workspace, 0, {}).releases
    registry = read_population_registry(workspace.connection)
    before = [
        _charge_of_earlier_version(workspace, registry, one, uncharged[one.run_id])
        for one in releases
        if one.run_id in uncharged
    ]
    return sorted([*before, *charges], key=lambda one: one.number)


def _uncharged_releases(connection: sqlite3.Connection, charges: Sequence[LedgerCharge]) -> dict[int, int]:
    """Return, by run, the row of its last release before one was charged: earlier versions charged none."""
    first = {one.run_id: one.number for one in reversed(charges)}
    rows = connection.execute(
        "SELECT number, subject FROM audit WHERE act = ? ORDER BY number", (AuditAct.RUN_RELEASED.value,)
    )
    runs = ((int(number), str(subject).removeprefix("run ")) for number, subject in rows)
    # Such a run may have been released again since, and charged to another population then.
    return {int(run): number for number, run in runs if run.isdecimal() and number < first.get(int(run), math.inf)}


def _charge_of_earlier_version(
    workspace: Workspace, registry: PopulationRegistry, release: EarlierRelease, row_number: int
) -> LedgerCharge:
    """Return the charge of a release that an earlier version wrote, which entered none, by its row of the audit log."""
    row = workspace.connection.execute(
        "SELECT number, time, details FROM audit WHERE number = ?", (row_number,)
    ).fetchone()
    number, time, details = int(row["number"]), str(row["time"]), parse_details(row["details"])
    population, datasets = _population_of_earlier_release(workspace, registry, release.run_id, number), ""
    # Of a deleted run the random key is unknown: its datasets count in full.
    with contextlib.suppress(NotFound):
        datasets = _hash_of_datasets(workspace, find_run(workspace, release.run_id))
    cost = release.read_cost()
    return LedgerCharge(
        number, time, str(details.get("user", "")), release.run_id, "", (population,), (), cost.epsilon,
        cost.figures_epsilon, cost.delta if cost.steps else 0.0, cost.steps, cost.covered, release.release.n_confidential,
        release.source_sha256, release.table_sha256, datasets,
    )  # fmt: skip


def _population_of_earlier_release(workspace: Workspace, registry: PopulationRegistry, run_id: int, number: int) -> str:
    """Return the population of a release that an earlier version wrote: that of its project at this row of the log."""
    connection = workspace.connection
    with contextlib.suppress(NotFound):
        return registry.population_of_project(find_run(workspace, run_id).project_id, number)
    tombstone = read_tombstone(workspace, run_id, deleted_run_tombstones(connection)[run_id])
    if tombstone.population:
        return tombstone.population
    row = connection.execute(
        "SELECT number, details FROM audit WHERE act = ? AND subject = ? ORDER BY number DESC LIMIT 1",
        (AuditAct.DATASET_IMPORTED.value, f"dataset {tombstone.dataset_id}"),
    ).fetchone()
    project = None if row is None else parse_details(row["details"]).get("project")
    made = connection.execute(
        "SELECT max(number) FROM audit WHERE act = ? AND subject = ?",
        (AuditAct.PROJECT_MADE.value, f"project {project}"),
    ).fetchone()[0]
    # A later project may have the number of one that was deleted.
    if isinstance(project, int) and (made or 0) <= int(row["number"]):
        return registry.population_of_project(project, number)
    return f"deleted project {project}"


def _charge_of_run(workspace: Workspace, run: StoredRun, data: Microdata, names: tuple[str, ...]) -> LedgerCharge:
    """Return what a release of a run is charged to populations."""
    original, cost = (
        workspace.find_dataset(run.dataset_id),
        privacy_cost_of_run(run, data, packages_in_force(workspace, run)),
    )
    project = workspace.connection.execute("SELECT name FROM project WHERE id = ?", (run.project_id,)).fetchone()
    return LedgerCharge(
        0, "", "", run.id, "" if project is None else str(project[0]), names, (), cost.epsilon, cost.figures_epsilon, cost.delta,
        cost.steps, cost.covered, len(data), original.source_sha256, original.table_sha256, _hash_of_datasets(workspace, run),
    )  # fmt: skip


def _hash_of_datasets(workspace: Workspace, run: StoredRun) -> str:
    """Return a hash that two runs share only where their datasets are equal and have the same noise."""
    # Equal datasets of another noise are a second look at the data: small ones are often equal by chance. The noise
    # depends on all that ``synthesis_streams`` binds it to.
    tables = sorted(set(released_table_hashes(workspace, run.id)))
    original = workspace.find_dataset(run.dataset_id)
    noise = (
        run.seed, run.key_fingerprint, original.table_sha256, dataset_recipe_hash(run.recipe), weights_hash(workspace, run.id)
    )  # fmt: skip
    return hashlib.sha256(json.dumps([tables, *noise]).encode()).hexdigest()


def identifiers_of_release(case: ExaminedRelease) -> tuple[str, ...]:
    """Return the variables that say who a person is, by the recipe and the project; none where none is stated."""
    exact, stated = case.exact_records, case.recipe.population
    earlier = case.population_registry.identifiers_of_project(case.plan.run.project_id)
    names = dict.fromkeys((*((stated.identifier,) if stated and stated.identifier else ()), *earlier))
    there = [name for name in names if name in exact.schema]
    # A later statement hides nobody: what was stated before counts too. One that was stated by mistake has few values.
    fewest = len(exact) / MOST_RECORDS_OF_A_PERSON
    return tuple(name for name in there if name == there[0] or exact.frame[name].nunique() >= fewest)


def count_people(case: ExaminedRelease) -> int:
    """Return the number of people of the confidential data: values of the identifier, else records."""
    columns = [case.exact_records.frame[name] for name in identifiers_of_release(case)]
    # Nobody knows whose the records without a value are: each counts as a person.
    counts = [int(column.nunique()) + int(column.isna().sum()) for column in columns]
    return max(counts, default=len(case.exact_records))


def hmacs_of_people(case: ExaminedRelease) -> tuple[Keys, RecordSealer] | None:
    """Return keyed HMACs of the people of the examined release, ascending; None without an identifier.

    They are by the workspace's own key, and of the values alone: a column that was renamed has the same ones.
    """
    exact = case.exact_records
    # Running numbers would show any two tables of one length to be of the same people.
    names = [name for name in identifiers_of_release(case) if not numbers_people(exact, name)]
    if not names:
        return None
    sealer = case.workspace.all_sealers()[-1]
    marks = [
        hmac.digest(sealer.key, b"sfumato person " + text.encode("utf-8", "surrogatepass"), "sha256")[:MARK_BYTES]
        for text in sorted({_identifier_text(value) for name in names for value in exact.frame[name].dropna().unique()})
    ]
    return np.unique(np.frombuffer(b"".join(marks), dtype="<u8").astype(np.uint64)), sealer


def _identifier_text(value: object) -> str:
    """Return an identifier as text that does not depend on how its column was read."""
    if isinstance(value, int | float | np.number):
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", str(value)).casefold()).strip()
    return str(int(text)) if text.isdecimal() and text.isascii() else text


def _shared_people(
    case: ExaminedRelease, charges: Sequence[LedgerCharge]
) -> tuple[dict[int, int], tuple[LedgerCharge, ...]]:
    """Return by run the number of people whom the identifier shows in an earlier release too.

    And the charges whose people cannot be compared, since another key marked them.
    """
    marked = [one for one in charges if one.identifiers]
    own = hmacs_of_people(case) if marked else None
    if own is None:
        return {}, ()
    keys, sealer = own
    read = case.workspace.tables.read_arrays
    counts = {
        one.run_id: len(np.intersect1d(keys, read(one.identifiers)[PEOPLE_COLUMN]))
        # HMACs of another key, as those of a workspace that was adopted, cannot be compared.
        for one in marked
        if one.identifiers_key == sealer.name
    }
    uncompared = tuple(one for one in marked if one.identifiers_key != sealer.name)
    return {run_id: number for run_id, number in counts.items() if number}, uncompared


def store_people_of_release(case: ExaminedRelease, charge: LedgerCharge) -> LedgerCharge:
    """Store the HMACs of the people of a release that is to be written, and return its charge with them."""
    found = hmacs_of_people(case)
    if found is None:
        return charge
    keys, sealer = found
    stored = case.workspace.tables.write_arrays({PEOPLE_COLUMN: keys})
    return replace(charge, identifiers=stored, identifiers_key=sealer.name)


def list_population_ledgers(workspace: Workspace, policy: Policy | None = None) -> list[PopulationLedger]:
    """Return the ledgers of all populations of a workspace by name. Raises BadInput for a policy that cannot be read."""
    policy = read_policy_of_workspace(workspace.directory) if policy is None else policy
    registry = read_population_registry(workspace.connection)
    # By the name that is shown: the sum for the public leaves out whom the gate recognised under any spelling.
    charges = [
        replace(one, recognised=tuple(map(registry.display_name, one.recognised)))
        for one in read_all_charges(workspace)
    ]
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
        own = [one for one in charges if key in map(registry.key_of, (*one.populations, *one.recognised))]
        changes = [one for one in registry.changes if registry.key_of(one.population) == key]
        people = max((registry.size_of(name), *(one.people for one in own)))
        ledgers.append(
            PopulationLedger(
                name,
                tuple(projects.get(key, ())),
                tuple(spending_of_charges(None, own)),
                tuple(changes),
                people,
                policy.epsilon,
                policy.delta,
            )
        )
    return sorted(ledgers, key=lambda one: one.name.casefold())


def ledger_after_release(workspace: Workspace, policy: Policy, own: LedgerCharge) -> PopulationLedger:
    """Return the ledger of a release's population with the charge of the release, which is not entered yet."""
    registry = read_population_registry(workspace.connection)
    key, name = registry.key_of(own.populations[0]), registry.display_name(own.populations[0])
    known = [one for one in list_population_ledgers(workspace, policy) if registry.key_of(one.name) == key]
    before = [one for one in known[0].charges if one.run_id != own.run_id] if known else []
    own = replace(own, time=datetime.now(UTC).isoformat(timespec="seconds"), user=user())
    charges = (*spending_of_charges(own, before)[1:], own)
    people = max([own.people, *(one.people for one in known)])
    if not known:
        return PopulationLedger(name, (own.project,), charges, (), people, policy.epsilon, policy.delta)
    return replace(known[0], charges=charges, people=people)
