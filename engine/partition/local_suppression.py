"""Local suppression: as few values as possible are deleted, so that k records share every combination.

A missing value means one of two things:

    value     it is a value of its own: records are alike that show the same values and lack the same ones. Everybody
    then is in a class of k records, also for an intruder who knows all quasi-identifiers: whoever shows the true values
    or lacks them is a candidate.
    anything  it matches any value (sdcMicro; Templ, Kowarik & Meindl 2015, §2.3): every record agrees with k records,
    itself included, wherever both have a value.

Records with the same values are one pattern. Integer programs decide how many records of each pattern lose which
values: one for the whole table where it is small, else one for a neighbourhood of patterns after another, until that
saves hardly anything or the budget is spent. Where patterns have too many sets of values for programs, one pattern after
another loses as little as it can, again and again from other starts. Each search ends after a number of steps that is
the same on every computer. ``order`` decides which of several equal records lose values. The order in which records
come has no effect.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..data.rows import distinct_rows, number_groups
from ..wording import count_noun
from .partial_matches import MISSING, agreement_matrix, match_counts

MissingMeaning = Literal["value", "anything"]

WHOLE = {"value": 1_200, "anything": 2_500}
"""The most pairs of pattern and deleted values for which one program covers the whole table."""
NEIGHBOURHOOD = 2_000
"""The approximate number of pairs in the program of a neighbourhood."""
LEAST_PATTERNS = 8
"""The fewest patterns of a neighbourhood."""
# Limits in programs, nodes of branch and bound and comparisons, not in seconds, so that a result does not depend on the
# machine.
MOST_PROGRAMS, MOST_NODES, MOST_NODES_EACH = 60, 1_000, 300
SEARCH_SECONDS = 20.0
"""The most seconds of a search, on a slow core: of each program, or of the search pattern by pattern."""
ENTRIES_A_SECOND = 100_000
"""Entries of a program, times nodes of its search, in a second."""
COMPARISONS_A_SECOND = 20_000_000
"""Comparisons of two patterns for a set of values in a second."""
FRUITLESS_STARTS = 4
"""Starts for each pattern after which the search pattern by pattern ends if none saves anything."""
MOST_SETS = 4_096
"""Sets of deleted values that are tried, the cheapest first, and the one of all values that may be deleted."""
NEAREST = 64
"""The records among which the cheapest values are sought that a pattern with too many sets would lose alone."""
DONORS = 2
"""Patterns without need that may fill up a class, of those that could the most frequent ones."""
WORTHWHILE = 0.005
"""The neighbourhoods are gone through again while that saves this share or more."""
# Weights are sums of floats: differences below this are rounding.
TOLERANCE = 1e-9


class UnreachableClassSize(ValueError):
    """Error: k records cannot be made alike, since values that may not be deleted distinguish ``records`` records."""

    def __init__(self, records: int) -> None:
        super().__init__(count_noun(records, "record"))
        self.records = records


@dataclass(frozen=True, eq=False)
class SuppressedCells:
    """Result of a local suppression.

    cells: which values are deleted, (n, d)
    cost: their weight
    is_proven: whether no other choice is proven to have less weight
    n_exposed: records whose true values fewer than k released rows show or lack
    """

    cells: Booleans
    cost: float
    is_proven: bool
    n_exposed: int


def suppress_locally(
    codes: Integers,
    k: int,
    costs: Floats,
    order: Integers,
    *,
    missing: MissingMeaning = "value",
    search_seconds: float = SEARCH_SECONDS,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> SuppressedCells:
    """Find the fewest cells to delete, by weight.

    ``codes`` (n, d) are the values of n >= k records, ``MISSING`` for none; ``costs`` (d,) above 0 are the weights of a
    value of each column, infinite for one that is never deleted. ``order`` (n,), a permutation, ranks records: of equal
    ones the first lose their values. The search of each block of patterns ends after the steps that a slow core takes in
    about ``search_seconds``, with the best choice found so far. ``report`` is called with how much of the search is
    done, of how much. Raises UnreachableClassSize.
    """
    distinct = distinct_rows(codes.T, len(codes))
    table = _PatternTable(codes[distinct.first], distinct.counts, k, costs, missing)
    table.require_reachable()
    plan, proven = _find_plan(table, search_seconds, report)
    cells = _cells_of_plan(table, plan, distinct.combination_of, order)
    return SuppressedCells(cells, table.plan_cost(plan), proven, _count_exposed_records(codes, cells, k))


def _count_exposed_records(codes: Integers, cells: Booleans, k: int) -> int:
    """Count the records whose true values match fewer than k released rows, where a deleted value matches any."""
    # An intruder who knows a deleted value may exclude the records that show another one.
    shown = np.where(cells, MISSING, codes)
    true, released = (distinct_rows(table.T, len(table)) for table in (codes, shown))
    counts = match_counts(codes[true.first], shown[released.first], released.counts)
    return int(true.counts[counts < k].sum())


def _cells_of_plan(table: _PatternTable, plan: _SuppressionPlan, which: Integers, order: Integers) -> Booleans:
    """Return the cells of single records that a plan deletes, (n, d).

    Of each pattern the first records by ``order`` lose most values.
    """
    cells = np.zeros((len(which), table.patterns.shape[1]), dtype=np.bool_)
    members = np.lexsort((order, which))
    first = np.cumsum(table.counts) - table.counts
    used = np.zeros(len(table.counts), dtype=np.int64)
    # Each set takes the next records of its pattern; the order of the sets is fixed, so that the result is.
    for place in np.lexsort((-plan.deleted, plan.pattern)).tolist():
        pattern, deleted, number = plan.pattern[place], plan.deleted[place], plan.number[place]
        start = first[pattern] + used[pattern]
        cells[members[start : start + number]] = table.column_flags(deleted)
        used[pattern] += number
    return np.asarray(cells & (table.patterns[which] != MISSING))


@dataclass(frozen=True, eq=False)
class _SuppressionPlan:
    """Plan of how many records of each pattern lose which values.

    pattern: number of the pattern, (r,)
    deleted: values that are deleted, a bit for each column, (r,)
    number: records of the pattern that lose them, (r,)
    """

    pattern: Integers
    deleted: Integers
    number: Integers

    @classmethod
    def from_rows(cls, rows: Sequence[tuple[int, int, int]]) -> _SuppressionPlan:
        found = np.array([row for row in rows if row[2]], dtype=np.int64).reshape(-1, 3)
        return cls(found[:, 0], found[:, 1], found[:, 2])

    def select_rows(self, rows: Booleans) -> _SuppressionPlan:
        return _SuppressionPlan(self.pattern[rows], self.deleted[rows], self.number[rows])

    def concatenate_plan(self, other: _SuppressionPlan) -> _SuppressionPlan:
        return _SuppressionPlan(*(np.concatenate(pair) for pair in zip(self._columns, other._columns, strict=True)))

    @property
    def _columns(self) -> tuple[Integers, Integers, Integers]:
        return self.pattern, self.deleted, self.number

    @cached_property
    def deletions_by_pattern(self) -> dict[int, dict[int, int]]:
        """Count the records that lose each set of values, by pattern."""
        found: dict[int, dict[int, int]] = defaultdict(dict)
        for pattern, deleted, number in zip(*(part.tolist() for part in self._columns), strict=True):
            found[pattern][deleted] = found[pattern].get(deleted, 0) + number
        return found


@dataclass(frozen=True, eq=False)
class _PatternTable:
    """The different patterns of a table, and the requirements on it.

    patterns: different rows, ascending, (g, d)
    counts: records of each pattern, (g,)
    k: fewest records that share a combination
    costs: weight of a deleted value of each column, infinite for one that is never deleted, (d,)
    missing: meaning of a missing value
    """

    patterns: Integers
    counts: Integers
    k: int
    costs: Floats
    missing: MissingMeaning

    def column_flags(self, deleted: Integers) -> Booleans:
        """Return sets of columns as flags, (..., d)."""
        return np.asarray((np.asarray(deleted)[..., None] >> np.arange(len(self.costs))) & 1, dtype=np.bool_)

    def remaining_values(self, pattern: Integers, deleted: Integers) -> Integers:
        """Return the patterns (r,) without the deleted values: (r, d)."""
        return np.where(self.column_flags(deleted), MISSING, self.patterns[pattern])

    def deletion_weights(self, pattern: Integers, deleted: Integers) -> Floats:
        """Return the weight of the values that a record of each pattern loses, (r,)."""
        lost = self.column_flags(deleted) & (self.patterns[pattern] != MISSING)
        return np.asarray(lost @ np.where(np.isfinite(self.costs), self.costs, 0.0))

    def plan_cost(self, plan: _SuppressionPlan) -> float:
        return float(self.deletion_weights(plan.pattern, plan.deleted) @ plan.number)

    def count_alike(self, rows: Integers, others: Integers, numbers: Integers) -> Integers:
        """Count the records that are alike with each of the rows (r, d): (r,).

        ``numbers`` (o,) records have the values of each of the ``others`` (o, d).
        """
        if self.missing == "anything":
            return match_counts(rows, others, numbers)
        (ours, theirs), groups = _number_equal_rows(rows, others)
        return np.bincount(theirs, weights=numbers, minlength=groups).astype(np.int64)[ours]

    @cached_property
    def is_needy(self) -> Booleans:
        """Return which patterns have fewer than k records alike with them, (g,)."""
        return self.count_alike(self.patterns, self.patterns, self.counts) < self.k

    @cached_property
    def deletion_sets(self) -> list[int]:
        """List sets of columns to delete, the cheapest first, with the empty set first and the full one last.

        The full one has all columns that may be deleted.
        """
        columns = np.flatnonzero(np.isfinite(self.costs)).tolist()
        found = [0]
        if not columns:
            return found
        # 2^d sets are too many from about a dozen columns on; small sets are the likely ones.
        for size in range(1, len(columns)):
            if len(found) >= MOST_SETS:
                break
            chosen = (sum(1 << column for column in some) for some in combinations(columns, size))
            found += [one for one, _ in zip(chosen, range(MOST_SETS), strict=False)]
        whole = sum(1 << column for column in columns)
        ordered = sorted(found, key=lambda one: (self._set_cost(one), one))[:MOST_SETS]
        return [*(one for one in ordered if one != whole), whole]

    def _set_cost(self, deleted: int) -> float:
        return float(sum(cost for column, cost in enumerate(self.costs.tolist()) if deleted >> column & 1))

    def require_reachable(self) -> None:
        """Raise UnreachableClassSize if some records have fewer than k alike even when all that may be deleted is."""
        all_lost = self.remaining_values(np.arange(len(self.counts)), np.full(len(self.counts), self.deletion_sets[-1]))
        if (few := self.count_alike(all_lost, all_lost, self.counts) < self.k).any():
            raise UnreachableClassSize(int(self.counts[few].sum()))


def _number_equal_rows(rows: Integers, others: Integers) -> tuple[tuple[Integers, Integers], int]:
    """Assign numbers to rows (r, d) and others (o, d), the same number for rows that are equal in all columns.

    Returns the numbers of both, (r,) and (o,), and how many different ones there are.
    """
    columns = [[rows[:, j], others[:, j]] for j in range(rows.shape[1])]
    (ours, theirs), groups = number_groups(columns, [len(rows), len(others)])
    return (ours, theirs), groups


def _find_plan(
    table: _PatternTable, seconds: float, report: Callable[[int, int], None]
) -> tuple[_SuppressionPlan, bool]:
    """Find a plan of low weight, each search within these seconds, and return it and whether it is proven to be best."""
    steps = int(seconds * ENTRIES_A_SECOND)
    needy = np.flatnonzero(table.is_needy)
    if not len(needy):
        return _SuppressionPlan.from_rows([(p, 0, int(c)) for p, c in enumerate(table.counts)]), True
    # Where a missing value matches any, k - 1 records without any value match everybody, and the fewest cells alone
    # would lead to those. So a record may lose values only where fewer than k match it, and no more than it would have
    # to lose alone.
    alone = _cheapest_sets_alone(table, needy) if table.missing == "anything" else None
    plan = _plan_each_alone(table, needy, alone) if alone is not None else _plan_greedily(table)
    whole = _ProgramChoices.from_all_sets(table, needy, alone)
    if whole is not None:
        return _solve_program(table, plan, whole, MOST_NODES_EACH, steps)[:2]
    if alone is not None and LEAST_PATTERNS * len(_affordable_sets(table, alone)) > 2 * NEIGHBOURHOOD:
        return _PatternSearch(table, plan, needy).improve(int(seconds * COMPARISONS_A_SECOND), report), False
    budget, programs, passes = MOST_NODES, 0, 0
    while True:
        before = table.plan_cost(plan)
        done: set[int] = set()
        for seed in needy.tolist():
            if seed in done:
                continue
            near = _nearest_needy_patterns(table, needy, seed, alone)
            done.update(near.tolist())
            plan, _, nodes = _solve_program(
                table,
                plan,
                _ProgramChoices.from_neighbourhood(table, plan, near, alone),
                min(budget, MOST_NODES_EACH),
                steps,
            )
            budget, programs = budget - nodes, programs + 1
            # Two passes are usual; a later one reports the end rather than a new beginning.
            report(min(passes * len(needy) + len(done), 2 * len(needy)), 2 * len(needy))
            if budget <= 0 or programs >= MOST_PROGRAMS:
                return plan, False
        if table.plan_cost(plan) >= (1 - WORTHWHILE) * before - TOLERANCE:
            return plan, False
        passes += 1


def _cheapest_sets_alone(table: _PatternTable, needy: Integers) -> Integers:
    """Return the cheapest set of values that each needy pattern would lose if no other record lost any, (needy,)."""
    found = np.full(len(needy), table.deletion_sets[-1], dtype=np.int64)
    pending = np.ones(len(needy), dtype=np.bool_)
    for deleted in table.deletion_sets:
        some = np.flatnonzero(pending)
        if not len(some):
            break
        shown = table.remaining_values(needy[some], np.full(len(some), deleted))
        enough = some[table.count_alike(shown, table.patterns, table.counts) >= table.k]
        found[enough], pending[enough] = deleted, False
    if len(table.deletion_sets) >= MOST_SETS:
        # Without this, a few records could lose all their values only because the sets between were not tried.
        for place in np.flatnonzero(found == table.deletion_sets[-1]).tolist():
            found[place] = _cheap_set_alone(table, int(needy[place]))
    return found


def _cheap_set_alone(table: _PatternTable, pattern: int) -> int:
    """Return a cheap set of values without which k records match a pattern, built up from the nearest records."""
    own = table.patterns[pattern]
    differs = (table.patterns != own) & (table.patterns != MISSING) & (own != MISSING)
    weights = differs @ np.where(np.isfinite(table.costs), table.costs, 0.0)
    reachable = np.flatnonzero(~differs[:, ~np.isfinite(table.costs)].any(axis=1))
    near = reachable[np.argsort(weights[reachable], kind="stable")][:NEAREST]
    sets, counts = differs[near], table.counts[near]
    costs = np.where(np.isfinite(table.costs), table.costs, 0.0)
    # From each record as the first to match, the next one is that which adds least.
    lost = sets.copy()
    for _ in range(len(near)):
        extra = (sets[None] & ~lost[:, None]) @ costs
        short = (extra == 0) @ counts < table.k
        if not short.any():
            break
        extra[extra == 0] = np.inf
        added = np.argmin(extra, axis=1)
        possible = short & np.isfinite(extra.min(axis=1))
        lost[possible] |= sets[added[possible]]
        if not possible.any():
            break
    enough = np.flatnonzero(((sets[None] & ~lost[:, None]).sum(axis=2) == 0) @ counts >= table.k)
    if not len(enough):
        return table.deletion_sets[-1]
    best = lost[enough[np.argmin(lost[enough] @ costs)]]
    return sum(1 << column for column in np.flatnonzero(best).tolist())


def _plan_each_alone(table: _PatternTable, needy: Integers, alone: Integers) -> _SuppressionPlan:
    """Return the plan in which every needy record loses what it would have to lose alone."""
    deleted = np.zeros(len(table.counts), dtype=np.int64)
    deleted[needy] = alone
    return _SuppressionPlan(np.arange(len(table.counts)), deleted, table.counts.copy())


def _plan_greedily(table: _PatternTable) -> _SuppressionPlan:
    """Return a plan for ``value``, which makes classes of needy records, the cheapest sets of values first.

    Where a class lacks few records, others that have more than k alike lend some.
    """
    everyone, needy = np.arange(len(table.counts)), table.is_needy.copy()
    spare = np.where(needy, 0, table.counts - table.k)
    deleted = np.zeros(len(table.counts), dtype=np.int64)
    donated: dict[tuple[int, int], int] = defaultdict(int)
    for lost in table.deletion_sets[1:]:
        if not needy.any():
            break
        shown = table.remaining_values(everyone, np.full(len(everyone), lost))
        (cell, _), cells = _number_equal_rows(shown, shown[:0])
        own = np.bincount(cell, weights=table.counts * needy, minlength=cells).astype(np.int64)
        lacking = np.maximum(table.k - own, 0)
        enough = own + np.bincount(cell, weights=spare, minlength=cells) >= table.k
        # No more borrowed records than needy ones, unless nothing else is left: each borrowed one loses values too.
        opened = (own > 0) & enough & ((lacking <= own) | (lost == table.deletion_sets[-1]))
        for members in _places_by_cell(cell, opened):
            missing = int(lacking[cell[members[0]]])
            for donor in members[np.lexsort((members, -spare[members]))].tolist():
                given = min(missing, int(spare[donor]))
                if given <= 0:
                    break
                donated[donor, lost] += given
                spare[donor] -= given
                missing -= given
            taken = members[needy[members]]
            deleted[taken], needy[taken] = lost, False
    kept = table.counts.copy()
    for (donor, _), number in donated.items():
        kept[donor] -= number
    rows = [(p, int(deleted[p]), int(kept[p])) for p in range(len(kept))]
    plan = _SuppressionPlan.from_rows([*rows, *((donor, lost, number) for (donor, lost), number in donated.items())])
    return _suppress_remaining(table, plan, np.flatnonzero(needy)) if needy.any() else plan


def _places_by_cell(cell: Integers, opened: Booleans) -> Iterator[Integers]:
    """Yield the places of the members of each opened cell, (members,) each."""
    order = np.argsort(cell, kind="stable")
    ends = np.cumsum(np.bincount(cell, minlength=len(opened)))
    for one in np.flatnonzero(opened).tolist():
        yield order[(ends[one - 1] if one else 0) : ends[one]]


def _suppress_remaining(table: _PatternTable, plan: _SuppressionPlan, rest: Integers) -> _SuppressionPlan:
    """Delete all deletable values of needy patterns that no spare record helped.

    Where too few are left, the cheapest class with the same remaining values loses them too.
    """
    whole = table.deletion_sets[-1]
    deleted = np.where(np.isin(plan.pattern, rest), whole, plan.deleted)
    all_lost = table.remaining_values(plan.pattern, np.full(len(deleted), whole))
    (group, _), _ = _number_equal_rows(all_lost, all_lost[:0])
    for one in np.unique(group[np.isin(plan.pattern, rest)]).tolist():
        inside = np.flatnonzero(group == one)
        lost = inside[deleted[inside] == whole]
        # These records without any deletable value are a class of k by themselves.
        if plan.number[lost].sum() >= table.k:
            continue
        others = inside[deleted[inside] != whole]
        shown = table.remaining_values(plan.pattern[others], deleted[others])
        (cell, _), cells = _number_equal_rows(shown, shown[:0])
        more = table.deletion_weights(plan.pattern[others], np.full(len(others), whole)) - table.deletion_weights(
            plan.pattern[others], deleted[others]
        )
        price = np.bincount(cell, weights=more * plan.number[others], minlength=cells)
        deleted[others[cell == int(np.argmin(price))]] = whole
    return _SuppressionPlan(plan.pattern, deleted, plan.number)


def _nearest_needy_patterns(table: _PatternTable, needy: Integers, seed: int, alone: Integers | None) -> Integers:
    """Return the needy patterns that differ least from the ``seed``, itself among them, ascending."""
    distance = np.sum(table.patterns[needy] != table.patterns[seed], axis=1)
    near = needy[np.argsort(distance, kind="stable")]
    each = _small_sets(table) if alone is None else _affordable_sets(table, alone)
    # As many patterns as give a program of about NEIGHBOURHOOD pairs.
    return np.sort(near[: max(LEAST_PATTERNS, NEIGHBOURHOOD // max(len(each), 1))])


def _small_sets(table: _PatternTable) -> list[int]:
    """Return the sets of at most two columns."""
    return [one for one in table.deletion_sets if one.bit_count() <= 2]


def _affordable_sets(table: _PatternTable, alone: Integers) -> list[int]:
    """Return the sets that cost no more than the most that any record would lose alone."""
    most = max(table._set_cost(one) for one in np.unique(alone).tolist())
    return [one for one in table.deletion_sets if table._set_cost(one) <= most + TOLERANCE]


class _PatternSearch:
    """Search for a plan row by row, where a missing value matches anything.

    A row loses the cheapest set of values with which it and all rows that rely on it keep k matches. Then some rows
    that are alike lose what they would have to lose alone, and take their turns in another order; what saves nothing is
    undone.
    """

    def __init__(self, table: _PatternTable, plan: _SuppressionPlan, needy: Integers) -> None:
        self.table, self.pattern, self.number = table, plan.pattern, plan.number
        self.alone = plan.deleted
        self.deleted = plan.deleted.copy()
        self.patterns = table.patterns[plan.pattern]
        self.shown = table.remaining_values(self.pattern, self.deleted)
        self.matches = match_counts(self.shown, self.shown, self.number)
        self.needy = np.flatnonzero(np.isin(plan.pattern, needy))
        self.sets = np.array(table.deletion_sets[:-1], dtype=np.int64)
        self.costs = np.array([table._set_cost(one) for one in self.sets.tolist()])
        self.compared = 0

    @property
    def cost(self) -> float:
        return float(self.table.deletion_weights(self.pattern, self.deleted) @ self.number)

    def improve(self, comparisons: int, report: Callable[[int, int], None]) -> _SuppressionPlan:
        """Search until the allowed comparisons are used up, or many starts find no better plan; return the best plan."""
        # A fixed stream of its own: a result depends on the patterns alone.
        rng = np.random.default_rng(0)
        self.take_turns(self.needy, comparisons, report)
        best, kept, fruitless = self.cost, self.deleted.copy(), 0
        while self.compared < comparisons and fruitless < FRUITLESS_STARTS * len(self.needy):
            seed = rng.choice(self.needy)
            distance = np.sum(self.patterns[self.needy] != self.patterns[seed], axis=1)
            some = self.needy[np.argsort(distance, kind="stable")][:LEAST_PATTERNS]
            for row in some.tolist():
                before = int(self.deleted[row])
                self.set_deleted(row, int(self.alone[row]))
                # Another row may rely on a value that this one then shows.
                if (self.matches < self.table.k).any():
                    self.set_deleted(row, before)
            self.take_turns(rng.permutation(some), comparisons, report)
            fruitless = 0 if self.cost < best - TOLERANCE else fruitless + 1
            if self.cost <= best + TOLERANCE:
                best, kept = self.cost, self.deleted.copy()
            else:
                for row in np.flatnonzero(self.deleted != kept).tolist():
                    self.set_deleted(row, int(kept[row]))
        return _SuppressionPlan(self.pattern, kept, self.number)

    def take_turns(self, rows: Integers, comparisons: int, report: Callable[[int, int], None]) -> None:
        """Let each of the rows lose the least it can, while comparisons are left."""
        for row in rows.tolist():
            if self.compared >= comparisons:
                return
            self.lose_least(row)
            report(min(100 * self.compared // comparisons, 100), 100)

    def differences(self, row: int) -> Integers:
        """Return as bits the columns in which a row with all its values differs from each released row, (r,)."""
        own = self.patterns[row]
        differs = (self.shown != own) & (self.shown != MISSING) & (own != MISSING)
        return np.asarray(differs @ (1 << np.arange(len(own))))

    def lose_least(self, row: int) -> None:
        """Let a row lose the cheapest set with which it and the rows that rely on it keep k matches."""
        differences = self.differences(row)
        others = np.arange(len(differences)) != row
        matched = (differences & ~self.deleted[row]) == 0
        reliant = matched & others & (self.matches - self.number[row] < self.table.k)
        required = int(np.bitwise_or.reduce(differences[reliant], initial=0))
        current = self.table._set_cost(int(self.deleted[row]))
        possible = self.sets[(self.costs < current - TOLERANCE) & ((self.sets & required) == required)]
        # The row itself is among those that match it, whatever it loses.
        differences[row] = 0
        for first in range(0, len(possible), 64):
            some = possible[first : first + 64]
            self.compared += len(some) * len(differences)
            enough = ((differences[None] & ~some[:, None]) == 0) @ self.number >= self.table.k
            if enough.any():
                self.set_deleted(row, int(some[np.argmax(enough)]))
                return
        self.compared += len(differences)

    def set_deleted(self, row: int, deleted: int) -> None:
        """Let a row lose these values, and count all matches again."""
        differences = self.differences(row)
        before, after = ((differences & ~one) == 0 for one in (int(self.deleted[row]), deleted))
        before[row] = after[row] = False
        change = after.astype(np.int64) - before
        self.matches += change * self.number[row]
        self.matches[row] += int(change @ self.number)
        self.deleted[row] = deleted
        self.shown[row] = self.table.remaining_values(self.pattern[[row]], np.array([deleted]))[0]
        self.compared += len(differences)


@dataclass(frozen=True, eq=False)
class _ProgramChoices:
    """The choices that an integer program decides.

    pattern: number of the pattern, ascending, (c,)
    deleted: set of values that may be deleted, (c,)
    most: most records that lose them, (c,)
    """

    pattern: Integers
    deleted: Integers
    most: Integers

    @classmethod
    def _from_sets(cls, choices: dict[int, set[int]], most: Callable[[int, int], int]) -> _ProgramChoices:
        """Build from the sets of each pattern; ``most`` returns the most records of a pattern that may lose a set."""
        rows = [(p, one, most(p, one)) for p in sorted(choices) for one in sorted(choices[p])]
        found = np.array(rows, dtype=np.int64).reshape(-1, 3)
        return cls(found[:, 0], found[:, 1], found[:, 2])

    @classmethod
    def from_all_sets(cls, table: _PatternTable, needy: Integers, alone: Integers | None) -> _ProgramChoices | None:
        """Return every possible choice; None where they are too many for one program."""
        limit = WHOLE[table.missing]
        if alone is not None:
            if len(needy) > limit:
                return None
            choices = _sets_within_cost_alone(table, needy, alone)
        else:
            if len(table.counts) * len(table.deletion_sets) > limit:
                return None
            choices = {p: set(table.deletion_sets) for p in range(len(table.counts))}
        if sum(map(len, choices.values())) > limit or len(table.deletion_sets) >= MOST_SETS:
            return None
        return cls._from_sets(choices, lambda p, one: int(table.counts[p]))

    @classmethod
    def from_neighbourhood(
        cls, table: _PatternTable, plan: _SuppressionPlan, near: Integers, alone: Integers | None
    ) -> _ProgramChoices:
        """Return choices of some needy patterns, and for ``value`` of the patterns that could help them."""
        used = plan.deletions_by_pattern
        if alone is not None:
            needy = np.flatnonzero(table.is_needy)
            choices = _sets_within_cost_alone(table, near, alone[np.searchsorted(needy, near)])
        else:
            choices = {p: {*_small_sets(table), *used[p]} for p in near.tolist()}
            for p, sets in _helping_patterns(table, plan, near):
                choices.setdefault(p, {0, *used[p]}).update(sets)

        def max_assigned(pattern: int, deleted: int) -> int:
            # A class never needs more than k helping records, and a tight bound makes the program easier; but the plan
            # at hand must stay possible.
            limit = table.counts[pattern] if deleted == 0 or table.is_needy[pattern] else table.k
            return max(int(min(limit, table.counts[pattern])), used[pattern].get(deleted, 0))

        return cls._from_sets(choices, max_assigned)


def _sets_within_cost_alone(table: _PatternTable, needy: Integers, alone: Integers) -> dict[int, set[int]]:
    """Return, for each needy pattern (needy,), the sets that cost no more than what it would lose alone."""
    prices = {one: table._set_cost(one) for one in table.deletion_sets}
    found = {}
    for pattern, limit in zip(needy.tolist(), table.deletion_weights(needy, alone).tolist(), strict=True):
        # Deleting a value that is missing already would be the same choice twice.
        absent = sum(1 << int(column) for column in np.flatnonzero(table.patterns[pattern] == MISSING))
        found[pattern] = {one for one in table.deletion_sets if not one & absent and prices[one] <= limit + TOLERANCE}
    return found


def _helping_patterns(table: _PatternTable, plan: _SuppressionPlan, near: Integers) -> Iterator[tuple[int, set[int]]]:
    """Yield patterns without need that are or could be in a class with ``near``, and the sets that they lose."""
    needy = set(near.tolist())
    helps = np.flatnonzero((plan.deleted > 0) & ~np.isin(plan.pattern, near))
    for deleted in np.unique(plan.deleted[helps]).tolist():
        some = np.unique(plan.pattern[helps[plan.deleted[helps] == deleted]])
        theirs, ours = (table.remaining_values(p, np.full(len(p), deleted)) for p in (some, near))
        (cell, own), _ = _number_equal_rows(theirs, ours)
        for pattern in some[np.isin(cell, own)].tolist():
            yield pattern, {deleted}
    large = np.flatnonzero(~table.is_needy)
    for deleted in _small_sets(table)[1:]:
        theirs, ours = (table.remaining_values(p, np.full(len(p), deleted)) for p in (large, near))
        (cell, own), cells = _number_equal_rows(theirs, ours)
        for members in _places_by_cell(cell, np.bincount(own, minlength=cells) > 0):
            some = large[members]
            for pattern in some[np.lexsort((some, -table.counts[some]))][:DONORS].tolist():
                if pattern not in needy:
                    yield pattern, {deleted}


def _solve_program(
    table: _PatternTable, plan: _SuppressionPlan, choices: _ProgramChoices, nodes: int, steps: int
) -> tuple[_SuppressionPlan, bool, int]:
    """Solve the program of some choices; return the better plan, whether it is optimal, and the nodes searched.

    The search ends after ``nodes``, or as many as make ``steps``. A program of which not even one node fits is left.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    free = np.isin(plan.pattern, choices.pattern)
    fixed = plan.select_rows(~free)
    program = _IntegerProgram.from_choices(table, choices, fixed, plan.select_rows(free))
    entries = sum(map(len, program.entries))
    if entries > steps:
        return plan, False, 1
    matrix = csr_array(
        (np.concatenate(program.entries), (np.concatenate(program.rows), np.concatenate(program.columns))),
        shape=(len(program.low), len(program.upper)),
    )
    cost = np.zeros(len(program.upper))
    cost[: len(choices.pattern)] = table.deletion_weights(choices.pattern, choices.deleted)
    found = milp(
        cost,
        constraints=LinearConstraint(matrix, np.array(program.low), np.array(program.high)),
        integrality=np.ones(len(cost)),
        bounds=Bounds(program.lower, program.upper),
        options={"node_limit": min(nodes, steps // max(1, entries)), "mip_rel_gap": 0.0},
    )
    searched = int(getattr(found, "mip_node_count", 0) or 0) + 1
    if found.x is None:
        return plan, False, searched
    # The solver returns whole numbers within its tolerance.
    number = np.rint(found.x[: len(choices.pattern)]).astype(np.int64)
    used = number > 0
    new = fixed.concatenate_plan(_SuppressionPlan(choices.pattern[used], choices.deleted[used], number[used]))
    proven = found.status == 0
    # Stopped at the node limit, the solver may return something worse than the plan at hand.
    return (new if table.plan_cost(new) < table.plan_cost(plan) - TOLERANCE else plan), proven, searched


@dataclass
class _IntegerProgram:
    """Constraints of an integer program in coordinates, row by row, and the bounds of its variables.

    The first variables are how many records make each choice; the others are 1 where a choice, or a class, has any.

    lower, upper: bounds of each variable
    rows, columns, entries: coordinates of the constraint matrix
    low, high: bounds of each constraint
    """

    lower: Floats
    upper: Floats
    rows: list[Integers] = field(default_factory=list)
    columns: list[Integers] = field(default_factory=list)
    entries: list[Floats] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    @classmethod
    def from_choices(
        cls, table: _PatternTable, choices: _ProgramChoices, fixed: _SuppressionPlan, decided: _SuppressionPlan
    ) -> _IntegerProgram:
        """Build the program that replaces the choices in ``decided``.

        Each pattern covers its records, and every row that is released has k records alike.
        """
        found = cls(np.zeros(len(choices.pattern)), choices.most.astype(np.float64))
        patterns, place = np.unique(choices.pattern, return_inverse=True)
        totals = table.counts[patterns].astype(np.float64)
        found._add_constraints([(place, np.arange(len(place)), np.ones(len(place)))], totals, totals)
        shown, others, before = (table.remaining_values(one.pattern, one.deleted) for one in (choices, fixed, decided))
        if table.missing == "anything":
            found._require_k_matches(table, shown, others, fixed.number, before)
        else:
            found._require_k_in_classes(table, shown, others, fixed.number)
        return found

    def _add_constraints(self, parts: Sequence[tuple[Integers, Integers, Floats]], low: Floats, high: Floats) -> None:
        """Add rows low <= A x <= high, given as parts of (row, column, entry) of A."""
        first = len(self.low)
        for row, column, entry in parts:
            self.rows.append(first + row)
            self.columns.append(column)
            self.entries.append(entry)
        self.low += low.tolist()
        self.high += high.tolist()

    def _add_flags(self, least: Floats) -> Integers:
        """Add variables that are 0 or 1, and at least ``least`` (f,), and return their columns."""
        first = len(self.upper)
        self.lower, self.upper = np.concatenate([self.lower, least]), np.concatenate([self.upper, np.ones(len(least))])
        return first + np.arange(len(least))

    def _add_choice_needs_flag(self, choice: Integers, flag: Integers) -> None:
        """Add the constraint that a choice (c,) has no records unless its flag (c,) is 1."""
        rows = np.arange(len(choice))
        # The smallest valid big-M, which keeps the relaxation tight.
        limit = np.maximum(self.upper[choice], 1.0)
        never, none = np.full(len(rows), -np.inf), np.zeros(len(rows))
        self._add_constraints([(rows, choice, np.ones(len(rows))), (rows, flag, -limit)], never, none)

    def _require_k_matches(
        self, table: _PatternTable, shown: Integers, others: Integers, numbers: Integers, before: Integers
    ) -> None:
        """Require k matches of every choice with records, and of the fixed rows that relied on those ``before``."""
        given = match_counts(shown, others, numbers)
        needy = np.flatnonzero(given < table.k)
        flags = self._add_flags(np.zeros(len(needy)))
        agree = agreement_matrix(shown[needy], shown)
        row, column = np.nonzero(agree)
        rows = np.arange(len(needy))
        unlimited = np.full(len(needy), np.inf)
        self._add_constraints(
            [(row, column, np.ones(len(row))), (rows, flags, (given[needy] - table.k).astype(np.float64))],
            np.zeros(len(needy)),
            unlimited,
        )
        self._add_choice_needs_flag(needy, flags)
        reliant = others[agreement_matrix(others, before).any(axis=1)]
        short = table.k - match_counts(reliant, others, numbers)
        some = np.flatnonzero(short > 0)
        row, column = np.nonzero(agreement_matrix(reliant[some], shown))
        self._add_constraints(
            [(row, column, np.ones(len(row)))], short[some].astype(np.float64), np.full(len(some), np.inf)
        )

    def _require_k_in_classes(self, table: _PatternTable, shown: Integers, others: Integers, numbers: Integers) -> None:
        """Require that classes with records have k of them."""
        (cell, theirs), cells = _number_equal_rows(shown, others)
        given = np.bincount(theirs, weights=numbers, minlength=cells).astype(np.float64)
        reach = np.bincount(cell, weights=self.upper, minlength=cells) + given
        # Choices of classes that cannot reach k are closed before the solver sees them.
        self.upper = np.where(reach[cell] >= table.k, self.upper, 0.0)
        used = np.unique(cell)
        cell, given = np.searchsorted(used, cell), given[used]
        # Classes with fixed records exist in any case, so their flag is 1.
        flags = self._add_flags((given > 0).astype(np.float64))
        rows = np.arange(len(used))
        self._add_constraints(
            [(cell, np.arange(len(cell)), np.ones(len(cell))), (rows, flags, np.full(len(rows), -float(table.k)))],
            -given,
            np.full(len(rows), np.inf),
        )
        self._add_choice_needs_flag(np.arange(len(cell)), flags[cell])
