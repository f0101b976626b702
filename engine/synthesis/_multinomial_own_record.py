"""What was released of one record alone, by multinomial logits: log p(z_i | D_y), without a fit for any guess.

An intruder who looks at the released values of the record itself, and at nobody else's, weighs a guess by how it moves the record's own
probabilities. The record leaves the fit by a Newton step; with a guess y at x in its place, and the other records' likelihood as a parabola, the
scores u there solve

    u = s + w L (e_y - p(u)),    L = (x I)' H^-1 (x I) without the record, s the scores without it,

K equations by Newton's method, which hold where a step from the fit would not: at guesses that are improbable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Floats, Integers
from ..statistics.multinomial_logit import log_probabilities

MOST_STEPS = 60
LONGEST = 4.0
"""Of a step in a score."""
NEAR = 1e-9


@dataclass(frozen=True, eq=False)
class OwnRecord:
    """One record of a stratum: of K classes with ``coefficients`` (K, p) and H^-1 ``inverse`` (K, p, K, p), its columns ``x`` (p,), the place
    of its class and its ``weight``; in each of m datasets columns ``released`` (m, p) and places ``places`` (m,) of its class.
    """

    coefficients: Floats
    inverse: Floats
    x: Floats
    place: int
    weight: float
    released: Floats
    places: Integers

    def unmoved(self) -> Floats:
        """Log p(z^(l)), (m,), by the fit."""
        logs = log_probabilities(self.released, self.coefficients)
        return np.asarray(logs[np.arange(len(self.places)), self.places])

    def log_probabilities(self, to: Floats) -> Floats:
        """Log p(z^(l) | D_y), (d, K, m), of guesses that have columns ``to`` (d, p) and any class."""
        k, d, m = len(self.coefficients), len(to), len(self.places)
        points = np.vstack([self.x[None], to, self.released])
        half = np.tensordot(points, self.inverse, axes=(1, 3))  # (1 + d + m, K, p, K)
        gram = np.einsum("bkpl,ap->abkl", half, points, optimize=True)
        chance = np.exp(log_probabilities(self.x[None], self.coefficients))[0]
        spread = self.weight * (np.diag(chance) - np.outer(chance, chance))
        left = spread @ np.linalg.inv(np.eye(k) - gram[0, 0] @ spread)
        without = gram + np.einsum("akl,lj,bjn->abkn", gram[:, 0], left, gram[0], optimize=True)
        gone = self.weight * (chance - np.eye(k)[self.place])
        scores = points @ self.coefficients.T + without[:, 0] @ gone
        here, there = slice(1, 1 + d), slice(1 + d, None)
        leverage = self.weight * without[here, here][np.arange(d), np.arange(d)]
        back = self.weight * residuals(scores[here], leverage)  # (d, K, K): of each guess
        moved = np.einsum("mdkl,dcl->dcmk", without[there, here], back, optimize=True) + scores[there]
        most = moved.max(axis=3, keepdims=True)
        logs = moved - most - np.log(np.exp(moved - most).sum(axis=3, keepdims=True))
        return np.asarray(logs[:, :, np.arange(m), self.places])


def residuals(scores: Floats, leverage: Floats) -> Floats:
    """e_y - p(u) for every class y, (d, K, K), with u = s + L (e_y - p(u)) of ``scores`` s (d, K) and ``leverage`` L (d, K, K)."""
    d, k = scores.shape
    every, eye = np.broadcast_to(np.eye(k), (d, k, k)), np.eye(k)
    u = np.repeat(scores[:, None, :], k, axis=1)
    for _ in range(MOST_STEPS):
        p = _chances(u)
        error = u - scores[:, None, :] - (every - p) @ np.swapaxes(leverage, 1, 2)
        spread = p[..., :, None] * (eye - p[..., None, :])
        step = -np.linalg.solve(eye + leverage[:, None] @ spread, error[..., None])[..., 0]
        longest = float(np.abs(step).max())
        u = u + step * np.minimum(1.0, LONGEST / np.maximum(np.abs(step).max(axis=2, keepdims=True), NEAR))
        if longest < NEAR:
            break
    return np.asarray(every - _chances(u))


def _chances(u: Floats) -> Floats:
    found = np.exp(u - u.max(axis=-1, keepdims=True))
    return np.asarray(found / found.sum(axis=-1, keepdims=True))
