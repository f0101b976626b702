"""Logistic regression by maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import expit

__all__ = ["LogisticFit", "logistic_regression"]

Floats = NDArray[np.float64]

_MOST_STEPS = 100
_TOLERANCE = 1e-12
_INFORMATION_LEFT = 1e-8


@dataclass(frozen=True)
class LogisticFit:
    """Coefficients (K,) and fitted probabilities (n,) at the maximum of the likelihood.

    ``separated``: some direction has no maximum because it separates the classes; its coefficients grew until the
    likelihood stopped to, the probabilities are at their limits all the same.
    """

    coefficients: Floats
    probabilities: Floats
    separated: bool


def logistic_regression(x: Floats, y: Floats) -> LogisticFit:
    """The fit of y (n,), 0 or 1, on x (n, K), whose columns must be independent.

    Newton's method; a step is halved while it lowers the likelihood. The last full step was within 1e-6 standard errors
    of the maximum before it was taken, so what remains is of the order of 1e-12.
    """
    beta = np.zeros(x.shape[1])
    value = _log_likelihood(x @ beta, y)
    for _ in range(_MOST_STEPS):
        step, decrement = _newton_step(x, y, beta)
        if decrement < _TOLERANCE:
            beta = beta + step
            break
        better = _log_likelihood(x @ (beta + step), y)
        while better < value - _TOLERANCE * (1 + abs(value)):
            step = step / 2
            better = _log_likelihood(x @ (beta + step), y)
        beta, value = beta + step, better
    return LogisticFit(beta, np.asarray(expit(x @ beta)), _separated(x, beta))


def _newton_step(x: Floats, y: Floats, beta: Floats) -> tuple[Floats, float]:
    """The step (K,) and its squared length in standard errors."""
    p = expit(x @ beta)
    information, score = _information(x, p), x.T @ (y - p)
    scale = np.sqrt(np.diag(information))
    scale = np.where(scale > 0, scale, 1.0)
    step = np.linalg.lstsq(information / np.outer(scale, scale), score / scale)[0] / scale
    return np.asarray(step), float(score @ step)


def _information(x: Floats, p: Floats) -> Floats:
    return np.asarray(x.T @ (x * (p * (1 - p))[:, None]))


def _separated(x: Floats, beta: Floats) -> bool:
    """Whether the information has vanished in some direction, compared with that at coefficients of zero."""
    at_zero = _information(x, np.full(len(x), 0.5))
    scale = np.sqrt(np.diag(at_zero))
    both = np.outer(scale, scale)
    left = eigh(_information(x, expit(x @ beta)) / both, at_zero / both, eigvals_only=True)
    return bool(left[0] < _INFORMATION_LEFT)


def _log_likelihood(eta: Floats, y: Floats) -> float:
    """Sum of the log probabilities of y (n,) at linear predictors eta (n,)."""
    return -float(np.sum(np.logaddexp(0.0, np.where(y > 0, -eta, eta))))
