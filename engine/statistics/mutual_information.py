"""Mutual information of two numerical variables by nearest neighbours, and its share of their entropy.

Normalized mutual information, sampled and scaled: Measuring Data Quality for Project Lighthouse §3.4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .entropy import plug_in_entropy

__all__ = ["SAMPLE_SIZE", "NormalisedInformation", "nearest_neighbour_information", "normalised_information", "scaled"]

Floats = NDArray[np.float64]

SAMPLE_SIZE = 10_000


def nearest_neighbour_information(x: Floats, y: Floats, neighbours: int, rng: np.random.Generator) -> float:
    """Mutual information in nats of paired values, both (n,): Kraskov, Stögbauer & Grassberger (2004), eq. 8.

    scikit-learn's estimate: the variables are scaled to variance 1, and a noise of 1e-10 from ``rng`` breaks ties, so
    that discrete numbers have one too. At least 0. Even of a variable with itself it stays below log n - psi(neighbours).
    """
    from sklearn.feature_selection import mutual_info_regression

    seed = int(rng.integers(2**31))
    return float(mutual_info_regression(x[:, None], y, n_neighbors=min(neighbours, len(x) - 1), random_state=seed)[0])


def scaled(share: float, entropy: float) -> float:
    """1 - (1/e) integral from 0 to e of (1 - r) 2^-x dx (eq. 1), r the ``share`` and e > 0 the ``entropy`` in nats.

    In closed form 1 - (1 - r) (1 - 2^-e) / (e log 2).
    """
    return 1 - (1 - share) * -math.expm1(-entropy * math.log(2)) / (entropy * math.log(2))


@dataclass(frozen=True, slots=True)
class NormalisedInformation:
    """MI / H before scaling, and scaled."""

    unscaled: float
    scaled: float


def normalised_information(
    original: Floats,
    anonymised: Floats,
    divisor: Floats,
    *,
    samples: int,
    neighbours: int,
    rng: np.random.Generator,
) -> NormalisedInformation | None:
    """MI(O, A) / H, H the entropy of ``divisor``: all three (n,), n >= 2. None where a sample of O or divisor is constant.

    From 10,000 records on the mean over ``samples`` samples of 10,000 without replacement, so that files of different
    sizes compare. The share is kept within [0, 1]: the estimate of MI may exceed the entropy a little.
    """
    found = []
    for rows, child in _samples(len(original), samples, rng):
        entropy, own = plug_in_entropy(divisor[rows]), plug_in_entropy(original[rows])
        if entropy == 0 or own == 0:
            return None
        information = nearest_neighbour_information(anonymised[rows], original[rows], neighbours, child)
        share = min(1.0, information / entropy)
        found.append((share, scaled(share, own)))
    unscaled, after = np.mean(found, axis=0)
    return NormalisedInformation(float(unscaled), float(after))


def _samples(
    n: int, samples: int, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.intp] | slice, np.random.Generator]]:
    if n <= SAMPLE_SIZE:
        yield slice(None), rng
        return
    for child in rng.spawn(samples):
        yield child.choice(n, SAMPLE_SIZE, replace=False), child
