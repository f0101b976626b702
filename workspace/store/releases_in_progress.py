"""Releases in progress: entered before anything is written, so that one that is cut off is completed or removed.

The audit log has the row of the begun release before the first file exists. The files are written into a folder with a
name of its own, whose manifest is noted before it gets the requested name. Whoever finds a release whose process has
ended (``resume``, the next release) enters it as released where the files have their name, and else removes them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ..audit import AuditAct, append_act, read_head
from ..errors import NotReleased, StrangeFile
from ..outgoing import OutgoingFolder
from ..plain_files import read_plain
from ..policy.charges import AuditDetails, LedgerCharge
from .ledger import BEGIN_ROW, check_ledger_unchanged
from .process_identity import has_ended, host_identity, process_start
from .release_folders import INTERNAL_FOLDER, MANIFEST_FILE
from .workspace import Workspace

PUBLIC_MANIFEST_KEY = "public_manifest_sha256"
"""Detail of the row of a release: the hash of its public manifest."""


@dataclass(frozen=True, slots=True)
class ReleaseInProgress:
    """Release of a run that is being written.

    number: number of its row in the audit log
    run_id: run
    working_folder: folder into which it is written
    target: folder that it becomes
    details: details of its row
    manifest_sha256: hash of its internal manifest, empty before that is noted
    folder: the open folder, while this process writes it
    """

    number: int
    run_id: int
    working_folder: Path
    target: Path
    details: AuditDetails
    manifest_sha256: str = ""
    folder: OutgoingFolder | None = None


@contextlib.contextmanager
def begin_release(
    workspace: Workspace, run_id: int, target: Path, details: AuditDetails, charge: LedgerCharge, ledger_end: int
) -> Iterator[ReleaseInProgress]:
    """Enter that a release begins and what it is charged; the block writes its files and publishes them, and its errors
    undo the release.

    ledger_end: last row of the audit log that the gate read of the ledger

    Raises UnsafeFolder where somebody else could exchange its files, LedgerChanged where another release was charged
    meanwhile, and NotReleased where one has used its approval; then nothing is entered.
    """
    with OutgoingFolder(target) as folder:
        aside = folder.path
        with workspace.write_transaction() as connection:
            if request := details.get("request_sha256"):
                check_approval_unused(connection, run_id, str(request))
            # Without an account too: what two releases of the same people show together depends on both.
            check_ledger_unchanged(connection, ledger_end)
            begun = {**details, **charge.to_details(), "target": str(target)}
            append_act(connection, AuditAct.RELEASE_BEGUN, f"run {run_id}", **begun)
            number = read_head(connection).number
            one = ReleaseInProgress(number, run_id, aside, target, details, folder=folder)
            pid = os.getpid()
            values = (*_sealed_values(one, ""), pid, host_identity(), process_start(pid))
            connection.execute(
                "INSERT INTO releasing VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*values, _release_seal(workspace, values[:6])),
            )
        try:
            folder.make()
            yield one
        except BaseException:
            _undo_release(workspace, one, folder)
            raise


def _sealed_values(release: ReleaseInProgress, manifest_sha256: str) -> tuple[int, int, str, str, str, str]:
    """Return what the seal of a release in progress covers."""
    details = json.dumps(dict(release.details))
    return (
        release.number, release.run_id, str(release.working_folder), str(release.target), details, manifest_sha256
    )  # fmt: skip


def _undo_release(workspace: Workspace, release: ReleaseInProgress, folder: OutgoingFolder) -> None:
    """Remove the files of a release that failed, and enter that it was undone."""
    if _noted_manifest(workspace, release.number) is None:
        return  # it had ended
    # Where it failed between the rename and its entry, the files have the requested name. They lose it before the entry:
    # a crash in between then leaves a folder that the next release removes.
    if folder.name != release.working_folder.name:
        folder.restore_working_name(release.working_folder.name)
    _enter_release_end(workspace, release, AuditAct.RELEASE_UNDONE, {})
    folder.remove()


def publish_release(
    workspace: Workspace, release: ReleaseInProgress, manifest_sha256: str, public_manifest_sha256: str
) -> None:
    """Give the written folder its name and enter the release with the hashes of its two manifests.

    Raises ExchangedFiles and NotReleased.
    """
    assert release.folder is not None
    noted = replace(release, details={**release.details, PUBLIC_MANIFEST_KEY: public_manifest_sha256})
    values = _sealed_values(noted, manifest_sha256)
    # The hash is that of the bytes in memory, and is noted before the rename: after a crash here, the missing folder
    # shows that the files were published.
    with workspace.write_transaction() as connection:
        connection.execute(
            "UPDATE releasing SET details = ?, manifest_sha256 = ?, seal = ? WHERE number = ?",
            (values[4], manifest_sha256, _release_seal(workspace, values), release.number),
        )
    release.folder.publish()
    details = {**noted.details, "manifest_sha256": manifest_sha256}
    _enter_release_end(workspace, noted, AuditAct.RUN_RELEASED, details)


def settle_releases(workspace: Workspace) -> list[str]:
    """Complete or remove the releases that were cut off, and return a sentence on each."""
    said = []
    for row in workspace.connection.execute("SELECT * FROM releasing ORDER BY number").fetchall():
        # It may still be in progress.
        if not has_ended(row["pid"], row["host"], row["birth"]):
            continue
        values = (*row[:6],)
        if _release_seal(workspace, values) != row["seal"]:
            said.append(f"release {row['number']} is not as it was entered, and left alone; see sfumato audit verify")
            continue
        details = json.loads(row["details"])
        one = ReleaseInProgress(
            row["number"], row["run_id"], Path(row["aside"]), Path(row["target"]), details, row["manifest_sha256"]
        )
        said.append(_settle_release(workspace, one))
    return said


def runs_in_release(connection: sqlite3.Connection) -> list[int]:
    """Return the runs of releases that have begun and not ended, ascending."""
    return [int(row[0]) for row in connection.execute("SELECT DISTINCT run_id FROM releasing ORDER BY run_id")]


def _settle_release(workspace: Workspace, release: ReleaseInProgress) -> str:
    """Complete or remove a release that was cut off, and describe which."""
    of = f'the release of run {release.run_id} to "{release.target}" that was cut off'
    if release.manifest_sha256 and not os.path.lexists(release.working_folder):
        _enter_release_end(
            workspace, release, AuditAct.RUN_RELEASED, {**release.details, "manifest_sha256": release.manifest_sha256}
        )
        there = (
            ""
            if _manifest_hash(release.target) == release.manifest_sha256
            else ", and its files are not there any more"
        )
        return f"{of} had its files and is completed{there}"
    # The path comes from the database, which another may have made: nothing but a folder of a release is removed, and
    # the 8 random digits of somebody else's release are not known.
    name = rf"\.{re.escape(release.target.name)}\.writing-[0-9a-f]{{8}}"
    if release.working_folder.parent == release.target.parent and re.fullmatch(name, release.working_folder.name):
        shutil.rmtree(release.working_folder, ignore_errors=True)
    _enter_release_end(workspace, release, AuditAct.RELEASE_UNDONE, {})
    return f"{of} is undone: nothing of it is left"


def _enter_release_end(workspace: Workspace, release: ReleaseInProgress, act: AuditAct, details: AuditDetails) -> None:
    """Enter how a release ended, unless it is entered already."""
    with workspace.write_transaction() as connection:
        # Two processes may settle one release: whoever deletes its row enters the end.
        if connection.execute("DELETE FROM releasing WHERE number = ?", (release.number,)).rowcount:
            append_act(connection, act, f"run {release.run_id}", **{**details, BEGIN_ROW: release.number})


def _release_seal(workspace: Workspace, values: tuple[object, ...]) -> str:
    """Return the seal of a row of the table of releases in progress."""
    return workspace.sealer.seal_record("release", values)


def _noted_manifest(workspace: Workspace, number: int) -> str | None:
    """Return the hash of the manifest noted for a release; empty before that, None when the release has ended."""
    row = workspace.connection.execute("SELECT manifest_sha256 FROM releasing WHERE number = ?", (number,)).fetchone()
    return None if row is None else str(row[0])


def _manifest_hash(directory: Path) -> str:
    """Return the SHA-256 of the internal manifest in a directory; empty if it does not exist."""
    try:
        return hashlib.sha256(read_plain(directory / INTERNAL_FOLDER / MANIFEST_FILE)).hexdigest()
    except (OSError, StrangeFile):
        return ""


def check_approval_unused(connection: sqlite3.Connection, run_id: int, request_sha256: str) -> None:
    """Raise NotReleased where another release, not undone, has used the approval of this request."""
    # A release that was undone gives its approval back.
    used = connection.execute(
        """SELECT time FROM audit AS begun
           WHERE act = ? AND json_extract(details, '$.request_sha256') = ? AND NOT EXISTS (
               SELECT 1 FROM audit WHERE act = ? AND json_extract(details, '$.begun') = begun.number)""",
        (AuditAct.RELEASE_BEGUN.value, request_sha256, AuditAct.RELEASE_UNDONE.value),
    ).fetchone()
    if used is not None:
        raise NotReleased(
            f"this approval served the release that began on {used[0][:10]}, and serves no other; ask again: "
            f"sfumato release {run_id} --request --reason TEXT"
        )
