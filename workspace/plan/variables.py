"""Which columns a plan takes in, and as what: read from its text and changed there, for any number of columns at once.

A column that is left out keeps its line under ``[variables]``, as a comment, so that whoever takes it in again finds it as it
was and in its place. Where a plan does not write a column a line, it is changed like any other table, and what is left out is gone.

Lines that stay as they are are read once, so that an edit of one column among hundreds costs what one column costs.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput

from .drafts import inline

SECTION = "variables"
HEADER = re.compile(r"[ \t]*\[[ \t]*variables[ \t]*\][ \t]*(#[^\n]*)?\r?\n?")
ANY_HEADER = re.compile(r"[ \t]*\[")
OF_VARIABLES = re.compile(r"""^[ \t]*\[+[ \t]*["']?variables\b""", re.MULTILINE)
LEFT_OUT = re.compile(r"[ \t]*#+[ \t]*(?=[\w\"'-])")
ENTRY = re.compile(r"""[ \t]*([\w-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')[ \t]*=[ \t]*\{""")
BEHIND = re.compile(r"[ \t]*(#[\t -~]*)?\r?\n?")
REASON = re.compile(r"[ \t]*# left out: ([^\r\n]*)")
WHOLE_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class VariableTables:
    """What a plan says of the columns that it takes in, ``planned``, and of those that it left ``out``; ``order`` is that of the text.

    ``why`` has the reason of a column that its line names, ``# left out: unique in every record``; ``problem`` is why nothing can be read of it.
    """

    planned: Mapping[str, Any]
    out: Mapping[str, Mapping[str, Any]]
    why: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class _Line:
    """A line under ``[variables]``; ``name`` is empty where it is not of a column, ``out`` whether it is a comment."""

    text: str
    name: str = ""
    out: bool = False

    @property
    def entry(self) -> str:
        """The line without the sign that makes it a comment."""
        lead = LEFT_OUT.match(self.text) if self.out else None
        return self.text[lead.end() :] if lead else self.text


def variable_tables(toml: str) -> VariableTables:
    """What a plan's text says of each column."""
    try:
        planned = _planned(_read(toml))
    except BadInput as error:
        return VariableTables({}, {}, problem=str(error))
    lines = [line for line in _parted(toml)[1] if line.name]
    found = ((line.name, _table(line)) for line in lines if line.out)
    out = {name: table for name, table in found if table is not None}
    reasons = ((line.name, REASON.search(line.text)) for line in lines if line.name in out)
    why = {name: reason[1].strip() for name, reason in reasons if reason}
    return VariableTables(planned, out, why, tuple(line.name for line in lines if not line.out or line.name in out))


def _read(toml: str) -> Mapping[str, Any]:
    """The table of a plan's text: the lines of ``[variables]`` each by themselves where every one is whole. Raises BadInput."""
    before, lines, after = _parted(toml)
    planned: dict[str, Any] = {}
    for line in lines:
        said = _alone(line.text)
        if said is None or len(said) > 1 or not planned.keys().isdisjoint(said):
            return read_toml(toml)
        planned.update(said)
    rest = None if OF_VARIABLES.search(after) or _rest(before) is None else _rest(before + after)
    return read_toml(toml) if rest is None or rest.get(SECTION) != {} else {**rest, SECTION: planned}


@lru_cache(maxsize=8)
def _rest(text: str) -> Mapping[str, Any] | None:
    """The table of what stands around those lines; None where that cannot be read without them."""
    try:
        return read_toml(text)
    except BadInput:
        return None


@lru_cache(maxsize=1 << 13)
def _alone(line: str) -> Mapping[str, Any] | None:
    """What one line under ``[variables]`` says; None where it is no whole statement. Columns that are described alike are read once."""
    entry = ENTRY.match(line)
    if entry is not None and entry[1].isascii() and entry[1][0] not in "\"'":
        end = _closing(line, entry.end() - 1)
        if BEHIND.fullmatch(line, end):
            value = _whole(f"x = {line[entry.end() - 1 : end]}")
            return None if value is None else {entry[1]: value["x"]}
    return _whole(line)


@lru_cache(maxsize=1 << 10)
def _whole(statement: str) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = read_toml(f"[{SECTION}]\n{statement}")[SECTION]
    except (BadInput, KeyError):
        return None
    return found


def _planned(table: Mapping[str, Any]) -> Mapping[str, Any]:
    planned = table.get(SECTION, {})
    if not isinstance(planned, dict):
        raise BadInput(SECTION, "must be a table, [variables]")
    return planned


def of_kind(variable: Variable, kind: Kind) -> dict[str, Any]:
    """A variable's table as one of another kind, without what that cannot have. Raises BadInput where a list of levels is in the way."""
    table = {**variable.to_table(), "kind": kind.value}
    if kind not in (Kind.COUNT, Kind.CONTINUOUS):
        table.pop("bounds", None)
    if not kind.has_levels:
        table.pop("levels", None)
    Variable.from_table(variable.name, table, f"variables.{variable.name}")
    return table


def with_variables(toml: str, changes: Mapping[str, Mapping[str, Any] | None], order: Sequence[str] = ()) -> str:
    """The plan with some columns described anew, or, where that is None, left out.

    A column that has no line yet gets one before the next that has, in the ``order`` of the file. Raises BadInput when the text is no TOML.
    """
    table = _read(toml)
    known = _planned(table)
    wanted = {**known, **{name: said for name, said in changes.items() if said is not None}}
    wanted = {name: said for name, said in wanted.items() if changes.get(name, said) is not None}
    if wanted == known:
        return toml
    said = {**table, SECTION: wanted}
    text = _by_lines(toml, changes, order, known)
    try:
        if _read(text) == said:
            return text
    except BadInput:
        pass
    from .rewrite import rewritten

    return rewritten(toml, said)


def _parted(toml: str) -> tuple[str, list[_Line], str]:
    """What stands before the lines under ``[variables]``, they themselves, and what comes after."""
    lines = WHOLE_LINE.findall(toml)
    start = next((number for number, line in enumerate(lines, 1) if HEADER.fullmatch(line)), None)
    if start is None:
        return toml, [], ""
    end = next((number for number in range(start, len(lines)) if ANY_HEADER.match(lines[number])), len(lines))
    found = [_line(text) for text in lines[start:end]]
    named = [number for number, line in enumerate(found) if line.name]
    end = start + (named[-1] + 1 if named else 0)
    speaks = {line.name: number for number, line in enumerate(found) if line.out}
    speaks |= {line.name: number for number, line in enumerate(found) if line.name and not line.out}
    kept = [line if speaks.get(line.name) == number else _Line(line.text) for number, line in enumerate(found)]
    return "".join(lines[:start]), kept[: end - start], "".join(lines[end:])


@lru_cache(maxsize=1 << 13)
def _line(text: str) -> _Line:
    lead = LEFT_OUT.match(text)
    entry = ENTRY.match(text, lead.end() if lead else 0)
    if entry is None:
        return _Line(text)
    key = entry.group(1)
    return _Line(text, tomllib.loads(f"x = {key}")["x"] if key[0] in "\"'" else key, out=lead is not None)


def _table(line: _Line) -> dict[str, Any] | None:
    """What a line says of its column; None where it cannot be read, as a comment in words cannot."""
    table = (_alone(line.entry) or {}).get(line.name)
    return table if isinstance(table, dict) else None


def _by_lines(
    toml: str, changes: Mapping[str, Mapping[str, Any] | None], order: Sequence[str], known: Mapping[str, Any]
) -> str:
    before, lines, after = _parted(toml)
    end = "\r\n" if "\r\n" in toml else "\n"
    if lines and not lines[-1].text.endswith("\n"):
        lines[-1] = replace(lines[-1], text=lines[-1].text + end)
    changed = [_changed(line, changes[line.name], known) if line.name in changes else line for line in lines]
    has = {line.name for line in lines}
    rank = {name: place for place, name in enumerate(order)}
    for name, table in changes.items():
        if name in has or table is None:
            continue
        new = _Line(f"{inline({name: dict(table)})[2:-2]}{end}", name)
        behind = rank.get(name, len(rank))
        later = (number for number, line in enumerate(changed) if rank.get(line.name, -1) > behind)
        changed.insert(next(later, len(changed)), new)
    return before + "".join(line.text for line in changed) + after


def _changed(line: _Line, table: Mapping[str, Any] | None, known: Mapping[str, Any]) -> _Line:
    """The line of a column that is to be described so, or left out."""
    if table is None:
        return line if line.out else replace(line, text=f"# {line.entry.lstrip()}", out=True)
    entry, old = line.entry, _table(line) if line.out else known.get(line.name)
    opening = ENTRY.match(entry)
    assert opening is not None
    start = opening.end() - 1
    end = _closing(entry, start)
    said, behind = entry[start:end], entry[end:]
    if table != old:
        kept = [key for key in old or () if key in table]
        said = inline({key: table[key] for key in [*kept, *(key for key in table if key not in kept)]})
    if line.out:
        behind = REASON.sub("", behind, count=1)
    return replace(line, text=f"{entry[:start]}{said}{behind}", out=False)


def _closing(entry: str, opening: int) -> int:
    """Where the table that opens at ``opening`` ends."""
    from .rewrite import DEEPER, TOKEN

    depth = 0
    for token in TOKEN.finditer(entry, opening):
        depth += DEEPER.get(token[0], 0)
        if not depth:
            return token.end()
    return len(entry)
