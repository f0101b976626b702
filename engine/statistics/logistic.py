"""Logistic regression by maximum likelihood.

The maximum is that of statsmodels (a test holds that), which solves with X'WX and so squares the condition of X: gross beside
net pay in cents ended a run. Here separated classes have fitted probabilities too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ..arrays import Floats
from .collinearity import factorised

_MOST_STEPS = 100
_TOLERANCE = 1e-12
_INFORMATION_LEFT = 1e-8


@dataclass(frozen=True)
class LogisticFit:
    """Coefficients (K,), their standard errors (K,) and fitted probabilities (n,) at the maximum of the likelihood.

    ``separated``: some direction has no maximum because it separates the classes; its coefficients grew until the
    likelihood stopped to, the probabilities are at their limits all the same, and standard errors mean nothing.
    """

    coefficients: Floats
    errors: Floats
    probabilities: Floats
    separated: bool


def logistic_regression(x: Floats, y: Floats) -> LogisticFit:
    """The fit of y (n,), 0 or 1, on x (n, K), finite, whose columns must be independent (``independent_columns``).

    Newton's method on the orthonormal columns Q of x = QR, whose information Q'WQ is a quarter of the identity at the
    start: columns that are nearly collinear, or of scales far apart, are as good as any. A step is halved while it lowers
    the likelihood. The last full step was within 1e-6 standard errors of the maximum before it was taken, so what remains
    is of the order of 1e-12.
    """
    factors = factorised(x)
    gamma = _maximum(factors.q, y)
    p = np.asarray(expit(factors.q @ gamma))
    left, directions = np.linalg.eigh(_information(factors.q, p))
    errors = factors.errors(directions / np.sqrt(np.maximum(left, np.finfo(np.float64).tiny)))
    return LogisticFit(factors.coefficients(gamma), errors, p, bool(left[0] < _INFORMATION_LEFT / 4))


def _maximum(q: Floats, y: Floats) -> Floats:
    """The coefficients (K,) of the orthonormal columns q (n, K)."""
    gamma = np.zeros(q.shape[1])
    value = _log_likelihood(q @ gamma, y)
    for _ in range(_MOST_STEPS):
        step, decrement = _newton_step(q, y, gamma)
        if decrement < _TOLERANCE:
            return gamma + step
        better = _log_likelihood(q @ (gamma + step), y)
        while better < value - _TOLERANCE * (1 + abs(value)):
            step = step / 2
            better = _log_likelihood(q @ (gamma + step), y)
        gamma, value = gamma + step, better
    return gamma


def _newton_step(q: Floats, y: Floats, gamma: Floats) -> tuple[Floats, float]:
    """The step (K,) and its squared length in standard errors."""
    p = np.asarray(expit(q @ gamma))
    information, score = _information(q, p), q.T @ (y - p)
    scale = np.sqrt(np.diag(information))
    scale = np.where(scale > 0, scale, 1.0)
    step = np.linalg.lstsq(information / np.outer(scale, scale), score / scale)[0] / scale
    return np.asarray(step), float(score @ step)


def _information(q: Floats, p: Floats) -> Floats:
    return np.asarray(q.T @ (q * (p * (1 - p))[:, None]))


def _log_likelihood(eta: Floats, y: Floats) -> float:
    """Sum of the log probabilities of y (n,) at linear predictors eta (n,)."""
    return -float(np.sum(np.logaddexp(0.0, np.where(y > 0, -eta, eta))))
