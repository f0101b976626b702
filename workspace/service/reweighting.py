"""From a finished run to the plan of one in which its records at risk have less influence."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.engine.recipe.recipe import Recipe

from ..store.runs import find_run
from ..store.workspace import Workspace
from ..views.records import find_measure, record_measures


@dataclass(frozen=True)
class Weighable:
    """A run, its recipe as a table, and the names of its measures that left a risk for every record."""

    run_id: int
    table: Mapping[str, Any]
    measures: tuple[str, ...]

    def weights(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """The ``[weights]`` table of what was answered: a measure, and a strength."""
        return {"run": self.run_id, **answers}

    def check(self, answers: Mapping[str, Any]) -> None:
        """Raises BadInput where the run's steps cannot weigh records so."""
        Recipe.from_table({**self.table, "weights": self.weights(answers)})


def weighable(workspace: Workspace, run_id: int) -> Weighable:
    """What a run has to weigh records by. Raises NotFound, DamagedTable, and NotReady where it left no risk of single records."""
    measures = record_measures(workspace, run_id)
    find_measure(measures, "", run_id)
    keys = [measure.key for measure in measures]
    names = tuple(one.key if keys.count(one.key) == 1 else one.place for one in measures)
    return Weighable(run_id, tomllib.loads(find_run(workspace, run_id).recipe_toml), names)
