"""Propensity scores: the probability, to a classifier, that a record of two stacked tables comes from the second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..run import Run
from .class_trees import class_tree
from .collinearity import independent_columns
from .logistic import logistic_regression

__all__ = ["logit_pmse", "permutation_null", "tree_pmse"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

Pmse = Callable[[Floats], float]
"""The pMSE of a classifier of y (N,), 0 or 1."""


def mean_squared_distance(scores: Floats, y: Floats) -> float:
    """The pMSE, mean (p_i - c)^2, of scores (N,), c the share of y (N,) that is 1 (Woo et al. 2009)."""
    return float(np.mean((scores - y.mean()) ** 2))


def logit_pmse(x: Floats, y: Floats, repeated: NDArray[np.bool_]) -> tuple[float, float]:
    """The pMSE of a logistic regression of y (N,) on x (N, K), and its expectation for a right release.

    Columns that are ``repeated`` (K,), the intercept among them, are the same in both tables. The expectation is
    d c (1 - c)^2 / N with d independent columns beside those, c the share of ones, where the released records are drawn from
    a model fitted to the confidential ones (Snoke et al. 2018, §3.1): given the repeated columns the others differ in d
    directions only.
    """
    columns = x[:, np.argsort(~repeated, kind="stable")]
    independent = independent_columns(columns)
    c, d = float(y.mean()), int(independent[repeated.sum() :].sum())
    pmse = mean_squared_distance(logistic_regression(columns[:, independent], y).probabilities, y)
    return pmse, d * c * (1 - c) ** 2 / len(y)


def tree_pmse(x: Integers, y: Floats, levels: Sequence[int], minbucket: int, cp: float) -> float:
    """The pMSE of a classification tree of y (N,) by codes x (N, P), grown and pruned as ``class_trees`` does.

    ``levels`` (P,) says how many levels a predictor without an order has, 0 for one with. Leaves have at least ``minbucket``
    records, and each split saves the share ``cp`` of the root's misclassified records. Both tables weigh the same: else the
    larger one would have the majority in every leaf, and the tree no errors to save.
    """
    weights = 0.5 / np.array([1 - y.mean(), y.mean()])
    tree = class_tree(x, y.astype(np.int64), levels=levels, minbucket=minbucket, cp=cp, weights=weights.tolist())
    shares = tree.counts[:, 1] / tree.counts.sum(axis=1)
    return mean_squared_distance(shares[tree.leaf], y)


def permutation_null(pmse: Pmse, y: Floats, permutations: int, run: Run) -> list[float]:
    """The pMSE under ``permutations`` permutations of the labels y (N,), zeros first, times 1 - c, c the share of ones.

    A permutation lets both tables vary, as two fresh samples of a population do: the distance between their means has variance
    1/n + 1/m times that of a record. A release drawn from a model fitted to this confidential table varies alone, by 1/m: the
    share 1 - c = n / (n + m), half for equal tables (Snoke et al. 2018, §3.2; synthpop halves too).

    Where there are as many ones as zeros, labels are only exchanged between record i of the one table and record i of the
    other. For independent tables that is as good as any permutation; for a partly synthetic one it is the only right one,
    because what such a pair has in common stays in both tables.
    """
    work = partial(_permuted, pmse, y, 2 * np.sum(y) == len(y))
    found = list(run.over(work, range(permutations), "permutations"))
    return [float(value * (1 - y.mean())) for value in found]


def _permuted(pmse: Pmse, y: Floats, paired: bool, item: Any, rng: np.random.Generator) -> float:
    if not paired:
        return pmse(rng.permutation(y))
    exchanged = rng.random(len(y) // 2) < 0.5
    return pmse(np.where(np.tile(exchanged, 2), 1 - y, y))
