"""The weights of single records of a run: found by the risks of an earlier one, kept beside the run, given to its fits.

They say who was at risk, so they are as confidential as the data: an artefact of the run, sealed and committed to, in no recipe and no
public file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.engine.arrays import Floats
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.weights import weights_by_risk

from ..errors import NotFound, NotReady
from ..store.runs import RunState, find_run
from ..upkeep.integrity import hold
from ..views.records import find_measure, record_measures, risk_of_records

if TYPE_CHECKING:
    from ..store.workspace import Workspace


def weights_for(workspace: Workspace, recipe: Recipe, data: Microdata) -> Floats | None:
    """The weights (n,) that a recipe asks for, by the stored risks of the run that it names; None where it asks for none.

    The steps are checked against them. Raises BadInput where there is no such run, it is not done, it is of other records or variables, or left no risks of
    all single records, and where a step cannot be carried out so; NotAsSealed.
    """
    asked = recipe.weights
    if asked is None:
        return None
    try:
        run = find_run(workspace, asked.run)
    except NotFound as error:
        raise BadInput("weights.run", str(error)) from None
    if run.state is not RunState.DONE:
        raise BadInput("weights.run", f"run {run.id} is {run.state}, not done; resume it first")
    hold(workspace, run.id)
    earlier = workspace.read(workspace.dataset(run.dataset_id))
    if len(earlier) != len(data) or earlier.sha256 != data.sha256:
        raise BadInput(
            "weights.run",
            f"run {run.id} is of other records or variables, so its risks are not those of these records; take a run of the same "
            "[data] and [variables]",
        )
    try:
        measure = find_measure(record_measures(workspace, run.id), asked.measure, run.id)
    except (NotFound, NotReady) as error:
        raise BadInput("weights.measure", str(error)) from None
    risk = risk_of_records(workspace, measure).probability
    if others := int(np.isnan(risk).sum()):
        raise BadInput(
            "weights.measure",
            f"{measure.key} did not ask about {others:,} of {len(risk):,} records in run {run.id}: they would keep all their influence, while this run "
            "would ask about the same few again, which then look safer than the others are; have it ask about all records there",
        )
    weights = weights_by_risk(risk, asked.strength)
    if not weights.any():
        raise BadInput("weights.strength", "every record would have no influence at all; take a lower strength")
    check_steps(recipe, data.weighted(weights))
    return weights
