"""Protection of the tables of a recipe, and their audit by other random numbers, as the tasks of a run carry them out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..data.arrays import Integers
from ..data.microdata import Microdata
from ..errors import NotComputable
from ..methods.rows import Row, row_from_estimate
from ..methods.run import Progress, ignore_progress
from ..methods.table_numbers import TABLE_NUMBERS, table_estimates
from ..recipe.declared_tables import RecipeTables, protect_recipe_tables
from ..recipe.joined_tables import ReleasedTables, frozen_cells, join_released_tables, widen_tables
from ..recipe.recipe import Recipe
from ..tables.audit import TableAudit, audit_tables
from ..tables.elimination import SECOND_PRIME, ReportSteps
from ..tables.rules import TableRules, UnsafeCells
from ..tables.system import TableSystem
from .making import Report

MOST_CELLS = 30_000
"""Different cells with records up to which tables are protected: beyond, the equations need too much memory."""
MOST_CELLS_OF_CONTRIBUTORS = 5_000
"""Cells up to which contributors are examined: of 14,160 cells that did not end in 5 minutes."""
NO_INTERVAL = "no unsafe cell is hidden, so none has an interval"
CONTRIBUTORS_NOT_EXAMINED = (
    f"The tables have more than {MOST_CELLS_OF_CONTRIBUTORS:,} cells, so what contributors, who know their own part of "
    "each cell, work out was not examined. Print fewer cells, or fewer tables in one run."
)


def protect_tables_of_recipe(
    recipe: Recipe,
    confidential: Microdata,
    report: Report = ignore_progress,
    earlier: Sequence[ReleasedTables] = (),
) -> RecipeTables:
    """Protect the tables of a recipe by its rules, jointly, and with what earlier releases printed of the same people.

    Raises BadInput, and NotComputable for more cells than ``MOST_CELLS``.
    """
    assert recipe.table_protection is not None, "a recipe with tables has rules for them"

    def examine(system: TableSystem) -> bool:
        """Return whether contributors are examined. Raises NotComputable for too many cells."""
        check_number_of_cells(system)
        report(Progress(0, system.cell_count, "cells"))
        return system.cell_count <= MOST_CELLS_OF_CONTRIBUTORS

    steps = _report_steps(report)
    if not earlier:
        found = protect_recipe_tables(
            confidential, recipe.tables, recipe.table_protection, contributors=examine, report=steps
        )
    else:
        joined = join_released_tables(confidential, recipe.tables, earlier)
        found = protect_recipe_tables(
            confidential,
            recipe.tables,
            recipe.table_protection,
            earlier=joined.declared,
            frozen=lambda system: frozen_cells(system, joined),
            contributors=examine,
            widen=lambda declared: widen_tables(declared, len(confidential), joined),
            report=steps,
        )
    report(Progress(found.system.cell_count, found.system.cell_count, "cells"))
    return found


def _report_steps(report: Report) -> ReportSteps:
    """Return what takes the steps of protecting tables, or of an audit, and reports them as progress."""

    def report_step(done: int, total: int, what: str) -> None:
        report(Progress(done, max(total, 1), what))

    return report_step


def check_number_of_cells(system: TableSystem) -> None:
    """Raise NotComputable where tables have too many cells."""
    if system.cell_count > MOST_CELLS:
        raise NotComputable(
            f"the tables have {system.cell_count:,} different cells, at most {MOST_CELLS:,} can be looked at "
            "together; print fewer levels, or fewer tables"
        )


def audit_protected_tables(
    system: TableSystem,
    audit: TableAudit,
    rules: TableRules,
    by_hand: Integers,
    contributors: bool,
    report: Report = ignore_progress,
) -> TableAudit:
    """Audit protected tables again, by other random numbers than those that they were protected with.

    ``by_hand`` are the cells that count as unsafe whatever the rules say. Tables that fit are reused, since each is
    checked against all printed cells.
    """
    again = audit_tables(
        system,
        audit.published,
        rules,
        hidden_by_hand=by_hand.tolist(),
        contributors=contributors,
        # What the recipe declares safe, and its levels, are decided already.
        unsafe=UnsafeCells(audit.by_rule, audit.levels, rules.warnings),
        witnesses=list(audit.tables),
        prime=SECOND_PRIME,
        report=_report_steps(report),
    )
    # What one of the two finds is found.
    joined = again.with_findings_of(audit)
    return replace(joined, people_affected=max(again.people_affected, audit.people_affected))


def list_cells_by_hand(audit: TableAudit) -> Integers:
    """Return the cells that are unsafe by no rule: the recipe decides that they are hidden."""
    by_rule = np.logical_or.reduce([np.zeros(len(audit.primary), dtype=np.bool_), *audit.by_rule.values()])
    return np.flatnonzero(audit.primary & ~by_rule)


def table_rows(recipe: Recipe, counts: Mapping[str, float]) -> list[Row]:
    """Return the result rows of the numbers of protected tables; a number that is NaN was not examined."""
    reasons = {"exact_contributor": CONTRIBUTORS_NOT_EXAMINED, "smallest_interval": NO_INTERVAL}
    estimates = table_estimates(counts, {name: reasons[name] for name in reasons if math.isnan(counts[name])})
    settings: dict[str, object] = {}
    return [row_from_estimate(TABLE_NUMBERS, one, recipe.origin, None, settings=settings) for one in estimates]
