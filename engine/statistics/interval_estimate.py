"""An estimate with its standard error and confidence interval, however it was made."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .combining import t_quantile

RESIDUAL_ROUNDING = 1e-12
"""Residuals below this share of the response are rounding."""


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """An estimate, its standard error, the ends of its confidence interval, and the degrees of freedom of its variance.

    ``degrees_of_freedom`` are infinite where the variance counts as known.
    """

    value: float
    standard_error: float
    lower: float
    upper: float
    degrees_of_freedom: float = math.inf

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the confidence interval."""
        return self.lower, self.upper


def t_interval(value: float, error: float, degrees: float, confidence: float) -> IntervalEstimate:
    """Return the estimate with its t interval on so many degrees of freedom."""
    half = t_quantile(degrees, confidence) * error
    return IntervalEstimate(value, error, value - half, value + half, degrees)
