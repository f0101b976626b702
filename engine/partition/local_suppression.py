"""Local suppression: as few values of quasi-identifiers as possible are deleted, so that k records share every combination.

A missing value means one of two things:

    value     it is a value of its own: records are alike that show the same values and lack the same ones. Everybody then
              hides in a class of k records, from an intruder who knows all quasi-identifiers too: whoever shows the true
              values or lacks them is a candidate.
    anything  it matches any value (sdcMicro; Templ, Kowarik & Meindl 2015, §2.3): every record agrees with k records, itself
              included, wherever both have a value.

The second counts on values that were deleted elsewhere: k - 1 records without any value match everybody, and the fewest cells
alone would ask for those. So a record may lose values only where fewer than k records match it, and no more (by weight) than it would
have to lose alone. An intruder who knows the deleted value may still exclude the records that show another: ``exposed`` counts that.

Records with the same values are one pattern. Integer programs decide how many records of each pattern lose which values: one
for the whole table where it is small, else one for a neighbourhood of patterns after another while all others stay, until that
saves hardly anything or the budget of programs and nodes is spent. ``order`` decides which of several equal records lose their values.
All of it depends on the records alone, not on the order in which they come.
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
from ..wording import counted
from .grouping import numbered
from .partial_matches import MISSING, agreement, match_counts

Meaning = Literal["value", "anything"]

WHOLE = {"value": 1_200, "anything": 2_500}
"""The most pairs of pattern and deleted values for which one program covers the whole table."""
NEIGHBOURHOOD = 2_000
"""The approximate number of pairs in the program of a neighbourhood."""
MOST_PROGRAMS, MOST_NODES, MOST_NODES_EACH = 60, 1_000, 300
MOST_SETS = 4_096
"""Sets of deleted values that are tried, the cheapest first, and the one of all values that may be deleted."""
DONORS = 2
"""Patterns without need that may fill up a class, of those that could the most frequent ones."""
WORTHWHILE = 0.005
"""The neighbourhoods are gone through again while that saves this share or more."""
TOLERANCE = 1e-9


class Unreachable(ValueError):
    """Values that may not be deleted tell ``records`` apart: fewer than k share them."""

    def __init__(self, records: int) -> None:
        super().__init__(counted(records, "record"))
        self.records = records


@dataclass(frozen=True, eq=False)
class Suppression:
    """The ``cells`` (n, d) that are deleted, their weight, whether it is ``proven`` that no other choice has less, and how many
    records are ``exposed``: fewer than k released rows show their true values or lack them.
    """

    cells: Booleans
    cost: float
    proven: bool
    exposed: int


def suppress_locally(
    codes: Integers,
    k: int,
    costs: Floats,
    order: Integers,
    *,
    missing: Meaning = "value",
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Suppression:
    """The fewest cells to delete, by weight.

    ``codes`` (n, d) are the values of n >= k records, ``MISSING`` for none; ``costs`` (d,) above 0 are the weights of a value of each
    column, infinite for one that is never deleted. ``order`` (n,), a permutation, ranks records: of equal ones the first lose
    their values. ``report`` hears how many patterns have been improved. Raises Unreachable.
    """
    patterns, which, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    which = which.reshape(-1)
    table = _Table(patterns, counts, k, costs, missing)
    table.require_reachable()
    plan, proven = _improved(table, report)
    cells = _deleted(table, plan, which, order)
    return Suppression(cells, table.cost(plan), proven, _exposed(codes, cells, k))


def _exposed(codes: Integers, cells: Booleans, k: int) -> int:
    """The number of records whose known true values match fewer than k released rows, where a deleted value matches any."""
    patterns, records = np.unique(codes, axis=0, return_counts=True)
    shown, counts = np.unique(np.where(cells, MISSING, codes), axis=0, return_counts=True)
    return int(records[match_counts(patterns, shown, counts) < k].sum())


def _deleted(table: _Table, plan: _Plan, which: Integers, order: Integers) -> Booleans:
    """The cells of single records: of each pattern the first by ``order`` lose the values that the plan deletes, the most of them first."""
    cells = np.zeros((len(which), table.patterns.shape[1]), dtype=np.bool_)
    members = np.lexsort((order, which))
    first = np.cumsum(table.counts) - table.counts
    used = np.zeros(len(table.counts), dtype=np.int64)
    for place in np.lexsort((-plan.deleted, plan.pattern)).tolist():
        pattern, deleted, number = plan.pattern[place], plan.deleted[place], plan.number[place]
        start = first[pattern] + used[pattern]
        cells[members[start : start + number]] = table.bits(deleted)
        used[pattern] += number
    return np.asarray(cells & (table.patterns[which] != MISSING))


@dataclass(frozen=True, eq=False)
class _Plan:
    """``number`` (r,) records of a ``pattern`` lose the ``deleted`` values, a bit for each column."""

    pattern: Integers
    deleted: Integers
    number: Integers

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int]]) -> _Plan:
        found = np.array([row for row in rows if row[2]], dtype=np.int64).reshape(-1, 3)
        return cls(found[:, 0], found[:, 1], found[:, 2])

    def only(self, rows: Booleans) -> _Plan:
        return _Plan(self.pattern[rows], self.deleted[rows], self.number[rows])

    def joined(self, other: _Plan) -> _Plan:
        return _Plan(*(np.concatenate(pair) for pair in zip(self._parts, other._parts, strict=True)))

    @property
    def _parts(self) -> tuple[Integers, Integers, Integers]:
        return self.pattern, self.deleted, self.number

    @cached_property
    def by_pattern(self) -> dict[int, dict[int, int]]:
        """How many records lose which values, by pattern."""
        found: dict[int, dict[int, int]] = defaultdict(dict)
        for pattern, deleted, number in zip(*(part.tolist() for part in self._parts), strict=True):
            found[pattern][deleted] = found[pattern].get(deleted, 0) + number
        return found


@dataclass(frozen=True, eq=False)
class _Table:
    """The different ``patterns`` (g, d) of a table, ascending, with the ``counts`` (g,) of their records, and what is asked of it."""

    patterns: Integers
    counts: Integers
    k: int
    costs: Floats
    missing: Meaning

    def bits(self, deleted: Integers) -> Booleans:
        """Sets of columns as flags, (..., d)."""
        return np.asarray((np.asarray(deleted)[..., None] >> np.arange(len(self.costs))) & 1, dtype=np.bool_)

    def shown(self, pattern: Integers, deleted: Integers) -> Integers:
        """The patterns (r,) without the deleted values: (r, d)."""
        return np.where(self.bits(deleted), MISSING, self.patterns[pattern])

    def weights(self, pattern: Integers, deleted: Integers) -> Floats:
        """What a record of each pattern loses, (r,)."""
        lost = self.bits(deleted) & (self.patterns[pattern] != MISSING)
        return np.asarray(lost @ np.where(np.isfinite(self.costs), self.costs, 0.0))

    def cost(self, plan: _Plan) -> float:
        return float(self.weights(plan.pattern, plan.deleted) @ plan.number)

    def counted(self, rows: Integers, others: Integers, numbers: Integers) -> Integers:
        """How many records each of the rows (r, d) is alike with, where ``numbers`` (o,) are like each of the others: (r,)."""
        if self.missing == "anything":
            return match_counts(rows, others, numbers)
        (ours, theirs), groups = _cells(rows, others)
        return np.bincount(theirs, weights=numbers, minlength=groups).astype(np.int64)[ours]

    @cached_property
    def needy(self) -> Booleans:
        """The patterns that fewer than k records are alike with, (g,)."""
        return self.counted(self.patterns, self.patterns, self.counts) < self.k

    @cached_property
    def sets(self) -> list[int]:
        """Sets of columns to delete, the cheapest first; the empty one first, the set of all that may be last."""
        columns = np.flatnonzero(np.isfinite(self.costs)).tolist()
        found = [0]
        if not columns:
            return found
        for size in range(1, len(columns)):
            if len(found) >= MOST_SETS:
                break
            chosen = (sum(1 << column for column in some) for some in combinations(columns, size))
            found += [one for one, _ in zip(chosen, range(MOST_SETS), strict=False)]
        whole = sum(1 << column for column in columns)
        ordered = sorted(found, key=lambda one: (self._price(one), one))[:MOST_SETS]
        return [*(one for one in ordered if one != whole), whole]

    def _price(self, deleted: int) -> float:
        return float(sum(cost for column, cost in enumerate(self.costs.tolist()) if deleted >> column & 1))

    def require_reachable(self) -> None:
        """Raises Unreachable where k records cannot be alike however much is deleted."""
        all_lost = self.shown(np.arange(len(self.counts)), np.full(len(self.counts), self.sets[-1]))
        if (few := self.counted(all_lost, all_lost, self.counts) < self.k).any():
            raise Unreachable(int(self.counts[few].sum()))


def _cells(rows: Integers, others: Integers) -> tuple[tuple[Integers, Integers], int]:
    """Numbers of rows (r, d) and others (o, d) that are equal in all columns, and how many numbers there are."""
    columns = [[rows[:, j], others[:, j]] for j in range(rows.shape[1])]
    (ours, theirs), groups = numbered(columns, [len(rows), len(others)])
    return (ours, theirs), groups


def _improved(table: _Table, report: Callable[[int, int], None]) -> tuple[_Plan, bool]:
    """The best plan found, and whether it is proven to be best."""
    needy = np.flatnonzero(table.needy)
    if not len(needy):
        return _Plan.of([(p, 0, int(c)) for p, c in enumerate(table.counts)]), True
    alone = _losses_alone(table, needy) if table.missing == "anything" else None
    plan = _by_need(table, needy, alone) if alone is not None else _greedy(table)
    whole = _Choices.of_all(table, needy, alone)
    if whole is not None:
        return _decide(table, plan, whole, MOST_NODES_EACH)[:2]
    budget, programs = MOST_NODES, 0
    while True:
        before = table.cost(plan)
        done: set[int] = set()
        for seed in needy.tolist():
            if seed in done:
                continue
            near = _neighbourhood(table, needy, seed, alone)
            done.update(near.tolist())
            plan, _, nodes = _decide(table, plan, _Choices.near(table, plan, near, alone), min(budget, MOST_NODES_EACH))
            budget, programs = budget - nodes, programs + 1
            report(len(done), len(needy))
            if budget <= 0 or programs >= MOST_PROGRAMS:
                return plan, False
        if table.cost(plan) >= (1 - WORTHWHILE) * before - TOLERANCE:
            return plan, False


def _losses_alone(table: _Table, needy: Integers) -> Integers:
    """The cheapest set of values that a record of each needy pattern would have to lose if no other lost any, (needy,)."""
    found = np.full(len(needy), table.sets[-1], dtype=np.int64)
    pending = np.ones(len(needy), dtype=np.bool_)
    for deleted in table.sets:
        some = np.flatnonzero(pending)
        if not len(some):
            break
        shown = table.shown(needy[some], np.full(len(some), deleted))
        enough = some[table.counted(shown, table.patterns, table.counts) >= table.k]
        found[enough], pending[enough] = deleted, False
    return found


def _by_need(table: _Table, needy: Integers, alone: Integers) -> _Plan:
    """Every needy record loses what it would have to lose alone."""
    deleted = np.zeros(len(table.counts), dtype=np.int64)
    deleted[needy] = alone
    return _Plan(np.arange(len(table.counts)), deleted, table.counts.copy())


def _greedy(table: _Table) -> _Plan:
    """A plan for ``value``: sets of values from the cheapest on make classes of needy records, with spare ones of others where few lack."""
    everyone, needy = np.arange(len(table.counts)), table.needy.copy()
    spare = np.where(needy, 0, table.counts - table.k)
    deleted = np.zeros(len(table.counts), dtype=np.int64)
    donated: dict[tuple[int, int], int] = defaultdict(int)
    for lost in table.sets[1:]:
        if not needy.any():
            break
        shown = table.shown(everyone, np.full(len(everyone), lost))
        (cell, _), cells = _cells(shown, shown[:0])
        own = np.bincount(cell, weights=table.counts * needy, minlength=cells).astype(np.int64)
        lacking = np.maximum(table.k - own, 0)
        enough = own + np.bincount(cell, weights=spare, minlength=cells) >= table.k
        opened = (own > 0) & enough & ((lacking <= own) | (lost == table.sets[-1]))
        for members in _members(cell, opened):
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
    plan = _Plan.of([*rows, *((donor, lost, number) for (donor, lost), number in donated.items())])
    return _with_rest(table, plan, np.flatnonzero(needy)) if needy.any() else plan


def _members(cell: Integers, opened: Booleans) -> Iterator[Integers]:
    """The places in each of the opened cells, (members,) each."""
    order = np.argsort(cell, kind="stable")
    ends = np.cumsum(np.bincount(cell, minlength=len(opened)))
    for one in np.flatnonzero(opened).tolist():
        yield order[(ends[one - 1] if one else 0) : ends[one]]


def _with_rest(table: _Table, plan: _Plan, rest: Integers) -> _Plan:
    """Needy patterns for which no records were spare lose all that they may, each with the class for which that costs least."""
    whole = table.sets[-1]
    deleted = np.where(np.isin(plan.pattern, rest), whole, plan.deleted)
    all_lost = table.shown(plan.pattern, np.full(len(deleted), whole))
    (group, _), _ = _cells(all_lost, all_lost[:0])
    for one in np.unique(group[np.isin(plan.pattern, rest)]).tolist():
        inside = np.flatnonzero(group == one)
        lost = inside[deleted[inside] == whole]
        if plan.number[lost].sum() >= table.k:
            continue
        others = inside[deleted[inside] != whole]
        shown = table.shown(plan.pattern[others], deleted[others])
        (cell, _), cells = _cells(shown, shown[:0])
        more = table.weights(plan.pattern[others], np.full(len(others), whole)) - table.weights(
            plan.pattern[others], deleted[others]
        )
        price = np.bincount(cell, weights=more * plan.number[others], minlength=cells)
        deleted[others[cell == int(np.argmin(price))]] = whole
    return _Plan(plan.pattern, deleted, plan.number)


def _neighbourhood(table: _Table, needy: Integers, seed: int, alone: Integers | None) -> Integers:
    """The needy patterns that differ least from one, itself among them."""
    distance = np.sum(table.patterns[needy] != table.patterns[seed], axis=1)
    near = needy[np.argsort(distance, kind="stable")]
    each = _few_sets(table) if alone is None else _affordable(table, alone)
    return np.sort(near[: max(8, NEIGHBOURHOOD // max(len(each), 1))])


def _few_sets(table: _Table) -> list[int]:
    """The sets of at most two columns."""
    return [one for one in table.sets if one.bit_count() <= 2]


def _affordable(table: _Table, alone: Integers) -> list[int]:
    """The sets that cost no more than the dearest that a record would lose alone."""
    most = max(table._price(one) for one in np.unique(alone).tolist())
    return [one for one in table.sets if table._price(one) <= most + TOLERANCE]


@dataclass(frozen=True, eq=False)
class _Choices:
    """What a program decides of: for each ``pattern`` (c,), ascending, a set that may be ``deleted`` and by how many records at ``most``."""

    pattern: Integers
    deleted: Integers
    most: Integers

    @classmethod
    def _of(cls, choices: dict[int, set[int]], most: Callable[[int, int], int]) -> _Choices:
        rows = [(p, one, most(p, one)) for p in sorted(choices) for one in sorted(choices[p])]
        found = np.array(rows, dtype=np.int64).reshape(-1, 3)
        return cls(found[:, 0], found[:, 1], found[:, 2])

    @classmethod
    def of_all(cls, table: _Table, needy: Integers, alone: Integers | None) -> _Choices | None:
        """Every choice that there is; None where they are too many for one program."""
        limit = WHOLE[table.missing]
        if alone is not None:
            if len(needy) > limit:
                return None
            choices = _within_means(table, needy, alone)
        else:
            if len(table.counts) * len(table.sets) > limit:
                return None
            choices = {p: set(table.sets) for p in range(len(table.counts))}
        if sum(map(len, choices.values())) > limit or len(table.sets) >= MOST_SETS:
            return None
        return cls._of(choices, lambda p, one: int(table.counts[p]))

    @classmethod
    def near(cls, table: _Table, plan: _Plan, near: Integers, alone: Integers | None) -> _Choices:
        """Choices of some needy patterns, and for ``value`` of the patterns whose records help them or could."""
        used = plan.by_pattern
        if alone is not None:
            needy = np.flatnonzero(table.needy)
            choices = _within_means(table, near, alone[np.searchsorted(needy, near)])
        else:
            choices = {p: {*_few_sets(table), *used[p]} for p in near.tolist()}
            for p, sets in _helping(table, plan, near):
                choices.setdefault(p, {0, *used[p]}).update(sets)

        def most(pattern: int, deleted: int) -> int:
            limit = table.counts[pattern] if deleted == 0 or table.needy[pattern] else table.k
            return max(int(min(limit, table.counts[pattern])), used[pattern].get(deleted, 0))

        return cls._of(choices, most)


def _within_means(table: _Table, needy: Integers, alone: Integers) -> dict[int, set[int]]:
    """The sets that cost each needy pattern (needy,) no more than what it would lose alone."""
    prices = {one: table._price(one) for one in table.sets}
    found = {}
    for pattern, limit in zip(needy.tolist(), table.weights(needy, alone).tolist(), strict=True):
        absent = sum(1 << int(column) for column in np.flatnonzero(table.patterns[pattern] == MISSING))
        found[pattern] = {one for one in table.sets if not one & absent and prices[one] <= limit + TOLERANCE}
    return found


def _helping(table: _Table, plan: _Plan, near: Integers) -> Iterator[tuple[int, set[int]]]:
    """Patterns without need that share a class with one of these or could, and the sets that they lose for it."""
    needy = set(near.tolist())
    helps = np.flatnonzero((plan.deleted > 0) & ~np.isin(plan.pattern, near))
    for deleted in np.unique(plan.deleted[helps]).tolist():
        some = np.unique(plan.pattern[helps[plan.deleted[helps] == deleted]])
        theirs, ours = (table.shown(p, np.full(len(p), deleted)) for p in (some, near))
        (cell, own), _ = _cells(theirs, ours)
        for pattern in some[np.isin(cell, own)].tolist():
            yield pattern, {deleted}
    large = np.flatnonzero(~table.needy)
    for deleted in _few_sets(table)[1:]:
        theirs, ours = (table.shown(p, np.full(len(p), deleted)) for p in (large, near))
        (cell, own), cells = _cells(theirs, ours)
        for members in _members(cell, np.bincount(own, minlength=cells) > 0):
            some = large[members]
            for pattern in some[np.lexsort((some, -table.counts[some]))][:DONORS].tolist():
                if pattern not in needy:
                    yield pattern, {deleted}


def _decide(table: _Table, plan: _Plan, choices: _Choices, nodes: int) -> tuple[_Plan, bool, int]:
    """The plan with new choices where these cost less, whether they are proven optimal, and the number of nodes searched."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    free = np.isin(plan.pattern, choices.pattern)
    fixed = plan.only(~free)
    program = _Program.of(table, choices, fixed, plan.only(free))
    matrix = csr_array(
        (np.concatenate(program.entries), (np.concatenate(program.rows), np.concatenate(program.columns))),
        shape=(len(program.low), len(program.most)),
    )
    cost = np.zeros(len(program.most))
    cost[: len(choices.pattern)] = table.weights(choices.pattern, choices.deleted)
    found = milp(
        cost,
        constraints=LinearConstraint(matrix, np.array(program.low), np.array(program.high)),
        integrality=np.ones(len(cost)),
        bounds=Bounds(program.least, program.most),
        options={"node_limit": nodes, "mip_rel_gap": 0.0},
    )
    searched = int(getattr(found, "mip_node_count", 0) or 0) + 1
    if found.x is None:
        return plan, False, searched
    number = np.rint(found.x[: len(choices.pattern)]).astype(np.int64)
    used = number > 0
    new = fixed.joined(_Plan(choices.pattern[used], choices.deleted[used], number[used]))
    proven = found.status == 0
    return (new if table.cost(new) < table.cost(plan) - TOLERANCE else plan), proven, searched


@dataclass
class _Program:
    """Constraints of an integer program in coordinates, row by row, and the bounds of its variables.

    The first variables are how many records make each choice; the others say whether a choice, or a class, has any.
    """

    least: Floats
    most: Floats
    rows: list[Integers] = field(default_factory=list)
    columns: list[Integers] = field(default_factory=list)
    entries: list[Floats] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, table: _Table, choices: _Choices, fixed: _Plan, decided: _Plan) -> _Program:
        """A program that replaces the choices in ``decided``: each pattern covers its records, and every pattern released has k records alike."""
        found = cls(np.zeros(len(choices.pattern)), choices.most.astype(np.float64))
        patterns, place = np.unique(choices.pattern, return_inverse=True)
        totals = table.counts[patterns].astype(np.float64)
        found._add([(place, np.arange(len(place)), np.ones(len(place)))], totals, totals)
        shown, others, before = (table.shown(one.pattern, one.deleted) for one in (choices, fixed, decided))
        if table.missing == "anything":
            found._matches(table, shown, others, fixed.number, before)
        else:
            found._classes(table, shown, others, fixed.number)
        return found

    def _add(self, parts: Sequence[tuple[Integers, Integers, Floats]], low: Floats, high: Floats) -> None:
        first = len(self.low)
        for row, column, entry in parts:
            self.rows.append(first + row)
            self.columns.append(column)
            self.entries.append(entry)
        self.low += low.tolist()
        self.high += high.tolist()

    def _flags(self, least: Floats) -> Integers:
        """New variables that are 0 or 1, at least these, (f,): their columns."""
        first = len(self.most)
        self.least, self.most = np.concatenate([self.least, least]), np.concatenate([self.most, np.ones(len(least))])
        return first + np.arange(len(least))

    def _only_if(self, choice: Integers, flag: Integers) -> None:
        """No record makes the choice (c,) unless its flag (c,) is 1."""
        rows = np.arange(len(choice))
        limit = np.maximum(self.most[choice], 1.0)
        never, none = np.full(len(rows), -np.inf), np.zeros(len(rows))
        self._add([(rows, choice, np.ones(len(rows))), (rows, flag, -limit)], never, none)

    def _matches(self, table: _Table, shown: Integers, others: Integers, numbers: Integers, before: Integers) -> None:
        """Choices that are made, and rows that stay and matched one of those ``before``, match k records."""
        given = match_counts(shown, others, numbers)
        needy = np.flatnonzero(given < table.k)
        flags = self._flags(np.zeros(len(needy)))
        agree = agreement(shown[needy], shown)
        row, column = np.nonzero(agree)
        rows = np.arange(len(needy))
        unlimited = np.full(len(needy), np.inf)
        self._add(
            [(row, column, np.ones(len(row))), (rows, flags, (given[needy] - table.k).astype(np.float64))],
            np.zeros(len(needy)),
            unlimited,
        )
        self._only_if(needy, flags)
        reliant = others[agreement(others, before).any(axis=1)]
        short = table.k - match_counts(reliant, others, numbers)
        some = np.flatnonzero(short > 0)
        row, column = np.nonzero(agreement(reliant[some], shown))
        self._add([(row, column, np.ones(len(row)))], short[some].astype(np.float64), np.full(len(some), np.inf))

    def _classes(self, table: _Table, shown: Integers, others: Integers, numbers: Integers) -> None:
        """Classes that have records have k of them."""
        (cell, theirs), cells = _cells(shown, others)
        given = np.bincount(theirs, weights=numbers, minlength=cells).astype(np.float64)
        reach = np.bincount(cell, weights=self.most, minlength=cells) + given
        self.most = np.where(reach[cell] >= table.k, self.most, 0.0)
        used = np.unique(cell)
        cell, given = np.searchsorted(used, cell), given[used]
        flags = self._flags((given > 0).astype(np.float64))
        rows = np.arange(len(used))
        self._add(
            [(cell, np.arange(len(cell)), np.ones(len(cell))), (rows, flags, np.full(len(rows), -float(table.k)))],
            -given,
            np.full(len(rows), np.inf),
        )
        self._only_if(np.arange(len(cell)), flags[cell])
