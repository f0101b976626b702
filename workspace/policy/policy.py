"""The policy of a workspace: what may leave it, in ``policy.toml`` beside the database; a recipe may only be tighter.

```toml
name = "Statistics Office, tables for the public"
smallest_cell = 10        # counts below it never leave; nothing that rests on fewer records does
rounding = 5              # counts that leave are rounded to a multiple of it
digits = 3                # significant digits of all other numbers that leave

[approval]
second_person = true      # whoever approves a release is not who asked for it
approvers = ["maria"]     # who may approve; left out: anybody
waivers = ["maria"]       # who may waive a finding; left out: anybody
directory = "/srv/requests" # where requests and answers lie, for both accounts

[privacy]
epsilon = 5.0             # the most that all releases of the same people may cost together

[seal]
key = "/etc/sfumato/seal" # a file of 32 bytes outside the workspace

[audit]
heads = "/srv/sfumato/heads.log" # keeps the heads of the audit log too; may be append-only

[findings.equal_records]  # the limits of one check of the gate
block = 0.01
source = "release rules 2026, section 4"
```

Where there is no such file, the defaults below hold.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from sfumato.engine.errors import BadInput, suggestion

from ..plain_files import read_plain
from .disclosure import DisclosureRules

POLICY_FILE = "policy.toml"
MOST_POLICY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FindingLimit:
    """From where on a check of the gate warns and blocks; None keeps the check's own. ``source`` says who asks for it."""

    warn: float | None = None
    block: float | None = None
    waivable: bool | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """What may leave a workspace. Counts are in records, ``digits`` significant digits."""

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
    findings: Mapping[str, FindingLimit] = field(default_factory=dict)

    @property
    def rules(self) -> DisclosureRules:
        return DisclosureRules(self.smallest_cell, self.rounding, self.digits)

    def budget(self, of_recipe: float | None) -> float | None:
        """The epsilon that holds where a recipe names one too: the smaller; None where neither names any."""
        return min((one for one in (self.epsilon, of_recipe) if one is not None), default=None)

    @property
    def sha256(self) -> str:
        """The hash of what it says, however it is written; a key of a later version that is left out does not count."""
        settings = asdict(self)
        for later, default in (("epsilon", None), ("heads", "")):
            if settings[later] == default:
                del settings[later]
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


TABLES = {
    "approval": ("second_person", "approvers", "waivers", "directory"),
    "privacy": ("epsilon",),
    "seal": ("key",),
    "audit": ("heads",),
}
PLAIN = ("name", "smallest_cell", "rounding", "digits")


def policy_of(directory: Path) -> Policy:
    """The policy of the workspace in ``directory``; the default where it has none. Raises BadInput and StrangeFile."""
    try:
        content = read_plain(directory / POLICY_FILE, MOST_POLICY_BYTES)
    except FileNotFoundError:
        return Policy()
    except OSError as error:
        raise BadInput(POLICY_FILE, f"cannot be read: {error.strerror}") from None
    return read_policy(content)


def read_policy(content: bytes) -> Policy:
    """A policy as it is written. Raises BadInput with the key that is wrong."""
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(POLICY_FILE, f"is not TOML: {error}") from None
    _known(table, (*PLAIN, *TABLES, "findings"), "")
    given: dict[str, Any] = {key: _checked(key, table[key], key) for key in PLAIN if key in table}
    for name, keys in TABLES.items():
        part = _table(table.get(name, {}), name)
        _known(part, keys, f"{name}.")
        given |= {_field(name, key): _checked(_field(name, key), part[key], f"{name}.{key}") for key in part}
    limits = _table(table.get("findings", {}), "findings")
    given["findings"] = {
        check: _limit(_table(part, f"findings.{check}"), f"findings.{check}") for check, part in limits.items()
    }
    return Policy(**given)


def _field(table: str, key: str) -> str:
    return {"seal.key": "seal_key", "approval.directory": "approvals"}.get(f"{table}.{key}", key)


def _known(table: Mapping[str, Any], known: tuple[str, ...], prefix: str) -> None:
    for key in table:
        if key not in known:
            hint = suggestion(key, known) or f"; known: {', '.join(known)}"
            raise BadInput(f"{POLICY_FILE}: {prefix}{key}", f"unknown key{hint}")


def _table(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{POLICY_FILE}: {place}", "must be a table of keys and values")
    return value


LEAST = {"smallest_cell": 1, "rounding": 1, "digits": 1}


def _checked(name: str, value: Any, place: str) -> Any:
    """A value of the type that the field has. Raises BadInput."""
    place = f"{POLICY_FILE}: {place}"
    if name in LEAST:
        if isinstance(value, bool) or not isinstance(value, int) or value < LEAST[name]:
            raise BadInput(place, f"must be a whole number of at least {LEAST[name]}")
    elif name == "epsilon":
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise BadInput(place, "must be a number above 0")
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


def _limit(table: Mapping[str, Any], place: str) -> FindingLimit:
    _known(table, tuple(one.name for one in fields(FindingLimit)), f"{place}.")
    for key in ("warn", "block"):
        value = table.get(key, 0.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise BadInput(f"{POLICY_FILE}: {place}.{key}", "must be a number")
    if not isinstance(table.get("waivable", True), bool):
        raise BadInput(f"{POLICY_FILE}: {place}.waivable", "must be true or false")
    if not isinstance(table.get("source", ""), str):
        raise BadInput(f"{POLICY_FILE}: {place}.source", "must be text")
    return FindingLimit(**table)
