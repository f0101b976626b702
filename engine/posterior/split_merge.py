"""Classes of a mixture split and merged: steps between groupings of records that sweeps, class given class, rarely lead across.

A class is proposed to be split into itself and an empty one, or two classes to become one, and the proposal is accepted as Metropolis and Hastings
say, all parameters but alpha integrated over. Into which part a record falls is drawn by a mixture of two classes that is fitted to the records of both,
whatever part they are in now, from a random start: so the fit is the same random variable for the step back (Jain & Neal 2004, §4.2, whose launch state is
made by restricted Gibbs scans in place of the steps of expectation and maximisation here).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, gammaln

from ..arrays import Floats
from .distinct_rows import Codes, DistinctRows

STEPS = 8
"""Of expectation and maximisation, from a start to the parts that are proposed."""
ALIKE = 0.8
"""Probability of the levels of the record that a part starts from."""


@dataclass(frozen=True, eq=False)
class Members:
    """Which records are where: ``weights`` (k,) of those of the rows ``which`` (k,) are in the classes ``classes`` (k,)."""

    which: Codes
    classes: Codes
    weights: Floats | None

    def of(self, label: int, rows: int) -> Floats:
        """How many of each of so many rows are in one class, (rows,)."""
        own = self.classes == label
        return np.bincount(self.which[own], None if self.weights is None else self.weights[own], rows).astype(
            np.float64
        )


def log_order(records: Floats, alpha: float) -> float:
    """Log p(z | alpha) by how many records are in each class, (K,), the sticks integrated over."""
    after = np.cumsum(records[::-1])[::-1]
    n, rest = records[:-1], after[1:]
    found = gammaln(1 + n) + gammaln(alpha + rest) - gammaln(1 + alpha + n + rest)
    return float(found.sum() + len(n) * np.log(alpha))


def log_records(levels: Floats, starts: Codes, concentration: float) -> float:
    """Log p(x | z) of the records of one class by how many have each level, (D,), but for what all groupings share."""
    totals, sizes = np.add.reduceat(levels, starts[:-1]), np.diff(starts)
    inside = gammaln(concentration + levels).sum() - len(levels) * gammaln(concentration)
    return float(inside + (gammaln(concentration * sizes) - gammaln(concentration * sizes + totals)).sum())


def proposed_parts(
    rows: DistinctRows, counts: Floats, concentration: float, rng: np.random.Generator
) -> tuple[Codes, Floats, Floats]:
    """Rows (k,) of the ``counts`` (R,) records, and log probabilities (k,) that one falls into the first part, and into the second."""
    which = np.flatnonzero(counts)
    own, starts = counts[which], rows.starts
    upto = np.cumsum(own)
    seeds = which[np.searchsorted(upto, rng.random(2) * upto[-1], side="right").clip(0, len(which) - 1)]
    sizes = np.repeat(np.diff(starts), np.diff(starts))
    likely = np.stack([rows.levels_of(seeds[i : i + 1], np.ones(1)) for i in (0, 1)]) > 0
    log_levels = np.log(np.where(likely, ALIKE, (1 - ALIKE) / np.maximum(sizes - 1, 1)))
    log_weights = np.zeros(2)
    for _ in range(STEPS):
        share = own * expit(_gap(rows, log_weights, log_levels, which))
        mass = np.stack([rows.levels_of(which, share), rows.levels_of(which, own - share)]) + concentration
        totals = np.repeat(np.add.reduceat(mass, starts[:-1], axis=1), np.diff(starts), axis=1)
        log_levels, log_weights = np.log(mass / totals), np.log(np.array([share.sum(), own.sum() - share.sum()]) + 1.0)
    gap = _gap(rows, log_weights, log_levels, which)
    return which, -np.logaddexp(0.0, -gap), -np.logaddexp(0.0, gap)


def _gap(rows: DistinctRows, log_weights: Floats, log_levels: Floats, which: Codes) -> Floats:
    """By how much the first of two classes is more probable than the second, in logarithms, of these rows (k,)."""
    log = rows.exact(log_weights, rows.logs(log_levels), which)
    return np.asarray(log[:, 0] - log[:, 1])


def split_or_merged(
    rows: DistinctRows,
    members: Members,
    records: Floats,
    levels: Floats,
    concentration: float,
    alpha: float,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, bool]:
    """``records`` (K,) and ``levels`` (K, D) of the classes after one such step, and whether it was accepted.

    With O classes occupied a split draws one of them and one of the K - O empty, a merger an ordered pair of the O: the ratio of these
    is (K - O) / (O + 1) for a split.
    """
    size, occupied = len(records), np.flatnonzero(records > 0)
    split = rng.random() < 0.5
    if len(occupied) == size if split else len(occupied) < 2:
        return records, levels, False
    if split:
        one, other = int(rng.choice(occupied)), int(rng.choice(np.flatnonzero(records == 0)))
        held = members.of(one, len(rows.counts)), np.zeros(len(rows.counts))
    else:
        one, other = (int(label) for label in rng.choice(occupied, 2, replace=False))
        held = members.of(one, len(rows.counts)), members.of(other, len(rows.counts))
    counts = held[0] + held[1]
    which, first, second = proposed_parts(rows, counts, concentration, rng)
    if split:
        chances = np.exp(first if rng.random() < 0.5 else second)
        kept = rng.binomial(counts[which].astype(np.int64), np.minimum(chances, 1.0)).astype(np.float64)
    else:
        kept = held[0][which]
    moved = counts[which] - kept
    if not kept.any() or not moved.any():
        return records, levels, False
    log_parts = float(np.logaddexp(kept @ first + moved @ second, kept @ second + moved @ first) - np.log(2.0))
    parts = np.stack([rows.levels_of(which, kept), rows.levels_of(which, moved)])
    whole = parts.sum(axis=0)
    apart, together = records.copy(), records.copy()
    apart[[one, other]] = kept.sum(), moved.sum()
    together[[one, other]] = counts.sum(), 0.0
    gain = log_order(apart, alpha) - log_order(together, alpha) - log_records(whole, rows.starts, concentration)
    gain += sum(log_records(part, rows.starts, concentration) for part in parts) - log_parts
    without = len(occupied) - (not split)
    gain += np.log((size - without) / (without + 1))
    if np.log1p(-rng.random()) >= (gain if split else -gain):
        return records, levels, False
    levels = levels.copy()
    levels[one], levels[other] = (parts[0], parts[1]) if split else (whole, 0.0)
    return apart if split else together, levels, True
