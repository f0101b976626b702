"""The best of many attackers, measured without bias: one half of the people selects it, the other half measures it, and the reverse.

Without a leak every area is about 1/2, but the largest of many areas is larger: it is no evidence by itself. Targets and controls are each divided into
two halves at random. The attacker with the largest area on the first half is measured on the second, and the reverse; the result is the mean of both areas.
The share of targets that score as high as few controls do (``true positives``) is treated in the same way; that share selects its attacker.

**Null distribution.** Where the release owes nothing to single people, targets and controls are exchangeable. Within each half the labels are
permuted and all steps are repeated, the selection included. The test statistic is the smaller of two p-values, that of the area and that of the true
positives; its p-value is the share of permutations, the identity included, with a statistic as small (Phipson & Smyth 2010).

**Interval of the area.** The limits are the estimate minus the quantiles of the permuted areas around 1/2, or DeLong's standard errors (DeLong, DeLong &
Clarke-Pearson 1988) where these are larger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.arrays import Booleans, Floats
from ..statistics.score_interval import Z
from .areas import area, de_long
from .power import POWER

PERMUTATIONS = 499
LEAST = 10
"""The fewest targets, and the fewest controls, of a half."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of the selected attackers: the ``area`` with its limits, the share of ``true_positives`` at a share of ``false_positives``, the
    p-value, the smallest ``detectable`` area, and the numbers, from 0, of the attackers selected by area.
    """

    area: float
    lower: float
    upper: float
    true_positives: float
    false_positives: float
    p_value: float
    detectable: float
    chosen: tuple[int, ...]


def divided(member: Booleans, rng: np.random.Generator) -> Booleans:
    """Which people (q,) are in the first half: half of the targets and half of the controls, at random."""
    first = np.zeros(len(member), dtype=np.bool_)
    for side in (True, False):
        rows = np.flatnonzero(member == side)
        first[rng.permutation(rows)[: len(rows) // 2]] = True
    return first


def enough(member: Booleans) -> bool:
    """Whether each half has enough targets and controls to select and to measure an attacker."""
    return int(min(member.sum(), (~member).sum())) // 2 >= LEAST


def judged(
    scores: Floats,
    member: Booleans,
    first: Booleans,
    false_positives: float,
    rng: np.random.Generator,
    deals: int = PERMUTATIONS,
) -> Judged:
    """The best of K attackers by scores (q, K) of people: targets where ``member`` (q,) is true, else controls. ``deals`` is the number of permutations."""
    halves = [_Half.of(scores[some], member[some], false_positives, rng, deals) for some in (first, ~first)]
    areas = _crossed(halves[0].areas, halves[1].areas)
    positives = _crossed(halves[0].positives, halves[1].positives)
    area = float(areas[0])
    each = [_p_values(areas), _p_values(positives)]
    p_value = float(_p_values(-np.minimum(*each))[0])
    chosen = tuple(int(np.argmax(one.areas[0])) for one in halves)
    de_long = np.sqrt(np.mean([one.variance(k) for one, k in zip(halves, chosen[::-1], strict=True)]) / 2)
    low, high = np.quantile(areas[1:] - 0.5, (0.025, 0.975))
    return Judged(
        area,
        max(0.0, min(area, area - max(high, Z * de_long))),
        min(1.0, max(area, area + max(-low, Z * de_long))),
        float(positives[0]),
        float(np.mean([one.false_positives for one in halves])),
        p_value,
        detectable_area(halves[0].areas[1:], halves[1].areas[1:], float(high)),
        chosen,
    )


def area_without(scores: Floats, member: Booleans, first: Booleans) -> float:
    """Return the area that the best attacker without a release reaches by scores (q, K), chosen and judged on different halves; 1/2 where it is no larger.

    Above 1/2 targets differ from controls whatever is released, and an area with a release counts beyond this one.
    """
    if not scores.shape[1] or not enough(member):
        return 0.5
    areas = [
        np.array([[area(column[some & member], column[some & ~member]) for column in scores.T]])
        for some in (first, ~first)
    ]
    return max(0.5, float(_crossed(*areas)[0]))


def _crossed(first: Floats, second: Floats) -> Floats:
    """The mean over two halves, (1 + P,), of a statistic (1 + P, K) of the attacker that is best on the other half."""
    each = []
    for chooses, judges in ((first, second), (second, first)):
        best = np.argmax(chooses, axis=1)
        each.append(judges[np.arange(len(best)), best])
    return np.asarray((each[0] + each[1]) / 2)


def detectable_area(first: Floats, second: Floats, limit: float, power: float = POWER) -> float:
    """The smallest area of one attacker whose estimate exceeds 1/2 by more than ``limit`` with this power, averaged over the attackers; at most 1.

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

    def found(more: float) -> float:
        each = [np.where(lead + more >= 0, own + more, other) for lead, own, other in sides]
        return float(np.mean((each[0] + each[1]) / 2 - 0.5 > limit))

    low, high = 0.0, 0.5
    if found(high) < power:
        return 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) >= power else (middle, high)
    return 0.5 + high


def _p_values(statistic: Floats) -> Floats:
    """For each of (1 + P,) values the share of values that are at least as large."""
    held = np.sort(np.round(statistic, 12))
    return np.asarray((len(held) - np.searchsorted(held, np.round(statistic, 12), "left")) / len(held))


@dataclass(frozen=True, eq=False)
class _Half:
    """Areas and shares of true positives of every attacker by the labels of one half of the people and by permuted ones, (1 + P, K) each."""

    ranks: Floats
    member: Booleans
    areas: Floats
    positives: Floats
    false_positives: float

    @classmethod
    def of(
        cls, scores: Floats, member: Booleans, false_positives: float, rng: np.random.Generator, deals: int
    ) -> _Half:
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
        positives = np.stack([_true_positives(own, labels, allowed) for own in ranks.T], axis=1) / n
        return cls(ranks, member, areas, positives, allowed / c)

    def variance(self, attacker: int) -> float:
        """DeLong's variance of the area of one attacker."""
        scores = self.ranks[:, attacker]
        return de_long(scores[self.member], scores[~self.member])


def _true_positives(ranks: Floats, labels: Booleans, allowed: int) -> Floats:
    """For each labelling (P, q) the number of targets found while at most ``allowed`` controls are, from the highest rank (q,) down: (P,).

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
