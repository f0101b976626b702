"""Ledger of a workspace: which population each project is of, and what each release was charged to it.

The audit log is the ledger. A row about a release that begins holds its charge, and the rows of statements say which
populations projects are of. So a charge outlives its run and its project, has a seal, and cannot be taken out unnoticed.

A charge is entered before the first file exists and stays where the release is undone: its files have existed. The same
run can be released again at no further cost, since it has the same noise.

Without a statement a project is a population of its own, with the project's name. Who states that a project is of a
population joins both ledgers. Who states that other people were asked begins a new population.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping

from sfumato.engine.recipe.population import fold_population_name

from ..audit import AuditAct, append_act, parse_details
from ..errors import LedgerChanged
from ..policy.charges import CHARGED_TO, LedgerCharge, PopulationChange

BEGIN_ROW = "begun"
"""Detail of the row that ends a release: the number of the row that began it."""
STATEMENTS = (AuditAct.POPULATION_STATED, AuditAct.POPULATION_BEGUN)


def _as_names(value: object) -> tuple[str, ...]:
    """Return the names of a JSON list; none for anything else."""
    try:
        names = json.loads(str(value or "[]"))
    except ValueError:
        return ()
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _as_number(value: object) -> float | None:
    """Return a number; None for anything else."""
    return float(value) if isinstance(value, int | float) else None


def read_charges(connection: sqlite3.Connection) -> list[LedgerCharge]:
    """Return the charges of all releases that have begun, oldest first."""
    undone = {
        parse_details(row["details"]).get(BEGIN_ROW)
        for row in connection.execute("SELECT details FROM audit WHERE act = ?", (AuditAct.RELEASE_UNDONE.value,))
    }
    rows = connection.execute(
        "SELECT number, time, subject, details FROM audit WHERE act = ? ORDER BY number",
        (AuditAct.RELEASE_BEGUN.value,),
    )
    return list(_charges_of_rows(rows, undone))


def _charges_of_rows(rows: Iterable[sqlite3.Row], undone: Collection[object]) -> Iterator[LedgerCharge]:
    """Yield the charges of rows on releases that have begun; those of earlier versions have none."""
    for row in rows:
        details, run = parse_details(row["details"]), str(row["subject"]).removeprefix("run ")
        if CHARGED_TO not in details or not run.isdecimal():
            continue
        yield LedgerCharge(
            int(row["number"]),
            str(row["time"]),
            str(details.get("user", "")),
            int(run),
            str(details.get("project", "")),
            _as_names(details[CHARGED_TO]),
            _as_names(details.get("recognised")),
            _as_number(details.get("epsilon")) or 0.0,
            _as_number(details.get("figures_epsilon")),
            _as_number(details.get("delta")),
            int(_as_number(details.get("steps")) or 0),
            bool(details.get("covered")),
            int(_as_number(details.get("people")) or 0),
            str(details.get("source_sha256") or ""),
            str(details.get("table_sha256") or ""),
            str(details.get("datasets") or ""),
            str(details.get("identifiers") or ""),
            str(details.get("identifiers_key") or ""),
            row["number"] in undone,
        )


def last_charge_number(connection: sqlite3.Connection) -> int:
    """Return the number of the last row of the audit log that changes what a release may cost."""
    acts = [act.value for act in (AuditAct.RELEASE_BEGUN, *STATEMENTS)]
    row = connection.execute("SELECT coalesce(max(number), 0) FROM audit WHERE act IN (?, ?, ?)", acts).fetchone()
    return int(row[0])


def check_ledger_unchanged(connection: sqlite3.Connection, number: int) -> None:
    """Raise LedgerChanged where a release was charged, or a population stated, after this row of the audit log.

    Called in the transaction that enters a charge: two releases that were examined at one time must not both pass.
    """
    if last_charge_number(connection) != number:
        raise LedgerChanged("another release was charged while the gate examined this one; release it again")


class PopulationRegistry:
    """Which population each project is of, by the statements in the audit log."""

    def __init__(
        self, changes: Iterable[PopulationChange], made: Mapping[int, int], projects: Mapping[int, str]
    ) -> None:
        self.changes, self._made, self._projects = tuple(changes), made, projects
        self._parents: dict[str, str] = {}
        self._names: dict[str, str] = {}
        for name in projects.values():
            self._note(name)
        for one in self.changes:
            self._note(one.previous)
            self._note(one.population)
            if not one.begins_population:
                self._join(one.previous, one.population)

    def _note(self, name: str) -> None:
        self._names.setdefault(fold_population_name(name), name)

    def _root(self, folded: str) -> str:
        while (parent := self._parents.get(folded, folded)) != folded:
            folded = parent
        return folded

    def _join(self, first: str, second: str) -> None:
        """Join two populations; the second one's name stays."""
        ends = [self._root(fold_population_name(name)) for name in (first, second)]
        if ends[0] != ends[1]:
            self._parents[ends[0]] = ends[1]

    def key_of(self, name: str) -> str:
        """Return what is equal for all names of one population."""
        return self._root(fold_population_name(name))

    def display_name(self, name: str) -> str:
        """Return the name by which a population is shown, of those that were stated to be the same."""
        return self._names.get(self.key_of(name), name)

    def changes_of_project(self, project_id: int, until: int | None = None) -> list[PopulationChange]:
        """Return the statements about a project, oldest first; ``until`` a row of the audit log."""
        # The number of a deleted project is given again: what was stated of the other project does not count.
        first = self._made.get(project_id, 0)
        return [
            one
            for one in self.changes
            if one.project_id == project_id and first <= one.number and (until is None or one.number <= until)
        ]

    def population_of_project(self, project_id: int, until: int | None = None) -> str:
        """Return the name of the population of a project, now or at a row of the audit log."""
        stated = self.changes_of_project(project_id, until)
        if stated:
            return stated[-1].population
        later = self.changes_of_project(project_id)
        return later[0].previous if later else own_population_name(project_id, self._projects)

    def identifier_of_project(self, project_id: int) -> str:
        """Return the variable that identifies a person by the last statement that names one; empty without one."""
        return next(iter(self.identifiers_of_project(project_id)), "")

    def identifiers_of_project(self, project_id: int) -> tuple[str, ...]:
        """Return all variables that were stated to identify a person, the last one first."""
        stated = (one.identifier for one in reversed(self.changes_of_project(project_id)))
        return tuple(dict.fromkeys(name for name in stated if name))

    def size_of(self, name: str) -> int:
        """Return the largest number of people that was stated of a population; 0 where none was."""
        key = self.key_of(name)
        return max((one.size or 0 for one in self.changes if self.key_of(one.population) == key), default=0)

    @property
    def folded_names(self) -> frozenset[str]:
        """Return the names, in the form in which they are compared, of all populations that a project is, or was, of."""
        return frozenset(self._names)

    def populations_declared_apart(self, names: Collection[str]) -> set[str]:
        """Return the keys of the populations from which one of these was begun because other people were asked."""
        keys = {self.key_of(name) for name in names}
        apart = {
            self.key_of(one.previous) for one in self.changes if one.reason and self.key_of(one.population) in keys
        }
        return apart - keys


def own_population_name(project_id: int, projects: Mapping[int, str]) -> str:
    """Return the name of the population that a project is of without a statement."""
    name = projects.get(project_id, "")
    # A name of signs alone would be that of every such project.
    return name if fold_population_name(name) else f"project {project_id}"


def read_population_registry(connection: sqlite3.Connection) -> PopulationRegistry:
    """Read the statements about populations from the audit log."""
    rows = connection.execute(
        "SELECT number, time, act, subject, details FROM audit WHERE act IN (?, ?, ?) ORDER BY number",
        (*(act.value for act in STATEMENTS), AuditAct.PROJECT_MADE.value),
    )
    changes, made = list[PopulationChange](), dict[int, int]()
    for row in rows:
        project = str(row["subject"]).removeprefix("project ")
        if not project.isdecimal():
            continue
        if row["act"] == AuditAct.PROJECT_MADE.value:
            made[int(project)] = int(row["number"])
        else:
            changes.append(_change_of_row(row, int(project)))
    projects = {int(row[0]): str(row[1]) for row in connection.execute("SELECT id, name FROM project")}
    return PopulationRegistry(changes, made, projects)


def _change_of_row(row: sqlite3.Row, project_id: int) -> PopulationChange:
    """Return the statement of a row of the audit log."""
    details = parse_details(row["details"])
    begun = row["act"] == AuditAct.POPULATION_BEGUN.value
    size = _as_number(details.get("size"))
    return PopulationChange(
        int(row["number"]),
        str(row["time"]),
        str(details.get("user", "")),
        project_id,
        str(details.get("population", "")),
        str(details.get("previous", "")),
        None if size is None else int(size),
        str(details.get("identifier") or ""),
        str(details.get("reason") or "no reason") if begun else "",
    )


def enter_statement(
    connection: sqlite3.Connection,
    project_id: int,
    population: str,
    *,
    size: int | None = None,
    identifier: str | None = None,
    reason: str = "",
) -> None:
    """Enter which population a project is of, in a transaction; with a reason, that other people were asked.

    A statement that changes nothing is not entered.
    """
    registry = read_population_registry(connection)
    previous = registry.population_of_project(project_id)
    known = registry.changes_of_project(project_id)
    is_same = bool(known) and fold_population_name(previous) == fold_population_name(population)
    if (
        is_same
        and not reason
        and (size or 0) <= registry.size_of(population)
        and (not identifier or identifier == registry.identifier_of_project(project_id))
    ):
        return
    append_act(
        connection,
        AuditAct.POPULATION_BEGUN if reason else AuditAct.POPULATION_STATED,
        f"project {project_id}",
        population=population,
        previous=previous,
        **{key: value for key, value in (("size", size), ("identifier", identifier), ("reason", reason)) if value},
    )
