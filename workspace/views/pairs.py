"""What a run keeps of pairs of variables, read from the workspace."""

from __future__ import annotations

from ..plots.figure import Figure
from ..plots.triangle import OTHER, triangle_figures
from ..reporting.pairs import PairsFound
from ..store.runs import find_run
from ..store.workspace import Workspace
from .approved import kept_pairs
from .results import result_rows


def pairs_of(workspace: Workspace, run_id: int) -> tuple[PairsFound, Figure | None]:
    """The pairs of the variables that were made, and the triangle as a picture where a measure has numbers of pairs. Raises NotFound."""
    run = find_run(workspace, run_id)
    rows, kept = [row for row in result_rows(workspace, run_id) if row.draw is None], kept_pairs(workspace, run)
    apart = {
        frozenset((row.target, str(row.params[OTHER]))): row.value
        for row in rows
        if OTHER in row.params and row.value is not None and row.dataset != "confidential"
    }
    return PairsFound(run.recipe.released, kept, apart), next(iter(triangle_figures(rows, kept)), None)
