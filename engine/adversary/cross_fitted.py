"""Evaluation of how well a linear classifier distinguishes two kinds of releases, cross-fitted, with an exact null distribution.

Releases are divided into ``FOLDS`` parts at random. The score of a release is that of a ridge regression of the label, +1 with the
target and -1
without, on the standardised features of the other parts (with two equal classes the direction of the linear discriminant and, to
first order, of the logistic regression; on trees of 500 records its mean area was .69, that of logistic regressions .57 to .65, of
forests .66).
A ridge regression is linear in the labels, so that the scores are S y with a matrix S that the labels do not
enter: all steps, the fit included, are repeated for any number of permuted labels by one product.

**Area.** Scores are compared within a part, where they come from one fit: the area is the mean over all pairs of a release with and one
without the target in
the same part. Without a leak its mean is exactly 1/2.

**Null distribution.** Shadows are independent, so the labels of all targets are permuted together, which keeps whatever targets have in
common: shadows that they
share. Since every release helps to fit the others' scores, areas of the parts are dependent, and twice as variable as DeLong's formula
says; the
permutations know that. The largest area over targets is compared with the largest of permuted ones (Westfall & Young 1993).

**Intervals.** Standard errors are the larger of the permutations' and DeLong's (DeLong, DeLong & Clarke-Pearson 1988); simultaneous
ones have the 97.5 %
quantiles of the largest permuted deviations to either side in place of 1.96, since cross-fitted areas reach further below 1/2 than above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats, Integers
from ..statistics.score_interval import Z_95, score_interval
from .areas import de_long_variance

FOLDS = 5
PENALTY = 10.0
"""Of the ridge, in units of the mean of the squared standardised features."""
PERMUTATIONS = 999
FEWEST_RELEASES = 20
"""Fewest releases of each kind."""


def draw_folds(n_releases: int, rng: np.random.Generator) -> Integers:
    """Draw the fold of each of some releases, of about equal sizes, at random: (K,)."""
    return rng.permutation(np.arange(n_releases) % FOLDS)


def cross_fitted_smoother(features: Floats, part: Integers, penalty: float = PENALTY) -> Floats:
    """Return the matrix S (K, K) by which labels (K,) become cross-fitted scores, for features (K, F) in ``part`` (K,)."""
    found = np.zeros((len(features), len(features)))
    for fold in np.unique(part):
        test, train = np.flatnonzero(part == fold), np.flatnonzero(part != fold)
        found[np.ix_(test, train)] = ridge_score_matrix(features[train], features[test], penalty)
    return found


def ridge_score_matrix(train: Floats, test: Floats, penalty: float = PENALTY) -> Floats:
    """Return the matrix (q, n) by which labels of ``train`` (n, F) become scores of ``test`` (q, F)."""
    weight = _ridge_weight_matrix(train, penalty)
    return np.asarray(_standardise(train, test) @ weight)


def ridge_coefficients(features: Floats, labels: Floats, penalty: float = PENALTY) -> Floats:
    """Return the weight of each standardised feature in the fit to all releases, (F,)."""
    return np.asarray(_ridge_weight_matrix(features, penalty) @ labels)


def _standardise(train: Floats, of: Floats) -> Floats:
    spread = train.std(axis=0)
    return np.asarray(np.where(spread > 1e-9, (of - train.mean(axis=0)) / np.where(spread > 1e-9, spread, 1), 0))


def _ridge_weight_matrix(train: Floats, penalty: float) -> Floats:
    """Return the matrix (F, n) by which labels become weights."""
    x = _standardise(train, train)
    n, f = x.shape
    centre = np.eye(n) - 1 / n
    if f < n:  # the same by the smaller of the two systems
        return np.asarray(np.linalg.solve(x.T @ x / max(f, 1) + penalty * np.eye(f), x.T @ centre / max(f, 1)))
    kernel = x @ x.T / f
    return np.asarray(x.T / f @ np.linalg.solve(kernel + penalty * np.eye(n), centre))


@dataclass(frozen=True, eq=False)
class TargetEvaluations:
    """Evaluations of T targets by scores of K_t releases each.

    areas: area under the ROC curve by the labels, then by permuted ones, (1 + P, T)
    standard_errors: standard error of each area, (T,)
    true_positive_rates: share of releases with the target above all but the allowed ones without it, (T,)
    allowed_false_positive_rates: share of releases without the target that may score above, (T,)
    hit_rates: share of releases with the target that score above the target's cut, (T,)
    false_hit_rates: share of releases without the target that do, (T,)
    n_with_target, n_without_target: releases with and without the target, (T,)
    """

    areas: Floats
    standard_errors: Floats
    true_positive_rates: Floats
    allowed_false_positive_rates: Floats
    hit_rates: Floats
    false_hit_rates: Floats
    n_with_target: Integers
    n_without_target: Integers

    @cached_property
    def critical_deviations(self) -> tuple[float, float]:
        """Return by how many standard errors no area lies above 1/2 in 97.5 % of the permutations, and none below, each at least 1.96."""
        apart = (self.areas[1:] - 0.5) / self.standard_errors
        above, below = (float(np.quantile((sign * apart).max(axis=1), 0.975)) for sign in (1, -1))
        return max(Z_95, above), max(Z_95, below)

    def mean_advantage(self, some: Booleans) -> tuple[float, float, float]:
        """Return the mean of hits less false hits of some targets with its interval.

        The interval of each is the hybrid score interval of a difference of shares (Newcombe 1998, Statistics in Medicine 17, method 10).
        """
        values, below, above = [], [], []
        for target in np.flatnonzero(some):
            hit, false = float(self.hit_rates[target]), float(self.false_hit_rates[target])
            low, high = score_interval(hit, float(self.n_with_target[target]))
            false_low, false_high = score_interval(false, float(self.n_without_target[target]))
            values.append(hit - false)
            below.append((hit - low) ** 2 + (false_high - false) ** 2)
            above.append((high - hit) ** 2 + (false - false_low) ** 2)
        value = float(np.mean(values))
        down, up = (float(np.sqrt(np.sum(side))) / len(values) for side in (below, above))
        return value, max(-1.0, value - down), min(1.0, value + up)

    def area_limits(self, simultaneous: bool) -> tuple[Floats, Floats]:
        """Return intervals of the areas, (T,) each: the lower limit is as far below as areas lie above 1/2 by chance, and the reverse."""
        above, below = self.critical_deviations if simultaneous else (Z_95, Z_95)
        area = self.areas[0]
        return np.maximum(area - above * self.standard_errors, 0.0), np.minimum(
            area + below * self.standard_errors, 1.0
        )

    def mean_area(self, some: Booleans) -> tuple[float, float, float]:
        """Return the mean area of some targets with its interval."""
        value = self.areas[:, some].mean(axis=1)
        spread = max(float(value[1:].std()), float(np.sqrt((self.standard_errors[some] ** 2).sum()) / some.sum()))
        return float(value[0]), max(0.0, float(value[0]) - Z_95 * spread), min(1.0, float(value[0]) + Z_95 * spread)

    def p_value(self, some: Booleans) -> float:
        """Return the share of permutations, the true labels among them, whose largest area over some targets is as large."""
        most = self.areas[:, some].max(axis=1)
        return float((most >= most[0] - 1e-12).mean())

    def detectable_area(self, some: Booleans) -> float:
        """Return about the smallest area of one target that stands out of all in 80 % of audits."""
        most = float(np.quantile(self.areas[1:, some].max(axis=1), 0.95))
        return min(1.0, most + 0.8416 * float(np.median(self.standard_errors[some])))


def evaluate_targets(
    scores: Sequence[Floats],
    labels: Sequence[Booleans],
    part: Sequence[Integers],
    false_positives: float,
    permuted: Sequence[Integers],
) -> TargetEvaluations:
    """Evaluate targets by smoothers (K, K), or by scores (K,) that no label has entered.

    ``labels`` (K,) say whether a release has the target, ``part`` (K,) its fold; ``permuted`` (P, K) are rows of permuted label numbers.
    """
    each = [
        _evaluate_target(s, y, p, false_positives, order)
        for s, y, p, order in zip(scores, labels, part, permuted, strict=True)
    ]
    areas, errors, positives, allowed, hits, false_hits, inside, outside = (
        np.stack(side, axis=-1) for side in zip(*each, strict=True)
    )
    return TargetEvaluations(
        areas, errors, positives, allowed, hits, false_hits, inside.astype(np.int64), outside.astype(np.int64)
    )


def _evaluate_target(
    smooth: Floats, label: Booleans, part: Integers, share: float, order: Integers
) -> tuple[NDArray[np.float64], ...]:
    from scipy.stats import rankdata

    labels = np.concatenate([label[None], label[order]]).T
    signs = np.where(labels, 1.0, -1.0)
    scores = smooth @ signs if smooth.ndim == 2 else np.broadcast_to(smooth[:, None], labels.shape)
    wins, pairs, variance = np.zeros(labels.shape[1]), np.zeros(labels.shape[1]), 0.0
    for fold in np.unique(part):
        some = part == fold
        own, mine = scores[some], labels[some]
        n1 = mine.sum(axis=0)
        n0 = mine.shape[0] - n1
        ranks = rankdata(own, axis=0)
        wins += np.where(mine, ranks, 0).sum(axis=0) - n1 * (n1 + 1) / 2
        pairs += n1 * n0
        variance += (n1[0] * n0[0]) ** 2 * _area_variance(own[mine[:, 0], 0], own[~mine[:, 0], 0])
    areas = np.where(pairs > 0, wins / np.maximum(pairs, 1), 0.5)
    error = max(float(areas[1:].std()), float(np.sqrt(variance)) / max(float(pairs[0]), 1), 1e-6)
    s, y = scores[:, 0], label
    allowed = max(1, int(share * (~y).sum() * (1 + 1e-12)))
    limit = np.sort(s[~y])[::-1][allowed] if allowed < (~y).sum() else -np.inf
    reached = (s[y] > limit).mean()
    # A regression of the label is 0 where both kinds are as probable; counts and other scores have no such value.
    above = s > 0 if smooth.ndim == 2 else _above_cross_fitted_cut(s, y)
    return tuple(
        np.asarray(v, dtype=np.float64)
        for v in (
            areas,
            error,
            reached,
            allowed / max(1, (~y).sum()),
            above[y].mean(),
            above[~y].mean(),
            y.sum(),
            (~y).sum(),
        )
    )


def _above_cross_fitted_cut(scores: Floats, label: Booleans) -> Booleans:
    """Return which releases (K,) score above a cut that the other half of them chose: where hits less false hits are most.

    Scores of different targets have different scales, and the same cut for all would find nothing of most. No release has a part in the cut it is judged by.
    """
    half = len(scores) // 2
    sides = slice(0, half), slice(half, None)
    found = np.zeros(len(scores), dtype=np.bool_)
    for chooses, judges in (sides, sides[::-1]):
        found[judges] = scores[judges] > _best_cut(scores[chooses], label[chooses])
    return found


def _best_cut(scores: Floats, label: Booleans) -> float:
    """Return a cut above which the share of scores (k,) with the label is beyond that of those without: the middle of the best cuts.

    Cuts within a standard error of the best one count as good: their middle varies much less than the best one itself.
    """
    values = np.unique(scores)
    if label.all() or not label.any() or len(values) < 2:
        return float(np.median(scores))
    cuts = (values[1:] + values[:-1]) / 2
    gain = [np.searchsorted(np.sort(scores[side]), cuts, "right") / side.sum() for side in (~label, label)]
    error = np.sqrt(1 / label.sum() + 1 / (~label).sum()) / 2
    best = np.flatnonzero(gain[0] - gain[1] >= (gain[0] - gain[1]).max() - error)
    return float(cuts[best[len(best) // 2]])


def _area_variance(own: Floats, others: Floats) -> float:
    """Return DeLong's variance of an area; that of the null where a side has fewer than two."""
    if min(len(own), len(others)) < 2:
        return (len(own) + len(others) + 1) / (12 * max(1, len(own) * len(others)))
    return de_long_variance(own, others)
