"""How many records have few matches, as few grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.methods.outputs import Axis, Output
from sfumato.engine.methods.registry import method
from sfumato.engine.methods.results import Estimate, Measure, StudyPoint
from sfumato.engine.methods.run import Run
from sfumato.engine.methods.spec import Param, StudySpec

from .lone_matches import matches


@dataclass(frozen=True, kw_only=True, slots=True)
class FewMatchesSpec(StudySpec):
    """What the intruder knows, and up to how many matches are few."""

    known: Annotated[tuple[str, ...], Param("variables the intruder knows", names="variables")]
    most: Annotated[int, Param("largest number of matches that is few", ge=1)] = 3

    def grid(self) -> tuple[float, ...]:
        """The numbers of matches."""
        return tuple(float(number) for number in range(1, self.most + 1))


@method(
    "Few matches",
    spec=FewMatchesSpec,
    source="An example (2026), section 2",
    outputs=(Output("few", "records that so many released records or fewer match", "low", "share", range=(0.0, 1.0)),),
    axis=Axis("matches", "matches that are few", "records", heading="records with few matches", discrete=True),
)
def few_matches(
    confidential: Microdata, releases: Sequence[Microdata], point: float, spec: FewMatchesSpec, run: Run
) -> StudyPoint:
    """The share of the confidential records with 1 to ``point`` matches in each release."""

    def measured(released: Microdata) -> Measure:
        found = matches(confidential, released, spec.known)
        return Measure((Estimate("few", float(np.mean((found > 0) & (found <= point))), unit="share"),))

    return StudyPoint(measured(confidential), tuple(measured(released) for released in releases))
