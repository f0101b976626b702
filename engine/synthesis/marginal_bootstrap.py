"""Bayesian bootstrap of each variable on its own: the product of the marginal distributions (Park & Ghosh Table 1).

Rubin (1981): the records get weights from a flat Dirichlet distribution, new ones for each variable and dataset, and
each value is that of a record drawn by the weights. No relation of variables is kept; it is the baseline that a
synthesiser has to beat. Every value is one of the confidential data, unique ones and extremes too, and there is no
epsilon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data.microdata import Microdata
from ..data.provenance import FitUncertainty
from ..data.schema import Kind, Schema
from ..methods.registry import synthesis_method
from ..methods.results import Diagnostic, Fit, NoTrace
from ..methods.run import Run
from ..methods.spec import Spec

WEIGHED = "records are weighed by chance, not sampled from a chain"


def joint_draw(
    fit: Fit,
    spec: MarginalBootstrapSpec,
    targets: tuple[str, ...],
    confidential: Microdata,
    released: Microdata,
    index: int,
    records: int,
    rng: np.random.Generator,
) -> Mapping[str, NDArray[np.generic]]:
    """Draw values of each target, (records,), by weights of the confidential records that are new for each target."""
    found: dict[str, NDArray[np.generic]] = {}
    for name in targets:
        # Exponentials over their sum are a flat Dirichlet vector.
        upto = np.cumsum(rng.standard_exponential(len(confidential)))
        rows = np.searchsorted(upto, rng.random(records) * upto[-1], side="right")
        found[name] = np.sort(confidential.numbers(name))[np.minimum(rows, len(upto) - 1)]
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class MarginalBootstrapSpec(Spec):
    """Settings of the method: none."""

    redrawable: ClassVar[bool] = False


def fit_uncertainty(spec: MarginalBootstrapSpec, targets: tuple[str, ...], schema: Schema) -> FitUncertainty:
    """Return that each dataset has weights of the records of its own (Rubin 1981)."""
    return FitUncertainty("drawn")


@synthesis_method(
    "Bayesian bootstrap of the marginals",
    spec=MarginalBootstrapSpec,
    source="Rubin (1981); Park & Ghosh Table 1",
    joint_draw=joint_draw,
    targets=tuple(Kind),
    fit_uncertainty=fit_uncertainty,
)
def marginal_bootstrap(
    data: Microdata, targets: tuple[str, ...], spec: MarginalBootstrapSpec, run: Run, draws: int
) -> Fit:
    """Return a fit without parameters. Array: ``values`` (targets,), the number of distinct values of each target."""
    values = np.array([data.frame[name].nunique() for name in targets])
    said = tuple(Diagnostic("values", name, float(count)) for name, count in zip(targets, values, strict=True))
    return Fit({"values": values}, said, NoTrace(WEIGHED))
