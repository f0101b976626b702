"""Why a cell of a protected table is hidden, between which values readers place it, and what else fits the table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor, isinf
from typing import TYPE_CHECKING

import numpy as np

from sfumato.engine.recipe.table_sections import TableProtection
from sfumato.engine.tables.rules import DOMINANCE, PRIOR_POSTERIOR, THRESHOLD, ZEROS
from sfumato.engine.tables.system import EMPTY, TableSystem
from sfumato.engine.wording import count_of_noun, format_number, format_percent

from ..visible_text import replace_unprintable
from .table_grids import LETTERS, UNDECIDED, AuditedTables, TableGrid

if TYPE_CHECKING:
    from sfumato.engine.tables.polytope import TablePolytope

MOST_CONTRIBUTORS = 12
"""Contributors for whom the interval of one cell is computed, at most."""
SLACK = 1e-6
"""By how much a linear program may miss a whole number."""
CONTRIBUTOR = "a contributor"
HIDDEN_VALUE = "hidden; v shows it"


@dataclass(frozen=True, slots=True)
class ReaderInterval:
    """Between which values one reader places a cell.

    reader: who reads the tables, in words
    low, high: smallest and largest possible value; infinity where nothing bounds it
    needs_values: whether the interval follows from values that are not printed
    """

    reader: str
    low: float
    high: float
    needs_values: bool = False

    @property
    def is_exact(self) -> bool:
        """Return whether one value alone is possible."""
        return self.is_computed and not isinf(self.high) and self.high - self.low <= SLACK * max(1.0, abs(self.high))

    @property
    def is_computed(self) -> bool:
        """Return whether the programs were solved: no sum of values can be below 0."""
        return not isinf(self.low)


@dataclass(frozen=True)
class CellExplanation:
    """What a person has to know of one cell.

    place: where it stands, in words
    letter: what becomes of it
    value: its value as text; confidential where it is hidden
    is_hidden: whether it is hidden
    reasons: why, without confidential numbers
    numbers: the same with the numbers of its contributors, which are confidential
    intervals: what each reader computes, the strictest last
    certificate: value that a second table has there, which fits all that is printed; None without one
    whole: whether it is a number of records
    """

    place: str
    letter: str
    value: str
    is_hidden: bool
    reasons: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    intervals: tuple[ReaderInterval, ...] = ()
    certificate: float | None = None
    whole: bool = True

    def facts(self, *, revealed: bool) -> list[tuple[str, str]]:
        """Return the explanation as pairs of a name and a sentence; confidential numbers only where ``revealed``."""
        shown = [("cell", self.place), ("status", LETTERS[self.letter])]
        shown.append(("value", HIDDEN_VALUE if self.is_hidden and not revealed else self.value))
        texts = self.numbers if revealed and self.numbers else self.reasons
        shown += [("why" if not at else "", text) for at, text in enumerate(texts)]
        shown += [(one.reader, self._interval_text(one, revealed=revealed)) for one in self.intervals]
        if self.certificate is not None:
            shown.append(("what else fits", self._certificate_text(revealed=revealed)))
        return [(name, replace_unprintable(text)) for name, text in shown]

    def _interval_text(self, interval: ReaderInterval, *, revealed: bool) -> str:
        """Return an interval in words; the one value that is possible is the hidden value itself."""
        if not interval.is_computed:
            return "not computed: the tables are too large"
        if interval.is_exact:
            return f"knows that it is {self.number_text(interval.low)}" if revealed else "knows it exactly"
        if interval.needs_values and not revealed:
            return "computes an interval; v shows it"
        if isinf(interval.high):
            return f"places it at {self.number_text(interval.low)} or more"
        return f"places it from {self.number_text(interval.low)} to {self.number_text(interval.high)}"

    def _certificate_text(self, *, revealed: bool) -> str:
        """Return in words that a second table fits what is printed."""
        if self.certificate is None:
            return ""
        if not revealed:
            return "another value fits all that is printed"
        return f"{self.value} and {self.number_text(self.certificate)} both fit all that is printed"

    def number_text(self, number: float) -> str:
        """Return a value of the cell as text."""
        return f"{round(number):,}" if self.whole else format_number(number)


def explain_cell(
    found: AuditedTables,
    protection: TableProtection,
    grid: TableGrid,
    row: int,
    column: int,
    unit_noun: str = "records",
    *,
    with_intervals: bool = True,
    with_numbers: bool = True,
) -> CellExplanation:
    """Return why the cell at a place is hidden, and what readers compute of it.

    ``unit_noun`` is the plural of what the rules protect. Intervals take linear programs, and the numbers of
    contributors a pass over all records; without both the result comes at once.
    """
    cell = int(grid.cells[row, column])
    letter = str(grid.letters[row, column])
    is_hidden = not bool(grid.published[row, column])
    base = CellExplanation(
        grid.describe_place(row, column),
        letter,
        grid.value_text(row, column),
        is_hidden,
        (),
        whole=grid.whole,
    )
    if cell == EMPTY:
        reason = "no records are here, and the recipe hides zeros" if is_hidden else "no records are here"
        return replace(base, reasons=(reason,))
    reasons, numbers = _list_reasons(found, protection, cell, letter, unit_noun, with_numbers=with_numbers)
    base = replace(base, reasons=tuple(reasons), numbers=tuple(numbers))
    if not is_hidden:
        return base
    certificate = _certificate_value(found, cell)
    intervals = _reader_intervals(found, protection, cell) if with_intervals else ()
    return replace(base, intervals=tuple(intervals), certificate=certificate)


def _list_reasons(
    found: AuditedTables, protection: TableProtection, cell: int, letter: str, unit_noun: str, *, with_numbers: bool
) -> tuple[list[str], list[str]]:
    """Return why a cell has its status, without and with the numbers of its contributors, if these are wanted."""
    audit, frozen = found.audit, bool(found.frozen[cell])
    is_printed = bool(audit.published[cell])
    reasons, numbers = list[str](), list[str]()
    for rule in (name for name, cells in audit.by_rule.items() if cells[cell]):
        reasons.append(_describe_rule(protection, rule, unit_noun))
        if with_numbers:
            numbers.append(_describe_contributions(found.system, protection, rule, cell, unit_noun))
    extra = list[str]()
    if audit.primary[cell] and not reasons:
        extra.append("the recipe hides it")
    if frozen and is_printed:
        extra.append("an earlier release printed it, or the recipe prints it whatever follows")
    if not (audit.primary[cell] or is_printed):
        extra.append("it is safe in itself; printed, it would give an unsafe cell away")
    if found.unprotected[cell]:
        extra.append(
            "it is unsafe, and it is printed all the same"
            if is_printed
            else "it follows from cells that stay printed, so hiding it is not enough"
        )
    if audit.short_of_level[cell]:
        extra.append("readers place it closer to its value than the rule allows")
    if letter == UNDECIDED:
        extra.append("whether it follows was not found out; it counts as not protected")
    every = reasons + extra or ["no rule finds it"]
    return every, (numbers + extra) or every


def _describe_rule(protection: TableProtection, rule: str, unit_noun: str) -> str:
    """Return the breach of a rule in words, without numbers of a cell."""
    if rule == THRESHOLD:
        return f"fewer than {count_of_noun(protection.threshold or 0, unit_noun)}"
    if rule == ZEROS:
        return "no records are here, and the recipe hides zeros"
    if rule == DOMINANCE:
        return " or ".join(_dominance_text(n, f"more than {format_number(k)} %") for n, k in protection.dominance)
    return "the second largest could estimate the largest too closely"


def _dominance_text(number: int, share: str) -> str:
    """Return how much the largest units contribute: ``the 2 largest contribute more than 85 %``."""
    return f"the largest contributes {share}" if number == 1 else f"the {number} largest contribute {share}"


def _describe_contributions(
    system: TableSystem, protection: TableProtection, rule: str, cell: int, unit_noun: str
) -> str:
    """Return the breach of a rule in a cell with the numbers of its contributors, which are confidential."""
    from sfumato.engine.tables.rules import list_cell_units

    if rule == THRESHOLD:
        few = count_of_noun(int(system.unit_counts[cell]), unit_noun)
        return f"{few}; a printed cell has {protection.threshold} or more"
    if rule == ZEROS:
        return _describe_rule(protection, rule, unit_noun)
    units = list_cell_units(system, np.array([cell]), protection.weights)
    total, first = float(units.totals[0]), float(units.sum_largest(1)[0])
    if rule == DOMINANCE:
        # Of several rules those that are not broken say nothing of the cell.
        shares = [(n, k, float(units.sum_largest(n)[0]) / total if total else 1.0) for n, k in protection.dominance]
        broken = [one for one in shares if one[2] > one[1] / 100] or shares[:1]
        return "; ".join(
            _dominance_text(n, f"{format_percent(share)}, more than {format_number(k)} %") for n, k, share in broken
        )
    closeness = max(total - float(units.sum_largest(2)[0]), 0.0) / first if first else 0.0
    limit = protection.p_percent
    if rule == PRIOR_POSTERIOR and protection.prior_posterior:
        p, q = protection.prior_posterior
        closeness, limit = closeness * q / 100, p
    return (
        f"the second largest could estimate the largest to within {format_percent(closeness)}, "
        f"less than {format_number(limit)} %"
    )


def _certificate_value(found: AuditedTables, cell: int) -> float | None:
    """Return the value that a second table which fits all that is printed has in a cell; None without one."""
    audit, system = found.audit, found.system
    at = int(audit.certificate[cell])
    if at < 0 or at >= len(audit.tables):
        return None
    move = float((system.columns[:, [cell]].T @ audit.tables[at])[0])
    return float(system.values[cell]) + move


def _reader_intervals(found: AuditedTables, protection: TableProtection, cell: int) -> list[ReaderInterval]:
    """Return what the readers of the tables compute of a hidden cell, by linear programs."""
    from sfumato.engine.tables.polytope import CellBounds, TablePolytope

    system, audit = found.system, found.audit
    outside = CellBounds.of_printed(system.values, audit.published)
    none_whole = np.zeros(len(system.atom_values), dtype=np.bool_)

    def tables_of(bounds: CellBounds) -> TablePolytope:
        """Return the tables that are left for a reader."""
        return TablePolytope(system.columns, system.atom_values, bounds, none_whole)

    strict = tables_of(outside)
    intervals = [_find_interval(system, strict, cell, "any reader", follows=bool(audit.exact_outside[cell]))]
    if protection.zeros == "safe" and system.cell_is_whole[cell]:
        strict = tables_of(outside.with_zeros_shown(system.values, system.shows_zeros))
        follows = bool(audit.exact_outside[cell] or audit.exact_zeros_shown[cell])
        intervals.append(_find_interval(system, strict, cell, "one who uses zeros", follows=follows))
    closest = _interval_of_contributors(found, strict, cell)
    return intervals if closest is None else [*intervals, closest]


def _interval_of_contributors(found: AuditedTables, strict: TablePolytope, cell: int) -> ReaderInterval | None:
    """Return the closest interval of those who add to cells; None where nobody knows more than the strictest reader.

    ``strict`` are the tables that are left for that one.
    """
    from sfumato.engine.tables.contributors import contributor_of_unit, list_contributors

    system, published = found.system, found.audit.published
    units = [one for one in found.audit.contributor_findings if one.cell == cell and not one.undecided]
    exact = any(not one.is_short for one in units)
    if units:
        readers = [contributor_of_unit(system, one.unit, published) for one in units]
    else:
        readers = [one for one in list_contributors(system, published, strict) if cell not in one.cells]
        if len(readers) > MOST_CONTRIBUTORS:
            return None  # the programs would take minutes; the audit has asked for all of them already
    tried = [
        _find_interval(
            system, strict.with_contributor(one.atoms, one.least, one.fixed), cell, CONTRIBUTOR, follows=exact
        )
        for one in readers[:MOST_CONTRIBUTORS]
    ]
    if not tried:
        return None
    return replace(min(tried, key=lambda one: one.high - one.low), needs_values=True)


def _find_interval(
    system: TableSystem, tables: TablePolytope, cell: int, reader: str, *, follows: bool
) -> ReaderInterval:
    """Return the interval of a reader; the value alone where the audit found that it ``follows``."""
    value = float(system.values[cell])
    if follows:
        # Whole numbers may fix what a linear program leaves open.
        return ReaderInterval(reader, value, value)
    low, high = tables.cell_interval(cell)
    if system.cell_is_whole[cell] and not isinf(low):
        low = float(ceil(low - SLACK))
        high = high if isinf(high) else float(floor(high + SLACK))
    return ReaderInterval(reader, low, high)
