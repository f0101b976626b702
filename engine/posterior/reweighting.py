"""Posterior draws reweighted: one record of a fit changed without a new fit.

Gelfand, Dey & Chang (1992); Vehtari, Gelman & Gabry (2017). Draws of theta given all records D become draws given all
but record i by weights 1 / p(y_i | x_i, theta), so that a mean of p(y | x, theta) over them is the prediction of D_-i,
p(y | x, D_-i). A release Z that was drawn from the posterior given D then has

    p(Z | D_y) / p(Z | D_y') = [p(y | x, D_-i, Z) / p(y | x, D_-i)] / [p(y' | x', D_-i, Z) / p(y' | x', D_-i)],

the first of each from draws given D and Z together: two fits weigh all guesses at all records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats
from .laplace import LARGEST_PARETO_K, smooth_weights

AT_A_TIME = 4_000_000
"""Densities that are averaged at a time: 32 MB."""


@dataclass(frozen=True, eq=False)
class LeaveOneOutWeights:
    """Weights of posterior draws that leave out one record each, for t records.

    weights: normalised weights, (t, S)
    heavy: for which records their tail is too heavy, (t,)
    """

    weights: Floats
    heavy: NDArray[np.bool_]

    @classmethod
    def from_log_densities(cls, log_own: Floats, weights: Floats) -> LeaveOneOutWeights:
        """Compute from the log densities of the records given each draw, (t, S), and the weights of the draws (S,)."""
        with np.errstate(divide="ignore"):
            ratios = np.log(weights) - log_own
        # A record that moves the fit much has few draws that fit its absence: the tail is smoothed, and k-hat says
        # where that does not suffice.
        found = [smooth_weights(own) for own in ratios]
        shapes = np.array([shape for _, shape in found])
        return cls(np.stack([own for own, _ in found]), shapes > LARGEST_PARETO_K)

    def log_weighted_mean(self, logs: Floats) -> Floats:
        """Return the log of the weighted mean of exp(``logs``) (t, g, S), (t, g)."""
        most = logs.max(axis=2)
        most = np.where(np.isfinite(most), most, 0.0)
        means = np.einsum("tgs,ts->tg", np.exp(logs - most[..., None]), self.weights)
        with np.errstate(divide="ignore"):
            return np.asarray(most + np.log(means))


def records_at_once(guesses: int, draws: int) -> int:
    """Return the number of records whose densities can be averaged at once."""
    return max(1, AT_A_TIME // max(1, guesses * draws))
