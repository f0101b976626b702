"""A policy as text: every check with its limits and why they are so, in a file that can be saved as the workspace's policy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from textwrap import wrap

from sfumato.engine.methods.audience import AUDIENCES, Audience

from ..policy.policy import Policy
from ..visible_text import printable
from .checks import Check
from .gate import CHECKS

WIDTH = 100


def policy_toml(policy: Policy) -> str:
    """The policy in force, as ``policy.toml`` holds it; limits that a check has of its own are written out."""
    lines = [
        "# The policy of this workspace: save it as policy.toml beside workspace.db, and change what your rules ask for.",
        f"name = {_text(policy.name)}",
        f"{'# ' * (policy.audience is None)}audience = {_text(policy.audience or AUDIENCES[0])}  # releases are judged for this audience, or for a wider one that the recipe names",
        f"smallest_cell = {policy.smallest_cell}  # counts below it never leave; nothing that rests on fewer records does",
        f"rounding = {policy.rounding}  # counts that leave are rounded to a multiple of it",
        f"digits = {policy.digits}  # significant digits of all other numbers that leave",
        "",
        "[approval]",
        f"second_person = {str(policy.second_person).lower()}  # another account approves what one asks for",
        f"approvers = {_list(policy.approvers)}  # accounts that may approve; none: any",
        f"waivers = {_list(policy.waivers)}  # accounts that may waive a finding; none: any",
        f"directory = {_text(policy.approvals)}  # where requests lie and another account answers them",
        "",
        "[privacy]",
        f"{'# ' * (policy.epsilon is None)}epsilon = {policy.epsilon or 5.0:.12g}  # the most that all releases of the same people may cost",
        *(["", "[seal]", f"key = {_text(policy.seal_key)}"] if policy.seal_key else []),
        *(["", "[audit]", f"heads = {_text(policy.heads)}"] if policy.heads else []),
        *(line for audience in AUDIENCES for line in _audience_lines(audience, policy)),
        *(line for check in CHECKS for line in _check(check, policy)),
    ]
    return "\n".join(lines) + "\n"


def _audience_lines(audience: Audience, policy: Policy) -> Iterator[str]:
    """Yield the limits on columns that a release for an audience keeps."""
    limits = policy.audience_limits(audience)
    yield from ("", f"[audiences.{audience}]  # columns that are released unchanged, or coarser by a public rule")
    yield f"smallest_class = {limits.smallest_class}  # fewest people who share their values; 0: no limit"
    yield f"average_risk = {limits.average_risk:.12g}  # largest mean of 1 / (people who share the values); 1: no limit"
    yield f"source = {_text(limits.source)}"


def _check(check: Check, policy: Policy) -> Iterator[str]:
    given = policy.findings.get(check.key)
    direction = "below" if check.least else "above"
    source = given.source if given and given.source else ""
    acts = "a note, which passes" if check.note else f"acts {direction} a limit"
    said = f"{check.title[0].upper()}{check.title[1:]}, {check.unit}; {acts}: {check.reason}"
    yield ""
    yield from (f"# {line}" for line in wrap(said + (f" ({check.source})" if check.source else ""), WIDTH))
    yield f"[findings.{check.key}]"
    for name, limit in zip(("warn", "block"), check.limits(policy), strict=True):
        own = given is None or getattr(given, name) is None
        if limit is None:
            yield f"# {name}: never"
        elif check.cell == name and own:
            yield f"# {name} = smallest_cell"
        else:
            yield f"{name} = {limit:.12g}"
    waivable = check.waivable if given is None or given.waivable is None else given.waivable
    yield f"waivable = {str(waivable).lower()}"
    if source:
        yield f"source = {_text(source)}"


def _text(text: str) -> str:
    return json.dumps(printable(text), ensure_ascii=False)


def _list(names: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_text, names))}]"
