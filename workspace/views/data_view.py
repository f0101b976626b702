"""The variables of a project's data as its plan describes them, each with its profile and whether the records agree."""

from __future__ import annotations

import sys
from pathlib import Path

from sfumato.engine.errors import BadInput, EngineError
from sfumato.engine.microdata import Microdata, conform
from sfumato.engine.recipe import read_toml
from sfumato.engine.schema import MissingPolicy, Schema, Variable

from ..errors import WorkspaceError
from ..ingest.profile_process import REFUSED
from ..ingest.profiles import profile
from ..plan.drafts import Draft, draft_of, missing_of
from ..store.workspace import Workspace
from .variable_lines import DataView, VariableLine, view_to_json

__all__ = ["data_view"]


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
    try:
        tables = read_toml(draft.toml).get("variables", {})
    except BadInput as error:
        return {}, str(error)
    if not isinstance(tables, dict):
        return {}, "variables: must be a table, [variables]"
    return {name: _variable(name, table) for name, table in tables.items()}, ""


def _variable(name: str, table: object) -> Variable | BadInput:
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
    return conform(data.frame[[variable.name]], Schema((variable,)), MissingPolicy.DROP)


def main(directory: str, project_id: str) -> int:
    """Print the view as JSON, or a message that holds no values of the data."""
    try:
        with Workspace.open(Path(directory)) as workspace:
            answer = view_to_json(data_view(workspace, int(project_id)))
    except (WorkspaceError, EngineError) as error:
        sys.stdout.write(str(error))
        return REFUSED
    sys.stdout.write(answer)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
