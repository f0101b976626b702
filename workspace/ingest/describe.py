"""A first description of a file's columns: a guess that its owner corrects, never more."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from sfumato.engine.schema import Kind, Role, Schema, Variable

__all__ = ["ColumnProfile", "describe", "draft_recipe"]

FEW_LEVELS = 20


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """What a column looks like: the guessed variable, how many records have no value, how many values differ."""

    variable: Variable
    missing: int
    distinct: int


def describe(frame: pd.DataFrame) -> list[ColumnProfile]:
    """One guess a column. A column whose values all differ and that is not a measurement is taken for an identifier."""
    return [_profile(str(name), frame[name]) for name in frame.columns]


def _profile(name: str, values: pd.Series) -> ColumnProfile:
    present = values.dropna()
    distinct = int(present.nunique())
    kind = _kind(present, distinct)
    unique = kind in (Kind.CATEGORICAL, Kind.COUNT) and distinct == len(values) > FEW_LEVELS
    role = Role.IDENTIFIER if unique else Role.OTHER
    return ColumnProfile(Variable(name, Kind.CATEGORICAL if unique else kind, role), int(values.isna().sum()), distinct)


def _kind(present: pd.Series, distinct: int) -> Kind:
    if distinct <= 2:
        return Kind.BINARY
    if pd.api.types.is_numeric_dtype(present) and not pd.api.types.is_bool_dtype(present):
        whole = bool((present % 1 == 0).all())
        if whole and distinct <= FEW_LEVELS and present.abs().max() < 100:
            return Kind.CATEGORICAL
        return Kind.COUNT if whole and present.min() >= 0 else Kind.CONTINUOUS
    if pd.api.types.is_datetime64_any_dtype(present):
        return Kind.DATE
    dates = pd.to_datetime(present.astype("str").head(1000), errors="coerce", format="ISO8601")
    return Kind.DATE if len(dates) and dates.notna().all() else Kind.CATEGORICAL


def schema_of(profiles: list[ColumnProfile]) -> Schema:
    """The guessed variables, identifiers left out."""
    return Schema(tuple(p.variable for p in profiles if p.variable.role is not Role.IDENTIFIER))


def draft_recipe(file: str, title: str, profiles: list[ColumnProfile]) -> str:
    """A recipe in TOML to start from: data and variables filled in, the rest left to its owner."""
    lines = [f"title = {_quoted(title)}", "", "[data]", f"file = {_quoted(file)}"]
    if any(profile.missing for profile in profiles):
        lines.append(
            'missing = "drop"               # records with a missing value are left out; other policies: "refuse", "keep"'
        )
    lines += ["", "[variables]                    # give each a role: known to an intruder, sensitive, or other"]
    for profile in profiles:
        variable = profile.variable
        line = f'{_key(variable.name)} = {{ kind = "{variable.kind}", role = "{variable.role}" }}'
        lines.append(f"# {line}" if variable.role is Role.IDENTIFIER else line)
    lines += [
        "",
        "[release]",
        "m = 5",
        "seed = 1",
        "",
        "# next: [[synthesis]], [[measure]], [[threshold]]; see sfumato methods",
        "",
    ]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _key(name: str) -> str:
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else _quoted(name)
