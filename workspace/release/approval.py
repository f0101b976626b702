"""A second person: a release is asked for in a file, and approved in another that a different account of the machine has written.

A workspace belongs to one account, and whatever is written under one account one person can write. What one account cannot make is a
file that belongs to another: so the policy names a directory that both can reach (``[approval] directory``), the request lies
there with what the gate found, and the approval beside it counts by the account that owns it. Whoever is root can be anybody.

What was examined is what is released: the request names the run, its tables, the policy and the findings, the approval
the very bytes of the request. Whatever has changed since is to be asked for anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from sfumato.engine.errors import BadInput

from ..audit import Act, account, append
from ..disclosure import INTERNAL as INTERNAL_MARK
from ..errors import NotReleased
from ..justification import checked_justification
from ..plain_files import open_plain
from ..store.workspace import Workspace
from .contents import ReleasePlan, plan_release
from .gate import Approval, Examination, Waiver, checked_reasons, examine, may_waive, waived, waivers_of
from .policy import POLICY_FILE, Policy, policy_of

MOST_BYTES = 64 << 20
Decided = Literal["approved", "refused"]


def subject_of(plan: ReleasePlan, examination: Examination) -> str:
    """The hash of what is asked for: run, recipe, tables, policy, and what each check found."""
    said = {
        "run": plan.run.id,
        "recipe": plan.run.recipe_sha256,
        "tables": plan.tables,
        "policy": examination.policy_sha256,
        "findings": [(one.check, one.status) for one in examination.findings],
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def request_release(
    workspace: Workspace, run_id: int | str, reason: str, waive: Mapping[str, str] | None = None
) -> Path:
    """Ask for the release of a run: writes the request where the policy says, for another account to approve, and a row of the audit log.

    Raises BadInput without a reason, for a waiver that cannot be, and where the policy names no directory for it; NotReleased
    where the policy does not let this account waive what it waives.
    """
    workspace.check_own()
    reason = checked_justification(reason, "--reason")
    plan, policy = plan_release(workspace, run_id), policy_of(workspace.directory)
    directory = _directory(policy)
    examination = examine(workspace, plan, policy)
    waived(examination, policy, "", waive)
    subject = subject_of(plan, examination)
    said = {
        "disclosure": INTERNAL_MARK,
        "subject_sha256": subject,
        "title": plan.run.title,
        "reason": reason,
        "waive": dict(waive or {}),
        "examination": examination.to_table(),
    }
    path = _request(directory, plan, subject)
    _write(path, said)
    with workspace.writing() as connection:
        append(
            connection, Act.RELEASE_REQUESTED, f"run {plan.run.id}", reason=reason, gate=examination.status,
            subject_sha256=subject, policy_sha256=policy.sha256,
        )  # fmt: skip
    return path


def decide(request: Path, decision: Decided, reason: str, waive: Mapping[str, str] | None = None) -> Path:
    """Approve or refuse a request, as this account: writes the answer beside it. Raises BadInput."""
    reason = checked_justification(reason, "--reason")
    given = checked_reasons(waive or {}, "--waive")
    content, owner, *_ = _read(request)
    if owner == os.geteuid():
        raise BadInput(str(request), "was asked for by this account; the policy wants another one to decide")
    said = {
        "request_sha256": hashlib.sha256(content).hexdigest(),
        "decision": decision,
        "reason": reason,
        "waive": given,
    }
    path = _answer(request)
    _write(path, said)
    return path


def request_text(request: Path) -> dict[str, Any]:
    """What a request says. Raises BadInput."""
    return _table(request, _read(request)[0])


def approved(plan: ReleasePlan, policy: Policy, examination: Examination) -> Examination:
    """The examination with who asked and who approved, and the waivers of both. Raises NotReleased and BadInput."""
    request = _request(_directory(policy), plan, subject_of(plan, examination))
    if not os.path.lexists(request):
        raise NotReleased(
            f"the policy asks for a second person, and the release of run {plan.run.id} as it is now was not asked for: "
            f"sfumato release {plan.run.id} --request --reason TEXT"
        )
    content, asked_by, _, asked = _read(request)
    if asked_by != os.geteuid():
        raise NotReleased(f"{request} belongs to {account(asked_by)}, not to this account; ask for the release anew")
    if not os.path.lexists(_answer(request)):
        raise NotReleased(f"run {plan.run.id} waits for another account: sfumato approve {request} --reason TEXT")
    answer, decided_by, mode, decided = _read(_answer(request))
    said, found = _justified(request, content), _justified(_answer(request), answer)
    if decided_by == asked_by:
        raise NotReleased("the release was approved by the account that asked for it; the policy wants another one")
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotReleased(
            f"{_answer(request)} can be changed by others than its owner; whoever approved must write it again"
        )
    if policy.approvers and account(decided_by) not in policy.approvers:
        raise NotReleased(f"{account(decided_by)} may not approve; the policy lets {', '.join(policy.approvers)}")
    digest = hashlib.sha256(content).hexdigest()
    if found.get("request_sha256") != digest:
        raise NotReleased("the request was changed after it was approved; ask for the release anew")
    if found.get("decision") != "approved":
        raise NotReleased(f'{account(decided_by)} refused the release: "{found.get("reason", "")}"')
    waivers: list[Waiver] = []
    for table, uid in ((said, asked_by), (found, decided_by)):
        if may_waive(policy, account(uid)):
            waivers += waivers_of(examination, account(uid), str(table["reason"]), dict(table["waive"]))
    approval = Approval(
        account(asked_by), _moment(request, asked), str(said["reason"]), digest,
        account(decided_by), _moment(_answer(request), decided), str(found["reason"]),
    )  # fmt: skip
    return replace(examination, waivers=tuple(waivers), approval=approval)


def answered(plan: ReleasePlan, policy: Policy, examination: Examination) -> tuple[Examination, str]:
    """``approved``, or the examination as it is and in words why it is not approved."""
    try:
        found = approved(plan, policy, examination)
    except (NotReleased, BadInput) as error:
        return examination, str(error)
    return found, ""


def _directory(policy: Policy) -> Path:
    place = f"{POLICY_FILE}: approval.directory"
    if not policy.approvals:
        raise BadInput(place, "name a directory that whoever asks and whoever approves can both write to")
    directory = Path(policy.approvals)
    if not directory.is_absolute() or not directory.is_dir():
        raise BadInput(place, f'"{directory}" is not a directory with its whole path')
    return directory


def _request(directory: Path, plan: ReleasePlan, subject: str) -> Path:
    return directory / f"run-{plan.run.id}-{subject[:16]}.request.json"


def _answer(request: Path) -> Path:
    return request.with_name(f"{request.name.removesuffix('.request.json')}.answer.json")


def _write(path: Path, table: Mapping[str, Any]) -> None:
    """A new file that others may read and nobody else may change; in place of one of ours. Raises BadInput."""
    content = (json.dumps(table, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    try:
        if os.path.lexists(path) and path.lstat().st_uid == os.geteuid():
            path.unlink()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(content)
            os.fsync(file.fileno())
    except OSError as error:
        raise BadInput(str(path), f"cannot be written: {error.strerror}") from None


def _moment(path: Path, seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        raise BadInput(str(path), "has a time that cannot be; write it again") from None


def _read(path: Path) -> tuple[bytes, int, int, float]:
    """The bytes of a plain file, who owns it, its mode, and when it was written in seconds. Raises BadInput and StrangeFile."""
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            found = os.fstat(file.fileno())
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise BadInput(str(path), "is too large for a request")
    return content, found.st_uid, found.st_mode, found.st_mtime


def _table(path: Path, content: bytes) -> dict[str, Any]:
    try:
        table = json.loads(content)
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise BadInput(str(path), "is not JSON") from None
    if not isinstance(table, dict) or not isinstance(table.get("reason"), str) or not _texts(table.get("waive")):
        raise BadInput(str(path), "is neither a request nor an answer of sfumato")
    return table


def _justified(path: Path, content: bytes) -> dict[str, Any]:
    """A request or an answer with its reasons checked: another program may have written it. Raises BadInput."""
    table = _table(path, content)
    reason = checked_justification(table["reason"], f"{path}: reason")
    return {**table, "reason": reason, "waive": checked_reasons(table["waive"], f"{path}: waive")}


def _texts(table: object) -> bool:
    return isinstance(table, dict) and all(isinstance(one, str) for one in table.values())
