"""Of three policies each may only be stricter than those above it: the office's, the user's, the workspace's."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

import sfumato.workspace.policy.policy as policy_files
from sfumato.engine.errors import BadInput
from sfumato.workspace.gate.gate import check_policy
from sfumato.workspace.policy.policy import (
    PLAIN,
    TABLES,
    AudienceLimits,
    FindingLimit,
    TableLimits,
    read_office_policy,
    read_policy_of_workspace,
    read_trusted_policy,
)
from sfumato.workspace.policy.strictness import STRICTNESS

Write = Callable[[str], Path]
ORDER = {
    "smallest_cell": ("smallest_cell = 11", "smallest_cell = 12"),
    "rounding": ("rounding = 6", "rounding = 10"),
    "digits": ("digits = 3", "digits = 2"),
    "audience": ('audience = "contract"', 'audience = "public"'),
    "approval.second_person": ("[approval]\nsecond_person = false", "[approval]\nsecond_person = true"),
    "approval.approvers": ('[approval]\napprovers = ["a", "b"]', '[approval]\napprovers = ["b"]'),
    "approval.waivers": ("[approval]\nwaivers = []", '[approval]\nwaivers = ["b"]'),
    "privacy.epsilon": ("[privacy]\nepsilon = 2", "[privacy]\nepsilon = 1"),
    "privacy.packages": (
        f'[privacy.packages.x]\nversion = "1"\nsha256 = "{"0" * 64}"',
        "[privacy.packages]",
    ),
    "audiences.public.smallest_class": (
        "[audiences.public]\nsmallest_class = 12",
        "[audiences.public]\nsmallest_class = 20",
    ),
    "audiences.contract.average_risk": (
        "[audiences.contract]\naverage_risk = 0.09",
        "[audiences.contract]\naverage_risk = 0.05",
    ),
    "findings.worst_records.block": (
        "[findings.worst_records]\nblock = 0.002",
        "[findings.worst_records]\nblock = 0.001",
    ),
    "findings.worst_records.warn": ("[findings.worst_records]\nwarn = 0.002", "[findings.worst_records]\nwarn = 0.001"),
    "findings.worst_records.waivable": (
        "[findings.worst_records]\nwaivable = true",
        "[findings.worst_records]\nwaivable = false",
    ),
    "tables.threshold": ("[tables]\nthreshold = 11", "[tables]\nthreshold = 12"),
    "tables.dominance": ("[tables]\ndominance = [2, 90]", "[tables]\ndominance = [[1, 50], [3, 85]]"),
    "tables.p_percent": ("[tables]\np_percent = 10", "[tables]\np_percent = 15"),
    "tables.prior_posterior": ("[tables]\nprior_posterior = [10, 50]", "[tables]\nprior_posterior = [10, 40]"),
}
"""A looser and a stricter value of each key."""


def read_checked(directory: Path) -> policy_files.Policy:
    policy = read_policy_of_workspace(directory)
    check_policy(policy)
    return policy


def test_every_key_of_a_policy_has_its_strictness() -> None:
    keys = {*PLAIN, *(f"{table}.{key}" for table, names in TABLES.items() for key in names)}
    keys |= {f"audiences.*.{one.name}" for one in fields(AudienceLimits)}
    keys |= {f"findings.*.{one.name}" for one in fields(FindingLimit)}
    keys |= {f"tables.{one.name}" for one in fields(TableLimits)}
    assert keys == set(STRICTNESS)


@pytest.mark.parametrize("key", ORDER)
def test_a_lower_level_may_be_stricter_and_never_looser(
    key: str, tmp_path: Path, write_own_policy: Write, write_office_policy: Write
) -> None:
    looser, stricter = ORDER[key]
    own, place = write_own_policy(""), tmp_path / "policy.toml"
    for above in (write_own_policy, write_office_policy):
        own.write_text("", "utf-8")
        above(looser)
        place.write_text(stricter, "utf-8")
        strict = read_checked(tmp_path)
        above(stricter)
        place.write_text(looser, "utf-8")
        with pytest.raises(
            BadInput, match=rf"^policy\.toml: {key.replace('.', chr(92) + '.')}: .* is looser than .*set the key in"
        ):
            read_checked(tmp_path)
        place.write_text("", "utf-8")
        assert read_checked(tmp_path) == strict, "the stricter value holds, whoever sets it"
        assert read_checked(tmp_path).sha256 == strict.sha256
    write_office_policy(stricter)
    write_own_policy(looser)
    with pytest.raises(BadInput, match="is looser than"):
        read_checked(tmp_path)


def test_the_office_and_the_user_may_choose_what_is_looser_than_the_defaults(
    tmp_path: Path, write_own_policy: Write
) -> None:
    write_own_policy("smallest_cell = 2\nrounding = 2\ndigits = 6\n[findings.worst_records]\nblock = 100\n")
    assert read_checked(tmp_path).smallest_cell == 2
    (tmp_path / "policy.toml").write_text("smallest_cell = 3\n[findings.worst_records]\nblock = 99\n", "utf-8")
    assert read_checked(tmp_path).smallest_cell == 3


@pytest.mark.parametrize("key", [key for key, strictness in STRICTNESS.items() if strictness == "place"])
def test_only_the_user_and_the_office_name_places(key: str, tmp_path: Path, write_own_policy: Write) -> None:
    table, _, name = key.partition(".")
    text = f'[{table}]\n{name} = "/srv/place"\n'
    (tmp_path / "policy.toml").write_text(text, "utf-8")
    with pytest.raises(
        BadInput, match=rf"{table}\.{name} names a path, which a workspace may not\. .*move the line to your own"
    ):
        read_policy_of_workspace(tmp_path)
    (tmp_path / "policy.toml").unlink()
    write_own_policy(text)
    assert "/srv/place" in (found := read_policy_of_workspace(tmp_path), found.approvals, found.seal_key, found.heads)
    # An earlier version of ``sfumato policy`` printed a place as an empty text.
    (tmp_path / "policy.toml").write_text(f'[{table}]\n{name} = ""\n', "utf-8")
    assert read_policy_of_workspace(tmp_path) == found


@pytest.mark.parametrize("mode", [0o622, 0o602, 0o620])
def test_a_policy_that_others_may_write_is_refused(
    mode: int, write_own_policy: Write, write_office_policy: Write
) -> None:
    for write in (write_own_policy, write_office_policy):
        file = write("smallest_cell = 20")
        assert read_trusted_policy().smallest_cell == 20
        file.chmod(mode)
        with pytest.raises(BadInput, match="chmod go-w"):
            read_trusted_policy()
        file.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_owner_of_a_policy_is_the_office_or_the_user(write_own_policy: Write, write_office_policy: Write) -> None:
    for write in (write_own_policy, write_office_policy):
        os.chown(file := write("smallest_cell = 20"), 4_000_001, -1)
        with pytest.raises(BadInput, match="belongs to uid 4000001"):
            read_trusted_policy()
        file.unlink()


def test_no_variable_leaves_the_policy_of_the_office_out(
    tmp_path: Path, write_office_policy: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_office_policy("smallest_cell = 30")
    for name in ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "empty"))
    assert read_office_policy().smallest_cell == read_policy_of_workspace(tmp_path).smallest_cell == 30
