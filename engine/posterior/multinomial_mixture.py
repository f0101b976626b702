"""Dirichlet process mixture of products of multinomials: truncated stick-breaking, by blocked Gibbs sweeps.

A record is in class z with probability pi_z, and given its class its q variables are independent: x_j = l with probability phi_zjl.

    pi_k = V_k (1 - V_1) ... (1 - V_k-1),   V_k ~ Beta(1, alpha) for k < K,   V_K = 1,   alpha ~ Gamma(shape, rate)
    phi_kj ~ Dirichlet(a, ..., a)

A sweep draws z, then phi, V and alpha, each given all others (Ishwaran & James 2001, §5.2; Dunson & Xing 2009, §3; Si & Reiter 2013, §2.2). Records
that are alike have the same class probabilities: those are computed once for every distinct row, and a row of many records draws how many
of them are in which class by one multinomial. Between z and V neighbouring classes may change their labels, V integrated over
(after Papaspiliopoulos & Roberts 2008, §3.4): without that the order of the sticks hardly moves, and alpha with it.

Chains start with records spread over K/2, K/4, ... classes. Where records leave several ways of being grouped, sweeps rarely lead from one to another:
chains then settle in different numbers of classes, and R-hat says so. Steps that split a class or merge two (``split_merge``) lead across; chains start with
1, 2, 4, ... classes then, since classes are found sooner than given up.

A value that is missing is integrated over: it says nothing of its record's class, and nothing of phi.

Classes of a mixture split and merged: steps between groupings of records that sweeps, class given class, rarely lead across.

A class is proposed to be split into itself and an empty one, or two classes to become one, and the proposal is accepted as Metropolis and Hastings
say, all parameters but alpha integrated over. Into which part a record falls is drawn by a mixture of two classes that is fitted to the records of both,
whatever part they are in now, from a random start: so the fit is the same random variable for the step back (Jain & Neal 2004, §4.2, whose launch state is
made by restricted Gibbs scans in place of the steps of expectation and maximisation here).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln

from ..data.arrays import Floats
from ..methods.results import Chains, ChainTrace
from ..methods.run import Progress
from .continued import doubled, run_until_converged
from .distinct_rows import LEAST, Codes, DistinctRows
from .structural_zeros import Truncation

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


OCCUPIED, ALPHA, LOG_LIKELIHOOD = "occupied classes", "alpha", "log likelihood"


@dataclass(frozen=True, kw_only=True)
class Prior:
    """K ``classes``, the ``concentration`` a of every level of a variable, and alpha's gamma ``shape`` and ``rate``."""

    classes: int
    concentration: float
    shape: float
    rate: float


@dataclass(frozen=True, eq=False)
class Parameters:
    """``log_weights`` (K,) log pi, ``log_levels`` (K, D) log phi of all variables side by side, and alpha; ``near`` (K,) where a class had records."""

    log_weights: Floats
    log_levels: Floats
    alpha: float
    near: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Bounded:
    """The classes that had records, and all others as one, which in no row is less probable than they are together.

    A record whose class is drawn by the bound gets one of all classes, so that each class is as probable as it is (``resolved``): most rows
    never ask what each of the classes without records says of them.
    """

    now: Parameters
    logs: Sequence[Floats]
    near: Codes
    far: Codes
    log_weights: Floats
    bounds: Sequence[Floats]

    @classmethod
    def of(cls, rows: DistinctRows, now: Parameters) -> Bounded:
        """By the parameters; every class is near where they do not say which had records."""
        logs, size = rows.logs(now.log_levels), len(now.log_weights)
        if now.near is None or now.near.all():
            return cls(now, logs, np.arange(size), np.empty(0, dtype=np.int64), now.log_weights, logs)
        near, far = np.flatnonzero(now.near), np.flatnonzero(~now.near)
        rest = now.log_weights[far]
        weight = rest.max() + math.log(np.exp(rest - rest.max()).sum())
        bounds = [np.vstack([log[near], log[far].max(axis=0)]) for log in logs]
        return cls(now, logs, near, far, np.append(now.log_weights[near], weight), bounds)

    def resolved(self, rows: DistinctRows, which: Codes, proposed: Floats, u: Floats) -> Codes:
        """A class (k,) for records of the rows ``which`` (k,) that drew the bound, ``proposed`` (k,) being its probability.

        Let r be the probability of all far classes together. A far class is drawn with its own probability over the bound's, a near one with
        its share among the near of the 1 - r / ``proposed`` that are left: with those that drew it at once it has its own.
        """
        found = rows.exact(self.now.log_weights, self.logs, which)
        np.exp(found - found.max(axis=1, keepdims=True), out=found)
        found /= found.sum(axis=1, keepdims=True)
        far = found[:, self.far].sum(axis=1)
        found[:, self.near] *= (np.maximum(proposed - far, 0.0) / np.maximum(1.0 - far, LEAST))[:, None]
        upto = np.cumsum(found, axis=1)
        return np.asarray((upto[:, :-1] <= (u * upto[:, -1])[:, None]).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Allocated:
    """What classes the records are in: how many in each, (K,), and how many of them have each level, (K, D)."""

    records: Floats
    levels: Floats
    members: Members | None = None

    @classmethod
    def drawn(cls, rows: DistinctRows, now: Parameters, rng: np.random.Generator) -> tuple[Allocated, float]:
        """By the probabilities of each row; and the log likelihood of all records, the classes summed over that had some."""
        bounded, few = Bounded.of(rows, now), rows.counts <= FEW
        alone, each = bool((rows.counts == 1).all()), bool(few.all())
        u, done, last = rng.random(int(rows.counts[few].sum())), 0, len(bounded.near)
        likelihood, which, classes, weights = 0.0, [], [], []
        open_rows, open_chances = [], []
        for chunk, chances, short in rows.chances(bounded.log_weights, bounded.bounds):
            counts, small = rows.counts[chunk], few[chunk]
            likelihood += float(counts @ (np.log(chances.totals_of(last)) + short))
            own = np.arange(len(counts)) if alone else np.repeat(np.flatnonzero(small), counts[small])
            picked, weight = (
                chances.picked(None if alone else own, u[done : done + len(own)]),
                np.ones(0 if each else len(own)),
            )
            done += len(own)
            if not each and len(many := np.flatnonzero(~small)):
                drawn = chances.multinomial(many, counts[many], rng)
                row, in_class = np.nonzero(drawn)
                own, picked = np.concatenate([own, many[row]]), np.concatenate([picked, in_class])
                weight = np.concatenate([weight, drawn[row, in_class]])
            if len(at := np.flatnonzero(picked == last)):
                again = own[at] if each else np.repeat(own[at], weight[at].astype(np.int64))
                open_rows.append(again + chunk.start)
                open_chances.append(chances.each[again, last] / chances.totals[again])
                kept = picked != last
                own, picked, weight = own[kept], picked[kept], weight if each else weight[kept]
            which.append(own + chunk.start)
            classes.append(bounded.near[picked])
            weights.append(weight)
        if open_rows:
            again = np.concatenate(open_rows)
            which.append(again)
            classes.append(bounded.resolved(rows, again, np.concatenate(open_chances), rng.random(len(again))))
            weights.append(np.ones(0 if each else len(again)))
        of, into = np.concatenate(which), np.concatenate(classes)
        weighed = None if each else np.concatenate(weights)
        found = cls.counted(rows, of, into, weighed, len(now.log_weights))
        return replace(found, members=Members(of, into, weighed)), likelihood

    @classmethod
    def counted(cls, rows: DistinctRows, which: Codes, classes: Codes, weights: Floats | None, size: int) -> Allocated:
        """Of ``weights`` (k,) records of the rows ``which`` (k,), one of each without, in these ``classes`` (k,) of ``size``."""
        levels = np.empty((size, int(rows.starts[-1])))
        for block in rows.blocks:
            held = len(block.records)
            table = np.bincount(classes * held + block.of[which], weights, size * held).reshape(size, held)
            levels[:, block.first : block.last] = table @ block.shown.T
        return cls(np.bincount(classes, weights, size).astype(np.float64), levels)

    def log_joint(self, rows: DistinctRows, prior: Prior, alpha: float) -> float:
        """Log p(z, x | alpha), but for what all groupings share."""
        held = self.levels[self.records > 0]
        return log_order(self.records, alpha) + sum(log_records(one, rows.starts, prior.concentration) for one in held)

    def split_or_merged(self, rows: DistinctRows, prior: Prior, alpha: float, rng: np.random.Generator) -> Allocated:
        """After a class was proposed to be split, or two to be merged."""
        if self.members is None:
            return self
        records, levels, _ = split_or_merged(
            rows, self.members, self.records, self.levels, prior.concentration, alpha, rng
        )
        return Allocated(records, levels)

    def relabelled(self, alpha: float, rng: np.random.Generator) -> Allocated:
        """Neighbouring classes that change their labels, V integrated over: each pair that begins at an even label, then each other.

        With n and n' records in the two and R in all classes after them the Metropolis ratio is (alpha + n' + R) / (alpha + n + R), and of the
        last two, as V_K is 1, Gamma(1 + n') Gamma(alpha + n) / (Gamma(1 + n) Gamma(alpha + n')).
        """
        size, labels = len(self.records), np.arange(len(self.records))
        for begin in (0, 1):
            one = np.arange(begin, size - 1, 2)
            records = self.records[labels]
            n, other = records[one], records[one + 1]
            rest = np.append(np.cumsum(records[::-1])[::-1], 0.0)[one + 2]
            gain = np.log(alpha + other + rest) - np.log(alpha + n + rest)
            if len(one) and one[-1] == size - 2:
                gain[-1] = (
                    gammaln(1 + other[-1]) + gammaln(alpha + n[-1]) - gammaln(1 + n[-1]) - gammaln(alpha + other[-1])
                )
            swapped = one[np.log1p(-rng.random(len(one))) < gain]
            labels[swapped], labels[swapped + 1] = labels[swapped + 1], labels[swapped]
        return Allocated(self.records[labels], self.levels[labels])

    def parameters(self, prior: Prior, starts: Codes, alpha: float, rng: np.random.Generator) -> Parameters:
        """Phi and V given the classes and ``alpha``, then alpha given V."""
        mass = np.maximum(rng.standard_gamma(self.levels + prior.concentration), LEAST)
        totals = np.add.reduceat(mass, starts[:-1], axis=1)
        log_levels = np.log(mass) - np.repeat(np.log(totals), np.diff(starts), axis=1)
        after = np.cumsum(self.records[::-1])[::-1][1:]
        taken = np.maximum(rng.standard_gamma(1.0 + self.records[:-1]), LEAST)
        left = np.maximum(rng.standard_gamma(alpha + after), LEAST)
        log_whole = np.log(taken + left)
        log_left = np.log(left) - log_whole
        upto = np.concatenate([[0.0], np.cumsum(log_left)])
        log_weights = upto + np.append(np.log(taken) - log_whole, 0.0)
        return Parameters(
            log_weights,
            log_levels,
            rng.gamma(prior.shape + prior.classes - 1, 1 / (prior.rate - log_left.sum())),
            self.records > 0,
        )


@dataclass(frozen=True, eq=False)
class Sampled:
    """What chains gave: ``kept`` parameters, as many as were asked for, and each sweep's label-free quantities.

    ``quantities`` (sweeps, chains, 2) are the occupied classes and alpha, ``log_likelihood`` (sweeps, chains); ``sweep`` (draws,) and ``chain``
    (draws,) say where the kept ones come from, numbered from 1. ``lost`` (sweeps, chains) are the records that fell on what cannot be.
    """

    kept: tuple[Parameters, ...]
    sweep: Codes
    chain: Codes
    quantities: Floats
    log_likelihood: Floats
    burn_in: int
    lost: Floats

    @property
    def trace(self) -> ChainTrace:
        """The ways of the quantities, and of the log likelihood last, less its largest."""
        from .ensemble import chain_trace

        return chain_trace(self.quantities, self.log_likelihood, (OCCUPIED, ALPHA), self.burn_in, LOG_LIKELIHOOD)

    @property
    def chains(self) -> Chains:
        """Every sweep of the quantities. Parameters of single classes are not among them: a class is another one in the next sweep."""
        values = np.ascontiguousarray(self.quantities.transpose(1, 0, 2))
        density = np.ascontiguousarray(self.log_likelihood.T)
        return Chains((OCCUPIED, ALPHA), values, density, LOG_LIKELIHOOD, self.burn_in, "Gibbs")


def sample(
    rows: DistinctRows,
    prior: Prior,
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
    truncation: Truncation | None = None,
    max_sweeps: int = 0,
    converged: Callable[[Sampled], bool] = lambda _: True,
) -> Sampled:
    """``draws`` draws of the parameters, spread evenly over every ``thin``-th sweep after ``burn_in`` of all chains.

    The first chain starts with records spread over half of the classes at random, each further one over half as many, so that what
    they agree on is not where they began; where ``split_every`` so many sweeps a class is proposed to be split or two to be merged, over one, two, four, ... ``draws`` are at most the sweeps that there are. With a ``truncation`` the rows are those of all other records.

    A chain may be trapped for long in a grouping of little probability that only its start leads to. So each is begun from ``starts``,
    and the one with the largest mean of log p(z, x | alpha), over the second half of ``PILOT`` of the burn-in, continues. A chain knows
    nothing of the others: their agreement says as much as without.

    Chains that have not ``converged`` continue: each doubles its sweeps, up to ``max_sweeps``, and the draws are of the second half.
    """
    pilot = max(1, int(PILOT * burn_in))

    def begun(number: int, own: np.random.Generator) -> _Chain:
        classes = _first_classes(prior, number, split_every)
        if starts == 1:
            return _Chain(_started(rows, prior, classes, own), own)
        tried = [_Chain(_started(rows, prior, classes, one), one, scores=[]) for one in own.spawn(starts)]
        for place, one in enumerate(tried, start=1):
            said = Progress(
                (number * starts + place) * pilot, chains * starts * pilot, "Gibbs sweeps from several starts"
            )
            one.run_to(pilot, (), rows, prior, split_every, truncation, lambda _: None)
            report(said)
        return max(tried, key=_Chain.score)

    every = [begun(number, own) for number, own in enumerate(rng.spawn(chains))]

    def run_to(length: int) -> Sampled:
        before = every[0].length
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
        return Sampled(kept, sweep + 1, chain + 1, quantities, likelihood, first, lost)

    return run_until_converged(run_to, converged, doubled(sweeps, max_sweeps))[0]


def _first_classes(prior: Prior, number: int, split_every: int) -> int:
    """How many classes the records of chain ``number`` are spread over at first."""
    first = 1 << number if split_every else prior.classes >> (number + 1)
    return max(1, min(first, prior.classes))


@dataclass(eq=False)
class _Chain:
    """A chain as far as it has run: its state, its random numbers, and of each sweep the label-free quantities, (sweeps, 2) and (sweeps,).

    ``kept`` are the parameters of the sweeps that were wanted when it ran last.
    """

    now: Parameters
    rng: np.random.Generator
    quantities: Floats = field(default_factory=lambda: np.empty((0, 2)))
    log_likelihood: Floats = field(default_factory=lambda: np.empty(0))
    lost: Floats = field(default_factory=lambda: np.empty(0))
    kept: dict[int, Parameters] = field(default_factory=dict)
    scores: list[float] | None = None
    """Log p(z, x | alpha) of each sweep of a start that is one of several."""

    @property
    def length(self) -> int:
        return len(self.log_likelihood)

    def score(self) -> float:
        """The mean of the second half of the scores, which are then not kept any more."""
        scores, self.scores = self.scores or [-np.inf], None
        return float(np.mean(scores[len(scores) // 2 :]))

    def run_to(
        self,
        length: int,
        wanted: Collection[int],
        rows: DistinctRows,
        prior: Prior,
        split_every: int,
        truncation: Truncation | None,
        tell: Callable[[int], None],
    ) -> None:
        """Continue to ``length`` sweeps, and keep the parameters of those that are ``wanted``, from 0; ``tell`` gets how many were added."""
        before, now, own = self.length, self.now, self.rng
        more = length - before
        quantities, likelihood, lost = np.empty((more, 2)), np.empty(more), np.zeros(more)
        self.kept = {}
        for step in range(before, length):
            at, alpha = step - before, now.alpha
            allocated, likelihood[at] = Allocated.drawn(rows, now, own)
            if truncation is not None:
                records, levels, beside, further = truncation.drawn(now.log_weights, now.log_levels, own)
                allocated = Allocated(allocated.records + records, allocated.levels + levels)
                likelihood[at] += further
                lost[at] = beside.sum()
            else:
                beside = np.zeros(prior.classes)
            quantities[at] = np.count_nonzero(allocated.records > beside), alpha
            if self.scores is not None:
                self.scores.append(allocated.log_joint(rows, prior, alpha))
            if step in wanted:
                self.kept[step] = now
            if split_every and step % split_every == 0:
                allocated = allocated.split_or_merged(rows, prior, alpha, own)
            now = allocated.relabelled(alpha, own).parameters(prior, rows.starts, alpha, own)
            if (step + 1) % BETWEEN_REPORTS == 0 or step + 1 == length:
                tell(at + 1)
        self.now = now
        self.quantities = np.concatenate([self.quantities, quantities])
        self.log_likelihood = np.concatenate([self.log_likelihood, likelihood])
        self.lost = np.concatenate([self.lost, lost])


def _started(rows: DistinctRows, prior: Prior, classes: int, rng: np.random.Generator) -> Parameters:
    """Parameters given records that are spread over so many classes at random."""
    which = np.repeat(np.arange(len(rows.counts)), rows.counts)
    spread = Allocated.counted(rows, which, rng.integers(classes, size=len(which)), None, prior.classes)
    return spread.parameters(prior, rows.starts, 1.0, rng)
