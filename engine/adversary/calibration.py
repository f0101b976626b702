"""Unbiased evaluation of the best of many attackers: one half of the people selects it, the other half measures it, and the reverse.

Without a leak every area is about 1/2, but the largest of many areas is larger: it is no evidence by itself. Targets and controls are
each divided into
two halves at random. The attacker with the largest area on the first half is measured on the second, and the reverse; the result is the
mean of both areas.
The share of targets that score as high as few controls do (``true positives``) is treated in the same way; that share selects its attacker.

**Null distribution.** Where the release owes nothing to single people, targets and controls are exchangeable. Within each half the
labels are
permuted and all steps are repeated, the selection included. The test statistic is the smaller of two p-values, that of the area and
that of the true
positives; its p-value is the share of permutations, the identity included, with a statistic as small (Phipson & Smyth 2010).

**Interval of the area.** The limits are the estimate minus the quantiles of the permuted areas around 1/2, or DeLong's standard errors
(DeLong, DeLong &
Clarke-Pearson 1988) where these are larger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.arrays import Booleans, Floats
from ..statistics.score_interval import Z_95
from .areas import de_long_variance, roc_area
from .power import POWER

PERMUTATIONS = 499
FEWEST_OF_HALF = 10
"""The fewest targets, and the fewest controls, of a half."""


@dataclass(frozen=True, slots=True)
class AttackEvaluation:
    """Result of the best of many attackers, chosen on one half of the people and measured on the other.

    area: area under the ROC curve, averaged over the halves
    lower, upper: limits of the area
    true_positives: share of the targets that score above the controls that are allowed
    false_positives: share of the controls that are allowed
    p_value: p-value of the area and the true positives together
    detectable_area: smallest area that would have been detected
    selected_attackers: numbers, from 0, of the attackers selected by area
    """

    area: float
    lower: float
    upper: float
    true_positives: float
    false_positives: float
    p_value: float
    detectable_area: float
    selected_attackers: tuple[int, ...]


def draw_first_half(member: Booleans, rng: np.random.Generator) -> Booleans:
    """Draw the first half of the people at random, half of the targets and half of the controls; True where a person is in it, (q,)."""
    first = np.zeros(len(member), dtype=np.bool_)
    for side in (True, False):
        rows = np.flatnonzero(member == side)
        first[rng.permutation(rows)[: len(rows) // 2]] = True
    return first


def has_enough_people(member: Booleans) -> bool:
    """Return whether each half has enough targets and controls to select and to measure an attacker."""
    return int(min(member.sum(), (~member).sum())) // 2 >= FEWEST_OF_HALF


def evaluate_best_attacker(
    scores: Floats,
    member: Booleans,
    first: Booleans,
    false_positives: float,
    rng: np.random.Generator,
    n_permutations: int = PERMUTATIONS,
) -> AttackEvaluation:
    """Evaluate the best of K attackers by scores (q, K) of people: targets where ``member`` (q,) is true, else controls.

    ``first`` (q,) marks the first half of the people, ``n_permutations`` is the number of permutations of the labels.
    """
    halves = [
        _SplitHalfScores.from_scores(scores[some], member[some], false_positives, rng, n_permutations)
        for some in (first, ~first)
    ]
    areas = _mean_over_halves(halves[0].areas, halves[1].areas)
    positives = _mean_over_halves(halves[0].true_positives, halves[1].true_positives)
    area = float(areas[0])
    each = [_permutation_p_values(areas), _permutation_p_values(positives)]
    p_value = float(_permutation_p_values(-np.minimum(*each))[0])
    chosen = tuple(int(np.argmax(one.areas[0])) for one in halves)
    de_long = np.sqrt(np.mean([one.area_variance(k) for one, k in zip(halves, chosen[::-1], strict=True)]) / 2)
    low, high = np.quantile(areas[1:] - 0.5, (0.025, 0.975))
    return AttackEvaluation(
        area,
        max(0.0, min(area, area - max(high, Z_95 * de_long))),
        min(1.0, max(area, area + max(-low, Z_95 * de_long))),
        float(positives[0]),
        float(np.mean([one.false_positives for one in halves])),
        p_value,
        detectable_area(halves[0].areas[1:], halves[1].areas[1:], float(high)),
        chosen,
    )


def area_without_release(scores: Floats, member: Booleans, first: Booleans) -> float:
    """Return the area that the best attacker without a release reaches by scores (q, K), chosen and evaluated on different halves; 1/2
    where it is no larger.

    Above 1/2 targets differ from controls whatever is released, and an area with a release counts beyond this one.
    """
    if not scores.shape[1] or not has_enough_people(member):
        return 0.5
    areas = [
        np.array([[roc_area(column[some & member], column[some & ~member]) for column in scores.T]])
        for some in (first, ~first)
    ]
    return max(0.5, float(_mean_over_halves(*areas)[0]))


def _mean_over_halves(first: Floats, second: Floats) -> Floats:
    """Return the mean over two halves, (1 + P,), of a statistic (1 + P, K) of the attacker that is best on the other half."""
    each = []
    for chooses, judges in ((first, second), (second, first)):
        best = np.argmax(chooses, axis=1)
        each.append(judges[np.arange(len(best)), best])
    return np.asarray((each[0] + each[1]) / 2)


def detectable_area(first: Floats, second: Floats, limit: float, power: float = POWER) -> float:
    """Return the smallest area of one attacker whose estimate exceeds 1/2 by more than ``limit`` with this power, averaged over the
    attackers; at most 1.

    ``first`` and ``second`` (P, K) are permuted areas of the halves. The leak adds the excess over 1/2 to the area of one attacker.
    """
    k = first.shape[1]
    sides = []
    for chooses, judges in ((first, second), (second, first)):
        order = np.argsort(-chooses, axis=1, kind="stable")[:, :2]
        at = np.arange(len(chooses))[:, None]
        second_best = order[:, -1:] if k > 1 else order
        other = np.where(order[:, :1] == np.arange(k), second_best, order[:, :1])  # the best but for each attacker
        lead = chooses - chooses[at, other] if k > 1 else np.full(chooses.shape, np.inf)
        sides.append((lead, judges, judges[at, other]))

    def power_at_excess(more: float) -> float:
        each = [np.where(lead + more >= 0, own + more, other) for lead, own, other in sides]
        return float(np.mean((each[0] + each[1]) / 2 - 0.5 > limit))

    low, high = 0.0, 0.5
    if power_at_excess(high) < power:
        return 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if power_at_excess(middle) >= power else (middle, high)
    return 0.5 + high


def _permutation_p_values(statistic: Floats) -> Floats:
    """Return for each of (1 + P,) values the share of values that are at least as large."""
    held = np.sort(np.round(statistic, 12))
    return np.asarray((len(held) - np.searchsorted(held, np.round(statistic, 12), "left")) / len(held))


@dataclass(frozen=True, eq=False)
class _SplitHalfScores:
    """Areas and shares of true positives of every attacker on one half of the people.

    ranks: ranks of the people's scores, (q, K)
    member: whether each person is a target, (q,)
    areas: area of each attacker by the labels and by permuted ones, (1 + P, K)
    true_positives: shares of true positives, by the labels and by permuted ones, (1 + P, K)
    false_positives: share of controls allowed above the threshold
    """

    ranks: Floats
    member: Booleans
    areas: Floats
    true_positives: Floats
    false_positives: float

    @classmethod
    def from_scores(
        cls, scores: Floats, member: Booleans, false_positives: float, rng: np.random.Generator, deals: int
    ) -> _SplitHalfScores:
        from scipy.stats import rankdata

        q, n = len(member), int(member.sum())
        c = q - n
        labels = np.empty((1 + deals, q), dtype=np.bool_)
        labels[0] = member
        for row in labels[1:]:
            row[:] = rng.permutation(member)
        ranks = rankdata(scores, axis=0)
        areas = (labels.astype(np.float64) @ ranks - n * (n + 1) / 2) / (n * c)
        allowed = max(1, int(false_positives * c * (1 + 1e-12)))
        positives = np.stack([_count_true_positives(own, labels, allowed) for own in ranks.T], axis=1) / n
        return cls(ranks, member, areas, positives, allowed / c)

    def area_variance(self, attacker: int) -> float:
        """Return DeLong's variance of the area of one attacker."""
        scores = self.ranks[:, attacker]
        return de_long_variance(scores[self.member], scores[~self.member])


def _count_true_positives(ranks: Floats, labels: Booleans, allowed: int) -> Floats:
    """Count for each labelling (P, q) the targets found while at most ``allowed`` controls are, from the highest rank (q,) down: (P,).

    Where people tied in rank exceed the allowed controls, the expected number of targets counts when the tie is broken at random.
    """
    order = np.argsort(-ranks, kind="stable")
    values = ranks[order]
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    looked_at, most = 0, 8 * (allowed + 1)
    while looked_at < len(ends):  # until every labelling has more controls than are allowed
        looked_at = int(np.searchsorted(ends, most)) + 1
        targets = np.cumsum(labels[:, order[: ends[:looked_at][-1] + 1]], axis=1, dtype=np.int32)[:, ends[:looked_at]]
        controls = (ends[:looked_at] + 1).astype(np.int32) - targets
        if controls[:, -1].min() > allowed:
            break
        most *= 4
    ends = ends[:looked_at]
    fits = (controls <= allowed).sum(axis=1)
    padded = np.concatenate([np.zeros((len(labels), 1), dtype=np.int32), targets], axis=1)
    reached = np.concatenate([np.zeros((len(labels), 1), dtype=np.int32), controls], axis=1)
    at = np.arange(len(labels))
    base = padded[at, fits].astype(np.float64)
    inside = fits < len(ends)
    after = np.minimum(fits + 1, len(ends))
    more_targets, more_controls = padded[at, after] - base, reached[at, after] - reached[at, fits]
    part = np.where(inside, (allowed - reached[at, fits]) / np.maximum(more_controls, 1), 0.0)
    return np.asarray(base + part * more_targets)
