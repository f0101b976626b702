"""Pearson's correlation of original and anonymised values, column by column (Lighthouse data quality §3.2).

RHO(O, A, i) = max(0, cov(O_i, A_i) / (std(O_i) std(A_i))) over the records that are not suppressed; binary columns are 0/1.
"""

from __future__ import annotations

import numpy as np

from ..data.arrays import Floats
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..errors import NotComputable
from ..methods.levers import COARSENING
from ..methods.outputs import Label, Limit, Output, QualityOutput
from ..methods.registry import measure_method
from ..methods.results import Measure
from ..methods.run import Run
from ._columns import ColumnsSpec, measure_columns

LIMIT = Limit(0.90, "Lighthouse")


def nonnegative_correlation(original: Floats, anonymised: Floats) -> float:
    """Return max(0, r) for paired values (n,) each, r their correlation. Raises NotComputable where either has no
    variance.
    """
    for values, which in ((original, "original"), (anonymised, "released")):
        if np.ptp(values) == 0:
            raise NotComputable(f"the {which} values are all the same, so there is no correlation")
    x, y = (_standardise(values) for values in (original, anonymised))
    return float(np.clip(np.mean(x * y), 0, 1))


def _standardise(values: Floats) -> Floats:
    """Return values (n,) with mean 0 and variance 1."""
    # Shifted first: the variance of large numbers that differ in their last digits would be rounding.
    shifted = (values - values[0]) / np.ptp(values)
    centred = shifted - shifted.mean()
    return np.asarray(centred / np.sqrt(np.mean(centred**2)))


@measure_method(
    "Pearson's correlation",
    spec=ColumnsSpec,
    source="Measuring Data Quality for Project Lighthouse §3.2",
    outputs=(
        Output(
            "rho",
            "correlation of original and released values, 0 where it is negative",
            "high",
            range=SHARE,
            quality=QualityOutput(scores="numbers"),
            statbarn="CorrelationCoefficients",
            label=Label(
                "Correlation of original and released values",
                "Original and released values of {variable} have a correlation of {value}.",
                "Higher is better; 1 is a straight line.",
                "The released values follow the original ones too loosely.",
                COARSENING,
            ),
        ),
        Output(
            "minimum_rho",
            f"smallest correlation of the columns; {LIMIT}",
            "high",
            range=SHARE,
            quality=QualityOutput(minimum_of="rho", limit=LIMIT),
            statbarn="CorrelationCoefficients",
            label=Label(
                "Least correlation of a column",
                "In the worst column, original and released values have a correlation of {value}.",
                "Higher is better; 1 is a straight line in every column.",
                "At least one column follows the original values too loosely.",
                COARSENING,
            ),
        ),
    ),
)
def pearson(confidential: Microdata, released: Microdata, spec: ColumnsSpec, run: Run) -> Measure:
    """Measure the correlation of original and released values of each numerical column, and the smallest."""
    chosen = spec.for_release(confidential.schema, ())
    return measure_columns(confidential, released, chosen, ("rho",), lambda _, o, a: (nonnegative_correlation(o, a),))
