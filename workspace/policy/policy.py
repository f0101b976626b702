"""Policy of a workspace: what may leave it, in ``policy.toml`` next to the database. A recipe may only be stricter.

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
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from sfumato.engine.adversary.kept_column_limits import KeptColumnLimits
from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.engine.methods.audience import AUDIENCES, Audience

from ..plain_files import read_plain
from .disclosure import DisclosureRules

POLICY_FILE = "policy.toml"
MOST_POLICY_BYTES = 1 << 20
TABLES = {
    "approval": ("second_person", "approvers", "waivers", "directory"),
    "privacy": ("epsilon", "delta"),
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
    findings: Mapping[str, FindingLimit] = field(default_factory=dict)
    audience: Audience | None = None
    audiences: Mapping[Audience, AudienceLimits] = field(default_factory=dict)

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
        for later, default in (
            ("epsilon", None),
            ("delta", None),
            ("heads", ""),
            ("audience", None),
            ("audiences", {}),
        ):
            # Keys of later versions do not count where they are left out: a policy keeps the hash that earlier releases
            # recorded.
            if settings[later] == default:
                del settings[later]
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def read_policy_of_workspace(directory: Path) -> Policy:
    """Read the policy of a workspace; the default where it has none. Raises BadInput and StrangeFile."""
    try:
        content = read_plain(directory / POLICY_FILE, MOST_POLICY_BYTES)
    except FileNotFoundError:
        return Policy()
    except OSError as error:
        raise BadInput(POLICY_FILE, f"cannot be read: {error.strerror}") from None
    return parse_policy(content)


def parse_policy(content: bytes) -> Policy:
    """Parse a policy from its TOML text. Raises BadInput at the key that is wrong."""
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(POLICY_FILE, f"is not TOML: {error}") from None
    _check_known_keys(table, (*PLAIN, *TABLES, "audiences", "findings"), "")
    given: dict[str, Any] = {key: _check_value(key, table[key], key) for key in PLAIN if key in table}
    for name, keys in TABLES.items():
        part = _check_is_table(table.get(name, {}), name)
        _check_known_keys(part, keys, f"{name}.")
        given |= {
            _field_of_key(name, key): _check_value(_field_of_key(name, key), part[key], f"{name}.{key}") for key in part
        }
    audiences = _check_is_table(table.get("audiences", {}), "audiences")
    _check_known_keys(audiences, AUDIENCES, "audiences.")
    given["audiences"] = {
        name: _parse_audience_limits(_check_is_table(audiences[name], f"audiences.{name}"), name)
        for name in AUDIENCES
        if name in audiences
    }
    limits = _check_is_table(table.get("findings", {}), "findings")
    given["findings"] = {
        check: _parse_finding_limit(_check_is_table(part, f"findings.{check}"), f"findings.{check}")
        for check, part in limits.items()
    }
    return Policy(**given)


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


def _parse_audience_limits(table: Mapping[str, Any], audience: Audience) -> AudienceLimits:
    """Parse the limits of an audience; a key that is left out has the value of ``AUDIENCE_LIMITS``. Raises BadInput."""
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
    default = AUDIENCE_LIMITS[audience]
    # Who sets a limit is who wrote it: the default's source does not speak for other numbers.
    own = {"source": "", **table} if {"smallest_class", "average_risk"} & table.keys() else dict(table)
    return replace(default, **own)


def _parse_finding_limit(table: Mapping[str, Any], place: str) -> FindingLimit:
    """Parse the limits of one check. Raises BadInput."""
    _check_known_keys(table, tuple(one.name for one in fields(FindingLimit)), f"{place}.")
    for key in ("warn", "block"):
        value = table.get(key, 0.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise BadInput(f"{POLICY_FILE}: {place}.{key}", "must be a number")
    if not isinstance(table.get("waivable", True), bool):
        raise BadInput(f"{POLICY_FILE}: {place}.waivable", "must be true or false")
    if not isinstance(table.get("source", ""), str):
        raise BadInput(f"{POLICY_FILE}: {place}.source", "must be text")
    return FindingLimit(**table)
