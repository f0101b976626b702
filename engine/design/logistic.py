"""Logistic regression: maximum likelihood, its covariance, and a penalised likelihood for separated classes.

The maximum is that of statsmodels (tests compare them). ``prior = "jeffreys"`` maximises the likelihood times the root
of the determinant of the information (Firth 1993), which has a maximum whatever is separated (Heinze & Schemper 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, Protocol

import numpy as np
from scipy.special import expit

from ..data.arrays import Floats, Integers
from ..data.block_sums import Summands
from ..statistics.columns import QRFactors, qr_factors
from .sparse_design import ColumnBasis, TermEntries, cross_products, multiply_entries, multiply_transposed

_MOST_STEPS = 100
_MOST_JEFFREYS_STEPS = 1000
_TOLERANCE = 1e-12
_SMALLEST_DECREMENT = 1e-20
_INFORMATION_LEFT = 1e-8

# A ridge would leave a separated direction with the standard error of the ridge, and draws there would say anything: of
# 20 records without a case, one draw would give half the cases and the next none. Jeffreys' prior gives an error that
# so few records warrant, in any units of the columns.
LogisticPrior = Literal["none", "jeffreys"]


@dataclass(frozen=True)
class LogisticFit:
    """Logistic regression fitted by maximum likelihood, or maximum penalised likelihood.

    coefficients: (K,)
    errors: their standard errors, (K,)
    covariance: inverse of the information X'WX, (K, K)
    probabilities: fitted, (n,)
    separated: whether the likelihood has no maximum because some direction separates the classes; the probabilities are
        at their limits, but coefficients, standard errors and covariance are meaningless
    steps: number of Newton steps
    """

    coefficients: Floats
    errors: Floats
    covariance: Floats
    probabilities: Floats
    separated: bool
    steps: int


class _LikelihoodPoint(NamedTuple):
    """Log-likelihood at some coefficients (K,), its gradient (K,), and the information (K, K)."""

    value: float
    score: Floats
    information: Floats


class _OrthonormalLikelihood(Protocol):
    """Likelihood of coefficients (K,) of orthonormal, or nearly orthonormal, columns."""

    @property
    def width(self) -> int: ...

    def evaluate_at(self, gamma: Floats) -> _LikelihoodPoint: ...


@dataclass(frozen=True)
class _LogisticProblem:
    """Logistic regression on orthonormal columns.

    q: orthonormal columns of root(w) X, (n, K)
    columns: the same without the weights, (n, K)
    y: shares, (n,)
    weights: w, (n,)
    """

    q: Floats
    columns: Floats
    y: Floats
    weights: Floats

    @property
    def width(self) -> int:
        return int(self.q.shape[1])

    def evaluate_at(self, gamma: Floats) -> _LikelihoodPoint:
        """Return value, score and information at some coefficients."""
        eta = self.columns @ gamma
        loss = self.y * np.logaddexp(0.0, -eta) + (1 - self.y) * np.logaddexp(0.0, eta)
        p = expit(eta)
        score = np.asarray(self.columns.T @ (self.weights * (self.y - p)))
        return _LikelihoodPoint(-float(np.sum(self.weights * loss)), score, self.information(p))

    def probabilities(self, gamma: Floats) -> Floats:
        return np.asarray(expit(self.columns @ gamma))

    def information(self, p: Floats) -> Floats:
        return np.asarray(self.q.T @ (self.q * (p * (1 - p))[:, None]))


@dataclass(frozen=True)
class _PenalisedProblem(_LogisticProblem):
    """Logistic regression whose likelihood is multiplied by the root of the information's determinant."""

    def evaluate_at(self, gamma: Floats) -> _LikelihoodPoint:
        """Return value, score and information at some coefficients; the value is -inf where the information is singular."""
        value, score, information = super().evaluate_at(gamma)
        sign, logarithm = np.linalg.slogdet(information)
        if sign <= 0:
            return _LikelihoodPoint(-np.inf, score, information)
        # The score is X'(y - p + h (1/2 - p)), h the leverages of the records (Firth 1993; Heinze & Schemper 2002, eq.
        # 2); a row of several records has the sum of theirs.
        p = self.probabilities(gamma)
        leverage = p * (1 - p) * np.einsum("ij,ij->i", self.q, np.linalg.solve(information, self.q.T).T)
        score = score + self.columns.T @ (leverage * (0.5 - p))
        return _LikelihoodPoint(value + 0.5 * float(logarithm), score, information)


def logistic_regression(
    x: Floats, y: Floats, weights: Floats | None = None, prior: LogisticPrior = "none"
) -> LogisticFit:
    """Fit y (n,), from 0 to 1, on x (n, K), finite, whose columns must be independent (``independent_columns``).

    ``weights`` (n,), positive, are the numbers of records that rows stand for, of which a share y is 1, or the
    influence of each row (a pseudo-likelihood).
    """
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    root = np.sqrt(w)[:, None]
    # statsmodels solves with X'WX, which squares the condition of X: with gross beside net pay in cents it has no
    # answer or a wrong one. On the orthonormal Q, nearly collinear columns and columns of very different scales are as
    # good as any.
    factors = qr_factors(x * root)
    parts = factors.q, factors.q / root, np.asarray(y, dtype=np.float64), w
    problem = _LogisticProblem(*parts) if prior == "none" else _PenalisedProblem(*parts)
    # Scoring steps converge only linearly on a penalised likelihood.
    limits = (_MOST_STEPS, _TOLERANCE) if prior == "none" else (_MOST_JEFFREYS_STEPS, _SMALLEST_DECREMENT)
    gamma, steps = _find_maximum(problem, *limits)
    p = problem.probabilities(gamma)
    return _fit_of_coefficients(factors, gamma, problem.information(p), p, steps, prior)


def _fit_of_coefficients(
    factors: QRFactors, gamma: Floats, information: Floats, p: Floats, steps: int, prior: LogisticPrior = "none"
) -> LogisticFit:
    """Return the fit given the coefficients (K,) of q, and the information (K, K) and probabilities (n,) there."""
    axes, separated = _covariance_axes(information)
    # In a separated direction the axes are huge.
    with np.errstate(over="ignore", invalid="ignore"):
        root = factors.coefficients_by_column(axes)
        covariance = np.asarray(root @ root.T)
    coefficients, errors = factors.coefficients_from_q(gamma), factors.standard_errors(axes)
    return LogisticFit(coefficients, errors, covariance, p, prior == "none" and separated, steps)


def logistic_sums(x: Floats, y: Floats, weights: Floats, gamma: Floats) -> tuple[float, Floats, Floats]:
    """Return the log-likelihood of rows x (n, K) of nearly orthonormal columns at ``gamma`` (K,), its gradient (K,), and
    the information (K, K).

    y, weights: shares and numbers of records of the rows, (n,) each
    """
    return _LogisticProblem(x * np.sqrt(weights)[:, None], x, y, weights).evaluate_at(gamma)


@dataclass(frozen=True, eq=False)
class SummedLogistic:
    """Logistic regression of which sums over blocks of rows are computed.

    factors: QR factors of its design (n, K), without q
    sums_at: the sums of ``logistic_sums`` at coefficients (K,) of q, over all rows
    """

    factors: QRFactors
    sums_at: Callable[[Floats], Summands]

    @property
    def width(self) -> int:
        return len(self.factors.scales)

    def evaluate_at(self, gamma: Floats) -> _LikelihoodPoint:
        return _LikelihoodPoint(*self.sums_at(gamma))

    def fit(self) -> LogisticFit:
        """Return the fit of ``logistic_regression``, without the probabilities of single rows."""
        gamma, steps = _find_maximum(self)
        return _fit_of_coefficients(self.factors, gamma, self.evaluate_at(gamma).information, np.empty(0), steps)


def _covariance_axes(information: Floats) -> tuple[Floats, bool]:
    """Return axes A with A A' the inverse of an information (K, K) of orthonormal columns, and whether classes are
    separated.
    """
    left, directions = np.linalg.eigh(information)
    axes = directions / np.sqrt(np.maximum(left, np.finfo(np.float64).tiny))
    # At the start Q'WQ is a quarter of the identity; in a separated direction nearly nothing of that is left.
    return np.asarray(axes), bool(left[0] < _INFORMATION_LEFT / 4)


@dataclass(frozen=True, eq=False)
class BlockedLogistic:
    """Logistic regression of y (n,), zeros and ones, on the columns of a ``basis``, without forming the design."""

    basis: ColumnBasis
    y: Floats

    @property
    def width(self) -> int:
        return len(self.basis)

    def evaluate_at(self, gamma: Floats) -> _LikelihoodPoint:
        """Return value, score and information at coefficients (K,) of the orthonormal columns, in one pass over the
        rows.
        """
        work = partial(_likelihood_parts, self.basis.places, self.basis.extended_coefficients(gamma))
        value, score, information = self.basis.sum_blocks(work, self.y)
        t = self.basis.to_orthonormal
        return _LikelihoodPoint(value, t.T @ score, t.T @ information @ t)

    def fit(self) -> LogisticFit:
        """Return the fit of all columns of the design, with 0 for those that the basis does not need, without the
        probabilities of single rows.
        """
        gamma, steps = _find_maximum(self)
        axes, separated = _covariance_axes(self.evaluate_at(gamma).information)
        root, to_design = self.basis.to_design @ axes, self.basis.to_design
        errors = np.linalg.norm(root, axis=1)
        return LogisticFit(to_design @ gamma, errors, root @ root.T, np.empty(0), separated, steps)

    def squared_distances(self, centre: float) -> float:
        """Return the sum of the squared distances of the fitted probabilities from a number."""
        coefficients = self.basis.extended_coefficients(_find_maximum(self)[0])
        (found,) = self.basis.sum_blocks(partial(_squared_distances, coefficients, centre), self.y)
        return float(found)


def _likelihood_parts(
    places: Integers, coefficients: Floats, entries: Sequence[TermEntries], rows: int, y: Floats
) -> tuple[float, Floats, Floats]:
    """Return value, score and information of a block at coefficients of all columns, of the columns at some places."""
    eta = multiply_entries(entries, coefficients, rows)
    # One exponential, at most 1, gives both the probability and the loss without overflow.
    fades = np.exp(-np.abs(eta))
    p = np.where(eta > 0, 1.0, fades) / (1 + fades)
    value = -float(np.sum(np.log1p(fades) + np.maximum((1 - 2 * y) * eta, 0.0)))
    information = cross_products(entries, p * (1 - p))[np.ix_(places, places)]
    return value, multiply_transposed(entries, y - p)[places], information


def _squared_distances(
    coefficients: Floats, centre: float, entries: Sequence[TermEntries], rows: int, y: Floats
) -> tuple[float]:
    """Return the sum of the squared distances of a block's probabilities from a number."""
    return (float(np.sum((expit(multiply_entries(entries, coefficients, rows)) - centre) ** 2)),)


def _find_maximum(
    likelihood: _OrthonormalLikelihood, most_steps: int = _MOST_STEPS, decrement_left: float = _TOLERANCE
) -> tuple[Floats, int]:
    """Return the coefficients (K,) of the orthonormal columns at the maximum, and the number of Newton steps."""
    gamma = np.zeros(likelihood.width)
    here = likelihood.evaluate_at(gamma)
    for steps in range(1, most_steps + 1):
        step, decrement = _scoring_step(here.information, here.score)
        # Within 1e-6 standard errors before this full step, Newton's method leaves an error of the order of 1e-12.
        if decrement < decrement_left:
            return gamma + step, steps
        there = likelihood.evaluate_at(gamma + step)
        # Halved while it lowers the likelihood by more than rounding does.
        while there.value < here.value - _TOLERANCE * (1 + abs(here.value)):
            step = step / 2
            there = likelihood.evaluate_at(gamma + step)
        gamma, here = gamma + step, there
    return gamma, most_steps


def _scoring_step(information: Floats, score: Floats) -> tuple[Floats, float]:
    """Return the Newton step (K,), and its squared length in standard errors."""
    scale = np.sqrt(np.diag(information))
    scale = np.where(scale > 0, scale, 1.0)
    # Least squares, because the information of separated classes is singular.
    step = np.linalg.lstsq(information / np.outer(scale, scale), score / scale)[0] / scale
    return np.asarray(step), float(score @ step)
