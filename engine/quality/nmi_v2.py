"""Normalized mutual information by the entropy of the released values, MI(O_i, A_i) / H(A_i): what the release has
added.
"""

from __future__ import annotations

from ..data.microdata import Microdata
from ..methods.registry import measure_method
from ..methods.results import Measure
from ..methods.rows import average_with_intervals
from ..methods.run import Run
from ._columns import InformationSpec, information_outputs, measure_information_kept


@measure_method(
    "Normalized mutual information v2",
    spec=InformationSpec,
    source="Measuring Data Quality for Project Lighthouse §3.4 and §4.2, example 2; Kraskov, Stögbauer & Grassberger (2004)",
    combine=average_with_intervals,
    outputs=information_outputs("released", "nmi v2", "Lighthouse prefers nmi_v1, and names no threshold for this"),
)
def nmi_v2(confidential: Microdata, released: Microdata, spec: InformationSpec, run: Run) -> Measure:
    """Measure how much information of each numerical column is kept, and the smallest."""
    return measure_information_kept(confidential, released, spec, run, "released")
