"""Protect tables: hide the fewest and cheapest cells such that no unsafe cell follows, for any of three readers.

1. Rules find the cells that are unsafe in themselves.
2. The greedy rule prints every other cell from which no unsafe one follows by equations, the dearest first. Sums that
   must not follow either take part as virtual cells: the difference of two releases, the hidden parts of a printed sum.
3. Programs find what follows all the same, because values are at least 0, and what stays too close to its value. For
   each such cell the cheapest printed cells are hidden that let it move; what is then not needed is printed again.
4. The result is audited as if it came from anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..errors import BadInput
from ..wording import join_first_names
from .audit import TableAudit, _Reader, audit_tables, small_changes
from .contributors import (
    CONTRIBUTOR_EFFORT,
    Contributor,
    ContributorFinding,
    contributor_of_unit,
    find_contributor_findings,
    levels_of_contributors,
    list_sole_readers,
    program_size,
)
from .elimination import PRIME, ReportSteps, find_following, find_known_pairs, ignore_steps, suppress_cells
from .polytope import BULK_PROGRAMS, TOLERANCE, CellBounds, CellRepair, search_cells
from .rules import TableRules, UnsafeCells, find_unsafe_cells, judge_units, list_cell_units
from .system import TableSystem

Cost = Literal["value", "cells"]
MAX_ROUNDS = 8
"""Rounds of virtual cells, and of repairs."""
MAX_REPAIRS = 400
"""Programs of repairs in one round."""
MAX_SINGLE_REPAIRS = 1_000_000
"""Failing cells times all cells up to which each failing cell is repaired by programs of its own."""
REPAIRED_TOGETHER = 8
"""Cells that are repaired by one program where they are more."""
MAX_REPRINTED = 30
"""Hidden cells that are tried to be printed again, at most, and fewer among many cells."""
MAX_REPRINT_EFFORT = 40_000
"""Hidden cells that are tried, times all cells."""
TRIAL_PROGRAMS = 2
"""Programs for all cells together in such a trial."""
SMALLEST_MOVE = 1e-3
"""Share of the value by which a sum must be able to move where any other value is enough."""
PUBLISHED, PRIMARY, SECONDARY, FROZEN = "published", "primary", "secondary", "frozen"


@dataclass(frozen=True, eq=False)
class ProtectedTables:
    """Which cells are hidden, and what a reader then finds out.

    published: cells that are printed, (cells,)
    primary, secondary: cells that are hidden because they are unsafe, and for their sake, (cells,)
    unprotected: unsafe cells that follow from what earlier releases printed, or are printed there, (cells,)
    unprotected_changes: pairs of cells of two releases whose difference follows from what earlier releases printed
    rounds: rounds of virtual cells and of repairs that it took
    audit: what a reader finds out
    warnings: what was not looked at, or cannot be protected
    """

    published: Booleans
    primary: Booleans
    secondary: Booleans
    unprotected: Booleans
    unprotected_changes: tuple[tuple[int, int], ...]
    rounds: int
    audit: TableAudit
    warnings: tuple[str, ...]

    @property
    def hidden_cells(self) -> Booleans:
        """Return the cells that are not printed, (cells,)."""
        return ~self.published

    @property
    def counts(self) -> dict[str, float]:
        """Return the numbers that a run reports."""
        return {**self.audit.counts, "unprotected": int(self.unprotected.sum())}


def protect_tables(
    system: TableSystem,
    rules: TableRules,
    *,
    cost: Cost | Floats = "value",
    cost_factors: Floats | None = None,
    frozen: Sequence[int] | Integers = (),
    hidden_by_hand: Sequence[int] | Integers = (),
    safe: Sequence[int] | Integers = (),
    levels: Floats | None = None,
    releases: Sequence[tuple[str, str]] = (),
    contributors: bool = True,
    reprint: bool = True,
    prime: int = PRIME,
    report: ReportSteps = ignore_steps,
) -> ProtectedTables:
    """Choose the cells to hide.

    Args:
        system: all tables, those of earlier releases of the same people among them.
        rules: which cells are unsafe.
        cost: what hiding a cell costs: its value, 1, or a number for each cell, (cells,).
        cost_factors: factors of the costs, as an a priori file gives them, (cells,).
        frozen: cells that are printed whatever follows, such as those that an earlier release printed.
        hidden_by_hand: cells that are hidden like unsafe ones.
        safe: cells that no rule finds; they may be hidden for others.
        levels: how far above its value each cell must stay possible at least where it is unsafe, (cells,).
        releases: pairs of releases whose differences by fewer people than the threshold must not follow.
        contributors: whether to protect against contributors, who know their own part of each cell, and against published sums whose
            hidden parts together break a rule of contributions.
        reprint: whether to print again what repairs hid without need.
        prime: modulus of the elimination.
        report: takes how far it has come: cells that were tried, unsafe cells that can move, contributors.

    Raises BadInput for cells that are frozen and hidden by hand, for costs below 0, and where zeros are unsafe in a
    system without the combinations that no record has; NotComputable for a system that is too large. The order of records, tables
    and names changes nothing, and the same input gives the same bytes.
    """
    costs = _cell_costs(system, cost, cost_factors)
    found = _Protection(
        system, rules, costs, frozen, hidden_by_hand, safe, levels, releases, contributors, prime, report
    ).protect(reprint)
    stricter = system.without_doubtful()
    if stricter is None:
        return found
    is_impossible = stricter.atom_counts == 0
    by_hand = [cell for cell in hidden_by_hand if not is_impossible[cell]]
    also_safe = np.union1d(np.asarray(safe, dtype=np.int64), np.flatnonzero(is_impossible))
    own = _Protection(
        stricter, rules, costs, frozen, by_hand, also_safe, levels, releases, contributors, prime, report
    ).protect(reprint)
    # What one of the two hides is hidden: fewer printed cells tell no reader more.
    published = found.published & (own.published | is_impossible)
    unsafe = find_unsafe_cells(system, rules).with_decisions(
        _mark_cells(safe, system.cell_count, "safe"),
        np.zeros(system.cell_count) if levels is None else np.asarray(levels, dtype=np.float64),
    )
    audit = audit_tables(
        system,
        published,
        rules,
        hidden_by_hand=list(hidden_by_hand),
        contributors=contributors,
        unsafe=unsafe,
        witnesses=[*own.audit.tables, *found.audit.tables],
        prime=prime,
        report=report,
    )
    return replace(
        found,
        published=published,
        primary=found.primary | (audit.primary & ~published),
        secondary=~published & ~audit.primary,
        unprotected=found.unprotected | own.unprotected,
        unprotected_changes=tuple(sorted({*found.unprotected_changes, *own.unprotected_changes})),
        audit=audit,
        warnings=tuple(dict.fromkeys((*found.warnings, *own.warnings, *_warn_of_implied_cells(system, audit)))),
    )


class _Protection:
    """The state of protecting one system."""

    def __init__(
        self,
        system: TableSystem,
        rules: TableRules,
        costs: Floats,
        frozen: Sequence[int] | Integers,
        hidden_by_hand: Sequence[int] | Integers,
        safe: Sequence[int] | Integers,
        levels: Floats | None,
        releases: Sequence[tuple[str, str]],
        contributors: bool,
        prime: int,
        report: ReportSteps,
    ) -> None:
        self.report = report
        self.system, self.rules, self.prime, self.contributors = system, rules, prime, contributors
        if rules.zeros == "unsafe" and not system.complete:
            raise BadInput("tables.zeros", "zeros can be hidden only in a system with all combinations of groups")
        number = system.cell_count
        self.frozen = _mark_cells(frozen, number, "frozen")
        by_hand = _mark_cells(hidden_by_hand, number, "hidden_by_hand")
        if (both := np.flatnonzero(self.frozen & by_hand)).size:
            raise BadInput("tables.fixed", f"{system.cell_names[int(both[0])]} is both fixed as printed and as hidden")
        self.by_hand = np.flatnonzero(by_hand)
        self.costs = costs
        decided = np.zeros(number) if levels is None else np.asarray(levels, dtype=np.float64)
        if decided.shape != (number,) or not (decided >= 0).all():
            raise BadInput("tables.fixed", "levels must be a number of at least 0 for each cell")
        declared_safe = _mark_cells(safe, number, "safe")
        if (both := np.flatnonzero(declared_safe & by_hand)).size:
            raise BadInput("tables.fixed", f"{system.cell_names[int(both[0])]} is both fixed as safe and as hidden")
        self.unsafe: UnsafeCells = find_unsafe_cells(system, rules).with_decisions(declared_safe, decided)
        self.primary: Booleans = self.unsafe.unsafe | by_hand
        # What is printed already cannot be protected any more.
        self.protected = np.flatnonzero(self.primary & ~self.frozen)
        self.levels = np.where(self.primary, self.unsafe.levels, 0.0)
        self.changes, self.change_pairs = self._difference_columns(releases)
        self.printed_zeros = self._printable_zeros()
        # More atoms first among equals: a sum of many says less of each.
        self.order = np.lexsort((np.arange(number), -system.atom_counts, -self.costs))

    def protect(self, reprint: bool) -> ProtectedTables:
        """Hide cells and audit what is left."""
        published, unprotected, lost_changes, rounds = self._suppress()
        before = published
        published, witnesses, repairs = self._repair(published, unprotected)
        if reprint and repairs:
            repaired = before & ~published
            published, witnesses = self._print_again(published, unprotected, witnesses, repaired)
        if self.contributors:
            published, witnesses = self._repair_for_contributors(published, unprotected, witnesses)
        audit = audit_tables(
            self.system,
            published,
            self.rules,
            hidden_by_hand=self.by_hand.tolist(),
            contributors=self.contributors,
            unsafe=self.unsafe,
            witnesses=witnesses,
            prime=self.prime,
            report=self.report,
        )
        unprotected |= self.primary & self.frozen
        return ProtectedTables(
            published,
            self.primary & ~published,
            ~published & ~self.primary,
            unprotected,
            tuple(self.change_pairs[at] for at in np.flatnonzero(lost_changes)),
            rounds + repairs,
            audit,
            (*self.unsafe.warnings, *self._warn(unprotected), *_warn_of_implied_cells(self.system, audit)),
        )

    def _warn(self, unprotected: Booleans) -> list[str]:
        """Return sentences on cells that cannot be protected."""
        cells = np.flatnonzero(unprotected).tolist()
        if not cells:
            return []
        names = [self.system.cell_names[cell] for cell in cells[:3]]
        told = join_first_names(names, 3, total=len(cells), separator="; ")
        return [f"These cells follow from what was printed before: {told}. Nothing that is hidden now changes that."]

    def _difference_columns(self, releases: Sequence[tuple[str, str]]) -> tuple[Any, list[tuple[int, int]]]:
        """Return differences between releases that few people make, and their pairs of cells."""
        from scipy import sparse

        columns, pairs = [], list[tuple[int, int]]()
        for first, second in releases:
            own, differences, _ = small_changes(self.system, first, second, self.rules.threshold, self.prime)
            pairs += own
            columns.append(differences)
        empty = sparse.csc_matrix((self.system.columns.shape[0], 0), dtype=np.int64)
        return sparse.hstack([empty, *columns], format="csc"), pairs

    def _printable_zeros(self) -> Booleans:
        """Return cells of value 0 that are printed: all whose atoms are no unsafe cell, the largest first, (cells,)."""
        system = self.system
        zeros = np.flatnonzero((system.values == 0) & ~self.primary & ~system.is_implied)
        found = np.asarray((system.values == 0) & self.frozen, dtype=np.bool_)
        fixed: Booleans = np.asarray(system.columns @ found.astype(np.int64) > 0)
        targets = system.columns[:, self.protected]
        sizes = np.diff(targets.indptr)
        start = fixed
        for cell in zeros[np.argsort(-system.atom_counts[zeros], kind="stable")].tolist():
            # A printed 0 fixes all its atoms: no unsafe cell may lie within them.
            after = fixed.copy()
            after[system.columns.indices[system.columns.indptr[cell] : system.columns.indptr[cell + 1]]] = True
            if not len(self.protected) or not (targets.T @ after.astype(np.int64) == sizes).any():
                found[cell], fixed = True, after
        if self._follow_from_frozen(fixed) > self._follow_from_frozen(start):
            # Together with what was printed before, zeros give an unsafe cell away: those that may be are hidden.
            found &= self.frozen
        return found

    def _follow_from_frozen(self, fixed: Booleans) -> int:
        """Count unsafe cells that follow from frozen cells and from atoms that are known to be 0."""
        if not self.frozen.any():
            return 0
        atoms = np.flatnonzero(~fixed)
        columns = self.system.columns[atoms]
        follows = find_following(columns[:, self.protected], columns[:, np.flatnonzero(self.frozen)], self.prime)
        return int(follows.sum())

    def _suppress(self) -> tuple[Booleans, Booleans, Booleans, int]:
        """Hide what would follow by equations, until hidden parts of printed sums are safe too.

        Returns the printed cells, unsafe cells and changes that follow whatever is done, and the number of rounds.
        """
        from scipy import sparse

        system = self.system
        zero_atoms = system.columns @ self.printed_zeros.astype(np.int64) > 0
        atoms = np.flatnonzero(~zero_atoms)
        columns = system.columns[atoms]
        virtual = self.changes
        never = self.primary | self.printed_zeros | (system.values == 0) | system.is_implied
        candidates = self.order[~never[self.order]]
        partitions = system.list_partitions() if self._judges_parts else []
        seen = set[bytes]()
        units = system.sole_units if self.contributors else np.full(system.cell_count, -1)
        sole = np.flatnonzero(units[self.protected] >= 0)
        rounds = 0
        while True:
            rounds += 1
            protected = sparse.hstack([system.columns[:, self.protected], virtual], format="csc")
            targets = np.arange(protected.shape[1]) < len(self.protected)
            found = suppress_cells(
                columns,
                candidates,
                protected[atoms],
                np.flatnonzero(self.frozen),
                sole,
                targets,
                self.prime,
                report=self.report,
            )
            published = found.published | self.printed_zeros
            more = self._unsafe_parts(published, partitions, seen) if rounds < MAX_ROUNDS else []
            if not more:
                break
            virtual = sparse.hstack([virtual, *more], format="csc")
        unprotected = np.zeros(system.cell_count, dtype=np.bool_)
        unprotected[self.protected] = found.unprotected[: len(self.protected)]
        start = len(self.protected)
        return published, unprotected, found.unprotected[start : start + len(self.change_pairs)], rounds

    @property
    def _judges_parts(self) -> bool:
        """Return whether the hidden parts of a printed sum must keep to the rules together."""
        # A union of small counts is no cell that an office would have to hide; a sum of two firms that hides one of
        # them from the other is.
        return bool(self.contributors and self.rules.judges_sizes and not self.system.cell_is_whole.all())

    def _unsafe_parts(self, published: Booleans, partitions: list[tuple[int, Integers]], seen: set[bytes]) -> list[Any]:
        """Return the sums of hidden parts of printed sums that break a rule, as columns."""
        from scipy import sparse

        found = []
        for parent, children in partitions:
            if not published[parent] or self.system.cell_is_whole[parent]:
                continue
            parts = children[~published[children]]
            key = parts.tobytes()
            if len(parts) < 2 or key in seen or not self.primary[parts].any():
                continue
            seen.add(key)
            found.append(sparse.csc_matrix(self.system.columns[:, parts].sum(axis=1)))
        if not found:
            return []
        columns = sparse.hstack(found, format="csc").astype(np.int64)
        units = list_cell_units(self.system, np.arange(columns.shape[1]), self.rules.weights, columns)
        broken = np.flatnonzero(judge_units(units, self.rules).unsafe)
        return [columns[:, [at]] for at in broken.tolist()]

    def _free_bounds(self) -> CellBounds:
        """Return what a reader would know if only what must be printed were."""
        system = self.system
        fixed = self.printed_zeros | self.frozen
        bounds = CellBounds.of_printed(system.values, fixed)
        return bounds.with_zeros_shown(system.values, system.shows_zeros) if self.rules.zeros == "safe" else bounds

    def _reader(self, published: Booleans) -> _Reader:
        return _Reader(self.system, published, self.rules, None)

    def _amounts(self, cells: Integers) -> list[tuple[int, tuple[float, ...]]]:
        """Return by how much each cell must be able to move, in one of the directions."""
        return [(cell, self._amounts_of_cell(cell, float(self.levels[cell]))) for cell in cells.tolist()]

    def _amounts_of_cell(self, cell: int, level: float) -> tuple[float, ...]:
        """Return by how much a cell must be able to move, in one of the directions, for whom it has a level."""
        value, is_whole = float(self.system.values[cell]), bool(self.system.cell_is_whole[cell])
        if level > 0:
            # Numbers of records move by whole numbers.
            return (float(np.ceil(level)) if is_whole else level * (1 + 1e-4),)
        if is_whole:
            least = 1.0 if self.rules.zeros == "safe" and value > 0 and self.system.shows_zeros[cell] else 0.0
            return (1.0, -1.0) if value - 1 >= least else (1.0,)
        return (max(SMALLEST_MOVE * value, 1e-3),)

    def _repair(self, published: Booleans, unprotected: Booleans) -> tuple[Booleans, list[Floats], int]:
        """Hide what lets each failing cell move; return the printed cells, tables that fit, and the rounds."""
        published = published.copy()
        witnesses = list[Floats]()
        cells = self.protected[~unprotected[self.protected]]
        repair: CellRepair | None = None
        for rounds in range(MAX_ROUNDS):
            failing, witnesses = self._failing_cells(published, cells, witnesses)
            self.report(len(cells) - len(failing), len(cells), "unsafe cells")
            if not len(failing):
                return published, witnesses, rounds
            if repair is None:
                repair = self._cell_repair()
            before = published.sum()
            self._hide_for(repair, failing, published, witnesses)
            if published.sum() == before:
                return published, witnesses, rounds
        return published, witnesses, MAX_ROUNDS

    def _cell_repair(self, own: Contributor | None = None) -> CellRepair:
        """Return what finds the cells to hide so that a cell can move, for everybody or for a contributor."""
        system = self.system
        fixed = self.printed_zeros | self.frozen
        found = CellRepair(
            system.columns, system.atom_values, self._free_bounds(), fixed, self._reader(fixed).whole_atoms
        )
        return found if own is None else found.with_contributor(own.atoms, own.least, own.fixed)

    def _failing_cells(
        self, published: Booleans, cells: Integers, witnesses: list[Floats], programs: int = BULK_PROGRAMS
    ) -> tuple[Integers, list[Floats]]:
        """Return the cells that are not shown to be open, and tables that show the others to be."""
        reader = self._reader(published)
        follows = find_following(
            self.system.columns[:, cells], self.system.columns[:, np.flatnonzero(published)], self.prime
        )
        found = search_cells(
            reader.strictest(),
            cells,
            self.levels[cells],
            follows,
            reader.fitting(witnesses),
            single_programs=0,
            bulk_programs=programs,
        )
        # A cell that no table of the bulk opens is treated as one that follows: a repair costs less than a proof.
        return cells[found.failing], list(found.witnesses)

    def _hide_for(self, repair: CellRepair, failing: Integers, published: Booleans, witnesses: list[Floats]) -> None:
        """Hide printed cells, in place, until each failing cell can move."""
        system = self.system
        order = failing[np.lexsort((failing, -self.levels[failing], system.values[failing]))]
        if len(failing) * system.cell_count > MAX_SINGLE_REPAIRS:
            self._hide_for_many(repair, order, published, witnesses)
            return
        open_cells = np.zeros(system.cell_count, dtype=np.bool_)
        programs = 0
        for cell, amounts in self._amounts(order):
            if open_cells[cell]:
                continue
            if programs >= MAX_REPAIRS:
                return
            steps = []
            for amount in amounts:
                programs += 1
                step = repair.find_step([cell], [amount], published, self.costs + self._least_cost)
                if step is not None:
                    steps.append((float((self.costs[step.hidden] + self._least_cost).sum()), step))
            if not steps:
                continue
            step = min(steps, key=lambda pair: pair[0])[1]
            published[step.hidden] = False
            change = step.change
            whole = system.cell_is_whole[cell]
            if whole and np.abs(change - np.rint(change)).max() > TOLERANCE:
                continue
            change = np.rint(change) if whole else change
            witnesses.append(change)
            moved = np.asarray(system.columns.T @ change)
            enough = np.where(self.levels > 0, moved >= self.levels, np.abs(moved) >= (1.0 if whole else SMALLEST_MOVE))
            open_cells |= enough & (system.cell_is_whole == whole)

    def _hide_for_many(
        self, repair: CellRepair, failing: Integers, published: Booleans, witnesses: list[Floats]
    ) -> None:
        """Hide printed cells, in place, until many failing cells can rise, several in one program."""
        columns = self.system.columns
        for whole in (True, False):
            left = failing[self.system.cell_is_whole[failing] == whole]
            while len(left):
                part, left = left[:REPAIRED_TOGETHER], left[REPAIRED_TOGETHER:]
                amounts = np.array([own[0] for _, own in self._amounts(part)])
                step = repair.find_step(part.tolist(), amounts.tolist(), published, self.costs + self._least_cost)
                if step is None:
                    continue
                published[step.hidden] = False
                witnesses.append(step.change)
                # Those that move too need no program; the next round sees whether they can move by whole numbers.
                needed = np.array([own[0] for _, own in self._amounts(left)])
                left = left[np.asarray(columns[:, left].T @ step.change) < needed * (1 - TOLERANCE)]

    @property
    def _least_cost(self) -> float:
        """Return what hiding a cell costs at least, so that cells of cost 0 are not hidden for nothing."""
        return 1e-3 * float(self.costs.max(initial=1.0)) / max(1, self.system.cell_count) + 1e-9

    def _print_again(
        self, published: Booleans, unprotected: Booleans, witnesses: list[Floats], repaired: Booleans
    ) -> tuple[Booleans, list[Floats]]:
        """Print cells that repairs hid and that are not needed, the dearest first."""
        published = published.copy()
        cells = self.protected[~unprotected[self.protected]]
        failing, witnesses = self._failing_cells(published, cells, witnesses)
        if len(failing):
            return published, witnesses
        tried = min(MAX_REPRINTED, MAX_REPRINT_EFFORT // self.system.cell_count)
        for cell in self.order[repaired[self.order]][:tried].tolist():
            column = self.system.columns[:, [cell]]
            staying = [change for change in witnesses if abs((column.T @ change)[0]) <= self._rounding(cell)]
            trial = published.copy()
            trial[cell] = True
            if self._opens_pairs(trial):
                continue
            failing, found = self._failing_cells(trial, cells, staying, TRIAL_PROGRAMS)
            if not len(failing):
                published, witnesses = trial, found
        return published, witnesses

    def _rounding(self, cell: int) -> float:
        return 0.5 if self.system.cell_is_whole[cell] else TOLERANCE * float(self.system.values[cell])

    def _opens_pairs(self, published: Booleans) -> bool:
        """Return whether something follows by equations for a contributor, or a difference of releases does."""
        columns = self.system.columns
        printed = columns[:, np.flatnonzero(published)]
        if self.changes.shape[1] and find_following(self.changes, printed, self.prime).any():
            return True
        if not self.contributors:
            return False
        readers = [own[0] for own in list_sole_readers(self.system, published) if len(own) == 1]
        return bool(find_known_pairs(columns, printed, np.array(readers, dtype=np.int64), self.protected, self.prime))

    def _repair_for_contributors(
        self, published: Booleans, unprotected: Booleans, witnesses: list[Floats]
    ) -> tuple[Booleans, list[Floats]]:
        """Hide what lets cells move for contributors, who know their own part of each cell."""
        published = published.copy()
        for _ in range(MAX_ROUNDS):
            cells = self.protected[~unprotected[self.protected] & ~published[self.protected]]
            reader = self._reader(published)
            tables = reader.fitting(witnesses)
            polytope = reader.strictest()
            findings = find_contributor_findings(
                self.system,
                published,
                reader.printed_exactly,
                cells,
                self.levels[cells],
                self.rules,
                polytope,
                tables,
                self.prime,
                self.report,
            )
            # Of a large system, as many as are looked at; the audit says of the others that they are undecided.
            most = min(int(MAX_REPAIRS / program_size(polytope)), int(CONTRIBUTOR_EFFORT / polytope.program_effort))
            witnesses = tables
            before = published.sum()
            for finding in findings[:most]:
                self._hide_for_contributor(finding, published, witnesses)
            if published.sum() == before or most < len(findings):
                break
        return published, witnesses

    def _hide_for_contributor(self, finding: ContributorFinding, published: Booleans, witnesses: list[Floats]) -> None:
        """Hide printed cells, in place, until a cell can move for a contributor, if there is a way."""
        system, cell = self.system, finding.cell
        own = contributor_of_unit(system, finding.unit, published)
        of_cell = np.array([cell])
        level = float(
            levels_of_contributors(system, of_cell, self.levels[of_cell], self.rules).of_unit(finding.unit, 1)[0]
        )
        column = system.columns[:, [cell]]
        slack = 0.0 if system.cell_is_whole[cell] else TOLERANCE * float(system.atom_values.max(initial=1.0))
        for change in reversed(witnesses):
            moved = float((column.T @ change)[0])
            reaches = moved >= level * (1 - TOLERANCE) if level > 0 else abs(moved) > self._rounding(cell)
            stays = (change[own.atoms] >= own.least - system.atom_values[own.atoms] - slack).all()
            if reaches and stays and np.abs(change[own.fixed]).max(initial=0.0) <= slack:
                return  # a repair for another contributor has opened it
        step = None
        repair = self._cell_repair(own)
        for amount in self._amounts_of_cell(cell, level):
            found = repair.find_step([cell], [amount], published, self.costs + self._least_cost)
            if found is not None and (step is None or self.costs[found.hidden].sum() < self.costs[step.hidden].sum()):
                step = found
        if step is not None:
            published[step.hidden] = False
            witnesses.append(np.rint(step.change) if system.cell_is_whole[cell] else step.change)


def _warn_of_implied_cells(system: TableSystem, audit: TableAudit) -> list[str]:
    """Return a sentence on differences between tables of different records that are not protected."""
    cells = np.flatnonzero(audit.failing & system.is_implied).tolist()
    if not cells:
        return []
    told = join_first_names([system.cell_names[cell] for cell in cells[:3]], 3, total=len(cells), separator="; ")
    return [f"These differences between tables of different records are not protected: {told}."]


def _mark_cells(cells: Sequence[int] | Integers, number: int, what: str) -> Booleans:
    """Return which cells are listed, (cells,). Raises BadInput."""
    chosen = np.asarray(cells, dtype=np.int64).ravel()
    if len(chosen) and (chosen.min() < 0 or chosen.max() >= number):
        raise BadInput(f"tables.{what}", f"names a cell without records; cells are 0 to {number - 1:,}")
    found = np.zeros(number, dtype=np.bool_)
    found[chosen] = True
    return found


def _cell_costs(system: TableSystem, cost: Cost | Floats, factors: Floats | None) -> Floats:
    """Return what hiding each cell costs, (cells,). Raises BadInput."""
    if isinstance(cost, str):
        if cost not in ("value", "cells"):
            raise BadInput("tables.cost", 'must be "value", "cells" or a number for each cell')
        costs = np.abs(system.values) if cost == "value" else np.ones(system.cell_count)
    else:
        costs = np.asarray(cost, dtype=np.float64)
    if factors is not None:
        costs = costs * factors
    if costs.shape != (system.cell_count,) or not np.isfinite(costs).all() or (costs < 0).any():
        raise BadInput("tables.cost", "must be a number of at least 0 for each cell")
    return costs
