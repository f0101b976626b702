"""Who may set which key of a policy: the office, the user of the account, and the workspace, in this order.

A workspace may come from somebody else. So it names no place to write to and no key to read, and each of its limits is
at least as strict as the one above it. The same holds for a user's policy where the office's has the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from sfumato.engine.errors import BadInput
from sfumato.engine.methods.audience import AUDIENCES

Strictness = Literal[
    "larger",
    "smaller",
    "dominance",
    "ratio",
    "narrower list",
    "shorter list",
    "earlier audience",
    "place",
    "label",
    "check",
]
STRICTNESS: Mapping[str, Strictness] = {
    "name": "label",
    "audience": "earlier audience",
    "smallest_cell": "larger",
    "rounding": "larger",
    "digits": "smaller",
    "approval.second_person": "larger",
    "approval.approvers": "narrower list",
    "approval.waivers": "narrower list",
    "approval.directory": "place",
    "privacy.epsilon": "smaller",
    "privacy.delta": "smaller",
    "privacy.packages": "shorter list",
    "seal.key": "place",
    "audit.heads": "place",
    "audiences.*.smallest_class": "larger",
    "audiences.*.average_risk": "smaller",
    "audiences.*.source": "label",
    "tables.threshold": "larger",
    "tables.dominance": "dominance",
    "tables.p_percent": "larger",
    "tables.prior_posterior": "ratio",
    "findings.*.warn": "check",
    "findings.*.block": "check",
    "findings.*.waivable": "check",
    "findings.*.source": "label",
}
"""Which value of a key is the stricter one.

A list of accounts is stricter if it is a part of the other; an empty list is everybody. A shorter list has no
entry that the other lacks, and an empty one is nothing. Rules of ``dominance`` are stricter with more units
and a smaller share, a ``ratio`` of two numbers if it is larger. ``place`` is a path, which no
workspace names. ``check`` depends on a check of the gate, which compares such values itself.
"""


def strictness_of(key: str) -> Strictness:
    """Return which value of a key, such as ``audiences.public.smallest_class``, is the stricter one."""
    first, _, rest = key.partition(".")
    return STRICTNESS.get(key) or STRICTNESS[f"{first}.*.{rest.rpartition('.')[2]}"]


def is_looser(key: str, value: Any, base: Any) -> bool:
    """Return whether a value of a key is looser than ``base``; None is no limit."""
    if base is None:
        return False
    match strictness_of(key):
        case "larger":
            return bool(value < base)
        case "smaller":
            return bool(value > base)
        case "dominance":
            return not all(any(n >= least and k <= share for n, k in value) for least, share in base)
        case "ratio":
            return bool(value[0] / value[1] < base[0] / base[1])
        case "narrower list":
            return bool(base) and not (value and set(value) <= set(base))
        case "shorter list":
            return not set(value) <= set(base)
        case "earlier audience":
            return AUDIENCES.index(value) > AUDIENCES.index(base)
        case "place":
            return bool(value) and value != base  # an empty text names nothing
        case _:
            return False


def check_not_looser(settings: Mapping[str, Any], above: Mapping[str, Any], file: str, file_above: str) -> None:
    """Raise BadInput at the first key of ``file`` that is looser than the settings above it."""
    for key, value in settings.items():
        if is_looser(key, value, above.get(key)):
            raise looser_value(file, key, value, above[key], file_above)


def looser_value(file: str, key: str, value: Any, base: Any, file_above: str) -> BadInput:
    """Return the error of a value that is looser than the one above it."""
    return BadInput(
        f"{file}: {key}",
        f"{_value_text(key, value)} is looser than {_value_text(key, base)}. This file can only be stricter: remove the line, or "
        f"set the key in {file_above}",
    )


def named_places(settings: Mapping[str, Any]) -> list[str]:
    """Return the keys of a policy that name a path."""
    # An empty text names nothing; ``sfumato policy`` of earlier versions wrote it.
    return [key for key, value in settings.items() if strictness_of(key) == "place" and value]


def _value_text(key: str, value: Any) -> str:
    """Return a value as TOML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        nothing = "none" if strictness_of(key) == "shorter list" else "everybody"
        return f"[{', '.join(map(str, value))}]" if value else nothing
    return f"{value:.12g}" if isinstance(value, float) else str(value)
