"""Propensity scores: the probability, to a classifier, that a record of two stacked tables comes from the second."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..run import Run
from .collinearity import independent_columns
from .logistic import logistic_regression
from .trees import DEEPEST

__all__ = ["logit_pmse", "permutation_null", "tree_pmse"]

Floats = NDArray[np.float64]

Pmse = Callable[[Floats, int], float]
"""``pmse(y, seed)`` of a classifier of y (N,), 0 or 1."""


def mean_squared_distance(scores: Floats, y: Floats) -> float:
    """The pMSE, mean (p_i - c)^2, of scores (N,), c the share of y (N,) that is 1 (Woo et al. 2009)."""
    return float(np.mean((scores - y.mean()) ** 2))


def logit_pmse(x: Floats, y: Floats) -> tuple[float, float]:
    """The pMSE of a logistic regression of y (N,) on x (N, K), and its expectation where x says nothing of y.

    The expectation is (K - 1) c (1 - c)^2 / N with K independent columns, the intercept first, c the share of ones
    (Snoke et al. 2018, §3.1).
    """
    kept = np.asarray(x[:, independent_columns(x)])
    c = float(y.mean())
    null = (kept.shape[1] - 1) * c * (1 - c) ** 2 / len(y)
    return mean_squared_distance(logistic_regression(kept, y).probabilities, y), null


def tree_pmse(x: NDArray[np.float32], y: Floats, seed: int, minbucket: int, cp: float) -> float:
    """The pMSE of a classification tree of y (N,) on x (N, P), grown and pruned as ``engine.statistics.trees`` does.

    Leaves of at least ``minbucket`` records; branches lower the Gini impurity by the share ``cp`` of the root's for each
    of their splits. Equally good splits are chosen by ``seed``.
    """
    from sklearn.tree import DecisionTreeClassifier

    c = float(y.mean())
    tree = DecisionTreeClassifier(
        min_samples_leaf=minbucket,
        min_samples_split=max(3 * minbucket, 2),
        max_depth=DEEPEST,
        ccp_alpha=cp * 2 * c * (1 - c),
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        leaf = tree.fit(x, y.astype(np.int64)).apply(x)
    shares = np.bincount(leaf, weights=y) / np.maximum(np.bincount(leaf), 1)
    return mean_squared_distance(shares[leaf], y)


def permutation_null(pmse: Pmse, y: Floats, permutations: int, run: Run) -> list[float]:
    """The pMSE under ``permutations`` permutations of the labels y (N,), zeros first: draws from its null distribution.

    Where there are as many ones as zeros, labels are only exchanged between record i of the one table and record i of the
    other. For independent tables that is as good as any permutation; for a partly synthetic one it is the only right one,
    because what such a pair has in common stays in both tables.
    """
    work = partial(_permuted, pmse, y, 2 * np.sum(y) == len(y))
    return list(run.over(work, range(permutations), "permutations"))


def _permuted(pmse: Pmse, y: Floats, paired: bool, item: Any, rng: np.random.Generator) -> float:
    if not paired:
        return pmse(rng.permutation(y), int(rng.integers(2**31)))
    exchanged = rng.random(len(y) // 2) < 0.5
    return pmse(np.where(np.tile(exchanged, 2), 1 - y, y), int(rng.integers(2**31)))
