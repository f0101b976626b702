"""Estimates with standard error and confidence interval, as an analyst of one dataset would make them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from ..errors import NotComputable
from .bootstrap_quantiles import bootstrap_quantile
from .bounded_interval import UNBOUNDED, Range, bounded_interval
from .combining import t_quantile
from .logistic import logistic_regression

__all__ = ["IntervalEstimate", "linear_coefficients", "logistic_coefficients", "mean_estimate", "quantile_estimate"]

Floats = NDArray[np.float64]

_NO_ERROR = 1e-24


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
    error = float(np.std(values, ddof=1) / np.sqrt(n)) if np.ptp(values) > 0 else 0.0
    mean = float(np.mean(values))
    return IntervalEstimate(mean, error, *bounded_interval(mean, t_quantile(n - 1, confidence) * error, within))


def quantile_estimate(values: Floats, p: float, confidence: float = 0.95) -> IntervalEstimate:
    """The p-quantile of values (n,), interpolated, with its bootstrap percentile interval and standard error.

    Both are those of infinitely many resamples (``engine.statistics.bootstrap_quantiles``).

    Raises:
        NotComputable: when there are fewer than two values.
    """
    if len(values) < 2:
        raise NotComputable("resamples of one record are all the same, so its quantile has no interval")
    found = bootstrap_quantile(np.sort(values), p)
    return IntervalEstimate(float(np.quantile(values, p)), found.sd, *found.interval(confidence))


def linear_coefficients(x: Floats, y: Floats, confidence: float = 0.95) -> list[IntervalEstimate]:
    """Least squares of y (n,) on the independent columns of x (n, K): K coefficients with t intervals on n - K df.

    Raises:
        NotComputable: when there are no more records than coefficients, or x determines y.
    """
    n, k = x.shape
    if n <= k:
        raise NotComputable(f"{n} records cannot determine {k} coefficients and a standard deviation")
    triangle = np.asarray(np.linalg.qr(np.column_stack([x, y]), mode="r"))
    squares = float(triangle[k, k] ** 2)
    if squares <= _NO_ERROR * float(y @ y):
        raise NotComputable("the response is a linear function of the predictors, without error")
    values = solve_triangular(triangle[:k, :k], triangle[:k, k])
    errors = np.sqrt(squares / (n - k)) * _lengths(triangle[:k, :k])
    return [_symmetric(float(b), float(e), n - k, confidence) for b, e in zip(values, errors, strict=True)]


def logistic_coefficients(x: Floats, y: Floats, confidence: float = 0.95) -> list[IntervalEstimate]:
    """Logistic regression of y (n,), 0 or 1, on the independent columns of x (n, K): K coefficients with normal intervals.

    Raises:
        NotComputable: when a combination of the predictors separates the classes.
    """
    fit = logistic_regression(x, y)
    if fit.separated:
        raise NotComputable("a combination of the predictors separates the two levels of the response")
    weights = np.sqrt(fit.probabilities * (1 - fit.probabilities))
    errors = _lengths(np.asarray(np.linalg.qr(x * weights[:, None], mode="r")))
    return [_symmetric(float(b), float(e), np.inf, confidence) for b, e in zip(fit.coefficients, errors, strict=True)]


def _lengths(triangle: Floats) -> Floats:
    """Square roots of the diagonal of the inverse of R'R."""
    return np.asarray(np.linalg.norm(solve_triangular(triangle, np.eye(len(triangle))), axis=1))


def _symmetric(value: float, error: float, degrees: float, confidence: float) -> IntervalEstimate:
    half = t_quantile(degrees, confidence) * error
    return IntervalEstimate(value, error, value - half, value + half)
