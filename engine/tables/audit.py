"""What three readers work out of printed tables: somebody outside, one who sees which cells are 0, a contributor.

    outside       values are at least 0
    zeros_shown   a hidden number of records is at least 1, since zeros are printed
    contributor   knows, in addition, its own part of every cell, and so the cells that nobody else is in

The strictest of them decides. What follows by equations alone is found for all cells at once, by random vectors; what
follows because values are at least 0, or whole, by programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from .contributors import ContributorFinding, find_contributor_findings
from .elimination import PRIME, ReportSteps, find_following, ignore_steps
from .polytope import SINGLE_PROGRAMS, CellBounds, CellSearch, TablePolytope, search_cells
from .rules import TableRules, UnsafeCells, find_unsafe_cells
from .system import EMPTY, TableSystem

NOT_EXAMINED = (
    "Groups all of whose people lie in one cell are disclosed by large counts too. That is not examined: look at rows "
    "that have one number only."
)


@dataclass(frozen=True, eq=False)
class TableAudit:
    """What printed tables give away; arrays are (cells,).

    published: cells that are printed
    primary: cells that are unsafe in themselves or hidden by hand
    by_rule: for each rule in force the cells that it finds
    levels: how far above its value each primary cell must stay possible
    exact_outside, exact_zeros_shown, exact_contributor: primary cells that follow for each reader
    short_of_level: primary cells that cannot be as large as they must stay possible
    undecided: primary cells of which it was not found out
    rise, fall: how far above and below its value a table was found for a hidden cell, NaN for others; its interval is at
        least as wide
    certificate: row of ``tables`` that has another value of the hidden cell, -1 without one
    tables: changes of the atoms to other tables that fit all printed cells, (w, atoms)
    contributor_findings: what contributors work out
    people_affected: units in cells that follow, are short or undecided
    warnings: what was not looked at
    implied: how many of the last cells stand in no table: two printed cells differ by them
    """

    published: Booleans
    primary: Booleans
    by_rule: Mapping[str, Booleans]
    levels: Floats
    exact_outside: Booleans
    exact_zeros_shown: Booleans
    exact_contributor: Booleans
    short_of_level: Booleans
    undecided: Booleans
    rise: Floats
    fall: Floats
    certificate: Integers
    tables: Floats = field(repr=False)
    contributor_findings: tuple[ContributorFinding, ...]
    people_affected: int
    warnings: tuple[str, ...]
    implied: int = 0

    @property
    def failing(self) -> Booleans:
        """Return the primary cells that are not shown to be safe for every reader, (cells,)."""
        return np.asarray(
            self.exact_outside | self.exact_zeros_shown | self.exact_contributor | self.short_of_level | self.undecided
        )

    def with_findings_of(self, other: TableAudit) -> TableAudit:
        """Return this audit with what another one of the same cells found too."""
        return replace(
            self,
            exact_outside=self.exact_outside | other.exact_outside,
            exact_zeros_shown=self.exact_zeros_shown | other.exact_zeros_shown,
            exact_contributor=self.exact_contributor | other.exact_contributor,
            short_of_level=self.short_of_level | other.short_of_level,
            undecided=self.undecided | other.undecided,
        )

    @property
    def counts(self) -> dict[str, float]:
        """Return the numbers that a run reports."""
        hidden = ~self.published
        in_tables = np.arange(len(hidden)) < len(hidden) - self.implied
        width = (self.rise + self.fall)[self.primary & hidden]
        width = width[np.isfinite(width)]
        return {
            "cells": int(in_tables.sum()),
            **{f"primary_{rule}": int((cells & in_tables).sum()) for rule, cells in self.by_rule.items()},
            "primary": int((self.primary & in_tables).sum()),
            "secondary": int((hidden & ~self.primary & in_tables).sum()),
            "exact_outside": int(self.exact_outside.sum()),
            "exact_zeros_shown": int(self.exact_zeros_shown.sum()),
            "exact_contributor": int(self.exact_contributor.sum()),
            "short_of_level": int(self.short_of_level.sum()),
            "undecided": int(self.undecided.sum()),
            "hidden_share": float(hidden[in_tables].mean()) if in_tables.any() else 0.0,
            "smallest_interval": float(width.min()) if len(width) else float("nan"),
            "people_affected": self.people_affected,
        }


def audit_tables(
    system: TableSystem,
    published: Booleans,
    rules: TableRules,
    *,
    bounds: CellBounds | None = None,
    hidden_by_hand: Sequence[int] = (),
    contributors: bool = True,
    unsafe: UnsafeCells | None = None,
    witnesses: Sequence[Floats] = (),
    single_programs: int = SINGLE_PROGRAMS,
    zeros_shown_in: Booleans | None = None,
    prime: int = PRIME,
    report: ReportSteps = ignore_steps,
) -> TableAudit:
    """Audit which unsafe cells follow from the printed ones, for three readers.

    Args:
        system: all tables, those of earlier releases of the same people among them.
        published: cells that are printed, (cells,).
        rules: which cells are unsafe.
        bounds: what is printed of each cell where it is rounded or noisy, (cells,) each; the exact value of
            ``published`` cells by default.
        hidden_by_hand: cells that count as unsafe whatever the rules say.
        contributors: whether to look at contributors too.
        unsafe: what the rules find, where it is known.
        witnesses: changes of the atoms to tables that may fit, (atoms,) each; those that do not are left out.
        single_programs: cells of each reader that get programs of their own, at most.
        zeros_shown_in: cells of which readers see whether they are 0, where zeros are shown; all by default, (cells,).
        prime: modulus of the elimination.
        report: takes how far it has come.
    """
    unsafe = find_unsafe_cells(system, rules) if unsafe is None else unsafe
    settings = _AuditSettings(published, rules, bounds, contributors, single_programs, zeros_shown_in, prime, report)
    found = _audit_system(system, settings, hidden_by_hand, unsafe, witnesses)
    stricter = system.without_doubtful()
    if stricter is None:
        return found
    # Of a cell that such a reader knows to be impossible there is nothing to find out.
    judged = stricter.atom_counts > 0
    by_rule = {rule: cells & judged for rule, cells in unsafe.by_rule.items()}
    own = _audit_system(
        stricter,
        settings,
        [cell for cell in hidden_by_hand if judged[cell]],
        UnsafeCells(by_rule, np.where(judged, unsafe.levels, 0.0), unsafe.warnings),
        list(found.tables),
    )
    return _join_audits(system, found, own, judged)


def _join_audits(system: TableSystem, found: TableAudit, own: TableAudit, judged: Booleans) -> TableAudit:
    """Return the worse of two audits, the second of which knows that doubtful atoms are impossible."""
    tables = own.tables.copy()
    tables[:, system.doubtful] = 0.0
    joined = replace(
        found.with_findings_of(own),
        rise=np.where(judged, own.rise, found.rise),
        fall=np.where(judged, own.fall, found.fall),
        certificate=np.where(
            judged, own.certificate, np.where(found.certificate >= 0, found.certificate + len(tables), -1)
        ),
        tables=np.concatenate([tables, found.tables]),
        contributor_findings=(*found.contributor_findings, *own.contributor_findings),
    )
    return replace(joined, people_affected=count_people(system, np.flatnonzero(joined.failing)))


@dataclass(frozen=True, eq=False)
class _AuditSettings:
    """What is printed and how it is looked at, as ``audit_tables`` takes it."""

    published: Booleans
    rules: TableRules
    bounds: CellBounds | None
    contributors: bool
    single_programs: int
    zeros_shown_in: Booleans | None
    prime: int
    report: ReportSteps


def _audit_system(
    system: TableSystem,
    settings: _AuditSettings,
    hidden_by_hand: Sequence[int],
    unsafe: UnsafeCells,
    witnesses: Sequence[Floats],
) -> TableAudit:
    """Audit one system, all of whose atoms are possible."""
    published, rules, prime, report = settings.published, settings.rules, settings.prime, settings.report
    single_programs = settings.single_programs
    primary = unsafe.unsafe.copy()
    primary[list(hidden_by_hand)] = True
    reader = _Reader(system, published, rules, settings.bounds, settings.zeros_shown_in)
    number = system.cell_count
    exact = {name: np.zeros(number, dtype=np.bool_) for name in ("outside", "zeros_shown", "contributor")}
    short, undecided = np.zeros(number, dtype=np.bool_), np.zeros(number, dtype=np.bool_)
    rise, fall = np.full(number, np.nan), np.full(number, np.nan)
    certificate = np.full(number, -1, dtype=np.int64)
    exact["outside"][primary & published] = True
    rise[primary & published] = fall[primary & published] = 0.0
    cells = np.flatnonzero(primary & ~published)
    report(0, len(cells), "unsafe cells")
    levels = np.where(primary, unsafe.levels, 0.0)
    follows = find_following(system.columns[:, cells], system.columns[:, reader.printed_exactly], prime)
    strict = reader.strictest()
    fitting = reader.fitting(witnesses)
    found = search_cells(strict, cells, levels[cells], follows, fitting, single_programs=single_programs)
    report(int((~found.undecided).sum()), len(cells), "unsafe cells")
    tables = list(found.witnesses)
    rise[cells], fall[cells], certificate[cells] = found.rise, found.fall, found.witness
    short[cells], undecided[cells] = found.short, found.undecided
    if reader.shows_zeros:
        exact["zeros_shown"][cells] = found.exact
        _audit_outside(reader, cells, levels, follows, found, exact["outside"], single_programs)
    else:
        exact["outside"][cells] |= found.exact
    _certify_secondary(system, np.flatnonzero(~primary & ~published), tables, certificate, rise, fall)
    findings = list[ContributorFinding]()
    if settings.contributors:
        open_cells = cells[~found.failing]
        findings = find_contributor_findings(
            system,
            published,
            reader.printed_exactly,
            open_cells,
            levels[open_cells],
            rules,
            strict,
            [*tables, *fitting],
            prime,
            report,
        )
        for finding in findings:
            (undecided if finding.undecided else short if finding.is_short else exact["contributor"])[finding.cell] = (
                True
            )
    audit = TableAudit(
        published.copy(),
        primary,
        unsafe.by_rule,
        levels,
        exact["outside"],
        exact["zeros_shown"],
        exact["contributor"],
        short,
        undecided,
        rise,
        fall,
        certificate,
        np.array(tables).reshape(-1, system.columns.shape[0]),
        tuple(findings),
        0,
        (*unsafe.warnings, NOT_EXAMINED),
        system.implied,
    )
    people = count_people(system, np.flatnonzero(audit.failing))
    return TableAudit(
        **{name: getattr(audit, name) for name in audit.__dataclass_fields__ if name != "people_affected"},
        people_affected=people,
    )


def _certify_secondary(
    system: TableSystem, cells: Integers, tables: list[Floats], certificate: Integers, rise: Floats, fall: Floats
) -> None:
    """Note for cells that are hidden for others' sake a table in which they differ, and how far they were found to go."""
    if not tables or not len(cells):
        return
    moved = np.asarray(system.columns[:, cells].T @ np.array(tables).T)
    least = np.where(system.cell_is_whole[cells], 0.5, 1e-6 * np.maximum(system.values[cells], 1e-300))
    differs = np.abs(moved) >= least[:, None]
    certificate[cells] = np.where(differs.any(axis=1), differs.argmax(axis=1), -1)
    rise[cells], fall[cells] = np.maximum(moved.max(axis=1), 0), np.maximum(-moved.min(axis=1), 0)


class _Reader:
    """What is printed, and what readers know."""

    def __init__(
        self,
        system: TableSystem,
        published: Booleans,
        rules: TableRules,
        bounds: CellBounds | None,
        zeros_shown_in: Booleans | None = None,
    ) -> None:
        self.system = system
        self.outside_bounds = CellBounds.of_printed(system.values, published) if bounds is None else bounds
        known = self.outside_bounds.low == self.outside_bounds.high
        self.printed_exactly = np.flatnonzero(known)
        self.whole_atoms = np.array(system.whole, dtype=np.bool_)[system.atom_measures]
        self.shows_zeros = rules.zeros == "safe" and bool(self.whole_atoms.any())
        sees = system.shows_zeros if zeros_shown_in is None else system.shows_zeros & zeros_shown_in
        self.bounds = (
            self.outside_bounds.with_zeros_shown(system.values, sees) if self.shows_zeros else self.outside_bounds
        )

    def strictest(self) -> TablePolytope:
        """Return the tables that are left for one who sees which cells are 0, if they are shown."""
        return TablePolytope(self.system.columns, self.system.atom_values, self.bounds, self.whole_atoms)

    def outside_polytope(self) -> TablePolytope:
        """Return the tables that are left for one who knows that values are at least 0."""
        return TablePolytope(self.system.columns, self.system.atom_values, self.outside_bounds, self.whole_atoms)

    def fitting(self, witnesses: Sequence[Floats]) -> list[Floats]:
        """Return those changes of the atoms that keep to what the strictest reader knows."""
        if not len(witnesses):
            return []
        changes = np.array(witnesses)
        slack = np.where(self.whole_atoms, 0.0, 1e-6 * self.system.atom_values.max(initial=1.0))
        moved = np.asarray(self.system.columns.T @ changes.T)
        own = np.where(self.system.cell_is_whole, 0.0, 1e-6 * np.maximum(self.system.values, slack.max(initial=0.0)))
        values = self.system.values[:, None] + moved
        fits = (values >= self.bounds.low[:, None] - own[:, None]).all(axis=0)
        fits &= (values <= self.bounds.high[:, None] + own[:, None]).all(axis=0)
        fits &= (self.system.atom_values + changes >= -slack).all(axis=1)
        return [change for change, fit in zip(witnesses, fits, strict=True) if fit]


def _audit_outside(
    reader: _Reader,
    cells: Integers,
    levels: Floats,
    follows: Booleans,
    found: CellSearch,
    exact: Booleans,
    single_programs: int,
) -> None:
    """Mark the cells that follow for readers who do not use zeros."""
    left = np.flatnonzero(found.exact | found.undecided)
    if not len(left):
        return
    own = search_cells(
        reader.outside_polytope(),
        cells[left],
        np.zeros(len(left)),
        follows[left],
        list(found.witnesses),
        single_programs=single_programs,
    )
    exact[cells[left]] |= own.exact


def count_people(system: TableSystem, cells: Integers) -> int:
    """Return the number of different units in some cells."""
    inside = np.zeros(system.columns.shape[0], dtype=np.bool_)
    for cell in cells.tolist():
        inside[system.columns.indices[system.columns.indptr[cell] : system.columns.indptr[cell + 1]]] = True
    own = system.contributions
    chosen = inside[own.atoms]
    units, first = np.unique(own.units[chosen], return_index=True)
    # A row may stand for several people, each of whom is a unit.
    return int(np.maximum(own.records[chosen][first], 0).sum()) if len(units) else 0


@dataclass(frozen=True, slots=True)
class TableChange:
    """A difference between two releases that few people make.

    first, second: cells of the two releases, ``EMPTY`` where it has none
    name: name of the cell
    units: people who are in one of them and not in the other
    difference: value of the second less that of the first
    follows: whether the difference follows from what both print
    """

    first: int
    second: int
    name: str
    units: int
    difference: float
    follows: bool


def list_table_changes(
    system: TableSystem,
    first: str,
    second: str,
    published: Booleans,
    threshold: int,
    prime: int = PRIME,
) -> list[TableChange]:
    """Return the differences between two releases that fewer than ``threshold`` people make, and which of them follow."""
    pairs, columns, units = small_changes(system, first, second, threshold)
    if not pairs:
        return []
    follows = find_following(columns, system.columns[:, np.flatnonzero(published)], prime)
    signed = np.where(columns.data > prime // 2, columns.data - prime, columns.data)
    plain = columns.copy()
    plain.data = signed
    differences = np.asarray(plain.T @ system.atom_values)
    return [
        TableChange(a, b, system.cell_names[b if b != EMPTY else a], int(n), float(d), bool(f))
        for (a, b), n, d, f in zip(pairs, units, differences, follows, strict=True)
    ]


def small_changes(
    system: TableSystem, first: str, second: str, threshold: int, prime: int = PRIME
) -> tuple[list[tuple[int, int]], Any, Integers]:
    """Return pairs of cells of two releases between which few people changed, their differences, and how many did.

    The differences are columns modulo a prime, (atoms, pairs), sparse; people are more than 0 and fewer than
    ``threshold``.
    """
    from scipy import sparse

    pairs = system.list_changes(first, second)
    none = sparse.csc_matrix((system.columns.shape[0], 1), dtype=np.int64)
    every = sparse.hstack([system.columns, none], format="csc")  # the last column stands for an empty cell
    a = np.array([one for one, _ in pairs], dtype=np.int64)
    b = np.array([other for _, other in pairs], dtype=np.int64)
    difference = (every[:, b] - every[:, a]).tocsc()
    difference.eliminate_zeros()
    units = count_units(system, difference)
    kept = np.flatnonzero((units > 0) & (units < threshold))
    columns = difference[:, kept].astype(np.int64)
    columns.data %= prime
    return [pairs[at] for at in kept], columns, units[kept]


def count_units(system: TableSystem, columns: Any) -> Integers:
    """Return the number of units in the atoms of each column, (k,)."""
    own = system.contributions
    rows = np.argsort(own.atoms, kind="stable")
    start = np.searchsorted(own.atoms[rows], np.arange(system.columns.shape[0] + 1))
    found = np.zeros(columns.shape[1], dtype=np.int64)
    for at in range(columns.shape[1]):
        atoms = columns.indices[columns.indptr[at] : columns.indptr[at + 1]]
        chosen = np.concatenate(
            [rows[start[atom] : start[atom + 1]] for atom in atoms] or [np.zeros(0, dtype=np.int64)]
        )
        chosen = chosen[own.records[chosen] > 0]
        _, where = np.unique(own.units[chosen], return_index=True)
        found[at] = own.records[chosen][where].sum()
    return found
