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
from .mass_table import MassSurface, shared_counts
from .rate_quadrature import RateQuadrature, rate_quadrature

if TYPE_CHECKING:
    from .zero_inflated_poisson import ZeroInflatedPoisson

__all__ = ["LocalDensity"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_DEVIATIONS = 8.0  # the region: this many posterior standard deviations of every eta and of log tau
_RUNG = 0.15  # largest distance in log tau from a rule's reference
_MOST_RULES = 24
_FEWEST_NODES, _MOST_NODES = 3, 16
_LARGEST_TILT = 2.0  # in standard deviations of g; 16 nodes are exact to 1e-12 there
_TOLERANCE = 1e-11
_CHUNK = 16
_DEVIATIONS_OF_TABLE = 8.0, 6.0  # the same of what is tabulated, of every eta and of log tau
_MOST_INTEGRALS = 5000  # at a time
_FEWEST_SHARING = 500  # pairs of one count from which its mass is tabulated


@dataclass(frozen=True)
class _Rule:
    """Rules of some of the pairs at one reference tau, sorted so that those with a k-th node come first."""

    pairs: Indices
    nodes: tuple[Floats, ...]
    log_weights: tuple[Floats, ...]
    offset: Floats
    centres: Floats
    reach: Floats

    @classmethod
    def at(
        cls, model: ZeroInflatedPoisson, pairs: Indices, eta: Floats, log_tau: float, wanted: Floats, half_width: float
    ) -> _Rule:
        """Rules that hold for eta within ``wanted`` (n,) of ``eta`` (n,) of the pairs, or less (``reach``), and ``half_width``."""
        tau = float(np.exp(log_tau))
        exact = rate_quadrature(model.y[pairs], eta, tau, model.bound)
        mean = exact.mean(exact.z)
        deviation = np.sqrt(exact.mean((exact.z - np.repeat(mean, exact.counts)) ** 2))
        tilt = wanted * deviation / tau
        sizes = _nodes_needed(np.minimum(tilt, _LARGEST_TILT), np.expm1(2 * half_width) * deviation**2)
        order, z, log_weights = _compressed(exact, sizes)
        reach = wanted * np.minimum(1.0, _LARGEST_TILT / np.maximum(tilt, 1e-300))
        centres = eta[order]
        nodes = tuple(centres[: column.size] + tau * column for column in z)
        return cls(pairs[order], nodes, log_weights, (exact.log_mass + log_tau)[order], eta[order], reach[order])

    def holds(self, eta: Floats) -> NDArray[np.bool_]:
        """For which rows of eta (T, n) of the pairs: (T,)."""
        return np.asarray(np.all(np.abs(eta - self.centres) <= self.reach, axis=1))

    def log_mass(self, eta: Floats, tau: Floats) -> Floats:
        """Log of P(y | eta, tau) for every pair in ``pairs``, for eta (T, n) and tau (T,): (T, n)."""
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


@dataclass(frozen=True)
class LocalDensity:
    """Log posterior density for arrays of theta, fast within the region around ``centre`` that ``covariance`` spans.

    Pairs of a count that many share are answered by its ``surfaces``; the ``others`` (n,) by rules, or, where theta is
    out of their reach, by the full quadrature.
    """

    model: ZeroInflatedPoisson
    log_taus: Floats
    half_width: float
    others: Indices
    rules: tuple[_Rule, ...]
    surfaces: tuple[tuple[Indices, MassSurface], ...]

    @classmethod
    def around(cls, model: ZeroInflatedPoisson, centre: Floats, covariance: Floats) -> LocalDensity:
        """Rules around ``centre`` (2K + 1,) for a posterior with roughly this covariance."""
        eta, _, log_tau = model.predictors(centre)
        wanted = _DEVIATIONS * _deviations(model.rows, covariance)
        half_range = _DEVIATIONS * float(np.sqrt(covariance[-1, -1]))
        n_rules = min(_MOST_RULES, int(np.ceil(half_range / _RUNG)))
        half_width = min(_RUNG, half_range / n_rules)
        log_taus = float(log_tau) + half_width * np.arange(1.0 - n_rules, n_rules, 2.0)
        shared = shared_counts(model.y, _FEWEST_SHARING)
        surfaces = tuple((pairs, _surface(model, pairs, centre, covariance)) for pairs in shared)
        others = np.setdiff1d(np.arange(model.y.size), np.concatenate([np.empty(0, dtype=np.intp), *shared]))
        row = model.row[others]
        references = log_taus if others.size else log_taus[:0]
        rules = tuple(_Rule.at(model, others, eta[row], float(s), wanted[row], half_width) for s in references)
        return cls(model, log_taus, half_width, others, rules, surfaces)

    def __call__(self, thetas: Floats) -> Floats:
        """Log density of thetas (T, 2K + 1): (T,). The answer for a theta does not depend on the others, up to rounding."""
        answer = np.full(thetas.shape[0], -np.inf)
        supported = np.flatnonzero(self.model.supports(thetas))
        rung = np.rint((thetas[:, -1] - self.log_taus[0]) / (2 * self.half_width))
        for value in np.unique(rung[supported]):
            here = supported[rung[supported] == value]
            for chunk in np.split(here, range(_CHUNK, here.size, _CHUNK)):
                answer[chunk] = self._by(int(value), thetas[chunk])
        return answer

    def _by(self, rung: int, thetas: Floats) -> Floats:
        """Log density of thetas (T, 2K + 1) whose log tau is nearest to that of rule ``rung``, if there is one: (T,)."""
        eta, logit_p, log_tau = self.model.predictors(thetas)
        log_mass = np.empty((log_tau.size, self.model.y.size))
        near = np.zeros(log_tau.size, dtype=bool)
        if 0 <= rung < len(self.rules):
            rule = self.rules[rung]
            at = eta[:, self.model.row[rule.pairs]]
            near = rule.holds(at)
            log_mass[np.ix_(near, rule.pairs)] = rule.log_mass(at[near], np.exp(log_tau[near]))
        log_mass[np.ix_(~near, self.others)] = self._exact(eta[~near][:, self.model.row[self.others]], log_tau[~near])
        for pairs, surface in self.surfaces:
            rows = self.model.row[pairs]
            for i in range(log_tau.size):
                log_mass[i, pairs] = surface.log_mass(eta[i, rows], float(log_tau[i]))
        return self.model.log_prior(thetas) + self.model.log_likelihood(logit_p, log_mass)

    def _exact(self, eta: Floats, log_tau: Floats) -> Floats:
        """Log P(y | eta, tau) of the other pairs, for eta (T, n) and log tau (T,), by quadrature of many at once: (T, n)."""
        answer = np.empty_like(eta)
        together = max(_MOST_INTEGRALS // max(self.others.size, 1), 1)
        for first in range(0, answer.shape[0] if self.others.size else 0, together):
            block = eta[first : first + together]
            tau = np.repeat(np.exp(log_tau[first : first + together]), self.others.size)
            y = np.tile(self.model.y[self.others], block.shape[0])
            found = rate_quadrature(y, block.ravel(), tau, self.model.bound).log_mass
            answer[first : first + together] = found.reshape(block.shape)
        return answer


def _deviations(rows: Floats, covariance: Floats) -> Floats:
    """Standard deviation of eta of every row of the design, (u,)."""
    k = rows.shape[1]
    return np.asarray(np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance[:k, :k], rows)))


def _surface(model: ZeroInflatedPoisson, pairs: Indices, centre: Floats, covariance: Floats) -> MassSurface:
    """A surface for pairs of one count, over as much of the posterior as is often asked for."""
    rows = model.rows[np.unique(model.row[pairs])]
    eta, reach = rows @ centre[: rows.shape[1]], _DEVIATIONS_OF_TABLE[0] * _deviations(rows, covariance)
    half_range = _DEVIATIONS_OF_TABLE[1] * float(np.sqrt(covariance[-1, -1]))
    etas = float(np.min(eta - reach)), float(np.max(eta + reach))
    log_taus = float(centre[-1]) - half_range, float(centre[-1]) + half_range
    return MassSurface(float(model.y[pairs[0]]), etas, log_taus, model.bound)
