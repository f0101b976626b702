"""Confidential values that a synthesis step may see when it draws: none that it could pass on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from ..data.microdata import Microdata
from ..recipe.steps import RecipeStep


def confidential_for_drawing(
    step: RecipeStep, later: Sequence[str], confidential: Microdata, rng: np.random.Generator
) -> Microdata:
    """Return the confidential records that a step may use when it draws, as ``sfumato.engine.execution.making.data_for_drawing`` does.

    ``later`` are the targets of later steps.
    """
    own = confidential.without_variables(later, step.place) if later else confidential
    if not step.spec.uses_own_record:
        # Shuffled, so that a method that looked at its own record's target could not copy it.
        order = rng.permutation(len(own))
        if own.weights is not None:
            # Records of weight 0 stay apart, or the values that must leave no trace would take the place of others.
            counted = own.weights > 0
            whole = np.empty_like(order)
            whole[counted], whole[~counted] = order[counted[order]], order[~counted[order]]
            order = whole
        frame = own.frame
        columns = {name: pd.Series(frame[name].array.take(order), frame.index, copy=False) for name in step.targets}
        if own.units is not None:
            # Numbers that say which targets are of one unit, and nothing of whose they are.
            columns[str(own.schema.unit)] = pd.Series(pd.factorize(own.units.unit_of[order])[0], frame.index)
        own = replace(own, frame=own.frame.assign(**columns), kinds=None)
    return own
