"""Population uniques from how large the classes of a sample are, whatever its variables: the Pitman model and Zayatz's estimate.

s_j classes of the sample have j records; n records in u classes. Both say how many of the s_1 sample uniques are population
uniques, and nothing of which.

Pitman (1995): a further record joins a class of j with chance (j - α) / (n + θ), else makes a new one. The likelihood is

    ∏_{i=1}^{u-1} (θ + iα) / ∏_{i=1}^{n-1} (θ + i) · ∏_j [∏_{i=1}^{j-1} (i - α)]^{s_j}

(Hoshino 2001), and a class of 1 is still one of 1 in the population of N with probability

    ∏_{i=n}^{N-1} (θ + α + i - 1) / (θ + i) = Γ(θ+α+N-1) Γ(θ+n) / (Γ(θ+α+n-1) Γ(θ+N)).

Zayatz (1991): the population's classes have sizes distributed as the sample's, so that of sample uniques the share

    s_1 H(1) / Σ_j s_j H(j),    H(j) = j C(N-j, n-1) / C(N, n)

are population uniques. Population classes are larger than the sample's, so it finds too many where the fraction is small.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, psi
from scipy.stats import hypergeom

from ..arrays import Floats, Integers
from ..errors import NotComputable

STARTS = (0.05, 0.35, 0.65, 0.95)
LARGEST = 1e6
"""How many times the records θ may be: beyond, the classes say nothing of their sizes in the population."""


def pitman_log_likelihood(alpha: float, theta: float, sizes: Integers) -> tuple[float, float, float]:
    """Log likelihood of class sizes (u,), and its derivatives by α and θ; 0 <= α < 1, θ > -α."""
    n, i = int(sizes.sum()), np.arange(1, len(sizes))
    j, s = np.unique(sizes, return_counts=True)
    steps = theta + i * alpha
    value = np.log(steps).sum() - gammaln(theta + n) + gammaln(theta + 1)
    value += (s * (gammaln(j - alpha) - gammaln(1 - alpha))).sum()
    by_alpha = (i / steps).sum() - (s * (psi(j - alpha) - psi(1 - alpha))).sum()
    by_theta = (1 / steps).sum() - psi(theta + n) + psi(theta + 1)
    return float(value), float(by_alpha), float(by_theta)


def pitman_fit(sizes: Integers) -> tuple[float, float]:
    """The most likely α and θ of class sizes (u,).

    Raises:
        NotComputable: where all records are unique or all alike, or the likelihood has no largest value.
    """
    n = int(sizes.sum())
    if len(sizes) == n or len(sizes) == 1:
        raise NotComputable("the Pitman model needs records that share a key and keys that differ")

    def cost(point: Floats) -> tuple[float, Floats]:
        alpha, apart = point[0], np.exp(point[1])
        value, by_alpha, by_theta = pitman_log_likelihood(alpha, apart - alpha, sizes)
        return -value / n, -np.array([by_alpha - by_theta, by_theta * apart]) / n

    bounds = [(0.0, 1 - 1e-9), (np.log(1e-9), np.log(LARGEST * n))]
    tried = [
        minimize(
            cost, [alpha, np.log(max(len(sizes) * (1 - alpha), 1e-3))], jac=True, bounds=bounds, method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 500},
        )
        for alpha in STARTS
    ]  # fmt: skip
    best = min(tried, key=lambda found: float(found.fun))
    alpha, apart = float(best.x[0]), float(np.exp(best.x[1]))
    if apart > 0.01 * LARGEST * n:
        raise NotComputable("too few records share a key for the Pitman model")
    return alpha, apart - alpha


def pitman_share(alpha: float, theta: float, n: int, population: float) -> float:
    """Share of the sample's uniques that are unique in a population of so many, at least n."""
    logs = gammaln(theta + alpha + population - 1) - gammaln(theta + population)
    logs += gammaln(theta + n) - gammaln(theta + alpha + n - 1)
    return float(min(np.exp(logs), 1.0))


def zayatz_share(sizes: Integers, population: float) -> float:
    """Share of the sample's uniques that are population uniques, from class sizes (u,) of the sample, some of them 1."""
    j, s = np.unique(sizes, return_counts=True)
    chance = hypergeom.pmf(1, round(population), j, int(sizes.sum()))
    return float(s[0] * chance[0] / (s * chance).sum())
