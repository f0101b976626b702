"""The policy as text: every check with its limits and their reasons, as a file that can be saved as the workspace's
policy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from textwrap import wrap
from typing import Any

from sfumato.engine.methods.audience import AUDIENCES, Audience

from ..policy.packages import package_lines
from ..policy.policy import Policy
from ..visible_text import replace_unprintable
from .checks import GateCheck
from .gate import CHECKS

WIDTH = 100


def policy_toml(policy: Policy) -> str:
    """Return the text of ``policy.toml`` for the policy in force, with the checks' own limits written out."""
    lines = [
        "# The policy in force. Save it as your own policy (sfumato help policy), and change what your rules ask for.",
        "# As policy.toml beside workspace.db it may only be stricter, and names no path: directory, key or heads.",
        f"name = {_toml_text(policy.name)}",
        f"{'# ' * (policy.audience is None)}audience = {_toml_text(policy.audience or AUDIENCES[0])}  # releases are judged for this audience, or for a wider one that the recipe names",
        f"smallest_cell = {policy.smallest_cell}  # counts below it never leave; nothing that rests on fewer records does",
        f"rounding = {policy.rounding}  # counts that leave are rounded to a multiple of it",
        f"digits = {policy.digits}  # significant digits of all other numbers that leave",
        "",
        "[approval]",
        f"second_person = {str(policy.second_person).lower()}  # another account approves what one asks for",
        f"approvers = {_toml_list(policy.approvers)}  # accounts that may approve; none: any",
        f"waivers = {_toml_list(policy.waivers)}  # accounts that may waive a finding; none: any",
        f"directory = {_toml_text(policy.approvals)}  # where requests lie and another account answers them",
        "",
        "[privacy]",
        f"{'# ' * (policy.epsilon is None)}epsilon = {policy.epsilon or 5.0:.12g}  # the most that all releases of the same people may cost",
        f"{'# ' * (policy.delta is None)}delta = {policy.delta or 1e-6:.12g}  # the largest sum of their deltas; never above 1 / people",
        *(line for package in policy.packages for line in ("", *package_lines(package))),
        *(["", "[seal]", f"key = {_toml_text(policy.seal_key)}"] if policy.seal_key else []),
        *(["", "[audit]", f"heads = {_toml_text(policy.heads)}"] if policy.heads else []),
        *(line for audience in AUDIENCES for line in _audience_lines(audience, policy)),
        *(line for check in CHECKS for line in _check_lines(check, policy)),
    ]
    return "\n".join(lines) + "\n"


def policy_object(policy: Policy) -> dict[str, Any]:
    """Return the policy in force as an object, with every check and its limits; a limit of null is never reached."""
    return {
        "name": policy.name,
        "audience": policy.audience,
        "smallest_cell": policy.smallest_cell,
        "rounding": policy.rounding,
        "digits": policy.digits,
        "approval": {
            "second_person": policy.second_person,
            "approvers": list(policy.approvers),
            "waivers": list(policy.waivers),
            "directory": policy.approvals,
        },
        "privacy": {
            "epsilon": policy.epsilon,
            "delta": policy.delta,
            "packages": [asdict(package) for package in policy.packages],
        },
        "seal": {"key": policy.seal_key},
        "audit": {"heads": policy.heads},
        "audiences": {audience: asdict(policy.audience_limits(audience)) for audience in AUDIENCES},
        "findings": [_check_object(check, policy) for check in CHECKS],
    }


def _check_object(check: GateCheck, policy: Policy) -> dict[str, Any]:
    """Return a check with its limits under the policy, and why they hold."""
    given = policy.findings.get(check.key)
    warn, block = check.limits_under_policy(policy)
    return {
        "check": check.key,
        "title": check.title,
        "unit": check.unit,
        "acts": "as a note" if check.is_note else "below a limit" if check.is_minimum else "above a limit",
        "warn": warn,
        "block": block,
        "waivable": check.waivable if given is None or given.waivable is None else given.waivable,
        "reason": check.reason,
        "advice": check.advice,
        "source": given.source if given and given.source else check.source,
    }


def _audience_lines(audience: Audience, policy: Policy) -> Iterator[str]:
    """Yield the lines with an audience's limits on kept columns."""
    limits = policy.audience_limits(audience)
    yield from ("", f"[audiences.{audience}]  # columns that are released unchanged, or coarser by a public rule")
    yield f"smallest_class = {limits.smallest_class}  # fewest people who share their values; 0: no limit"
    yield f"average_risk = {limits.average_risk:.12g}  # largest mean of 1 / (people who share the values); 1: no limit"
    yield f"source = {_toml_text(limits.source)}"


def _check_lines(check: GateCheck, policy: Policy) -> Iterator[str]:
    """Yield the lines of a check: comments that explain it, and its limits."""
    given = policy.findings.get(check.key)
    direction = "below" if check.is_minimum else "above"
    source = given.source if given and given.source else ""
    acts = "a note, which passes" if check.is_note else f"acts {direction} a limit"
    said = f"{check.title[0].upper()}{check.title[1:]}, {check.unit}; {acts}: {check.reason}"
    yield ""
    yield from (f"# {line}" for line in wrap(said + (f" ({check.source})" if check.source else ""), WIDTH))
    yield f"[findings.{check.key}]"
    for name, limit in zip(("warn", "block"), check.limits_under_policy(policy), strict=True):
        own = given is None or getattr(given, name) is None
        if limit is None:
            yield f"# {name}: never"
        # Written as a number it would no longer follow a later change of smallest_cell.
        elif check.smallest_cell_limit == name and own:
            yield f"# {name} = smallest_cell"
        else:
            yield f"{name} = {limit:.12g}"
    waivable = check.waivable if given is None or given.waivable is None else given.waivable
    yield f"waivable = {str(waivable).lower()}"
    if source:
        yield f"source = {_toml_text(source)}"


def _toml_text(text: str) -> str:
    return json.dumps(replace_unprintable(text), ensure_ascii=False)


def _toml_list(names: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_toml_text, names))}]"
