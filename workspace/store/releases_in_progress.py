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
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..audit import AuditAct, append_act, read_head
from ..errors import NotReleased, StrangeFile
from ..plain_files import read_plain, sync_to_disk
from ..policy.charges import AuditDetails, LedgerCharge
from .ledger import BEGIN_ROW, check_ledger_unchanged
from .process_identity import has_ended, host_identity, process_start
from .release_folders import INTERNAL_FOLDER, MANIFEST_FILE
from .workspace import Workspace


@dataclass(frozen=True, slots=True)
class ReleaseInProgress:
    """Release of a run that is being written.

    number: number of its row in the audit log
    run_id: run
    working_folder: folder into which it is written
    target: folder that it becomes
    details: details of its row
    manifest_sha256: hash of its internal manifest, empty before that is noted
    """

    number: int
    run_id: int
    working_folder: Path
    target: Path
    details: AuditDetails
    manifest_sha256: str = ""


@contextlib.contextmanager
def begin_release(
    workspace: Workspace, run_id: int, target: Path, details: AuditDetails, charge: LedgerCharge, ledger_end: int
) -> Iterator[ReleaseInProgress]:
    """Enter that a release begins and what it is charged; the block writes its files and publishes them, and its errors
    undo the release.

    ledger_end: last row of the audit log that the gate read of the ledger

    Raises LedgerChanged where another release was charged meanwhile, and NotReleased where one has used the approval.
    """
    # In the same directory: a rename is atomic within one file system alone.
    aside = target.with_name(f".{target.name}.writing-{secrets.token_hex(4)}")
    with workspace.write_transaction() as connection:
        if request := details.get("request_sha256"):
            check_approval_unused(connection, run_id, str(request))
        # A release without an account is judged alike whatever was charged before.
        if charge.steps:
            check_ledger_unchanged(connection, ledger_end)
        begun = {**details, **charge.to_details(), "target": str(target)}
        append_act(connection, AuditAct.RELEASE_BEGUN, f"run {run_id}", **begun)
        one = ReleaseInProgress(read_head(connection).number, run_id, aside, target, details)
        pid = os.getpid()
        values = (
            one.number,
            run_id,
            str(aside),
            str(target),
            json.dumps(dict(details)),
            "",
            pid,
            host_identity(),
            process_start(pid),
        )
        connection.execute(
            "INSERT INTO releasing VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*values, _release_seal(workspace, values[:6])),
        )
    try:
        try:
            aside.mkdir(mode=0o700)
        except OSError as error:
            raise NotReleased(f'"{aside}" cannot be made: {error.strerror}') from None
        yield one
    except BaseException:
        _undo_release(workspace, one)
        raise


def _undo_release(workspace: Workspace, release: ReleaseInProgress) -> None:
    """Remove the files of a release that failed, and enter that it was undone."""
    noted = _noted_manifest(workspace, release.number)
    if noted is None:
        return  # it had ended
    # It failed between the rename and its entry: the files have the requested name already.
    if noted and not os.path.lexists(release.working_folder) and _manifest_hash(release.target) == noted:
        release.target.rename(release.working_folder)
    _enter_release_end(workspace, release, AuditAct.RELEASE_UNDONE, {})
    shutil.rmtree(release.working_folder, ignore_errors=True)


def publish_release(workspace: Workspace, release: ReleaseInProgress) -> str:
    """Rename the written folder to its target and enter the release; return the hash of the internal manifest."""
    manifest = _manifest_hash(release.working_folder)
    for folder, _, _ in os.walk(release.working_folder):
        sync_to_disk(Path(folder))
    values = (
        release.number,
        release.run_id,
        str(release.working_folder),
        str(release.target),
        json.dumps(dict(release.details)),
        manifest,
    )
    workspace.connection.execute(
        "UPDATE releasing SET manifest_sha256 = ?, seal = ? WHERE number = ?",
        (manifest, _release_seal(workspace, values), release.number),
    )
    try:
        # The manifest is noted by now: after a crash here, the missing folder shows that the files were published.
        release.working_folder.rename(release.target)
    except OSError as error:
        raise NotReleased(f'"{release.target}" cannot be written: {error.strerror}') from None
    sync_to_disk(release.target.parent)
    _enter_release_end(workspace, release, AuditAct.RUN_RELEASED, {**release.details, "manifest_sha256": manifest})
    return manifest


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
    # The path comes from the database: nothing but a folder of a release is removed.
    if release.working_folder.parent == release.target.parent and release.working_folder.name.startswith(
        f".{release.target.name}.writing-"
    ):
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
