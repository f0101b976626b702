"""What the records of a run are weighed by: which had most risk before or stand out in the data, so that they say least, and what became of their risk.

Record numbers and weights alone, no values of the data; but weights say who was at risk, so they stay inside.
"""

from __future__ import annotations

import numpy as np

from sfumato.engine.data.arrays import Floats

from ..errors import DamagedTable, NotFound, NotReady
from ..reporting.weights import RecordWeights
from ..store.artefacts import read_weights, weights_hash
from ..store.runs import Run, find_run
from ..store.workspace import Workspace
from .records import find_measure, record_measures, risk_of_records


def weights_of(workspace: Workspace, run_id: int | str) -> RecordWeights:
    """The weights of a run's records, beside their risk now where the run has measured it by the same method.

    Raises NotFound, DamagedTable, and NotReady where the run weighs no records.
    """
    run = find_run(workspace, run_id)
    sha256 = weights_hash(workspace, run.id)
    if run.recipe.weights is None or not sha256:
        raise NotReady(
            f"run {run.id} gives every record the same influence; sfumato run RECIPE --weights-from {run.id} does not"
        )
    weights = _read(workspace, run, sha256)
    measures = record_measures(workspace, run.id)
    earlier, name = run.recipe.weights.run, run.recipe.weights.measure
    key, now = "" if earlier is None else _same_measure(workspace, earlier, name), None
    same = [measure for measure in measures if measure.key == key]
    if same:
        now = risk_of_records(workspace, same[0]).probability
    return RecordWeights(run.id, run.recipe.weights, key, weights, None if now is None else np.asarray(now))


def _same_measure(workspace: Workspace, run_id: int, name: str) -> str:
    """The key of the measure that the weights were found by; as the recipe names it where that run is gone."""
    try:
        return find_measure(record_measures(workspace, run_id), name, run_id).key
    except (NotFound, NotReady):
        return name


def weights_said(workspace: Workspace, run_id: int) -> tuple[str, ...]:
    """That the records of a run are weighed and how many of them say less, and which say least, in lines; none where they are not weighed."""
    run = find_run(workspace, run_id)
    sha256 = weights_hash(workspace, run.id) if run.recipe.weights is not None else ""
    if run.recipe.weights is None or not sha256:
        return ()
    found = RecordWeights(run.id, run.recipe.weights, "", _read(workspace, run, sha256), None)
    return found.said, *((f"say least: {found.least}",) if found.least else ())


def _read(workspace: Workspace, run: Run, sha256: str) -> Floats:
    """The weights (n,), one for each record of the run. Raises DamagedTable."""
    weights = read_weights(workspace.tables, sha256)
    if len(weights) != workspace.dataset(run.dataset_id).records:
        raise DamagedTable(f"the weights of run {run.id} are not those of its records")
    return weights
