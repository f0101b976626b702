"""Probability of a dataset drawn with coefficients of its own, themselves drawn around the maximum.

Reiter, Wang & Zhang, eq. 10 and 11: p(Z | D_y) is the integral of p(Z | beta) N(beta; beta-hat_y, H_y^-1). By Laplace's
method, with e = beta* - beta-hat the way to the mode, H_Z the information of the released values there and A = H + H_Z:

    log p(Z | D) = l_Z(beta*) - e' H e / 2 + log|H| / 2 - log|A| / 2

A change d of the gradient and dH of the Hessian moves the maximum by delta = H_y^-1 d. Like those of the maximum, the
changes of log p(Z | D) are products in the 2K columns of the record before and after.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..data.arrays import Floats
from ..statistics.multinomial_logit import MultinomialLogit, logit_log_probabilities
from ._changed_multinomial import log_denominators, multinomial_information

MOST_STEPS = 100
DECREMENT = 1e-10
CELLS = 4_000_000
"""Numbers that are held at a time."""


@dataclass(frozen=True, eq=False)
class DrawnCoefficientsMode:
    """The mode of the coefficients that one dataset was drawn with.

    likelihood: log p(Z | D)
    offset: e, the way from the maximum to the mode, (K, p)
    inverse: A^-1, (K, p, K, p)
    moved: c, by which d moves the information of all other records, (K, p)
    """

    likelihood: float
    offset: Floats
    inverse: Floats
    moved: Floats


def find_drawn_mode(
    model: MultinomialLogit,
    fitted: Floats,
    weights: Floats,
    inverse: Floats,
    x: Floats,
    records: Floats,
    sums: Floats,
) -> DrawnCoefficientsMode:
    """Find the mode of p(Z | beta) N(beta; beta-hat, H^-1), a concave problem.

    ``fitted`` (n, p) and ``weights`` (n,) are the records of the model, ``inverse`` (K, p, K, p) is H^-1, x (r, p) the
    columns of the released rows, ``records`` (r,) the number of records of each, and ``sums`` (K, p) the sums of those
    of each class.
    """
    centre, hessian = model.coefficients, model.factor @ model.factor.T

    def value(b: Floats) -> float:
        away = (b - centre).ravel()
        return float((sums * b).sum() - (log_denominators(x, b) * records).sum() - away @ hessian @ away / 2)

    b, now = centre, value(centre)
    for _ in range(MOST_STEPS):
        chance = np.exp(logit_log_probabilities(x, b))
        gradient = (sums - (chance * records[:, None]).T @ x).ravel() - hessian @ (b - centre).ravel()
        curvature = cho_factor(hessian + multinomial_information(x, b, records), lower=True)
        step = cho_solve(curvature, gradient)
        decrement, share = float(gradient @ step), 1.0
        while (better := value(b + share * step.reshape(b.shape))) < now - 1e-9 * abs(now) and share > 1e-6:
            share /= 2
        b, now = b + share * step.reshape(b.shape), better
        if decrement < DECREMENT:
            break
    chance = np.exp(logit_log_probabilities(x, b))
    curvature = cho_factor(hessian + multinomial_information(x, b, records), lower=True)
    settled = cho_solve(curvature, np.eye(b.size))
    log_sizes = np.log(np.diagonal(model.factor)).sum() - np.log(np.diagonal(curvature[0])).sum()
    offset, prior = b - centre, inverse.reshape(b.size, b.size)
    # The maximum and the mode also move the information of all other records, to first order by c'd with c = H^-1
    # t_H(H^-1 - A^-1 - e e') / 2 - A^-1 t_Z(A^-1) / 2; t(M) is the derivative of tr(M H) by the coefficients.
    spread = prior - settled - np.outer(offset, offset)
    own = _trace_derivative(spread, fitted, np.exp(logit_log_probabilities(fitted, centre)), weights)
    released = _trace_derivative(settled, x, chance, records)
    moved = (prior @ own.ravel() - settled @ released.ravel()) / 2
    return DrawnCoefficientsMode(now + float(log_sizes), offset, settled.reshape(inverse.shape), moved.reshape(b.shape))


def _trace_derivative(matrix: Floats, x: Floats, chance: Floats, weights: Floats) -> Floats:
    """Return the derivative of tr(M H) by the coefficients, (K, p), with M (K p, K p).

    H is the information of rows x (n, p) with class probabilities ``chance`` (n, K).
    """
    k, p = chance.shape[1], x.shape[1]
    blocks, found = matrix.reshape(k, p, k, p), np.zeros((k, p))
    step = max(1, CELLS // (k * p * k))
    for first in range(0, len(x), step):
        rows = slice(first, first + step)
        own, q = x[rows], chance[rows]
        within = np.einsum("np,npkl->nkl", own, np.tensordot(own, blocks, axes=(1, 3)).swapaxes(1, 2))
        diagonal, mixed = np.einsum("nkk->nk", within), np.einsum("nkl,nl->nk", within, q)
        mean, square = (q * diagonal).sum(axis=1), (q * mixed).sum(axis=1)
        found += (weights[rows, None] * q * (diagonal - mean[:, None] - 2 * mixed + 2 * square[:, None])).T @ own
    return found


def likelihood_change_by_columns(
    mode: DrawnCoefficientsMode,
    gram: Floats,
    settled: Floats,
    weight: Floats,
    pull: Floats,
    x: tuple[Floats, Floats],
    of: np.ndarray,
) -> Floats:
    """Return the change of log p(Z | D_y), (g,), where a record's columns ``x[1]`` (p,) become one of ``x[0]`` (d, p).

    ``of`` (g,) says which. ``gram`` and ``settled`` are C' H^-1 C and C' A^-1 C (d, 2K, 2K), dH = C ``weight`` C' (d,
    2K, 2K), d = C ``pull`` (g, 2K).
    """
    k = len(mode.offset)
    unit = np.eye(2 * k)

    def predictors_of_parameters(b: Floats) -> Floats:
        there = x[0] @ b.T
        return np.concatenate([there, np.broadcast_to(b @ x[1], there.shape)], axis=1)

    offset, moved = predictors_of_parameters(mode.offset), predictors_of_parameters(mode.moved)
    turned = np.einsum("dab,db->da", weight, offset)
    before, after = unit + gram @ weight, unit + settled @ weight
    rest = pull - turned[of]
    prior, posterior = np.linalg.solve(before, gram), np.linalg.solve(after, settled)
    # To second order: e'd - e' dH e / 2 - d' H_y^-1 d / 2 + (d - dH e)' (A + dH)^-1 (d - dH e) / 2 + (log|I + H^-1 dH|
    # - log|I + A^-1 dH|) / 2.
    sizes = (np.linalg.slogdet(before)[1] - np.linalg.slogdet(after)[1] - (offset * turned).sum(axis=1)) / 2
    squares = np.einsum("ga,gab,gb->g", rest, posterior[of], rest) - np.einsum("ga,gab,gb->g", pull, prior[of], pull)
    return np.asarray(sizes[of] + ((offset + moved)[of] * pull).sum(axis=1) + squares / 2)
