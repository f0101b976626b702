"""Weights of a run's records, which limit the influence of records at risk, and their risk now.

Only record numbers and weights are read, no values of the data; but weights reveal who was at risk, so they are
internal.
"""

from __future__ import annotations

import numpy as np

from sfumato.engine.data.arrays import Floats

from ..errors import DamagedTable, NotFound, NotReady
from ..reporting.weights import RecordWeights
from ..store.artefacts import read_weights, weights_hash
from ..store.runs import StoredRun, find_run
from ..store.workspace import Workspace
from .records import read_record_risks, record_measures, select_measure


def read_record_weights(workspace: Workspace, run_id: int | str) -> RecordWeights:
    """Read the weights of a run's records, and their present risk where the run measured it by the same method.

    Raises NotFound, DamagedTable, and NotReady where the run does not weight records.
    """
    run = find_run(workspace, run_id)
    sha256 = weights_hash(workspace, run.id)
    if run.recipe.weights is None or not sha256:
        raise NotReady(
            f"run {run.id} gives every record the same influence; sfumato run RECIPE --weights-from {run.id} does not"
        )
    weights = _read_checked_weights(workspace, run, sha256)
    measures = record_measures(workspace, run.id)
    earlier, name = run.recipe.weights.run, run.recipe.weights.measure
    key, now = "" if earlier is None else _weighting_measure_key(workspace, earlier, name), None
    same = [measure for measure in measures if measure.key == key]
    if same:
        now = read_record_risks(workspace, same[0]).probability
    return RecordWeights(run.id, run.recipe.weights, key, weights, None if now is None else np.asarray(now))


def _weighting_measure_key(workspace: Workspace, run_id: int, name: str) -> str:
    """Return the key of the measure by which the weights were found; as the recipe names it where that run is gone."""
    try:
        return select_measure(record_measures(workspace, run_id), name, run_id).key
    except (NotFound, NotReady):
        return name


def record_weight_lines(workspace: Workspace, run_id: int) -> tuple[str, ...]:
    """Return how many records have a reduced weight, and the lowest, in lines; none for a run without weights."""
    run = find_run(workspace, run_id)
    sha256 = weights_hash(workspace, run.id) if run.recipe.weights is not None else ""
    if run.recipe.weights is None or not sha256:
        return ()
    found = RecordWeights(run.id, run.recipe.weights, "", _read_checked_weights(workspace, run, sha256), None)
    return found.summary_text, *((f"say least: {found.lowest_weights_text}",) if found.lowest_weights_text else ())


def _read_checked_weights(workspace: Workspace, run: StoredRun, sha256: str) -> Floats:
    """Read the weights (n,), one for each record of the run. Raises DamagedTable."""
    weights = read_weights(workspace.tables, sha256)
    if len(weights) != workspace.find_dataset(run.dataset_id).records:
        raise DamagedTable(f"the weights of run {run.id} are not those of its records")
    return weights
