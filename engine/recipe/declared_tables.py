"""Tables of a recipe with the records that they are made of, as the engine of tables takes them.

A missing value is a label of its own, at every level of a tree and in every second grouping, so that totals add up. A
record without the value that a table adds up is not in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

import numpy as np

from ..constraints.binding import LevelComparison, bound_terms
from ..constraints.constraints import require_levels
from ..constraints.evaluation import evaluate_constraint
from ..data.arrays import Booleans, Floats, Integers
from ..data.conditions import RecordConstraint, parse_condition
from ..data.microdata import Microdata
from ..data.schema import Kind
from ..data.units import Units, code_unit_numbers
from ..errors import BadInput, near_miss_hint
from ..partition.hierarchies import format_label_number, interval_labels
from ..tables.declared_table import TOTAL, DeclaredTable, Grouping, TableVariable
from ..tables.elimination import ReportSteps, ignore_steps
from ..tables.populations import add_implied_cells
from ..tables.system import EMPTY, TableSystem, build_system
from ..wording import agreeing_word, count_noun, join_first_names
from .table_sections import COST_OF_CELL, COST_OF_SIZE, CellStatus, FixedCell, PlannedTable, TableProtection

if TYPE_CHECKING:
    from ..tables.protection import ProtectedTables

MISSING = "missing"
"""Label of records without a value, where no level is called so."""
MOST_NAMED_LABELS = 12
"""Rows of a table that a message names."""


def declare_tables(data: Microdata, tables: Sequence[PlannedTable], release: str = "") -> list[DeclaredTable]:
    """Return the tables of a recipe over the records of a table of microdata, in order. Raises BadInput.

    ``release`` names what the tables are printed in, beside those of earlier releases.
    """
    return [_declare_table(data, table, release, f"table[{i}]") for i, table in enumerate(tables)]


def _declare_table(data: Microdata, table: PlannedTable, release: str, place: str) -> DeclaredTable:
    """Return one table. Raises BadInput."""
    where = np.ones(len(data), dtype=np.bool_) if not table.where else _select_records(data, table.where, place)
    value = None if table.value is None else data.numbers(table.value)
    if value is not None:
        where &= ~np.isnan(value)
    weights = None if table.weights is None else _read_weights(data, table.weights, where, place)
    if not where.any():
        raise BadInput(place, "no record is in this table; change where, or leave the table out")
    return DeclaredTable(
        table.name,
        tuple(_declare_variable(data, table, name, place) for name in table.by),
        value,
        table.measure,
        _number_units(data, table.unit),
        weights,
        None,
        # A total of records alone has nothing else that says how many there are.
        None if where.all() and table.by else where,
        release,
    )


def _select_records(data: Microdata, text: str, place: str) -> Booleans:
    """Return the records for which a condition is known to hold, (n,). Raises BadInput for a level that nobody has."""
    constraint = RecordConstraint("where", text, parse_condition(text))
    for bound in bound_terms(constraint.rule, data.schema, f"{place}.where"):
        if isinstance(bound, LevelComparison):
            levels = tuple(str(level) for level in data.column(bound.column).cat.categories)
            require_levels(bound, levels, f"{place}.where")
    return evaluate_constraint(constraint, data, data.schema).holds.copy()


def _read_weights(data: Microdata, name: str, where: Booleans, place: str) -> Floats:
    """Return the sampling weight of each record, (n,). Raises BadInput where a record of the table has none."""
    weights = data.numbers(name)
    lacking = int((np.isnan(weights) & where).sum())
    if lacking:
        raise BadInput(
            f"{place}.weights",
            f'{count_noun(lacking, "record")} {agreeing_word(lacking, "has", "have")} no "{name}"; leave them out by where',
        )
    if below := int((weights[where] < 0).sum()):
        raise BadInput(
            f"{place}.weights",
            f'{count_noun(below, "record")} {agreeing_word(below, "has", "have")} a "{name}" below 0; a weight is 0 or more',
        )
    return weights


def _number_units(data: Microdata, name: str | None) -> Integers | None:
    """Return the number of the unit of each record, (n,): that of a variable, or the schema's; None for records."""
    if name is None or name == data.schema.unit:
        return None if data.units is None else data.units.unit_of
    # A record without the number is a unit of its own.
    return Units.from_codes(code_unit_numbers(data.frame[name])).unit_of


def _declare_variable(data: Microdata, table: PlannedTable, name: str, place: str) -> TableVariable:
    """Return a variable of a table with its values, the levels of its tree and its second groupings."""
    if data.schema[name].kind.has_levels:
        groupings = _group_levels(data, table, name, place)
    else:
        groupings = _group_numbers(data, table, name)
    if name in table.also:
        groupings += _group_again(data, table, name, place)
    return TableVariable(name, tuple(groupings), total=name not in table.without_total)


def _group_levels(data: Microdata, table: PlannedTable, name: str, place: str) -> list[Grouping]:
    """Return the values of a variable with levels and the nodes above them, those that the table prints."""
    codes, levels = _level_codes(data, name)
    if name not in table.hierarchies:
        return [_make_grouping("", codes, levels)]
    tree = table.hierarchies[name]
    present = np.unique(codes[codes >= 0]).tolist()
    try:
        tree.rows_of_values([levels[code] for code in present])
    except ValueError as error:
        raise BadInput(f"{place}.hierarchies.{name}", f"{error}; give each a row") from None
    # Nodes above no level of the data are no rows: a tree of all trades has far more than a table.
    rows = [row for row in tree.rows if row[0] in set(levels)]
    return [
        _make_grouping(_level_name(level), *_codes_by_rows(codes, levels, rows, level), missing=codes < 0)
        for level in table.printed_levels(name)
    ]


def _level_name(level: int) -> str:
    """Return the name of the grouping at a level of a tree or of widths; a variable's own values have none."""
    return f"level {level}" if level else ""


def _codes_by_rows(
    codes: Integers, levels: Sequence[str], rows: Sequence[Sequence[str]], column: int
) -> tuple[Integers, list[str]]:
    """Return the group of each record by a column of rows, -1 for none, (n,), and the groups; "" is no group."""
    labels = list(dict.fromkeys(row[column] for row in rows if row[column]))
    number = {label: code for code, label in enumerate(labels)}
    group_of = {row[0]: number.get(row[column], -1) for row in rows}
    groups = np.array([*(group_of.get(level, -1) for level in levels), -1], dtype=np.int64)
    return np.asarray(groups[codes], dtype=np.int64), labels


def _group_numbers(data: Microdata, table: PlannedTable, name: str) -> list[Grouping]:
    """Return the groups of a variable with numbers: those of its widths, or its values."""
    dates = data.schema[name].kind is Kind.DATE
    numbers = np.floor(data.numbers(name)) if dates else data.numbers(name)
    known = ~np.isnan(numbers)
    groupings = []
    for level in table.printed_levels(name):
        codes = np.full(len(numbers), -1, dtype=np.int64)
        if name in table.widths:
            labels, codes[known] = interval_labels(numbers[known], table.widths[name], level, dates=dates)
        else:
            distinct, codes[known] = np.unique(numbers[known], return_inverse=True)
            labels = [format_label_number(number, dates=dates) for number in distinct.tolist()]
        groupings.append(_make_grouping(_level_name(level), codes, labels))
    return groupings


def _group_again(data: Microdata, table: PlannedTable, name: str, place: str) -> list[Grouping]:
    """Return the second groupings of a variable: by other variables, or by rows of value and groups."""
    also = table.also[name]
    groupings = [_make_grouping(other, *_level_codes(data, other)) for other in also.variables]
    for title, rows in also.rows.items():
        codes, levels = _level_codes(data, name)
        if not {row[0] for row in rows} & set(levels):
            raise BadInput(f"{place}.also.{name}.{title}", f'names no value of "{name}" that a record has')
        last = len(rows[0])
        if last > 2 and len({row[-1] for row in rows}) == 1:
            # The root of a tree is the total.
            last -= 1
        groupings += [
            _make_grouping(
                title if column == 1 else f"{title} {column}",
                *_codes_by_rows(codes, levels, rows, column),
                missing=codes < 0,
            )
            for column in range(1, last)
        ]
    return groupings


def _level_codes(data: Microdata, name: str) -> tuple[Integers, list[str]]:
    """Return the code of each record, -1 where it has no value, (n,), and the levels."""
    column = data.column(name)
    return np.asarray(column.cat.codes, dtype=np.int64), [str(level) for level in column.cat.categories]


def _make_grouping(name: str, codes: Integers, labels: Sequence[str], missing: Booleans | None = None) -> Grouping:
    """Return a grouping in which the records without a value, by default those of no group, are a group of their own."""
    lacking = codes < 0 if missing is None else missing
    if not lacking.any():
        return Grouping(name, codes, tuple(labels))
    label = MISSING
    while label in labels:
        label += "*"
    return Grouping(name, np.where(lacking, len(labels), codes), (*labels, label))


@dataclass(frozen=True, eq=False)
class DecidedCells:
    """What a recipe decides of the cells of a system before any rule does.

    costs: what hiding each cell costs, (cells,)
    levels: how far from its value a cell must stay possible, 0 where the rules say it, (cells,)
    unsafe: hidden as if a rule had found it, (cells,)
    hidden: hidden, and may follow from others, (cells,)
    safe: found by no rule, (cells,)
    published: printed whatever others need, (cells,)
    without_records: entries of ``fixed`` that are of cells without records, which are no cells of the system
    """

    costs: Floats
    levels: Floats
    unsafe: Booleans
    hidden: Booleans
    safe: Booleans
    published: Booleans
    without_records: tuple[int, ...]


def decide_cells(
    system: TableSystem,
    data: Microdata,
    tables: Sequence[PlannedTable],
    protection: TableProtection,
    release: str = "",
) -> DecidedCells:
    """Return the costs of cells, and those whose status the recipe fixes.

    ``system`` is that of ``declare_tables(data, tables, release)``, beside tables of other releases or not. Raises
    BadInput at ``tables.fixed[i]``.
    """
    costs = _cell_costs(system, data, tables, protection.cost, release)
    levels = np.zeros(system.cell_count)
    status = dict[int, tuple[str, int]]()
    without_records = list[int]()
    for i, fixed in enumerate(protection.fixed):
        cell = find_fixed_cell(system, fixed, f"tables.fixed[{i}]", release)
        if cell == EMPTY:
            without_records.append(i)
            continue
        if fixed.status is not None:
            earlier, its_place = status.setdefault(cell, (fixed.status, i))
            if earlier != fixed.status:
                raise BadInput(
                    f"tables.fixed[{i}]",
                    f"is {fixed.status}, and tables.fixed[{its_place}], which has the same records, is {earlier}; "
                    "leave one out",
                )
        if fixed.level is not None:
            levels[cell] = max(levels[cell], fixed.level)
        if fixed.cost is not None:
            costs[cell] = fixed.cost
        if fixed.factor is not None:
            costs[cell] *= fixed.factor
    masks = {word: np.zeros(system.cell_count, dtype=np.bool_) for word in get_args(CellStatus)}
    for cell, (word, _) in status.items():
        masks[word][cell] = True
    return DecidedCells(
        costs, levels, masks["unsafe"], masks["hidden"], masks["safe"], masks["published"], tuple(without_records)
    )


def find_fixed_cell(system: TableSystem, fixed: FixedCell, place: str, release: str = "") -> int:
    """Return the cell that an entry of ``fixed`` names, ``EMPTY`` where it has no records. Raises BadInput.

    A label that stands in several groupings is accepted where all of them are one cell.
    """
    printed = next((one for one in system.tables if (one.name, one.release) == (fixed.table, release)), None)
    if printed is None:
        raise BadInput(f"{place}.table", f'there is no table "{fixed.table}"')
    axes = [
        _places_of_label(fixed, variable, options, place)
        for variable, options in zip(printed.variables, printed.options, strict=True)
    ]
    cells = {int(printed.cells[places]) for places in itertools.product(*axes)}
    if len(cells) > 1:
        raise BadInput(
            f"{place}.cell", "a label stands in several groupings; write the grouping before it, such as level 1:north"
        )
    return cells.pop()


def check_fixed_cells(declared: Sequence[DeclaredTable], protection: TableProtection) -> None:
    """Raise BadInput where an entry of ``fixed`` names a row that its table does not have, with those that it has."""
    tables = {one.name: one for one in declared}
    for i, fixed in enumerate(protection.fixed):
        place = f"tables.fixed[{i}]"
        for variable in tables[fixed.table].variables:
            _places_of_label(fixed, variable.name, variable.options, place)


def _places_of_label(fixed: FixedCell, variable: str, options: Sequence[tuple[str, str]], place: str) -> list[int]:
    """Return the places of an axis with the label of an entry of ``fixed``. Raises BadInput where there is none."""
    label = fixed.cell.get(variable, TOTAL)
    found = [at for at, (grouping, text) in enumerate(options) if label in (text, f"{grouping}:{text}")]
    if not found:
        labels = list(dict.fromkeys(text for _, text in options if text))
        words, hint = (f'no row "{label}"', near_miss_hint(label, labels)) if label else ("no total", "")
        rows = join_first_names(labels, MOST_NAMED_LABELS)
        raise BadInput(f"{place}.cell.{variable}", f'"{fixed.table}" has {words}; its rows are {rows}{hint}')
    return found


def _cell_costs(
    system: TableSystem, data: Microdata, tables: Sequence[PlannedTable], cost: str, release: str
) -> Floats:
    """Return what hiding each cell costs: its size, 1, or the sum of a variable over its records, (cells,)."""
    if cost == COST_OF_CELL:
        return np.ones(system.cell_count)
    costs = np.abs(system.values)
    if cost == COST_OF_SIZE:
        return costs
    # The same tables of the variable have the same places.
    own = [replace(table, value=cost, weights=None) for table in tables]
    sums = build_system(declare_tables(data, own, release))
    for printed in sums.tables:
        cells = next(one.cells for one in system.tables if (one.name, one.release) == (printed.name, release))
        inside = (cells >= 0) & (printed.cells >= 0)
        costs[cells[cells >= 0]] = 0.0
        costs[cells[inside]] = np.abs(sums.values[printed.cells[inside]])
    return costs


@dataclass(frozen=True, eq=False)
class RecipeTables:
    """Tables of a recipe as one system, with the cells that are hidden.

    system: atoms and cells
    decided: what the recipe decides of single cells
    protected: which cells are hidden, and what a reader finds out
    frozen: cells that are printed whatever follows, (cells,)
    are_zeros_hidden: whether cells without records are hidden, those that are no cells of the system among them
    are_contributors_examined: whether contributors, who know their own part of each cell, were looked at
    """

    system: TableSystem
    decided: DecidedCells
    protected: ProtectedTables
    frozen: Booleans
    are_zeros_hidden: bool = False
    are_contributors_examined: bool = True


def protect_recipe_tables(
    data: Microdata,
    tables: Sequence[PlannedTable],
    protection: TableProtection,
    release: str = "",
    earlier: Sequence[DeclaredTable] = (),
    frozen: Callable[[TableSystem], Integers] | None = None,
    contributors: Callable[[TableSystem], bool] = lambda _: True,
    widen: Callable[[list[DeclaredTable]], list[DeclaredTable]] = lambda declared: declared,
    report: ReportSteps = ignore_steps,
) -> RecipeTables:
    """Return the tables of a recipe protected by its rules.

    Args:
        data: the records
        tables: the tables
        protection: the rules
        release: name of this release
        earlier: tables of earlier releases, over the records that ``widen`` gives
        frozen: from the system, the cells that these printed; by default all of their cells
        contributors: from the system, whether to protect against contributors, who know their own part of each cell
        widen: from the declared tables, the same over all people of all releases; by default they are these records
        report: takes how far it has come

    Raises BadInput.
    """
    declared = widen(declare_tables(data, tables, release))
    system = build_system([*declared, *earlier], complete=protection.zeros == "unsafe")
    system = add_implied_cells(system, protection.rules, release)
    if frozen is not None:
        printed = frozen(system)
    else:
        cells = [system.cells_of_release(name) for name in _other_releases(system, release)]
        printed = np.concatenate(cells or [np.zeros(0, dtype=np.int64)])
    return protect_system(
        system, data, tables, protection, release, printed, contributors=contributors(system), report=report
    )


def _other_releases(system: TableSystem, release: str) -> list[str]:
    """Return the releases of a system besides one, in the order of their names."""
    return sorted({one.release for one in system.tables} - {release})


def protect_system(
    system: TableSystem,
    data: Microdata,
    tables: Sequence[PlannedTable],
    protection: TableProtection,
    release: str,
    printed: Integers,
    *,
    contributors: bool,
    report: ReportSteps = ignore_steps,
) -> RecipeTables:
    """Return the tables of a recipe protected in a system that was built of them, and of earlier releases.

    ``printed`` are the cells that earlier releases printed. Raises BadInput.
    """
    from ..tables.protection import protect_tables

    decided = decide_cells(system, data, tables, protection, release)
    frozen_cells = np.union1d(printed, np.flatnonzero(decided.published)).astype(np.int64)
    protected = protect_tables(
        system,
        protection.rules,
        contributors=contributors,
        cost=decided.costs,
        frozen=frozen_cells,
        hidden_by_hand=np.flatnonzero(decided.unsafe | decided.hidden),
        safe=np.flatnonzero(decided.safe),
        levels=decided.levels,
        releases=[(name, release) for name in _other_releases(system, release)] if protection.changes else (),
        report=report,
    )
    is_frozen = np.isin(np.arange(system.cell_count), frozen_cells)
    return RecipeTables(system, decided, protected, is_frozen, protection.zeros == "unsafe", contributors)
