"""The protected tables of a run that may be published, and which pairs of variables they keep."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from sfumato.engine.methods.approved_tables import ApprovedTable
from sfumato.engine.methods.results import Fit
from sfumato.engine.recipe.steps import RecipeStep

from ..store.runs import Run
from ..store.workspace import Workspace


def approved_tables(workspace: Workspace, run: Run) -> tuple[ApprovedTable, ...]:
    """Of all synthesis steps; none where no step gives any, or its fit is not there yet."""
    found: list[ApprovedTable] = []
    for step, fit in step_fits(workspace, run):
        if (give := step.method.synthesis.approved) is not None:
            data = run.recipe.recode_data(workspace.read(workspace.dataset(run.dataset_id))).without_controls
            found += give(fit, step.spec, step.targets, data)
    return tuple(found)


def step_fits(workspace: Workspace, run: Run) -> Iterator[tuple[RecipeStep, Fit]]:
    """The synthesis steps that may publish tables, and their stored fits; none of a step whose fit is not there yet."""
    for item, step in enumerate(run.recipe.synthesis):
        if step.method.synthesis.approved is None:
            continue
        row = workspace.connection.execute(
            "SELECT sha256 FROM artefact WHERE run_id = ? AND name = ?", (run.id, f"fit/{item}")
        ).fetchone()
        if row is not None:
            yield step, Fit(workspace.tables.read_arrays(row["sha256"]))


def kept_pairs(workspace: Workspace, run: Run) -> frozenset[frozenset[str]]:
    """The pairs of variables that stand together in one of these tables."""
    tables = approved_tables(workspace, run)
    return frozenset(frozenset(pair) for one in tables for pair in combinations(one.variables, 2))
