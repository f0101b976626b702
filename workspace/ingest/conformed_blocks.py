"""Records of a long file, conformed to a schema some rows at a time, as ``microdata_from_table`` does all at once.

The levels, dates and texts of a column are converted once for each of its distinct values, its numbers in each block.
Everything is checked before the first block is given out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato.engine.data.affected_group import AffectedGroup
from sfumato.engine.data.distinct_values import NO_VALUE_CODE
from sfumato.engine.data.microdata import Microdata, check_columns, conform_to_schema
from sfumato.engine.data.missing_codes import mask_missing_codes, missing_value_codes
from sfumato.engine.data.schema import Kind, MissingPolicy, Origin, Schema, Variable
from sfumato.engine.data.table_blocks import hash_of_blocks
from sfumato.engine.data.units import code_unit_numbers
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.data_source import DataSource

from .distinct_values import distinct_of_spooled
from .raw_tables import RawTable
from .reserved_names import check_reserved_names
from .spooled_columns import SpooledColumn, count_distinct_numbers

ROWS_AT_ONCE = 1 << 20
"""Rows that are looked at together."""


@dataclass(frozen=True, eq=False)
class ConformedBlocks:
    """Records of a long file that conform to a schema and are read in blocks.

    schema: the variables
    columns: their columns
    origin: whether they are confidential or released
    most_rows: number of records of a block, at most
    dropped, file_records, missing_counts, affected_group: as in ``Microdata``; no record was dropped
    """

    schema: Schema
    columns: Sequence[_ConformedColumn]
    origin: Origin
    file_records: int
    most_rows: int
    dropped: int = 0
    missing_counts: Mapping[str, int] = field(default_factory=dict)
    affected_group: AffectedGroup | None = None

    def __len__(self) -> int:
        return self.file_records

    @property
    def may_have_missing(self) -> bool:
        """Return whether some record lacks a value."""
        return any(column.n_missing for column in self.columns)

    @cached_property
    def slices(self) -> list[slice]:
        """Return the rows of each block, in which units are whole if their records follow each other."""
        n, most, unit = len(self), self.most_rows, self.schema.unit
        plain = [slice(first, min(n, first + most)) for first in range(0, n, most)]
        if unit is None:
            return plain
        column = next(one for one in self.columns if one.variable.name == unit)
        edges, n_begins, first, last = [0], 0, 0, 0
        fits = True
        for begins in self._iterate_begins(column):
            n_begins += len(begins)
            while fits and len(begins) and begins[-1] > first + most:
                at = int(np.searchsorted(begins, first + most, side="right"))
                end = int(begins[at - 1]) if at else last
                fits, first = end > first, end
                edges.append(end)
            last = int(begins[-1]) if len(begins) else last
        while fits and n - first > most:
            fits, first = last > first, last
            edges.append(last)
        whole = fits and n_begins <= column.n_units + column.n_missing
        return [slice(*pair) for pair in zip(edges, [*edges[1:], n], strict=True)] if whole else plain

    @property
    def n_blocks(self) -> int:
        """Return the number of blocks."""
        return len(self.slices)

    @property
    def head(self) -> Microdata:
        """Return the table without its records: variables, levels, dtypes."""
        return self.read_block(slice(0, 0))

    @cached_property
    def data_sha256(self) -> str:
        """Return the hash that ``Microdata.sha256`` has of the records."""
        return hash_of_blocks(self)

    def read_block(self, rows: slice, names: Sequence[str] | None = None) -> Microdata:
        """Return some consecutive records, with the levels of all. Raises BadInput where the disk cannot be read."""
        frame, kinds = {}, {}
        schema = self.schema if names is None else self.schema.select_variables(names)
        for column in self.columns:
            name = column.variable.name
            if name not in schema:
                continue
            frame[name], own = column.read_rows(rows.start, rows.stop)
            if own is not None:
                kinds[name] = own
        given = pd.DataFrame(kinds) if kinds else None
        return Microdata(schema, pd.DataFrame(frame, copy=False), self.origin, kinds=given)

    def iterate_blocks(
        self, names: Sequence[str] | None = None, numbers: Collection[int] | None = None
    ) -> Iterator[Microdata]:
        """Yield the records of these variables, of all for None, block by block; of the blocks of these numbers alone."""
        for number, rows in enumerate(self.slices):
            if numbers is None or number in numbers:
                yield self.read_block(rows, names)

    def read_whole(self) -> Microdata:
        """Return all records at once."""
        return replace(self.read_block(slice(0, len(self))), file_records=self.file_records)

    def _iterate_begins(self, column: _ConformedColumn) -> Iterator[NDArray[np.int64]]:
        """Yield the rows at which a value of a column begins that the row before does not have, block by block."""
        before: Any = None
        for first in range(0, len(self), ROWS_AT_ONCE):
            values, _ = column.read_rows(first, min(len(self), first + ROWS_AT_ONCE))
            own = values.to_numpy()
            if isinstance(values.dtype, pd.CategoricalDtype):
                # the code -1 of a record without a unit selects the appended last entry
                own = np.append(_units_of_levels(values), NO_VALUE_CODE)[values.cat.codes.to_numpy()]
            lacks = values.isna().to_numpy()
            begins = np.append(before is None or bool(lacks[0]) or own[0] != before, (own[1:] != own[:-1]) | lacks[1:])
            before = own[-1]
            yield np.flatnonzero(begins) + first


@dataclass(frozen=True, eq=False)
class _ConformedColumn:
    """Column of a long file that conforms to a variable.

    variable: the variable
    column: the column of the file
    n_missing: number of records without a value
    codes: codes of its kinds of missing values, a dtype; None where none occurs
    """

    variable: Variable
    column: SpooledColumn
    n_missing: int
    codes: Any

    @property
    def n_units(self) -> int:
        """Return the number of units that its values number."""
        raise NotImplementedError

    def read_rows(self, first: int, last: int) -> tuple[pd.Series, pd.Series | None]:
        """Return the values of some rows and their kinds of missing values, None where no row of the column has one."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class _ColumnOfValues(_ConformedColumn):
    """Column each of whose distinct values (k,) was conformed.

    conformed: conformed values, (k,)
    kinds: kinds of missing values, (k,), where some have one
    lookup: the numbers of the file that these were, ascending, (k,); None where the column has codes of them
    """

    conformed: pd.Series
    kinds: pd.Series | None
    lookup: NDArray[Any] | None

    @property
    def n_units(self) -> int:
        used = self.conformed.dropna()
        if not isinstance(used.dtype, pd.CategoricalDtype):
            return int(used.nunique())
        return len(np.unique(_units_of_levels(used)[used.cat.codes.to_numpy()]))

    def read_rows(self, first: int, last: int) -> tuple[pd.Series, pd.Series | None]:
        places = _places_of_rows(self.column, self.lookup, first, last)
        kinds = None if self.kinds is None else pd.Series(_take_values(self.kinds, places))
        found = pd.Series(_take_values(self.conformed, places))
        floats = self.variable.kind is Kind.COUNT and self.n_missing
        return found.astype(np.float64) if floats else found, kinds


@dataclass(frozen=True, eq=False)
class _ColumnOfNumbers(_ConformedColumn):
    """Column of numbers, which are conformed block by block."""

    @property
    def n_units(self) -> int:
        return count_distinct_numbers(self.column)

    def read_rows(self, first: int, last: int) -> tuple[pd.Series, pd.Series | None]:
        values = self.column.read_series(first, last)
        # that all keep the rules of the variable is checked already
        present = mask_missing_codes(values, self.variable)
        floats = self.variable.kind is not Kind.COUNT or self.n_missing
        found = present.astype(np.float64 if floats else np.int64)
        if self.codes is None:
            return found, None
        own = missing_value_codes(values.to_frame(self.variable.name), Schema((self.variable,)), None)
        kinds = pd.Series(index=found.index, dtype=self.codes) if own is None else own.iloc[:, 0].astype(self.codes)
        return found, kinds


def conform_blocks(
    raw: RawTable, data: DataSource, schema: Schema, origin: Origin, most_rows: int
) -> ConformedBlocks | None:
    """Conform the records of a long file to a schema, in blocks of ``most_rows``; None where they have to be read at once.

    That is where they are few, are filtered, sampled, held out or dropped, where units are not numbered or have
    variables of their own, and where a column is of a type that is not read in blocks. Raises BadInput.
    """
    check_reserved_names(schema.names)
    check_columns(raw.names, schema)
    names = schema.names
    columns = raw.spooled_columns(names)
    unit = schema.unit
    whole = (
        len(columns) < len(names)
        or raw.tags is not None
        or bool(data.where)
        or data.is_random
        or data.sample is not None
        or data.holdout is not None
        or data.screen is not None
        or bool(schema.unit_level)
        or (unit is not None and bool(schema[unit].missing))
    )
    if whole:
        return None
    lacking = {name: _count_missing(columns[name], schema[name]) for name in names}
    required = data.complete_cases if data.missing is MissingPolicy.KEEP else names
    if any(lacking[name] for name in required):
        if data.missing is not MissingPolicy.REFUSE:
            return None
        worst = max(lacking, key=lambda name: lacking[name])
        _raise_for_column(columns[worst], schema[worst], data.missing, origin)
    found = []
    for name in names:
        try:
            found.append(_conform_column(columns[name], schema[name], lacking[name]))
        except BadInput:
            _raise_for_column(columns[name], schema[name], data.missing, origin)
            raise
    return ConformedBlocks(schema, found, origin, raw.records, most_rows)


def _raise_for_column(column: SpooledColumn, variable: Variable, policy: MissingPolicy, origin: Origin) -> None:
    """Raise BadInput as a column in memory does: with the number of records that break its rule."""
    conform_to_schema(column.read_series(0, len(column)).to_frame(variable.name), Schema((variable,)), policy, origin)


def _count_missing(column: SpooledColumn, variable: Variable) -> int:
    """Return how many records have no value, or a missing code."""
    if column.values is None:
        return sum(int(mask_missing_codes(some, variable).isna().sum()) for some in column.iterate_series(ROWS_AT_ONCE))
    # the code -1 of a record without a value selects the appended last entry
    missing = np.append(mask_missing_codes(column.values, variable).isna().to_numpy(), True)
    starts = range(0, len(column), ROWS_AT_ONCE)
    return sum(int(missing[column.read_numbers(i, min(len(column), i + ROWS_AT_ONCE))].sum()) for i in starts)


def _conform_column(column: SpooledColumn, variable: Variable, n_missing: int) -> _ConformedColumn:
    """Return a column as the variable has it. Raises BadInput."""
    if n_missing == len(column):
        raise BadInput(f"variables.{variable.name}", "no record has a value")
    if column.values is None and variable.kind in (Kind.COUNT, Kind.CONTINUOUS):
        return _ColumnOfNumbers(variable, column, n_missing, _check_numbers(column, variable))
    lookup = None
    values = column.values
    if values is None:
        # a level or a date is what all records with its number have
        distinct = distinct_of_spooled(column, keep_all=True).values.dropna()
        lookup = np.unique(distinct.to_numpy())
        values = pd.Series(lookup)
    whole = conform_to_schema(values.to_frame(variable.name), Schema((variable,)), MissingPolicy.KEEP)
    kinds = None if whole.kinds is None else whole.kinds.iloc[:, 0]
    return _ColumnOfValues(
        variable, column, n_missing, None if kinds is None else kinds.dtype, whole.frame[variable.name], kinds, lookup
    )


def _check_numbers(column: SpooledColumn, variable: Variable) -> Any:
    """Return the type of a column's kinds of missing values, None where it has none. Raises BadInput for a number that
    breaks a rule of the variable.
    """
    found: set[str] = set()
    for values in column.iterate_series(ROWS_AT_ONCE):
        _conform_numbers(values, variable)
        own = missing_value_codes(values.to_frame(variable.name), Schema((variable,)), None)
        if own is not None:
            found |= set(own.iloc[:, 0].cat.categories)
    # as a column in memory makes it of the codes of its cells
    return pd.Series(sorted(found), dtype="object").astype("category").dtype if found else None


def _conform_numbers(values: pd.Series, variable: Variable) -> pd.Series:
    """Return some numbers of a column (n,) as the variable has them. Raises BadInput."""
    if mask_missing_codes(values, variable).isna().all():
        return pd.Series(np.full(len(values), np.nan))
    return conform_to_schema(values.to_frame(variable.name), Schema((variable,)), MissingPolicy.KEEP).frame[
        variable.name
    ]


def _places_of_rows(column: SpooledColumn, lookup: NDArray[Any] | None, first: int, last: int) -> NDArray[Any]:
    """Return the places of the values of some rows among the distinct ones, -1 for a missing one."""
    if lookup is None:
        return column.read_numbers(first, last)
    values = column.read_series(first, last)
    places = np.searchsorted(lookup, values.to_numpy())
    places[values.isna().to_numpy()] = NO_VALUE_CODE
    return places


def _units_of_levels(values: pd.Series) -> NDArray[np.int64]:
    """Return the unit that each level of a column numbers, (k,), equal where these are one number written differently."""
    return code_unit_numbers(pd.Series(values.cat.categories))


def _take_values(values: pd.Series, places: NDArray[Any]) -> Any:
    """Return the values (n,) at some places, missing ones at -1."""
    held: Any = values.array if isinstance(values.dtype, pd.api.extensions.ExtensionDtype) else values.to_numpy()
    return pd.api.extensions.take(held, places, allow_fill=bool((places < 0).any()))
