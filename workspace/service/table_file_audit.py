"""Audit of tables that any tool made: files are read, joined and audited; nothing is stored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sfumato.engine.errors import BadInput
from sfumato.engine.partition.hierarchies import Hierarchy
from sfumato.engine.tables.declared_table import TOTAL
from sfumato.engine.tables.polytope import CellBounds
from sfumato.engine.tables.printed_audit import NO_TABLE, PrintedAudit, audit_printed_cells
from sfumato.engine.wording import count_noun

from ..reporting.audited_tables import AuditedTables, ChangedCell, FoundCell
from ..table_files.printed_files import PrintedFile, PrintedForm, PrintedLine, read_printed_file, read_tree
from ..table_files.printed_systems import PrintedCells, check_sums, join_printed_files

FEW = 3
"""Numbers of people below it that are printed are pointed out where no threshold is said."""


@dataclass(frozen=True, slots=True)
class TableAuditSettings:
    """What is asked of an audit of files.

    form: how the files are read
    hierarchies: file of each hierarchy, with its variable
    p_percent: how near to its smallest possible value the largest one may not lie; None: not looked at
    threshold: fewest people of a safe cell; 0: not said
    rounding: printed values lie within half of it of the true ones
    zeros_hidden: whether readers do not see which cells are 0
    """

    form: PrintedForm = field(default_factory=PrintedForm)
    hierarchies: tuple[tuple[str, str], ...] = ()
    p_percent: float | None = None
    threshold: int = 0
    rounding: float = 0.0
    zeros_hidden: bool = False


@dataclass(frozen=True, eq=False)
class _AuditedRelease:
    """The files of one release, their cells, and what follows."""

    files: tuple[PrintedFile, ...]
    cells: PrintedCells
    audit: PrintedAudit
    zeros_shown: bool = field(default=True)


def audit_table_files(
    files: Sequence[str], settings: TableAuditSettings | None = None, earlier: Sequence[str] = ()
) -> AuditedTables:
    """Audit the tables of some files as one system; ``earlier`` are files of an earlier release.

    Raises BadInput with file, line and fix; NotComputable for tables that are too large together.
    """
    settings = settings or TableAuditSettings()
    for option, number in (("--rounding", settings.rounding), ("--p-percent", settings.p_percent or 0.0)):
        if not math.isfinite(number):
            raise BadInput(option, f"must be a number, is {number:g}")
    release = _audit_release(files, settings)
    before = _audit_release(earlier, settings, every=True) if earlier else None
    cells, audit = release.cells, release.audit
    found = _list_found(release)
    few = _count_printed_few(release.files, settings.threshold or FEW)
    knows_sole = any(line.contributors is not None or (one.is_whole and line.shown is not None)
                     for one in release.files for line in one.lines)  # fmt: skip
    return AuditedTables(
        tuple(one.file for one in release.files),
        cells.system.cell_count,
        int(cells.hidden.sum()) + len(cells.empty),
        int(cells.primary.sum()) if cells.tells_primary else None,
        found,
        few,
        settings.threshold,
        settings.p_percent,
        audit.zeros_shown,
        int(cells.hidden[cells.sole].sum()) if knows_sole else None,
        audit.contributors_in_full,
        None if before is None else _list_changes(before, release, settings.threshold or FEW),
        _remarks(release, settings),
    )


def _audit_release(files: Sequence[str], settings: TableAuditSettings, *, every: bool = False) -> _AuditedRelease:
    """Read and audit the files of one release. Raises BadInput."""
    read, trees = _read_files(files, settings)
    if not every and not any(line.is_hidden for one in read for line in one.lines):
        raise BadInput(
            read[0].file, "hides no cell; name the sign of a hidden cell by --hidden-mark, or the column by --status"
        )
    cells = join_printed_files(read, trees, settings.form.missing, settings.rounding)
    shown = cells.shown
    known = None
    if cells.hidden.any() and bool(np.isfinite(shown[cells.hidden]).all()):
        known = CellBounds(np.where(np.isnan(shown), 0.0, shown), np.where(np.isnan(shown), np.inf, shown))
    # Unless it is said otherwise, a reader takes zeros for printed: that finds the most.
    zeros = not settings.zeros_hidden and any(one.is_whole for one in read)
    try:
        audit = audit_printed_cells(
            cells.system,
            cells.bounds,
            cells.hidden,
            zeros_shown=zeros,
            sole=cells.sole,
            p_percent=settings.p_percent,
            known=known,
        )
    except BadInput as error:
        if error.message != NO_TABLE:
            raise
        check_sums(read, cells, settings.rounding)
        raise BadInput(
            read[0].file,
            "no table fits all that is printed, though each sum does by itself; where values are rounded, say --rounding, "
            "where rows contain other rows, --hierarchy, where cells without a line are not 0, --missing hidden",
        ) from None
    return _AuditedRelease(tuple(read), cells, audit, zeros)


def _read_files(
    files: Sequence[str], settings: TableAuditSettings
) -> tuple[list[PrintedFile], Mapping[str, list[Hierarchy]]]:
    """Return the tables of files, and the hierarchies that options name. Raises BadInput."""
    paths = [Path(file) for file in files]
    metadata = [path for path in paths if path.suffix.lower() == ".rda"]
    tables = [path for path in paths if path.suffix.lower() not in (".rda", ".hrc")]
    if loose := [path for path in paths if path.suffix.lower() == ".hrc"]:
        raise BadInput(str(loose[0]), f"is a hierarchy; name its variable: --hierarchy VARIABLE={loose[0]}")
    if not tables:
        raise BadInput(str(paths[0]) if paths else "FILES", "is no table; name a CSV or a .tab")
    for path in tables:
        if not path.is_file():
            raise BadInput(str(path), "is no file; check the name")
    of_table = {path: next((one for one in metadata if one.stem == path.stem), None) for path in tables}
    if len(metadata) == 1:
        of_table |= {path: metadata[0] for path in tables if path.suffix.lower() == ".tab" and of_table[path] is None}
    read = [read_printed_file(path, settings.form, of_table[path]) for path in tables]
    trees = dict[str, list[Hierarchy]]()
    for variable, file in settings.hierarchies:
        trees.setdefault(variable, []).append(read_tree(Path(file)))
    return read, trees


def _count_printed_few(files: Sequence[PrintedFile], threshold: int) -> int:
    """Count printed numbers of people above 0 and below a threshold."""
    return sum(0 < line.low < threshold and not line.is_hidden for one in files if one.is_whole for line in one.lines)


def _list_found(release: _AuditedRelease) -> tuple[FoundCell, ...]:
    """Return the hidden cells that are not shown to be safe, in the order of files and lines."""
    cells, audit = release.cells, release.audit
    found = list[FoundCell]()
    beside = {pair.cell: pair.known[0] for pair in audit.pairs if not pair.undecided}
    for cell in np.flatnonzero(audit.failing).tolist():
        one, line = cells.places[cell]
        reason, other = "undecided", ""
        if cell in cells.shown_elsewhere:
            there, there_line = cells.shown_elsewhere[cell]
            reason, other = "printed", f"({there.file}, line {there_line.number}: {there.name_cell(there_line)})"
        elif audit.exact_outside[cell]:
            reason = "outside"
        elif audit.exact_zeros_shown[cell]:
            reason = "zeros"
        elif cell in beside:
            its_file, its_line = cells.places[beside[cell]]
            reason, other = "contributor", its_file.name_cell(its_line)
        elif audit.within_percent[cell]:
            reason = "percent"
        is_primary = bool(cells.primary[cell]) if cells.tells_primary else None
        lowest, highest = float(audit.lowest[cell]), float(audit.highest[cell])
        found.append(FoundCell(one.file, line.number, one.name_cell(line), reason, is_primary, other, lowest, highest))
    for one, line in cells.empty:
        found.append(FoundCell(one.file, line.number, one.name_cell(line), "empty", line.is_primary, "", 0.0, 0.0))
    order = {one.file: at for at, one in enumerate(release.files)}
    return tuple(sorted(found, key=lambda one: (order[one.file], one.line)))


def _remarks(release: _AuditedRelease, settings: TableAuditSettings) -> tuple[str, ...]:
    """Return how the files were read."""
    said = list[str]()
    for one in release.files:
        if one.marks:
            marks = ", ".join(f'"{mark}" ({number:,})' for mark, number in sorted(one.marks.items()))
            said.append(f"{one.file}: taken for hidden: {marks}.")
        said += [f"{one.file}: {remark}" for remark in one.remarks]
        if number := release.cells.assumed_zeros.get(one.file):
            said.append(
                f"{one.file}: {count_noun(number, 'combination')} of labels in no line taken for 0; --missing hidden takes "
                "them for hidden."
            )
    measures = sorted({one.measure for one in release.files})
    if len(measures) > 1:
        said.append(f"Added up apart, being different numbers: {', '.join(measures)}.")
    if release.zeros_shown and not release.audit.zeros_shown:
        said.append("Some hidden cell must be 0, so hidden cells may be 0: readers of zeros were not looked at.")
    if settings.rounding:
        said.append(f"Printed values are taken to lie within {settings.rounding / 2:g} of the true ones.")
    return tuple(said)


def _list_changes(before: _AuditedRelease, after: _AuditedRelease, threshold: int) -> tuple[ChangedCell, ...]:
    """Return the cells that two releases do not print alike, where few people may be the reason."""
    first, second = _cells_by_name(before), _cells_by_name(after)
    found = list[ChangedCell]()
    for name, (one, line, low, high) in second.items():
        if name not in first:
            continue
        other, earlier, other_low, other_high = first[name]
        places = (f"{other.file}, line {earlier.number}", f"{one.file}, line {line.number}")
        known, other_known = low == high, other_low == other_high
        if known and other_known and low != other_low:
            if not one.is_whole or abs(low - other_low) < threshold:
                found.append(ChangedCell(one.name_cell(line), "changed", *places, low - other_low))
        elif line.is_hidden and not earlier.is_hidden:
            found.append(ChangedCell(one.name_cell(line), "hidden now", *places, None))
        elif earlier.is_hidden and not line.is_hidden:
            found.append(ChangedCell(one.name_cell(line), "hidden before", *places, None))
    return tuple(found)


def _cells_by_name(
    release: _AuditedRelease,
) -> dict[tuple[str, frozenset[tuple[str, str]]], tuple[PrintedFile, PrintedLine, float, float]]:
    """Return each line by what it adds up and its labels, with the value that readers know, in two equal bounds."""
    known = dict[tuple[str, frozenset[tuple[str, str]]], tuple[PrintedFile, PrintedLine, float, float]]()
    exact = {
        (one.file, line.number): float(release.audit.lowest[cell])
        for cell, (one, line) in release.cells.places.items()
        if release.audit.exact_outside[cell]
    }
    for one in release.files:
        for line in one.lines:
            labels = frozenset(
                (n, label) for n, label in zip(one.variables, line.labels, strict=True) if label != TOTAL
            )
            value = exact.get((one.file, line.number))
            low, high = (line.low, line.high) if value is None else (value, value)
            known.setdefault((one.measure, labels), (one, line, low, high))
    return known
