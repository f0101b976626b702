"""An intruder who knows all other records and looks at what was released of the one asked about alone.

Weaker than one who weighs the whole release: every other released record tells of the fit too, which the record asked about has moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from ..errors import NotComputable
from ..methods.release_models import OwnRecordModel, ReleaseModel
from ._guess_space import OpenGuesses
from ._ties import share_right


def own_record_right(models: Sequence[ReleaseModel], opened: OpenGuesses, prior: Floats) -> dict[str, NDArray[Any]]:
    """Whether the truth is the most likely guess by the first 1 to m datasets, and by each alone, (t, m), with a log ``prior`` (t, g).

    Raises NotComputable where a model cannot tell it.
    """
    found = []
    for model in models:
        if not isinstance(model, OwnRecordModel):
            told = ", ".join(model.targets)
            raise NotComputable(
                f"the model of {told} does not tell what it released of one record: leave own_record out"
            )
        found.append(model.own_record(opened.guesses))
    likelihood = np.sum(found, axis=0)
    return {
        "own_first_right": share_right(prior[..., None] + likelihood.cumsum(axis=2), opened.truth),
        "own_alone_right": share_right(prior[..., None] + likelihood, opened.truth),
    }
