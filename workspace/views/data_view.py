"""Variables of a project's data: what plan and database state about them, and profiles of their values.

``read_data_view`` and ``DataView.from_draft`` need SQL alone. ``profile_stored_columns`` reads values and loads
numerical libraries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.errors import BadInput

from ..ingest.profiles import DistributionProfile, profile_distribution
from ..plan.drafts import PlanDraft, missing_shares
from ..plan.variables import VariableTables, parse_variable_tables
from ..store.workspace import Workspace

if TYPE_CHECKING:
    from sfumato.engine.data.microdata import Microdata


READ_AT_ONCE = 20_000_000
"""Number of values that are read at once, in whole columns, at least one."""


@dataclass(frozen=True)
class DatasetOutline:
    """Description of a dataset by the database.

    dataset_id, name: its number and name
    records, dropped: number of its records, and of records that were dropped
    columns: tables of the stored variables in the file's order
    missing_shares: share of the file's records without a value, for every column that was counted, stored or not
    """

    dataset_id: int
    name: str
    records: int
    dropped: int
    columns: Mapping[str, Mapping[str, Any]]
    missing_shares: Mapping[str, float]

    @cached_property
    def reading_keys(self) -> Mapping[str, tuple[object, ...]]:
        """Return the reading key of each stored column (``VariableLine.reading_key``)."""
        return {
            name: variable_reading_key(Variable.from_table(name, said, name)) for name, said in self.columns.items()
        }


def variable_reading_key(variable: Variable) -> tuple[object, ...]:
    """Return the settings by which the values of a variable are read."""
    # without role and texts: an edit of these needs no new profile
    return variable.name, variable.kind, variable.bounds, variable.levels, variable.missing


@dataclass(frozen=True)
class VariableLine:
    """Column of the file, as the plan and the database describe it.

    variable: the variable
    is_planned: whether the plan includes it
    is_stored: whether its values are in the workspace
    missing: share of the file's records without a value; None where they were not counted
    problem: why it cannot be read as the plan has it
    left_out_reason: why it was left out, where its line names a reason
    """

    variable: Variable
    is_planned: bool
    is_stored: bool
    missing: float | None
    problem: str = ""
    left_out_reason: str = ""

    @cached_property
    def reading_key(self) -> tuple[object, ...]:
        """Return the settings by which its values are read; lines with equal keys have equal values."""
        return variable_reading_key(self.variable)


@dataclass(frozen=True)
class ProfiledColumn:
    """Profile of a column's values.

    name: its name
    profile: the profile; None if it could not be made
    missing: share of the stored records without a value; None where that is not known
    problem: why its records do not fit the plan
    """

    name: str
    profile: DistributionProfile | None
    missing: float | None = None
    problem: str = ""


@dataclass(frozen=True)
class DataView:
    """Plan with its data and a line for every column of the file, in the order of the plan's text."""

    draft: PlanDraft
    stored: DatasetOutline
    lines: tuple[VariableLine, ...]
    problem: str = ""
    tables: VariableTables = field(default=VariableTables({}, {}), compare=False, repr=False)

    @classmethod
    def from_draft(cls, draft: PlanDraft, stored: DatasetOutline, before: DataView | None = None) -> DataView:
        """Create the view from a plan's text; columns that the plan does not define are taken as they were stored.

        Lines of the view ``before`` an edit are reused where the plan's text about their columns is unchanged.
        """
        said = parse_variable_tables(draft.toml)
        same = {} if before is None or before.stored is not stored else before.unchanged_lines(said)
        names = dict.fromkeys([*said.order, *said.planned, *stored.columns, *stored.missing_shares])
        known = (
            name for name in names if name in said.planned or name in stored.columns or name in stored.missing_shares
        )
        lines = (same.get(name) or _variable_line(name, said, stored) for name in known)
        return cls(draft, stored, tuple(lines), said.problem, said)

    def unchanged_lines(self, said: VariableTables) -> dict[str, VariableLine]:
        """Return the lines, by name, about whose columns the text of another plan states the same."""
        own = self.tables
        pairs = ((own.planned, said.planned), (own.excluded, said.excluded), (own.reasons, said.reasons))
        named = ((line.variable.name, line) for line in self.lines)
        return {name: line for name, line in named if all(one.get(name) == new.get(name) for one, new in pairs)}


def read_data_view(workspace: Workspace, draft: PlanDraft) -> DataView:
    """Return the view of a plan's data, without reading values."""
    return DataView.from_draft(draft, read_dataset_outline(workspace, draft.dataset_id))


def read_dataset_outline(workspace: Workspace, dataset_id: int) -> DatasetOutline:
    """Read the description of a dataset from the database."""
    row = workspace.connection.execute(
        "SELECT name, records, dropped, schema FROM dataset WHERE id = ?", (dataset_id,)
    ).fetchone()
    missing = missing_shares(workspace, dataset_id)
    return DatasetOutline(dataset_id, row["name"], row["records"], row["dropped"], json.loads(row["schema"]), missing)


def _variable_line(name: str, tables: VariableTables, stored: DatasetOutline) -> VariableLine:
    """Return the line of a column, as the plan has it, included or commented out, otherwise as it was stored."""
    planned, out = tables.planned.get(name), tables.excluded.get(name)
    kept, missing = stored.columns.get(name), stored.missing_shares.get(name)
    variable, problem = None, ""
    said = out if planned is None else planned
    if said is not None:
        try:
            variable = Variable.from_table(name, said, f"variables.{name}")
        except BadInput as error:
            # a column that the plan leaves out may be defined wrongly without harm
            problem = "" if planned is None else str(error)
    if variable is None and kept is not None:
        variable = Variable.from_table(name, kept, f"variables.{name}")
    if variable is None:
        variable = Variable(name, Kind.CATEGORICAL, Role.IDENTIFIER)
    if planned is not None and kept is None and missing is None:
        problem = f"variables.{name}: the file has no such column"
    return VariableLine(variable, planned is not None, kept is not None, missing, problem, tables.reasons.get(name, ""))


def profile_stored_columns(
    directory: Path, dataset_id: int, variables: tuple[Variable, ...]
) -> tuple[ProfiledColumn, ...]:
    """Profile the values of stored columns, read by the settings of ``variables``. Raises DamagedTable.

    It opens the workspace itself, since it is meant to be called in a subprocess.
    """
    with Workspace.open(directory, read_only=True) as workspace:
        dataset = workspace.find_dataset(dataset_id)
        asked = [variable for variable in variables if variable.name in dataset.schema]
        at_once = max(1, READ_AT_ONCE // max(1, dataset.records))
        found: list[ProfiledColumn] = []
        for first in range(0, len(asked), at_once):
            some = asked[first : first + at_once]
            schema = Schema(tuple(dataset.schema[variable.name] for variable in some))
            data = workspace.tables.read_microdata(dataset.table_sha256, schema, dataset.origin)
            found += (_profile_stored_column(variable, data, dataset.dropped) for variable in some)
    return tuple(found)


def _profile_stored_column(variable: Variable, data: Microdata, dropped: int) -> ProfiledColumn:
    """Profile one stored column, read as the plan has it where its values allow that."""
    stored, name, problem = data.schema[variable.name], variable.name, ""
    own = data
    if not all(getattr(variable, part) == getattr(stored, part) for part in ("kind", "bounds", "levels", "missing")):
        try:
            own = _conform_to_variable(data, variable)
        except BadInput as error:
            problem = str(error)
    if variable.kind is stored.kind and variable.date_form != stored.date_form:
        problem = f"its dates were read as {stored.format or '2019-07-31'} so far; a run reads the file again"
    found = profile_distribution(own, name)
    # it is not known which column of a dropped record lacked a value
    return ProfiledColumn(name, found, None if dropped else 1 - found.records / len(data), problem)


def _conform_to_variable(data: Microdata, variable: Variable) -> Microdata:
    """Return the records with a valid value of a variable, read by its settings. Raises BadInput."""
    from sfumato.engine.data.microdata import conform_to_schema

    return conform_to_schema(data.frame[[variable.name]], Schema((variable,)), MissingPolicy.DROP)
