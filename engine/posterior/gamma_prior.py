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
    """A Gamma prior of a standard deviation tau or of its precision, as a density of log tau.

    on: what has the Gamma distribution: 1 / tau^2 ("precision") or tau ("standard_deviation")
    shape, rate: its parameters
    """

    on: TauScale = "precision"
    shape: float = 0.001
    rate: float = 0.001

    @property
    def tau_power(self) -> int:
        """Return the power of tau that has the Gamma distribution."""
        return -2 if self.on == "precision" else 1

    def log_density(self, log_tau: Floats) -> Floats:
        """Return the log density of log tau, any shape, with the Jacobian."""
        log_variable = self.tau_power * log_tau
        constant = self.shape * np.log(self.rate) - gammaln(self.shape) + np.log(abs(self.tau_power))
        # A tau near 0 overflows to a density of 0, which is its limit.
        with np.errstate(over="ignore"):
            return np.asarray(constant + self.shape * log_variable - self.rate * np.exp(log_variable))

    def log_density_derivatives(self, log_tau: float) -> tuple[float, float]:
        """Return first and second derivative of the log density by log tau."""
        rated = self.rate * np.exp(self.tau_power * log_tau)
        return float(self.tau_power * (self.shape - rated)), float(-(self.tau_power**2) * rated)
