"""Weights by risk: from a finished run to a plan in which its records at risk have less influence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.engine.recipe.recipe import Recipe

from ..store.runs import find_run
from ..store.workspace import Workspace
from ..views.records import record_measures, select_measure


@dataclass(frozen=True)
class ReweightableRun:
    """Run whose records can be weighted by their risk.

    run_id: number of the run
    table: its recipe as a table
    measures: names of its measures that left a risk for every record
    """

    run_id: int
    table: Mapping[str, Any]
    measures: tuple[str, ...]

    def weights_table(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Build the recipe's ``[weights]`` table from the answers of the form: a measure, and a strength."""
        return {"run": self.run_id, **answers}

    def check_answers(self, answers: Mapping[str, Any]) -> None:
        """Raise BadInput where the steps of the run's recipe cannot weight records so."""
        Recipe.from_table({**self.table, "weights": self.weights_table(answers)})


def read_reweightable_run(workspace: Workspace, run_id: int) -> ReweightableRun:
    """Read a run with the measures that its records can be weighted by.

    Raises NotFound, DamagedTable, and NotReady where it left no risk of single records.
    """
    measures = record_measures(workspace, run_id)
    select_measure(measures, "", run_id)
    keys = [measure.key for measure in measures]
    # Two measures by one method are told apart by their places only.
    names = tuple(one.key if keys.count(one.key) == 1 else one.place for one in measures)
    return ReweightableRun(run_id, find_run(workspace, run_id).recipe_table, names)
