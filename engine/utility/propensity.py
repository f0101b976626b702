"""Propensity score: how well a classifier tells released records from confidential ones.

Stack both tables, fit a logistic regression of "is released" on the main effects of all variables, and take
``pmse`` = sum_i (p_i - c)^2 / N, c the share of released records among all N (Woo et al. 2009; Guo & Hu §3.1).
For a release drawn from the distribution of the confidential sample its expectation is
``null_pmse`` = (K - 1) c (1 - c)^2 / N with K coefficients (Snoke et al. 2018, §3.1), and ``s_pmse`` = pmse / null_pmse.
A partly synthetic release repeats its other columns, which cannot differ: its null is then smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import NotComputable
from ..methods import Output, method
from ..microdata import Microdata
from ..results import Estimate, Measure
from ..run import Run
from ..schema import Role
from ..spec import Param, Spec
from ..statistics.collinearity import independent_columns
from ..statistics.logistic import logistic_regression

__all__ = ["PropensitySpec", "propensity"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class PropensitySpec(Spec):
    """Classifier and the variables it sees."""

    model: Annotated[Literal["logit"], Param("classifier: logistic regression on main effects")] = "logit"
    variables: Annotated[
        tuple[str, ...], Param("variables of the classifier; all but identifiers if empty", names="variables")
    ] = ()


@method(
    "Propensity score",
    spec=PropensitySpec,
    source="Woo et al. (2009); Snoke et al. (2018) §3.1; Guo & Hu §3.1",
    outputs=(
        Output(
            "pmse",
            "mean squared distance of the propensity scores from the share c of released records; 0 when a classifier "
            "cannot tell the tables apart, at most c (1 - c), 1/4 for tables of equal size",
            "low",
        ),
        Output(
            "null_pmse",
            "what pmse is expected to be when every released column is drawn from the confidential distribution; "
            "columns that are not synthesised make it smaller",
            "none",
        ),
        Output("s_pmse", "pmse as a multiple of null_pmse", "low"),
    ),
)
def propensity(confidential: Microdata, released: Microdata, spec: PropensitySpec, run: Run) -> Measure:
    """``pmse`` beside its null expectation, and their ratio.

    Raises:
        NotComputable: when no column varies over the two tables.
    """
    schema = confidential.schema
    names = spec.variables or tuple(v.name for v in schema if v.role is not Role.IDENTIFIER)
    x = _main_effects(confidential, released, names)
    if x.shape[1] == 1:
        raise NotComputable("no variable varies, so no classifier can tell the tables apart")
    y = np.repeat([0.0, 1.0], [len(confidential), len(released)])
    c = len(released) / len(y)
    pmse = float(np.mean((logistic_regression(x, y).probabilities - c) ** 2))
    null = (x.shape[1] - 1) * c * (1 - c) ** 2 / len(y)
    return Measure(
        (
            Estimate("pmse", pmse, baseline=null),
            Estimate("null_pmse", null),
            Estimate("s_pmse", pmse / null, baseline=1.0),
        )
    )


def _main_effects(confidential: Microdata, released: Microdata, names: tuple[str, ...]) -> Floats:
    """Intercept, indicators of the levels that occur, and standardised numbers: (N, K), independent columns only."""
    columns = [np.ones((len(confidential) + len(released), 1))]
    for name in names:
        values = np.concatenate([confidential.numbers(name), released.numbers(name)])
        if confidential.schema[name].kind.has_levels:
            columns.append(np.equal(values[:, None], np.unique(values)[1:]).astype(np.float64))
        elif (spread := values.std()) > 0:
            columns.append(((values - values.mean()) / spread)[:, None])
    x = np.hstack(columns)
    return np.asarray(x[:, independent_columns(x)])
