"""Combining what was computed on m released datasets.

With q_l the estimate on dataset l and u_l its variance, q the mean of the q_l, b their variance (divisor m - 1) and u the
mean of the u_l, the variance of q as an estimate of the population's quantity is

    partial synthesis (Reiter 2003)              T_p = u + b/m,          t with (m - 1) (1 + m u / b)^2 df
    full synthesis (Raghunathan et al. 2003)     T_f = (1 + 1/m) b - u,  t with (m - 1) (1 - u / ((1 + 1/m) b))^2 df

T_f can be negative. Reiter (2002) then takes (n_syn / n) u, n_syn records released for each n confidential ones: what the
variance of the confidential estimate would be. Where the datasets differ in size it is the mean of (n_l / n) u_l, since each
of them says that; T_f itself needs no change, as b holds the noise of each size with its share. We take it, with a normal interval, also where T_f is so near to 0 that it
has less than one df: there t intervals are anything from no width to 1e100 standard errors, and adjusting them brings the
coverage nearer to what it should be (simulated means: 99.1 to 98.6 % for m = 20, 97.9 to 94.9 % for m = 5; 96 to 91 % for
m = 3, too few datasets for full synthesis).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from .bounded_interval import UNBOUNDED, Range, bounded_interval

_NORMAL_DEGREES = 1e9


@dataclass(frozen=True, slots=True)
class Combined:
    """An estimate from m datasets, its variance, the degrees of freedom of its t distribution (infinite: normal).

    ``adjusted`` says that the variance is the adjusted one, because T_f is negative or has less than one degree of freedom.
    """

    estimate: float
    variance: float
    degrees: float
    adjusted: bool = False

    def interval(self, confidence: float = 0.95, within: Range = UNBOUNDED) -> tuple[float, float]:
        """The confidence interval, lower and upper, inside the range of the quantity."""
        half = t_quantile(self.degrees, confidence) * float(np.sqrt(self.variance))
        return bounded_interval(self.estimate, half, within)


def partial_synthesis(estimates: Sequence[float], variances: Sequence[float]) -> Combined:
    """Estimates q_l and variances u_l of m >= 2 partially synthetic datasets combined (Reiter 2003)."""
    q, b, u, m = _moments(estimates, variances)
    total = u + b / m
    share = (b / m / total) ** 2 if total > 0 else 0.0
    return Combined(q, total, (m - 1) / share if share > 0 else np.inf)


def full_synthesis(
    estimates: Sequence[float], variances: Sequence[float], size_ratios: Sequence[float] | None = None
) -> Combined:
    """Estimates q_l and variances u_l of m >= 2 fully synthetic datasets combined (Raghunathan et al. 2003).

    ``size_ratios`` are the r_l = n_l / n, the records of each released dataset for each confidential one; None where all
    are 1.
    """
    q, b, u, m = _moments(estimates, variances)
    total = (1 + 1 / m) * b - u
    degrees = (m - 1) * (total / ((1 + 1 / m) * b)) ** 2 if total > 0 else 0.0
    if degrees >= 1:
        return Combined(q, total, degrees)
    adjusted = u if size_ratios is None else float(np.mean(np.multiply(size_ratios, variances)))
    return Combined(q, adjusted, np.inf, adjusted=True)


def _moments(estimates: Sequence[float], variances: Sequence[float]) -> tuple[float, float, float, int]:
    if len(estimates) < 2:
        raise ValueError("the variance between datasets needs two or more of them")
    return float(np.mean(estimates)), float(np.var(estimates, ddof=1)), float(np.mean(variances)), len(estimates)


def t_quantile(degrees: float, confidence: float) -> float:
    """The t that a variable with so many degrees of freedom, infinite ones too, exceeds in size with 1 - confidence."""
    tail = (1 + confidence) / 2
    return float(ndtri(tail) if degrees > _NORMAL_DEGREES else stdtrit(degrees, tail))


def monte_carlo_mean(
    values: Sequence[float], confidence: float = 0.95, within: Range = UNBOUNDED
) -> tuple[float, float | None, float | None]:
    """Mean of m values and its t interval with m - 1 degrees of freedom, inside the range of the values.

    The interval speaks of the simulation: how far the average over m datasets may lie from the average over all the
    datasets that the same models could have drawn. A single value has none.
    """
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None, None
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if min(values) < max(values) else 0.0
    return mean, *bounded_interval(mean, t_quantile(len(values) - 1, confidence) * error, within)
