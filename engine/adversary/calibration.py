"""Unbiased evaluation of the best of many attackers: chosen on one half of the people, measured on the other.

Without a leak every AUC is about 1/2, but the largest of many is larger. So targets and controls are divided into
random halves. The attacker with the largest AUC on one half is measured on the other, and vice versa; the result is the
mean of both AUCs. The share of targets that score as high as few controls (``true positives``) is treated alike and
selects its own attacker.

**Null distribution.** If the release does not depend on single people, targets and controls are exchangeable. Labels
are permuted within each half, and all steps are repeated, including the selection. The statistic is the smaller of the
p-values of AUC and true positives; its p-value is the share of permutations, including the identity, with a statistic
as small (Phipson & Smyth 2010).

Where several records describe a unit, whole units are divided into halves and permuted. ``score_units`` makes scores of
units from those of their records, so that each is a target itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..statistics.ranks_and_tails import average_ranks
from ..statistics.score_interval import Z_95
from .areas import de_long_variance, roc_area
from .power import POWER

PERMUTATIONS = 499
FEWEST_OF_HALF = 10
"""Fewest targets, and fewest controls, in a half."""


@dataclass(frozen=True, slots=True)
class AttackEvaluation:
    """Result of the best of many attackers, chosen on one half of the people and measured on the other.

    area: AUC, averaged over the halves
    lower, upper: 95 % limits of the AUC
    true_positives: share of the targets that score above all but the allowed controls
    false_positives: allowed share of the controls
    p_value: joint p-value of AUC and true positives
    detectable_area: smallest AUC that would have been detected if only one attacker saw the leak
    selected_attackers: positions of the attackers selected by AUC
    """

    area: float
    lower: float
    upper: float
    true_positives: float
    false_positives: float
    p_value: float
    detectable_area: float
    selected_attackers: tuple[int, ...]


def score_units(scores: Floats, unit_of: Integers) -> Floats:
    """Return scores of U units from those of their records (q, K), (U, 3 K), by ascending number of the unit (q,).

    These are the largest, the smallest and the sum over the records: a unit may be known by its rarest record, or only
    where all of its records are.
    """
    order = np.argsort(unit_of, kind="stable")
    starts = np.flatnonzero(np.diff(unit_of[order], prepend=-1))
    return np.concatenate([one.reduceat(scores[order], starts) for one in (np.maximum, np.minimum, np.add)], axis=1)


def draw_first_half(member: Booleans, rng: np.random.Generator, unit_of: Integers | None = None) -> Booleans:
    """Draw a random half of the targets and of the controls, or of their units (q,), and return its mask, (q,)."""
    if unit_of is not None:
        _, record, unit = np.unique(unit_of, return_index=True, return_inverse=True)
        return draw_first_half(member[record], rng)[unit]
    first = np.zeros(len(member), dtype=np.bool_)
    for side in (True, False):
        rows = np.flatnonzero(member == side)
        first[rng.permutation(rows)[: len(rows) // 2]] = True
    return first


def has_enough_people(member: Booleans, unit_of: Integers | None = None) -> bool:
    """Return whether each half has enough targets and controls, or units of these (q,), to select and measure an attacker."""
    if unit_of is not None:
        member = member[np.unique(unit_of, return_index=True)[1]]
    return int(min(member.sum(), (~member).sum())) // 2 >= FEWEST_OF_HALF


def evaluate_best_attacker(
    scores: Floats,
    member: Booleans,
    first: Booleans,
    false_positives: float,
    rng: np.random.Generator,
    n_permutations: int = PERMUTATIONS,
    unit_of: Integers | None = None,
) -> AttackEvaluation:
    """Evaluate the best of K attackers from scores (q, K) of people; ``member`` (q,) marks the targets.

    ``first`` (q,) marks the first half of the people, ``n_permutations`` is the number of permutations of the labels,
    ``unit_of`` (q,) are the units that are permuted whole, where several records describe one.
    """
    halves = [
        _SplitHalfScores.from_scores(
            scores[some], member[some], false_positives, rng, n_permutations, None if unit_of is None else unit_of[some]
        )
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
        # Quantiles of the permuted AUCs around 1/2, or DeLong's standard errors where these are larger.
        max(0.0, min(area, area - max(high, Z_95 * de_long))),
        min(1.0, max(area, area + max(-low, Z_95 * de_long))),
        float(positives[0]),
        float(np.mean([one.false_positives for one in halves])),
        p_value,
        detectable_area(halves[0].areas[1:], halves[1].areas[1:], float(high)),
        chosen,
    )


def area_without_release(scores: Floats, member: Booleans, first: Booleans) -> float:
    """Return the cross-fitted AUC of the best attacker without a release, from scores (q, K); at least 1/2.

    Above 1/2 targets differ from controls whatever is released, and an AUC with a release counts beyond it.
    """
    if not scores.shape[1] or not has_enough_people(member):
        return 0.5
    areas = [
        np.array([[roc_area(column[some & member], column[some & ~member]) for column in scores.T]])
        for some in (first, ~first)
    ]
    return max(0.5, float(_mean_over_halves(*areas)[0]))


def _mean_over_halves(first: Floats, second: Floats) -> Floats:
    """Return the mean over both halves of the attacker that is best on the other half, (1 + P,).

    ``first`` and ``second`` are the statistics of K attackers, (1 + P, K).
    """
    each = []
    for chooses, judges in ((first, second), (second, first)):
        best = np.argmax(chooses, axis=1)
        each.append(judges[np.arange(len(best)), best])
    return np.asarray((each[0] + each[1]) / 2)


def detectable_area(first: Floats, second: Floats, limit: float, power: float = POWER) -> float:
    """Return the smallest AUC of one attacker that exceeds 1/2 by more than ``limit`` with this power; at most 1.

    ``first`` and ``second`` (P, K) are permuted AUCs of the halves. The power is averaged over which attacker has the
    leak, and the others see nothing of it. That is the hardest case: a leak of this size that all see is found more
    often, 93 % to 97 % of the time among six unrelated attackers (``tests/engine/adversary/test_calibration.py``).
    """
    k = first.shape[1]
    sides = []
    for chooses, judges in ((first, second), (second, first)):
        order = np.argsort(-chooses, axis=1, kind="stable")[:, :2]
        at = np.arange(len(chooses))[:, None]
        second_best = order[:, -1:] if k > 1 else order
        other = np.where(order[:, :1] == np.arange(k), second_best, order[:, :1])  # the best but for each attacker
        # A leak that one attacker detects is missed if another is selected.
        lead = chooses - chooses[at, other] if k > 1 else np.full(chooses.shape, np.inf)
        sides.append((lead, judges, judges[at, other]))

    def power_at_excess(more: float) -> float:
        """Return the share of permutations in which an excess is detected."""
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
    """Return for each of (1 + P,) values the share of values at least as large."""
    # Values that differ by rounding are ties.
    held = np.sort(np.round(statistic, 12))
    return np.asarray((len(held) - np.searchsorted(held, np.round(statistic, 12), "left")) / len(held))


@dataclass(frozen=True, eq=False)
class _SplitHalfScores:
    """AUCs and true positive rates of every attacker on one half of the people.

    ranks: ranks of the people's scores, (q, K)
    member: whether each person is a target, (q,)
    areas: AUC of each attacker with true and permuted labels, (1 + P, K)
    true_positives: true positive rates with true and permuted labels, (1 + P, K)
    false_positives: share of controls allowed above the threshold
    unit_of: unit of each record, (q,); None where each is one
    """

    ranks: Floats
    member: Booleans
    areas: Floats
    true_positives: Floats
    false_positives: float
    unit_of: Integers | None = None

    @classmethod
    def from_scores(
        cls,
        scores: Floats,
        member: Booleans,
        false_positives: float,
        rng: np.random.Generator,
        deals: int,
        unit_of: Integers | None = None,
    ) -> _SplitHalfScores:
        """Compute AUCs and true positive rates with the true and ``deals`` permuted labels."""
        q, n = len(member), int(member.sum())
        c = q - n
        labels = np.empty((1 + deals, q), dtype=np.bool_)
        labels[0] = member
        if unit_of is None:
            for row in labels[1:]:
                row[:] = rng.permutation(member)
        else:
            _, record, unit = np.unique(unit_of, return_index=True, return_inverse=True)
            for row in labels[1:]:
                row[:] = rng.permutation(member[record])[unit]
        ranks = average_ranks(scores)
        # Mann-Whitney statistics of all labellings and attackers in one product. Units differ in their numbers of
        # records, and labellings then in those of targets.
        targets = n if unit_of is None else labels.sum(axis=1)[:, None]
        areas = (labels.astype(np.float64) @ ranks - targets * (targets + 1) / 2) / (targets * (q - targets))
        allowed = np.maximum(1, (false_positives * (q - labels.sum(axis=1)) * (1 + 1e-12)).astype(np.int64))
        positives = np.stack([_count_true_positives(own, labels, allowed) for own in ranks.T], axis=1) / targets
        return cls(ranks, member, areas, positives, int(allowed[0]) / c, unit_of)

    def area_variance(self, attacker: int) -> float:
        """Return DeLong's variance of the AUC of one attacker."""
        scores = self.ranks[:, attacker]
        units = None if self.unit_of is None else (self.unit_of[self.member], self.unit_of[~self.member])
        return de_long_variance(scores[self.member], scores[~self.member], units)


def _count_true_positives(ranks: Floats, labels: Booleans, allowed: int | Integers) -> Floats:
    """Count the targets above the highest threshold that ``allowed`` controls (P,) reach, for each labelling (P, q): (P,).

    Ties at the threshold are broken at random, and the expected number counts.
    """
    allowed = np.broadcast_to(allowed, len(labels))
    order = np.argsort(-ranks, kind="stable")
    values = ranks[order]
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    looked_at, most = 0, 8 * (int(allowed.max()) + 1)
    while looked_at < len(ends):  # until every labelling has more controls than are allowed
        looked_at = int(np.searchsorted(ends, most)) + 1
        targets = np.cumsum(labels[:, order[: ends[:looked_at][-1] + 1]], axis=1, dtype=np.int32)[:, ends[:looked_at]]
        controls = (ends[:looked_at] + 1).astype(np.int32) - targets
        if (controls[:, -1] > allowed).all():
            break
        most *= 4
    ends = ends[:looked_at]
    fits = (controls <= allowed[:, None]).sum(axis=1)
    padded = np.concatenate([np.zeros((len(labels), 1), dtype=np.int32), targets], axis=1)
    reached = np.concatenate([np.zeros((len(labels), 1), dtype=np.int32), controls], axis=1)
    at = np.arange(len(labels))
    base = padded[at, fits].astype(np.float64)
    inside = fits < len(ends)
    after = np.minimum(fits + 1, len(ends))
    more_targets, more_controls = padded[at, after] - base, reached[at, after] - reached[at, fits]
    part = np.where(inside, (allowed - reached[at, fits]) / np.maximum(more_controls, 1), 0.0)
    return np.asarray(base + part * more_targets)
