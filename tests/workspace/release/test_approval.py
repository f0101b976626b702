"""A second person: another account's file, bound to what was examined; nothing that one account can write alone is enough."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sfumato.workspace.policy.policy as policy_files
import sfumato.workspace.release.approval as approving
import sfumato.workspace.service.release as packaging
from sfumato.engine.errors import BadInput
from sfumato.workspace.audit import AuditAct, account_name, audit_rows, user
from sfumato.workspace.errors import NotReleased
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.release.approval import decide_request, request_release
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.integrity import NotAsSealed

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("office_policy_file")]
OTHER = 4_000_001
"""An account that is not ours."""


@pytest.fixture
def run_id(workspace: Workspace, finished: Callable[..., int], tmp_path: Path) -> int:
    made = finished()
    (tmp_path / "requests").mkdir()
    write_policy(workspace, tmp_path)
    return made


def write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o600)


def write_policy(
    workspace: Workspace, tmp_path: Path, more: str = "", before: str = "", approvers: str = f'["{OTHER}"]'
) -> None:
    """Write the office's policy, which alone can vouch for an account without a name."""
    write_file(
        policy_files.OFFICE_POLICY,
        f'{before}\n[approval]\nsecond_person = true\ndirectory = "{tmp_path}/requests"\napprovers = {approvers}\n{more}\n',
    )


@pytest.fixture
def as_other(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Answer a request as another account: its process has another number, and its file another owner."""
    owners: dict[str, int] = {}
    read = approving._read_with_owner

    def owned(path: Path) -> tuple[Any, ...]:
        content, uid, *rest = read(path)
        return content, owners.get(path.name, uid), *rest

    monkeypatch.setattr(approving, "_read_with_owner", owned)

    def answer(request: Path, *arguments: Any, uid: int = OTHER, **named: Any) -> Path:
        with monkeypatch.context() as patch:
            patch.setattr(os, "geteuid", lambda: uid)
            approving._answer_path(request).unlink(missing_ok=True)
            made = decide_request(request, *arguments, **named)
        owners[made.name] = uid
        return made

    return answer


def test_a_release_is_asked_for_approved_and_written(
    workspace: Workspace, run_id: int, tmp_path: Path, as_other: Callable[..., Path]
) -> None:
    with pytest.raises(
        NotReleased, match=r"was not requested in its current state: sfumato release 1 --request --format csv"
    ):
        write_run_release(workspace, run_id, tmp_path / "out", reason="in a hurry")
    request = request_release(workspace, run_id, "for teaching students")
    with pytest.raises(NotReleased, match=r"waits for another account: sfumato approve"):
        write_run_release(workspace, run_id, tmp_path / "out")
    answer = as_other(request, "approved", "looked at it")
    for path, seconds in ((request, 1_790_000_000), (answer, 1_790_000_060)):
        os.utime(path, (seconds, seconds))
    write_run_release(workspace, run_id, tmp_path / "out")
    kept = json.loads((tmp_path / "out/internal/examination.json").read_text("utf-8"))
    expected = {
        "requested_by": user(),
        "requested_at": "2026-09-21T14:13:20+00:00",
        "request_sha256": hashlib.sha256(request.read_bytes()).hexdigest(),
        "approved_at": "2026-09-21T14:14:20+00:00",
        "reason": "for teaching students",
        "approved_by": account_name(OTHER),
        "approval_reason": "looked at it",
    }
    assert kept["approval"] == expected
    control = json.loads((tmp_path / "out/internal/disclosure-control.json").read_text("utf-8"))
    assert control["approval"] == expected
    for name in ("report.html", "risk-assessment.html", "risk-assessment.md"):
        page = (tmp_path / "out/internal" / name).read_text("utf-8")
        for words in (
            "Approved by",
            f"{account_name(OTHER)}, 2026-09-21 14:14 UTC",
            "looked at it",
            "2026-09-21 14:13 UTC",
        ):
            assert words in page, (name, words)
        assert f"asked for (request {expected['request_sha256'][:12]})" in page
    acts = {row.act: json.loads(row.details) for row in audit_rows(workspace.connection)}
    assert acts[AuditAct.RELEASE_REQUESTED]["reason"] == "for teaching students"
    assert expected.items() <= acts[AuditAct.RUN_RELEASED].items()


def test_a_time_that_cannot_be_is_one_message(
    workspace: Workspace, run_id: int, tmp_path: Path, as_other: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    as_other(request_release(workspace, run_id, "for teaching students"), "approved", "looked at it")
    read = approving._read_with_owner
    monkeypatch.setattr(approving, "_read_with_owner", lambda path: (*read(path)[:3], 1e18))
    with pytest.raises(BadInput, match="has a time that cannot be"):
        write_run_release(workspace, run_id, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nobody_approves_their_own_request(workspace: Workspace, run_id: int, tmp_path: Path) -> None:
    request = request_release(workspace, run_id, "for teaching students")
    with pytest.raises(BadInput, match="by this account"):
        decide_request(request, "approved", "I agree with it")
    answer = request.with_name(request.name.replace("request", "answer"))
    answer.write_text(
        json.dumps({"request_sha256": "0", "decision": "approved", "reason": "I agree with it", "waive": {}}), "utf-8"
    )
    with pytest.raises(NotReleased, match="by the account that asked"):
        write_run_release(workspace, run_id, tmp_path / "out")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_owner_of_the_answer_is_who_the_system_says(workspace: Workspace, run_id: int, tmp_path: Path) -> None:
    request = request_release(workspace, run_id, "for teaching students")
    answer = request.with_name(request.name.replace("request", "answer"))
    digest = hashlib.sha256(request.read_bytes()).hexdigest()
    answer.write_text(
        json.dumps({"request_sha256": digest, "decision": "approved", "reason": "yes, it may leave", "waive": {}}),
        "utf-8",
    )
    answer.chmod(0o664)
    os.chown(answer, OTHER, -1)
    with pytest.raises(NotReleased, match="can be changed by others"):
        write_run_release(workspace, run_id, tmp_path / "out")
    answer.chmod(0o644)
    write_run_release(workspace, run_id, tmp_path / "out")


def test_what_was_changed_since_is_asked_for_anew(
    workspace: Workspace, run_id: int, tmp_path: Path, as_other: Callable[..., Path], enter: Callable[..., int]
) -> None:
    request = request_release(workspace, run_id, "for teaching students")
    as_other(request, "approved", "looked at it")
    content = request.read_text("utf-8")
    request.write_text(content.replace("for teaching students", "for anything at all"), "utf-8")
    with pytest.raises(NotReleased, match="changed after it was approved"):
        write_run_release(workspace, run_id, tmp_path / "out")
    request.write_text(content, "utf-8")
    write_policy(workspace, tmp_path, before="digits = 4")
    with pytest.raises(NotReleased, match="was not requested"):
        write_run_release(workspace, run_id, tmp_path / "out")
    write_policy(workspace, tmp_path)
    with workspace.write_transaction() as connection:
        tables = [row[0] for row in connection.execute("SELECT sha256 FROM artefact WHERE name LIKE 'draw/%'")]
        connection.execute("UPDATE artefact SET sha256 = ? WHERE name = 'draw/1'", (tables[1],))
    with pytest.raises(NotAsSealed, match="table draw/1"):
        write_run_release(workspace, run_id, tmp_path / "out")


def test_a_refusal_stands(workspace: Workspace, run_id: int, tmp_path: Path, as_other: Callable[..., Path]) -> None:
    as_other(request_release(workspace, run_id, "for teaching students"), "refused", "it is too early")
    with pytest.raises(NotReleased, match=r'refused the release: "it is too early"'):
        write_run_release(workspace, run_id, tmp_path / "out")


def test_only_those_whom_the_policy_names_approve(
    workspace: Workspace, run_id: int, tmp_path: Path, as_other: Callable[..., Path]
) -> None:
    write_policy(workspace, tmp_path, approvers='["maria"]')
    as_other(request_release(workspace, run_id, "for teaching students"), "approved", "looked at it")
    with pytest.raises(NotReleased, match=r"may not approve; the policy lets maria"):
        write_run_release(workspace, run_id, tmp_path / "out")


def test_who_approves_may_waive_what_who_asks_may_not(
    workspace: Workspace, enter: Callable[..., int], tmp_path: Path, as_other: Callable[..., Path]
) -> None:
    run_id = enter(measure=[], threshold=[])
    run_worker(workspace.directory, idle=0)
    (tmp_path / "requests").mkdir()
    write_policy(workspace, tmp_path, more='waivers = ["maria"]')
    with pytest.raises(NotReleased, match="may not waive findings; the policy lets maria"):
        request_release(workspace, run_id, "for teaching students", {"risk_measured": "simulated data only"})
    assert list((tmp_path / "requests").iterdir()) == []
    as_other(request_release(workspace, run_id, "for teaching students"), "approved", "looked at it")
    with pytest.raises(NotReleased, match="risk_measured"):
        write_run_release(workspace, run_id, tmp_path / "out")
    write_policy(workspace, tmp_path, more=f'waivers = ["{account_name(OTHER)}"]')
    as_other(
        request_release(workspace, run_id, "for teaching students"),
        "approved",
        "looked at it",
        {"risk_measured": "simulated data only"},
    )
    write_run_release(workspace, run_id, tmp_path / "out")
    kept = json.loads((tmp_path / "out/internal/examination.json").read_text("utf-8"))
    assert {one["user"] for one in kept["waivers"]} == {account_name(OTHER)}


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"reason": 1}', b'{"reason": "x", "waive": {"a": 1}}', b"[" * 100_000]
)
def test_an_answer_that_is_none_is_refused(workspace: Workspace, run_id: int, tmp_path: Path, content: bytes) -> None:
    request = request_release(workspace, run_id, "for teaching students")
    for reason in (" ", "\u200b"):
        with pytest.raises(BadInput, match="needs a reason in words"):
            request_release(workspace, run_id, reason)
        with pytest.raises(BadInput, match="needs a reason in words"):
            decide_request(request, "approved", reason)
    with pytest.raises(BadInput, match="needs a reason in words"):
        decide_request(request, "approved", "agreed with the board", {"equal_records": "\u200b"})
    request.with_name(request.name.replace("request", "answer")).write_bytes(content)
    with pytest.raises((BadInput, NotReleased)):
        write_run_release(workspace, run_id, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("of", ["request", "answer"])
@pytest.mark.parametrize("change", [{"reason": "\u200b"}, {"waive": {"equal_records": "\u2060"}}])
def test_reasons_in_files_that_others_wrote_have_letters_too(
    workspace: Workspace, run_id: int, tmp_path: Path, as_other: Callable[..., Path], of: str, change: dict[str, Any]
) -> None:
    request = request_release(workspace, run_id, "for teaching students")
    if of == "request":
        request.write_text(json.dumps(json.loads(request.read_text("utf-8")) | change), "utf-8")
    answer = as_other(request, "approved", "looked at it")
    if of == "answer":
        answer.write_text(json.dumps(json.loads(answer.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(BadInput, match=rf"{of}\.json: (reason|waive equal_records): needs a reason in words"):
        write_run_release(workspace, run_id, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_policy_without_a_directory_for_requests_is_refused(
    workspace: Workspace, run_id: int, tmp_path: Path
) -> None:
    for place in ("", "requests", str(tmp_path / "nowhere")):
        write_file(policy_files.OFFICE_POLICY, f'[approval]\nsecond_person = true\ndirectory = "{place}"\n')
        with pytest.raises(BadInput, match=r"approval\.directory"):
            request_release(workspace, run_id, "for teaching students")
        with pytest.raises(BadInput, match=r"approval\.directory"):
            write_run_release(workspace, run_id, tmp_path / "out")


PERSON = 4_000_002


@pytest.fixture
def accounts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with a person, a service with a person's number, and a service with a login shell."""
    known = {
        PERSON: ("maria", "/bin/bash"),
        4_000_003: ("web-service", "/usr/sbin/nologin"),
        4_000_004: ("mail-service", "/bin/false"),
        33: ("www-data", "/bin/sh"),
        0: ("root", "/bin/bash"),
    }
    real = pwd.getpwuid

    def look_up(uid: int) -> pwd.struct_passwd:
        if uid not in known or uid == os.getuid():
            return real(uid)
        name, shell = known[uid]
        return pwd.struct_passwd((name, "x", uid, uid, "", "/", shell))

    monkeypatch.setattr(pwd, "getpwuid", look_up)
    definitions = tmp_path / "login.defs"
    definitions.write_text("# UID_MIN 5\nUID_MIN\t\t\t 1000\nSYS_UID_MAX 999\n", "utf-8")
    monkeypatch.setattr(approving, "LOGIN_DEFINITIONS", definitions)


@pytest.mark.usefixtures("accounts")
@pytest.mark.parametrize(
    ("uid", "why"),
    [
        (33, r"www-data, uid 33, which is no account of a person.*system account \(below 1000"),
        (4_000_003, r"web-service.*no person can log in to it \(its shell is /usr/sbin/nologin\)"),
        (4_000_004, r"mail-service.*its shell is /bin/false"),
    ],
)
def test_a_system_account_is_no_second_person_unless_the_office_names_it(
    workspace: Workspace, run_id: int, tmp_path: Path, as_other: Callable[..., Path], uid: int, why: str
) -> None:
    write_policy(workspace, tmp_path, approvers="[]")
    # Neither the workspace nor its owner can vouch for an account that the owner may command.
    for file in (workspace.directory / "policy.toml", policy_files.own_policy_file()):
        write_file(file, f'[approval]\napprovers = ["{account_name(uid)}"]\n')
        request = request_release(workspace, run_id, "for teaching students")
        as_other(request, "approved", "looked at it", uid=uid)
        with pytest.raises(NotReleased, match=why):
            write_run_release(workspace, run_id, tmp_path / "out")
        file.unlink()
    write_policy(workspace, tmp_path, approvers=f'["{account_name(uid)}"]')
    as_other(request_release(workspace, run_id, "for teaching students"), "approved", "looked at it", uid=uid)
    write_run_release(workspace, run_id, tmp_path / "out")


@pytest.mark.usefixtures("accounts")
def test_a_person_is_a_second_person(
    workspace: Workspace, run_id: int, tmp_path: Path, as_other: Callable[..., Path]
) -> None:
    """The control of the system accounts."""
    write_policy(workspace, tmp_path, approvers="[]")
    as_other(request_release(workspace, run_id, "for teaching students"), "approved", "looked at it", uid=PERSON)
    write_run_release(workspace, run_id, tmp_path / "out")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_requests_and_answers_are_read_by_their_owner_and_the_group_alone(
    workspace: Workspace, run_id: int, tmp_path: Path, as_other: Callable[..., Path], umask: int
) -> None:
    group = tmp_path / "requests"
    if os.geteuid() == 0:
        os.chown(group, -1, 4_000_010)
    before = os.umask(umask)
    try:
        request = request_release(workspace, run_id, "for teaching students")
        answer = as_other(request, "approved", "looked at it")
    finally:
        os.umask(before)
    for file in (request, answer):
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        assert file.stat().st_gid == group.stat().st_gid


def test_a_directory_of_a_group_that_is_not_ours_is_one_message(
    workspace: Workspace, run_id: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_chown(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    (tmp_path / "requests").chmod(0o755)
    monkeypatch.setattr(os, "fchown", refuse_chown)
    monkeypatch.setattr(os, "fstat", lambda handle: os.stat_result((0o100600, 0, 0, 1, os.geteuid(), 77, 0, 0, 0, 0)))
    with pytest.raises(BadInput, match=r"a group that this account is not in\. .*chgrp GROUP"):
        approving._share_with_group(7, tmp_path / "requests" / "request.json")


@pytest.mark.usefixtures("accounts")
def test_a_number_that_is_no_account_approves_nothing_unless_the_policy_names_it(
    workspace: Workspace, run_id: int, tmp_path: Path, as_other: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    subuids = tmp_path / "subuid"
    subuids.write_text("jo:100000:65536\nnonsense\n", "utf-8")
    monkeypatch.setattr(approving, "SUBUIDS", subuids)
    write_policy(workspace, tmp_path, approvers="[]")
    request = request_release(workspace, run_id, "for teaching students")
    for uid in (OTHER, 100_001, approving.OVERFLOW_UID):
        as_other(request, "approved", "looked at it", uid=uid)
        with pytest.raises(NotReleased, match=f"uid {uid}, which is no account of a person"):
            write_run_release(workspace, run_id, tmp_path / "out")
    subuids.write_text(f"jo:{PERSON}:1\n", "utf-8")
    as_other(request, "approved", "looked at it", uid=PERSON)
    with pytest.raises(NotReleased, match="no account of a person"):
        write_run_release(workspace, run_id, tmp_path / "out")
    subuids.write_text("jo:100000:65536\n", "utf-8")
    write_run_release(workspace, run_id, tmp_path / "out")


def test_nothing_is_approved_inside_a_user_namespace(
    workspace: Workspace, run_id: int, tmp_path: Path, as_other: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There the account that asks can own files of every other number."""
    as_other(request_release(workspace, run_id, "for teaching students"), "approved", "looked at it")
    inside = tmp_path / "uid_map"
    inside.write_text("         0       1000          1\n         1     100000      65536\n", "ascii")
    with monkeypatch.context() as patch:
        patch.setattr(approving, "UID_MAP", inside)
        with pytest.raises(NotReleased, match="user namespace"):
            write_run_release(workspace, run_id, tmp_path / "out")
    write_run_release(workspace, run_id, tmp_path / "out")


def test_an_approval_is_for_one_form_and_one_release(
    workspace: Workspace, run_id: int, tmp_path: Path, as_other: Callable[..., Path]
) -> None:
    as_other(request_release(workspace, run_id, "for teaching students", form="parquet"), "approved", "looked at it")
    with pytest.raises(NotReleased, match=r"as csv was not requested in its current state: .* --format csv"):
        write_run_release(workspace, run_id, tmp_path / "other", "csv")
    write_run_release(workspace, run_id, tmp_path / "out", "parquet")
    for form in ("parquet", "csv"):
        with pytest.raises(NotReleased, match=r"served one release, as parquet: sfumato release 1 --request"):
            write_run_release(workspace, run_id, tmp_path / "again", form)  # type: ignore[arg-type]
    assert not (tmp_path / "again").exists()
    as_other(
        request_release(workspace, run_id, "for teaching students", form="parquet"), "approved", "release it once more"
    )
    write_run_release(workspace, run_id, tmp_path / "again", "parquet")


def test_an_approval_that_is_in_use_serves_no_second_release(
    workspace: Workspace, run_id: int, tmp_path: Path, as_other: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process begins its release after this one has read the answer; one that failed has used nothing."""
    as_other(request_release(workspace, run_id, "for teaching students"), "approved", "looked at it")
    fill = packaging._write_packages

    def beside(*arguments: Any) -> Any:
        monkeypatch.setattr(packaging, "_write_packages", fill)
        with pytest.raises(NotReleased, match=r"this approval served the release that began on .*; ask again"):
            write_run_release(workspace, run_id, tmp_path / "second")
        raise OSError("disk gone")

    monkeypatch.setattr(packaging, "_write_packages", beside)
    with pytest.raises(OSError, match="disk gone"):
        write_run_release(workspace, run_id, tmp_path / "first")
    assert not (tmp_path / "second").exists()
    write_run_release(workspace, run_id, tmp_path / "first")
