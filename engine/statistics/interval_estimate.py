"""Estimates with a standard error and a confidence interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .combining import t_quantile

RESIDUAL_ROUNDING = 1e-12
"""Residuals below this share of the response are rounding."""


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """An estimate with its standard error and confidence interval.

    degrees_of_freedom: those of its variance, infinite where the variance counts as known
    """

    value: float
    standard_error: float
    lower: float
    upper: float
    degrees_of_freedom: float = math.inf

    @property
    def interval(self) -> tuple[float, float]:
        """Return the lower and the upper end of the confidence interval."""
        return self.lower, self.upper


def t_interval(value: float, error: float, degrees: float, confidence: float) -> IntervalEstimate:
    """Return an estimate with its t interval on ``degrees`` degrees of freedom."""
    half = t_quantile(degrees, confidence) * error
    return IntervalEstimate(value, error, value - half, value + half, degrees)
