"""Workspace: a directory with a database, a folder of tables and a key."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.engine.data.schema import Origin, Schema, Variable
from sfumato.engine.errors import EngineError

from ..audit import (
    HEAD_FILE,
    RUNS_BEFORE_DETAIL,
    AuditAct,
    AuditHead,
    append_act,
    audit_rows,
    check_rows_extend,
    has_only_stops_after,
    has_sealing_rows,
    read_head,
    seal_rows_after,
    write_head_file,
)
from ..errors import (
    BrokenHistory,
    DamagedRecord,
    ForbiddenPlace,
    NotAWorkspace,
    NotFound,
    NotYours,
    StrangeFile,
    WorkspaceError,
)
from ..plain_files import check_layout, owner_if_other, sync_to_disk
from ..policy.policy import places_in_workspace, read_policy_of_workspace, read_trusted_policy
from .database import (
    DATABASE,
    check_nothing_computed,
    find_wrong_value,
    immediate_transaction,
    is_older_version,
    migrate_database,
    open_database,
    open_read_only,
    set_wal,
)
from .heads import (
    HeadsFolder,
    HeadStore,
    first_head_stores,
    head_disagreement,
    head_stores_of,
    store_head_outside,
    store_unknown_head,
)
from .keys import (
    KEY_FILE,
    NoKey,
    compute_fingerprint,
    generate_key,
    key_of_workspace,
    read_key,
    read_sealing_key,
    sealing_key,
    write_key,
)
from .records import check_integers, check_texts, raise_damaged_record
from .seals import RecordSealer

if TYPE_CHECKING:
    from sfumato.engine.data.microdata import Microdata

    from ..ingest.conformed_blocks import ConformedBlocks
    from .stored_blocks import StoredBlocks
    from .tables import TableStore

_DATASET_QUERY = """SELECT dataset.*, (SELECT coalesce(max(missing.of), 0) FROM missing WHERE dataset_id = dataset.id) AS file_records
                    FROM dataset"""
_CHECKED_DATABASES: dict[Path, tuple[tuple[int, ...], ...]] = {}
"""State of the database files of each workspace when this process last checked all values."""


@dataclass(frozen=True, slots=True)
class StoredDataset:
    """A stored table, with its origin and its schema.

    records, dropped: number of its records, and of the file's records that were dropped for missing values
    file_records: number of the file's records before any was dropped, sampled or held out; 0 where it was not counted.
        No seal covers it
    """

    id: int
    project_id: int
    name: str
    origin: Origin
    source_sha256: str
    table_sha256: str
    schema: Schema
    records: int
    dropped: int
    created: str
    file_records: int = 0


class Workspace:
    """An open workspace, closed by ``with``; each thread needs one of its own, since SQLite connections stay in theirs.

    Opens in under a millisecond and loads no numerical library before a table is read.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.owner = ""
        """The other user whose workspace it is; then nothing is written."""

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @classmethod
    def create(cls, directory: Path, key: bytes | None = None) -> Workspace:
        """Create a workspace with this key, or a new one, or open the workspace that is there.

        Raises NotAWorkspace on a directory with other things in it, and NoKey where the one that is there has another
        key. Where its key is missing, this one is put back.
        """
        if (directory / DATABASE).exists():
            return cls._open_with_key(directory, key)
        if directory.exists() and not directory.is_dir():
            raise NotAWorkspace(f"{directory} is a file; name a new or empty directory")
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _directory_lock(directory):
                if not (directory / DATABASE).exists():
                    _make_database(directory, key)
        except (OSError, sqlite3.OperationalError) as error:
            raise NotAWorkspace(f"{directory} cannot be made a workspace: {error}") from None
        return cls._open_with_key(directory, key)

    @classmethod
    def _open_with_key(cls, directory: Path, key: bytes | None) -> Workspace:
        """Open a workspace, which must have this key if one is given."""
        workspace = cls.open(directory, key=key)
        try:
            if key is not None:
                workspace._check_key(key)
        except BaseException:
            workspace.close()
            raise
        return workspace

    @classmethod
    def open(
        cls, directory: Path, *, read_only: bool = False, unchecked: bool = False, key: bytes | None = None
    ) -> Workspace:
        """Open a workspace to write, or only to read it, and migrate its database to this version.

        read_only: whether writing is refused; another user's workspace can only be read
        unchecked: whether one with a broken history is opened too, for what shows or repairs that
        key: key of a workspace of a version without seals, where its file is missing

        Raises NotAWorkspace, StrangeFile, and BrokenHistory where the audit log has no seals, or is not the one that is
        recorded outside the workspace.
        """
        if not (directory / DATABASE).is_file():
            raise NotAWorkspace(f"{directory} is not a workspace; make one with: sfumato init {directory}")
        workspace = cls(directory)
        try:
            check_layout(directory)
            workspace.owner = owner_if_other(directory, DATABASE)
            # Before any other query: reading a view may never end.
            check_nothing_computed(workspace.connection)
            workspace._migrate_and_check(key, unchecked=unchecked)
            if read_only or workspace.owner:
                workspace.connection.execute("PRAGMA query_only = ON")
        except sqlite3.DatabaseError as error:
            workspace.close()
            raise NotAWorkspace(f"{directory / DATABASE} cannot be opened: {error}") from None
        except UnicodeDecodeError:  # what SQLite says of its own tables is no text
            workspace.close()
            raise NotAWorkspace(f"{directory / DATABASE} cannot be opened: its tables have no names") from None
        except OSError as error:
            workspace.close()
            raise NotAWorkspace(f"{directory} cannot be opened: {error.strerror}") from None
        except WorkspaceError:
            workspace.close()
            raise
        return workspace

    def _migrate_and_check(self, key: bytes | None, *, unchecked: bool) -> None:
        """Check the history, migrate the database, and check its values and seals."""
        if self.owner:
            migrate_database(self.connection, look=True)
            self._check_values()
            return
        if not unchecked and (wrong := places_in_workspace(self.directory)):
            raise ForbiddenPlace(wrong)
        older = is_older_version(self.connection)
        # Before the migration, which would seal a history that somebody exchanged.
        wrong = self.history_problem()
        if wrong and (older or not unchecked):
            raise BrokenHistory(wrong)
        migrate_database(self.connection, begin_seals=partial(self._begin_seals_once, key))
        self._check_values()
        wrong = wrong or self._lost_seals_message()
        if wrong and not unchecked:
            raise BrokenHistory(wrong)
        if older:
            write_head_file(self.directory, read_head(self.connection))
        if not wrong:
            store_unknown_head(self.directory, self.connection, read_head(self.connection), self.head_stores())

    def history_problem(self) -> str:
        """Explain why the audit log is not the one recorded outside the workspace; empty where it is.

        Raises BrokenHistory where a place that the policy names cannot be read.
        """
        return head_disagreement(self.directory, self.connection, self.head_stores())

    def _check_values(self) -> None:
        """Check the types of all stored values. Raises DamagedRecord."""
        files = (self.directory / DATABASE, self.directory / f"{DATABASE}-wal")
        found = [path.stat() for path in files if path.exists()]
        # Once for each state of the files: a worker's heartbeat alone opens the workspace every few seconds.
        stamp = tuple((one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns) for one in found if one.st_size)
        if _CHECKED_DATABASES.get(self.directory) == stamp:
            return
        if place := find_wrong_value(self.connection):
            raise DamagedRecord(place)
        _CHECKED_DATABASES[self.directory] = stamp

    def _lost_seals_message(self) -> str:
        """Explain that the audit log has lost its seals or its key; empty where it has both."""
        row = self.connection.execute(
            "SELECT fingerprint, EXISTS (SELECT 1 FROM audit_seal) FROM workspace_key"
        ).fetchone()
        if row is not None and row[0] and row[1]:
            return ""
        return (
            f"the audit log of {self.directory} has lost its {'seals' if row is not None and row[0] else 'key'}: it was changed by other "
            "means. Restore a backup, or take a checked copy, whose runs are then not sealed: "
            f"sfumato adopt {self.directory} NEW-DIRECTORY"
        )

    def head_stores(self) -> list[HeadStore]:
        """Return the places outside the workspace that keep the head of its audit log."""
        try:
            return head_stores_of(self.directory)
        # Reading must not fail for a damaged policy of the user; every writer reads it again and raises.
        except (EngineError, StrangeFile):
            return [HeadsFolder()]

    @property
    def stored_fingerprint(self) -> str:
        """Return the fingerprint of the workspace's key that the database has. Raises DamagedRecord."""
        row = self.connection.execute("SELECT fingerprint FROM workspace_key").fetchone()
        if row is None or not isinstance(row[0], str):
            raise DamagedRecord("the fingerprint of the key")
        return row[0]

    def read_workspace_key(self) -> bytes:
        """Read the workspace's key; empty for a public one. Raises NoKey."""
        return key_of_workspace(self.directory, self.stored_fingerprint)

    @cached_property
    def sealer(self) -> RecordSealer:
        """Return the current sealer: by the key that the policy names, else by one derived from the workspace's own.

        Raises NoKey and BadInput.
        """
        return self.all_sealers()[0]

    def all_sealers(self) -> list[RecordSealer]:
        """Return the current sealer, followed by the one by the workspace's own key. Raises NoKey and BadInput."""
        named = read_trusted_policy().seal_key
        keys = [read_sealing_key(self.directory, named)] if named else []
        try:
            keys.append(sealing_key(self.read_workspace_key()))
        except NoKey:
            if not keys:
                raise
        return [RecordSealer(key, compute_fingerprint(key)) for key in keys]

    def _begin_seals_once(self, given: bytes | None, connection: sqlite3.Connection) -> None:
        """Begin the seals of a workspace of a version without them. Raises NoKey, and BrokenHistory where there were
        seals.
        """
        # Whoever sets the version of the database back must not have a changed history sealed.
        if has_sealing_rows(audit_rows(connection)):
            raise BrokenHistory(
                f"the audit log of {self.directory} was sealed already, and its seals are gone: it was changed by other means. "
                "Restore a backup"
            )
        path, found = self.directory / KEY_FILE, self.stored_fingerprint
        if found and given is not None and compute_fingerprint(given) == found and not os.path.lexists(path):
            write_key(path, given)
        begin_seals(connection, self.directory, found)

    def _check_key(self, key: bytes) -> None:
        """Raise NoKey where the workspace has another key, and put this one back where its file is missing."""
        if (found := self.stored_fingerprint) != compute_fingerprint(key):
            raise NoKey(
                f"{self.directory} has another key (fingerprint {found}) than --key (fingerprint {compute_fingerprint(key)}); "
                "leave --key out, or make another workspace"
            )
        if os.path.lexists(self.directory / KEY_FILE):
            self.read_workspace_key()
            return
        write_key(self.directory / KEY_FILE, key)
        with self.write_transaction() as connection:
            append_act(connection, AuditAct.KEY_RESTORED, "workspace", fingerprint=found)

    @cached_property
    def tables(self) -> TableStore:
        """Return the store of the workspace's tables."""
        # Loads pandas and pyarrow, which commands that read no table need not wait for.
        from .tables import TableStore

        return TableStore(self.directory / "tables", self.owner)

    @cached_property
    def connection(self) -> sqlite3.Connection:
        """Return the connection to the database, opened on first use."""
        return open_read_only(self.directory / DATABASE) if self.owner else open_database(self.directory / DATABASE)

    def close(self) -> None:
        """Close the connection; it is opened again on the next use."""
        if "connection" in self.__dict__:
            self.connection.close()
            del self.__dict__["connection"]

    @contextmanager
    def write_transaction(self, *, accept_rollback: bool = False) -> Iterator[sqlite3.Connection]:
        """Run the block in a write transaction, and seal the rows that it adds to the audit log.

        accept_rollback: whether the log's head replaces another one that is recorded outside

        Raises NotYours in another user's workspace, NoKey where new rows cannot be sealed, and BrokenHistory where the
        log is not the one recorded outside.
        """
        self.check_own()
        with immediate_transaction(self.connection) as connection:
            before = read_head(connection)
            yield connection
            head = read_head(connection)
            if head != before:
                self._seal_new_rows(connection, before)
                read_policy_of_workspace(self.directory)  # nothing is written under a policy that is not allowed
                places = head_stores_of(self.directory)
                if not accept_rollback and (wrong := head_disagreement(self.directory, connection, places)):
                    raise BrokenHistory(wrong)
                for place in places:
                    with contextlib.suppress(OSError):
                        # A file that the policy names must be writable before the commit, since its head is written
                        # after it.
                        place.check_can_store()
        if head != before:
            # After the commit: a head of a transaction that was rolled back would be on no log.
            write_head_file(self.directory, head)
            store_head_outside(self.directory, connection, head, places, replace=accept_rollback)

    def _seal_new_rows(self, connection: sqlite3.Connection, before: AuditHead) -> None:
        """Seal the rows after ``before`` in the audit log."""
        try:
            sealers = self.all_sealers()
        except NoKey:
            # A run can be stopped without the key: nothing is computed or released by that.
            if has_only_stops_after(connection, before.number):
                return
            raise
        check_rows_extend(connection, before, {sealer.name: sealer.key for sealer in sealers})
        seal_rows_after(connection, before.number, sealers[0].key, sealers[0].name)

    def check_own(self) -> None:
        """Raise NotYours where the workspace is another user's."""
        if self.owner:
            raise NotYours(self.directory, self.owner)

    @property
    def data_version(self) -> int:
        """Return a number that changes when another connection has written."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    def ensure_project(self, name: str) -> int:
        """Return the number of the project with this name, made if need be. Call it inside a transaction."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        made = self.connection.execute("INSERT OR IGNORE INTO project (name, created) VALUES (?, ?)", (name, now))
        project_id = int(self.connection.execute("SELECT id FROM project WHERE name = ?", (name,)).fetchone()[0])
        if made.rowcount:
            seal = self.sealer.seal_record("project", (project_id, name, now))
            append_act(self.connection, AuditAct.PROJECT_MADE, f"project {project_id}", seal=seal)
        return project_id

    def add_dataset(
        self,
        project_id: int,
        name: str,
        source_sha256: str,
        data: Microdata | ConformedBlocks | StoredBlocks,
        table_sha256: str | None = None,
    ) -> int:
        """Store a table in a project and return its number; the same table from the same file is stored once. Call it
        inside a transaction. It stores with it how many records were dropped for which variables.

        ``table_sha256`` tells that the table has been written already: a large one is, before the transaction begins.
        """
        table_sha256 = table_sha256 or self.tables.write_microdata(data)
        schema = schema_to_json(data.schema)
        key = (project_id, name, data.origin, source_sha256, table_sha256, schema)
        # A condition may keep the records that a policy drops: the same table then describes other shares of the file.
        found = self.connection.execute(
            """SELECT id FROM dataset WHERE project_id = ? AND name = ? AND origin = ? AND source_sha256 = ?
               AND table_sha256 = ? AND schema = ? AND dropped = ?""",
            (*key, data.dropped),
        ).fetchone()
        if found:
            return int(found[0])
        now = datetime.now(UTC).isoformat(timespec="seconds")
        cursor = self.connection.execute(
            """INSERT INTO dataset (project_id, name, origin, source_sha256, table_sha256, schema, records, dropped,
               created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (*key, len(data), data.dropped, now),
        )
        dataset_id = int(cursor.lastrowid or 0)
        self.connection.executemany(
            "INSERT INTO missing VALUES (?, ?, ?, ?)",
            [(dataset_id, column, count, data.file_records) for column, count in data.missing_counts.items()],
        )
        if data.affected_group is not None:
            self.connection.execute(
                "INSERT INTO dropped_group VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (dataset_id, *astuple(data.affected_group))
            )
        append_act(
            self.connection,
            AuditAct.DATASET_IMPORTED,
            f"dataset {dataset_id}",
            project=project_id,
            origin=data.origin,
            source_sha256=source_sha256,
            table_sha256=table_sha256,
            records=len(data),
            seal=self.sealer.seal_record("dataset", (dataset_id, *key, len(data), data.dropped, now)),
        )
        return dataset_id

    def list_datasets(self, project_id: int) -> list[StoredDataset]:
        """Return the datasets of a project, newest first."""
        rows = self.connection.execute(f"{_DATASET_QUERY} WHERE project_id = ? ORDER BY id DESC", (project_id,))
        return [_dataset_from_row(row) for row in rows]

    def find_dataset(self, dataset_id: int) -> StoredDataset:
        """Return the dataset with this number. Raises NotFound."""
        row = self.connection.execute(f"{_DATASET_QUERY} WHERE id = ?", (dataset_id,)).fetchone()
        if row is None:
            raise NotFound(f"there is no dataset {dataset_id}")
        return _dataset_from_row(row)

    def read_stored_dataset(
        self, dataset: StoredDataset, names: Sequence[str] | None = None, rows: Sequence[int] | None = None
    ) -> Microdata:
        """Read the records of a dataset, or some of its variables or ``rows`` (from 0)."""
        schema = dataset.schema if names is None else dataset.schema.select_variables(names)
        found = self.tables.read_microdata(dataset.table_sha256, schema, dataset.origin, rows)
        if not dataset.dropped:
            return found
        counted = self.connection.execute("SELECT name, records FROM missing WHERE dataset_id = ?", (dataset.id,))
        counts = {row["name"]: row["records"] for row in counted if row["name"] in dataset.schema}
        return replace(found, dropped=dataset.dropped, file_records=dataset.file_records, missing_counts=counts)


def begin_seals(connection: sqlite3.Connection, directory: Path, fingerprint_found: str = "") -> None:
    """Begin the seals of a workspace that has runs without them. Raises NoKey.

    fingerprint_found: fingerprint of the workspace's key; empty where a key has to be made
    """
    runs = int(connection.execute("SELECT coalesce(max(id), 0) FROM run").fetchone()[0])
    before = read_head(connection)
    if fingerprint_found:
        append_act(connection, AuditAct.SEALS_BEGUN, "workspace", **{RUNS_BEFORE_DETAIL: runs})
    else:
        made = _ensure_key_file(directory, None)
        connection.execute("UPDATE workspace_key SET fingerprint = ?", (made,))
        append_act(connection, AuditAct.KEY_MADE, "workspace", fingerprint=made, **{RUNS_BEFORE_DETAIL: runs})
    key = sealing_key(key_of_workspace(directory, fingerprint_found or made))
    if named := read_trusted_policy().seal_key:
        key = read_sealing_key(directory, named)
    seal_rows_after(connection, before.number, key, compute_fingerprint(key))


def future_workspace_key(directory: Path, given: bytes | None = None) -> bytes:
    """Return the key of the workspace in a directory, or the one with which it would be made.

    Raises NoKey, also where the workspace has another key than the one given.
    """
    if (directory / DATABASE).exists():
        with Workspace.create(directory, given) as workspace:
            return workspace.read_workspace_key()
    if os.path.lexists(directory / KEY_FILE):
        return _read_key_in(directory, given)
    return generate_key() if given is None else given


def export_key(workspace: Workspace, path: Path) -> str:
    """Copy the key into a new file, enter that in the audit log, and return the key's fingerprint. Raises NoKey."""
    key = workspace.read_workspace_key()
    with workspace.write_transaction() as connection:
        append_act(connection, AuditAct.KEY_EXPORTED, "workspace", fingerprint=compute_fingerprint(key))
        # Within the transaction: where the file cannot be written, no export is entered.
        write_key(path, key)
    return compute_fingerprint(key)


def check_workspace_owner(directory: Path) -> None:
    """Raise NotYours where the workspace in a directory is another user's."""
    with contextlib.suppress(OSError):
        if owner := owner_if_other(directory, DATABASE):
            raise NotYours(directory, owner)


def _is_foreign_file(path: Path) -> bool:
    """Return whether a file in a new workspace's directory is none of its own."""
    return path.name != KEY_FILE and not path.name.startswith((DATABASE, HEAD_FILE))


def _ensure_key_file(directory: Path, key: bytes | None) -> str:
    """Write a key into a directory that has none, and return the fingerprint of the key there."""
    path = directory / KEY_FILE
    if not os.path.lexists(path):
        write_key(path, generate_key() if key is None else key)
    return compute_fingerprint(_read_key_in(directory, key))


def _read_key_in(directory: Path, given: bytes | None) -> bytes:
    """Read the key in a directory. Raises NoKey where another is given."""
    key = read_key(directory / KEY_FILE)
    if given not in (None, key):
        raise NoKey(f"another key lies in {directory} than --key; move it away, or leave --key out")
    return key


@raise_damaged_record("a dataset")
def _dataset_from_row(row: sqlite3.Row) -> StoredDataset:
    """Return the dataset of a row of the database. Raises DamagedRecord."""
    dataset = StoredDataset(**{**dict(row), "schema": schema_from_json(row["schema"])})
    check_texts(dataset.name, dataset.origin, dataset.source_sha256, dataset.table_sha256, dataset.created)
    check_integers(dataset.id, dataset.project_id, dataset.records, dataset.dropped, dataset.file_records)
    return dataset


@contextlib.contextmanager
def _directory_lock(directory: Path) -> Iterator[None]:
    """Hold a lock on a directory, so that only one process at a time is in the block for it."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _make_database(directory: Path, key: bytes | None) -> None:
    """Make the database of a new workspace, with its key and its first sealed rows."""
    if any(map(_is_foreign_file, directory.iterdir())):
        raise NotAWorkspace(f"{directory} has other things in it; name a new or empty directory")
    directory.chmod(0o700)
    # Renamed when it is whole, so that no one opens half a database.
    aside = directory / f"{DATABASE}.making"
    aside.unlink(missing_ok=True)
    os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with contextlib.closing(open_database(aside)) as connection:
        set_wal(connection)
        connection.execute("PRAGMA synchronous = OFF")  # it reaches the disk once, before it gets its name
        migrate_database(connection)
        made = _ensure_key_file(directory, key)
        own = sealing_key(read_key(directory / KEY_FILE))
        with immediate_transaction(connection):
            connection.execute("UPDATE workspace_key SET fingerprint = ?", (made,))
            seal_rows_after(connection, 0, own, compute_fingerprint(own))
        head = read_head(connection)
        write_head_file(directory, head)
        store_head_outside(directory, connection, head, first_head_stores(directory), replace=True)
    sync_to_disk(aside)
    aside.replace(directory / DATABASE)
    sync_to_disk(directory)


def schema_to_json(schema: Schema) -> str:
    """Return a schema as JSON, as the database keeps it."""
    return json.dumps({variable.name: variable.to_table() for variable in schema})


def schema_from_json(text: str) -> Schema:
    """Parse a schema that ``schema_to_json`` wrote."""
    tables = json.loads(text)
    return Schema(tuple(Variable.from_table(name, table, f"variables.{name}") for name, table in tables.items()))
