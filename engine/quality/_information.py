"""Normalized mutual information, sampled and scaled: what its two versions share (Lighthouse data quality §3.4).

r = MI(O_i, A_i) / H, kept within [0, 1], where H is the entropy of the original or of the released values; scaled
1 - (1 - r) (1 - 2^-e) / (e log 2) with e = H(O_i) in nats (eq. 1). MI is the nearest-neighbour estimate (Kraskov,
Stögbauer & Grassberger 2004), H the plug-in entropy of the values unless that is asked of nearest neighbours too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import NotComputable
from ..microdata import Microdata
from ..outputs import Limit, Output
from ..results import Measure
from ..run import Run
from ..spec import Param
from ..statistics.bounded_interval import SHARE
from ..statistics.mutual_information import EntropyEstimate, normalised_information
from ._columns import ColumnsSpec, measure_columns

__all__ = ["InformationSpec", "information_kept", "outputs_by"]

Floats = NDArray[np.float64]
Divisor = Literal["original", "released"]


@dataclass(frozen=True, kw_only=True, slots=True)
class InformationSpec(ColumnsSpec):
    """Columns to score, and how the information is estimated."""

    samples: Annotated[int, Param("samples of 10,000 records to average over, where there are more records", ge=1)] = 5
    neighbours: Annotated[int, Param("nearest neighbours of the estimate", ge=1)] = 3
    entropy: Annotated[
        EntropyEstimate,
        Param("entropy of the values' shares, or as the paper's figures have it, of nearest neighbours too"),
    ] = "plug_in"


def outputs_by(divisor: Divisor, short: str, advice: str, limit: Limit | None = None) -> tuple[Output, ...]:
    """What both versions measure; ``advice`` says what is known of a threshold for the smallest."""
    return (
        Output(
            "nmi",
            f"information kept, as a share of the {divisor} values' entropy, scaled",
            "high",
            range=SHARE,
            short=short,
            scores="numbers",
        ),
        Output("unscaled", "the same before scaling", "high", range=SHARE),
        Output(
            "minimum_nmi",
            f"smallest scaled value of the columns; {advice}",
            "high",
            range=SHARE,
            minimum_of="nmi",
            limit=limit,
        ),
    )


def information_kept(
    confidential: Microdata, released: Microdata, spec: InformationSpec, run: Run, divisor: Divisor
) -> Measure:
    """Scaled and unscaled information of each numerical column, and the smallest scaled one."""
    chosen = spec.for_release(confidential.schema, ())
    score = partial(_information, chosen, run.rng, divisor)
    return measure_columns(confidential, released, chosen, ("nmi", "unscaled"), score)


def _information(
    spec: InformationSpec, rng: np.random.Generator, divisor: Divisor, original: Floats, released: Floats
) -> tuple[float, float]:
    """Scaled and unscaled, of values (n,). NotComputable where there is no entropy to share."""
    by = original if divisor == "original" else released
    found = normalised_information(
        original, released, by, samples=spec.samples, neighbours=spec.neighbours, rng=rng, entropy=spec.entropy
    )  # fmt: skip
    if found is None:
        which = "original" if np.ptp(original) == 0 or divisor == "original" else "released"
        raise NotComputable(f"the {which} values are all the same, so there is no entropy to share")
    return found.scaled, found.unscaled
