"""Estimates with standard error and confidence interval, as an analyst of one dataset would make them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import NotComputable
from .bootstrap_quantiles import bootstrap_quantile
from .bounded_interval import UNBOUNDED, Range, bounded_interval
from .collinearity import column_scales, factorised
from .combining import t_quantile
from .logistic import logistic_regression

__all__ = ["IntervalEstimate", "linear_coefficients", "logistic_coefficients", "mean_estimate", "quantile_estimate"]

Floats = NDArray[np.float64]

_NO_ERROR = 1e-12


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """An estimate, its standard error, and the ends of its confidence interval."""

    value: float
    standard_error: float
    lower: float
    upper: float

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the confidence interval."""
        return self.lower, self.upper


def mean_estimate(values: Floats, confidence: float = 0.95, within: Range = UNBOUNDED) -> IntervalEstimate:
    """The mean of values (n,) with its t interval, inside the range of the values.

    Raises:
        NotComputable: when there are fewer than two values.
    """
    n = len(values)
    if n < 2:
        raise NotComputable("one record has no standard deviation, so its mean has no interval")
    scale = float(column_scales(values))
    scaled = values / scale
    error = float(np.std(scaled, ddof=1) / np.sqrt(n)) * scale if np.ptp(scaled) > 0 else 0.0
    mean = float(np.mean(scaled)) * scale
    return IntervalEstimate(mean, error, *bounded_interval(mean, t_quantile(n - 1, confidence) * error, within))


def quantile_estimate(values: Floats, p: float, confidence: float = 0.95) -> IntervalEstimate:
    """The p-quantile of values (n,), interpolated, with its bootstrap percentile interval and standard error.

    Both are those of infinitely many resamples (``sfumato.engine.statistics.bootstrap_quantiles``).

    Raises:
        NotComputable: when there are fewer than two values.
    """
    if len(values) < 2:
        raise NotComputable("resamples of one record are all the same, so its quantile has no interval")
    scale = float(column_scales(values))
    scaled = np.sort(values / scale)
    found = bootstrap_quantile(scaled, p)
    lower, upper = found.interval(confidence)
    return IntervalEstimate(float(np.quantile(scaled, p)) * scale, found.sd * scale, lower * scale, upper * scale)


def linear_coefficients(x: Floats, y: Floats, confidence: float = 0.95) -> list[IntervalEstimate]:
    """Least squares of y (n,) on the independent columns of x (n, K): K coefficients with t intervals on n - K df.

    Raises:
        NotComputable: when there are no more records than coefficients, or x determines y.
    """
    n, k = x.shape
    if n <= k:
        raise NotComputable(f"{n} records cannot determine {k} coefficients and a standard deviation")
    factors, scale = factorised(x), float(column_scales(y))
    scaled = y / scale
    on_q = factors.q.T @ scaled
    rest = float(np.linalg.norm(scaled - factors.q @ on_q))
    if rest <= _NO_ERROR * np.linalg.norm(scaled):
        raise NotComputable("the response is a linear function of the predictors, without error")
    values = factors.coefficients(on_q) * scale
    errors = factors.errors(np.eye(k)) * (rest / np.sqrt(n - k) * scale)
    return [_symmetric(float(b), float(e), n - k, confidence) for b, e in zip(values, errors, strict=True)]


def logistic_coefficients(x: Floats, y: Floats, confidence: float = 0.95) -> list[IntervalEstimate]:
    """Logistic regression of y (n,), 0 or 1, on the independent columns of x (n, K): K coefficients with normal intervals.

    Raises:
        NotComputable: when a combination of the predictors separates the classes.
    """
    fit = logistic_regression(x, y)
    if fit.separated:
        raise NotComputable("a combination of the predictors separates the two levels of the response")
    found = zip(fit.coefficients, fit.errors, strict=True)
    return [_symmetric(float(b), float(e), np.inf, confidence) for b, e in found]


def _symmetric(value: float, error: float, degrees: float, confidence: float) -> IntervalEstimate:
    half = t_quantile(degrees, confidence) * error
    return IntervalEstimate(value, error, value - half, value + half)
