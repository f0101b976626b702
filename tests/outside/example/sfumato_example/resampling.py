"""Synthetic values drawn from the confidential ones, each alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind
from sfumato.engine.methods.registry import method
from sfumato.engine.methods.results import Diagnostic, Fit
from sfumato.engine.methods.run import Run
from sfumato.engine.methods.spec import Spec


@dataclass(frozen=True, kw_only=True, slots=True)
class ResamplingSpec(Spec):
    """Nothing to say."""


def draw(
    fit: Fit, spec: ResamplingSpec, target: str, confidential: Microdata, released: Microdata, index: int,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Values (n,): level codes, numbers, days since 1970."""
    return rng.choice(fit.arrays["values"], len(confidential))


@method(
    "Resampling",
    spec=ResamplingSpec,
    source="An example (2026), section 4",
    draw=draw,
    targets=tuple(Kind),
)
def resampling(data: Microdata, target: str, spec: ResamplingSpec, run: Run, draws: int) -> Fit:
    """The values themselves."""
    values = data.numbers(target)
    return Fit({"values": values}, (Diagnostic("values", target, float(len(np.unique(values)))),))
