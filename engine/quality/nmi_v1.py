"""Normalized mutual information by the original values' entropy, MI(O_i, A_i) / H(O_i): what the release has lost."""

from __future__ import annotations

from ..data.microdata import Microdata
from ..methods.drafting import Case, Offer, OfferedLimit, drafts
from ..methods.outputs import Limit
from ..methods.registry import measure_method
from ..methods.results import Measure
from ..methods.rows import averages_of_intervals
from ..methods.run import Run
from ._columns import InformationSpec, information_kept, numerical, outputs_by

LIMIT = Limit(0.80, "Lighthouse")


def _offer(case: Case) -> Offer | None:
    """How much of the information of the numbers an anonymised table keeps."""
    numbers = numerical(case)
    if not numbers:
        return None
    return Offer(
        "how much of what the numbers tell is kept",
        {"variables": numbers},
        limits=(OfferedLimit("minimum_nmi", "min", LIMIT.least, LIMIT.source),),
    )


@measure_method(
    "Normalized mutual information v1",
    spec=InformationSpec,
    source="Measuring Data Quality for Project Lighthouse §3.4; Kraskov, Stögbauer & Grassberger (2004)",
    combine=averages_of_intervals,
    outputs=outputs_by("original", "nmi v1", str(LIMIT), LIMIT),
)
@drafts(_offer)
def nmi_v1(confidential: Microdata, released: Microdata, spec: InformationSpec, run: Run) -> Measure:
    """The information of each numerical column that is kept, and the smallest."""
    return information_kept(confidential, released, spec, run, "original")
