"""Dirichlet process mixture of products of multinomials: truncated stick-breaking, by blocked Gibbs sweeps.

A record is in class z with probability pi_z, and given its class its q variables are independent: x_j = l with probability phi_zjl.

    pi_k = V_k (1 - V_1) ... (1 - V_k-1),   V_k ~ Beta(1, alpha) for k < K,   V_K = 1,   alpha ~ Gamma(shape, rate)
    phi_kj ~ Dirichlet(a, ..., a)

A sweep draws z, then phi, V and alpha, each given all others (Ishwaran & James 2001, §5.2; Dunson & Xing 2009, §3; Si & Reiter 2013, §2.2). Records
that are alike have the same class probabilities: those are computed once for every distinct row, and a row of many records draws how many
of them are in which class by one multinomial. Between z and V neighbouring classes may change their labels, V integrated over
(after Papaspiliopoulos & Roberts 2008, §3.4): without that the order of the sticks hardly moves, and alpha with it.

Chains start with records spread over K/2, K/4, ... classes. Where records leave several ways of being grouped, sweeps rarely lead from one to another:
chains then settle in different numbers of classes, and R-hat says so.

A value that is missing is integrated over: it says nothing of its record's class, and nothing of phi.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ..arrays import Floats
from ..results import ChainTrace
from ..run import Progress

Codes = NDArray[np.int64]

CHUNK = 1024
"""Distinct rows whose class probabilities are held at a time: they stay in the processor's cache."""
FEW = 32
"""Records of a row, up to which each draws its own class; more draw a multinomial."""
COMBINATIONS = 512
"""Of the values of a block of variables, at least: as many logarithms are summed and exponentials taken for each class."""
LEAST = 1e-300
"""Of a probability that was drawn: its logarithm is finite."""
BETWEEN_REPORTS = 20
OCCUPIED, ALPHA, LOG_LIKELIHOOD = "occupied classes", "alpha", "log likelihood"


@dataclass(frozen=True, kw_only=True)
class Prior:
    """K ``classes``, the ``concentration`` a of every level of a variable, and alpha's gamma ``shape`` and ``rate``."""

    classes: int
    concentration: float
    shape: float
    rate: float


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive variables, whose values together have H combinations.

    ``of`` (R,) is the combination of each distinct row, ``shown`` (D, H) is 1 where a combination has a level of the columns ``first`` to
    ``last``, ``records`` (H,) how many have it.
    """

    of: Codes
    first: int
    last: int
    shown: Floats
    records: Floats


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Records of q variables as their R distinct rows: ``counts`` (R,) of records, ``place`` (n,) the row of each.

    ``levels`` (q,) are the numbers of levels; a code outside 0..levels - 1 is a missing value. ``blocks`` hold the rows.
    """

    levels: tuple[int, ...]
    counts: Codes
    place: Codes
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, codes: Sequence[Codes], levels: Sequence[int], records: int) -> DistinctRows:
        """Of the codes (n,) of each variable. Rows stand in the order of their codes, so nothing hangs on that of the records."""
        known = [
            np.where((own >= 0) & (own < size), own, size).astype(np.int64)
            for own, size in zip(codes, levels, strict=True)
        ]
        place = np.zeros(records, dtype=np.int64)
        for own, size in zip(known, levels, strict=True):
            place = np.unique(place * (size + 1) + own, return_inverse=True)[1].ravel()
        counts = np.bincount(place, minlength=1 if not records else 0).astype(np.int64)
        first = np.zeros(len(counts), dtype=np.int64)
        first[place[::-1]] = np.arange(records)[::-1]
        rows = [own[first] for own in known] if records else [own[:0] for own in known]
        return cls(tuple(levels), counts, place, tuple(_blocks(rows, levels, counts)))

    @property
    def starts(self) -> Codes:
        """Where the levels of each variable start among the D of all, (q + 1,)."""
        return np.concatenate([[0], np.cumsum(self.levels)]).astype(np.int64)

    def chances(self, log_weights: Floats, log_levels: Floats) -> Iterator[tuple[slice, Chances, Floats]]:
        """Chunks of rows: which, the probabilities of their classes, and the logarithms (rows,) that these are short of.

        ``log_weights`` (K,) and ``log_levels`` (K, D) are log pi and log phi. Row r has the probability ``total * exp(short)``.
        """
        size, groups = len(log_weights), Groups.of(len(log_weights))
        logs = [(log_levels[:, block.first : block.last] @ block.shown).T for block in self.blocks]
        shifts = [log.max(axis=1) for log in logs]
        tables = [groups.padded(np.exp(log - shift[:, None])) for log, shift in zip(logs, shifts, strict=True)]
        weights = groups.padded(np.exp(log_weights)[None, :])
        if tables:
            tables[0] *= weights
        held, other = np.empty((2, CHUNK, groups.padded_size))
        for start in range(0, len(self.counts), CHUNK):
            rows = slice(start, min(start + CHUNK, len(self.counts)))
            of, count = [block.of[rows] for block in self.blocks], rows.stop - rows.start
            found, short = held[:count], np.zeros(count)
            found[:] = weights
            for number, (table, shift, own) in enumerate(zip(tables, shifts, of, strict=True)):
                np.take(table, own, axis=0, out=other[:count] if number else found, mode="clip")
                if number:
                    found *= other[:count]
                short += shift[own]
            upto = groups.cumulating @ found.T
            if (lost := np.flatnonzero(upto[-1] < LEAST**0.5)).size:  # no class is near the best of every block
                exact = log_weights + sum((log[own[lost]] for log, own in zip(logs, of, strict=True)), np.zeros(size))
                short[lost] = exact.max(axis=1)
                found[lost] = groups.padded(np.exp(exact - short[lost, None]))
                upto[:, lost] = groups.cumulating @ found[lost].T
            yield rows, Chances(found, upto, size), short

    def classes(self, log_weights: Floats, log_levels: Floats, rng: np.random.Generator) -> Codes:
        """A class (n,) of each record given its row."""
        order = np.argsort(self.place, kind="stable")
        u, found, done = rng.random(len(order)), np.empty(len(order), dtype=np.int64), 0
        for rows, chances, _ in self.chances(log_weights, log_levels):
            own = np.repeat(np.arange(rows.stop - rows.start), self.counts[rows])
            found[order[done : done + len(own)]] = chances.picked(own, u[done : done + len(own)])
            done += len(own)
        return found


@dataclass(frozen=True)
class Groups:
    """K classes as ``number`` groups of ``width``, with empty places at the end: a draw finds its group first, then its class in it."""

    number: int
    width: int
    cumulating: Floats
    """(number, number * width): 1 where a class is in the group or one before."""

    @classmethod
    def of(cls, size: int) -> Groups:
        """About as many groups as classes in each."""
        width = math.isqrt(size)
        number = -(-size // width)
        own = np.arange(number * width)[:, None] // width
        return cls(number, width, (own <= np.arange(number)).T.astype(np.float64))

    @property
    def padded_size(self) -> int:
        """The number of places."""
        return self.number * self.width

    def padded(self, chances: Floats) -> Floats:
        """Probabilities (rows, K) with 0 in the places beyond the last class, (rows, number * width)."""
        found = np.zeros((len(chances), self.padded_size))
        found[:, : chances.shape[1]] = chances
        return found


@dataclass(frozen=True, eq=False)
class Chances:
    """Of ``size`` classes for each of some rows: ``each`` (rows, number * width) and cumulated over groups, ``upto`` (number, rows); they need not sum to 1."""

    each: Floats
    upto: Floats
    size: int

    @property
    def totals(self) -> Floats:
        """Their sums, (rows,)."""
        return np.asarray(self.upto[-1])

    def picked(self, own: Codes | None, u: Floats) -> Codes:
        """A class for each uniform number ``u`` (k,), of the rows ``own`` (k,); of each row in turn without."""
        upto = self.upto if own is None else self.upto.take(own, axis=1)
        number = len(upto)
        at = u * upto[-1]
        group = _passed(upto[:-1], at)
        before = upto.take(np.maximum(group - 1, 0) * upto.shape[1] + np.arange(len(at)))
        at -= np.where(group > 0, before, 0.0)
        row = np.arange(len(self.each)) if own is None else own
        inside = np.ascontiguousarray(
            self.each.reshape(len(self.each) * number, -1).take(row * number + group, axis=0).T
        )
        for place in range(1, len(inside) - 1):
            inside[place] += inside[place - 1]
        return np.asarray(np.minimum(group * len(inside) + _passed(inside[:-1], at), self.size - 1))

    def multinomial(self, rows: Codes, counts: Codes, rng: np.random.Generator) -> Codes:
        """How many of ``counts`` (k,) records of these rows are in which class, (k, K)."""
        own = self.each[rows, : self.size]
        return np.asarray(rng.multinomial(counts, own / own.sum(axis=1, keepdims=True)))


def _blocks(rows: Sequence[Codes], levels: Sequence[int], counts: Codes) -> Iterator[Block]:
    """The variables one after another, as many in each block as have few combinations."""
    most = max(COMBINATIONS, len(counts) // 32)
    starts = np.concatenate([[0], np.cumsum(levels)]).astype(np.int64)
    begin, of = 0, np.zeros(len(counts), dtype=np.int64)
    for j, size in enumerate(levels):
        names, more = np.unique(of * (size + 1) + rows[j], return_inverse=True)
        if j > begin and len(names) > most:
            yield _block(rows, levels, counts, starts, of, begin, j)
            begin, more = j, np.unique(rows[j], return_inverse=True)[1]
        of = more.ravel()
    if levels:
        yield _block(rows, levels, counts, starts, of, begin, len(levels))


def _block(
    rows: Sequence[Codes], levels: Sequence[int], counts: Codes, starts: Codes, of: Codes, begin: int, end: int
) -> Block:
    records = np.bincount(of, counts).astype(np.float64)
    shown = np.zeros((int(starts[end] - starts[begin]), len(records)))
    for j in range(begin, end):
        here = rows[j] < levels[j]
        shown[starts[j] - starts[begin] + rows[j][here], of[here]] = 1.0
    return Block(of, int(starts[begin]), int(starts[end]), shown, records)


def _passed(ends: Floats, at: Floats) -> Codes:
    """How many of the ascending ``ends`` (g, k) lie at or before each of ``at`` (k,)."""
    found = np.zeros(len(at), dtype=np.int64)
    for end in ends:
        found += end <= at
    return found


@dataclass(frozen=True, eq=False)
class Parameters:
    """``log_weights`` (K,) log pi, ``log_levels`` (K, D) log phi of all variables side by side, and alpha."""

    log_weights: Floats
    log_levels: Floats
    alpha: float


@dataclass(frozen=True, eq=False)
class Allocated:
    """What classes the records are in: how many in each, (K,), and how many of them have each level, (K, D)."""

    records: Floats
    levels: Floats

    @classmethod
    def drawn(cls, rows: DistinctRows, now: Parameters, rng: np.random.Generator) -> tuple[Allocated, float]:
        """By the probabilities of each row; and the log likelihood of all records, their classes summed over."""
        few = rows.counts <= FEW
        alone, each = bool((rows.counts == 1).all()), bool(few.all())
        u, done = rng.random(int(rows.counts[few].sum())), 0
        likelihood, which, classes, weights = 0.0, [], [], []
        for chunk, chances, short in rows.chances(now.log_weights, now.log_levels):
            counts, small = rows.counts[chunk], few[chunk]
            likelihood += float(counts @ (np.log(chances.totals) + short))
            own = np.arange(len(counts)) if alone else np.repeat(np.flatnonzero(small), counts[small])
            which.append(own + chunk.start)
            classes.append(chances.picked(None if alone else own, u[done : done + len(own)]))
            weights.append(np.ones(0 if each else len(own)))
            done += len(own)
            if not each and len(many := np.flatnonzero(~small)):
                drawn = chances.multinomial(many, counts[many], rng)
                row, in_class = np.nonzero(drawn)
                which.append(many[row] + chunk.start)
                classes.append(in_class)
                weights.append(drawn[row, in_class].astype(np.float64))
        of, into = np.concatenate(which), np.concatenate(classes)
        found = cls.counted(rows, of, into, None if each else np.concatenate(weights), len(now.log_weights))
        return found, likelihood

    @classmethod
    def counted(cls, rows: DistinctRows, which: Codes, classes: Codes, weights: Floats | None, size: int) -> Allocated:
        """Of ``weights`` (k,) records of the rows ``which`` (k,), one of each without, in these ``classes`` (k,) of ``size``."""
        levels = np.empty((size, int(rows.starts[-1])))
        for block in rows.blocks:
            held = len(block.records)
            table = np.bincount(classes * held + block.of[which], weights, size * held).reshape(size, held)
            levels[:, block.first : block.last] = table @ block.shown.T
        return cls(np.bincount(classes, weights, size).astype(np.float64), levels)

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
            log_weights, log_levels, rng.gamma(prior.shape + prior.classes - 1, 1 / (prior.rate - log_left.sum()))
        )


@dataclass(frozen=True, eq=False)
class Sampled:
    """What chains gave: ``kept`` parameters, as many as were asked for, and each sweep's label-free quantities.

    ``quantities`` (sweeps, chains, 2) are the occupied classes and alpha, ``log_likelihood`` (sweeps, chains); ``sweep`` (draws,) and ``chain``
    (draws,) say where the kept ones come from, numbered from 1.
    """

    kept: tuple[Parameters, ...]
    sweep: Codes
    chain: Codes
    quantities: Floats
    log_likelihood: Floats
    burn_in: int

    @property
    def trace(self) -> ChainTrace:
        """The ways of the quantities, and of the log likelihood last, less its largest."""
        from .ensemble import chain_trace

        return chain_trace(self.quantities, self.log_likelihood, (OCCUPIED, ALPHA), self.burn_in, LOG_LIKELIHOOD)


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
) -> Sampled:
    """``draws`` draws of the parameters, spread evenly over every ``thin``-th sweep after ``burn_in`` of all chains.

    The first chain starts with records spread over half of the classes at random, each further one over half as many, so that what
    they agree on is not where they began. ``draws`` are at most the sweeps that there are.
    """
    usable = np.arange(burn_in + thin - 1, sweeps, thin)
    places = np.floor((np.arange(draws) + 0.5) * (chains * len(usable) / draws)).astype(np.int64)
    chain, at = np.divmod(places, len(usable))
    sweep = usable[at]
    quantities, likelihood = np.empty((sweeps, chains, 2)), np.empty((sweeps, chains))
    found: dict[tuple[int, int], Parameters] = {}
    for number, own in enumerate(rng.spawn(chains)):
        wanted = {int(s) for s, c in zip(sweep, chain, strict=True) if c == number}
        now = _started(rows, prior, max(1, prior.classes >> (number + 1)), own)
        for step in range(sweeps):
            alpha = now.alpha
            allocated, likelihood[step, number] = Allocated.drawn(rows, now, own)
            quantities[step, number] = np.count_nonzero(allocated.records), alpha
            if step in wanted:
                found[number, step] = now
            now = allocated.relabelled(alpha, own).parameters(prior, rows.starts, alpha, own)
            if (step + 1) % BETWEEN_REPORTS == 0 or step + 1 == sweeps:
                report(Progress(number * sweeps + step + 1, chains * sweeps, "Gibbs sweeps"))
    kept = tuple(found[int(c), int(s)] for c, s in zip(chain, sweep, strict=True))
    return Sampled(kept, sweep + 1, chain + 1, quantities, likelihood, burn_in)


def _started(rows: DistinctRows, prior: Prior, classes: int, rng: np.random.Generator) -> Parameters:
    """Parameters given records that are spread over so many classes at random."""
    which = np.repeat(np.arange(len(rows.counts)), rows.counts)
    spread = Allocated.counted(rows, which, rng.integers(classes, size=len(which)), None, prior.classes)
    return spread.parameters(prior, rows.starts, 1.0, rng)


def values_given(classes: Codes, log_levels: Floats, rng: np.random.Generator) -> Codes:
    """A level (n,) of one variable for records of these classes; ``log_levels`` (K, d) are its log phi."""
    upto = np.cumsum(np.exp(log_levels), axis=1)
    size = upto.shape[1]
    ends = (np.arange(len(upto))[:, None] + upto / upto[:, -1:]).ravel()
    found = np.searchsorted(ends, classes + rng.random(len(classes)), side="right") - classes * size
    return np.asarray(np.clip(found, 0, size - 1), dtype=np.int64)
