"""Gauss rules against the posterior of each record's log rate at a reference: few nodes, fixed once, that hold for predictors nearby."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from .mass_table import gauss_rules, tilting_error
from .poisson_lognormal import RateQuadrature, rate_quadrature

Indices = NDArray[np.intp]

_FEWEST_NODES, _MOST_NODES = 3, 16
_LARGEST_TILT = 2.0  # in standard deviations of g; 16 nodes are exact to 1e-12 there
_TOLERANCE = 1e-11


@dataclass(frozen=True)
class RateRule:
    """Rules of some of the pairs at one reference tau, sorted so that those with a k-th node come first."""

    pairs: Indices
    nodes: tuple[Floats, ...]
    log_weights: tuple[Floats, ...]
    offset: Floats
    centres: Floats
    reach: Floats

    @classmethod
    def at(
        cls,
        y: Floats,
        bound: int | None,
        pairs: Indices,
        eta: Floats,
        log_tau: float,
        wanted: Floats,
        half_width: float,
    ) -> RateRule:
        """Rules for ``pairs`` (n,) of the counts y (P,) that hold for eta within ``wanted`` (n,) of ``eta`` (n,) of the pairs, or less (``reach``), and ``half_width``."""
        tau = float(np.exp(log_tau))
        exact = rate_quadrature(y[pairs], eta, tau, bound)
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
