"""Draw of one synthesis step in one dataset: what the step may see, and its random numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.microdata import Microdata
from ..methods.results import Fit
from ..methods.run import Randomness
from ..recipe.steps import RecipeStep

Path = tuple[str | int, ...]


@dataclass(frozen=True, eq=False)
class StepDraw:
    """Draw of step ``item`` of a recipe in dataset ``draw`` (from 1).

    own: confidential records that the step may use
    before: records that are drawn or kept so far, as the step may use them
    records: number of records that it draws; None for as many as the confidential data have
    path: what its random numbers depend on besides, such as the place of the records in their units
    """

    step: RecipeStep
    item: int
    fit: Fit
    draw: int
    own: Microdata
    before: Microdata
    records: int | None
    streams: Randomness
    path: Path = ()

    def draw_values(self, rng: np.random.Generator) -> Mapping[str, NDArray[np.generic]]:
        """Draw the values of the step's targets, each (records,)."""
        step = self.step
        return step.method.draw_targets(
            self.fit, step.spec, step.targets, self.own, self.before, self.draw - 1, rng, self.records
        )

    def generator(self, attempt: int) -> np.random.Generator:
        """Return the generator of the first draw (0), or of a redraw."""
        again = ("redraw", attempt) if attempt else ()
        return self.streams.generator("draw", self.draw, self.item, *self.path, *again)
