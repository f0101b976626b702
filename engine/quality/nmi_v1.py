"""Normalized mutual information by the entropy of the original values, MI(O_i, A_i) / H(O_i): what the release has
lost.
"""

from __future__ import annotations

from ..data.microdata import Microdata
from ..methods.outputs import Limit
from ..methods.registry import measure_method
from ..methods.results import Measure
from ..methods.rows import average_with_intervals
from ..methods.run import Run
from ._columns import InformationSpec, information_outputs, measure_information_kept

LIMIT = Limit(0.80, "Lighthouse")


@measure_method(
    "Normalized mutual information v1",
    spec=InformationSpec,
    source="Measuring Data Quality for Project Lighthouse §3.4; Kraskov, Stögbauer & Grassberger (2004)",
    combine=average_with_intervals,
    outputs=information_outputs("original", "nmi v1", str(LIMIT), LIMIT),
)
def nmi_v1(confidential: Microdata, released: Microdata, spec: InformationSpec, run: Run) -> Measure:
    """Measure how much information of each numerical column is kept, and the smallest."""
    return measure_information_kept(confidential, released, spec, run, "original")
