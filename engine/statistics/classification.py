"""Scores as classifiers of good cases: ROC, precision and recall, and a threshold that keeps the errors few.

Cases may stand for several labels: ``good`` and ``bad`` (n,) count them. A score of -inf passes no threshold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import NotComputable

__all__ = ["Curve", "curve", "suggested_threshold"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """What passes when the threshold is each distinct score, from the highest: all (c,).

    ``good`` and ``bad`` labels that pass; the last of each are the totals when every score is finite.
    """

    thresholds: Floats
    good: Floats
    bad: Floats
    all_good: float
    all_bad: float

    @property
    def auc(self) -> float:
        """Area under the ROC curve: the chance that a good label scores above a bad one, ties by half."""
        if not (self.all_good and self.all_bad):
            raise NotComputable(f"there are no {'good' if not self.all_good else 'bad'} labels to tell apart")
        true = np.concatenate([[0], self.good]) / self.all_good
        false = np.concatenate([[0], self.bad]) / self.all_bad
        return float(np.trapezoid(true, false))

    @property
    def average_precision(self) -> float:
        """Sum over thresholds of (R_j - R_{j-1}) P_j, without interpolation."""
        if not self.all_good:
            raise NotComputable("there are no good labels to find")
        steps = np.diff(self.good, prepend=0)
        return float(np.sum(steps * self.good / np.maximum(self.good + self.bad, 1)) / self.all_good)


def curve(scores: Floats, good: Floats, bad: Floats) -> Curve:
    """The curve of scores with their counts of labels, all (n,)."""
    thresholds, place = np.unique(-scores, return_inverse=True)
    passing = [np.cumsum(np.bincount(place, counts, len(thresholds))).astype(np.float64) for counts in (good, bad)]
    return Curve(-thresholds, passing[0], passing[1], float(np.sum(good)), float(np.sum(bad)))


def suggested_threshold(scores: Floats, tests: Floats, errors: Floats, limit: float, step: float = 0.01) -> float:
    """The smallest t in [0, 1), a multiple of ``step``, such that of the tests scored at least t at most ``limit`` err.

    Raises NotComputable where no such t lets any test pass.
    """
    for t in np.arange(0, round(1 / step)) * step:
        passing = scores >= t - 1e-12
        total = float(tests[passing].sum())
        if total and float(errors[passing].sum()) <= limit * total:
            return round(float(t), 6)
    raise NotComputable(f"above no threshold below 1 are at most {limit:.0%} of the tests in error")
