"""Integrity of a workspace: its audit log, its runs with their results and its data are compared with their seals."""

from __future__ import annotations

import contextlib
import hmac
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from sfumato.engine.errors import EngineError
from sfumato.engine.recipe.outcomes import OLDER, Outcome
from sfumato.engine.recipe.thresholds import Verdict, judge_thresholds
from sfumato.engine.wording import count_noun, join_first_names

from ..audit import (
    RUNS_BEFORE_DETAIL,
    AuditAct,
    AuditHead,
    AuditRow,
    audit_rows,
    chain_problem,
    check_row_seals,
    consistent_read,
    read_head,
    read_head_file,
    read_row_seals,
)
from ..errors import DamagedRecord, WorkspaceError
from ..policy.policy import read_policy_of_workspace
from ..store import run_names, tombstones
from ..store.database import MIGRATIONS, find_wrong_value, migrate_database
from ..store.keys import KEY_FILE, PUBLIC_NAME, NoKey, compute_fingerprint, sealing_key
from ..store.records import parse_json_table
from ..store.runs import StoredRun, find_run, installed_version, list_runs
from ..store.seals import (
    END_PARTS,
    ENTRY_PARTS,
    ROW_SEAL_BYTES,
    TASK_PART_PREFIXES,
    RecordSealer,
    RunPartSeal,
    companion_part_name,
    result_part_seals,
    seal_of_parts,
    sealed_part_names,
    single_row_parts,
    stored_part_seals,
    verdict_part_seals,
)
from ..store.workspace import Workspace
from ..views.results import read_result_rows, read_rows_by_id, read_verdicts
from .recorded_tables import FileComparison, read_recorded_tables, recorded_tables

MOST_NAMED = 5
_STATES_AFTER_ACT = {
    AuditAct.RUN_ENTERED: ("queued", "running"),
    AuditAct.RUN_RESUMED: ("queued", "running"),
    AuditAct.RUN_FINISHED: ("done",),
    AuditAct.RUN_FAILED: ("failed",),
    AuditAct.RUN_INTERRUPTED: ("interrupted",),
    AuditAct.RUN_CANCELLED: ("cancelled",),
}
"""The states that a run may have after the last of these acts."""
_ORPHANED = """SELECT task.key FROM result LEFT JOIN task ON task.id = result.task_id AND task.run_id = result.run_id
               WHERE result.run_id = ? AND task.state IS NOT 'done' LIMIT 1"""
_SEALED_COLUMNS = {
    AuditAct.DATASET_IMPORTED: (
        "dataset",
        "id, project_id, name, origin, source_sha256, table_sha256, schema, records, dropped, created",
    ),
    AuditAct.PROJECT_MADE: ("project", "id, name, created"),
}


class NotAsSealed(WorkspaceError):
    """Difference between what is stored of a run and what was sealed; ``wrong`` names the parts."""

    def __init__(self, run_id: int, wrong: Sequence[str]) -> None:
        """Make the message from the parts of a run that differ; ``MOST_NAMED`` of them are named."""
        named = join_first_names(wrong, MOST_NAMED, separator="; ")
        super().__init__(
            f"run {run_id} is not as it was sealed: {named}. Nothing of it can be relied on; "
            "sfumato audit verify looks at everything"
        )
        self.wrong = tuple(wrong)


@dataclass(frozen=True, slots=True)
class RunSealState:
    """State of a run's seal.

    run_id: number of the run
    unsealed: why it has no seal; empty where it has one
    wrong: parts that do not agree with it
    since: what has changed since, in words
    """

    run_id: int
    unsealed: str = ""
    wrong: tuple[str, ...] = ()
    since: str = ""

    @property
    def message(self) -> str:
        """Return the warning to show with a run that has no seal; empty where it has one."""
        return f"run {self.run_id} is not sealed: {self.unsealed}" if self.unsealed else ""


@dataclass(frozen=True, slots=True)
class ExternalHeads:
    """Heads of the audit log that were recorded outside the database.

    heads: the heads
    problem: why the log differs from the one that is recorded outside the workspace; empty where it does not
    """

    heads: Sequence[AuditHead]
    problem: str = ""


class VerifiedAuditLog:
    """Audit log of a workspace with the result of its verification.

    Raises NoKey and BadInput where its seals cannot be verified.
    """

    def __init__(self, workspace: Workspace, noted: ExternalHeads) -> None:
        """Read and verify the log; ``noted`` are heads that were recorded outside the database."""
        self.workspace = workspace
        self.keys = {sealer.name: sealer for sealer in workspace.all_sealers()}
        # ``noted`` must be read before the snapshot that the log is read from: a row that is added in between would
        # look like a lost one otherwise.
        self.rows = audit_rows(workspace.connection)
        off = chain_problem(self.rows, read_head(workspace.connection), noted.heads)
        self.seals = read_row_seals(workspace.connection)
        seals = check_row_seals(self.rows, self.seals, {name: sealer.key for name, sealer in self.keys.items()})
        self.wrong = [f"the audit log is broken: {off}"] if off else list(seals.wrong)
        self.wrong[:0] = [noted.problem] if noted.problem else []
        self.lack = [] if off else list(seals.lack)
        self.first = min(self.seals, default=0)

    @cached_property
    def last_unsealed_run(self) -> int:
        """Return the highest number of a run from the time before there were seals; 0 for none."""
        return (
            int(self.rows[self.first - 1].details_table.get(RUNS_BEFORE_DETAIL, 0))
            if 0 < self.first <= len(self.rows)
            else 0
        )

    @cached_property
    def last_state_rows(self) -> Mapping[str, AuditRow]:
        """Return the last row that states the state of each run, by the run's subject."""
        return {row.subject: row for row in self.rows if row.act in _STATES_AFTER_ACT}

    def rows_of_act(self, act: AuditAct) -> dict[int, AuditRow]:
        """Return the last row of an act for each subject, by the subject's number."""
        own = ((row, row.subject.rpartition(" ")[2]) for row in self.rows if row.act == act.value)
        return {int(number): row for row, number in own if number.isdecimal()}

    def sealer_of_row(self, row: AuditRow) -> RecordSealer | None:
        """Return the sealer by whose key a row is sealed; None where it has no seal."""
        return self.keys.get(self.seals.get(row.number, ("", ""))[0])


def check_run_seal(
    workspace: Workspace, run: StoredRun, chain: VerifiedAuditLog, *, quick: bool = False
) -> RunSealState:
    """Compare a run with its seal; a ``quick`` check leaves out the results of single tasks.

    Raises BadInput for a policy.
    """
    row = chain.last_state_rows.get(f"run {run.id}")
    details = {} if row is None else row.details_table
    if run.id <= chain.last_unsealed_run and (row is None or row.number < chain.first or "seal" not in details):
        made = run.versions.get("sfumato", "")
        return RunSealState(
            run.id, f"made by an earlier version{f' ({made})' if made else ''}, or taken over from another user"
        )
    if row is None:
        return RunSealState(run.id, wrong=("the audit log does not know it",))
    sealer = chain.sealer_of_row(row)
    if sealer is None or not details.get("seal"):
        return RunSealState(
            run.id, wrong=(f"row {row.number} of the audit log, which says how it stands, has no seal",)
        )
    if run.state not in _STATES_AFTER_ACT[AuditAct(row.act)]:
        return RunSealState(run.id, wrong=(f"its state, {run.state}, where the audit log says: {row.act}",))
    wrong = list(_mismatched_parts(workspace, chain, run, sealer, str(details["seal"]), quick=quick))
    # Tasks may have been added since the act of the log, but none may be gone.
    if run.tasks_done < int(details.get("tasks_done", 0)):
        wrong.append("tasks that were done")
    if run.state == "done" and not wrong and not quick:
        wrong = list(_inconsistent_verdicts(workspace, run))
    changed = details.get("under_policy") not in (None, read_policy_of_workspace(workspace.directory).sha256)
    return RunSealState(run.id, wrong=tuple(wrong), since="the policy has changed since it ended" if changed else "")


def verify_run(workspace: Workspace, run_id: int | str, *, strict: bool = False) -> RunSealState:
    """Return the state of a run's seal where all agrees with it.

    Raises NotFound, and NotAsSealed where something does not agree. Where the seals cannot be verified, that is the
    state; ``strict`` raises NoKey instead.
    """
    run, noted = find_run(workspace, run_id), _read_external_heads(workspace)
    try:
        with consistent_read(workspace.connection):
            chain = VerifiedAuditLog(workspace, noted)
            found = check_run_seal(workspace, find_run(workspace, run.id), chain)
    except NoKey as error:
        if strict:
            raise
        if noted.problem:
            raise NotAsSealed(run.id, [noted.problem]) from None
        return RunSealState(run.id, f"that could not be looked at: {error}")
    if wrong := (*chain.wrong, *found.wrong):
        raise NotAsSealed(run.id, wrong)
    return found


def seal_faults_of_runs(workspace: Workspace, run_ids: Sequence[int]) -> dict[int, str]:
    """Return the parts that do not agree with the seals of some runs, in words by run; empty texts where all do.

    Raises NoKey.
    """
    if not run_ids:
        return {}
    noted = _read_external_heads(workspace)
    with consistent_read(workspace.connection):
        chain = VerifiedAuditLog(workspace, noted)
        found = {number: check_run_seal(workspace, find_run(workspace, number), chain).wrong for number in run_ids}
    return {number: str(NotAsSealed(number, wrong)) if wrong else "" for number, wrong in found.items()}


def seal_fault_text(directory: Path, run_id: int) -> str:
    """Return the parts of a run that do not agree with its seal, in words.

    Empty where all do or nothing can be verified.
    """
    try:
        with Workspace.open(directory, read_only=True) as workspace:
            verify_run(workspace, run_id)
    except NotAsSealed as error:
        return str(error)
    except (sqlite3.Error, WorkspaceError, EngineError):
        return ""  # what cannot be read, whoever shows it says
    return ""


def _read_external_heads(workspace: Workspace, noted: Sequence[AuditHead] = ()) -> ExternalHeads:
    """Read the heads of the audit log that are recorded outside the database, ``noted`` ones included."""
    beside_it = read_head_file(workspace.directory)
    # Another account's workspace has no history recorded for this one.
    problem = "" if workspace.owner else workspace.history_problem()
    return ExternalHeads([*noted, *([] if beside_it is None else [beside_it])], problem)


def audit_log_problem(workspace: Workspace) -> str:
    """Return what is wrong with the audit log or its seals, in words; empty where all agree. Raises NoKey."""
    noted = _read_external_heads(workspace)
    with consistent_read(workspace.connection):
        return "; ".join(VerifiedAuditLog(workspace, noted).wrong)


def check_all_runs_quickly(workspace: Workspace) -> tuple[str, str]:
    """Return the runs that differ from their seals in what a list of runs shows, in words.

    And why the seals cannot be verified. Both texts are empty where all is well.
    """
    noted = _read_external_heads(workspace)
    try:
        with consistent_read(workspace.connection):
            chain = VerifiedAuditLog(workspace, noted)
            found = [check_run_seal(workspace, run, chain, quick=True) for run in list_runs(workspace)]
    except NoKey as error:
        return noted.problem, f"the seals cannot be looked at: {error}"
    return "; ".join([*chain.wrong, *(str(NotAsSealed(one.run_id, one.wrong)) for one in found if one.wrong)]), ""


def _mismatched_parts(
    workspace: Workspace, chain: VerifiedAuditLog, run: StoredRun, sealer: RecordSealer, seal: str, *, quick: bool
) -> Iterator[str]:
    """Yield the parts of a run that differ from their seals, in words."""
    there = stored_part_seals(workspace.connection, run.id)
    now = _seal_parts_now(
        workspace, run.id, quick, [chain.keys[name] for name in {p.key for p in there.values()} if name in chain.keys]
    )
    deleted = {companion_part_name(number) for number in chain.rows_of_act(AuditAct.RUN_DELETED)}
    named = sealed_part_names(run.state, there)
    wrong = False
    for name in [*there, *(name for name in now if name not in there)]:
        part, found = there.get(name), now.get(name, {})
        if (name in END_PARTS and name not in named) or (quick and name.startswith(TASK_PART_PREFIXES)):
            continue
        # Verdicts and companions are sealed as a run ends: before, they may still change.
        if run.state != "done" and (name.startswith("verdict ") or name.endswith(" beside it")):
            continue
        # A companion run may be deleted, which the audit log records.
        if part is not None and not found and name in deleted:
            continue
        own = None if part is None else found.get(part.key)
        if part is None or own is None or not hmac.compare_digest(part.seal, own.seal):
            wrong = True
            yield from _name_mismatch(workspace, run.id, name, part, own or next(iter(found.values()), None))
    if not there:
        yield "its seals are gone"
        return
    whole_now = seal_of_parts(sealer, run.id, {name: there[name].seal for name in named})
    # Each part can be right and the whole still be mixed from two states of the run.
    if not wrong and not hmac.compare_digest(whole_now.encode(), seal.encode()):
        yield "its parts are not those that were sealed together"
    if orphaned := workspace.connection.execute(_ORPHANED, (run.id,)).fetchone():
        yield f"result rows of {orphaned[0] or 'no task'}, which has not ended"


def _seal_parts_now(
    workspace: Workspace, run_id: int, quick: bool, sealers: Sequence[RecordSealer]
) -> dict[str, dict[str, RunPartSeal]]:
    """Return the seals that every part of a run has in its present state, by name and key.

    A ``quick`` check leaves out the results of single tasks.
    """
    found: dict[str, dict[str, RunPartSeal]] = {}
    for sealer in sealers:
        connection = workspace.connection
        for parts in (
            single_row_parts(connection, sealer, run_id, {**ENTRY_PARTS, **END_PARTS}),
            () if quick else result_part_seals(connection, sealer, run_id),
            verdict_part_seals(connection, sealer, run_id),
        ):
            for part in parts:
                found.setdefault(part.name, {})[sealer.name] = part
    return found


def _name_mismatch(
    workspace: Workspace, run_id: int, name: str, part: RunPartSeal | None, now: RunPartSeal | None
) -> Iterator[str]:
    """Yield, in words, how one part of a run differs from its seal."""
    if now is None:
        yield f"{name} is missing"
    elif part is None:
        yield f"{name} was added"
    elif name.startswith("rows of "):
        yield from _name_changed_rows(
            workspace, run_id, name.removeprefix("rows of "), part.rows or b"", now.rows or b""
        )
    elif name.startswith("verdict "):
        verdicts = read_verdicts(workspace, run_id)
        at = int(name.removeprefix("verdict "))
        yield f"verdict {at + 1}" + (f" ({verdicts[at].value})" if at < len(verdicts) else "")
    else:
        yield name


def _name_changed_rows(workspace: Workspace, run_id: int, key: str, before: bytes, now: bytes) -> Iterator[str]:
    """Yield the result rows of a task that were changed, added or removed, in words."""
    query = "SELECT result.id FROM result JOIN task ON task.id = task_id WHERE result.run_id = ? AND key = ? ORDER BY result.id"
    numbers = [int(row[0]) for row in workspace.connection.execute(query, (run_id, key))]
    old, new = _split_row_seals(before), _split_row_seals(now)
    known = set(old)
    # A row is known by its seal, not its place: after a removed row all others would seem changed.
    strange = [number for number, seal in zip(numbers, new, strict=False) if seal not in known]
    for row in read_rows_by_id(workspace, strange[: MOST_NAMED + 1]):
        of = f" of {row.target}" if row.target else ""
        dataset = f", dataset {row.draw}" if row.draw is not None else f", {row.dataset}"
        yield f"row {row.key}{of}{dataset} ({key})"
    if len(old) != len(new):
        yield f"{count_noun(abs(len(old) - len(new)), 'row')} {'were added to' if len(new) > len(old) else 'are missing of'} {key}"
    elif not strange:
        yield f"rows of {key}"


def _split_row_seals(seals: bytes) -> list[bytes]:
    """Split the joined seals of rows into one for each row."""
    return [seals[at : at + ROW_SEAL_BYTES] for at in range(0, len(seals), ROW_SEAL_BYTES)]


def _inconsistent_verdicts(workspace: Workspace, run: StoredRun) -> Iterator[str]:
    """Yield the verdicts that do not follow from the rows, in words."""
    # Another version may judge otherwise: verdicts are compared only by the version that gave them.
    if run.versions.get("sfumato") != installed_version("sfumato"):
        return
    try:
        thresholds = run.recipe.thresholds
    except EngineError:
        return  # a method of another package is gone: its settings cannot be read
    stored, now = read_verdicts(workspace, run.id), judge_thresholds(thresholds, read_result_rows(workspace, run.id))
    older = _verdicts_by_value(workspace, run.id)
    if len(stored) != len(now):
        yield f"{len(stored)} verdicts, where its rows give {len(now)}"
    for number, (one, other) in enumerate(zip(stored, now, strict=False), start=1):
        expected = _judge_by_value(one, other) if number in older else other
        if _canonical_json(one.to_dict()) != _canonical_json(expected.to_dict()):
            yield f"verdict {number} does not follow from the rows"


def _verdicts_by_value(workspace: Workspace, run_id: int) -> set[int]:
    """Return the numbers, from 1, of the verdicts that an older version gave by comparing values alone with limits."""
    query = "SELECT position, verdict FROM verdict WHERE run_id = ?"
    rows = workspace.connection.execute(query, (run_id,))
    # They are recognised by words that are no longer written.
    return {int(position) + 1 for position, text in rows if parse_json_table(text).get("outcome") in OLDER}


def _judge_by_value(stored: Verdict, now: Verdict) -> Verdict:
    """Return the verdict that such a version gave for the observed value."""
    # Some ratios are no longer formed: their stored value is taken.
    judged = now if now.observed is not None else replace(now, observed=stored.observed, margin=stored.margin)
    outcome: Outcome = "not computed" if judged.margin is None else "met" if judged.margin >= 0 else "not met"
    return replace(judged, outcome=outcome, reason=stored.reason, lower=None, upper=None)


def _canonical_json(table: Mapping[str, Any]) -> str:
    return json.dumps(table, sort_keys=True)


@dataclass(frozen=True, slots=True)
class IntegrityReport:
    """Result of comparing a whole workspace with its seals.

    rows: rows of the audit log
    wrong: what is wrong, in words
    notes: remarks
    tables: stored tables that were read and compared; None where the database cannot be relied on to name them
    """

    rows: Sequence[AuditRow]
    wrong: tuple[str, ...]
    notes: tuple[str, ...]
    tables: FileComparison | None = None


def verify_workspace(workspace: Workspace, noted: Sequence[AuditHead] = ()) -> IntegrityReport:
    """Compare the whole workspace with its seals, and every stored table with its hash.

    ``noted`` are heads of the audit log that were kept elsewhere.
    """
    known = _read_external_heads(workspace, noted)
    with consistent_read(workspace.connection):
        found = _verify_snapshot(workspace, known)
        recorded = None if found.tables is None else recorded_tables(workspace.connection)
    if recorded is None:
        return found
    # Outside of the snapshot: it would keep the log of the database from being emptied while gigabytes are read.
    tables = read_recorded_tables(workspace, recorded)
    return replace(found, wrong=(*found.wrong, *tables.wrong), tables=tables)


def worth_of_seals(workspace: Workspace) -> str:
    """Return against whom the seals of a workspace protect, in words. Raises NoKey and BadInput."""
    try:
        own_key = sealing_key(workspace.read_workspace_key())
    except NoKey:
        own_key = None
    if own_key is None or compute_fingerprint(own_key) != workspace.sealer.name:
        return "the sealing key lies outside the workspace: whoever cannot read it can change nothing unnoticed"
    if workspace.stored_fingerprint == PUBLIC_NAME:
        return "the key is public: this shows accidents only, since everybody can seal what they like"
    return (
        f"the sealing key follows from {workspace.directory / KEY_FILE}: this shows accidents, and changes by whoever cannot read "
        "that file; whoever can read it can seal what they like"
    )


def _verify_snapshot(workspace: Workspace, noted: ExternalHeads) -> IntegrityReport:
    """Compare the workspace with its seals, in one snapshot of the database."""
    heads, problem = noted.heads, noted.problem
    if damaged := tuple(_database_problems(workspace)):
        with contextlib.suppress(sqlite3.Error):  # a log that can be read says where it was changed
            off = chain_problem(rows := audit_rows(workspace.connection), read_head(workspace.connection), heads)
            log = tuple(filter(None, (problem, f"the audit log is broken: {off}" if off else "")))
            return IntegrityReport(rows, (*log, *damaged), ())
        return IntegrityReport((), tuple(filter(None, (problem, *damaged))), ())
    try:
        chain = VerifiedAuditLog(workspace, noted)
    except (NoKey, DamagedRecord) as error:
        rows = audit_rows(workspace.connection)
        said = f"the seals cannot be looked at: {error}"
        off = chain_problem(rows, read_head(workspace.connection), heads)
        return IntegrityReport(rows, tuple(filter(None, (problem, off, said))), ())
    wrong = [*chain.wrong, *chain.lack, *_entry_problems(workspace, chain)]
    notes = []
    ended = {
        row.details_table.get("begun")
        for row in chain.rows
        if row.act in (AuditAct.RUN_RELEASED, AuditAct.RELEASE_UNDONE)
    }
    going = {row[0]: row[1] for row in workspace.connection.execute("SELECT number, run_id FROM releasing")}
    for row in (row for row in chain.rows if row.act == AuditAct.RELEASE_BEGUN and row.number not in ended):
        # A release that was cut off can be resumed; one that nothing remembers must have been removed from the
        # database.
        if row.number in going:
            notes.append(
                f"{row.subject}: a release has begun and not ended; if it was cut off: sfumato resume {going[row.number]}"
            )
        else:
            wrong.append(f"row {row.number} began a release of {row.subject}, and nothing says how it ended")
    entered, deleted = chain.rows_of_act(AuditAct.RUN_ENTERED), chain.rows_of_act(AuditAct.RUN_DELETED)
    there = [int(row[0]) for row in workspace.connection.execute("SELECT id FROM run ORDER BY id")]
    wrong += [f"run {number} is gone, and the audit log does not say that it was deleted"
              for number in entered if number not in there and number not in deleted]  # fmt: skip
    wrong += _run_name_problems(workspace, chain, there)
    wrong += tombstones.tombstone_faults(workspace)
    if lost := tombstones.deleted_without_tombstone(workspace.connection):
        notes.append(
            f"{'runs' if len(lost) > 1 else 'run'} {', '.join(map(str, lost))}: released, and deleted by an earlier version, which left no "
            "tombstone; what the release spent is unknown"
        )
    old = []
    for number in there:
        try:
            found = check_run_seal(workspace, find_run(workspace, number), chain)
        except (WorkspaceError, EngineError, sqlite3.Error) as error:
            wrong.append(f"run {number}: {error}")
            continue
        wrong += [str(NotAsSealed(number, found.wrong))] if found.wrong else []
        notes += [f"run {number}: {found.since}"] if found.since else []
        old += [number] if found.unsealed else []
    if old:
        said = f"runs {old[0]} to {old[-1]} are" if len(old) > 1 else f"run {old[0]} is"
        notes.append(f"{said} of an earlier version, or taken over from another user, and not sealed")
    return IntegrityReport(chain.rows, tuple(wrong), tuple(notes), FileComparison())


def _database_problems(workspace: Workspace) -> Iterator[str]:
    """Yield what SQLite finds wrong, and which tables, triggers or views differ from those of this version."""
    answer = str(workspace.connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    if answer != "ok":
        yield f"the database is damaged: {answer.splitlines()[0]}"
    if place := find_wrong_value(workspace.connection):
        yield f"the database is damaged, or another program wrote in it: {place} holds what cannot be there"
    own, theirs = _expected_schema(len(MIGRATIONS)), _database_schema(workspace.connection)
    for name in sorted({*own, *theirs}):
        if name not in own:
            yield f"the database has a {theirs[name][0]} that is not ours: {name}"
        elif name not in theirs:
            yield f"the database lacks the {own[name][0]} {name}"
        elif own[name] != theirs[name]:
            yield f"the {own[name][0]} {name} of the database is another than ours"


@lru_cache(maxsize=1)
def _expected_schema(version: int) -> Mapping[str, tuple[str, str]]:
    """Return the schema of a new database of a version: type and SQL by name."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        migrate_database(made)
        return _database_schema(made)


def _database_schema(connection: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    """Return the schema of a database: type and SQL, blanks normalised, by name."""
    # SQLite makes its tables of statistics by itself.
    query = "SELECT name, type, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'"
    return {row[0]: (row[1], re.sub(r"\s+", " ", row[2] or "")) for row in connection.execute(query)}


def _entry_problems(workspace: Workspace, chain: VerifiedAuditLog) -> Iterator[str]:
    """Yield the datasets and projects that differ from those that were entered, in words."""
    for act, (table, columns) in _SEALED_COLUMNS.items():
        entered = chain.rows_of_act(act)
        for found in workspace.connection.execute(f"SELECT {columns} FROM {table} ORDER BY id"):
            row = entered.get(found[0])
            if row is None and chain.last_unsealed_run == 0:
                yield f"{table} {found[0]} was added by other means"
            if row is None or (seal := row.details_table.get("seal")) is None:
                continue
            sealer = chain.sealer_of_row(row)
            if sealer is not None and sealer.seal_record(table, found) != seal:
                yield f"{table} {found[0]} is not as it was sealed"


def _run_name_problems(workspace: Workspace, chain: VerifiedAuditLog, runs: Sequence[int]) -> Iterator[str]:
    """Yield the runs whose name or note is not the one that was given last, in words."""
    given = chain.rows_of_act(AuditAct.RUN_NAMED)
    found = {row[0]: row for row in workspace.connection.execute(f"SELECT {run_names.SEALED_COLUMNS} FROM run_name")}
    for run_id in runs:
        row = given.get(run_id)
        if row is None:
            if run_id in found:
                yield f"the name of run {run_id} was added by other means"
            continue
        sealer = chain.sealer_of_row(row)
        if sealer is not None and sealer.seal_record(
            run_names.SEALED_RECORD, found.get(run_id)
        ) != row.details_table.get("seal"):
            yield f"the name of run {run_id} is not as it was sealed"
