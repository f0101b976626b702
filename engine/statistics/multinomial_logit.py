"""Multinomial logit with a ridge penalty, fitted by Newton's method with the whole Hessian.

    log p(y = k | x) = b_k'x - log sum_j exp(b_j'x)
    maximise  sum_i w_i log p(y_i | x_i) - 1/2 sum_j penalty_j sum_k b_kj^2

All K classes have coefficients, so the answer does not depend on a class of reference; over the classes they sum to 0
in every column. Those of a reference class r are b_k - b_r. A column with penalty q has, read as a prior, independent
b_kj ~ Normal(0, 1/q).

The factor of the Hessian stays with the maximum: a record that is changed, left out or added moves the coefficients by
one Newton step (``newton_step``), with an error of second order in what the record says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from ..data.arrays import Floats, Integers
from ..data.blocks import row_blocks
from ..errors import EngineError

MAX_NEWTON_STEPS = 200
_DECREMENT = 1e-12
_INFORMATION_LEFT = 1e-8
_ROWS = 20_000


class NoMaximumError(EngineError):
    """Error of a likelihood that grows without end, since classes are separated, or that does not determine
    coefficients.
    """


@dataclass(frozen=True, eq=False)
class MultinomialLogit:
    """A fitted multinomial logit of K classes and p columns.

    class_keys: ascending codes of the classes, (K,)
    coefficients: coefficients of the classes, (K, p)
    penalties: penalty of each column, (p,)
    factor: lower Cholesky factor of the negative Hessian of the maximised function, by coefficients row by row, (K p, K
    p)
    log_likelihood: log-likelihood without the penalty
    decrement: squared length of the last Newton step, in standard errors
    step_count: number of Newton steps
    """

    class_keys: Integers
    coefficients: Floats
    penalties: Floats
    factor: Floats
    log_likelihood: float
    decrement: float
    step_count: int

    @property
    def is_converged(self) -> bool:
        """Return whether the last Newton step was shorter than 1e-6 standard errors."""
        return self.decrement < _DECREMENT

    def class_log_probabilities(self, x: Floats, coefficients: Floats | None = None) -> Floats:
        """Return the log probabilities (n, K) of the classes for the rows of x (n, p), by these or other coefficients."""
        return logit_log_probabilities(x, self.coefficients if coefficients is None else coefficients)

    def record_gradients(self, x: Floats, y: Integers) -> Floats:
        """Return the gradient (n, K, p) of the log probability of each record, x (n, p) with codes y (n,)."""
        residuals = -np.exp(self.class_log_probabilities(x))
        residuals[np.arange(len(y)), self.class_positions(y)] += 1
        return np.asarray(residuals[:, :, None] * x[:, None, :])

    def class_positions(self, y: Integers) -> Integers:
        """Return the position of each code y (n,) among the classes."""
        return positions_in_classes(y, self.class_keys)

    def newton_step(self, gradient: Floats) -> Floats:
        """Return the Newton step (..., K, p) for a change of the gradient (..., K, p), such as by records that are
        changed or left out.
        """
        flat = gradient.reshape(-1, self.coefficients.size)
        # The Hessian of the fit is exact in first order; where only y changes it does not change at all.
        return np.asarray(cho_solve((self.factor, True), flat.T).T.reshape(gradient.shape))

    def draw_coefficients(self, draws: int, rng: np.random.Generator) -> Floats:
        """Draw coefficients (draws, K, p) from the normal approximation at the maximum."""
        noise = rng.standard_normal((self.coefficients.size, draws))
        moved = solve_triangular(self.factor, noise, lower=True, trans="T").T.reshape(draws, *self.coefficients.shape)
        # Changes common to all classes change no probability, and have a term of their own in the factor alone.
        return np.asarray(self.coefficients + moved - moved.mean(axis=1, keepdims=True))

    def coefficient_variances(self) -> Floats:
        """Return the variances (K, p) of the coefficients in the normal approximation at the maximum."""
        size, (classes, columns) = self.coefficients.size, self.coefficients.shape
        root = solve_triangular(self.factor, np.eye(size), lower=True).reshape(size, classes, columns)
        root = root - root.mean(axis=1, keepdims=True)
        return np.asarray((root**2).sum(axis=0))


def positions_in_classes(y: Integers, classes: Integers) -> Integers:
    """Return the position of each code y (n,) among the ascending ``classes`` (K,). Raises EngineError for a code of no
    class.
    """
    found = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    if (classes[found] != y).any():
        raise EngineError("a record belongs to none of the classes")
    return found.astype(np.int64)


def logit_log_probabilities(x: Floats, coefficients: Floats) -> Floats:
    """Return the log probabilities (n, K) for the rows of x (n, p) by coefficients (K, p)."""
    scores = x @ coefficients.T
    # The exponential of the largest score cannot overflow then.
    scores -= scores.max(axis=1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return np.asarray(scores)


def fit_multinomial_logit(
    x: Floats,
    y: Integers,
    classes: Integers,
    penalty: float | Floats,
    weights: Floats | None = None,
    start: Floats | None = None,
) -> MultinomialLogit:
    """Fit a multinomial logit to records x (n, p) with codes y (n,) among the ascending ``classes`` (K,).

    penalty: penalty of every column but the first, which is the intercept's; or of each column, (p,)
    weights: influence of each record (a pseudo-likelihood), at least 0, (n,); default: 1
    start: coefficients to begin at, (K, p); default: the logarithms of the classes' shares

    Raises NoMaximumError without a penalty, where classes are separated, have no record, or columns are dependent.
    """
    penalties = np.array(np.broadcast_to(penalty, x.shape[1]), dtype=np.float64)
    if np.ndim(penalty) == 0:
        penalties[0] = 0.0
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    rows = LogitRows(x, positions_in_classes(y, classes), w)
    shares = np.asarray(np.bincount(rows.class_of_record, w, len(classes)), dtype=np.float64)
    return fit_summed_logit(rows, shares, classes, penalties, start)


def fit_summed_logit(
    rows: SummedRows, shares: Floats, classes: Integers, penalties: Floats, start: Floats | None = None
) -> MultinomialLogit:
    """Fit a multinomial logit as ``fit_multinomial_logit`` does, to rows of which sums are known.

    shares: total weight of each class, (K,)
    penalties: penalty of each column, (p,)
    """
    if (shares == 0).any() and not penalties.all():
        raise NoMaximumError("a class has no record")
    # Where it begins makes no difference to the maximum: the problem is concave.
    if start is None:
        start = np.zeros((len(classes), len(penalties)))
        if not penalties[0]:
            start[:, 0] = np.log(shares / shares.sum())
    return _maximise(_PenalisedLikelihood(rows, penalties), classes, start - start.mean(axis=0))


class SummedRows(Protocol):
    """Weighted rows (n, p) with a class each, of which sums are known."""

    def log_likelihood(self, b: Floats, /) -> float:
        """Return the weighted sum of the log probabilities of the classes at coefficients b (K, p)."""

    def add_derivatives(self, b: Floats, gradient: Floats, hessian: Floats, squares: Floats, /) -> None:
        """Add the gradient (K, p), the negative Hessian (K p, K p) and the squares of each column (p,) to these."""

    def column_squares(self) -> Floats:
        """Return the weighted sum of the squares of each column, (p,)."""


@dataclass(frozen=True, eq=False)
class LogitRows:
    """Rows in memory.

    x: rows, (n, p)
    class_of_record: class of each, from 0, (n,)
    w: weight of each, (n,)
    """

    x: Floats
    class_of_record: Integers
    w: Floats

    def log_likelihood(self, b: Floats) -> float:
        """Return the weighted sum of the log probabilities of the classes at coefficients b (K, p)."""
        likelihood = 0.0
        for rows in row_blocks(len(self.x), len(b)):
            logs = logit_log_probabilities(self.x[rows], b)
            likelihood += float(self.w[rows] @ logs[np.arange(len(logs)), self.class_of_record[rows]])
        return likelihood

    def add_derivatives(self, b: Floats, gradient: Floats, hessian: Floats, squares: Floats) -> None:
        """Add the gradient (K, p), the negative Hessian (K p, K p) and the squares of each column (p,) to these."""
        columns = self.x.shape[1]
        for first in range(0, len(self.x), _ROWS):
            part = slice(first, first + _ROWS)
            x, w = self.x[part], self.w[part]
            p = np.exp(logit_log_probabilities(x, b))
            residuals = -p * w[:, None]
            residuals[np.arange(len(x)), self.class_of_record[part]] += w
            gradient += residuals.T @ x
            spread = (p * np.sqrt(w)[:, None])[:, :, None] * x[:, None, :]
            spread = spread.reshape(len(x), -1)
            hessian -= spread.T @ spread
            for k in range(len(b)):
                own = slice(k * columns, (k + 1) * columns)
                hessian[own, own] += (x * (w * p[:, k])[:, None]).T @ x
            squares += w @ x**2

    def column_squares(self) -> Floats:
        """Return the weighted sum of the squares of each column, (p,)."""
        return np.asarray(self.w @ self.x**2)


@dataclass(frozen=True, eq=False)
class _PenalisedLikelihood:
    """Penalised likelihood of weighted records; ``penalties`` are those of each column, (p,)."""

    rows: SummedRows
    penalties: Floats

    def objective_at(self, b: Floats) -> tuple[float, float]:
        """Return the penalised and the plain log-likelihood at coefficients b (K, p)."""
        likelihood = self.rows.log_likelihood(b)
        return likelihood - 0.5 * float((self.penalties * b**2).sum()), likelihood

    def gradient_and_factor(self, b: Floats) -> tuple[Floats, Floats]:
        """Return the gradient (K, p) at coefficients b and the Cholesky factor of the negative Hessian (K p, K p).

        Raises NoMaximumError where the Hessian is singular.
        """
        classes, columns = b.shape
        gradient, common = -self.penalties * b, np.zeros(columns)
        hessian = np.zeros((b.size, b.size))
        self.rows.add_derivatives(b, gradient, hessian, common)
        np.einsum("ii->i", hessian)[...] += np.tile(self.penalties, classes)
        blocks = hessian.reshape(classes, columns, classes, columns)
        # Without this term the Hessian is singular in directions common to all classes, which change nothing.
        np.einsum("ajbj->jab", blocks)[...] += (common / classes**2)[:, None, None]
        try:
            return gradient, np.asarray(np.linalg.cholesky(hessian))
        except np.linalg.LinAlgError:
            raise NoMaximumError("the Hessian is singular") from None

    def is_separated(self, factor: Floats) -> bool:
        """Return whether hardly any information is left in some direction, as where classes are separated."""
        classes = len(factor) // len(self.penalties)
        scale = np.tile(np.sqrt(self.rows.column_squares() / classes + self.penalties), classes)
        scaled = factor / np.where(scale > 0, scale, 1.0)[:, None]
        return bool(np.linalg.svd(scaled, compute_uv=False)[-1] ** 2 < _INFORMATION_LEFT)


def _maximise(problem: _PenalisedLikelihood, classes: Integers, b: Floats) -> MultinomialLogit:
    """Maximise the penalised likelihood by Newton's method from b (K, p)."""
    value, likelihood = problem.objective_at(b)
    decrement, steps = np.inf, 0
    while decrement >= _DECREMENT and steps < MAX_NEWTON_STEPS:
        gradient, factor = problem.gradient_and_factor(b)
        step = np.asarray(cho_solve((factor, True), gradient.ravel())).reshape(b.shape)
        decrement, steps = float((gradient * step).sum()), steps + 1
        share = 1.0
        better, likelihood = problem.objective_at(b + step)
        # Armijo: the step is halved until the gain is a sufficient share of what its gradient promises, but for
        # rounding.
        while better < value + 1e-4 * share * decrement - 1e-13 * abs(value):
            step, share = step / 2, share / 2
            better, likelihood = problem.objective_at(b + step)
        b, value = b + step, better
    _, factor = problem.gradient_and_factor(b)
    if not problem.penalties[1:].all() and problem.is_separated(factor):
        raise NoMaximumError("hardly any information is left in some direction")
    return MultinomialLogit(classes, b - b.mean(axis=0), problem.penalties, factor, likelihood, decrement, steps)
