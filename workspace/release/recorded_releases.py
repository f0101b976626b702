"""Released folders that the audit log records, compared with the hashes in the log where they still lie there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sfumato.engine.errors import BadInput

from ..audit import AuditAct, AuditRow
from ..store.ledger import BEGIN_ROW
from ..store.release_folders import INTERNAL_FOLDER, MANIFEST_FILE, PUBLIC_FOLDER
from ..store.releases_in_progress import PUBLIC_MANIFEST_KEY
from ..upkeep.recorded_tables import FileComparison
from .verification import VerifiedFolder, verify_release

_DETAIL_OF_PACKAGE = {INTERNAL_FOLDER: "manifest_sha256", PUBLIC_FOLDER: PUBLIC_MANIFEST_KEY}
"""The detail of the row of a release that has the hash of a package's manifest."""


def read_recorded_releases(rows: list[AuditRow]) -> FileComparison:
    """Read every byte of the released folders that the audit log records and that lie where they were written."""
    files = size = 0
    wrong: list[str] = []
    notes: list[str] = []
    for target, row in _last_release_by_target(rows).items():
        if not target.is_dir():
            notes.append(f'the release of {row.subject} does not lie in "{target}" any more: it was not read')
            continue
        try:
            found = verify_release(target)
        except BadInput as error:
            wrong.append(
                f'"{target}" is not the release of {row.subject} in row {row.number} of the audit log: {error.message}'
            )
            continue
        files, size = files + found.n_files, size + found.n_bytes
        differing = _manifest_problems(found, row.details_table)
        notes += _manifest_notes(found, row)
        wrong += [f'"{target}", the release of {row.subject}: {text}' for text in (*differing, *found.problems)]
    return FileComparison(files, size, tuple(wrong), tuple(notes))


def _last_release_by_target(rows: list[AuditRow]) -> dict[Path, AuditRow]:
    """Return the row of the last release to each folder; earlier versions recorded no folder."""
    begun = {row.number: row.details_table for row in rows if row.act == AuditAct.RELEASE_BEGUN}
    found: dict[Path, AuditRow] = {}
    for row in rows:
        if row.act == AuditAct.RUN_RELEASED:
            target = begun.get(row.details_table.get(BEGIN_ROW, 0), {}).get("target")
            if isinstance(target, str) and Path(target).is_absolute():
                found[Path(target)] = row
    return found


def _manifest_problems(found: VerifiedFolder, details: Mapping[str, Any]) -> Iterator[str]:
    """Yield the packages in a folder whose manifests are not those that the audit log records, in words."""
    # The hashes are of the manifests by which the files were verified: a second look could find others.
    for package, sha256 in found.manifest_hashes.items():
        recorded = details.get(_DETAIL_OF_PACKAGE[package])
        if recorded and sha256 != recorded:
            yield f"{package}/{MANIFEST_FILE} is not the one that was written: all of {package}/ may be somebody else's"


def _manifest_notes(found: VerifiedFolder, row: AuditRow) -> Iterator[str]:
    """Yield the packages of a release that could not be compared with the audit log, in words."""
    for package, key in _DETAIL_OF_PACKAGE.items():
        if package not in found.packages:
            yield f'{package}/ of the release of {row.subject} does not lie in "{found.directory}" any more: it was not read'
        # The internal manifest has the hash of the public one.
        elif not row.details_table.get(key) and INTERNAL_FOLDER not in found.packages:
            yield f"{package}/ of the release of {row.subject} was compared with its own manifest alone: row {row.number} has no hash of it"
