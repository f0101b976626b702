"""The variables of a project's data: what plan and database say of each at once, and what is found when their values are read.

``outline`` and ``DataView.of`` need SQL alone; ``found_columns`` reads values, of the columns that it is asked for, and numerical libraries
are loaded for it.
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

from ..ingest.profiles import Profile, profile
from ..plan.drafts import Draft, missing_of
from ..plan.variables import VariableTables, variable_tables
from ..store.workspace import Workspace

if TYPE_CHECKING:
    from sfumato.engine.data.microdata import Microdata


READ_AT_ONCE = 20_000_000
"""Values of a table, of as many columns as have so many, one at least."""


@dataclass(frozen=True)
class StoredData:
    """What the database says of a dataset: ``columns`` are the tables of the stored variables in the file's order, ``missing`` the
    share of the file's records without a value, of every column that was counted, stored or not.
    """

    dataset_id: int
    name: str
    records: int
    dropped: int
    columns: Mapping[str, Mapping[str, Any]]
    missing: Mapping[str, float]

    @cached_property
    def readings(self) -> Mapping[str, tuple[object, ...]]:
        """How the values of each stored column were read: ``VariableLine.reading``."""
        return {name: reading_of(Variable.from_table(name, said, name)) for name, said in self.columns.items()}


def reading_of(variable: Variable) -> tuple[object, ...]:
    """What decides how the values of a variable are read: neither role nor words."""
    return variable.name, variable.kind, variable.bounds, variable.levels, variable.missing


@dataclass(frozen=True)
class VariableLine:
    """A column of the file. ``planned`` is whether the plan takes it in, ``stored`` whether its values are in the workspace.

    ``missing`` is the share of the file's records that had no value, None where nobody counted them; ``problem`` why it cannot be
    read as the plan has it, ``why`` the reason why it was left out, where its line names one.
    """

    variable: Variable
    planned: bool
    stored: bool
    missing: float | None
    problem: str = ""
    why: str = ""

    @cached_property
    def reading(self) -> tuple[object, ...]:
        """What decides how its values are read. Lines that agree in it have the same values."""
        return reading_of(self.variable)


@dataclass(frozen=True)
class FoundColumn:
    """What the values of a column are like: ``missing`` is the share of the stored records without one, None where that is not known, ``problem`` why
    its records do not fit.
    """

    name: str
    profile: Profile | None
    missing: float | None = None
    problem: str = ""


@dataclass(frozen=True)
class DataView:
    """A plan, the data that it is for, and a line for every column of the file, in the order of the plan's text."""

    draft: Draft
    stored: StoredData
    lines: tuple[VariableLine, ...]
    problem: str = ""
    tables: VariableTables = field(default=VariableTables({}, {}), compare=False, repr=False)

    @classmethod
    def of(cls, draft: Draft, stored: StoredData, before: DataView | None = None) -> DataView:
        """The columns as a plan's text has them; as they were stored where that cannot be read.

        Lines of the view ``before`` an edit are taken over where the plan says the same of their columns.
        """
        said = variable_tables(draft.toml)
        same = {} if before is None or before.stored is not stored else before.unchanged(said)
        names = dict.fromkeys([*said.order, *said.planned, *stored.columns, *stored.missing])
        known = (name for name in names if name in said.planned or name in stored.columns or name in stored.missing)
        lines = (same.get(name) or _line(name, said, stored) for name in known)
        return cls(draft, stored, tuple(lines), said.problem, said)

    def unchanged(self, said: VariableTables) -> dict[str, VariableLine]:
        """The lines, by name, of which a plan's text says what it said."""
        own = self.tables
        pairs = ((own.planned, said.planned), (own.out, said.out), (own.why, said.why))
        named = ((line.variable.name, line) for line in self.lines)
        return {name: line for name, line in named if all(one.get(name) == new.get(name) for one, new in pairs)}


def outline(workspace: Workspace, draft: Draft) -> DataView:
    """What is known before the values are read."""
    return DataView.of(draft, stored_data(workspace, draft.dataset_id))


def stored_data(workspace: Workspace, dataset_id: int) -> StoredData:
    """What the database says of a dataset."""
    row = workspace.connection.execute(
        "SELECT name, records, dropped, schema FROM dataset WHERE id = ?", (dataset_id,)
    ).fetchone()
    missing = missing_of(workspace, dataset_id)
    return StoredData(dataset_id, row["name"], row["records"], row["dropped"], json.loads(row["schema"]), missing)


def _line(name: str, tables: VariableTables, stored: StoredData) -> VariableLine:
    """A column as the plan has it, whether it takes it in or keeps it as a comment; else as it was stored."""
    planned, out = tables.planned.get(name), tables.out.get(name)
    kept, missing = stored.columns.get(name), stored.missing.get(name)
    variable, problem = None, ""
    said = out if planned is None else planned
    if said is not None:
        try:
            variable = Variable.from_table(name, said, f"variables.{name}")
        except BadInput as error:
            problem = "" if planned is None else str(error)
    if variable is None and kept is not None:
        variable = Variable.from_table(name, kept, f"variables.{name}")
    if variable is None:
        variable = Variable(name, Kind.CATEGORICAL, Role.IDENTIFIER)
    if planned is not None and kept is None and missing is None:
        problem = f"variables.{name}: the file has no such column"
    return VariableLine(variable, planned is not None, kept is not None, missing, problem, tables.why.get(name, ""))


def found_columns(directory: Path, dataset_id: int, variables: tuple[Variable, ...]) -> tuple[FoundColumn, ...]:
    """What the values of some stored columns are like when they are read so. Raises DamagedTable.

    The workspace need not be open: this is to be called in a process of its own.
    """
    with Workspace.open(directory, read_only=True) as workspace:
        dataset = workspace.dataset(dataset_id)
        asked = [variable for variable in variables if variable.name in dataset.schema]
        at_once = max(1, READ_AT_ONCE // max(1, dataset.records))
        found: list[FoundColumn] = []
        for first in range(0, len(asked), at_once):
            some = asked[first : first + at_once]
            schema = Schema(tuple(dataset.schema[variable.name] for variable in some))
            data = workspace.tables.read_microdata(dataset.table_sha256, schema, dataset.origin)
            found += (_found(variable, data, dataset.dropped) for variable in some)
    return tuple(found)


def _found(variable: Variable, data: Microdata, dropped: int) -> FoundColumn:
    stored, name, problem = data.schema[variable.name], variable.name, ""
    own = data
    if not all(getattr(variable, part) == getattr(stored, part) for part in ("kind", "bounds", "levels", "missing")):
        try:
            own = _conformed(data, variable)
        except BadInput as error:
            problem = str(error)
    found = profile(own, name)
    return FoundColumn(name, found, None if dropped else 1 - found.records / len(data), problem)


def _conformed(data: Microdata, variable: Variable) -> Microdata:
    from sfumato.engine.data.microdata import conform_to_schema

    return conform_to_schema(data.frame[[variable.name]], Schema((variable,)), MissingPolicy.DROP)
