"""Release by two people: one account requests a release in a file, and another account approves it in a second file.

The policy names a directory that both can reach (``[approval] directory``). The request lies there with what the gate
found; the approval lies next to it and counts by the account that owns it. What was examined is what is released: the
request names the run, its tables, the form of the files, the policy and the findings; the approval names the bytes of
the request. An approval serves one release: after any change, and for every further release, a new request is needed.
Whoever is root can act as any account.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import stat
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from sfumato.engine.errors import BadInput

from ..audit import AuditAct, account_name, append_act
from ..errors import NotReleased
from ..gate.contents import ReleasePlan, plan_release
from ..gate.gate import (
    Approval,
    Examination,
    Waiver,
    apply_waivers,
    checked_reasons,
    examine_release,
    make_waivers,
    may_waive,
)
from ..plain_files import open_plain
from ..policy.disclosure import INTERNAL as INTERNAL_MARK
from ..policy.justification import checked_justification
from ..policy.policy import (
    OFFICE_POLICY,
    POLICY_FILE,
    Policy,
    own_policy_file,
    read_office_policy,
    read_policy_of_workspace,
)
from ..store.releases_in_progress import check_approval_unused
from ..store.workspace import Workspace
from .forms import DatasetForm

MOST_BYTES = 64 << 20
OVERFLOW_UID = 65_534
"""The number that Linux shows for every account that it cannot name here."""
UID_MAP, SUBUIDS, LOGIN_DEFINITIONS = Path("/proc/self/uid_map"), Path("/etc/subuid"), Path("/etc/login.defs")
FIRST_PERSON_UID = 1000
"""The smallest number of accounts of people where /etc/login.defs says nothing else."""
NO_LOGIN_SHELLS = ("nologin", "false", "sync", "halt", "shutdown")
REQUEST_MODE = 0o640
"""A request names records: its owner and the group of the directory read it, nobody else."""
RequestDecision = Literal["approved", "refused"]


def hash_request_subject(plan: ReleasePlan, examination: Examination, form: DatasetForm, earlier: int) -> str:
    """Return the hash of what a request asks for.

    It covers run, recipe, tables, form, policy, the status of each check, and the number of releases that the run had.
    """
    said = {
        "form": form,
        # So that an approval serves one release only.
        "releases": earlier,
        "run": plan.run.id,
        "recipe": plan.run.recipe_sha256,
        "tables": plan.released_sha256,
        "policy": examination.policy_sha256,
        "findings": [(one.check, one.status) for one in examination.findings],
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def request_release(
    workspace: Workspace,
    run_id: int | str,
    reason: str,
    waive: Mapping[str, str] | None = None,
    form: DatasetForm = "csv",
) -> Path:
    """Request one release of a run in a form, with a row in the audit log; return the path of the request.

    The request is written where the policy says, for another account to approve. Raises BadInput without a reason, for
    an invalid waiver, and where the policy names no directory; NotReleased where the policy does not let this account
    waive what it waives.
    """
    workspace.check_own()
    reason = checked_justification(reason, "--reason")
    plan, policy = plan_release(workspace, run_id), read_policy_of_workspace(workspace.directory)
    directory = _approvals_directory(policy)
    examination = examine_release(workspace, plan, policy)
    # Its result is not needed: it refuses waivers that this account may not make before anything is written.
    apply_waivers(examination, policy, "", waive)
    subject = hash_request_subject(plan, examination, form, len(_past_release_details(workspace, plan.run.id)))
    said = {
        "disclosure": INTERNAL_MARK,
        "subject_sha256": subject,
        "title": plan.run.title,
        "form": form,
        "reason": reason,
        "waive": dict(waive or {}),
        "examination": examination.to_table(),
    }
    path = _request_path(directory, plan, subject)
    _write_table(path, said)
    with workspace.write_transaction() as connection:
        append_act(
            connection, AuditAct.RELEASE_REQUESTED, f"run {plan.run.id}", reason=reason, gate=examination.status,
            subject_sha256=subject, policy_sha256=policy.sha256, form=form,
        )  # fmt: skip
    return path


def decide_request(
    request: Path, decision: RequestDecision, reason: str, waive: Mapping[str, str] | None = None
) -> Path:
    """Approve or refuse a request as this account; return the path of the answer, written next to it. Raises BadInput.

    .
    """
    reason = checked_justification(reason, "--reason")
    given = checked_reasons(waive or {}, "--waive")
    content, owner, *_ = _read_with_owner(request)
    if owner == os.geteuid():
        raise BadInput(str(request), "was asked for by this account; the policy wants another one to decide")
    said = {
        "request_sha256": hashlib.sha256(content).hexdigest(),
        "decision": decision,
        "reason": reason,
        "waive": given,
    }
    path = _answer_path(request)
    _write_table(path, said)
    return path


def read_request(request: Path) -> dict[str, Any]:
    """Return the content of a request. Raises BadInput."""
    return _parse_table(request, _read_with_owner(request)[0])


def apply_approval(
    workspace: Workspace, plan: ReleasePlan, policy: Policy, examination: Examination, form: DatasetForm
) -> Examination:
    """Add the second person's approval and both persons' waivers to an examination.

    Raises NotReleased if the release was not requested, not decided or refused, if one account did both or may not
    approve, or if the request was changed since; BadInput if a request or decision cannot be read.
    """
    past = _past_release_details(workspace, plan.run.id)
    request = _request_path(
        _approvals_directory(policy), plan, hash_request_subject(plan, examination, form, len(past))
    )
    if not os.path.lexists(request):
        served = [one for one in past if one.get("request_sha256")]
        used = f"; the last approval served one release, as {served[-1].get('form', '')}" if served else ""
        raise NotReleased(
            f"the policy requires a second person, and the release of run {plan.run.id} as {form} was not requested in its current state{used}: "
            f"sfumato release {plan.run.id} --request --format {form} --reason TEXT"
        )
    # One person can write whatever is written under one account. A file that another account owns is what it cannot
    # make: so ownership counts, not what the files say.
    content, asked_by, _, asked = _read_with_owner(request)
    if asked_by != os.geteuid():
        raise NotReleased(
            f"{request} belongs to {account_name(asked_by)}, not to this account; request the release again"
        )
    if not os.path.lexists(_answer_path(request)):
        raise NotReleased(f"run {plan.run.id} waits for another account: sfumato approve {request} --reason TEXT")
    answer, decided_by, mode, decided = _read_with_owner(_answer_path(request))
    said, found = _parse_justified(request, content), _parse_justified(_answer_path(request), answer)
    if decided_by == asked_by:
        raise NotReleased("the release was approved by the account that asked for it; the policy wants another one")
    # An approval that others may write could be anybody's.
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotReleased(
            f"{_answer_path(request)} can be changed by others than its owner; whoever approved must write it again"
        )
    _check_approver(policy, decided_by)
    digest = hashlib.sha256(content).hexdigest()
    check_approval_unused(workspace.connection, plan.run.id, digest)
    if found.get("request_sha256") != digest:
        raise NotReleased("the request was changed after it was approved; request the release again")
    if found.get("decision") != "approved":
        raise NotReleased(f'{account_name(decided_by)} refused the release: "{found.get("reason", "")}"')
    waivers: list[Waiver] = []
    for table, uid in ((said, asked_by), (found, decided_by)):
        if may_waive(policy, account_name(uid)):
            waivers += make_waivers(examination, account_name(uid), str(table["reason"]), dict(table["waive"]))
    approval = Approval(
        account_name(asked_by), _utc_text(request, asked), str(said["reason"]), digest,
        account_name(decided_by), _utc_text(_answer_path(request), decided), str(found["reason"]),
    )  # fmt: skip
    return replace(examination, waivers=tuple(waivers), approval=approval)


def approve_or_explain(
    workspace: Workspace, plan: ReleasePlan, policy: Policy, examination: Examination, form: DatasetForm
) -> tuple[Examination, str]:
    """Return the approved examination and an empty text, or the unchanged one and why it is not approved."""
    try:
        found = apply_approval(workspace, plan, policy, examination, form)
    except (NotReleased, BadInput) as error:
        return examination, str(error)
    return found, ""


def _past_release_details(workspace: Workspace, run_id: int) -> list[dict[str, Any]]:
    """Return the details in the audit log of a run's releases, oldest first."""
    rows = workspace.connection.execute(
        "SELECT details FROM audit WHERE act = ? AND subject = ? ORDER BY number",
        (AuditAct.RUN_RELEASED.value, f"run {run_id}"),
    )
    return [json.loads(row[0]) for row in rows]


def _check_approver(policy: Policy, uid: int) -> None:
    """Raise NotReleased where the owner of an answer may not approve, or is no person's account on this machine."""
    name = account_name(uid)
    if policy.approvers and name not in policy.approvers:
        raise NotReleased(f"{name} may not approve; the policy lets {', '.join(policy.approvers)}")
    if _is_in_user_namespace():
        raise NotReleased(
            "this process runs in a user namespace, where one account has many numbers, so that nothing shows who approved; "
            "run sfumato release outside of it"
        )
    # A workspace or its owner could name an account that the owner commands; root's file cannot be theirs.
    if name in read_office_policy().approvers:
        return
    if why := _no_person_reason(uid):
        raise NotReleased(
            f"the answer belongs to {name if name == str(uid) else f'{name}, '}uid {uid}, which is no account of a person on this machine: {why}. "
            f'Have another account approve, or have the administrator name "{name}" under approvers in {OFFICE_POLICY}'
        )


def _no_person_reason(uid: int) -> str:
    """Explain why an account is no person's; empty where it may be one's."""
    # One account can own many numbers: those that /etc/subuid gives it, and all of a user namespace. They are no second
    # person.
    if uid == OVERFLOW_UID:
        return "the system shows this number for accounts that it cannot name"
    if _is_subordinate(uid):
        return f"{SUBUIDS} gives the number to another account"
    try:
        account = pwd.getpwuid(uid)
    except KeyError:
        return "no account has this number"
    if uid < (least := _least_person_uid()):
        return f"it is a system account (below {least}, the first number of people)"
    # Services run under such accounts, and whoever commands the service approves.
    if Path(account.pw_shell).name in NO_LOGIN_SHELLS:
        return f"no person can log in to it (its shell is {account.pw_shell})"
    return ""


def _least_person_uid() -> int:
    """Return the smallest number of accounts of people, as /etc/login.defs has it."""
    try:
        lines = LOGIN_DEFINITIONS.read_text("utf-8", "replace").splitlines()
    except OSError:
        return FIRST_PERSON_UID
    found = [line.split() for line in lines if line.split()[:1] == ["UID_MIN"]]
    return int(found[-1][1]) if found and len(found[-1]) > 1 and found[-1][1].isdecimal() else FIRST_PERSON_UID


def _is_in_user_namespace() -> bool:
    """Return whether this process sees other account numbers than the machine's."""
    try:
        return UID_MAP.read_text("ascii").split() != ["0", "0", str(2**32 - 1)]
    except (OSError, UnicodeDecodeError):
        return False  # no Linux


def _is_subordinate(uid: int) -> bool:
    """Return whether /etc/subuid gives this number to an account, for its user namespaces."""
    try:
        lines = SUBUIDS.read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    for line in lines:
        _, _, given = line.strip().partition(":")
        first, _, count = given.partition(":")
        if first.isdecimal() and count.isdecimal() and int(first) <= uid < int(first) + int(count):
            return True
    return False


def _approvals_directory(policy: Policy) -> Path:
    """Return the directory of requests and answers that the policy names. Raises BadInput."""
    place = f"{POLICY_FILE}: approval.directory"
    if not policy.approvals:
        raise BadInput(
            place,
            "name a directory that whoever asks and whoever approves can both write to, in "
            f"{own_policy_file()} or {OFFICE_POLICY}",
        )
    directory = Path(policy.approvals)
    if not directory.is_absolute() or not directory.is_dir():
        raise BadInput(place, f'"{directory}" is not a directory with its whole path')
    return directory


def _request_path(directory: Path, plan: ReleasePlan, subject: str) -> Path:
    return directory / f"run-{plan.run.id}-{subject[:16]}.request.json"


def _answer_path(request: Path) -> Path:
    """Return the path of the answer to a request."""
    return request.with_name(f"{request.name.removesuffix('.request.json')}.answer.json")


def _write_table(path: Path, table: Mapping[str, Any]) -> None:
    """Write a new file that the group of its directory may read and only this account may change.

    It replaces one of this account. Raises BadInput, also where this account is not in the directory's group.
    """
    content = (json.dumps(table, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    try:
        if os.path.lexists(path) and path.lstat().st_uid == os.geteuid():
            path.unlink()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            _share_with_group(file.fileno(), path)
            file.write(content)
            os.fsync(file.fileno())
    except OSError as error:
        raise BadInput(str(path), f"cannot be written: {error.strerror}") from None


def _share_with_group(handle: int, path: Path) -> None:
    """Let the group of its directory read a new file, whatever the umask. Raises BadInput."""
    group = path.parent.stat().st_gid
    try:
        if os.fstat(handle).st_gid != group:
            os.fchown(handle, -1, group)
    except OSError:
        path.unlink(missing_ok=True)
        raise BadInput(
            str(path.parent),
            "belongs to a group that this account is not in. Give it the group of those who ask and approve: "
            f"chgrp GROUP {path.parent}; chmod 2770 {path.parent}",
        ) from None
    os.fchmod(handle, REQUEST_MODE)  # the umask may have taken away that the group reads it


def _utc_text(path: Path, seconds: float) -> str:
    """Return the time of a file as ISO text in UTC. Raises BadInput for a time that cannot be."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        raise BadInput(str(path), "has a time that cannot be; write it again") from None


def _read_with_owner(path: Path) -> tuple[bytes, int, int, float]:
    """Return the bytes of a plain file, its owner, its mode, and its time in seconds. Raises BadInput and StrangeFile.

    .
    """
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            # Of the open file: by its path, another file could be put in its place in between.
            found = os.fstat(file.fileno())
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise BadInput(str(path), "is too large for a request")
    return content, found.st_uid, found.st_mode, found.st_mtime


def _parse_table(path: Path, content: bytes) -> dict[str, Any]:
    """Parse a request or an answer. Raises BadInput."""
    try:
        table = json.loads(content)
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise BadInput(str(path), "is not JSON") from None
    if (
        not isinstance(table, dict)
        or not isinstance(table.get("reason"), str)
        or not _is_table_of_texts(table.get("waive"))
    ):
        raise BadInput(str(path), "is neither a request nor an answer of sfumato")
    return table


def _parse_justified(path: Path, content: bytes) -> dict[str, Any]:
    """Parse a request or an answer and check its reasons. Raises BadInput."""
    table = _parse_table(path, content)
    # Another program may have written the file.
    reason = checked_justification(table["reason"], f"{path}: reason")
    return {**table, "reason": reason, "waive": checked_reasons(table["waive"], f"{path}: waive")}


def _is_table_of_texts(table: object) -> bool:
    return isinstance(table, dict) and all(isinstance(one, str) for one in table.values())
