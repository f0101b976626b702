"""The posterior density of theta near a reference, for many theta at once and fast.

A record's integral over g changes little from theta to theta when seen from the posterior of its g at a reference:

    P(y | eta, tau) = P(y | eta', tau') E[N(g; eta, tau) / N(g; eta', tau') | y, eta', tau']

and the ratio is the exponential of a gentle quadratic. A Gauss rule against that posterior, of as few nodes as the pair
needs, is fixed once. Theta outside the region where the rules hold are answered by the full quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .gauss_quadrature import gauss_rules, tilting_error
from .rate_quadrature import RateQuadrature, rate_quadrature

if TYPE_CHECKING:
    from .zero_inflated_poisson import ZeroInflatedPoisson

__all__ = ["LocalDensity"]

Floats = NDArray[np.float64]

_DEVIATIONS = 8.0  # the region: this many posterior standard deviations of every eta and of log tau
_RUNG = 0.15  # largest distance in log tau from a rule's reference
_MOST_RULES = 24
_FEWEST_NODES, _MOST_NODES = 3, 16
_LARGEST_TILT = 2.0  # in standard deviations of g; 16 nodes are exact to 1e-12 there
_TOLERANCE = 1e-11
_CHUNK = 16


@dataclass(frozen=True)
class _Rule:
    """Rules of every pair at one reference tau. Pairs are sorted so that those with a k-th node come first."""

    pairs: NDArray[np.intp]
    nodes: tuple[Floats, ...]
    log_weights: tuple[Floats, ...]
    offset: Floats
    reach: Floats

    @classmethod
    def at(cls, model: ZeroInflatedPoisson, eta: Floats, log_tau: float, wanted: Floats, half_width: float) -> _Rule:
        """Rules that hold for eta within ``wanted`` (u,) of ``eta`` (u,), or less (``reach``), and ``half_width``."""
        tau = float(np.exp(log_tau))
        exact = rate_quadrature(model.y, eta[model.row], tau, model.bound)
        mean = exact.mean(exact.z)
        deviation = np.sqrt(exact.mean((exact.z - np.repeat(mean, exact.counts)) ** 2))
        tilt = wanted[model.row] * deviation / tau
        sizes = _nodes_needed(np.minimum(tilt, _LARGEST_TILT), np.expm1(2 * half_width) * deviation**2)
        order, z, log_weights = _compressed(exact, sizes)
        reach = wanted * _smallest_of_row(model, np.minimum(1.0, _LARGEST_TILT / np.maximum(tilt, 1e-300)))
        centres = eta[model.row][order]
        nodes = tuple(centres[: column.size] + tau * column for column in z)
        return cls(order, nodes, log_weights, (exact.log_mass + log_tau)[order], reach)

    def log_mass(self, eta: Floats, tau: Floats) -> Floats:
        """Log of P(y | eta, tau) for every pair in ``pairs``, for eta (T, P) and tau (T,): (T, P)."""
        scale = -0.5 / tau[:, None] ** 2
        total = np.zeros_like(eta)
        for nodes, log_weights in zip(self.nodes, self.log_weights, strict=True):
            term = nodes - eta[:, : nodes.size]
            term *= term
            term *= scale
            term += log_weights
            total[:, : nodes.size] += np.exp(term, out=term)
        return np.log(total) + self.offset - np.log(tau)[:, None]


def _nodes_needed(tilt: Floats, widening: Floats) -> NDArray[np.intp]:
    needed = np.full(tilt.shape, _MOST_NODES)
    undecided = np.arange(tilt.size)
    for m in range(_FEWEST_NODES, _MOST_NODES):
        enough = tilting_error(m, tilt[undecided], widening[undecided]) < _TOLERANCE
        needed[undecided[enough]] = m
        undecided = undecided[~enough]
    return needed


def _compressed(
    exact: RateQuadrature, sizes: NDArray[np.intp]
) -> tuple[NDArray[np.intp], tuple[Floats, ...], tuple[Floats, ...]]:
    """The order of the pairs, largest rule first, and the k-th z and log (weight exp(z^2 / 2)) of those that have it."""
    order = np.argsort(-sizes, kind="stable")
    z, log_weights = np.full((2, sizes.max(), sizes.size), np.nan)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    for m in np.unique(sizes):
        chosen = np.repeat(sizes == m, exact.counts)
        x, w = gauss_rules(exact.z[chosen], exact.weights[chosen], exact.counts[sizes == m], int(m))
        z[:m, place[sizes == m]] = x.T
        with np.errstate(divide="ignore"):
            log_weights[:m, place[sizes == m]] = np.log(w.T) + 0.5 * x.T**2
    lengths = [int(np.count_nonzero(sizes > k)) for k in range(int(sizes.max()))]
    return (
        order,
        tuple(z[k, :n] for k, n in enumerate(lengths)),
        tuple(log_weights[k, :n] for k, n in enumerate(lengths)),
    )


def _smallest_of_row(model: ZeroInflatedPoisson, of_pairs: Floats) -> Floats:
    answer = np.ones(model.rows.shape[0])
    np.minimum.at(answer, model.row, of_pairs)
    return answer


@dataclass(frozen=True)
class LocalDensity:
    """Log posterior density for arrays of theta, fast within the region around ``centre`` that ``covariance`` spans."""

    model: ZeroInflatedPoisson
    eta: Floats
    log_taus: Floats
    half_width: float
    rules: tuple[_Rule, ...]

    @classmethod
    def around(cls, model: ZeroInflatedPoisson, centre: Floats, covariance: Floats) -> LocalDensity:
        """Rules around ``centre`` (2K + 1,) for a posterior with roughly this covariance."""
        k = model.rows.shape[1]
        eta, _, log_tau = model.predictors(centre)
        wanted = _DEVIATIONS * np.sqrt(np.einsum("ij,jk,ik->i", model.rows, covariance[:k, :k], model.rows))
        half_range = _DEVIATIONS * float(np.sqrt(covariance[-1, -1]))
        n_rules = min(_MOST_RULES, int(np.ceil(half_range / _RUNG)))
        half_width = min(_RUNG, half_range / n_rules)
        log_taus = float(log_tau) + half_width * np.arange(1.0 - n_rules, n_rules, 2.0)
        rules = tuple(_Rule.at(model, eta, float(s), wanted, half_width) for s in log_taus)
        return cls(model, eta, log_taus, half_width, rules)

    def __call__(self, thetas: Floats) -> Floats:
        """Log density of thetas (T, 2K + 1): (T,). The answer for a theta does not depend on the others, up to rounding."""
        answer, done = np.empty(thetas.shape[0]), np.zeros(thetas.shape[0], dtype=bool)
        rung = np.rint((thetas[:, -1] - self.log_taus[0]) / (2 * self.half_width))
        for i, rule in enumerate(self.rules):
            here = np.flatnonzero(rung == i)
            for chunk in np.split(here, range(_CHUNK, here.size, _CHUNK)):
                near, values = self._by(rule, thetas[chunk])
                answer[chunk[near]], done[chunk[near]] = values, True
        for far in np.flatnonzero(~done):
            answer[far] = self.model.log_density(thetas[far])
        return answer

    def _by(self, rule: _Rule, thetas: Floats) -> tuple[NDArray[np.bool_], Floats]:
        """Which of the thetas the rule reaches, and the log density of those."""
        eta, logit_p, log_tau = self.model.predictors(thetas)
        near = np.all(np.abs(eta - self.eta) <= rule.reach, axis=1)
        log_mass = np.empty((np.count_nonzero(near), rule.pairs.size))
        log_mass[:, rule.pairs] = rule.log_mass(eta[near][:, self.model.row[rule.pairs]], np.exp(log_tau[near]))
        return near, self.model.log_prior(thetas[near]) + self.model.log_likelihood(logit_p[near], log_mass)
