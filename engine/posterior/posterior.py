"""Draws from a posterior, and what a sampler needs to know of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import NotConverged
from ..results import Diagnostic, Fit
from ..traces import Trace

__all__ = ["Posterior", "Target", "require_converged"]

Floats = NDArray[np.float64]


class Target(Protocol):
    """A smooth log density of theta (d,)."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the d parameters."""

    def start(self) -> Floats:
        """Where the search for the mode starts, (d,)."""

    def derivatives(self, theta: Floats) -> tuple[float, Floats, Floats]:
        """Log density (-inf outside its support), gradient (d,) and Hessian (d, d)."""

    def near(self, centre: Floats, covariance: Floats) -> Callable[[Floats], Floats]:
        """The log density of many theta at once, (T, d) -> (T,), made fast around ``centre``."""


@dataclass(frozen=True)
class Posterior:
    """``theta`` (S, d): draws ready to use; the parameters' names; how the sampler fared, and what it left to look at."""

    theta: Floats
    names: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    trace: Trace | None = None


def require_converged(diagnostics: Iterable[Diagnostic], left: Fit) -> None:
    """Raise NotConverged for the first diagnostic that does not pass, with what the sampler ``left``."""
    for found in diagnostics:
        if found.passed is False and found.value is not None:
            raise NotConverged(found.parameter, found.name, found.value, f"must be {found.rule}", left)
