"""A protected table as the files that tau-ARGUS reads: the cells (.tab), their metadata (.rda) and hierarchies (.hrc).

The files hold every value, hidden ones too, so they are internal.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.engine.errors import BadInput
from sfumato.engine.partition.hierarchies import Hierarchy
from sfumato.engine.tables.declared_table import COUNT, TOTAL
from sfumato.engine.tables.system import EMPTY, PrintedTable

from .argus_hierarchies import LEAD, write_hierarchy
from .argus_metadata import ArgusMetadata, ArgusVariable, Use, write_metadata
from .argus_tables import ArgusCell, ArgusStatus, write_table
from .printed_tables import PRIMARY, PUBLISHED, SECONDARY, CellStatuses

TOTAL_CODE = "Total"
STATUS_OF: dict[str, ArgusStatus] = {PUBLISHED: "safe", PRIMARY: "unsafe", SECONDARY: "secondary"}
NUMBER_COLUMNS: tuple[tuple[str, Use], ...] = (
    ("Value", "response"), ("Units", "frequency"), ("Status", "status"), ("Lower", "lower level"), ("Upper", "upper level"),
)  # fmt: skip


def argus_files(
    name: str,
    printed: PrintedTable,
    statuses: CellStatuses,
    trees: Mapping[str, Hierarchy] | None = None,
    value_name: str = COUNT,
) -> dict[str, bytes]:
    """Return the files of a table by name: ``NAME.tab``, ``NAME.rda`` and ``NAME_VARIABLE.hrc``.

    Args:
        name: what the files are called
        printed: the table
        statuses: what becomes of its cells
        trees: the hierarchy of each variable that has one
        value_name: name of what it adds up

    Raises BadInput for a table that tau-ARGUS cannot read: one with second groupings, without a total, or with a label
    that it takes for something else.
    """
    trees = trees or {}
    total = TOTAL_CODE
    while any(label == total for options in printed.options for _, label in options):
        total += "_"
    variables, files = list[ArgusVariable](), dict[str, bytes]()
    for variable, options in zip(printed.variables, printed.options, strict=True):
        _check_axis(printed.name, variable, options, trees.get(variable))
        if variable not in trees:
            variables.append(ArgusVariable(_column_name(variable), use="explanatory", total=total))
            continue
        file = f"{name}_{_column_name(variable)}.hrc"
        try:
            files[file] = write_hierarchy(trees[variable]).encode()
        except ValueError as error:
            raise BadInput(f"table {printed.name}", str(error)) from None
        variables.append(
            ArgusVariable(
                _column_name(variable),
                use="explanatory",
                total=total,
                is_hierarchical=True,
                hierarchy_file=file,
                lead=LEAD,
            )
        )
    numbers = [
        ArgusVariable(_column_name(value_name) if use == "response" else own, use=use) for own, use in NUMBER_COLUMNS
    ]
    metadata = ArgusMetadata((*variables, *numbers), True, ";")
    if len({one.name for one in metadata.variables}) < len(metadata.variables):
        raise BadInput(f"table {printed.name}", "two columns would have one name in tau-ARGUS; rename a variable")
    cells = _argus_cells(printed, statuses)
    return {
        f"{name}.tab": write_table(cells, metadata).encode(),
        f"{name}.rda": write_metadata(metadata).encode(),
        **files,
    }


def _column_name(name: str) -> str:
    """Return a name without blanks and quotation marks, which end a name in metadata."""
    return "_".join(name.replace('"', " ").split()) or "value"


def _check_axis(table: str, variable: str, options: tuple[tuple[str, str], ...], tree: Hierarchy | None) -> None:
    """Raise BadInput where tau-ARGUS has no such variable of a table."""
    place = f"table {table}"
    if ("", TOTAL) not in options:
        raise BadInput(place, f'has no total over "{variable}", which tau-ARGUS needs')
    depth = 0 if tree is None else tree.height - 1
    groupings = {grouping for grouping, label in options if label != TOTAL}
    if strange := groupings - {"", *(f"level {level}" for level in range(1, depth + 1))}:
        raise BadInput(place, f'has a second grouping of "{variable}" ({min(strange)}); tau-ARGUS knows one hierarchy')
    for _, label in options:
        if label != label.strip() or label.startswith(LEAD) or '"' in label:
            raise BadInput(place, f'"{label}" of "{variable}" cannot be a code of tau-ARGUS; rename it')


def _argus_cells(printed: PrintedTable, statuses: CellStatuses) -> list[ArgusCell]:
    """Return the cells, each code once: a node that repeats the value below it is that value."""
    found = dict[tuple[str, ...], ArgusCell]()
    for places in np.ndindex(*printed.cells.shape):
        codes = tuple(options[at][1] for options, at in zip(printed.options, places, strict=True))
        cell = int(printed.cells[places])
        if codes in found:
            continue
        if cell == EMPTY:
            found[codes] = ArgusCell(codes, status="empty")
            continue
        level = 0.0 if statuses.levels is None else float(statuses.levels[cell])
        value, status = float(statuses.values[cell]), STATUS_OF[statuses.status_of(cell)]
        found[codes] = ArgusCell(codes, value, int(statuses.units[cell]), status=status, lower=level, upper=level)
    return list(found.values())
