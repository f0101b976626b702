"""Reading of every stored table that the database records, to compare its bytes with the recorded hash."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sfumato.engine.wording import count_noun, join_first_names

from ..errors import DamagedTable, StrangeFile
from ..plain_files import is_hash
from ..store.ledger import read_charges
from ..store.workspace import Workspace
from ..visible_text import replace_unprintable

MOST_OWNERS_NAMED = 3
_RECORDED = """
    SELECT table_sha256, 'dataset ' || id FROM dataset UNION ALL
    SELECT sha256, name || ' of run ' || run_id FROM artefact UNION ALL
    SELECT sha256, 'the tombstone of run ' || run_id FROM tombstone_table
"""


@dataclass(frozen=True, slots=True)
class FileComparison:
    """The comparison of files, read to their last byte, with their recorded hashes.

    files: how many
    bytes: their bytes together
    wrong: what differs, in words
    notes: what could not be compared, in words
    """

    files: int = 0
    bytes: int = 0
    wrong: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def recorded_tables(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """Return, by the hash of each recorded table, what records it, in words."""
    found: dict[str, tuple[str, ...]] = {}
    for sha256, owner in connection.execute(_RECORDED):
        found[str(sha256)] = (*found.get(str(sha256), ()), str(owner))
    for charge in read_charges(connection):
        if charge.identifiers:
            owner = f"the people of the release of run {charge.run_id}"
            found[charge.identifiers] = (*found.get(charge.identifiers, ()), owner)
    return found


def read_recorded_tables(workspace: Workspace, recorded: Mapping[str, tuple[str, ...]]) -> FileComparison:
    """Read every byte of the recorded tables, and compare them with their hashes."""
    files = size = 0
    wrong: list[str] = []
    for sha256, owners in recorded.items():
        try:
            size += workspace.tables.verify_table(sha256)
            files += 1
        except (DamagedTable, StrangeFile) as error:
            # Another process may have deleted a run meanwhile, with its tables.
            if sha256 in recorded_tables(workspace.connection):
                wrong.append(f"{error} ({_owners_text(owners)})")
        except OSError as error:
            wrong.append(f"the table {sha256[:8]} cannot be read: {error.strerror} ({_owners_text(owners)})")
    return FileComparison(files, size, tuple(wrong), tuple(_unrecorded_files(workspace)))


def _unrecorded_files(workspace: Workspace) -> Iterator[str]:
    """Yield a remark on files that lie among the tables and that the database does not record."""
    # A name in the database that is no hash is reported as such, and names no file.
    known: set[str] = set()
    for one in filter(is_hash, recorded_tables(workspace.connection)):
        try:
            known |= {path.name for path in workspace.tables.files_of(one)}
        except DamagedTable:
            # Reported as damaged: what else lies there may be its parts.
            known |= {workspace.tables.path_of(one).name, workspace.tables.manifest_path_of(one).name}
    directory = workspace.tables.directory
    there = sorted(path.name for path in directory.iterdir()) if directory.is_dir() else []
    if others := [name for name in there if name not in known]:
        more = ", ..." if len(others) > MOST_OWNERS_NAMED else ""
        yield (
            f"{count_noun(len(others), 'file')} in {directory.name}/ that the database does not record "
            f"({', '.join(map(replace_unprintable, others[:MOST_OWNERS_NAMED]))}{more}): no result rests on them"
        )


def _owners_text(owners: tuple[str, ...]) -> str:
    """Return what records a table, in words."""
    return join_first_names(owners, MOST_OWNERS_NAMED)
