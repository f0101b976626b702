"""The variables of a project's data: at once what plan and database say of them, later what the values are like.

Numerical libraries are loaded when the values are read.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.engine.errors import BadInput
from sfumato.engine.schema import MissingPolicy, Schema, Variable

from ..ingest.profiles import Profile, profile
from ..plan.drafts import Draft, draft_of, missing_of
from ..store.workspace import Workspace

if TYPE_CHECKING:
    from sfumato.engine.microdata import Microdata


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


def data_view(workspace: Workspace, project_id: int) -> DataView | None:
    """What the tab Data shows; None for a project without data. Raises DamagedTable."""
    draft = draft_of(workspace, project_id)
    if draft is None:
        return None
    dataset = workspace.dataset(draft.dataset_id)
    data = workspace.read(dataset)
    known = missing_of(workspace, dataset.id)
    described, problem = _described(draft)
    names = [*described, *(name for name in data.schema.names if name not in described)]

    def line(name: str) -> VariableLine:
        kept = float(data.missing(name).mean()) if name in data.schema else 0.0
        return _line(name, described.get(name), data, known.get(name, None if dataset.dropped else kept))

    return DataView(draft, dataset.name, len(data), dataset.dropped, tuple(map(line, names)), problem)


def _described(draft: Draft) -> tuple[dict[str, Variable | BadInput], str]:
    """The variables of the plan by name, an error in place of one that is described wrongly; what is wrong with it all."""
    from sfumato.engine.toml import read_toml

    try:
        tables = read_toml(draft.toml).get("variables", {})
    except BadInput as error:
        return {}, str(error)
    if not isinstance(tables, dict):
        return {}, "variables: must be a table, [variables]"
    return {name: _planned_variable(name, table) for name, table in tables.items()}, ""


def _planned_variable(name: str, table: object) -> Variable | BadInput:
    try:
        return Variable.from_table(name, table, f"variables.{name}")
    except BadInput as error:
        return error


def _line(name: str, planned: Variable | BadInput | None, data: Microdata, missing: float | None) -> VariableLine:
    stored = next((variable for variable in data.schema if variable.name == name), None)
    if stored is None:
        variable = planned if isinstance(planned, Variable) else Variable(name, next(iter(data.schema)).kind)
        return VariableLine(variable, True, None, None, f"variables.{name}: the stored table has no such column")
    if not isinstance(planned, Variable):
        return VariableLine(stored, planned is not None, missing, profile(data, name), str(planned or ""))
    try:
        own = data if _alike(planned, stored) else _conformed(data, planned)
    except BadInput as error:
        return VariableLine(planned, True, missing, profile(data, name), str(error))
    return VariableLine(planned, True, missing, profile(own, name))


def _alike(planned: Variable, stored: Variable) -> bool:
    """Whether the plan asks for the same values as were stored."""
    return all(getattr(planned, part) == getattr(stored, part) for part in ("kind", "bounds", "levels", "missing"))


def _conformed(data: Microdata, variable: Variable) -> Microdata:
    from sfumato.engine.microdata import conform

    return conform(data.frame[[variable.name]], Schema((variable,)), MissingPolicy.DROP)


def data_view_of(directory: Path, project_id: int) -> DataView | None:
    """``data_view`` of a workspace that is not open, to be called in a process of its own."""
    with Workspace.open(directory) as workspace:
        return data_view(workspace, project_id)
