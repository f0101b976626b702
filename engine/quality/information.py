"""What both versions of normalized mutual information share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import NotComputable
from ..spec import Param
from ..statistics.mutual_information import normalised_information
from .columns import ColumnsSpec

__all__ = ["MEASURES", "InformationSpec", "information"]

Floats = NDArray[np.float64]

MEASURES = ("nmi", "unscaled")


@dataclass(frozen=True, kw_only=True, slots=True)
class InformationSpec(ColumnsSpec):
    """Columns to score, and how the information is estimated."""

    samples: Annotated[int, Param("samples of 10,000 records to average over, where there are more records", ge=1)] = 5
    neighbours: Annotated[int, Param("nearest neighbours of the estimate", ge=1)] = 3


def information(
    spec: InformationSpec,
    rng: np.random.Generator,
    divisor: Literal["original", "released"],
    original: Floats,
    released: Floats,
) -> tuple[float, float]:
    """Scaled and unscaled normalized information of values (n,). NotComputable where there is no entropy to share."""
    by = original if divisor == "original" else released
    found = normalised_information(
        original, released, by, samples=spec.samples, neighbours=spec.neighbours, rng=rng
    )  # fmt: skip
    if found is None:
        which = "original" if np.ptp(original) == 0 or divisor == "original" else "released"
        raise NotComputable(f"the {which} values are all the same, so there is no entropy to share")
    return found.scaled, found.unscaled
