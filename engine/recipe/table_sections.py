"""Recipe sections ``[[table]]`` and ``[tables]``: the tables to print, and when one of their cells is unsafe.

    [[table]]
    name = "turnover"
    by = ["region", "trade"]
    value = "turnover"
    hierarchies = { region = "regions.hrc" }
    also = { region = { coast = [["r1", "coast"], ["r2", "inland"]] } }

    [tables]
    threshold = 3
    p_percent = 15

Texts of files are in the recipe by then: trees, groupings, and cells that are decided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self, TypeGuard

import numpy as np

from ..constraints.binding import LevelComparison, bound_terms
from ..constraints.constraints import require_levels
from ..data.conditions import parse_condition
from ..data.declaration import Param, Section
from ..data.schema import Kind, Schema, check_variable_names
from ..errors import BadInput, near_miss_hint
from ..partition.hierarchies import Hierarchy, interval_hierarchy
from ..tables.rules import TableRules, Weighting, Zeros
from ..wording import count_noun

MOST_TABLES = 500
COST_OF_SIZE, COST_OF_CELL = "value", "cells"
LEVELLED = (Kind.CATEGORICAL, Kind.ORDINAL, Kind.BINARY)
NUMBERS = (Kind.COUNT, Kind.CONTINUOUS)
CellStatus = Literal["unsafe", "hidden", "safe", "published"]


@dataclass(frozen=True, slots=True)
class SecondGroupings(Section):
    """Groupings of the values of one variable that need not nest: of other variables, or of rows of value and group.

    variables: variables whose values are the groups
    rows: by name of the grouping, the value and its group of each row; a value without a row is in no group
    """

    unwritten: ClassVar[tuple[str, ...]] = ("variables", "rows")

    variables: tuple[str, ...] = ()
    rows: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read the groupings of a recipe: a variable, a list of variables, or rows by name. Raises ValueError."""
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls((value,))
        if isinstance(value, list | tuple) and value and all(isinstance(one, str) for one in value):
            return cls(tuple(value))
        if isinstance(value, Mapping) and value:
            return cls(rows={str(name): _parse_rows(name, rows) for name, rows in value.items()})
        raise ValueError(
            'must be a variable, such as "coast", a list of variables, or rows by name, such as '
            '{ coast = [["r1", "north"], ["r2", "south"]] }'
        )

    def to_table(self) -> Any:
        """Return what ``parse`` reads back to equal groupings."""
        if self.rows:
            return {name: [list(row) for row in rows] for name, rows in self.rows.items()}
        return self.variables[0] if len(self.variables) == 1 else list(self.variables)


def _parse_rows(name: object, rows: object) -> tuple[tuple[str, ...], ...]:
    """Return rows of a value and its groups. Raises ValueError."""
    if not isinstance(rows, list | tuple) or not rows or not all(isinstance(row, list | tuple) for row in rows):
        raise ValueError(f'"{name}" must be rows of a value and its group, such as [["r1", "north"]]')
    written = tuple(tuple(str(cell) for cell in row) for row in rows)
    if min(map(len, written)) < 2 or len(set(map(len, written))) > 1:
        raise ValueError(f'"{name}": every row needs a value and as many groups as the others')
    values = [row[0] for row in written]
    if len(set(values)) < len(values):
        again = next(one for at, one in enumerate(values) if one in values[:at])
        raise ValueError(f'"{name}": "{again}" has {count_noun(values.count(again), "row")}; leave one')
    return written


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTable(Section):
    """Table to print, as a recipe's ``[[table]]`` states it."""

    example: ClassVar[str] = '{ by = ["region", "trade"], value = "turnover" }'

    name: Annotated[str, Param("what the table is called")]
    by: Annotated[
        tuple[str, ...], Param("the variables that it has rows and columns by; left out, one total", names="variables")
    ] = ()
    value: Annotated[
        str | None, Param("the variable that it adds up; left out, it counts records", names="variables", kinds=NUMBERS)
    ] = None
    unit: Annotated[
        str | None,
        Param(
            "the variable that numbers who is protected, such as the enterprise group; left out, that of the role unit",
            names="variables",
        ),
    ] = None
    weights: Annotated[
        str | None, Param("the sampling weight of each record; left out, none", names="variables", kinds=NUMBERS)
    ] = None
    hierarchies: Annotated[
        Mapping[str, Hierarchy],
        Param(
            "trees by variable, whose nodes are rows too: rows of a value and its nodes up to the root, or a file",
            names="variables",
            kinds=LEVELLED,
        ),
    ] = field(default_factory=dict)
    widths: Annotated[
        Mapping[str, tuple[float, ...]],
        Param(
            "widths of the groups of a number by variable, each a multiple of the one before; of dates in days",
            gt=0,
            names="variables",
            kinds=(*NUMBERS, Kind.DATE),
        ),
    ] = field(default_factory=dict)
    levels: Annotated[
        Mapping[str, tuple[int, ...]],
        Param(
            "which levels of a tree or of widths are printed by variable, 0 for the values; left out, all",
            ge=0,
            names="variables",
            unique=True,
        ),
    ] = field(default_factory=dict)
    also: Annotated[
        Mapping[str, SecondGroupings],
        Param("second groupings by variable, which need not nest: a variable, or rows by name", names="variables"),
    ] = field(default_factory=dict)
    without_total: Annotated[
        tuple[str, ...], Param("variables that no total is printed over, such as years", names="variables")
    ] = ()
    where: Annotated[str, Param('the records that it is of, such as "age >= 15"; left out, all')] = ""

    @classmethod
    def from_table(cls, table: Mapping[str, Any], place: str, schema: Schema) -> Self:
        """Create the table that an entry of ``[[table]]`` describes. Raises BadInput."""
        found = cls.read_section(table, place)
        if not found.name.strip():
            raise BadInput(f"{place}.name", 'must be text, such as "turnover by region"')
        check_variable_names(found, schema, place)
        _check_names(found, schema, place)
        _check_axes(found, schema, place)
        if found.where:
            _check_condition(found.where, schema, f"{place}.where")
        return found

    @property
    def measure(self) -> str:
        """Return the name of what it adds up; tables of one measure add up the same numbers."""
        own = self.value or "count"
        return f"{own} weighted by {self.weights}" if self.weights else own

    def printed_levels(self, name: str) -> tuple[int, ...]:
        """Return the levels of the tree, or of the widths, of a variable that the table prints, ascending.

        The root is no level: it is the total.
        """
        if name in self.hierarchies:
            every = range(self.hierarchies[name].height)
        else:
            every = range(1, len(self.widths[name]) + 1) if name in self.widths else range(1)
        return tuple(level for level in every if level in self.levels.get(name, tuple(every)))


def _check_names(table: PlannedTable, schema: Schema, place: str) -> None:
    """Raise BadInput where a table names a variable that cannot be there."""
    named = [(f"by[{i}]", name) for i, name in enumerate(table.by)]
    named += [("value", table.value)] if table.value else []
    for name, groupings in table.also.items():
        named += [(f"also.{name}", other) for other in groupings.variables]
    for at, name in named:
        role = schema.require_variable(name, f"{place}.{at}").role
        if role.is_identifier:
            raise BadInput(
                f"{place}.{at}", f'"{name}" is the role {role}, and its values name somebody; leave it out of tables'
            )
    for key in ("hierarchies", "widths", "levels", "also"):
        for name in getattr(table, key):
            if name not in table.by:
                raise BadInput(f"{place}.{key}.{name}", f'the table is not by "{name}"; add it to by, or leave it out')
    for i, name in enumerate(table.without_total):
        if name not in table.by:
            raise BadInput(f"{place}.without_total[{i}]", f'the table is not by "{name}"; leave it out')


def _check_axes(table: PlannedTable, schema: Schema, place: str) -> None:
    """Raise BadInput where a variable has no rows, or a level that its tree does not have."""
    for i, name in enumerate(table.by):
        kind = schema[name].kind
        if kind in (Kind.CONTINUOUS, Kind.DATE) and name not in table.widths:
            raise BadInput(
                f"{place}.by[{i}]",
                f'"{name}" is {kind} and has no groups; say their widths, widths = {{ {name} = [10] }}',
            )
        for other in table.also[name].variables if name in table.also else ():
            if not schema[other].kind.has_levels:
                raise BadInput(
                    f"{place}.also.{name}", f'"{other}" is {schema[other].kind}; this needs {" or ".join(LEVELLED)}'
                )
            if other == name:
                raise BadInput(f"{place}.also.{name}", f'"{name}" is no second grouping of itself; leave it out')
        if name in table.also and table.also[name].rows and not kind.has_levels:
            raise BadInput(f"{place}.also.{name}", f'"{name}" is {kind}; rows group values with levels alone')
    for name, widths in table.widths.items():
        try:
            # Any number will do: only the widths are checked.
            interval_hierarchy(np.zeros(1), widths)
        except ValueError as error:
            raise BadInput(f"{place}.widths.{name}", str(error)) from None
        if not widths:
            raise BadInput(f"{place}.widths.{name}", "has no width; say one, such as [10]")
    for name, levels in table.levels.items():
        if not table.printed_levels(name) or set(levels) - set(table.printed_levels(name)):
            raise BadInput(f"{place}.levels.{name}", _levels_message(table, name))


def _levels_message(table: PlannedTable, name: str) -> str:
    """Return the message for levels that are none of a variable's."""
    if name in table.widths:
        most = len(table.widths[name])
        return f"must be levels of its widths, from 1 to {most}; left out, all are printed"
    if name not in table.hierarchies:
        return f'"{name}" has neither a tree nor widths, so it has its values alone; leave it out'
    most = table.hierarchies[name].height - 1
    return f"must be levels of its tree, from 0, the values, to {most}; the root above them is the total"


def _check_condition(text: str, schema: Schema, place: str) -> None:
    """Raise BadInput where a condition has another form, or names what is no variable."""
    try:
        condition = parse_condition(text)
    except ValueError as error:
        raise BadInput(place, str(error)) from None
    for bound in bound_terms(condition, schema, place):
        if isinstance(bound, LevelComparison) and (levels := schema[bound.column].levels):
            require_levels(bound, levels, place)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedCell(Section):
    """Cell of a table whose protection the recipe decides, a line of an a priori file.

    status: "unsafe" is hidden as if a rule had found it, "hidden" is hidden and may follow from others, "safe" is found
        by no rule but may be hidden for others, "published" is printed whatever the others need
    """

    example: ClassVar[str] = '{ table = "turnover", cell = { region = "north" }, status = "published" }'

    table: Annotated[str, Param("the table that it is of")]
    cell: Annotated[
        Mapping[str, str], Param("the label of each variable; a variable that is left out is summed over", parse=str)
    ] = field(default_factory=dict)
    status: Annotated[CellStatus | None, Param("whether it is hidden, or printed; left out, as the rules say")] = None
    level: Annotated[
        float | None,
        Param(
            "how far above its value it must stay possible at least where it is unsafe; left out, as the rules say",
            gt=0,
        ),
    ] = None
    cost: Annotated[float | None, Param("what hiding it costs, in place of its own cost", gt=0)] = None
    factor: Annotated[float | None, Param("how many times its own cost hiding it costs", gt=0)] = None

    def check_fields(self, place: str) -> None:
        """Raise BadInput where nothing is decided."""
        if all(one is None for one in (self.status, self.level, self.cost, self.factor)):
            raise BadInput(place, 'decides nothing; say a status, such as status = "published", or a cost')
        if self.level is not None and self.status not in (None, "unsafe"):
            raise BadInput(f"{place}.level", f"an unsafe cell has one, this is {self.status}; leave it out")
        if self.cost is not None and self.factor is not None:
            raise BadInput(f"{place}.factor", "the cost is said already; leave one of the two out")


def _parse_dominance(value: object) -> tuple[tuple[int, float], ...]:
    """Return rules of dominance from [n, k], or a list of such. Raises ValueError."""
    pairs = (
        value if isinstance(value, list | tuple) and all(isinstance(one, list | tuple) for one in value) else [value]
    )
    found = []
    for pair in pairs:
        if not _is_pair(pair) or not isinstance(pair[0], int):
            raise ValueError(f"{pair!r} must be n and k in percent, such as [2, 85], or a list of such")
        found.append((int(pair[0]), float(pair[1])))
    return tuple(found)


def _parse_prior_posterior(value: object) -> tuple[float, float]:
    """Return p and q. Raises ValueError."""
    if not _is_pair(value):
        raise ValueError(f"{value!r} must be p and q in percent, such as [10, 40]")
    return float(value[0]), float(value[1])


def _is_pair(value: Any) -> TypeGuard[tuple[float, float]]:
    """Return whether a value is two numbers."""
    numbers = isinstance(value, list | tuple) and all(type(one) in (int, float) for one in value)
    return numbers and len(value) == 2 and all(map(math.isfinite, value))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProtection(Section):
    """Rules for all tables of a recipe, as its ``[tables]`` states them."""

    threshold: Annotated[int | None, Param("the fewest units of a cell that is printed", ge=1)] = None
    dominance: Annotated[
        Any,
        Param(
            "n and k in percent: a cell is unsafe where its n largest units have more than k; or a list of such",
            parse=_parse_dominance,
        ),
    ] = ()
    p_percent: Annotated[
        float | None,
        Param("p: a cell is unsafe where a unit could estimate the largest one to within p percent", gt=0),
    ] = None
    prior_posterior: Annotated[
        Any,
        Param(
            "p and q: as p_percent, where everybody knows the others to within q percent already",
            parse=_parse_prior_posterior,
        ),
    ] = None
    zeros: Annotated[Zeros, Param("whether cells without records are printed, or unsafe")] = "safe"
    weights: Annotated[
        Weighting,
        Param("whether a record of weight w counts as w contributors, or the weighted total is compared with records"),
    ] = "expanded"
    cost: Annotated[
        str, Param("what hiding a cell costs: value, its own; cells, 1 for each; or the sum of a variable")
    ] = COST_OF_SIZE
    fixed: Annotated[tuple[FixedCell, ...], Param("cells that are decided: a list, or an a priori file")] = ()
    changes: Annotated[
        bool, Param("whether the changes since an earlier release of a table are protected as its cells are")
    ] = True

    @classmethod
    def from_table(
        cls, table: Mapping[str, Any], tables: Sequence[PlannedTable], schema: Schema
    ) -> TableProtection | None:
        """Create the section of a recipe's ``[tables]``; None without tables. Raises BadInput."""
        if not tables:
            if table:
                raise BadInput("tables", "there is no table that these rules are for; add [[table]], or leave them out")
            return None
        found = cls.read_section(table, "tables")
        rules = found.rules
        if not (rules.threshold or rules.judges_sizes or rules.zeros == "unsafe"):
            raise BadInput("tables", "no rule says when a cell is unsafe; add one, such as threshold = 10")
        if rules.judges_sizes and not any(one.value for one in tables):
            key = next(key for key in ("dominance", "p_percent", "prior_posterior") if getattr(found, key))
            raise BadInput(
                f"tables.{key}",
                "is a rule for sums of values, and no table has a value; add a threshold, or leave it out",
            )
        found._check_cost(schema)
        for i, cell in enumerate(found.fixed):
            _check_fixed_cell(cell, tables, f"tables.fixed[{i}]")
        return found

    @property
    def rules(self) -> TableRules:
        """Return the rules by which a cell is unsafe in itself. Raises BadInput for numbers that are no rule."""
        return TableRules(
            self.threshold or 0, self.dominance, self.p_percent, self.prior_posterior, self.zeros, self.weights
        )

    def _check_cost(self, schema: Schema) -> None:
        """Raise BadInput where the cost is neither a word nor a number of each record."""
        if self.cost in (COST_OF_SIZE, COST_OF_CELL):
            return
        if self.cost not in schema:
            hint = near_miss_hint(self.cost, (COST_OF_SIZE, COST_OF_CELL, *schema.names))
            raise BadInput(
                "tables.cost", f'"{self.cost}" is neither {COST_OF_SIZE}, {COST_OF_CELL} nor a variable{hint}'
            )
        if (kind := schema[self.cost].kind) not in NUMBERS:
            raise BadInput("tables.cost", f'"{self.cost}" is {kind}; this needs {" or ".join(NUMBERS)}')


def _check_fixed_cell(cell: FixedCell, tables: Sequence[PlannedTable], place: str) -> None:
    """Raise BadInput where a decided cell is of no table, or of a variable that its table does not have."""
    names = [one.name for one in tables]
    if cell.table not in names:
        raise BadInput(f"{place}.table", f'there is no table "{cell.table}"{near_miss_hint(cell.table, names)}')
    by = tables[names.index(cell.table)].by
    for name in cell.cell:
        if name not in by:
            raise BadInput(f"{place}.cell.{name}", f'the table is not by "{name}"{near_miss_hint(name, by)}')


def read_planned_tables(tables: Sequence[Mapping[str, Any]], schema: Schema) -> tuple[PlannedTable, ...]:
    """Return the tables of a recipe's ``[[table]]``, in order. Raises BadInput."""
    if len(tables) > MOST_TABLES:
        raise BadInput("table", f"at most {MOST_TABLES} tables; this has {len(tables):,}")
    found = tuple(PlannedTable.from_table(table, f"table[{i}]", schema) for i, table in enumerate(tables))
    unit_of = dict[str, tuple[str, str | None]]()
    for i, one in enumerate(found):
        if one.name in [other.name for other in found[:i]]:
            raise BadInput(f"table[{i}].name", f'two tables are called "{one.name}"; give each its own name')
        unit = one.unit or schema.unit
        other, its_unit = unit_of.setdefault(one.measure, (one.name, unit))
        if its_unit != unit:
            raise BadInput(
                f"table[{i}].unit",
                f'is not that of "{other}", which adds up the same numbers; protect both by one unit, the larger one',
            )
    return found


def refuse_tables(tables: Sequence[PlannedTable]) -> None:
    """Raise BadInput where a plan that is to be searched has tables."""
    if tables:
        # A search that left them out would look as if it had judged them.
        raise BadInput(
            "table[0]",
            "a search compares plans of datasets, and tables are the same in all of them; leave [[table]] and [tables] out, and "
            "run the plan with them afterwards",
        )
