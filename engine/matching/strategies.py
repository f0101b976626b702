"""Strategies of an intruder who chooses which known variables to match on.

A replaced value can lead away from the own record, so an intruder who uses everything may find fewer people than one
who ignores some variables. One strategy is used for all targets: the intruder cannot know for whom it works.

Variables whose released value agrees for every target with a released record only narrow the candidates and never lose
the right one. All strategies use them: unchanged variables, and those recoded by a public rule. Of k others there are
2^k strategies. Up to ``MAX_EXHAUSTIVE`` all are tried, beyond it those of ``search_subsets``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Booleans, Floats, Integers
from .matching import (
    CachedMatcher,
    ExactKey,
    MatchResults,
    RecordMatcher,
    WindowKey,
    count_in_boxes,
    expected_match_risk,
)
from .window_pairs import PairsInWindows

MAX_EXHAUSTIVE = 12
"""Number of variables up to which every subset is tried."""
VALUE_TOLERANCE = 1e-12
"""Relative difference that summing in another order can cause."""

Subset = frozenset[str]
MatchKey = ExactKey | WindowKey
MAX_PAIRS_COMPARED = 1 << 22
"""Number of pairs within groups up to which pairs are compared."""
IGNORED = "; ignores "
"""What stands before the ignored variables in a description."""
BestOfBoth = tuple[tuple[float, Subset], tuple[float, Subset]]


@dataclass(frozen=True, slots=True)
class IntruderStrategy:
    """Variables that an intruder uses and ignores, in the order of the known ones.

    used: variables that are used
    ignored: variables that are ignored
    is_searched: whether there were too many subsets to try all
    max_exhaustive: number of variables up to which all subsets are tried
    """

    used: tuple[str, ...]
    ignored: tuple[str, ...]
    is_searched: bool = False
    max_exhaustive: int = MAX_EXHAUSTIVE

    @property
    def description(self) -> str:
        """Return the strategy for a row's reason: ``the best intruder compares sex, age; ignores income``."""
        what = ", ".join(self.used) or "no variable"
        without = f"{IGNORED}{', '.join(self.ignored)}" if self.ignored else ""
        how = f" (of more than {self.max_exhaustive} variables not all subsets are tried)" if self.is_searched else ""
        return f"the best intruder compares {what}{without}{how}"


def ignored_in_description(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the known variables that an ``IntruderStrategy.description`` at the start of a text says are ignored.

    Names are looked for as wholes: a name may itself have a comma, a semicolon or brackets.
    """
    _, found, rest = text.partition(IGNORED)
    ignored = set[str]()
    while found:
        ends = (name for name in known if rest.startswith(name) and re.match(r"$|, |; | \(", rest[len(name) :]))
        # The longest name: one may begin with another one.
        if not (name := max(ends, key=len, default="")):
            break
        ignored.add(name)
        _, found, rest = rest[len(name) :].partition(", ") if rest[len(name) :].startswith(", ") else ("", "", "")
    return tuple(name for name in known if name in ignored)


@dataclass(frozen=True, slots=True)
class BestStrategy:
    """Largest ``value`` over strategies, with its ``strategy`` and ``result``."""

    value: float
    strategy: IntruderStrategy
    result: MatchResults


def make_strategy(
    known: Sequence[str], used: Iterable[str], *, searched: bool = False, most: int = MAX_EXHAUSTIVE
) -> IntruderStrategy:
    """Return the strategy that uses some of the known variables and ignores the others."""
    chosen = frozenset(used)
    return IntruderStrategy(
        tuple(name for name in known if name in chosen),
        tuple(name for name in known if name not in chosen),
        searched,
        most,
    )


def all_subsets(names: Sequence[str]) -> Iterator[Subset]:
    """Yield every subset of the variables, larger ones first."""
    # Of equally good subsets the first, with most variables, is kept.
    for size in range(len(names), -1, -1):
        for chosen in combinations(names, size):
            yield frozenset(chosen)


def search_subsets(names: Sequence[str], value_of: Callable[[Subset], float]) -> dict[Subset, float]:
    """Return the values of a selection of subsets, for too many variables to try all.

    These are all variables, none, single ones, pairs, all but one, and then, from the best of these on, the neighbours
    with one variable more or less until nothing improves.
    """
    first: list[Iterable[str]] = [names, (), *([name] for name in names), *combinations(names, 2)]
    values: dict[Subset, float] = {}
    for chosen in [*map(frozenset, first), *(frozenset(names) - {name} for name in names)]:
        values.setdefault(chosen, value_of(chosen))
    best = max(values, key=lambda one: values[one])
    while True:
        near = [best ^ {name} for name in names]
        for chosen in near:
            if chosen not in values:
                values[chosen] = value_of(chosen)
        found = max(near, key=lambda one: values[one])
        if values[found] <= values[best] * (1 + VALUE_TOLERANCE):
            return values
        best = found


def find_best_subsets(
    names: Sequence[str], result_of: Callable[[Subset], Mapping[str, float]], most: int = MAX_EXHAUSTIVE
) -> dict[str, tuple[float, IntruderStrategy]]:
    """Return for each output the largest value over subsets of the variables, and the strategy that attains it.

    ``result_of`` returns the outputs of one subset by name and is called once per subset. Up to ``most`` variables all
    subsets are tried.
    """
    searched = len(names) > most
    found = (
        _results_of_search(names, result_of)
        if searched
        else {chosen: result_of(chosen) for chosen in all_subsets(names)}
    )
    return {
        output: (value, make_strategy(names, chosen, searched=searched, most=most))
        for output, (value, chosen) in _best_by_output(found).items()
    }


def _results_of_search(
    names: Sequence[str], result_of: Callable[[Subset], Mapping[str, float]]
) -> dict[Subset, Mapping[str, float]]:
    """Return the outputs by name of the subsets that ``search_subsets`` tries for each output."""
    found: dict[Subset, Mapping[str, float]] = {}

    def cached_results(chosen: Subset) -> Mapping[str, float]:
        """Return the outputs of a subset, computed once."""
        if chosen not in found:
            found[chosen] = result_of(chosen)
        return found[chosen]

    for output in list(cached_results(frozenset(names))):
        # Each output has a best strategy of its own, so each is searched from where it is largest.
        search_subsets(names, lambda chosen, output=output: cached_results(chosen).get(output, -np.inf))  # type: ignore[misc]
    return found


def _best_by_output(found: Mapping[Subset, Mapping[str, float]]) -> dict[str, tuple[float, Subset]]:
    """Return the largest value of each output, and the first of the subsets that have it."""
    best: dict[str, tuple[float, Subset]] = {}
    for chosen, values in found.items():
        for output, value in values.items():
            if output not in best or _is_better(value, best[output][0]):
                best[output] = value, chosen
    return best


def _is_better(value: float, best: float) -> bool:
    """Return whether a value is larger than the best one by more than rounding."""
    return value > best + VALUE_TOLERANCE * abs(best)


@dataclass(frozen=True, eq=False)
class MatchTargets:
    """Records that an intruder looks for.

    rows: rows of the q targets among the known records, (q,)
    own_released: released record of each target, -1 for none, (q,)
    """

    rows: Integers
    own_released: Integers


def find_best_matches(
    keys: Mapping[str, MatchKey], shape: tuple[int, int], targets: MatchTargets
) -> tuple[BestStrategy, BestStrategy]:
    """Return the strategies with the largest expected match risk and with the largest true match rate.

    Args:
        keys: known variables by name.
        shape: numbers of known records, n, and of released records, n_r.
        targets: q of the n records.
    """
    agreement = {name: _own_record_agrees(key, targets) for name, key in keys.items()}
    present = targets.own_released >= 0
    # Such a variable removes wrong candidates only.
    always = [name for name in keys if agreement[name][present].all()]
    return best_strategies(_SubsetCounter(keys, shape, targets, agreement, always), list(keys), always)


class SubsetCounter(Protocol):
    """Counter of the candidates of targets for subsets of variables."""

    @property
    def number(self) -> int:
        """Return the number of targets."""

    def own_bits(self, names: Sequence[str], chosen: Subset | None = None, /) -> tuple[Integers, Integers | None]:
        """Return the variables on which the own released record of each target can be a hit, as bits in the order of the
        names; -1 for a target without one, (q,).

        Where targets are counted, how many there are of each kind comes with it, (k,) each; kinds are those of
        ``match_targets(chosen)``, for None of any.
        """

    def match_targets(self, chosen: Subset, /) -> MatchResults:
        """Return candidates and hits of the targets; fewer of both with more variables."""


class TargetCounter:
    """Counter of targets that are in memory.

    targets: the targets
    agreement: whether each target's own released record can be a hit of a subset with the variable, (q,) each
    """

    targets: MatchTargets
    agreement: Mapping[str, Booleans]

    @property
    def number(self) -> int:
        """Return the number of targets q."""
        return len(self.targets.rows)

    def own_bits(self, names: Sequence[str], chosen: Subset | None = None) -> tuple[Integers, None]:
        """Return the variables on which own records agree, as bits; -1 for a target without one, (q,)."""
        bits = np.where(self.targets.own_released >= 0, 0, -1)
        for bit, name in enumerate(names):
            bits[bits >= 0] |= self.agreement[name][bits >= 0].astype(np.int64) << bit
        return bits, None


def best_strategies(
    counter: SubsetCounter, known: Sequence[str], always: Sequence[str]
) -> tuple[BestStrategy, BestStrategy]:
    """Return the strategies with the largest expected match risk and with the largest true match rate.

    All use the variables in ``always`` of the ``known`` ones, which the counter adds to each subset.
    """
    chosen = [name for name in known if name not in always]
    searched = len(chosen) > MAX_EXHAUSTIVE
    search = _search_some_subsets if searched else _search_all_subsets
    found = search(counter, chosen)
    return tuple(  # type: ignore[return-value]
        BestStrategy(value, make_strategy(known, [*always, *used], searched=searched), counter.match_targets(used))
        for value, used in found
    )


def _own_record_agrees(key: MatchKey, targets: MatchTargets) -> Booleans:
    """Return whether each target's own released record agrees on one variable, (q,)."""
    own = np.full(key.shape[0], -1)
    own[targets.rows] = targets.own_released
    exact, within = split_by_kind([key])
    return RecordMatcher.from_keys(exact, key.shape).own_is_match(within, own)[targets.rows]


class _SubsetCounter(TargetCounter):
    """Counter of the targets' candidates for subsets of variables, in addition to those always used."""

    def __init__(
        self,
        keys: Mapping[str, MatchKey],
        shape: tuple[int, int],
        targets: MatchTargets,
        agreement: Mapping[str, Booleans],
        always: Sequence[str],
    ) -> None:
        """Group the records by the exact keys that are always used."""
        self.keys, self.targets, self.agreement = keys, targets, agreement
        exact, self.windows = split_by_kind([keys[name] for name in always])
        self._held: dict[Subset, CachedMatcher] = {}
        self._base = RecordMatcher.from_keys(exact, shape)

    def match_targets(self, chosen: Subset) -> MatchResults:
        """Return candidates and hits of the targets with these variables too, (q,) each."""
        exact = frozenset(name for name in chosen if isinstance(self.keys[name], ExactKey))
        if exact not in self._held:
            keys, _ = split_by_kind([self.keys[name] for name in sorted(exact)])
            # Only the last few are asked for again: a group takes 16 bytes a record.
            if len(self._held) >= 64:
                self._held.pop(next(iter(self._held)))
            self._held[exact] = CachedMatcher(self._base.split_groups(*keys), self.windows)
        _, windows = split_by_kind([self.keys[name] for name in sorted(chosen - exact)])
        hit = self.targets.own_released >= 0
        for name in chosen:
            hit = hit & self.agreement[name]
        return MatchResults(count_candidates(self._held[exact], windows, self.targets.rows), hit)


def count_candidates(matcher: CachedMatcher, windows: Sequence[WindowKey], rows: Integers) -> Integers:
    """Count the released records that match each of some records, (q,), by a cached matcher and more windows."""
    every = [*matcher.windows, *windows]
    if len(every) > 2:
        # Three windows or more cost a logarithm each in the range tree; in small groups comparing pairs is faster.
        group, released_group = matcher.matcher.group[rows], matcher.matcher.released_group
        if count_in_boxes(group, released_group, []).sum() <= MAX_PAIRS_COMPARED:
            lower, upper = (np.column_stack([getattr(one, end)[rows] for one in every]) for end in ("lower", "upper"))
            values = np.column_stack([one.released for one in every])
            return PairsInWindows.from_windows(group, lower, upper, released_group, values).count_by_query()
    return np.asarray(matcher.candidate_counts(windows)[rows], dtype=np.int64)


def split_by_kind(keys: Iterable[MatchKey]) -> tuple[list[ExactKey], list[WindowKey]]:
    """Return the exact keys and the windows among the keys."""
    exact: list[ExactKey] = []
    within: list[WindowKey] = []
    for key in keys:
        if isinstance(key, ExactKey):
            exact.append(key)
        else:
            within.append(key)
    return exact, within


def _finds_and_true_rate(matches: MatchResults) -> tuple[float, float]:
    """Return the expected match risk and the true match rate of q targets; 0 without targets."""
    certain = matches.count_targets((matches.candidates == 1) & matches.hit)
    return expected_match_risk(matches), certain / max(matches.count_targets(), 1)


def _search_all_subsets(counter: SubsetCounter, names: Sequence[str]) -> BestOfBoth:
    """Return the best of all 2^k subsets by expected match risk and by true match rate, each with its value.

    Branch and bound: the subset with the largest bound is counted next, until no bound exceeds the best value.
    """
    k, q = len(names), max(counter.number, 1)
    own, records = counter.own_bits(names)
    # Neither value can exceed the number of targets whose own record agrees on the subset.
    hits = _sums_by_subset(own, np.ones(len(own)), records, k)
    bounds = np.stack([hits, hits / q])
    every = np.arange(1 << k)
    best = [(-1.0, 0), (-1.0, 0)]
    done = np.zeros(1 << k, dtype=np.bool_)
    subset_sizes = np.bitwise_count(every.astype(np.uint64))
    while True:
        # Of equal bounds the largest set is counted first: of equal values it is the one that is named.
        open_ = ~done & (
            (bounds[0] > best[0][0] * (1 + VALUE_TOLERANCE)) | (bounds[1] > best[1][0] * (1 + VALUE_TOLERANCE))
        )
        if not open_.any():
            break
        at = _next_subset(open_, bounds, best, subset_sizes)
        done[at] = True
        chosen = _subset_of_mask(at, names)
        matches = counter.match_targets(chosen)
        for place, value in enumerate(_finds_and_true_rate(matches)):
            if _is_better(value, best[place][0]):
                best[place] = value, at
        lower = (every & at) == every  # the subsets of this one
        if matches.records is not None:
            own, records = counter.own_bits(names, chosen)
        # Candidates only grow from a set S' to its subset S, so the sum over the hits of S of 1 / c_i(S') bounds the
        # value of S.
        least = 1.0 / np.maximum(matches.candidates, 1)
        for place, weights in enumerate((least, (matches.candidates <= 1) / q)):
            sums = _sums_by_subset(own, weights, records, k)
            bounds[place][lower] = np.minimum(bounds[place][lower], sums[lower] * (1 + VALUE_TOLERANCE))
    return tuple((value, _subset_of_mask(at, names)) for value, at in best)  # type: ignore[return-value]


def _sums_by_subset(own: Integers, weights: Floats, records: Integers | None, k: int) -> Floats:
    """Return for each of 2^k subsets the sum of weights (q,) over the targets whose own record agrees on all of it.

    own: variables on which each target's own record agrees, as bits, -1 for none, (q,)
    records: targets that each stands for, None for one
    """
    there = own >= 0
    each = weights[there] if records is None else weights[there] * records[there]
    sums = np.asarray(np.bincount(own[there], weights=each, minlength=1 << k), dtype=np.float64)
    return _superset_sums(sums, k)


def _next_subset(open_: Booleans, bounds: Floats, best: Sequence[tuple[float, int]], sizes: NDArray[np.uint8]) -> int:
    """Return the subset to count next: that with the largest bound relative to the best, among ties the largest."""
    scale = [max(value, 1e-300) for value, _ in best]
    promise = np.where(open_, np.maximum(bounds[0] / scale[0], bounds[1] / scale[1]), -1.0)
    if best[0][0] < 0:
        return int(np.argmax(sizes))  # all variables first: its candidates bound those of every other subset
    return int(np.lexsort((-np.arange(len(sizes)), sizes, promise))[-1])


def _subset_of_mask(mask: int, names: Sequence[str]) -> Subset:
    """Return the variables whose bits are set."""
    return frozenset(name for bit, name in enumerate(names) if mask >> bit & 1)


def _superset_sums(values: Floats, k: int) -> Floats:
    """Return for each of 2^k subsets the sum of the values of all its supersets."""
    sums = values.copy()
    for bit in range(k):
        pairs = sums.reshape(-1, 2, 1 << bit)
        pairs[:, 0] += pairs[:, 1]
    return sums


def _search_some_subsets(counter: SubsetCounter, names: Sequence[str]) -> BestOfBoth:
    """Return the best of the subsets that ``search_subsets`` tries, by both measures."""

    def values_of(chosen: Subset) -> dict[str, float]:
        """Return both measures of a subset."""
        return dict(zip(("found", "certain"), _finds_and_true_rate(counter.match_targets(chosen)), strict=True))

    values = _results_of_search(names, values_of)
    # Of equal values the largest set is the one that is named.
    best = _best_by_output({one: values[one] for one in sorted(values, key=lambda one: (-len(one), sorted(one)))})
    return best["found"], best["certain"]
