"""Policy: what may leave, in ``policy.toml`` of the office, of the user and of a workspace. A recipe may only be stricter.

The office's is ``/etc/sfumato/policy.toml``, the user's lies in ``~/.config/sfumato``, the workspace's next to the
database. Each may only be stricter than the ones before it, and a workspace's names no path (see ``strictness``).

```toml
audience = "public"       # releases are judged for this audience, or for a wider one that the recipe names
smallest_cell = 10        # counts below it never leave
rounding = 5              # base of rounded counts; ``digits`` for all other numbers

[approval]                # a second account approves; ``approvers`` and ``waivers`` name accounts, left out: anybody
second_person = true

[audiences.contract]      # limits for columns that are released unchanged
smallest_class = 5
average_risk = 0.05

[findings.equal_records]  # limits of one check of the gate
block = 0.01
```

The manual describes all keys, and the tables ``privacy``, ``seal`` and ``audit``.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.engine.adversary.kept_column_limits import KeptColumnLimits
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.engine.methods.audience import AUDIENCES, Audience

from ..errors import StrangeFile
from ..plain_files import open_plain, read_plain
from .disclosure import DisclosureRules
from .packages import PackageFiles, normalise_package_name
from .strictness import check_not_looser, named_places

if TYPE_CHECKING:
    from sfumato.engine.tables.rules import TableRules

POLICY_FILE = "policy.toml"
APPLICATION_NAME = "sfumato"
# No variable of the environment names it: whoever starts a command could leave the office's policy out.
OFFICE_POLICY = Path("/etc/sfumato/policy.toml")
OFFICE_OWNERS = (0,)
"""Accounts that may own the office's policy: root."""
MOST_POLICY_BYTES = 1 << 20
TABLES = {
    "approval": ("second_person", "approvers", "waivers", "directory"),
    "privacy": ("epsilon", "delta", "packages"),
    "seal": ("key",),
    "audit": ("heads",),
}
PLAIN = ("name", "audience", "smallest_cell", "rounding", "digits")
LEAST = {"smallest_cell": 1, "rounding": 1, "digits": 1}


@dataclass(frozen=True, slots=True)
class FindingLimit:
    """Limits of one check of the gate, as a policy sets them. Its fields are keys of ``policy.toml``.

    warn, block: values from which the check warns and blocks; None keeps the check's own
    waivable: whether the finding may be waived; None keeps the check's own
    source: who requires the limits
    """

    warn: float | None = None
    block: float | None = None
    waivable: bool | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class AudienceLimits:
    """Limits for columns that a release keeps, for one audience. Its fields are keys of ``policy.toml``.

    smallest_class: fewest people who share their values; 0 for no limit
    average_risk: largest mean of 1 / (people who share the values); 1 for no limit
    source: who requires the limits
    """

    smallest_class: int = 0
    average_risk: float = 1.0
    source: str = ""

    @property
    def limits(self) -> KeptColumnLimits:
        """Return the limits as the engine compares them, None for no limit."""
        return KeptColumnLimits(self.smallest_class or None, self.average_risk if self.average_risk < 1 else None)


@dataclass(frozen=True, slots=True)
class TableLimits:
    """Least rules for printed tables. Its fields are keys of ``policy.toml``.

    threshold: fewest units of a printed cell; None for the smallest cell
    dominance: n and k in percent of each rule of dominance
    p_percent: p in percent; None for no such rule
    prior_posterior: p and q in percent; None for no such rule
    """

    threshold: int | None = None
    dominance: tuple[tuple[int, float], ...] = ()
    p_percent: float | None = None
    prior_posterior: tuple[float, float] | None = None


AUDIENCE_LIMITS: Mapping[Audience, AudienceLimits] = {
    # 11 people with the same values are a maximum risk of 0.09.
    "public": AudienceLimits(
        11, 1.0, "maximum risk 0.09: EMA policy 0070 and Health Canada PRCI guidance; cells of at least 11: CMS cell size policy"
    ),
    "contract": AudienceLimits(
        3, 0.1, "at least 3 people a class: Hundepool et al. (2012); average risk 0.1: El Emam (2013), section 16"
    ),
    "enclave": AudienceLimits(0, 1.0, "who works inside is identified and observed; the figures are reported"),
}  # fmt: skip
"""The limits of an audience where a policy has none of its own."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Policy of a workspace: what may leave it. The fields are described with ``policy.toml``.

    Counts are in records, ``digits`` are significant digits.
    """

    name: str = ""
    smallest_cell: int = 10
    rounding: int = 5
    digits: int = 3
    second_person: bool = False
    approvers: tuple[str, ...] = ()
    waivers: tuple[str, ...] = ()
    approvals: str = ""
    seal_key: str = ""
    heads: str = ""
    epsilon: float | None = None
    delta: float | None = None
    packages: tuple[PackageFiles, ...] = ()
    findings: Mapping[str, FindingLimit] = field(default_factory=dict)
    audience: Audience | None = None
    audiences: Mapping[Audience, AudienceLimits] = field(default_factory=dict)
    tables: TableLimits = TableLimits()
    levels: tuple[PolicyLevel, ...] = field(default=(), compare=False)

    @property
    def table_rules(self) -> TableRules:
        """Return the least rules for printed tables: their threshold is the smallest cell unless the policy sets one."""
        from sfumato.engine.tables.rules import TableRules

        own = self.tables
        threshold = self.smallest_cell if own.threshold is None else own.threshold
        return TableRules(threshold, own.dominance, own.p_percent, own.prior_posterior)

    @property
    def disclosure_rules(self) -> DisclosureRules:
        """Return the rules for numbers that are published."""
        return DisclosureRules(self.smallest_cell, self.rounding, self.digits)

    def effective_budget(self, of_recipe: float | None) -> float | None:
        """Return the smaller epsilon of the policy's and the recipe's; None where neither names one."""
        return min((one for one in (self.epsilon, of_recipe) if one is not None), default=None)

    def effective_audience(self, of_recipe: Audience) -> Audience:
        """Return the stricter of a recipe's audience and the policy's."""
        named = [of_recipe] if self.audience is None else [of_recipe, self.audience]
        return min(named, key=AUDIENCES.index)

    def audience_limits(self, audience: Audience) -> AudienceLimits:
        """Return the limits that hold for an audience."""
        return self.audiences.get(audience, AUDIENCE_LIMITS[audience])

    @property
    def sha256(self) -> str:
        """Return the hash of the policy's settings, however they are written."""
        settings = asdict(self)
        del settings["levels"]  # who set a value is no part of it
        for later, default in (
            ("epsilon", None),
            ("delta", None),
            ("packages", ()),
            ("heads", ""),
            ("audience", None),
            ("audiences", {}),
            ("tables", asdict(TableLimits())),
        ):
            # Keys of later versions do not count where they are left out: a policy keeps the hash that earlier releases
            # recorded.
            if settings[later] == default:
                del settings[later]
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def own_policy_file() -> Path:
    """Return the file of the user's own policy (XDG_CONFIG_HOME)."""
    import platformdirs  # late, since commands that need no policy start without it

    return Path(platformdirs.user_config_path(APPLICATION_NAME)) / POLICY_FILE


def read_policy_of_workspace(directory: Path) -> Policy:
    """Read the policy that holds for a workspace: the office's, the user's and its own, each stricter than the last.

    Raises BadInput, also where the workspace's names a place or is looser, and StrangeFile.
    """
    levels = _read_levels(directory)
    _check_levels(levels)
    return _combined_policy(levels)


def read_trusted_policy() -> Policy:
    """Read the policy of the office and the user, which alone name places to write and keys to read.

    Raises BadInput and StrangeFile.
    """
    levels = _read_levels(None)
    _check_levels(levels)
    return _combined_policy(levels)


def read_office_policy() -> Policy:
    """Read the policy of the office alone. Raises BadInput and StrangeFile."""
    content = _read_content(OFFICE_POLICY, follow=True)
    return Policy() if content is None else _policy_from_settings(_parse_settings(content, str(OFFICE_POLICY)))


def places_in_workspace(directory: Path) -> str:
    """Explain which paths the policy of a workspace names, and where they belong; empty where it names none.

    Empty also for a policy that cannot be read: whoever needs it gets the message then.
    """
    try:
        content = _read_content(directory / POLICY_FILE, follow=False)
        keys = [] if content is None else named_places(_parse_settings(content, POLICY_FILE))
    except (BadInput, StrangeFile):
        return ""
    return "" if not keys else f'"{directory / POLICY_FILE}": {_places_message(keys)}'


def _places_message(keys: Sequence[str]) -> str:
    """Explain where keys that name a path belong."""
    names = " and ".join(keys)
    return (
        f"{names} {'names a path' if len(keys) == 1 else 'name paths'}, which a workspace may not. If you trust the path, "
        f"move the line to your own policy, {own_policy_file()}, or the office's, {OFFICE_POLICY}; else remove it"
    )


def parse_policy(content: bytes) -> Policy:
    """Parse a policy from its TOML text. Raises BadInput at the key that is wrong."""
    return _policy_from_settings(_parse_settings(content, POLICY_FILE))


@dataclass(frozen=True, slots=True)
class PolicyLevel:
    """Policy of one author, before it is combined with the others.

    file: its name in messages
    settings: values that it sets, by key, such as ``audiences.public.smallest_class``
    """

    file: str
    settings: Mapping[str, Any]

    @property
    def findings(self) -> Mapping[str, FindingLimit]:
        """Return the limits of checks that it sets."""
        return _policy_from_settings(self.settings).findings


def _read_levels(directory: Path | None) -> tuple[PolicyLevel, ...]:
    """Read the policies of the office, the user and, unless ``directory`` is None, of the workspace there."""
    trusted = tuple(
        PolicyLevel(str(file), _parse_settings(content, str(file)))
        for file in (OFFICE_POLICY, own_policy_file())
        if (content := _read_content(file, follow=True)) is not None
    )
    content = None if directory is None else _read_content(directory / POLICY_FILE, follow=False)
    own = () if content is None else (PolicyLevel(POLICY_FILE, _parse_settings(content, POLICY_FILE)),)
    return (*trusted, *own)


def _read_content(file: Path, *, follow: bool) -> bytes | None:
    """Read the file of a policy; None where there is none. Raises BadInput and StrangeFile.

    follow: whether it is outside of a workspace: then links are followed, and only its owner or root may write it
    """
    try:
        if not follow:
            return read_plain(file, MOST_POLICY_BYTES)
        with os.fdopen(open_plain(file, follow=True), "rb") as opened:
            status = os.fstat(opened.fileno())
            content = opened.read(MOST_POLICY_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadInput(str(file) if follow else POLICY_FILE, f"cannot be read: {error.strerror}") from None
    owners = OFFICE_OWNERS if file == OFFICE_POLICY else (0, os.geteuid())
    if status.st_uid not in owners:
        raise BadInput(
            str(file),
            f"belongs to uid {status.st_uid}; its owner must be {'root' if file == OFFICE_POLICY else 'you or root'}",
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise BadInput(str(file), f"can be changed by other accounts; run: chmod go-w {file}")
    if len(content) > MOST_POLICY_BYTES:
        raise BadInput(str(file), "is larger than 1 MiB")
    return content


def _check_levels(levels: Sequence[PolicyLevel]) -> None:
    """Raise BadInput where a workspace's policy names a path, or a policy is looser than those above it."""
    above: dict[str, Any] = {}
    for i, level in enumerate(levels):
        workspace = level.file == POLICY_FILE
        if workspace and (keys := named_places(level.settings)):
            raise BadInput(POLICY_FILE, _places_message(keys))
        # The office, and the user where the office is silent, may choose values that are looser than the defaults.
        base = {**_default_settings(), **above} if workspace else above
        if "smallest_cell" in base:
            # Counts below the smallest cell never leave, unless whoever sets that says otherwise of tables.
            base = {"tables.threshold": base["smallest_cell"], **base}
        check_not_looser(level.settings, base, level.file, levels[i - 1].file if i else str(own_policy_file()))
        above |= level.settings


def _default_settings() -> dict[str, Any]:
    """Return the values of keys that no policy sets."""
    plain = Policy()
    limits = {
        f"audiences.{audience}.{key}": getattr(AUDIENCE_LIMITS[audience], key)
        for audience in AUDIENCES
        for key in ("smallest_class", "average_risk")
    }
    return {
        "smallest_cell": plain.smallest_cell,
        "rounding": plain.rounding,
        "digits": plain.digits,
        "privacy.packages": plain.packages,
        **limits,
    }


def join_level(policy: Policy, level: PolicyLevel) -> Policy:
    """Return the policy of the levels of ``policy`` and one more."""
    return _combined_policy((*policy.levels, level))


def _combined_policy(levels: tuple[PolicyLevel, ...]) -> Policy:
    """Return the policy of several authors: the last one holds, since each is stricter than those before."""
    settings: dict[str, Any] = {}
    for level in levels:
        given = {key: value for key, value in level.settings.items() if value != "" or key not in settings}
        # A workspace does not pass its rules off as the office's.
        if settings.get("name"):
            given.pop("name", None)
        # Who sets a limit is who wrote it: the source of another author does not speak for it.
        for key in [key for key in settings if key.endswith(".source")]:
            prefix = key.removesuffix("source")
            if key not in given and any(
                name.startswith(prefix) and given[name] != settings.get(name) for name in given
            ):
                del settings[key]
        settings |= given
    return replace(_policy_from_settings(settings), levels=levels)


def _policy_from_settings(settings: Mapping[str, Any]) -> Policy:
    """Return the policy with these values, by key."""
    given: dict[str, Any] = {"audiences": {}, "findings": {}}
    parts: dict[str, dict[str, dict[str, Any]]] = {"audiences": {}, "findings": {}}
    for key, value in settings.items():
        table, _, rest = key.partition(".")
        if table == "tables":
            continue
        if table in parts:
            name, _, limit = rest.rpartition(".")
            parts[table].setdefault(name, {})
            if limit:
                parts[table][name][limit] = value
        else:
            given[_field_of_key(table, rest) if rest else table] = value
    for audience in AUDIENCES:
        if (limits := parts["audiences"].get(audience)) is None:
            continue
        # Who sets a limit is who wrote it: the default's source does not speak for other numbers.
        own = {"source": "", **limits} if {"smallest_class", "average_risk"} & limits.keys() else limits
        given["audiences"][audience] = replace(AUDIENCE_LIMITS[audience], **own)
    given["tables"] = TableLimits(
        **{key.partition(".")[2]: one for key, one in settings.items() if key.startswith("tables.")}
    )
    given["findings"] = {check: FindingLimit(**limits) for check, limits in parts["findings"].items()}
    return Policy(**given)


def _parse_settings(content: bytes, file: str) -> dict[str, Any]:
    """Parse the values of a policy, by key. Raises BadInput in ``file`` at the key that is wrong."""
    try:
        table = read_toml(content.decode("utf-8"), file)
    except UnicodeDecodeError as error:
        raise BadInput(file, f"is not TOML: {error}") from None
    try:
        return dict(_checked_settings(table))
    except BadInput as error:
        raise BadInput(error.place.replace(POLICY_FILE, file, 1), error.message) from None


def _checked_settings(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the key and the value of each setting of a policy's table. Raises BadInput."""
    _check_known_keys(table, (*PLAIN, *TABLES, "audiences", "findings", "tables"), "")
    yield from ((key, _check_value(key, table[key], key)) for key in PLAIN if key in table)
    for name, keys in TABLES.items():
        part = _check_is_table(table.get(name, {}), name)
        _check_known_keys(part, keys, f"{name}.")
        for key in part:
            yield f"{name}.{key}", _check_value(_field_of_key(name, key), part[key], f"{name}.{key}")
    audiences = _check_is_table(table.get("audiences", {}), "audiences")
    _check_known_keys(audiences, AUDIENCES, "audiences.")
    for audience in audiences:
        limits = _check_is_table(audiences[audience], f"audiences.{audience}")
        _check_audience_limits(limits, audience)
        yield from ((f"audiences.{audience}.{key}", value) for key, value in limits.items())
    rules = _check_is_table(table.get("tables", {}), "tables")
    yield from ((f"tables.{key}", value) for key, value in _checked_table_rules(rules).items())
    findings = _check_is_table(table.get("findings", {}), "findings")
    for check in findings:
        limits = _check_is_table(findings[check], f"findings.{check}")
        _check_finding_limit(limits, f"findings.{check}")
        yield from ((f"findings.{check}.{key}", value) for key, value in limits.items())


def _field_of_key(table: str, key: str) -> str:
    """Return the field of ``Policy`` for a key of a table."""
    return {"seal.key": "seal_key", "approval.directory": "approvals"}.get(f"{table}.{key}", key)


def _check_known_keys(table: Mapping[str, Any], known: tuple[str, ...], prefix: str) -> None:
    """Raise BadInput for a key that a table cannot have."""
    for key in table:
        if key not in known:
            hint = near_miss_hint(key, known) or f"; known: {', '.join(known)}"
            raise BadInput(f"{POLICY_FILE}: {prefix}{key}", f"unknown key{hint}")


def _check_is_table(value: object, place: str) -> Mapping[str, Any]:
    """Return a value that is a table. Raises BadInput for any other."""
    if not isinstance(value, dict):
        raise BadInput(f"{POLICY_FILE}: {place}", "must be a table of keys and values")
    return value


def _check_value(name: str, value: Any, place: str) -> Any:
    """Return a value with the type that its field has. Raises BadInput."""
    place = f"{POLICY_FILE}: {place}"
    if name in LEAST:
        # In Python true is an int.
        if isinstance(value, bool) or not isinstance(value, int) or value < LEAST[name]:
            raise BadInput(place, f"must be a whole number of at least {LEAST[name]}")
    elif name == "audience":
        if value not in AUDIENCES:
            raise BadInput(place, f"must be one of {', '.join(AUDIENCES)}")
    elif name == "epsilon":
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise BadInput(place, "must be a number above 0")
        return float(value)
    elif name == "delta":
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
            raise BadInput(place, "must be a number above 0 and below 1")
        return float(value)
    elif name == "packages":
        return _checked_packages(value, place)
    elif name == "second_person":
        if not isinstance(value, bool):
            raise BadInput(place, "must be true or false")
    elif name in ("approvers", "waivers"):
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise BadInput(place, 'must be a list of users, such as ["maria"]')
        return tuple(value)
    elif not isinstance(value, str):
        raise BadInput(place, "must be text")
    return value


def _checked_packages(table: Any, place: str) -> tuple[PackageFiles, ...]:
    """Return the packages that a table names, in the order of their names. Raises BadInput."""
    example = 'must be a table of packages, such as [privacy.packages.NAME] with version = "1.0" and sha256 = "..."'
    if not isinstance(table, dict):
        raise BadInput(place, example)
    found: dict[str, PackageFiles] = {}
    for name, entry in table.items():
        if not isinstance(entry, dict):
            raise BadInput(f"{place}.{name}", example)
        _check_known_keys(entry, ("version", "sha256"), f"privacy.packages.{name}.")
        version, sha256 = entry.get("version"), entry.get("sha256")
        if not isinstance(version, str) or not version:
            raise BadInput(f"{place}.{name}.version", 'must be the version of the package, such as "1.0"')
        if not isinstance(sha256, str) or not re.fullmatch("[0-9a-f]{64}", sha256):
            raise BadInput(
                f"{place}.{name}.sha256",
                "must be the hash of the installed files, 64 digits; sfumato methods KEY prints it",
            )
        normal = normalise_package_name(name)
        if normal in found:
            raise BadInput(f"{place}.{name}", "is named twice; remove one of the tables")
        found[normal] = PackageFiles(normal, version, sha256)
    return tuple(found[name] for name in sorted(found))


def _check_audience_limits(table: Mapping[str, Any], audience: str) -> None:
    """Raise BadInput for a limit of an audience that cannot be."""
    place = f"audiences.{audience}"
    _check_known_keys(table, tuple(one.name for one in fields(AudienceLimits)), f"{place}.")
    smallest, average = table.get("smallest_class", 0), table.get("average_risk", 1.0)
    if isinstance(smallest, bool) or not isinstance(smallest, int) or smallest < 0:
        raise BadInput(
            f"{POLICY_FILE}: {place}.smallest_class", "must be a whole number of at least 0; 0 sets no limit"
        )
    if isinstance(average, bool) or not isinstance(average, int | float) or not 0 < average <= 1:
        raise BadInput(f"{POLICY_FILE}: {place}.average_risk", "must be above 0 and at most 1; 1 sets no limit")
    if not isinstance(table.get("source", ""), str):
        raise BadInput(f"{POLICY_FILE}: {place}.source", "must be text")


def _checked_table_rules(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules for printed tables that a policy states. Raises BadInput for numbers that are no rule."""
    _check_known_keys(table, tuple(one.name for one in fields(TableLimits)), "tables.")
    if not table:
        return {}
    from sfumato.engine.recipe.table_sections import TableProtection  # late: few policies have rules for tables

    try:
        found = TableProtection.read_section(table, "tables")
        rules = found.rules
    except BadInput as error:
        raise BadInput(f"{POLICY_FILE}: {error.place}", error.message) from None
    own = {"threshold": rules.threshold, "dominance": rules.dominance}
    own |= {"p_percent": rules.p_percent, "prior_posterior": rules.prior_posterior}
    return {key: own[key] for key in table}


def _check_finding_limit(table: Mapping[str, Any], place: str) -> None:
    """Raise BadInput for a limit of a check that cannot be."""
    _check_known_keys(table, tuple(one.name for one in fields(FindingLimit)), f"{place}.")
    for key in ("warn", "block"):
        value = table.get(key, 0.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise BadInput(f"{POLICY_FILE}: {place}.{key}", "must be a number")
    if not isinstance(table.get("waivable", True), bool):
        raise BadInput(f"{POLICY_FILE}: {place}.waivable", "must be true or false")
    if not isinstance(table.get("source", ""), str):
        raise BadInput(f"{POLICY_FILE}: {place}.source", "must be text")
