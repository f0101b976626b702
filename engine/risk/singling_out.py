"""Singling out: are there predicates, made from the release, that hold of exactly one of the people it was made from?

The intruder makes predicates that hold of exactly one released record (``Predicates``). Each is a guess that the predicate holds of exactly one of the
people. The guess is right where it holds of exactly one confidential record. A rare predicate singles somebody out by chance: the risk is the
difference between the success rate for these people and that for people whom the release has never seen (Giomi et al. 2022, §3).

**Controls of another number.** The number of records that a predicate singles out depends on the number of records. So controls take the place of people:
of n confidential records n' = min(n, n_c), drawn at random, are replaced by n' controls. A guess is right of controls where it holds of exactly one
record of this table and this record is a control. A release that is independent of the people singles out any n' of them equally often,

    c = n / n' * 1/N * sum over the N predicates of  P(1 | k_c) * h(k_t),     h(k) = product over i < k of (n' - i) / (n - i)

which has the expectation of a, whatever the share that was held out. k_t and k_c are the numbers of confidential and control records that a predicate
holds of, h is the probability that none of the former is among the n - n' that stay, P(1 | k_c) that one of the latter is among n' of the n_c. Both are
exact averages over all such draws. With as many controls as records c is the share of the predicates that hold of exactly one control.

**Without the release.** Predicates of the same form whose values are drawn at random are held against people and controls alike: ``added_risk`` takes off what
these single out (``_attack``).

**The interval of the excess.** Predicates are not independent: ``age >= 89`` and ``age >= 90`` single out the same person. If the release is independent
of the people, people and controls are exchangeable: permuting who is a control gives the null distribution of the residual
risk, including the dependence between predicates. The limits are the estimate minus the quantiles of the permuted risks. Where so few
predicates are right that permutations say little, they are at least as wide as for independent guesses.

Predicates on the variables of a table, and which records they hold of: many at once, no loop over predicates or records.

A predicate is a conjunction of clauses, each on one variable: equal to a value, at most it, at least it, or missing. A predicate that holds of
exactly one record singles that record out (Cohen & Nissim 2020, PNAS 117(15); Giomi et al. 2022, §3.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Annotated

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..adversary.permuted import randomised_p_value
from ..adversary.targets import (
    BOTH_TARGET_KINDS,
    TargetKinds,
    VulnerableTargets,
    score_vulnerability,
    vulnerable_target_count,
)
from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.schema import Kind, Schema
from ..errors import BadInput, NotComputable
from ..methods.drafting import Case, DeclinedOffer, Offer, drafts
from ..methods.levers import IDENTITY
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..statistics.score_interval import Z
from ._attack import (
    WITHOUT_CONTROLS,
    AttackResult,
    Gain,
    Rate,
    attack_outputs,
    combined,
    residual_interval,
    residual_risk,
)
from ._attacked_records import of_rows, stream_aside

EQUAL, AT_MOST, AT_LEAST, MISSING = range(4)
CELLS = 4_000_000
"""Predicates times records that are looked at together."""
PIECES, FEWEST = 64, 500
"""Pieces of a table at most, and records of a piece at least, after each of which predicates that hold of too many are left."""
TRIES = 10
"""Multivariate predicates that are tried for each that is wanted."""
DEALS = 1000
FEW = 10
"""With fewer right guesses than this, of people and controls together, permutations say too little."""
LARGEST = 40
"""A predicate that holds of more records, of as many confidential ones and controls, singles nobody out in any permutation (40 / 2^40)."""


@dataclass(frozen=True, eq=False)
class Predicates:
    """P conjunctions of k clauses: the position of the variable, the operation and the value of each, all (P, k)."""

    variable: Integers
    operation: Integers
    value: Floats

    def __len__(self) -> int:
        return len(self.variable)

    def __getitem__(self, some: NDArray[np.bool_] | NDArray[np.intp]) -> Predicates:
        return Predicates(self.variable[some], self.operation[some], self.value[some])

    @classmethod
    def none(cls, clauses: int) -> Predicates:
        nothing = np.empty((0, clauses))
        return cls(nothing.astype(np.int64), nothing.astype(np.int64), nothing)

    @classmethod
    def together(cls, parts: Sequence[Predicates]) -> Predicates:
        """Predicates of as many clauses each, one after another."""
        return cls(
            np.concatenate([part.variable for part in parts]),
            np.concatenate([part.operation for part in parts]),
            np.concatenate([part.value for part in parts]),
        )

    @property
    def distinct(self) -> Predicates:
        """Each predicate once, in the order in which they first come; clauses stand in the order of their variables."""
        order = np.argsort(self.variable, axis=1, kind="stable")
        sorted_ = Predicates(
            np.take_along_axis(self.variable, order, axis=1),
            np.take_along_axis(self.operation, order, axis=1),
            np.take_along_axis(self.value, order, axis=1),
        )
        said = np.hstack([sorted_.variable, sorted_.operation, np.nan_to_num(sorted_.value, nan=0.0)])
        _, first = np.unique(said, axis=0, return_index=True)
        return sorted_[np.sort(first)]

    def holds(self, records: Floats) -> NDArray[np.bool_]:
        """Of which records (n, d) each predicate holds, (P, n): a block of few predicates at a time is meant."""
        found = np.ones((len(self), len(records)), dtype=np.bool_)
        for clause in range(self.variable.shape[1]):
            for variable in np.unique(self.variable[:, clause]):
                column = records[:, variable]
                for operation in np.unique(self.operation[self.variable[:, clause] == variable, clause]):
                    own = (self.variable[:, clause] == variable) & (self.operation[:, clause] == operation)
                    found[own] &= _compared(column, int(operation), self.value[own, clause])
        return found

    def singles_out(self, records: Floats) -> NDArray[np.bool_]:
        """Which predicates hold of exactly one of the records (n, d), (P,).

        Those that hold of two are not looked at any further. Records that are alike stand together, so each piece has some from everywhere.
        """
        counts, left = np.zeros(len(self), dtype=np.int64), np.arange(len(self))
        pieces = max(1, min(PIECES, len(records) // FEWEST))
        for first in range(pieces):
            piece = np.ascontiguousarray(records[first::pieces])
            step = max(1, CELLS // max(1, len(piece)))
            for start in range(0, len(left), step):
                some = left[start : start + step]
                counts[some] += np.count_nonzero(self[some].holds(piece), axis=1)
            left = left[counts[left] < 2]
        return np.asarray(counts == 1)

    def matches(self, records: Floats, most: int) -> tuple[Integers, Integers, Integers]:
        """How many records (n, d) each predicate holds of, (P,); and pairs of predicate and record, of predicates with at most ``most``."""
        counts, pairs = np.zeros(len(self), dtype=np.int64), [np.empty((2, 0), dtype=np.int64)]
        step = max(1, CELLS // max(1, len(records)))
        for start in range(0, len(self), step):
            found = self[np.arange(start, min(start + step, len(self)))].holds(records)
            counts[start : start + step] = found.sum(axis=1)
            few = np.flatnonzero(counts[start : start + step] <= most)
            of, record = np.nonzero(found[few])
            pairs.append(np.vstack([few[of] + start, record]))
        predicate, record = np.concatenate(pairs, axis=1)
        return counts, predicate, record


def _compared(column: Floats, operation: int, values: Floats) -> NDArray[np.bool_]:
    """A comparison of a column (n,) with values (p,), (p, n); nothing compares with a missing value."""
    if operation == MISSING:
        return np.broadcast_to(np.isnan(column), (len(values), len(column)))
    if operation == EQUAL:
        return np.asarray(column[None, :] == values[:, None])
    if operation == AT_MOST:
        return np.asarray(column[None, :] <= values[:, None])
    return np.asarray(column[None, :] >= values[:, None])


def tables_of_numbers(tables: Sequence[Microdata], names: Sequence[str]) -> list[Floats]:
    """The variables of each table as floats, (n, d), in an order of records that their values alone decide.

    Levels have one code in all tables. Raises NotComputable like ``Microdata.numbers``.
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
    found = [np.column_stack(own) for own in columns]
    return [table[np.lexsort(table.T[::-1])] for table in found]


def univariate(records: Floats, ordered: NDArray[np.bool_], most: int, rng: np.random.Generator) -> Predicates:
    """Predicates on one variable that hold of exactly one of the ``records`` (n, d): a value that no other has, and the ends of ordered ones.

    At most ``most``, and of each variable at most its share of them, so that none with many values outnumbers all others.
    """
    each = max(1, -(-most // records.shape[1]))
    parts = [Predicates.none(1)]
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
        parts.append(Predicates(np.full((len(chosen), 1), variable), operation[chosen, None], lone[chosen, None]))
    found = Predicates.together(parts)
    return found[np.sort(rng.choice(len(found), min(most, len(found)), replace=False))]


def multivariate(
    records: Floats,
    ordered: NDArray[np.bool_],
    clauses: int,
    most: int,
    tries: int,
    rng: np.random.Generator,
    among: Floats | None = None,
) -> Predicates:
    """At most ``most`` predicates on ``clauses`` variables that hold of exactly one of the ``records`` (n, d), from at most ``tries`` candidates.

    Each is made from one record and some variables, all of them where there are no more than ``tries``, else drawn at random: its level or that it has none, and of a number at least it where it is above the
    median of the records, at most it otherwise (Giomi et al. 2022, §4.2). The one record is of ``among`` (k, d), some of the records, where these are given.
    """
    chosen = records if among is None else among
    size, d = chosen.shape
    clauses = min(clauses, d)
    if size * comb(d, clauses) <= tries:
        which = np.array(list(combinations(range(d), clauses)))
        variable, record = np.tile(which, (size, 1)), np.repeat(np.arange(size), len(which))
    else:
        variable, record = np.argsort(rng.random((tries, d)), axis=1)[:, :clauses], rng.integers(0, size, tries)
    value = chosen[record[:, None], variable]
    middle = np.array([np.median(own[~np.isnan(own)]) if not np.isnan(own).all() else 0.0 for own in records.T])
    operation = np.where(ordered[variable], np.where(value > middle[variable], AT_LEAST, AT_MOST), EQUAL)
    tried = Predicates(variable, np.where(np.isnan(value), MISSING, operation), value).distinct
    found = np.flatnonzero(tried.singles_out(records))
    return tried[np.sort(rng.choice(found, min(most, len(found)), replace=False))]


def guessed(
    like: Predicates, records: Floats, whole: NDArray[np.bool_], levels: Integers, rng: np.random.Generator
) -> Predicates:
    """Predicates of the form of others whose values are drawn at random: evenly from the ``levels`` (d,), or between the ends of ``records``.

    ``levels`` is 0 for what has none; of ``whole`` variables (d,) numbers are whole.
    """
    low, high = (np.array([own(one[~np.isnan(one)], initial=0.0) if np.isnan(one).all() else own(one[~np.isnan(one)])
                           for one in records.T]) for own in (np.min, np.max))  # fmt: skip
    at = like.variable
    level = np.floor(rng.random(at.shape) * np.maximum(levels, 1)[at])
    number = low[at] + rng.random(at.shape) * (high - low)[at]
    number = np.where(whole[at], np.rint(number), number)
    value = np.where(levels[at] > 0, level, number)
    return Predicates(at, like.operation, np.where(like.operation == MISSING, np.nan, value))


def _vulnerable(released: Microdata, names: Sequence[str], asked: float | None) -> Integers:
    """Rows of the released records that are the most vulnerable among the released ones."""
    return score_vulnerability(released, of_rows(released, np.zeros(0, dtype=np.int64)), names).select_most_vulnerable(
        vulnerable_target_count(asked, len(released))
    )[0]


def _comparable(name: str, confidential: Microdata, released: Microdata) -> bool:
    """Whether a variable is released as values, neither as labels nor as means of level codes."""
    alike = released.schema[name].kind.has_levels == confidential.schema[name].kind.has_levels
    return alike and name not in released.generalised


def _none(predicates: Predicates) -> str:
    if not len(predicates):
        return "no predicate holds of exactly one released record"
    return f"only {len(predicates)} predicates hold of exactly one released record" if len(predicates) < FEW else ""


def _ruled(predicates: Predicates, names: list[str]) -> str:
    """That most univariate predicates are of one variable, where others have any; empty otherwise."""
    counts = np.bincount(predicates.variable[:, 0], minlength=len(names))
    first = int(counts.argmax())
    if len(names) < 2 or counts[first] * 2 <= len(predicates):
        return ""
    return f"{counts[first]:,} of {len(predicates):,} predicates are of {names[first]}"


@dataclass(frozen=True, eq=False)
class _Tried:
    """Of how many of the n people and the n_c controls each predicate holds, (P,) both; and which of all records, numbered from 0, (P, r), of those that hold of few."""

    people: int
    controls: int
    of_people: Integers
    of_controls: Integers
    pairs: csr_array

    @classmethod
    def of(cls, predicates: Predicates, people: Floats, controls: Floats) -> _Tried:
        n, others = len(people), len(controls)
        most = LARGEST * max(1, -(-others // n))
        of_people, first, record = predicates.matches(people, most)
        of_controls, second, other = predicates.matches(controls, most)
        few = of_people + of_controls <= most
        which = np.concatenate([first, second])
        at = np.concatenate([record, other + n])[few[which]]
        records, place = np.unique(at, return_inverse=True)
        pairs = csr_array(
            (np.ones(len(at), dtype=np.int32), (which[few[which]], place)), shape=(len(predicates), len(records))
        )
        return cls(n, others, of_people, of_controls, pairs)

    def result(
        self, some: NDArray[np.bool_], by_chance: NDArray[np.bool_], rng: np.random.Generator, without: _Tried
    ) -> AttackResult:
        """The attack by some of the predicates (P,); ``without`` are predicates of the same form that are drawn without the release."""
        total, same = int(some.sum()), min(self.people, self.controls)
        right = int((self.of_people[some] == 1).sum())
        of_controls = float(self._control_terms(self.of_people[some], self.of_controls[some]).sum())
        attack, control = Rate(right, total), Rate(of_controls, total, self.people / same)
        baseline = Rate(int(by_chance[some].sum()), total)
        if not total or control.value >= 1:
            return AttackResult(attack, baseline, control)
        risk = residual_risk(attack.value, control.value)
        dealt = self._dealt(some, rng)
        low, high = risk - np.quantile(dealt, (0.975, 0.025))
        if right + of_controls < FEW:
            alone = residual_interval(attack, Rate(control.value * total, total))
            low, high = min(low, alone[0]), max(high, alone[1])
        p_value = randomised_p_value(risk, dealt, rng.spawn(1)[0])
        gain = self._gain(some, without, (risk - low, high - risk), dealt, stream_aside(rng))
        return AttackResult(attack, baseline, control, (float(low), float(high)), p_value, gain=gain)

    def _gain(
        self,
        some: NDArray[np.bool_],
        without: _Tried,
        reach: tuple[float, float],
        dealt: Floats,
        rng: np.random.Generator,
    ) -> Gain:
        """What the release adds. ``reach`` is how far the limits of the excess are below and above it, ``dealt`` (DEALS,) the permuted excess.

        The predicates without the release are permuted by themselves, as if independent of those of the release.
        """
        total, control = int(some.sum()), self._control_rate(some)
        left = 1 - control
        members = (int((self.of_people[some] == 1).sum()) - int((without.of_people[some] == 1).sum())) / total
        controls = control - without._control_rate(some)
        apart = without._dealt(some, rng)
        more = Z * float(np.std(apart))
        p_value = randomised_p_value((members - controls) / left, dealt - apart, rng)
        ends = math.hypot(reach[0], more), math.hypot(reach[1], more)
        return Gain(members, controls, (ends[0] + ends[1]) / (2 * Z) * left, p_value, ends)

    def _control_rate(self, some: NDArray[np.bool_]) -> float:
        """Return how often some of the predicates (P,) single out a control in place of one of the people."""
        scale = self.people / min(self.people, self.controls)
        terms = float(self._control_terms(self.of_people[some], self.of_controls[some]).sum())
        return min(1.0, scale * terms / int(some.sum()))

    def _dealt(self, some: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
        """The residual risk with permuted labels of people and controls, (DEALS,)."""
        pairs, records = self.pairs[np.flatnonzero(some)], self.pairs.shape[1]
        held, total, scale = (
            np.asarray(pairs.sum(axis=1)).ravel(),
            int(some.sum()),
            self.people / min(self.people, self.controls),
        )
        found = np.zeros(DEALS)
        step = max(1, 4_000_000 // max(1, records, total))
        among = (
            rng.hypergeometric(self.controls, self.people, records, DEALS)
            if records
            else np.zeros(DEALS, dtype=np.int64)
        )
        for start in range(0, DEALS, step):
            here = among[start : start + step]
            order = np.argsort(rng.random((len(here), records)), axis=1)
            control = np.zeros(order.shape, dtype=np.int32)
            np.put_along_axis(control, order, np.arange(records) < here[:, None], axis=1)
            of_controls = pairs @ control.T
            of_people = held[:, None] - of_controls
            success = (of_people == 1).sum(axis=0) / total
            beside = np.minimum(1.0, scale * self._control_terms(of_people, of_controls).sum(axis=0) / total)
            left = np.maximum(1 - beside, 1 / total)
            found[start : start + step] = np.where(beside < 1, (success - beside) / left, 0.0)
        return found

    def _control_terms(self, of_people: Integers, of_controls: Integers) -> Floats:
        """P(1 | k_c) h(k_t) of each predicate: how probably it singles out a control that stands among the people, of their shape."""
        same = min(self.people, self.controls)
        one = _chosen(self.controls, of_controls, same, 1)
        none = _chosen(self.people, of_people, self.people - same, 0)
        return np.asarray(one * none)


def _chosen(records: int, marked: Integers, drawn: int, wanted: int) -> Floats:
    """The probability that a sample of ``drawn`` of all ``records``, without replacement, has exactly ``wanted`` of the ``marked`` ones, in their shape."""
    from scipy.stats import hypergeom

    table = hypergeom.pmf(wanted, records, np.arange(int(marked.max(initial=0)) + 1), drawn)
    found: Floats = table[marked]
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class SinglingOutSpec(Spec):
    """Of what predicates are made, and how many."""

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
        """All variables but identifiers, where none are named."""
        names = self.variables or schema.non_identifiers
        return replace(self, variables=names)

    def check(self, schema: Schema, place: str) -> None:
        """BadInput where there is no variable."""
        super(SinglingOutSpec, self).check(schema, place)
        names = self.for_release(schema, ()).variables
        if not names:
            raise BadInput(f"{place}.variables", "there is no variable but identifiers; name some")


def _offer(case: Case) -> Offer | DeclinedOffer | None:
    """Whether the release says what is true of one person alone."""
    if case.want != "synthesis":
        return None
    if not case.holdout:
        return DeclinedOffer(WITHOUT_CONTROLS)
    return Offer(
        "whether descriptions found in the release fit exactly one person of the data, oftener than one of the others",
    )


@measure_method(
    "Singling out",
    spec=SinglingOutSpec,
    source="Giomi, Boenisch, Wehmeyer & Tasnádi (2022), arXiv 2211.10459, §3 and §4.2; Cohen & Nissim (2020), PNAS 117(15)",
    outputs=attack_outputs("singling-out", "predicates", "hold of exactly one", ("singling out",), IDENTITY),
    confidential=True,
    controls=True,
    combine=combined,
)
@drafts(_offer)
def singling_out(confidential: Microdata, released: Microdata, spec: SinglingOutSpec, run: Run) -> Measure:
    """Univariate and multivariate predicates that hold of one released record each, against people, controls, and predicates made at random.

    Raises NotComputable where all variables are generalised.
    """
    controls = confidential.controls
    assert controls is not None
    names = sorted(name for name in spec.variables if _comparable(name, confidential, released))
    if not names:
        raise NotComputable(
            "every variable is generalised: no predicate on labels or means of levels can be held against a value"
        )
    remark = "" if len(names) == len(spec.variables) else f"only of {', '.join(names)}: the others are generalised"
    people, others, shown = tables_of_numbers((confidential, controls, released), names)
    kinds = [confidential.schema[name].kind for name in names]
    ordered = np.array([kind in (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE) for kind in kinds])
    whole = np.array([kind in (Kind.COUNT, Kind.DATE) for kind in kinds])
    levels = np.array(
        [0 if own else len(controls.column(name).cat.categories) for name, own in zip(names, ordered, strict=True)]
    )
    rngs = run.rng.spawn(4)
    found: list[Estimate] = []
    made = {"univariate": univariate(shown, ordered, spec.most, rngs[0])}
    if len(names) > 1:
        made["multivariate"] = multivariate(shown, ordered, spec.clauses, spec.most, TRIES * spec.most, rngs[1])
    for (kind, predicates), rng in zip(made.items(), rngs[2:], strict=False):
        if "random" not in spec.people:
            continue
        tried = _Tried.of(predicates, people, others)
        base = guessed(predicates, others, whole, levels, rng)
        by_chance = base.singles_out(people)
        without = _Tried.of(base, people, others)
        every = np.ones(len(predicates), dtype=np.bool_)
        why = remark or _ruled(predicates, names) if kind == "univariate" else remark
        found += tried.result(every, by_chance, rng, without).estimates(reason=why or _none(predicates), kind=kind)
        if kind == "univariate" and spec.by_variable:
            for position, name in enumerate(names):
                own = predicates.variable[:, 0] == position
                why = "" if own.any() else "no value of it is one released record's alone"
                found += tried.result(own, by_chance, rng, without).estimates(name, why, kind=kind)
    if "vulnerable" in spec.people and len(names) > 1:
        rng = run.rng.spawn(1)[0]
        some, by_value = _vulnerable(released, names, spec.vulnerable), (confidential, controls, released)
        among = tables_of_numbers((*by_value, of_rows(released, some)), names)[3]
        predicates = multivariate(shown, ordered, spec.clauses, spec.most, TRIES * spec.most, rng, among)
        base = guessed(predicates, others, whole, levels, rng)
        tried, without = (_Tried.of(one, people, others) for one in (predicates, base))
        every = np.ones(len(predicates), dtype=np.bool_)
        result = tried.result(every, base.singles_out(people), rng, without)
        found += result.estimates(reason=remark or _none(predicates), kind="multivariate", people="vulnerable")
    return Measure(tuple(found))
