"""A Gamma distribution as the prior of a standard deviation tau, or of the precision 1 / tau^2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import gammaln

from ..data.arrays import Floats

TauScale = Literal["precision", "standard_deviation"]


@dataclass(frozen=True, slots=True)
class GammaPrior:
    """Gamma(shape, rate) on 1 / tau^2 ("precision") or on tau ("standard_deviation"), as a density of log tau."""

    on: TauScale = "precision"
    shape: float = 0.001
    rate: float = 0.001

    @property
    def power(self) -> int:
        """The variable with the Gamma distribution is tau to this power."""
        return -2 if self.on == "precision" else 1

    def log_density(self, log_tau: Floats) -> Floats:
        """Log density of log tau, any shape, the Jacobian included."""
        log_variable = self.power * log_tau
        constant = self.shape * np.log(self.rate) - gammaln(self.shape) + np.log(abs(self.power))
        with np.errstate(over="ignore"):
            return np.asarray(constant + self.shape * log_variable - self.rate * np.exp(log_variable))

    def derivatives(self, log_tau: float) -> tuple[float, float]:
        """First and second derivative of the log density by log tau."""
        rated = self.rate * np.exp(self.power * log_tau)
        return float(self.power * (self.shape - rated)), float(-(self.power**2) * rated)
