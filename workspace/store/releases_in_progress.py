"""A release on its way: entered before anything is written, so that one that is cut off is completed or removed.

``release begun`` stands in the audit log before the first file does. The files are written into a directory of a name of its
own, whose manifest is noted before it gets the name that was asked for. Whoever finds a release whose process has gone (``resume``, the
next release) enters it as released where the files have appeared, and else removes what was written and enters that.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..audit import AuditAct, append_act, read_head
from ..errors import NotReleased, StrangeFile
from ..plain_files import read_plain, sync_to_disk
from .process_identity import birth_of, gone, host
from .release_folders import INTERNAL, MANIFEST
from .workspace import Workspace

Details = Mapping[str, str | int | None]
BEGUN = "begun"
"""The detail of a row that ends a release: the number of the row that began it."""


@dataclass(frozen=True, slots=True)
class ReleaseInProgress:
    """A release of a run into ``target``, written ``aside``; ``number`` is that of its row in the audit log."""

    number: int
    run_id: int
    aside: Path
    target: Path
    details: Details
    manifest_sha256: str = ""


@contextlib.contextmanager
def begun(workspace: Workspace, run_id: int, target: Path, details: Details) -> Iterator[ReleaseInProgress]:
    """Enter that a release begins; in here its files are written aside, and then ``appear``. What fails removes them again.

    Raises NotReleased where another release has used its approval meanwhile.
    """
    aside = target.with_name(f".{target.name}.writing-{secrets.token_hex(4)}")
    with workspace.writing() as connection:
        if request := details.get("request_sha256"):
            check_unused(connection, run_id, str(request))
        append_act(connection, AuditAct.RELEASE_BEGUN, f"run {run_id}", **{**details, "target": str(target)})
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
            host(),
            birth_of(pid),
        )
        connection.execute(
            "INSERT INTO releasing VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*values, _sealed(workspace, values[:6]))
        )
    try:
        try:
            aside.mkdir(mode=0o700)
        except OSError as error:
            raise NotReleased(f'"{aside}" cannot be made: {error.strerror}') from None
        yield one
    except BaseException:
        _take_back(workspace, one)
        raise


def _take_back(workspace: Workspace, one: ReleaseInProgress) -> None:
    """Remove the files of a release that failed, and enter that; where the database fails too, ``settle`` does it later."""
    noted = _noted(workspace, one.number)
    if noted is None:
        return  # it had ended
    if noted and not os.path.lexists(one.aside) and _manifest_of(one.target) == noted:
        one.target.rename(one.aside)
    _end(workspace, one, AuditAct.RELEASE_UNDONE, {})
    shutil.rmtree(one.aside, ignore_errors=True)


def appear(workspace: Workspace, one: ReleaseInProgress) -> str:
    """Give the files that were written aside their name, and enter the release; returns the hash of the internal manifest."""
    manifest = _manifest_of(one.aside)
    for folder, _, _ in os.walk(one.aside):
        sync_to_disk(Path(folder))
    values = (one.number, one.run_id, str(one.aside), str(one.target), json.dumps(dict(one.details)), manifest)
    workspace.connection.execute(
        "UPDATE releasing SET manifest_sha256 = ?, seal = ? WHERE number = ?",
        (manifest, _sealed(workspace, values), one.number),
    )
    try:
        one.aside.rename(one.target)
    except OSError as error:
        raise NotReleased(f'"{one.target}" cannot be written: {error.strerror}') from None
    sync_to_disk(one.target.parent)
    _end(workspace, one, AuditAct.RUN_RELEASED, {**one.details, "manifest_sha256": manifest})
    return manifest


def settle(workspace: Workspace) -> list[str]:
    """Complete or remove the releases that were cut off; says of each what became of it. Those still on their way stay."""
    said = []
    for row in workspace.connection.execute("SELECT * FROM releasing ORDER BY number").fetchall():
        if not gone(row["pid"], row["host"], row["birth"]):
            continue
        values = (*row[:6],)
        if _sealed(workspace, values) != row["seal"]:
            said.append(f"release {row['number']} is not as it was entered, and left alone; see sfumato audit verify")
            continue
        details = json.loads(row["details"])
        one = ReleaseInProgress(
            row["number"], row["run_id"], Path(row["aside"]), Path(row["target"]), details, row["manifest_sha256"]
        )
        said.append(_settled(workspace, one))
    return said


def _settled(workspace: Workspace, one: ReleaseInProgress) -> str:
    of = f'the release of run {one.run_id} to "{one.target}" that was cut off'
    if one.manifest_sha256 and not os.path.lexists(one.aside):
        _end(workspace, one, AuditAct.RUN_RELEASED, {**one.details, "manifest_sha256": one.manifest_sha256})
        there = "" if _manifest_of(one.target) == one.manifest_sha256 else ", and its files are not there any more"
        return f"{of} had its files and is completed{there}"
    if one.aside.parent == one.target.parent and one.aside.name.startswith(f".{one.target.name}.writing-"):
        shutil.rmtree(one.aside, ignore_errors=True)
    _end(workspace, one, AuditAct.RELEASE_UNDONE, {})
    return f"{of} is undone: nothing of it is left"


def _end(workspace: Workspace, one: ReleaseInProgress, act: AuditAct, details: Details) -> None:
    """Enter how a release ended; once."""
    with workspace.writing() as connection:
        if connection.execute("DELETE FROM releasing WHERE number = ?", (one.number,)).rowcount:
            append_act(connection, act, f"run {one.run_id}", **{**details, BEGUN: one.number})


def _sealed(workspace: Workspace, values: tuple[object, ...]) -> str:
    return workspace.sealer.record("release", values)


def _noted(workspace: Workspace, number: int) -> str | None:
    """The manifest that was noted of a release; empty before that, None when it has ended."""
    row = workspace.connection.execute("SELECT manifest_sha256 FROM releasing WHERE number = ?", (number,)).fetchone()
    return None if row is None else str(row[0])


def _manifest_of(directory: Path) -> str:
    """The SHA-256 of the internal manifest in a directory; empty where there is none."""
    try:
        return hashlib.sha256(read_plain(directory / INTERNAL / MANIFEST)).hexdigest()
    except (OSError, StrangeFile):
        return ""


def check_unused(connection: sqlite3.Connection, run_id: int, request_sha256: str) -> None:
    """Raises NotReleased where a release that was not undone has used the approval of this request."""
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
