"""Protected tables of a run that may be published, and the pairs of variables in them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations

from sfumato.engine.methods.approved_tables import ApprovedTable
from sfumato.engine.methods.registry import OWN
from sfumato.engine.methods.results import Fit
from sfumato.engine.recipe.steps import RecipeStep

from ..store.runs import StoredRun, read_run_records
from ..store.workspace import Workspace


def read_approved_tables(
    workspace: Workspace, run: StoredRun, packages: Collection[str] = ()
) -> tuple[ApprovedTable, ...]:
    """Return the approved tables of all synthesis steps; none for a step that publishes none or is not fitted yet.

    ``packages`` are those of other authors whose tables count as protected.
    """
    found: list[ApprovedTable] = []
    for step, fit in read_publishing_fits(workspace, run, packages):
        if (give := step.method.synthesis.privacy.publishable_tables) is not None:
            data = run.recipe.recode_data(
                read_run_records(workspace, run)
                # as in the fit, of which controls were no part
            ).without_controls
            found += give(fit, step.spec, step.targets, data)
    return tuple(found)


def read_publishing_fits(
    workspace: Workspace, run: StoredRun, packages: Collection[str] = ()
) -> Iterator[tuple[RecipeStep, Fit]]:
    """Yield the synthesis steps that may publish tables, with their stored fits; without steps that are not fitted yet."""
    for item, step in enumerate(run.recipe.synthesis):
        if step.table is not None:  # tables of units, or of records at one place, are not published
            continue
        # A package may call any table protected: ours are, which the contract tests try on every method.
        if step.method.synthesis.privacy.publishable_tables is None or step.method.package not in (OWN, *packages):
            continue
        row = workspace.connection.execute(
            "SELECT sha256 FROM artefact WHERE run_id = ? AND name = ?", (run.id, f"fit/{item}")
        ).fetchone()
        if row is not None:
            yield step, Fit(workspace.tables.read_arrays(row["sha256"]))


def pairs_in_approved_tables(workspace: Workspace, run: StoredRun) -> frozenset[frozenset[str]]:
    """Return the pairs of variables that share an approved table."""
    tables = read_approved_tables(workspace, run)
    return frozenset(frozenset(pair) for one in tables for pair in combinations(one.variables, 2))
