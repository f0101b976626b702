"""Variables of a plan: read from its text and changed there, for any number of columns at once.

A column that is excluded keeps its line under ``[variables]`` as a comment, so that it is found unchanged and in its
place when it is included again. Where a column has no line of its own, it is changed like any other table, and an
excluded one is gone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput

from .drafts import inline_toml

VARIABLES_SECTION = "variables"
VARIABLES_HEADER = re.compile(r"[ \t]*\[[ \t]*variables[ \t]*\][ \t]*(#[^\n]*)?\r?\n?")
ANY_HEADER = re.compile(r"[ \t]*\[")
VARIABLES_TABLE = re.compile(r"""^[ \t]*\[+[ \t]*["']?variables\b""", re.MULTILINE)
COMMENT_SIGN = re.compile(r"[ \t]*#+[ \t]*(?=[\w\"'-])")
VARIABLE_ENTRY = re.compile(r"""[ \t]*([\w-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')[ \t]*=[ \t]*\{""")
REST_OF_LINE = re.compile(r"[ \t]*(#[\t -~]*)?\r?\n?")
EXCLUSION_REASON = re.compile(r"[ \t]*# left out: ([^\r\n]*)")
WHOLE_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class VariableTables:
    """Tables of the variables in a plan's text.

    planned: tables of the included columns, by name
    excluded: tables of the excluded columns, by name
    reasons: reason of an exclusion that its line names, ``# left out: unique in every record``
    order: order of the text
    problem: why nothing can be read, empty if it can
    """

    planned: Mapping[str, Any]
    excluded: Mapping[str, Mapping[str, Any]]
    reasons: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class _VariableLine:
    """Line under ``[variables]``.

    text: the line
    name: its column, empty where it has none
    excluded: it is a comment
    """

    text: str
    name: str = ""
    excluded: bool = False

    @property
    def entry(self) -> str:
        """Return the line without the sign that makes it a comment."""
        lead = COMMENT_SIGN.match(self.text) if self.excluded else None
        return self.text[lead.end() :] if lead else self.text


def parse_variable_tables(toml: str) -> VariableTables:
    """Parse the tables of included and excluded columns from a plan's text."""
    try:
        planned = _planned_variables(_read_plan_table(toml))
    except BadInput as error:
        return VariableTables({}, {}, problem=str(error))
    lines = [line for line in _split_variable_lines(toml)[1] if line.name]
    found = ((line.name, _table_of_line(line)) for line in lines if line.excluded)
    out = {name: table for name, table in found if table is not None}
    reasons = ((line.name, EXCLUSION_REASON.search(line.text)) for line in lines if line.name in out)
    why = {name: reason[1].strip() for name, reason in reasons if reason}
    return VariableTables(
        planned, out, why, tuple(line.name for line in lines if not line.excluded or line.name in out)
    )


def _read_plan_table(toml: str) -> Mapping[str, Any]:
    """Read the table of a plan's text. Raises BadInput."""
    before, lines, after = _split_variable_lines(toml)
    planned: dict[str, Any] = {}
    for line in lines:
        # Lines of ``[variables]`` are parsed one by one and cached: an edit of one column among hundreds costs what one
        # column costs.
        said = _parse_variable_line(line.text)
        if said is None or len(said) > 1 or not planned.keys().isdisjoint(said):
            return read_toml(toml)
        planned.update(said)
    # The rest is read without these lines only where it is TOML by itself and has no further table of variables.
    rest = (
        None
        if VARIABLES_TABLE.search(after) or _read_other_tables(before) is None
        else _read_other_tables(before + after)
    )
    return (
        read_toml(toml) if rest is None or rest.get(VARIABLES_SECTION) != {} else {**rest, VARIABLES_SECTION: planned}
    )


@lru_cache(maxsize=8)
def _read_other_tables(text: str) -> Mapping[str, Any] | None:
    """Read the text around the lines of ``[variables]``; None where it cannot be read without them."""
    try:
        return read_toml(text)
    except BadInput:
        return None


@lru_cache(maxsize=1 << 13)
def _parse_variable_line(line: str) -> Mapping[str, Any] | None:
    """Parse one line under ``[variables]``; None where it is no whole statement."""
    entry = VARIABLE_ENTRY.match(line)
    if entry is not None and entry[1].isascii() and entry[1][0] not in "\"'":
        end = _closing_bracket(line, entry.end() - 1)
        if REST_OF_LINE.fullmatch(line, end):
            # Without the name, columns with equal descriptions share one entry of the cache.
            value = _parse_statement(f"x = {line[entry.end() - 1 : end]}")
            return None if value is None else {entry[1]: value["x"]}
    return _parse_statement(line)


@lru_cache(maxsize=1 << 10)
def _parse_statement(statement: str) -> Mapping[str, Any] | None:
    """Parse one TOML statement under ``[variables]``; None where it is no whole statement."""
    try:
        found: Mapping[str, Any] = read_toml(f"[{VARIABLES_SECTION}]\n{statement}")[VARIABLES_SECTION]
    except (BadInput, KeyError):
        return None
    return found


def _planned_variables(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the table ``variables`` of a plan. Raises BadInput where it is no table."""
    planned = table.get(VARIABLES_SECTION, {})
    if not isinstance(planned, dict):
        raise BadInput(VARIABLES_SECTION, "must be a table, [variables]")
    return planned


def change_kind(variable: Variable, kind: Kind) -> dict[str, Any]:
    """Return a variable's table with another kind, without the keys that this kind cannot have.

    Raises BadInput where its list of levels does not fit.
    """
    table = {**variable.to_table(), "kind": kind.value}
    if not {variable.kind, kind} <= {Kind.COUNT, Kind.CONTINUOUS}:
        table.pop("bounds", None)
    if not kind.has_levels:
        table.pop("levels", None)
    if kind is not variable.kind:
        table.pop("format", None)
    Variable.from_table(variable.name, table, f"variables.{variable.name}")
    return table


def change_variables(toml: str, changes: Mapping[str, Mapping[str, Any] | None], order: Sequence[str] = ()) -> str:
    """Return the plan's text with new tables for some columns; those whose table is None are excluded.

    A column that has no line yet gets one before the next that has, in the ``order`` of the file. Raises BadInput when
    the text is no TOML.
    """
    table = _read_plan_table(toml)
    known = _planned_variables(table)
    wanted = {**known, **{name: said for name, said in changes.items() if said is not None}}
    wanted = {name: said for name, said in wanted.items() if changes.get(name, said) is not None}
    if wanted == known:
        return toml
    said = {**table, VARIABLES_SECTION: wanted}
    text = _change_lines(toml, changes, order, known)
    try:
        if _read_plan_table(text) == said:
            return text
    except BadInput:
        pass
    # The edited lines did not give the wanted content: the whole text is rewritten, which loses excluded lines.
    from .rewrite import rewrite_plan

    return rewrite_plan(toml, said)


def _split_variable_lines(toml: str) -> tuple[str, list[_VariableLine], str]:
    """Split the text into what stands before the lines under ``[variables]``, these lines, and what comes after."""
    lines = WHOLE_LINE.findall(toml)
    start = next((number for number, line in enumerate(lines, 1) if VARIABLES_HEADER.fullmatch(line)), None)
    if start is None:
        return toml, [], ""
    end = next((number for number in range(start, len(lines)) if ANY_HEADER.match(lines[number])), len(lines))
    found = [_parse_line(text) for text in lines[start:end]]
    named = [number for number, line in enumerate(found) if line.name]
    end = start + (named[-1] + 1 if named else 0)
    # Of several lines for one column the included one counts, else the last comment; the others are plain comments.
    speaks = {line.name: number for number, line in enumerate(found) if line.excluded}
    speaks |= {line.name: number for number, line in enumerate(found) if line.name and not line.excluded}
    kept = [line if speaks.get(line.name) == number else _VariableLine(line.text) for number, line in enumerate(found)]
    return "".join(lines[:start]), kept[: end - start], "".join(lines[end:])


@lru_cache(maxsize=1 << 13)
def _parse_line(text: str) -> _VariableLine:
    """Parse the name of the column that a line describes, commented out or not."""
    lead = COMMENT_SIGN.match(text)
    entry = VARIABLE_ENTRY.match(text, lead.end() if lead else 0)
    if entry is None:
        return _VariableLine(text)
    key = entry.group(1)
    return _VariableLine(text, read_toml(f"x = {key}")["x"] if key[0] in "\"'" else key, excluded=lead is not None)


def _table_of_line(line: _VariableLine) -> dict[str, Any] | None:
    """Return the table of a line's column; None where it cannot be read, as with a comment in words."""
    table = (_parse_variable_line(line.entry) or {}).get(line.name)
    return table if isinstance(table, dict) else None


def _change_lines(
    toml: str, changes: Mapping[str, Mapping[str, Any] | None], order: Sequence[str], known: Mapping[str, Any]
) -> str:
    """Return the plan's text with the lines of some columns changed, excluded or added."""
    before, lines, after = _split_variable_lines(toml)
    # New lines end as those of the file do.
    end = "\r\n" if "\r\n" in toml else "\n"
    if lines and not lines[-1].text.endswith("\n"):
        lines[-1] = replace(lines[-1], text=lines[-1].text + end)
    changed = [_change_line(line, changes[line.name], known) if line.name in changes else line for line in lines]
    has = {line.name for line in lines}
    rank = {name: place for place, name in enumerate(order)}
    for name, table in changes.items():
        if name in has or table is None:
            continue
        new = _VariableLine(f"{inline_toml({name: dict(table)})[2:-2]}{end}", name)
        behind = rank.get(name, len(rank))
        later = (number for number, line in enumerate(changed) if rank.get(line.name, -1) > behind)
        changed.insert(next(later, len(changed)), new)
    return before + "".join(line.text for line in changed) + after


def _change_line(line: _VariableLine, table: Mapping[str, Any] | None, known: Mapping[str, Any]) -> _VariableLine:
    """Return the line of a column with another table, or commented out."""
    if table is None:
        return line if line.excluded else replace(line, text=f"# {line.entry.lstrip()}", excluded=True)
    entry, old = line.entry, _table_of_line(line) if line.excluded else known.get(line.name)
    opening = VARIABLE_ENTRY.match(entry)
    assert opening is not None
    start = opening.end() - 1
    end = _closing_bracket(entry, start)
    said, behind = entry[start:end], entry[end:]
    if table != old:
        kept = [key for key in old or () if key in table]
        said = inline_toml({key: table[key] for key in [*kept, *(key for key in table if key not in kept)]})
    if line.excluded:
        behind = EXCLUSION_REASON.sub("", behind, count=1)
    return replace(line, text=f"{entry[:start]}{said}{behind}", excluded=False)


def _closing_bracket(entry: str, opening: int) -> int:
    """Return the position behind the bracket that closes the one at ``opening``."""
    from .rewrite import DEPTH_CHANGES, TOML_TOKEN

    depth = 0
    for token in TOML_TOKEN.finditer(entry, opening):
        depth += DEPTH_CHANGES.get(token[0], 0)
        if not depth:
            return token.end()
    return len(entry)
