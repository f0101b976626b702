"""Dirichlet process mixture of products of multinomials: truncated stick-breaking, by blocked Gibbs sweeps.

A record is in class z with probability pi_z, and given its class its q variables are independent: x_j = l with
probability phi_zjl.

    pi_k = V_k (1 - V_1) ... (1 - V_k-1),   V_k ~ Beta(1, alpha) for k < K,   V_K = 1,
    alpha ~ Gamma(shape, rate),   phi_kj ~ Dirichlet(a, ..., a)

A sweep draws z, then phi, V and alpha, each given all others (Ishwaran & James 2001, §5.2; Dunson & Xing 2009, §3; Si &
Reiter 2013, §2.2). Missing values are integrated over. Steps that split a class or merge two may be added: a class is
proposed to be split into itself and an empty one, or two classes to become one, with Metropolis-Hastings acceptance,
all parameters but alpha integrated over (Jain & Neal 2004, §4.2, with EM steps in place of restricted Gibbs scans).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln

from ..data.arrays import Floats
from ..methods.results import ChainTrace, SamplerDraws
from ..methods.run import Progress
from .continued import doubling_lengths, run_until_converged
from .distinct_rows import SMALLEST_PROBABILITY, Codes, DistinctRows
from .structural_zeros import SupportTruncation

STEPS = 8
"""Of expectation and maximisation, from a start to the parts that are proposed."""
ALIKE = 0.8
"""Probability of the levels of the record that a part starts from."""
PILOT = 0.125
"""Share of the burn-in after which one of several starts of a chain is chosen."""
FEW = 32
"""Records of a row, up to which each draws its own class; more draw a multinomial."""
BETWEEN_REPORTS = 20


@dataclass(frozen=True, eq=False)
class ClassMembers:
    """Records of rows in classes.

    rows: rows of the records, (k,)
    class_keys: their classes, (k,)
    weights: number of records of each entry; None where each is one, (k,)
    """

    rows: Codes
    class_keys: Codes
    weights: Floats | None

    def row_counts(self, label: int, rows: int) -> Floats:
        """Count the records of each of ``rows`` rows in one class, (rows,)."""
        own = self.class_keys == label
        return np.bincount(self.rows[own], None if self.weights is None else self.weights[own], rows).astype(np.float64)


def log_allocation_prior(records: Floats, alpha: float) -> float:
    """Return log p(z | alpha) from the records in each class, (K,), with the sticks integrated out."""
    after = np.cumsum(records[::-1])[::-1]
    n, rest = records[:-1], after[1:]
    found = gammaln(1 + n) + gammaln(alpha + rest) - gammaln(1 + alpha + n + rest)
    return float(found.sum() + len(n) * np.log(alpha))


def log_class_likelihood(levels: Floats, starts: Codes, concentration: float) -> float:
    """Return log p(x | z) of the records of one class, from its records with each level (D,).

    It is up to a constant of all groupings; the levels' probabilities are integrated out.
    """
    totals, sizes = np.add.reduceat(levels, starts[:-1]), np.diff(starts)
    inside = gammaln(concentration + levels).sum() - len(levels) * gammaln(concentration)
    return float(inside + (gammaln(concentration * sizes) - gammaln(concentration * sizes + totals)).sum())


def propose_split(
    rows: DistinctRows, counts: Floats, concentration: float, rng: np.random.Generator
) -> tuple[Codes, Floats, Floats]:
    """Propose a split of the ``counts`` (R,) records of a class into two parts.

    Returns rows (k,), and the log probabilities (k,) that a record of the row falls into the first part, and into the
    second.
    """
    which = np.flatnonzero(counts)
    own, starts = counts[which], rows.level_starts
    upto = np.cumsum(own)
    seeds = which[np.searchsorted(upto, rng.random(2) * upto[-1], side="right").clip(0, len(which) - 1)]
    sizes = np.repeat(np.diff(starts), np.diff(starts))
    likely = np.stack([rows.level_counts(seeds[i : i + 1], np.ones(1)) for i in (0, 1)]) > 0
    log_levels = np.log(np.where(likely, ALIKE, (1 - ALIKE) / np.maximum(sizes - 1, 1)))
    log_weights = np.zeros(2)
    # Expectation and maximisation from a random start that depends on the records of both parts alone: the fit is then
    # the same random variable for the step back, which a Metropolis-Hastings ratio needs.
    for _ in range(STEPS):
        share = own * expit(_log_odds(rows, log_weights, log_levels, which))
        mass = np.stack([rows.level_counts(which, share), rows.level_counts(which, own - share)]) + concentration
        totals = np.repeat(np.add.reduceat(mass, starts[:-1], axis=1), np.diff(starts), axis=1)
        log_levels, log_weights = np.log(mass / totals), np.log(np.array([share.sum(), own.sum() - share.sum()]) + 1.0)
    gap = _log_odds(rows, log_weights, log_levels, which)
    return which, -np.logaddexp(0.0, -gap), -np.logaddexp(0.0, gap)


def _log_odds(rows: DistinctRows, log_weights: Floats, log_levels: Floats, which: Codes) -> Floats:
    """Return the log odds of the first of two classes against the second for these rows (k,)."""
    log = rows.log_joint_probabilities(log_weights, rows.log_block_probabilities(log_levels), which)
    return np.asarray(log[:, 0] - log[:, 1])


def propose_split_or_merge(
    rows: DistinctRows,
    members: ClassMembers,
    records: Floats,
    levels: Floats,
    concentration: float,
    alpha: float,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, bool]:
    """Take one split or merge step, and return the classes after it and whether it was accepted.

    The classes are their ``records`` (K,) and ``levels`` (K, D).
    """
    size, occupied = len(records), np.flatnonzero(records > 0)
    split = rng.random() < 0.5
    if len(occupied) == size if split else len(occupied) < 2:
        return records, levels, False
    if split:
        one, other = int(rng.choice(occupied)), int(rng.choice(np.flatnonzero(records == 0)))
        held = members.row_counts(one, len(rows.counts)), np.zeros(len(rows.counts))
    else:
        one, other = (int(label) for label in rng.choice(occupied, 2, replace=False))
        held = members.row_counts(one, len(rows.counts)), members.row_counts(other, len(rows.counts))
    counts = held[0] + held[1]
    which, first, second = propose_split(rows, counts, concentration, rng)
    if split:
        chances = np.exp(first if rng.random() < 0.5 else second)
        kept = rng.binomial(counts[which].astype(np.int64), np.minimum(chances, 1.0)).astype(np.float64)
    else:
        kept = held[0][which]
    moved = counts[which] - kept
    if not kept.any() or not moved.any():
        return records, levels, False
    # Either part may be the first: the probability of the split is the mean of both.
    log_parts = float(np.logaddexp(kept @ first + moved @ second, kept @ second + moved @ first) - np.log(2.0))
    parts = np.stack([rows.level_counts(which, kept), rows.level_counts(which, moved)])
    whole = parts.sum(axis=0)
    apart, together = records.copy(), records.copy()
    apart[[one, other]] = kept.sum(), moved.sum()
    together[[one, other]] = counts.sum(), 0.0
    gain = (
        log_allocation_prior(apart, alpha)
        - log_allocation_prior(together, alpha)
        - log_class_likelihood(whole, rows.level_starts, concentration)
    )
    gain += sum(log_class_likelihood(part, rows.level_starts, concentration) for part in parts) - log_parts
    without = len(occupied) - (not split)
    # With O classes occupied a split draws one of them and one of the K - O empty, a merger an ordered pair of the O:
    # the ratio of these is (K - O) / (O + 1) for a split.
    gain += np.log((size - without) / (without + 1))
    if np.log1p(-rng.random()) >= (gain if split else -gain):
        return records, levels, False
    levels = levels.copy()
    levels[one], levels[other] = (parts[0], parts[1]) if split else (whole, 0.0)
    return apart if split else together, levels, True


OCCUPIED, ALPHA, LOG_LIKELIHOOD = "occupied classes", "alpha", "log likelihood"


@dataclass(frozen=True, kw_only=True)
class MixturePrior:
    """Prior of the mixture.

    classes: number of classes K
    concentration: a of every level of a variable
    shape, rate: of alpha's gamma prior
    """

    classes: int
    concentration: float
    shape: float
    rate: float


@dataclass(frozen=True, eq=False)
class MixtureParameters:
    """One draw of the parameters of the mixture.

    log_weights: log pi, (K,)
    log_levels: log phi of all variables side by side, (K, D)
    alpha: concentration of the Dirichlet process
    had_records: which classes had records; None if unknown, (K,)
    """

    log_weights: Floats
    log_levels: Floats
    alpha: float
    had_records: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class OccupiedClasses:
    """The classes that had records, and all others as one class whose probability is an upper bound in every row.

    parameters: parameters of the mixture
    logs: log probabilities of each block
    occupied: numbers of the classes that had records
    empty: numbers of the others
    log_weights: log weights of the occupied classes and of the bound
    bounds: log probabilities of each block in these
    """

    parameters: MixtureParameters
    logs: Sequence[Floats]
    occupied: Codes
    empty: Codes
    log_weights: Floats
    bounds: Sequence[Floats]

    @classmethod
    def from_parameters(cls, rows: DistinctRows, now: MixtureParameters) -> OccupiedClasses:
        """Build from the parameters; all classes count as occupied if the parameters do not say which had records."""
        logs, size = rows.log_block_probabilities(now.log_levels), len(now.log_weights)
        if now.had_records is None or now.had_records.all():
            return cls(now, logs, np.arange(size), np.empty(0, dtype=np.int64), now.log_weights, logs)
        near, far = np.flatnonzero(now.had_records), np.flatnonzero(~now.had_records)
        rest = now.log_weights[far]
        weight = rest.max() + math.log(np.exp(rest - rest.max()).sum())
        # The largest probability of each block over the empty classes: for most rows these are never evaluated one by
        # one.
        bounds = [np.vstack([log[near], log[far].max(axis=0)]) for log in logs]
        return cls(now, logs, near, far, np.append(now.log_weights[near], weight), bounds)

    def resolve_bound(self, rows: DistinctRows, which: Codes, proposed: Floats, u: Floats) -> Codes:
        """Draw a class for records of the rows ``which`` (k,) that drew the bound, (k,).

        ``proposed`` (k,) is the probability of the bound in these rows.
        """
        found = rows.log_joint_probabilities(self.parameters.log_weights, self.logs, which)
        np.exp(found - found.max(axis=1, keepdims=True), out=found)
        found /= found.sum(axis=1, keepdims=True)
        far = found[:, self.empty].sum(axis=1)
        # With r the probability of all empty classes together, an empty class is drawn with its own probability over
        # the bound's, an occupied one with its share among the occupied of the 1 - r / proposed that are left. With
        # those that drew it at once, each class keeps its probability.
        found[:, self.occupied] *= (np.maximum(proposed - far, 0.0) / np.maximum(1.0 - far, SMALLEST_PROBABILITY))[
            :, None
        ]
        upto = np.cumsum(found, axis=1)
        return np.asarray((upto[:, :-1] <= (u * upto[:, -1])[:, None]).sum(axis=1))


@dataclass(frozen=True, eq=False)
class ClassAllocation:
    """An allocation of the records to classes.

    records: records in each class, (K,)
    levels: records of each class with each level, (K, D)
    members: rows and classes of the records; None if not kept
    """

    records: Floats
    levels: Floats
    members: ClassMembers | None = None

    @classmethod
    def from_parameters(
        cls, rows: DistinctRows, now: MixtureParameters, rng: np.random.Generator
    ) -> tuple[ClassAllocation, float]:
        """Draw classes by the probabilities of each row, and return them with the log likelihood of all records.

        The likelihood is summed over the occupied classes.
        """
        bounded, few = OccupiedClasses.from_parameters(rows, now), rows.counts <= FEW
        alone, each = bool((rows.counts == 1).all()), bool(few.all())
        u, done, last = rng.random(int(rows.counts[few].sum())), 0, len(bounded.occupied)
        likelihood, which, classes, weights = 0.0, [], [], []
        open_rows, open_chances = [], []
        for chunk, chances, short in rows.class_probabilities(bounded.log_weights, bounded.bounds):
            counts, small = rows.counts[chunk], few[chunk]
            likelihood += float(counts @ (np.log(chances.totals_of_first(last)) + short))
            own = np.arange(len(counts)) if alone else np.repeat(np.flatnonzero(small), counts[small])
            picked, weight = (
                chances.pick_classes(None if alone else own, u[done : done + len(own)]),
                np.ones(0 if each else len(own)),
            )
            done += len(own)
            # A row of many records draws its class counts by one multinomial.
            if not each and len(many := np.flatnonzero(~small)):
                drawn = chances.draw_class_counts(many, counts[many], rng)
                row, in_class = np.nonzero(drawn)
                own, picked = np.concatenate([own, many[row]]), np.concatenate([picked, in_class])
                weight = np.concatenate([weight, drawn[row, in_class]])
            if len(at := np.flatnonzero(picked == last)):
                again = own[at] if each else np.repeat(own[at], weight[at].astype(np.int64))
                open_rows.append(again + chunk.start)
                open_chances.append(chances.each[again, last] / chances.row_totals[again])
                kept = picked != last
                own, picked, weight = own[kept], picked[kept], weight if each else weight[kept]
            which.append(own + chunk.start)
            classes.append(bounded.occupied[picked])
            weights.append(weight)
        if open_rows:
            again = np.concatenate(open_rows)
            which.append(again)
            classes.append(bounded.resolve_bound(rows, again, np.concatenate(open_chances), rng.random(len(again))))
            weights.append(np.ones(0 if each else len(again)))
        of, into = np.concatenate(which), np.concatenate(classes)
        weighed = None if each else np.concatenate(weights)
        found = cls.from_assignments(rows, of, into, weighed, len(now.log_weights))
        return replace(found, members=ClassMembers(of, into, weighed)), likelihood

    @classmethod
    def from_assignments(
        cls, rows: DistinctRows, which: Codes, classes: Codes, weights: Floats | None, size: int
    ) -> ClassAllocation:
        """Count records and levels in each class, given the class of each record.

        ``weights`` (k,) is the number of records of the rows ``which`` (k,) that an entry stands for, None for one
        each; ``classes`` (k,) are below ``size``.
        """
        levels = np.empty((size, int(rows.level_starts[-1])))
        for block in rows.blocks:
            held = len(block.records)
            table = np.bincount(classes * held + block.combination[which], weights, size * held).reshape(size, held)
            levels[:, block.first : block.last] = table @ block.level_indicators.T
        return cls(np.bincount(classes, weights, size).astype(np.float64), levels)

    def log_joint_probability(self, rows: DistinctRows, prior: MixturePrior, alpha: float) -> float:
        """Return log p(z, x | alpha), up to a constant of all groupings."""
        held = self.levels[self.records > 0]
        return log_allocation_prior(self.records, alpha) + sum(
            log_class_likelihood(one, rows.level_starts, prior.concentration) for one in held
        )

    def split_or_merge(
        self, rows: DistinctRows, prior: MixturePrior, alpha: float, rng: np.random.Generator
    ) -> ClassAllocation:
        """Return the allocation after one split or merge step."""
        if self.members is None:
            return self
        records, levels, _ = propose_split_or_merge(
            rows, self.members, self.records, self.levels, prior.concentration, alpha, rng
        )
        return ClassAllocation(records, levels)

    def relabel_neighbours(self, alpha: float, rng: np.random.Generator) -> ClassAllocation:
        """Return the allocation after neighbouring classes were proposed to swap their labels, V integrated out.

        The pairs that begin at an even label come first, then the others.
        """
        size, labels = len(self.records), np.arange(len(self.records))
        for begin in (0, 1):
            one = np.arange(begin, size - 1, 2)
            records = self.records[labels]
            n, other = records[one], records[one + 1]
            rest = np.append(np.cumsum(records[::-1])[::-1], 0.0)[one + 2]
            # After Papaspiliopoulos & Roberts (2008, §3.4): without swaps the order of the sticks hardly moves, and
            # alpha with it. With n and n' records in the two and R in all classes after them the Metropolis ratio is
            # (alpha + n' + R) / (alpha + n + R).
            gain = np.log(alpha + other + rest) - np.log(alpha + n + rest)
            if len(one) and one[-1] == size - 2:
                # Of the last two, as V_K is 1: Gamma(1 + n') Gamma(alpha + n) / (Gamma(1 + n) Gamma(alpha + n')).
                gain[-1] = (
                    gammaln(1 + other[-1]) + gammaln(alpha + n[-1]) - gammaln(1 + n[-1]) - gammaln(alpha + other[-1])
                )
            swapped = one[np.log1p(-rng.random(len(one))) < gain]
            labels[swapped], labels[swapped + 1] = labels[swapped + 1], labels[swapped]
        return ClassAllocation(self.records[labels], self.levels[labels])

    def draw_parameters(
        self, prior: MixturePrior, starts: Codes, alpha: float, rng: np.random.Generator
    ) -> MixtureParameters:
        """Draw phi and V given the classes and ``alpha``, then alpha given V."""
        # A gamma draw of a small shape may underflow to 0, which has no logarithm.
        mass = np.maximum(rng.standard_gamma(self.levels + prior.concentration), SMALLEST_PROBABILITY)
        totals = np.add.reduceat(mass, starts[:-1], axis=1)
        log_levels = np.log(mass) - np.repeat(np.log(totals), np.diff(starts), axis=1)
        after = np.cumsum(self.records[::-1])[::-1][1:]
        taken = np.maximum(rng.standard_gamma(1.0 + self.records[:-1]), SMALLEST_PROBABILITY)
        left = np.maximum(rng.standard_gamma(alpha + after), SMALLEST_PROBABILITY)
        log_whole = np.log(taken + left)
        log_left = np.log(left) - log_whole
        upto = np.concatenate([[0.0], np.cumsum(log_left)])
        log_weights = upto + np.append(np.log(taken) - log_whole, 0.0)
        return MixtureParameters(
            log_weights,
            log_levels,
            rng.gamma(prior.shape + prior.classes - 1, 1 / (prior.rate - log_left.sum())),
            self.records > 0,
        )


@dataclass(frozen=True, eq=False)
class ChainDraws:
    """Kept draws of the parameters, one ``MixtureParameters`` each, and label-free quantities of every sweep.

    kept: as many parameters as were requested
    sweep, chain: sweep and chain of each of them, numbered from 1, (draws,)
    quantities: occupied classes and alpha, (sweeps, chains, 2)
    log_likelihood: of all records, (sweeps, chains)
    burn_in: sweeps at the start that are left out
    lost: records that fell on impossible combinations, (sweeps, chains)
    """

    kept: tuple[MixtureParameters, ...]
    sweep: Codes
    chain: Codes
    quantities: Floats
    log_likelihood: Floats
    burn_in: int
    lost: Floats

    @property
    def quantity_trace(self) -> ChainTrace:
        """Return the trace of the quantities, and of the log likelihood last, less its largest."""
        from .ensemble import chain_trace

        return chain_trace(self.quantities, self.log_likelihood, (OCCUPIED, ALPHA), self.burn_in, LOG_LIKELIHOOD)

    @property
    def quantity_chains(self) -> SamplerDraws:
        """Return every sweep of the quantities that do not depend on labels."""
        # Parameters of single classes are left out: a class is another one in the next sweep.
        values = np.ascontiguousarray(self.quantities.transpose(1, 0, 2))
        density = np.ascontiguousarray(self.log_likelihood.T)
        return SamplerDraws((OCCUPIED, ALPHA), values, density, LOG_LIKELIHOOD, self.burn_in, "Gibbs")


def sample_mixture(
    rows: DistinctRows,
    prior: MixturePrior,
    draws: int,
    rng: np.random.Generator,
    report: Callable[[Progress], None],
    *,
    sweeps: int,
    burn_in: int,
    thin: int,
    chains: int,
    split_every: int = 0,
    starts: int = 1,
    truncation: SupportTruncation | None = None,
    max_sweeps: int = 0,
    converged: Callable[[ChainDraws], bool] = lambda _: True,
) -> ChainDraws:
    """Draw ``draws`` draws of the parameters, spread evenly over the sweeps of all chains after ``burn_in``.

    Only every ``thin``-th sweep is used. ``draws`` are at most the sweeps that there are. With a ``truncation`` the
    rows are those of all other records. Each chain is begun from ``starts``, and the one with the largest mean of log
    p(z, x | alpha), over the second half of ``PILOT`` of the burn-in, continues. Chains that have not ``converged``
    continue: each doubles its sweeps, up to ``max_sweeps``, and the draws are of the second half.
    """
    pilot = max(1, int(PILOT * burn_in))

    def start_chain(number: int, own: np.random.Generator) -> _GibbsChain:
        """Start a chain, from the best of several starts if there are any."""
        classes = _count_first_classes(prior, number, split_every)
        if starts == 1:
            return _GibbsChain(_random_start(rows, prior, classes, own), own)
        # A chain may be trapped for long in a grouping of little probability that only its start leads to. It knows
        # nothing of the other chains, so that their agreement says as much as with one start.
        tried = [_GibbsChain(_random_start(rows, prior, classes, one), one, scores=[]) for one in own.spawn(starts)]
        for place, one in enumerate(tried, start=1):
            said = Progress(
                (number * starts + place) * pilot, chains * starts * pilot, "Gibbs sweeps from several starts"
            )
            one.run_to(pilot, (), rows, prior, split_every, truncation, lambda _: None)
            report(said)
        return max(tried, key=_GibbsChain.mean_score)

    every = [start_chain(number, own) for number, own in enumerate(rng.spawn(chains))]

    def run_to(length: int) -> ChainDraws:
        """Run all chains to a number of sweeps, and return the draws of the sweeps that are used then."""
        before = every[0].n_sweeps
        continues = before >= sweeps
        first = before if continues else burn_in
        usable = np.arange(first + thin - 1, length, thin)
        places = np.floor((np.arange(draws) + 0.5) * (chains * len(usable) / draws)).astype(np.int64)
        chain, at = np.divmod(places, len(usable))
        sweep = usable[at]
        what = "Gibbs sweeps of chains that continue" if continues else "Gibbs sweeps"
        for number, one in enumerate(every):
            done = chains * before + number * (length - before)

            def tell(added: int, done: int = done) -> None:
                report(Progress(done + added, chains * length, what))

            wanted = {int(s) for s, c in zip(sweep, chain, strict=True) if c == number}
            one.run_to(length, wanted, rows, prior, split_every, truncation, tell)
        kept = tuple(every[int(c)].kept[int(s)] for c, s in zip(chain, sweep, strict=True))
        quantities, likelihood, lost = (
            np.stack(own, axis=1)
            for own in zip(*((one.quantities, one.log_likelihood, one.lost) for one in every), strict=True)
        )
        return ChainDraws(kept, sweep + 1, chain + 1, quantities, likelihood, first, lost)

    return run_until_converged(run_to, converged, doubling_lengths(sweeps, max_sweeps))[0]


def _count_first_classes(prior: MixturePrior, number: int, split_every: int) -> int:
    """Return the number of classes over which the records of chain ``number`` are spread at first."""
    # K/2, K/4, ... classes, so that agreement does not come from the start; 1, 2, 4, ... where classes are split and
    # merged.
    first = 1 << number if split_every else prior.classes >> (number + 1)
    return max(1, min(first, prior.classes))


@dataclass(eq=False)
class _GibbsChain:
    """State of a chain: its last parameters, its random numbers, and label-free quantities of each sweep.

    now: parameters of the last sweep
    rng: its random numbers
    quantities: occupied classes and alpha, (sweeps, 2)
    log_likelihood, lost: of each sweep, (sweeps,)
    kept: parameters of the sweeps that were wanted when it ran last
    scores: log p(z, x | alpha) of each sweep of a start that is one of several
    """

    now: MixtureParameters
    rng: np.random.Generator
    quantities: Floats = field(default_factory=lambda: np.empty((0, 2)))
    log_likelihood: Floats = field(default_factory=lambda: np.empty(0))
    lost: Floats = field(default_factory=lambda: np.empty(0))
    kept: dict[int, MixtureParameters] = field(default_factory=dict)
    scores: list[float] | None = None
    """Log p(z, x | alpha) of each sweep of a start that is one of several."""

    @property
    def n_sweeps(self) -> int:
        return len(self.log_likelihood)

    def mean_score(self) -> float:
        """Return the mean of the second half of the scores, and stop keeping them."""
        scores, self.scores = self.scores or [-np.inf], None
        return float(np.mean(scores[len(scores) // 2 :]))

    def run_to(
        self,
        length: int,
        wanted: Collection[int],
        rows: DistinctRows,
        prior: MixturePrior,
        split_every: int,
        truncation: SupportTruncation | None,
        tell: Callable[[int], None],
    ) -> None:
        """Continue to ``length`` sweeps, and keep the parameters of the ``wanted`` sweeps, counted from 0.

        ``tell`` is called with how many sweeps were added.
        """
        before, now, own = self.n_sweeps, self.now, self.rng
        more = length - before
        quantities, likelihood, lost = np.empty((more, 2)), np.empty(more), np.zeros(more)
        self.kept = {}
        for step in range(before, length):
            at, alpha = step - before, now.alpha
            allocated, likelihood[at] = ClassAllocation.from_parameters(rows, now, own)
            if truncation is not None:
                records, levels, beside, further = truncation.draw_sweep(now.log_weights, now.log_levels, own)
                allocated = ClassAllocation(allocated.records + records, allocated.levels + levels)
                likelihood[at] += further
                lost[at] = beside.sum()
            else:
                beside = np.zeros(prior.classes)
            quantities[at] = np.count_nonzero(allocated.records > beside), alpha
            if self.scores is not None:
                self.scores.append(allocated.log_joint_probability(rows, prior, alpha))
            if step in wanted:
                self.kept[step] = now
            if split_every and step % split_every == 0:
                allocated = allocated.split_or_merge(rows, prior, alpha, own)
            now = allocated.relabel_neighbours(alpha, own).draw_parameters(prior, rows.level_starts, alpha, own)
            if (step + 1) % BETWEEN_REPORTS == 0 or step + 1 == length:
                tell(at + 1)
        self.now = now
        self.quantities = np.concatenate([self.quantities, quantities])
        self.log_likelihood = np.concatenate([self.log_likelihood, likelihood])
        self.lost = np.concatenate([self.lost, lost])


def _random_start(rows: DistinctRows, prior: MixturePrior, classes: int, rng: np.random.Generator) -> MixtureParameters:
    """Draw parameters given records that are spread at random over ``classes`` classes."""
    which = np.repeat(np.arange(len(rows.counts)), rows.counts)
    spread = ClassAllocation.from_assignments(rows, which, rng.integers(classes, size=len(which)), None, prior.classes)
    return spread.draw_parameters(prior, rows.level_starts, 1.0, rng)
