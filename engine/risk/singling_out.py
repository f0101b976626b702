"""Singling out: how often predicates made from the release hold for exactly one person in the data.

The intruder makes predicates that hold for exactly one released record (``PredicateSet``), and guesses that each holds
for exactly one person. Rare predicates single people out by chance, so the risk is the difference between the success
rate for the people and that for controls, whom the release has never seen (Giomi et al. 2022, §3).

The numbers n of people and n_c of controls may differ, and the number of records that are singled out depends on it. So
n' = min(n, n_c) random people are replaced by n' controls, and a guess is right for controls if it holds for exactly
one record of this table, which is a control. If the release is independent of the people, the expected rate for
controls equals that for people:

    c = n / n' * 1/N * sum over the N predicates of  P(1 | k_c) * h(k_t)
    h(k) = product over i < k of (n' - i) / (n - i)

k_t and k_c are the numbers of people and controls for which a predicate holds, h is the probability that none of the
former stays in the table, and P(1 | k_c) that exactly one of the latter enters it. Both are exact averages over all
draws.

``added_risk`` subtracts the success of predicates of the same form with random values (``_attack``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Annotated

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..adversary.permuted import UnitsOfBoth, randomised_p_value
from ..adversary.targets import (
    BOTH_TARGET_KINDS,
    TargetKinds,
    VulnerableTargets,
    score_vulnerability,
    vulnerable_target_count,
)
from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.rows import distinct_rows
from ..data.schema import Kind, Schema, Variable
from ..errors import BadInput, NotComputable
from ..methods.drafting import Case, DeclinedOffer, Offer, drafts
from ..methods.levers import IDENTITY
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..statistics.score_interval import Z_95
from ._attack import (
    WITHOUT_CONTROLS,
    AddedSuccess,
    AttackResult,
    SuccessRate,
    attack_outputs,
    combine_attacks,
    residual_interval,
    residual_risk,
)
from ._attacked_records import independent_stream, select_rows, units_of_both

PLACE = "place of the record"
"""Name of a column that no file has, since it is only added for sorting."""
EQUAL, AT_MOST, AT_LEAST, MISSING = range(4)
CELLS = 4_000_000
"""Largest number of predicates times records evaluated together."""
FEWEST, MOST_RECORDS = 500, 1 << 16
"""Records of the first piece of a table, and most of a later one; predicates with two matches are dropped after each."""
TRIES_PER_PREDICATE = 10
"""Number of multivariate candidates per predicate wanted that are tried first."""
MOST_TRIES, MOST_TRIES_AT_ONCE = 1_000_000, 250_000
"""Number of candidates after which the search ends, with however many predicates it has found, and most in memory."""
PERMUTATION_COUNT = 1000
FEW_RIGHT_GUESSES = 10
"""Number of right guesses, of people and controls together, below which the limits are widened."""
MAX_MATCHED_RECORDS = 40
"""Matches above which a predicate never singles out a record in a permutation (40 / 2^40 with equal groups)."""


@dataclass(frozen=True, eq=False)
class PredicateSet:
    """P predicates, each a conjunction of k clauses on one variable: equal to, at most or at least a value, or missing.

    A predicate that holds for exactly one record singles it out (Cohen & Nissim 2020, PNAS 117(15); Giomi et al. 2022,
    §3.2).

    variable: position of the variable of each clause, (P, k)
    operation: operation of each clause, (P, k)
    value: value of each clause, (P, k)
    """

    variable: Integers
    operation: Integers
    value: Floats

    def __len__(self) -> int:
        return len(self.variable)

    def __getitem__(self, some: NDArray[np.bool_] | NDArray[np.intp]) -> PredicateSet:
        return PredicateSet(self.variable[some], self.operation[some], self.value[some])

    @classmethod
    def empty(cls, clauses: int) -> PredicateSet:
        """Create a set without predicates."""
        nothing = np.empty((0, clauses))
        return cls(nothing.astype(np.int64), nothing.astype(np.int64), nothing)

    @classmethod
    def concatenate(cls, parts: Sequence[PredicateSet]) -> PredicateSet:
        """Concatenate predicates with the same number of clauses."""
        return cls(
            np.concatenate([part.variable for part in parts]),
            np.concatenate([part.operation for part in parts]),
            np.concatenate([part.value for part in parts]),
        )

    @property
    def distinct_predicates(self) -> PredicateSet:
        """Return the predicates without duplicates, in order of first occurrence, with clauses sorted by variable."""
        order = np.argsort(self.variable, axis=1, kind="stable")
        sorted_ = PredicateSet(
            np.take_along_axis(self.variable, order, axis=1),
            np.take_along_axis(self.operation, order, axis=1),
            np.take_along_axis(self.value, order, axis=1),
        )
        # NaN would differ from NaN; the operation already tells a missing value from 0.
        columns = [*sorted_.variable.T, *sorted_.operation.T, *np.nan_to_num(sorted_.value, nan=0.0).T]
        return sorted_[np.sort(distinct_rows(columns, len(self)).first)]

    def is_singling_out(self, records: Floats) -> NDArray[np.bool_]:
        """Mark the predicates that hold for exactly one of the records (n, d), (P,)."""
        counts, left = np.zeros(len(self), dtype=np.int64), np.arange(len(self))
        for piece in _growing_pieces(records):
            if not len(left):
                break
            counts[left] += self[left]._count_matches(piece)
            left = left[counts[left] < 2]
        return np.asarray(counts == 1)

    def _count_matches(self, records: Floats) -> Integers:
        """Return the number of records (n, d) each predicate holds for, (P,)."""
        return np.concatenate(
            [np.zeros(0, np.int64), *(np.bitwise_count(bits).sum(axis=1) for bits in self._match_bits(records))],
            dtype=np.int64,
        )

    def _match_bits(self, records: Floats) -> Iterator[NDArray[np.uint8]]:
        """Yield whether predicates hold for each of the records (n, d), a bit a record, for some predicates at a time.

        Each array is (p, bytes) with bits in the order of the records, and zeros behind them.
        """
        # Predicates share clauses. Each clause is compared once, and takes one bit a record.
        n, width = len(records), 8 * max(1, -(-len(records) // 64))
        step, block = (max(1, most // max(1, n)) for most in (8 * CELLS, CELLS))
        for first in range(0, len(self), step):
            part = self[np.arange(first, min(first + step, len(self)))]
            kind = part.variable * (MISSING + 1) + part.operation
            bits, place, made = [], np.zeros(kind.shape, dtype=np.int64), 0
            for one in np.unique(kind):
                own = kind == one
                variable, operation = divmod(int(one), MISSING + 1)
                values, which = np.unique(part.value[own], return_inverse=True)
                place[own] = made + which
                made += len(values)
                for start in range(0, len(values), block):
                    held = _compare_column(records[:, variable], operation, values[start : start + block])
                    packed = np.packbits(held, axis=1)
                    bits.append(np.pad(packed, ((0, 0), (0, width - packed.shape[1]))))
            clauses = np.concatenate(bits).view(np.uint64)
            first_clause, *others = place.T
            found = clauses[first_clause]
            for other in others:
                found &= clauses[other]
            yield found.view(np.uint8)

    def count_and_match(self, records: Floats, most: int) -> tuple[Integers, Integers, Integers]:
        """Return the number of records (n, d) each predicate holds for, (P,), and the pairs of predicate and record.

        Pairs are returned for predicates that hold for at most ``most`` records.
        """
        counts, pairs = [np.zeros(0, dtype=np.int64)], [np.empty((2, 0), dtype=np.int64)]
        start = 0
        for bits in self._match_bits(records):
            counts.append(np.bitwise_count(bits).sum(axis=1, dtype=np.int64))
            few = np.flatnonzero(counts[-1] <= most)
            of, byte = np.nonzero(bits[few])
            which, bit = np.nonzero(np.unpackbits(bits[few][of, byte][:, None], axis=1))
            pairs.append(np.vstack([few[of[which]] + start, 8 * byte[which] + bit]))
            start += len(bits)
        predicate, record = np.concatenate(pairs, axis=1)
        return np.concatenate(counts), predicate, record


def _growing_pieces(records: Floats) -> Iterator[Floats]:
    """Yield all records (n, d) in pieces that grow eightfold, each a cross-section of the table if that is sorted."""
    stride = max(1, len(records) // FEWEST)
    place = np.arange(len(records)) % stride
    low, high = 0, 1
    while low < stride:
        own = np.flatnonzero((place >= low) & (place < high))
        for start in range(0, len(own), MOST_RECORDS):
            yield records[own[start : start + MOST_RECORDS]]
        low, high = high, 8 * high


def _compare_column(column: Floats, operation: int, values: Floats) -> NDArray[np.bool_]:
    """Compare a column (n,) with values (p,) and return a mask (p, n); a missing value satisfies no comparison."""
    if operation == MISSING:
        return np.broadcast_to(np.isnan(column), (len(values), len(column)))
    if operation == EQUAL:
        return np.asarray(column[None, :] == values[:, None])
    if operation == AT_MOST:
        return np.asarray(column[None, :] <= values[:, None])
    return np.asarray(column[None, :] >= values[:, None])


def tables_as_floats(tables: Sequence[Microdata], names: Sequence[str]) -> list[Floats]:
    """Return the variables of each table as floats, (n, d), with level codes that agree between the tables.

    Raises NotComputable like ``Microdata.numbers``.
    """
    columns: list[list[Floats]] = [[] for _ in tables]
    for name in names:
        if not tables[0].schema[name].kind.has_levels:
            for own, table in zip(columns, tables, strict=True):
                own.append(table.numbers(name))
            continue
        levels = pd.Index(list(dict.fromkeys(c for table in tables for c in table.column(name).cat.categories)))
        for own, table in zip(columns, tables, strict=True):
            codes = table.numbers(name)
            here = levels.get_indexer(pd.Index(table.column(name).cat.categories)).astype(np.float64)
            own.append(np.where(np.isnan(codes), np.nan, here[np.nan_to_num(codes).astype(np.intp)]))
    # Sorted by value, so that random draws do not depend on the order of the file.
    return [table[_order_by_value(table)] for table in map(np.column_stack, columns)]


def _order_by_value(table: Floats) -> Integers:
    """Return the rows of a table (n, d) in the order of their values."""
    return np.lexsort(table.T[::-1])


def _units_in_order_of_values(data: Microdata, controls: Microdata, names: Sequence[str]) -> UnitsOfBoth | None:
    """Return the units of the records as ``tables_as_floats`` sorts both tables; None where each record is one."""
    units = units_of_both(data, np.arange(len(data)), controls, np.arange(len(controls)))
    if units is None:
        return None
    # a column of the places, which sorts last, so that it says where each record went
    placed = [
        replace(
            table,
            schema=Schema((*(table.schema[name] for name in names), Variable(PLACE, Kind.COUNT))),
            frame=table.frame[list(names)].assign(**{PLACE: np.arange(len(table))}),
            controls=None,
        )
        for table in (data, controls)
    ]
    order = [table[:, -1].astype(np.int64) for table in tables_as_floats(placed, [*names, PLACE])]
    return UnitsOfBoth(units.own[order[0]], units.others[order[1]])


def univariate_predicates(
    records: Floats, ordered: NDArray[np.bool_], most: int, rng: np.random.Generator
) -> PredicateSet:
    """Return predicates on one variable that hold for exactly one of the ``records`` (n, d).

    These are unique values, and unique minima and maxima of ordered variables.
    """
    # An equal share per variable, so that one with many values does not crowd out the others.
    each = max(1, -(-most // records.shape[1]))
    parts = [PredicateSet.empty(1)]
    for variable in range(records.shape[1]):
        column = records[:, variable]
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        lone = values[counts == 1]
        operation = np.full(len(lone), EQUAL)
        if ordered[variable] and len(values) > 1:
            ends = [(AT_MOST, values[0])] * bool(counts[0] == 1) + [(AT_LEAST, values[-1])] * bool(counts[-1] == 1)
            operation = np.concatenate([operation, np.array([which for which, _ in ends], dtype=np.int64)])
            lone = np.concatenate([lone, np.array([value for _, value in ends])])
        if np.isnan(column).sum() == 1:
            operation, lone = np.append(operation, MISSING), np.append(lone, np.nan)
        chosen = np.sort(rng.choice(len(lone), min(each, len(lone)), replace=False))
        parts.append(PredicateSet(np.full((len(chosen), 1), variable), operation[chosen, None], lone[chosen, None]))
    found = PredicateSet.concatenate(parts)
    return found[np.sort(rng.choice(len(found), min(most, len(found)), replace=False))]


def multivariate_predicates(
    records: Floats,
    ordered: NDArray[np.bool_],
    clauses: int,
    most: int,
    tries: int,
    rng: np.random.Generator,
    among: Floats | None = None,
) -> PredicateSet:
    """Return at most ``most`` predicates on ``clauses`` variables that hold for exactly one of the ``records`` (n, d).

    Each candidate is made from one record of ``among`` (k, d), by default of ``records``, and some variables: all
    combinations if there are at most ``tries``, else ``tries`` random ones. If these give fewer than ``most``, random
    ones follow until there are enough, all were tried, or ``MOST_TRIES`` were. Levels must be equal; numbers above the
    median of the records must be at least the record's number, others at most (Giomi et al. 2022, §4.2).
    """
    chosen = records if among is None else among
    size, d = chosen.shape
    clauses = min(clauses, d)
    middle = np.array([np.median(own[~np.isnan(own)]) if not np.isnan(own).all() else 0.0 for own in records.T])

    def singling_out_among(variable: Integers, record: Integers) -> PredicateSet:
        """Return the distinct candidates on some variables (T, k) of some records (T,) that single one out."""
        value = chosen[record[:, None], variable]
        operation = np.where(ordered[variable], np.where(value > middle[variable], AT_LEAST, AT_MOST), EQUAL)
        tried = PredicateSet(variable, np.where(np.isnan(value), MISSING, operation), value).distinct_predicates
        return tried[np.flatnonzero(tried.is_singling_out(records))]

    def random_candidates(number: int) -> tuple[Integers, Integers]:
        """Return the variables and the record of random candidates, which may repeat."""
        return np.argsort(rng.random((number, d)), axis=1)[:, :clauses], rng.integers(0, size, number)

    candidates = size * comb(d, clauses)
    if candidates <= tries:
        which = np.array(list(combinations(range(d), clauses)))
        found = singling_out_among(np.tile(which, (size, 1)), np.repeat(np.arange(size), len(which)))
    else:
        found = singling_out_among(*random_candidates(tries))
    done, is_countable = tries, candidates <= MOST_TRIES
    if len(found) < most and candidates > tries and is_countable:
        # In random order and without repetition, so that all are tried in the end.
        which = np.array(list(combinations(range(d), clauses)))
        order, done = rng.permutation(candidates), 0
    while len(found) < most and done < min(candidates, MOST_TRIES):
        # As many as the share found so far asks for, and somewhat more.
        share = max(len(found), 1) / max(done, tries)
        number = int(min(max(tries, 1.2 * (most - len(found)) / share), MOST_TRIES_AT_ONCE, MOST_TRIES - done))
        if is_countable:
            some = order[done : done + number]
            more = singling_out_among(which[some % len(which)], some // len(which))
        else:
            more = singling_out_among(*random_candidates(number))
        done += number
        found = PredicateSet.concatenate([found, more]).distinct_predicates
    return found[np.sort(rng.choice(len(found), min(most, len(found)), replace=False))]


def random_predicates(
    like: PredicateSet, records: Floats, whole: NDArray[np.bool_], levels: Integers, rng: np.random.Generator
) -> PredicateSet:
    """Return predicates of the same form with random values.

    Levels are uniform, numbers uniform between the extremes of ``records``.

    ``levels`` is the number of levels of each variable, 0 without levels, (d,); ``whole`` marks integer variables,
    (d,).
    """
    low, high = (np.array([own(one[~np.isnan(one)], initial=0.0) if np.isnan(one).all() else own(one[~np.isnan(one)])
                           for one in records.T]) for own in (np.min, np.max))  # fmt: skip
    at = like.variable
    level = np.floor(rng.random(at.shape) * np.maximum(levels, 1)[at])
    number = low[at] + rng.random(at.shape) * (high - low)[at]
    number = np.where(whole[at], np.rint(number), number)
    value = np.where(levels[at] > 0, level, number)
    return PredicateSet(at, like.operation, np.where(like.operation == MISSING, np.nan, value))


def _vulnerable_released_rows(released: Microdata, names: Sequence[str], requested: float | None) -> Integers:
    """Return the rows of the most vulnerable released records."""
    return score_vulnerability(
        released, select_rows(released, np.zeros(0, dtype=np.int64)), names
    ).select_most_vulnerable(vulnerable_target_count(requested, len(released)))[0]


def _is_comparable(name: str, confidential: Microdata, released: Microdata) -> bool:
    """Return whether a variable is released as values, neither as labels nor as means of level codes."""
    alike = released.schema[name].kind.has_levels == confidential.schema[name].kind.has_levels
    return alike and name not in released.generalised


def _too_few_predicates_reason(predicates: PredicateSet, spec: SinglingOutSpec, made_from: Floats) -> str:
    """Return why the predicates are too few, in words; empty if they are enough, or all that there are.

    ``made_from`` are the records (k, d) that candidates were made from.
    """
    if not len(predicates):
        return "no predicate holds of exactly one released record"
    clauses, (records, variables) = predicates.variable.shape[1], made_from.shape
    if clauses > 1 and len(predicates) < spec.most and records * comb(variables, clauses) > MOST_TRIES:
        return f"{len(predicates):,} descriptions were found in {MOST_TRIES:,} tries"
    few = len(predicates) < FEW_RIGHT_GUESSES
    return f"only {len(predicates)} predicates hold of exactly one released record" if few else ""


def _dominating_variable_remark(predicates: PredicateSet, names: list[str]) -> str:
    """Return a remark if most univariate predicates are on one of several variables; empty otherwise."""
    counts = np.bincount(predicates.variable[:, 0], minlength=len(names))
    first = int(counts.argmax())
    if len(names) < 2 or counts[first] * 2 <= len(predicates):
        return ""
    return f"{counts[first]:,} of {len(predicates):,} descriptions are by {names[first]}"


@dataclass(frozen=True, eq=False)
class _PredicateCounts:
    """Numbers of people and controls for whom each of P predicates holds.

    n_people: number n of people
    n_controls: number n_c of controls
    people_counts: number of people each predicate holds for, (P,)
    control_counts: number of controls, (P,)
    predicate_records: indicator of predicates that hold for few records, by record, (P, r)
    unit_of: number of the unit of each of these records, from 0, (r,); None where each record is one
    n_units: numbers of units of people and of controls
    """

    n_people: int
    n_controls: int
    people_counts: Integers
    control_counts: Integers
    predicate_records: csr_array
    unit_of: Integers | None = None
    n_units: tuple[int, int] = (0, 0)

    @classmethod
    def from_predicates(
        cls, predicates: PredicateSet, people: Floats, controls: Floats, units: UnitsOfBoth | None = None
    ) -> _PredicateCounts:
        """Count the people and the controls each predicate holds for."""
        n, others = len(people), len(controls)
        most = MAX_MATCHED_RECORDS * max(1, -(-others // n))
        of_people, first, record = predicates.count_and_match(people, most)
        of_controls, second, other = predicates.count_and_match(controls, most)
        # Only these can single somebody out in a permutation; the others would fill memory.
        few = of_people + of_controls <= most
        which = np.concatenate([first, second])
        at = np.concatenate([record, other + n])[few[which]]
        records, place = np.unique(at, return_inverse=True)
        pairs = csr_array(
            (np.ones(len(at), dtype=np.int32), (which[few[which]], place)), shape=(len(predicates), len(records))
        )
        if units is None:
            return cls(n, others, of_people, of_controls, pairs)
        of_all = np.concatenate([units.own, units.others + units.own.max() + 1])
        of_matched = np.unique(of_all[records], return_inverse=True)[1].astype(np.int64)
        n_units = len(np.unique(units.own)), len(np.unique(units.others))
        return cls(n, others, of_people, of_controls, pairs, of_matched, n_units)

    def attack_result(
        self, some: NDArray[np.bool_], by_chance: NDArray[np.bool_], rng: np.random.Generator, without: _PredicateCounts
    ) -> AttackResult:
        """Return the attack result for the marked predicates, (P,).

        ``without`` are predicates of the same form with random values.
        """
        total, same = int(some.sum()), min(self.n_people, self.n_controls)
        right = int((self.people_counts[some] == 1).sum())
        of_controls = float(self._control_terms(self.people_counts[some], self.control_counts[some]).sum())
        attack, control = SuccessRate(right, total), SuccessRate(of_controls, total, self.n_people / same)
        baseline = SuccessRate(int(by_chance[some].sum()), total)
        if not total or control.value >= 1:
            return AttackResult(attack, baseline, control)
        risk = residual_risk(attack.value, control.value)
        # Predicates are dependent, so binomial limits are too narrow. If the release is independent of the people,
        # people and controls are exchangeable, and permuted labels give the null distribution of the risk.
        dealt = self._permuted_risks(some, rng)
        low, high = risk - np.quantile(dealt, (0.975, 0.025))
        if right + of_controls < FEW_RIGHT_GUESSES:
            alone = residual_interval(attack, SuccessRate(control.value * total, total))
            low, high = min(low, alone[0]), max(high, alone[1])
        p_value = randomised_p_value(risk, dealt, rng.spawn(1)[0])
        gain = self._added_success(some, without, (risk - low, high - risk), dealt, independent_stream(rng))
        return AttackResult(attack, baseline, control, (float(low), float(high)), p_value, added_success=gain)

    def _added_success(
        self,
        some: NDArray[np.bool_],
        without: _PredicateCounts,
        reach: tuple[float, float],
        dealt: Floats,
        rng: np.random.Generator,
    ) -> AddedSuccess:
        """Return the success that the release adds over predicates with random values.

        ``reach``: distances of the limits below and above the excess; ``dealt``: excess under permutations,
        (PERMUTATION_COUNT,).
        """
        total, control = int(some.sum()), self._control_rate(some)
        left = 1 - control
        members = (int((self.people_counts[some] == 1).sum()) - int((without.people_counts[some] == 1).sum())) / total
        controls = control - without._control_rate(some)
        apart = without._permuted_risks(some, rng)
        # The predicates without the release are permuted separately, as if independent of those of the release.
        more = Z_95 * float(np.std(apart))
        p_value = randomised_p_value((members - controls) / left, dealt - apart, rng)
        ends = math.hypot(reach[0], more), math.hypot(reach[1], more)
        return AddedSuccess(members, controls, (ends[0] + ends[1]) / (2 * Z_95) * left, p_value, ends)

    def _control_rate(self, some: NDArray[np.bool_]) -> float:
        """Return the rate c at which the marked predicates (P,) single out a control."""
        scale = self.n_people / min(self.n_people, self.n_controls)
        terms = float(self._control_terms(self.people_counts[some], self.control_counts[some]).sum())
        return min(1.0, scale * terms / int(some.sum()))

    def _permuted_risks(self, some: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
        """Return the residual risk under random relabelling of people and controls, (PERMUTATION_COUNT,).

        Units are relabelled whole. Numbers of people and controls are then those observed, from which the permuted ones
        differ by the few records of a unit.
        """
        pairs, records = self.predicate_records[np.flatnonzero(some)], self.predicate_records.shape[1]
        held, total, scale = (
            np.asarray(pairs.sum(axis=1)).ravel(),
            int(some.sum()),
            self.n_people / min(self.n_people, self.n_controls),
        )
        found = np.zeros(PERMUTATION_COUNT)
        step = max(1, 4_000_000 // max(1, records, total))
        items, of_people, of_others = records, self.n_people, self.n_controls
        if self.unit_of is not None:
            items, (of_people, of_others) = int(self.unit_of.max(initial=-1)) + 1, self.n_units
        among = (
            # Only the matched records matter; how many of these are controls is hypergeometric.
            rng.hypergeometric(of_others, of_people, items, PERMUTATION_COUNT)
            if items
            else np.zeros(PERMUTATION_COUNT, dtype=np.int64)
        )
        for start in range(0, PERMUTATION_COUNT, step):
            here = among[start : start + step]
            order = np.argsort(rng.random((len(here), items)), axis=1)
            control = np.zeros(order.shape, dtype=np.int32)
            np.put_along_axis(control, order, np.arange(items) < here[:, None], axis=1)
            if self.unit_of is not None:
                control = control[:, self.unit_of]
            matched_controls = pairs @ control.T
            matched_people = held[:, None] - matched_controls
            success = (matched_people == 1).sum(axis=0) / total
            beside = np.minimum(1.0, scale * self._control_terms(matched_people, matched_controls).sum(axis=0) / total)
            left = np.maximum(1 - beside, 1 / total)
            found[start : start + step] = np.where(beside < 1, (success - beside) / left, 0.0)
        return found

    def _control_terms(self, of_people: Integers, of_controls: Integers) -> Floats:
        """Return P(1 | k_c) h(k_t) of each predicate, in the shape of the counts."""
        same = min(self.n_people, self.n_controls)
        one = _hypergeometric_chance(self.n_controls, of_controls, same, 1)
        none = _hypergeometric_chance(self.n_people, of_people, self.n_people - same, 0)
        return np.asarray(one * none)


def _hypergeometric_chance(records: int, marked: Integers, drawn: int, wanted: int) -> Floats:
    """Return the probability that a sample contains exactly ``wanted`` of the ``marked`` records.

    ``drawn`` of ``records`` are sampled without replacement; the result has the shape of ``marked``.
    """
    from scipy.stats import hypergeom

    different, place = np.unique(marked, return_inverse=True)
    found: Floats = hypergeom.pmf(wanted, records, different, drawn)[place].reshape(marked.shape)
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class SinglingOutSpec(Spec):
    """Settings: variables of the predicates, and number of predicates."""

    variables: Annotated[
        tuple[str, ...],
        Param(
            "variables that predicates speak of; left out, all but identifiers",
            names="variables",
            reported=True,
        ),
    ] = ()
    most: Annotated[int, Param("most predicates of a kind", ge=1, le=10_000)] = 1000
    clauses: Annotated[int, Param("variables of a multivariate predicate", ge=2, le=20)] = 3
    by_variable: Annotated[bool, Param("also the univariate predicates of each variable alone")] = False
    people: TargetKinds = BOTH_TARGET_KINDS
    vulnerable: VulnerableTargets = None

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> SinglingOutSpec:
        """Return these settings with all variables but identifiers if none are named."""
        names = self.variables or schema.non_identifiers
        return replace(self, variables=names)

    def check(self, schema: Schema, place: str) -> None:
        """Raise BadInput if there is no variable."""
        super(SinglingOutSpec, self).check(schema, place)
        names = self.for_release(schema, ()).variables
        if not names:
            raise BadInput(f"{place}.variables", "there is no variable but identifiers; name some")


def _draft_offer(case: Case) -> Offer | DeclinedOffer | None:
    """Offer the measure if records are held out."""
    if case.want != "synthesis":
        return None
    if not case.holdout:
        return DeclinedOffer(WITHOUT_CONTROLS)
    return Offer(
        "whether descriptions found in the release fit exactly one person of the data, oftener than one of the others",
    )


SCENE = (
    "An intruder describes exactly one released record by some of its values. He succeeds where the description fits "
    "exactly one person too."
)
WITHOUT = "Without the release he describes with values picked at random."


@measure_method(
    "Singling out",
    spec=SinglingOutSpec,
    source="Giomi, Boenisch, Wehmeyer & Tasnádi (2022), arXiv 2211.10459, §3 and §4.2; Cohen & Nissim (2020), PNAS 117(15)",
    outputs=attack_outputs(
        "singling-out",
        "predicates",
        "hold of exactly one",
        ("singling out",),
        IDENTITY,
        scene=SCENE,
        without=WITHOUT,
        rates=(
            "Of {guesses} descriptions {count} fit exactly one record of the data.",
            "{count} fit exactly one record of outsiders.",
        ),
    ),
    confidential=True,
    controls=True,
    combine=combine_attacks,
)
@drafts(_draft_offer)
def singling_out(confidential: Microdata, released: Microdata, spec: SinglingOutSpec, run: Run) -> Measure:
    """Compare how often predicates made from the release and random ones single out people and controls.

    Raises NotComputable if all variables are generalised.
    """
    controls = confidential.controls
    assert controls is not None
    names = sorted(name for name in spec.variables if _is_comparable(name, confidential, released))
    if not names:
        raise NotComputable(
            "every variable is generalised: no predicate on labels or means of levels can be compared with a value"
        )
    remark = "" if len(names) == len(spec.variables) else f"only of {', '.join(names)}: the others are generalised"
    people, others, shown = tables_as_floats((confidential, controls, released), names)
    units = _units_in_order_of_values(confidential, controls, names)
    kinds = [confidential.schema[name].kind for name in names]
    ordered = np.array([kind in (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE) for kind in kinds])
    whole = np.array([kind in (Kind.COUNT, Kind.DATE) for kind in kinds])
    levels = np.array(
        [0 if own else len(controls.column(name).cat.categories) for name, own in zip(names, ordered, strict=True)]
    )
    rngs = run.rng.spawn(4)
    found: list[Estimate] = []
    made = {"univariate": univariate_predicates(shown, ordered, spec.most, rngs[0])}
    if len(names) > 1:
        made["multivariate"] = multivariate_predicates(
            shown, ordered, spec.clauses, spec.most, TRIES_PER_PREDICATE * spec.most, rngs[1]
        )
    for (kind, predicates), rng in zip(made.items(), rngs[2:], strict=False):
        if "random" not in spec.people:
            continue
        tried = _PredicateCounts.from_predicates(predicates, people, others, units)
        base = random_predicates(predicates, others, whole, levels, rng)
        by_chance = base.is_singling_out(people)
        without = _PredicateCounts.from_predicates(base, people, others, units)
        every = np.ones(len(predicates), dtype=np.bool_)
        why = remark or _dominating_variable_remark(predicates, names) if kind == "univariate" else remark
        found += tried.attack_result(every, by_chance, rng, without).estimates(
            reason=why or _too_few_predicates_reason(predicates, spec, shown), kind=kind
        )
        if kind == "univariate" and spec.by_variable:
            for position, name in enumerate(names):
                own = predicates.variable[:, 0] == position
                why = "" if own.any() else "no value of it is one released record's alone"
                found += tried.attack_result(own, by_chance, rng, without).estimates(name, why, kind=kind)
    if "vulnerable" in spec.people and len(names) > 1:
        rng = run.rng.spawn(1)[0]
        some, by_value = _vulnerable_released_rows(released, names, spec.vulnerable), (confidential, controls, released)
        among = tables_as_floats((*by_value, select_rows(released, some)), names)[3]
        predicates = multivariate_predicates(
            shown, ordered, spec.clauses, spec.most, TRIES_PER_PREDICATE * spec.most, rng, among
        )
        base = random_predicates(predicates, others, whole, levels, rng)
        tried, without = (_PredicateCounts.from_predicates(one, people, others, units) for one in (predicates, base))
        every = np.ones(len(predicates), dtype=np.bool_)
        result = tried.attack_result(every, base.is_singling_out(people), rng, without)
        found += result.estimates(
            reason=remark or _too_few_predicates_reason(predicates, spec, among),
            kind="multivariate",
            people="vulnerable",
        )
    return Measure(tuple(found))
