"""Tables in files of tau-ARGUS (.tab): a line a cell, its codes, its numbers and its status, as metadata (.rda) say.

    "Total";"North";4373664.00;11395;S;0;0

Source: tau-ARGUS manual 4.1, section 4.2.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from sfumato.engine.data.arrays import Booleans
from sfumato.engine.errors import BadInput
from sfumato.engine.partition.hierarchies import Hierarchy
from sfumato.engine.tables.declared_table import COUNT, TOTAL, DeclaredTable, Grouping, TableVariable
from sfumato.engine.tables.system import EMPTY, TableSystem
from sfumato.engine.wording import count_noun

from .argus_metadata import ArgusMetadata, Use
from .delimited_lines import check_code, format_number, join_cells, parse_count, parse_number, split_lines

ArgusStatus = Literal["", "safe", "unsafe", "protected", "secondary", "empty"]
"""Status of a cell: "" where the file has none; "secondary" is hidden so that others do not follow."""
SIGN_OF_STATUS = {"secondary": "M", "empty": "E"}
ABSENT = ("", "-")
USED: tuple[Use, ...] = (
    "explanatory", "response", "shadow", "cost", "lower level", "upper level", "frequency", "largest", "status",
)  # fmt: skip
FIELD_OF_USE: Mapping[Use, str] = {
    "response": "value", "shadow": "shadow", "cost": "cost", "lower level": "lower", "upper level": "upper",
}  # fmt: skip
SLACK = 1e-6
"""Share by which rounding may be larger, for the last digits of floating point."""


@dataclass(frozen=True, slots=True)
class ArgusCell:
    """Cell of a table in a file of tau-ARGUS; None where the file has no number.

    codes: code of each variable, "" for the total
    value: what is printed
    frequency: number of records
    shadow, cost: what rules look at in place of the value, and what hiding it costs
    largest: largest contributions, the largest first
    status: whether it is printed
    lower, upper: protection levels
    """

    codes: tuple[str, ...]
    value: float | None = None
    frequency: int | None = None
    shadow: float | None = None
    cost: float | None = None
    largest: tuple[float, ...] = ()
    status: ArgusStatus = ""
    lower: float | None = None
    upper: float | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether no record is in it."""
        return not self.value and not self.frequency


def read_table(text: str, metadata: ArgusMetadata, place: str) -> tuple[ArgusCell, ...]:
    """Read the cells of a table. Raises BadInput at the line."""
    for one in metadata.variables:
        if one.use not in USED:
            raise BadInput(place, f'the metadata do not say what column "{one.name}" is; add a line such as <NUMERIC>')
    found, line_of = list[ArgusCell](), dict[tuple[str, ...], int]()
    for number, cells in split_lines(text, metadata.separator, place):
        at = f"{place}, line {number}"
        if len(cells) != len(metadata.variables):
            raise BadInput(
                at,
                f"has {count_noun(len(cells), 'cell')}; the metadata have {count_noun(len(metadata.variables), 'column')}",
            )
        cell = _read_cell(cells, metadata, at)
        if cell.codes in line_of:
            codes = ", ".join(code or "total" for code in cell.codes)
            raise BadInput(at, f"is the cell {codes}, as line {line_of[cell.codes]} is; leave one")
        line_of[cell.codes] = number
        found.append(cell)
    if not found:
        raise BadInput(place, "has no cells")
    return tuple(found)


def _read_cell(cells: list[str], metadata: ArgusMetadata, place: str) -> ArgusCell:
    """Return the cell of a line. Raises BadInput."""
    codes, largest, numbers = list[str](), list[float](), dict[str, Any]()
    for cell, one in zip(cells, metadata.variables, strict=True):
        if one.use == "explanatory":
            codes.append(TOTAL if cell == one.total else cell)
        elif one.use == "status":
            numbers["status"] = _read_status(cell, metadata, place)
        elif cell in ABSENT:
            continue
        elif one.use == "frequency":
            numbers["frequency"] = parse_count(cell, metadata.separator, place)
        elif one.use == "largest":
            largest.append(parse_number(cell, metadata.separator, place))
        else:
            numbers[FIELD_OF_USE[one.use]] = parse_number(cell, metadata.separator, place)
    found = ArgusCell(tuple(codes), largest=tuple(largest), **numbers)
    if found.value and found.frequency == 0:
        raise BadInput(place, "has a value and no records")
    if found.value is None and found.frequency is None:
        if found.status not in ("", "safe", "empty"):
            raise BadInput(place, f"is {found.status} and has neither a value nor records; an empty cell is E")
        found = replace(found, status="empty")
    return found


def _read_status(cell: str, metadata: ArgusMetadata, place: str) -> ArgusStatus:
    """Return the status that a sign means. Raises BadInput."""
    signs = metadata.statuses
    known: dict[str, ArgusStatus] = {
        "E": "empty", "M": "secondary", signs["protected"].upper(): "protected", signs["unsafe"].upper(): "unsafe", signs["safe"].upper(): "safe",
    }  # fmt: skip
    if not cell:
        return ""
    if cell.upper() not in known:
        raise BadInput(place, f'"{cell}" is no status; known: {", ".join(reversed(known))}')
    return known[cell.upper()]


def write_table(cells: Sequence[ArgusCell], metadata: ArgusMetadata) -> str:
    """Return the cells as a file of tau-ARGUS with the columns of the metadata."""
    return "".join(
        join_cells(_cell_texts(cell, metadata), metadata.separator, quote_all=metadata.separator in " ,")
        for cell in cells
    )


def _cell_texts(cell: ArgusCell, metadata: ArgusMetadata) -> list[str]:
    """Return the texts of a line."""
    codes, largest = iter(cell.codes), iter(cell.largest)
    texts = list[str]()
    for one in metadata.variables:
        number: float | None = None
        if one.use == "explanatory":
            texts.append(check_code(next(codes)) or one.total)
            continue
        if one.use == "status":
            texts.append(SIGN_OF_STATUS.get(cell.status) or metadata.statuses.get(cell.status, ""))
            continue
        if one.use == "frequency":
            number = cell.frequency
        elif one.use == "largest":
            number = next(largest, None)
        elif one.use in FIELD_OF_USE:
            number = getattr(cell, FIELD_OF_USE[one.use])
        texts.append("" if number is None else format_number(number, one.decimals))
    return texts


def declare_argus_table(
    cells: Sequence[ArgusCell], metadata: ArgusMetadata, trees: Mapping[str, Hierarchy], name: str, place: str
) -> DeclaredTable:
    """Return a table that another tool made as the engine takes it: each cell that no other is part of, with its records.

    Args:
        cells: all cells of the table with their values, hidden ones too
        metadata: the columns
        trees: the hierarchy of each variable that has one, by name
        name: name of the table
        place: name of the file in messages

    Raises BadInput where a cell is not the sum of those below it, or a code is in no tree. Who contributes is not known
    of such tables, so that no rule of dominance can be checked.
    """
    columns = [metadata.variables[at] for at in metadata.explanatory]
    above = [_codes_above(cells, at, trees.get(one.name), one.missing, place) for at, one in enumerate(columns)]
    parts = [one for one in cells if all(code in above[at] for at, code in enumerate(one.codes)) and not one.is_empty]
    if not parts:
        raise BadInput(place, "has no cell below its totals")
    variables = [
        _variable_of_codes(one.name, [part.codes[at] for part in parts], above[at]) for at, one in enumerate(columns)
    ]
    # A table of frequencies has no value, or repeats them as one.
    counts = np.array([1 if one.frequency is None else one.frequency for one in parts], dtype=np.int64)
    has_value = any(one.value is not None and one.value != one.frequency for one in parts)
    values = np.array([one.value or 0.0 for one in parts]) / np.maximum(counts, 1) if has_value else None
    response = next((metadata.variables[at] for at in metadata.columns_of("response")), None)
    _check_sums(cells, parts, above, place, response.decimals if response is not None and has_value else None)
    measure = response.name if response is not None and has_value else COUNT
    return DeclaredTable(name, tuple(variables), values, measure, records=counts)


def _codes_above(
    cells: Sequence[ArgusCell], at: int, tree: Hierarchy | None, missing: Sequence[str], place: str
) -> dict[str, tuple[str, ...]]:
    """Return the codes above each code that no other is below, the nearest first, without the total."""
    codes = {one.codes[at] for one in cells} - {TOTAL}
    if tree is None:
        return dict.fromkeys(codes, ())
    known = {label for row in tree.rows for label in row[:-1]}
    if lacking := codes - known - set(missing):
        raise BadInput(place, f'"{min(lacking)}" is in no line of its hierarchy; add it there')
    # Codes of missing values are in no hierarchy: they stand directly below the total.
    outside = {code: (code,) * (tree.height - 1) for code in missing if code not in known}
    return {row[0]: row[1:-1] for row in tree.rows} | outside


def _variable_of_codes(name: str, codes: Sequence[str], above: Mapping[str, tuple[str, ...]]) -> TableVariable:
    """Return a variable of a table with the levels of its hierarchy."""
    levels = range(len(next(iter(above.values()), ())))
    nodes = [Grouping.from_values([above[code][at] for code in codes], f"level {at + 1}") for at in levels]
    return TableVariable(name, (Grouping.from_values(list(codes)), *nodes))


def _check_sums(
    cells: Sequence[ArgusCell],
    parts: Sequence[ArgusCell],
    above: Sequence[Mapping[str, tuple[str, ...]]],
    place: str,
    decimals: int | None,
) -> None:
    """Raise BadInput where a cell is not the sum of its parts: rows are missing, or are of another table.

    ``decimals`` are those of the values; None for numbers of records.
    """
    has_value = decimals is not None
    sums = dict[tuple[str, ...], list[float]]()
    for part in parts:
        options = [(code, *dict.fromkeys(above[at][code]), TOTAL) for at, code in enumerate(part.codes)]
        own = part.value if has_value else part.frequency
        for codes in _combinations(options):
            sums.setdefault(codes, []).append(own or 0.0)
    for one in cells:
        number = (one.value if has_value else one.frequency) or 0.0
        found = sums.get(one.codes, [])
        # Each number may have been rounded.
        slack = 0.0 if decimals is None else 0.5 * 10.0**-decimals * (len(found) + 1) * (1 + SLACK)
        if abs(math.fsum(found) - number) > slack:
            names = ", ".join(code or "total" for code in one.codes)
            raise BadInput(
                place,
                f"the cell {names} is not the sum of the cells below it; the file lacks cells, or has another hierarchy",
            )


@dataclass(frozen=True, eq=False)
class ArgusSuppression:
    """What the files of tau-ARGUS say of the cells of a system, (cells,).

    published: cells that are printed, also where only one of their names is
    unsafe: cells that are hidden because they are unsafe in themselves
    """

    published: Booleans
    unsafe: Booleans


def find_suppression(
    system: TableSystem, tables: Mapping[str, tuple[Sequence[ArgusCell], ArgusMetadata]], place: str
) -> ArgusSuppression:
    """Return which cells the files of tables print, by the name of each table; cells of other tables are not printed.

    Raises BadInput where a file has no status, or a cell that its table does not have.
    """
    published, unsafe = (np.zeros(system.cell_count, dtype=np.bool_) for _ in range(2))
    for name, (cells, metadata) in tables.items():
        if not metadata.columns_of("status"):
            raise BadInput(place, f'"{name}" does not say which cells are hidden; add a column with <STATUS>')
        printed = next((one for one in system.tables if one.name == name), None)
        if printed is None:
            raise BadInput(place, f'there is no table "{name}"')
        # Where a label stands in several groupings, it is one cell: a code stands once in a hierarchy.
        axes = [{label: at for at, (_, label) in reversed(list(enumerate(own)))} for own in printed.options]
        for one in cells:
            if one.is_empty and one.status in ("", "safe", "empty"):
                continue
            if not all(code in axis for code, axis in zip(one.codes, axes, strict=True)):
                codes = ", ".join(code or "total" for code in one.codes)
                raise BadInput(place, f'"{name}" has no cell {codes}')
            cell = int(printed.cells[tuple(axis[code] for code, axis in zip(one.codes, axes, strict=True))])
            if cell == EMPTY:
                continue
            published[cell] |= one.status not in ("unsafe", "secondary")
            unsafe[cell] |= one.status == "unsafe"
    return ArgusSuppression(published, unsafe)


def _combinations(options: Sequence[Sequence[str]]) -> set[tuple[str, ...]]:
    """Return all choices of one of each, each once."""
    found: set[tuple[str, ...]] = {()}
    for own in options:
        found = {(*codes, code) for codes in found for code in own}
    return found
