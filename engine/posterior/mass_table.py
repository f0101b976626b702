"""P(y | eta, tau) of one count that very many records share, by interpolation in eta and log tau.

Where most records are 0 there are thousands of pairs (eta, 0) that differ in eta alone, and log P(0 | eta, tau) is a
smooth function of two numbers. At one tau it is interpolated in eta by polynomials of degree 5 on panels of equal
width. In log tau the polynomials' coefficients are interpolated through Chebyshev nodes.

The module also has Gauss quadrature against many discrete measures at once (Golub and Welsch 1969). m nodes are exact
for degree 2m - 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from ..data.arrays import Floats
from .poisson_lognormal import MassDerivatives, rate_quadrature

Indices = NDArray[np.intp]
_DEGREE = 5
_TOLERANCE = 1e-9
_TOLERANCE_OF_DERIVATIVES = 1e-7
_WIDEST = 0.4
_MARGIN = 1e-6  # keeps what lies at the ends of a range off the ends of the panels
_BLOCK = 0.8  # in log tau
_MOST_PANELS_OF_BLOCK = 1000
_WORTHWHILE = 4000  # pairs of one count from which a table for one tau takes less time than their own integrals
_PAIRS_A_PANEL = 20  # there is at most one panel for so many pairs


def gauss_rules(x: Floats, weights: Floats, counts: NDArray[np.intp], m: int) -> tuple[Floats, Floats]:
    """Return nodes and weights, (n, m) each, of the m-point Gauss rules for n measures.

    The points of the measures ``x`` (N,) lie end to end. The i-th measure has ``counts[i]`` points, more than m, and
    ``weights`` that sum to 1.
    """
    starts = np.cumsum(counts) - counts
    diagonal, beside = np.empty((counts.size, m)), np.empty((counts.size, m))
    # Lanczos' recurrence: the three-term coefficients of the polynomials that are orthogonal for the measure. The
    # eigenvalues of their Jacobi matrix are the nodes.
    before, now, last = np.zeros_like(x), np.ones_like(x), np.zeros_like(x)
    for k in range(m):
        diagonal[:, k] = np.add.reduceat(weights * x * now * now, starts)
        following = (x - np.repeat(diagonal[:, k], counts)) * now - last * before
        beside[:, k] = np.sqrt(np.add.reduceat(weights * following * following, starts))
        last = np.repeat(beside[:, k], counts)
        before, now = now, following / last
    jacobi = np.zeros((counts.size, m, m))
    index = np.arange(m)
    jacobi[:, index, index] = diagonal
    jacobi[:, index[1:], index[:-1]] = beside[:, :-1]
    nodes, vectors = np.linalg.eigh(jacobi, UPLO="L")
    return nodes, vectors[:, 0, :] ** 2


def tilting_error(m: int, tilt: Floats, widening: Floats) -> Floats:
    """Return the error of m Gauss-Hermite nodes for the mean of exp(tilt x + widening x^2 / 2), x standard normal."""
    j = np.arange(m + 1)
    with np.errstate(divide="ignore"):
        log_tilt, log_half = np.log(tilt[..., None]), np.log(widening[..., None] / 2)
    # The first term that the rule misses is that of x^2m, whose error is m!.
    terms = (
        _times_logarithm(2 * j, log_tilt) - gammaln(2 * j + 1) + _times_logarithm(m - j, log_half) - gammaln(m - j + 1)
    )
    return np.asarray(np.exp(gammaln(m + 1) + logsumexp(terms, axis=-1)))


def _times_logarithm(power: NDArray[np.intp], logarithm: Floats) -> Floats:
    """Return the product of a power and a logarithm, with 0 * -inf = 0."""
    return np.where(power == 0, 0.0, power * np.where(power == 0, 0.0, logarithm))


_LEAST_LOG_MASS, _TOLERANCE_BELOW = -40.0, 1e-3  # of zeros: a less likely one is an inflated one


def _chebyshev_nodes(n: int) -> Floats:
    """Return the n Chebyshev nodes of the first kind in [-1, 1], (n,)."""
    return np.asarray(-np.cos((2 * np.arange(n) + 1) * np.pi / (2 * n)))


_NODES = _chebyshev_nodes(_DEGREE + 1)
_TO_POWERS = np.linalg.inv(np.vander(_NODES, increasing=True))
# Places between the nodes at which the error is measured; at the nodes it is 0.
_BETWEEN = np.array([-0.85, -0.5, 0.1, 0.95])
# The error falls as rho^-16, and the strip of analyticity of about pi / 4 makes rho at least 4 (Trefethen 2013,
# Approximation Theory and Approximation Practice, chapters 5 and 8).
_BLOCK_NODES = _chebyshev_nodes(16)
_TO_CHEBYSHEV = np.linalg.inv(chebvander(_BLOCK_NODES, _BLOCK_NODES.size - 1))


@dataclass(frozen=True)
class _EtaPanels:
    """Panels of equal width in eta.

    low: start of the first
    width: width of each
    number: number of panels
    """

    low: float
    width: float
    number: int

    @classmethod
    def from_range(cls, low: float, high: float) -> _EtaPanels:
        """Make panels over [low, high], as wide as allowed."""
        reach = high - low + 2 * _MARGIN
        number = max(int(np.ceil(reach / _WIDEST)), 1)
        return cls(low - _MARGIN, reach / number, number)

    @property
    def upper_end(self) -> float:
        return self.low + self.width * self.number

    def halve_panels(self) -> _EtaPanels:
        """Return twice as many panels over the same range."""
        return _EtaPanels(self.low, self.width / 2, 2 * self.number)

    def panel_points(self, local: Floats) -> Floats:
        """Return the points of every panel at the places ``local`` (k,) in [-1, 1], (k, number)."""
        return self.low + self.width * (np.arange(self.number) + 0.5 * (local[:, None] + 1))

    def evaluate_polynomials(self, coefficients: Floats, eta: Floats) -> Floats:
        """Evaluate the polynomials with ``coefficients`` (6, number) of the powers at eta (n,) in the panels, (n,)."""
        place = (eta - self.low) * (1 / self.width)
        panel = np.minimum(place.astype(np.intp), self.number - 1)
        local = 2 * (place - panel) - 1
        answer = coefficients[-1].take(panel)
        for row in coefficients[-2::-1]:
            answer *= local
            answer += row.take(panel)
        return np.asarray(answer)


def shared_counts(y: Floats, least: int) -> tuple[Indices, ...]:
    """Return the indices of each value that at least ``least`` of the counts y (n,) have, one array for each value."""
    values, numbers = np.unique(y, return_counts=True)
    return tuple(np.flatnonzero(y == value) for value in values[numbers >= least])


def log_masses(y: Floats, eta: Floats, tau: float, bound: int | None) -> Floats:
    """Return log P(y | eta, tau) of every pair, (n,), all arrays (n,): from a table if that is quicker."""
    return np.asarray(_log_mass_terms(y, eta, tau, bound, derivatives=False)[0])


def mass_derivatives(y: Floats, eta: Floats, tau: float, bound: int | None) -> MassDerivatives:
    """Return log P(y | eta, tau) of every pair and its derivatives, (n,) each: from a table if that is quicker."""
    return MassDerivatives(*_log_mass_terms(y, eta, tau, bound, derivatives=True))


def _log_mass_terms(y: Floats, eta: Floats, tau: float, bound: int | None, *, derivatives: bool) -> Floats:
    """Return log P(y | eta, tau), and its derivatives in the order of ``MassDerivatives``: (1 or 6, n)."""
    answer = np.empty((6 if derivatives else 1, y.size))
    alone = np.ones(y.size, dtype=bool)
    for shared in shared_counts(y, _WORTHWHILE):
        at, most = eta[shared], shared.size // _PAIRS_A_PANEL
        panels = _EtaPanels.from_range(float(at.min()), float(at.max()))
        table = _refine_panels(float(y[shared[0]]), panels, tau, bound, most, derivatives=derivatives)
        if table is not None:
            answer[:, shared] = [table[0].evaluate_polynomials(part, at) for part in table[1]]
            alone[shared] = False
    if alone.any():
        answer[:, alone] = _integrate_pairs(y[alone], eta[alone], tau, bound, derivatives=derivatives)
    return answer


def _integrate_pairs(y: Floats, eta: Floats, tau: float, bound: int | None, *, derivatives: bool) -> Floats:
    """Return log P(y | eta, tau), and its derivatives if requested, by quadrature of every pair: (1 or 6, n)."""
    rates = rate_quadrature(y, eta, tau, bound)
    if not derivatives:
        return rates.log_mass[None]
    found = rates.log_mass_derivatives()
    return np.array([found.value, found.e, found.s, found.ee, found.es, found.ss])


def _integrate_one_count(y: float, eta: Floats, tau: float, bound: int | None, *, derivatives: bool = False) -> Floats:
    """Return the terms of ``_integrate_pairs`` for one count at eta (a, b): (1 or 6, a, b)."""
    flat = _integrate_pairs(np.full(eta.size, y), eta.ravel(), tau, bound, derivatives=derivatives)
    return flat.reshape(-1, *eta.shape)


def _refine_panels(
    y: float, panels: _EtaPanels, tau: float, bound: int | None, most: int, *, derivatives: bool = False
) -> tuple[_EtaPanels, Floats] | None:
    """Halve the panels until polynomials on them are accurate; return them and the coefficients, (1 or 6, 6, number).

    None where that takes more than ``most`` panels.
    """
    tolerance = _TOLERANCE_OF_DERIVATIVES if derivatives else _TOLERANCE
    while panels.number <= most:
        at_nodes, truth = (
            _integrate_one_count(y, panels.panel_points(local), tau, bound, derivatives=derivatives)
            for local in (_NODES, _BETWEEN)
        )
        coefficients = _TO_POWERS @ at_nodes
        error = np.abs(np.vander(_BETWEEN, _DEGREE + 1, increasing=True) @ coefficients - truth)
        # A zero of so small a probability is almost surely an inflated one, whose mass hardly counts.
        allowed = np.where((y > 0) | (truth[0] > _LEAST_LOG_MASS), tolerance, _TOLERANCE_BELOW)
        if np.all(error <= allowed * np.maximum(np.abs(truth), 1.0)):
            return panels, coefficients
        panels = panels.halve_panels()
    return None


@dataclass(frozen=True)
class _TauBlock:
    """Table for a range of log tau: interpolation coefficients at its 16 nodes.

    panels: panels of eta
    low: start of the range
    table: coefficients at the nodes laid end to end, (16, 6 number)
    """

    panels: _EtaPanels
    low: float
    table: Floats

    @classmethod
    def from_range(cls, y: float, etas: tuple[float, float], low: float, bound: int | None) -> _TauBlock | None:
        """Build the block over a range of eta; None if that takes more than 1,000 panels."""
        panels = _EtaPanels.from_range(*etas)
        # The panels must be fine enough at both ends of the range of tau.
        for end in (low, low + _BLOCK):
            found = _refine_panels(y, panels, float(np.exp(end)), bound, _MOST_PANELS_OF_BLOCK)
            if found is None:
                return None
            panels = found[0]
        eta = panels.panel_points(_NODES)
        log_taus = low + _BLOCK * 0.5 * (_BLOCK_NODES + 1)
        values = [_integrate_one_count(y, eta, float(np.exp(log_tau)), bound)[0] for log_tau in log_taus]
        return cls(panels, low, np.array([(_TO_POWERS @ row).ravel() for row in values]))

    def log_mass(self, eta: Floats, log_tau: float) -> Floats:
        """Return log P(y | eta, tau) at eta (n,) within the panels, (n,)."""
        place = 2 * (log_tau - self.low) / _BLOCK - 1
        basis = chebvander(np.array([place]), _BLOCK_NODES.size - 1) @ _TO_CHEBYSHEV
        return self.panels.evaluate_polynomials((basis @ self.table).reshape(_DEGREE + 1, self.panels.number), eta)


@dataclass(frozen=True)
class MassSurface:
    """Log P(y | eta, tau) of one count, quick for eta and log tau in given ranges.

    y: the count
    etas, log_taus: ranges of eta and of log tau
    bound: largest count; None without truncation
    blocks: blocks of log tau made so far, by number; None where a table would take too many panels
    """

    y: float
    etas: tuple[float, float]
    log_taus: tuple[float, float]
    bound: int | None
    blocks: dict[int, _TauBlock | None] = field(default_factory=dict)

    def log_mass(self, eta: Floats, log_tau: float) -> Floats:
        """Return log P(y | eta, tau) at eta (n,), (n,): from the table in its ranges, else by quadrature."""
        within = self.etas[0] <= eta.min() and eta.max() <= self.etas[1]
        block = self._block_of_tau(log_tau) if within and self.log_taus[0] <= log_tau <= self.log_taus[1] else None
        if block is None:
            return log_masses(np.full(eta.size, self.y), eta, float(np.exp(log_tau)), self.bound)
        return block.log_mass(eta, log_tau)

    def _block_of_tau(self, log_tau: float) -> _TauBlock | None:
        """Return the block that contains a log tau, made when it is first needed; None if there is none."""
        number = int(np.floor(log_tau / _BLOCK))
        if number not in self.blocks:
            self.blocks[number] = _TauBlock.from_range(self.y, self.etas, number * _BLOCK, self.bound)
        return self.blocks[number]
