"""Tests of whether a group differs from the other records, of many at once.

The p values are those of ``scipy.stats`` (tests hold that) in the special functions alone: a calibration makes 74,000 tests,
and ``ttest_ind`` takes 0.8 ms for 200 records where ``t_test`` takes 0.05.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, stdtr, xlogy

__all__ = ["Difference", "g_test", "t_test"]

Floats = NDArray[np.float64]
Groups = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Difference:
    """p value of a test of no difference, and the sign of the difference: 0 where the statistic has none."""

    p: float
    sign: int


def t_test(values: Floats, group: Groups) -> Difference:
    """Welch's two-sided t-test of the mean in the group against that of the others: values and group (n,).

    Samples without any spread differ for certain or not at all; with fewer than two records on a side there is no
    evidence, p = 1.
    """
    first, second = values[group], values[~group]
    if min(len(first), len(second)) < 2:
        return Difference(1.0, 0)
    difference = float(first.mean() - second.mean())
    shares = np.array([sample.var(ddof=1) / len(sample) for sample in (first, second)])
    total = float(shares.sum())
    if total <= (1e-12 * max(abs(float(first.mean())), abs(float(second.mean())))) ** 2:
        equal = abs(difference) <= 1e-9 * max(abs(float(first.mean())), 1e-300)
        return Difference(1.0 if equal else 0.0, 0 if equal else int(np.sign(difference)))
    weights = shares / total
    freedom = 1 / float(np.sum(weights**2 / [len(first) - 1, len(second) - 1]))
    return Difference(float(2 * stdtr(freedom, -abs(difference) / np.sqrt(total))), int(np.sign(difference)))


def g_test(codes: NDArray[np.int64], group: Groups) -> Difference:
    """The likelihood-ratio (G) test that levels, coded from 0, are distributed alike in the group and the others.

    G = 2 sum O log(O / E), with one degree of freedom less than there are levels (Sokal & Rohlf). It has no sign. One
    level alone, or nobody on a side, is no evidence: p = 1.
    """
    inside = np.bincount(codes[group], minlength=int(codes.max(initial=-1)) + 1)
    outside = np.bincount(codes[~group], minlength=len(inside))
    table = np.stack([inside, outside])[:, inside + outside > 0].astype(np.float64)
    if table.shape[1] < 2 or not table.sum(axis=1).all():
        return Difference(1.0, 0)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    statistic = 2 * float(np.sum(xlogy(table, table / expected)))
    return Difference(float(chdtrc(table.shape[1] - 1, max(statistic, 0.0))), 0)
