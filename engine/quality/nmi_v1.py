"""Normalized mutual information by the original values' entropy, sampled and scaled (Lighthouse data quality §3.4).

r = MI(O_i, A_i) / H(O_i), kept within [0, 1]; scaled 1 - (1 - r) (1 - 2^-e) / (e log 2) with e = H(O_i) in nats (eq. 1). It tells
what the release has lost. MI is the nearest-neighbour estimate, H the plug-in entropy of the values.
"""

from __future__ import annotations

from functools import partial

from ..methods import Output, method
from ..microdata import Microdata
from ..results import Measure
from ..run import Run
from .columns import measure_columns
from .information import MEASURES, InformationSpec, information

__all__ = ["nmi_v1"]


@method(
    "Normalized mutual information v1",
    spec=InformationSpec,
    source="Measuring Data Quality for Project Lighthouse §3.4; Kraskov, Stögbauer & Grassberger (2004)",
    outputs=(
        Output("nmi", "information kept, as a share of the original values' entropy, scaled", "high"),
        Output("unscaled", "the same before scaling", "high"),
        Output(
            "minimum_nmi", "smallest scaled value of the columns; the threshold in use at Lighthouse is 0.80", "high"
        ),
    ),
)
def nmi_v1(confidential: Microdata, released: Microdata, spec: InformationSpec, run: Run) -> Measure:
    """The information of each numerical column that is kept, and the smallest."""
    chosen = spec.for_release(confidential.schema, ())
    score = partial(information, chosen, run.rng, "original")
    return measure_columns(confidential, released, chosen, MEASURES, score)
