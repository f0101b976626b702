"""Drawing counts from a zero-inflated truncated Poisson regression with a normal random effect, at one theta."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from ..errors import BadInput
from .poisson_lognormal import draw_log_rate
from .rate_quadrature import rate_quadrature
from .truncated_poisson import draw

__all__ = ["RandomEffect", "draw_counts", "draw_random_effects"]

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
RandomEffect = Literal["new", "record"]


def draw_counts(
    theta: Floats,
    x: ArrayLike,
    bound: int | None,
    random_effect: RandomEffect,
    rng: np.random.Generator,
    observed_y: ArrayLike | None = None,
    observed_x: ArrayLike | None = None,
) -> Counts:
    """One synthetic count for every row of ``x`` (n, K): (n,), in 0..bound.

    ``"new"`` draws every random effect from N(0, tau), the posterior predictive of a new record. ``"record"`` draws it
    from its posterior given the record's confidential count ``observed_y`` (n,) and design ``observed_x`` (n, K), by
    default ``x``; the zero inflation is drawn afresh. Raises BadInput for "record" without ``observed_y``.
    """
    design = np.asarray(x, dtype=np.float64)
    alpha, beta, tau = _split(theta)
    if random_effect == "new":
        effects = np.asarray(rng.normal(0.0, tau, design.shape[0]))
    elif observed_y is None:
        raise BadInput("random_effect", 'needs the observed counts when it is "record"')
    else:
        seen = design if observed_x is None else np.asarray(observed_x, dtype=np.float64)
        effects = draw_random_effects(theta, np.asarray(observed_y, dtype=np.float64), seen, bound, rng)
    at_risk = np.flatnonzero(rng.random(design.shape[0]) >= expit(design @ beta))
    counts = np.zeros(design.shape[0], dtype=np.int64)
    counts[at_risk] = draw((design @ alpha + effects)[at_risk], bound, rng)
    return counts


def draw_random_effects(theta: Floats, y: Floats, x: Floats, bound: int | None, rng: np.random.Generator) -> Floats:
    """One exact draw of eps from p(eps | y, x, theta) for every record: (n,).

    A zero is an inflated one, which says nothing of eps, with probability p / (p + (1 - p) P(0 | eta, tau)).
    """
    alpha, beta, tau = _split(theta)
    eta = x @ alpha
    effects = rng.normal(0.0, tau, y.size)
    zero = np.flatnonzero(y == 0)
    inflated = rng.random(zero.size) < expit((x @ beta)[zero] - _log_probability_of_zero(eta[zero], tau, bound))
    informed = np.union1d(np.flatnonzero(y > 0), zero[~inflated])
    effects[informed] = draw_log_rate(y[informed], eta[informed], tau, bound, rng) - eta[informed]
    return effects


def _log_probability_of_zero(eta: Floats, tau: float, bound: int | None) -> Floats:
    distinct, place = np.unique(eta, return_inverse=True)
    if distinct.size == 0:
        return eta
    return rate_quadrature(np.zeros_like(distinct), distinct, tau, bound).log_mass[place]


def _split(theta: Floats) -> tuple[Floats, Floats, float]:
    """Coefficients alpha (K,) and beta (K,), and tau."""
    k = theta.size // 2
    return theta[:k], theta[k : 2 * k], float(np.exp(theta[-1]))
