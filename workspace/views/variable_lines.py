"""The variables of a project's data as a screen has them: at once what plan and database say, later what the values are like.

Known without the numerical libraries. As JSON they go from one process to another.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.engine.schema import Variable

from ..plan.drafts import Draft, missing_of
from ..store.workspace import Workspace

__all__ = ["DataView", "Profile", "VariableLine", "outline", "view_from_json", "view_to_json"]


@dataclass(frozen=True, slots=True)
class Profile:
    """One variable. ``counts`` (k,) are records in each bin from ``starts`` (k,), ``width`` wide, or of each of the
    ``levels``; ``withheld`` bins of one or two records count 0 in them. ``quantiles`` are pairs of a share, of QUANTILES, and a value.
    """

    name: str
    records: int
    distinct: int
    counts: tuple[int, ...]
    withheld: int
    levels: tuple[str, ...] = ()
    starts: tuple[float, ...] = ()
    width: float = 1.0
    quantiles: tuple[tuple[float, float], ...] = ()
    mean: float | None = None
    sd: float | None = None


@dataclass(frozen=True)
class VariableLine:
    """A column of the data. ``planned`` is whether the plan takes it in; ``problem`` says why its records do not fit.

    ``missing`` is the share of the file's records that had no value, None where nobody counted them.
    """

    variable: Variable
    planned: bool
    missing: float | None
    profile: Profile | None
    problem: str = ""


@dataclass(frozen=True)
class DataView:
    """A project's plan, the table that it is for, and its variables in the plan's order, those left out at the end.

    ``read`` is whether the values were read; before that there are no profiles and no problems.
    """

    draft: Draft
    dataset: str
    records: int
    dropped: int
    lines: tuple[VariableLine, ...]
    problem: str = ""
    read: bool = True

    def keeping(self, known: DataView) -> DataView:
        """With the profiles of an earlier view, of variables whose kind is the same, until the values are read again."""
        profiles = {(line.variable.name, line.variable.kind): line.profile for line in known.lines}
        kept = (replace(line, profile=profiles.get((line.variable.name, line.variable.kind))) for line in self.lines)
        return replace(self, lines=tuple(kept))


def outline(workspace: Workspace, draft: Draft) -> DataView:
    """What is known before the values are read."""
    row = workspace.connection.execute(
        "SELECT name, records, dropped, schema FROM dataset WHERE id = ?", (draft.dataset_id,)
    ).fetchone()
    stored: dict[str, Any] = json.loads(row["schema"])
    planned, missing = _planned(draft.toml), missing_of(workspace, draft.dataset_id)
    names = [*(name for name in planned if name in stored), *(name for name in stored if name not in planned)]
    lines = (
        VariableLine(_variable(name, planned.get(name), stored[name]), name in planned, missing.get(name), None)
        for name in names
    )
    return DataView(draft, row["name"], row["records"], row["dropped"], tuple(lines), read=False)


def _planned(toml: str) -> Mapping[str, Any]:
    try:
        variables = tomllib.loads(toml).get("variables", {})
    except tomllib.TOMLDecodeError:
        return {}
    return variables if isinstance(variables, dict) else {}


def _variable(name: str, planned: Any, stored: Mapping[str, Any]) -> Variable:
    """The variable as the plan has it where that can be read, else as it was stored."""
    place = f"variables.{name}"
    if planned is not None:
        try:
            return Variable.from_table(name, planned, place)
        except BadInput:
            pass
    return Variable.from_table(name, stored, place)


def view_to_json(view: DataView | None) -> str:
    """The view as text."""
    if view is None:
        return "null"
    lines = [{**asdict(line), "variable": (line.variable.name, line.variable.to_table())} for line in view.lines]
    return json.dumps({**asdict(view), "lines": lines})


def view_from_json(text: str) -> DataView | None:
    """The view that ``view_to_json`` wrote."""
    table = json.loads(text)
    if table is None:
        return None
    lines = tuple(_line(line) for line in table["lines"])
    return DataView(**{**table, "draft": Draft(**table["draft"]), "lines": lines})


def _line(table: dict[str, Any]) -> VariableLine:
    name, variable = table["variable"]
    profile = None if table["profile"] is None else Profile(**_tuples(table["profile"]))
    return VariableLine(**{**table, "variable": Variable.from_table(name, variable, name), "profile": profile})


def _tuples(table: Mapping[str, Any]) -> dict[str, Any]:
    lists = {name: tuple(value) for name, value in table.items() if isinstance(value, list)}
    return {**table, **lists, "quantiles": tuple(map(tuple, table["quantiles"]))}
