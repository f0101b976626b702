"""Pairs of the synthesised variables of a run, read from the workspace."""

from __future__ import annotations

from ..plots.figure import Figure
from ..plots.triangle import OTHER_VARIABLE, triangle_figures
from ..reporting.pairs import VariablePairs
from ..store.runs import find_run
from ..store.workspace import Workspace
from .approved import pairs_in_approved_tables
from .results import read_result_rows


def read_variable_pairs(workspace: Workspace, run_id: int) -> tuple[VariablePairs, Figure | None]:
    """Return the pairs of the synthesised variables, and a heat map of them where a measure has values of pairs.

    Raises NotFound.
    """
    run = find_run(workspace, run_id)
    rows, kept = (
        [row for row in read_result_rows(workspace, run_id) if row.draw is None],
        pairs_in_approved_tables(workspace, run),
    )
    apart = {
        frozenset((row.target, str(row.params[OTHER_VARIABLE]))): row.value
        for row in rows
        if OTHER_VARIABLE in row.params and row.value is not None and row.dataset != "confidential"
    }
    return VariablePairs(run.recipe.released, kept, apart), next(iter(triangle_figures(rows, kept)), None)
