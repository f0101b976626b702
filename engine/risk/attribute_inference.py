"""Attribute inference: excess accuracy of guesses at sensitive values of people in the data over people who are not.

The intruder knows some variables of a person, takes the released records nearest to the person in these, and guesses
the sensitive value from theirs. The same guesses are made for control records, which the release was not made from.
Right guesses beyond the rate of the controls are a disclosure (Francis & Wagner 2025; Giomi et al. 2022, §3.1). The
baseline is the best constant guess, learned from the controls.

A level is guessed as the most frequent one of the neighbours, a number or date as the neighbour's value that lies
within the radius of most of them. Ties are broken at random, and the probability of a right guess counts. A missing
level is a value; records with a missing number are neither attacked nor learned from.

``added_risk`` subtracts the success without the release: members and controls are guessed from a random half of all
other people, members and controls (``_attack``, ``OtherPeople``). An intruder may ignore known variables, so that
several sets of them are tried (``_best_strategy``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Protocol, Self

import numpy as np

from ..adversary.nearest_records import NearestRecords
from ..adversary.permuted import UnitsOfBoth, exact_p_value
from ..adversary.targets import BOTH_TARGET_KINDS, TargetKind, TargetKinds, VulnerableTargets, draw_vulnerable_rows
from ..data.arrays import Booleans, Floats, Integers
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.schema import Kind, Role, Schema
from ..errors import BadInput, NotComputable
from ..matching.intruder import check_log_scale
from ..matching.radius import Radii, Radius
from ..matching.strategies import IntruderStrategy, make_strategy
from ..methods.drafting import Case, DeclinedOffer, Offer, OfferedLimit, drafts, suggest_radii
from ..methods.intruder import Known, SensitiveVariables
from ..methods.levers import INFERENCE
from ..methods.outputs import Label, Output, RecordArray
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec, Variant
from ..statistics.columns import missing_values_text
from ..statistics.gower import GowerDistance
from ._attack import (
    WITHOUT_CONTROLS,
    AddedSuccess,
    AttackResult,
    NaiveGuess,
    SuccessRate,
    added_risk_limit,
    attack_outputs,
    combine_attacks,
    design_effect,
)
from ._attacked_records import OtherPeople, draw_rows, independent_stream, select_rows, units_of_both
from ._best_strategy import (
    is_every_subset_tried,
    kept_variables,
    largest_excess_estimates,
    largest_excess_outputs,
    subsets_to_try,
)

MOST_ASKED = 1_000_000
"""Largest number of donor records that are processed together; a larger group is a block of its own."""


class TargetVariable(Protocol):
    """Guessed variable: values of r records to learn from and of q records that are attacked."""

    def judge_guesses(
        self, nearest: Integers, group: Integers, attacked: Integers, group_of: Integers
    ) -> tuple[Floats, Floats]:
        """Return the probability of a right guess, (a,), and the number of donors that support it, (g,).

        There is one probability per attacked record, and one number per group of donors.

        A tie between equally good guesses is broken at random.

        Args:
            nearest: rows of the donor records, group after group, (m,).
            group: group of each donor, from 0 to g - 1, ascending, at least one donor per group, (m,).
            attacked: rows of the attacked records, (a,).
            group_of: group of donors from which each attacked record is guessed, (a,).
        """
        ...


@dataclass(frozen=True, eq=False)
class TargetLevels:
    """Guessed categorical variable as codes that agree between the tables; a missing value is a level.

    offered: codes of the records to learn from, (r,)
    own: codes of the attacked records, (q,)
    """

    offered: Floats
    own: Floats

    def judge_guesses(
        self, nearest: Integers, group: Integers, attacked: Integers, group_of: Integers
    ) -> tuple[Floats, Floats]:
        """Return the probability that the donors' mode is the true level, and the frequency of the mode."""
        lowest = min(self.offered.min(initial=0), self.own.min(initial=0))  # missing and unknown levels are below 0
        offered, own = ((codes - lowest).astype(np.int64) for codes in (self.offered, self.own))
        # One integer key per group and level, so that a single ``unique`` counts all groups.
        width = 1 + max(int(offered.max(initial=0)), int(own.max(initial=0)))
        levels, counts = np.unique(group * width + offered[nearest], return_counts=True)
        most, best = _largest_count_by_group(counts, levels // width)
        right = np.isin(group_of * width + own[attacked], levels[best])
        return right / np.bincount(levels[best] // width)[group_of], most.astype(np.float64)


@dataclass(frozen=True, eq=False)
class TargetNumbers:
    """Guessed numeric variable, without missing values.

    offered: numbers of the records to learn from, (r,)
    around: lower and upper ends of the window around each of these, (r,) each; NaN for an empty window
    own: numbers of the attacked records, (q,)
    window: lower and upper ends of the window around each of these, (q,) each; NaN for an empty window
    """

    offered: Floats
    around: tuple[Floats, Floats]
    own: Floats
    window: tuple[Floats, Floats]

    @cached_property
    def _ranks_of_numbers(self) -> tuple[int, Integers, tuple[Integers, Integers], tuple[Integers, Integers]]:
        """Return the number of distinct numbers, and the ranks of the offered ones and of all window ends."""
        ends = [end[~np.isnan(end)] for end in (*self.around, *self.window)]
        known = np.unique(np.concatenate([self.offered, *ends]))
        offered, *ranks = (np.searchsorted(known, one) for one in (self.offered, *self.around, *self.window))
        return len(known), offered, (ranks[0], ranks[1]), (ranks[2], ranks[3])

    def judge_guesses(
        self, nearest: Integers, group: Integers, attacked: Integers, group_of: Integers
    ) -> tuple[Floats, Floats]:
        """Return the share of the best guesses in the record's window, and the number of donors that agree."""
        # ranks instead of numbers, so that a group and a number make one key without rounding
        width, offered, around, window = self._ranks_of_numbers
        values = np.unique(group * width + offered[nearest])
        there = ~np.isnan(self.around[0][nearest])
        lower, upper = (np.sort((group * width + ends[nearest])[there]) for ends in around)
        # windows of earlier groups are counted as opened and as closed
        counts = np.searchsorted(lower, values, "right") - np.searchsorted(upper, values, "left")
        most, best = _largest_count_by_group(counts, values // width)
        guesses = values[best]
        first, last = (group_of * width + ends[attacked] for ends in window)
        inside = np.searchsorted(guesses, last, "right") - np.searchsorted(guesses, first, "left")
        right = inside / np.bincount(guesses // width)[group_of]
        return np.where(np.isnan(self.window[0][attacked]), 0.0, right), most.astype(np.float64)


def _largest_count_by_group(counts: Integers, group: Integers) -> tuple[Integers, Booleans]:
    """Return the largest count of each group, (g,), and a mask of the counts that attain it, (m,)."""
    most = np.maximum.reduceat(counts, np.flatnonzero(np.diff(group, prepend=-1)))
    return most, counts == most[group]


def windows_around(values: Floats, radius: Radius | None) -> tuple[Floats, Floats]:
    """Return the lower and upper ends of the window around each value, (n,) each, NaN if empty.

    Without a radius the window is the value itself.
    """
    if radius is None:
        return values, values
    unfit = radius.kind == "log_relative"
    # Negative numbers have no logarithm.
    return radius.window(np.where(unfit & (values < 0), np.nan, values))


@dataclass(frozen=True, eq=False)
class GuessAccuracy:
    """Accuracy of the guesses at q attacked records, (q,) each.

    right: probability that the guess is right
    distance: distance of the k-th nearest record
    asked: number of donor records behind the guess
    agreeing: number of donors that support the guess
    candidates: number of records that agree on all known variables
    """

    right: Floats
    distance: Floats
    asked: Integers
    agreeing: Floats
    candidates: Integers

    def is_most_confident(self, share: float) -> Booleans:
        """Mark the given share of the most confident guesses, with ties at the end, (q,).

        A guess from nearer donors is more confident; at equal distance, one that a larger share of the donors supports.
        """
        if not len(self.right):
            return np.zeros(0, dtype=np.bool_)
        # The added donor makes one donor of one less certain than ten of ten.
        doubt = 1 - self.agreeing / (self.asked + 1)
        order = np.lexsort((doubt, self.distance))
        # Rounding of share * n must not add a record.
        last = order[max(int(np.ceil(share * len(order) - 1e-9)), 1) - 1]
        nearer = self.distance < self.distance[last]
        return np.asarray(nearer | ((self.distance == self.distance[last]) & (doubt <= doubt[last])))


def guess_values(near: NearestRecords, target: TargetVariable) -> GuessAccuracy:
    """Guess a variable of each attacked record from its nearest records and return the accuracy of the guesses.

    Attacked records with equal known values form a group with the same nearest records.
    """
    group_of = near.searched.combination_of
    right, agreeing = np.zeros(len(group_of)), np.zeros(len(near.searched))
    asked = near.count_records()
    order = np.argsort(group_of, kind="stable")
    for first, last in _blocks_of_groups(asked):
        pairs = slice(*np.searchsorted(near.row, [first, last]))
        those = order[slice(*np.searchsorted(group_of[order], [first, last]))]
        right[those], agreeing[first:last] = target.judge_guesses(
            near.table.records_of(near.column[pairs]),
            np.repeat(near.row[pairs] - first, near.record_counts[pairs]),
            those,
            group_of[those] - first,
        )
    return GuessAccuracy(
        right,
        near.kth_distance[group_of],
        asked[group_of],
        agreeing[group_of],
        near.count_records(near.distances == 0)[group_of],
    )


def _blocks_of_groups(asked: Integers) -> Iterator[tuple[int, int]]:
    """Yield the first and the end of each block of groups with at most about ``MOST_ASKED`` donors."""
    block = (np.cumsum(asked) - 1) // MOST_ASKED
    ends = [*np.flatnonzero(np.diff(block)).tolist(), len(asked) - 1]
    first = 0
    for end in ends:
        if first <= end:
            yield first, end + 1
        first = end + 1


def chance_of_constant_guess(target: TargetVariable, offered: Integers, attacked: int) -> Floats:
    """Return the probability that the best constant guess is right, (attacked,).

    The guess is learned from the ``offered`` records.
    """
    one_group = np.zeros(len(offered), dtype=np.int64), np.zeros(attacked, dtype=np.int64)
    return target.judge_guesses(np.arange(len(offered)), one_group[0], np.arange(attacked), one_group[1])[0]


def target_variable(
    learned: Microdata, attacked: Microdata, name: str, radius: Radius | None
) -> tuple[TargetVariable, Integers, Integers]:
    """Return the guessed variable and the rows of both tables that can be used.

    Raises NotComputable if no record to learn from has a value, or the release has labels or means in place of values.
    """
    if attacked.schema[name].kind.has_levels:
        alone = GowerDistance.from_tables([learned], [name])
        codes = alone.record_places(learned)[:, 0], alone.record_places(attacked)[:, 0]
        return TargetLevels(*codes), np.arange(len(learned)), np.arange(len(attacked))
    values = learned.numbers(name), attacked.numbers(name)
    rows = tuple(np.flatnonzero(~np.isnan(one)) for one in values)
    if not len(rows[0]):
        raise NotComputable(f'no released record has a value of "{name}"')
    offered, own = (one[some] for one, some in zip(values, rows, strict=True))
    return TargetNumbers(offered, windows_around(offered, radius), own, windows_around(own, radius)), rows[0], rows[1]


def check_data(data: Microdata, target: str, spec: AttributeInferenceSpec, place: str) -> None:
    """Raise BadInput if confidential values do not suit a radius on the log scale."""
    check_log_scale(data, spec.radius, place)


def _draft_limits(case: Case, guessed: Sequence[str]) -> tuple[OfferedLimit, ...]:
    """Return one limit for all guessed variables if the sample decides each, else one per variable.

    The baseline of a variable is the share of its most frequent value.
    """
    found = [
        added_risk_limit("inference", case, max(0.5, case.table[name].commonest), series=len(guessed))
        for name in guessed
    ]
    if len(guessed) == 1 or all(one.detectable is None or one.detectable <= one.limit for one in found):
        # The variable that is hardest to decide speaks for all.
        return (max(found, key=lambda one: one.detectable or 0.0),)
    return tuple(replace(one, target=name) for name, one in zip(guessed, found, strict=True))


def _known_variable_sets(
    confidential: Microdata, released: Microdata, known: Sequence[str]
) -> tuple[IntruderStrategy, ...]:
    """Return the sets of known variables that the intruder may use; the first is the set of all.

    With 5 or more known variables these are all of them, the unchanged ones, and all but one of the replaced ones.
    """
    names = sorted(known)
    if is_every_subset_tried(len(names)):
        # Who knows one variable more can still ignore it, so that the risk does not fall.
        return tuple(make_strategy(names, used) for used in subsets_to_try([names]) if used)
    kept = kept_variables(confidential, released, names)
    replaced = frozenset(names) - kept
    chosen = dict.fromkeys([frozenset(names), kept, *(frozenset(names) - {name} for name in sorted(replaced))])
    return tuple(make_strategy(names, used) for used in chosen if used)


def _attacked_rows(
    data: Microdata, controls: Microdata, spec: AttributeInferenceSpec, rng: np.random.Generator
) -> dict[TargetKind, tuple[Integers, Integers]]:
    """Draw the rows of the attacked records and controls for each kind of target."""
    # Random targets are drawn even if not requested: the other draws must not depend on the request.
    found: dict[TargetKind, tuple[Integers, Integers]] = {
        "random": (draw_rows(data, spec.records, rng), draw_rows(controls, spec.records, rng))
    }
    if "vulnerable" in spec.people:
        found["vulnerable"] = draw_vulnerable_rows(data, controls, spec.vulnerable, spec.records, rng)
    return {kind: rows for kind, rows in found.items() if kind in spec.people}


def _sample_text(what: str, rows: Integers, data: Microdata) -> str:
    """Return how many records were sampled, in words; empty if all were taken."""
    return f"{len(rows):,} of {len(data):,} {what}, drawn at random" if len(rows) < len(data) else ""


@dataclass(frozen=True, eq=False)
class _VariableAttack:
    """Results of the attack on one variable: guesses at q people and c controls that have a value.

    rows: rows of the attacked people, (q,)
    training: accuracy of the guesses at people
    control: accuracy of the guesses at controls
    constant: probability that the best constant guess is right, (q,)
    from_controls: probability of a right guess with the controls in place of the release, (q,)
    strategies: sets of known variables that were tried, the full set first
    by_strategy: probabilities of a right guess at people, (s, q), and at controls, (s, c), with each strategy
    without_release: probabilities of a right guess without the release, (q,) and (c,)
    units: units of both, where several records describe one
    """

    rows: Integers
    training: GuessAccuracy
    control: GuessAccuracy
    constant: Floats
    from_controls: Floats
    strategies: tuple[IntruderStrategy, ...]
    by_strategy: tuple[Floats, Floats]
    without_release: tuple[Floats, Floats]
    units: UnitsOfBoth | None = None

    def estimates(
        self, name: str, share: float | None, remarks: list[str], params: Mapping[str, str], rng: np.random.Generator
    ) -> Iterator[Estimate]:
        """Yield the estimates of all guesses, and of the most confident ``share`` of them if this is not None."""
        words = "; ".join(filter(None, remarks))
        every = np.ones(len(self.rows), dtype=np.bool_), np.ones(len(self.control.right), dtype=np.bool_)
        yield from self._result_of(*every, rng).estimates(name, words, **params)
        yield from largest_excess_estimates(
            *self.by_strategy, self.strategies, rng.spawn(1)[0],
            n_strategies=len(self.strategies), without=self.without_release, target=name, params=params,
            units=self.units,
        )  # fmt: skip
        if share is None:
            return
        sure = self.training.is_most_confident(share), self.control.is_most_confident(share)
        yield from self._result_of(*sure, rng).estimates(name, words, guesses="confident", **params)

    def _result_of(self, own: Booleans, others: Booleans, rng: np.random.Generator) -> AttackResult:
        """Return the attack result for marked people, (q,), and controls, (c,)."""
        right, of_controls = self.training.right, self.control.right
        of_own, of_others = (None, None) if self.units is None else (self.units.own, self.units.others)
        units = None if self.units is None else self.units.select(own, others)
        rates = (
            _success_rate(right, own, of_own),
            _success_rate(self.constant, own, of_own),
            _success_rate(of_controls, others, of_others),
        )
        added = right - self.without_release[0], of_controls - self.without_release[1]
        gain = AddedSuccess.from_differences(added[0][own], added[1][others], independent_stream(rng), units)
        p_value = exact_p_value(right[own], of_controls[others], rng, units=units)
        return AttackResult(*rates, p_value=p_value, added_success=gain, is_naive=True)


def _success_rate(right: Floats, chosen: Booleans, unit_of: Integers | None) -> SuccessRate:
    effect = 1.0 if unit_of is None else design_effect(right[chosen], unit_of[chosen])
    return SuccessRate(math.fsum(right[chosen]), int(np.count_nonzero(chosen)), design_effect=effect)


@dataclass(frozen=True, eq=False)
class _AttackTables:
    """Tables of an attack: attacked records and records to learn from.

    training: attacked records of the data
    control: attacked control records
    controls: all control records
    released: released records
    other_people: people from whose records the training and the control records are guessed without the release
    units: units of the attacked records, where several records describe one
    places: cached positions of the records in all known variables, by pair of tables
    nearest_records: cached nearest records, by pair of tables and set of known variables
    """

    training: Microdata
    control: Microdata
    controls: Microdata
    released: Microdata
    other_people: OtherPeople
    units: UnitsOfBoth | None
    places: dict[str, tuple[GowerDistance, Floats, Floats]] = field(default_factory=dict)
    nearest_records: dict[tuple[str, tuple[str, ...]], NearestRecords] = field(default_factory=dict)

    @classmethod
    def from_rows(
        cls,
        data: Microdata,
        own: Integers,
        others: Integers,
        controls: Microdata,
        released: Microdata,
        rng: np.random.Generator,
    ) -> _AttackTables:
        """Create the tables for some rows of the data and of the controls; ``rng`` draws the other people."""
        attacked = select_rows(data, own), select_rows(controls, others)
        other_people = OtherPeople.draw(data, own, controls, others, rng)
        return cls(*attacked, controls, released, other_people, units_of_both(data, own, controls, others))

    def attack_variable(
        self, name: str, spec: AttributeInferenceSpec, strategies: tuple[IntruderStrategy, ...]
    ) -> _VariableAttack:
        """Attack one variable with each of the ``strategies``. Raises NotComputable if it cannot be attacked."""
        radius = spec.radius.get(name)

        known = sorted(spec.known)

        def guess_from(
            which: str, learned: Microdata, attacked: Microdata, subsets: Sequence[Sequence[str]] = (known,)
        ) -> tuple[Integers, list[GuessAccuracy]]:
            """Return the attacked records that have a value, and the accuracy with each subset of variables."""
            what, offered, rows = target_variable(learned, attacked, name, radius)
            every = len(offered) == len(learned) and len(rows) == len(attacked)
            if which not in self.places:
                whole = GowerDistance.from_tables([learned], known)
                self.places[which] = whole, whole.record_places(learned), whole.record_places(attacked)
            gower, learned_places, attacked_places = self.places[which]
            guesses = list[GuessAccuracy]()
            for used in map(tuple, subsets):
                near = self.nearest_records.get((which, used)) if every else None
                if near is None:
                    at = [known.index(one) for one in used]
                    sides = learned_places[offered][:, at], attacked_places[rows][:, at]
                    # Nearest records rather than a smooth model such as boosted trees: a model learns what also holds
                    # for controls and averages away what a release reveals about one person. If the release copies the
                    # data, the nearest record reveals every value.
                    near = NearestRecords.from_places(gower.select_variables(used), sides[1], sides[0], spec.neighbours)
                # Only tables without missing target values can share neighbours with the next variable.
                if every:
                    self.nearest_records[which, used] = near
                guesses.append(guess_values(near, what))
            return rows, guesses

        subsets = [choice.used for choice in strategies]  # all that is known first
        rows, by_training = guess_from("training", self.released, self.training, subsets)
        control_rows, by_control = guess_from("control", self.released, self.control, subsets)
        training, control = by_training[0], by_control[0]
        for found, whose in ((training, "record"), (control, "control record")):
            if not len(found.right):
                raise NotComputable(f'no attacked {whose} has a value of "{name}"')
        what, offered, _ = target_variable(self.controls, self.training, name, radius)
        without = guess_from("without", self.controls, self.training)[1][0].right
        by_choice = [np.stack([one.right for one in guesses]) for guesses in (by_training, by_control)]
        constant = chance_of_constant_guess(what, offered, len(rows))

        def chance_without_release(side: int, attacked: Microdata) -> Floats:
            """Return for each attacked record, (a,), the probability of a right guess learnt from other people."""
            found = np.full(len(attacked), np.nan)
            for half, learned in enumerate(self.other_people.halves):
                at = np.flatnonzero(self.other_people.uses_second[side] == half)
                if not len(at) or not len(learned):
                    continue
                kept, (guesses,) = guess_from(f"half {half} of side {side}", learned, select_rows(attacked, at))
                found[at[kept]] = guesses.right
            there = (
                np.arange(len(attacked))
                if attacked.schema[name].kind.has_levels
                else np.flatnonzero(~attacked.missing_mask(name))
            )
            # a half without anybody to learn from adds nothing either way
            return np.asarray(np.nan_to_num(found[there]), dtype=np.float64)

        try:
            # Members may be easier to guess than controls whatever is released, so both are guessed without the release
            # too.
            without_release = chance_without_release(0, self.training), chance_without_release(1, self.control)
        except NotComputable:  # a half of few people has no value of the variable
            without_release = np.zeros(len(rows)), np.zeros(len(control.right))
        return _VariableAttack(
            rows, training, control, constant, without, strategies, (by_choice[0], by_choice[1]), without_release,
            None if self.units is None else UnitsOfBoth(self.units.own[rows], self.units.others[control_rows]),
        )  # fmt: skip

    def missing_value_remarks(self, name: str) -> Iterator[str]:
        """Yield for each table the number of records that lack the guessed number, in words."""
        if self.training.schema[name].kind.has_levels:
            return
        sides = (("training", self.training), ("controls", self.control), ("released", self.released))
        for what, data in sides:
            if words := missing_values_text(int(data.missing_mask(name).sum()), len(data)):
                yield f"{what}: {words}"


@dataclass(frozen=True, kw_only=True, slots=True)
class AttributeInferenceSpec(Spec):
    """Settings: known and guessed variables, radius of a right guess, and number of donors."""

    known: Annotated[
        Known, Variant("variables the intruder knows; default: the quasi-identifiers that are not guessed")
    ] = ()
    sensitive: Annotated[
        SensitiveVariables,
        Variant(
            "variables that are guessed, each by itself; default: the sensitive ones",
            filters_rows=True,
        ),
    ] = ()
    radius: Annotated[
        Radii,
        Variant(
            'how near a guess is right, by variable: 5, "5%" or "log 5%"; without one, it must be equal', reported=False
        ),
    ] = field(default_factory=dict)
    neighbours: Annotated[int, Param("nearest released records that a guess is made from", ge=1)] = 1
    confident: Annotated[
        float, Param("share of the guesses, the most confident, that are reported separately too", gt=0, lt=1)
    ] = 0.1
    records: Annotated[int, Param("most targets of a kind, and most controls; of more, a random sample", ge=1)] = 2000
    people: TargetKinds = BOTH_TARGET_KINDS
    vulnerable: VulnerableTargets = None

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return these settings with known and sensitive variables filled in by role."""
        known = self.known or tuple(
            name for name in schema.names_by_role(Role.QUASI_IDENTIFIER) if name not in self.sensitive
        )
        sensitive = self.sensitive or tuple(name for name in schema.names_by_role(Role.SENSITIVE) if name not in known)
        return replace(self, known=known, sensitive=sensitive)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput if nothing is known or guessed, a variable is both, or a radius is missing or unused."""
        full = self.for_release(schema, released)
        if not full.known:
            raise BadInput(
                f"{place}.known", 'the intruder knows no variable; name some, or give them the role "quasi_identifier"'
            )
        if not full.sensitive:
            raise BadInput(
                f"{place}.sensitive", 'nothing is guessed; name variables, or give them the role "sensitive"'
            )
        for name in full.sensitive:
            if name in full.known:
                raise BadInput(f"{place}.sensitive", f'"{name}" is among the known variables')
            if schema[name].kind is Kind.CONTINUOUS and name not in self.radius:
                raise BadInput(f"{place}.radius", f'"{name}" is continuous; say how near is right: {name} = "5%"')
        for name, radius in self.radius.items():
            if name not in full.sensitive:
                raise BadInput(
                    f"{place}.radius.{name}", f'"{name}" is not guessed here; guessed: {", ".join(full.sensitive)}'
                )
            if schema[name].kind is Kind.DATE and radius.kind != "absolute":
                raise BadInput(f"{place}.radius.{name}", "a date has no share; give the radius in days, such as 5")


SCENE = (
    "An intruder knows some variables of a person, and guesses another one from the released records that are nearest in "
    "these."
)
WITHOUT = "Without the release he looks up records of outsiders in its place."
OUTPUTS = (
    *attack_outputs(
        "attribute inference", "guesses", "are right", ("inference",), INFERENCE, scene=SCENE, without=WITHOUT,
        naive=NaiveGuess(
            "one guess for all",
            "One value, guessed for everybody and learnt from outsiders, is right for {value} of the people in the data.",
            "one value, guessed for everybody, without the release",
        ),
    ),
    *largest_excess_outputs("attribute inference", ("inference",), INFERENCE, SCENE, WITHOUT),
    # No longer computed: rows of it are in runs of earlier versions. The success without the release says the same.
    Output(
        "from_controls",
        "share of the records that the release was made of whose value is guessed rightly from all control records",
        "none",
        "share",
        intermediate=True,
        range=SHARE,
        estimated=True,
        label=Label(
            "Right guesses from outsiders' records",
            "The same attack, with records of outsiders in place of the release, guesses {variable} rightly for {value} of the people attacked.",
            "Neither good nor bad: it is the yardstick for guesses with the release, and no release changes it.",
            counts="share",
        ),
    ),
)  # fmt: skip


def _draft_offer(case: Case) -> Offer | DeclinedOffer | None:
    """Offer the measure if records are held out and sensitive variables and quasi-identifiers are named."""
    guessed = [name for name in case.guessed_variables if name not in case.known]
    if case.want != "synthesis":
        return None
    if not case.holdout:
        return DeclinedOffer(WITHOUT_CONTROLS)
    if not case.known or not guessed:
        return DeclinedOffer(
            "no variable is a quasi-identifier, or none is sensitive: there is nothing to guess from, or nothing to guess"
        )
    radius, alike = suggest_radii(case, tuple(guessed))
    settings = {"known": list(case.known), "sensitive": guessed, **({"radius": radius} if radius else {})}
    why = (
        f"whether {', '.join(guessed)} can be guessed better of people whose records were used than of others. {alike}"
    )
    return Offer(why.strip(), settings, limits=_draft_limits(case, guessed))


@measure_method(
    "Attribute inference",
    spec=AttributeInferenceSpec,
    source="Giomi, Boenisch, Wehmeyer & Tasnádi (2022), §3.1 and §4.3; Francis & Wagner (2025)",
    outputs=OUTPUTS,
    confidential=True,
    controls=True,
    check=check_data,
    combine=combine_attacks,
    per_record=(
        RecordArray(
            "candidates",
            "released records that agree with the record on all known variables",
            "records",
            "low",
            "candidates",
        ),
        RecordArray(
            "right",
            "the chance that the value guessed of the record is its own, of the variable with the largest",
            "share",
            "high",
            "probability",
        ),
        RecordArray(
            "from_controls",
            "the same chance, of that variable, with the control records in place of the release",
            "share",
            "none",
            "prior",
        ),
    ),
)
@drafts(_draft_offer)
def attribute_inference(
    confidential: Microdata, released: Microdata, spec: AttributeInferenceSpec, run: Run
) -> Measure:
    """Measure the attack on each sensitive variable, for all guesses and for the most confident ones.

    The parameter ``guesses`` tells them apart. ``per_record``: ``candidates``, ``right`` and ``from_controls``, (n,)
    each, NaN for the largest probability of a right guess, among equal ones that with the smallest from the controls.
    """
    assert confidential.controls is not None
    rng = run.for_all
    estimates, (right, before, candidates) = list[Estimate](), np.full((3, len(confidential)), np.nan)
    tables = confidential.controls, released
    choices = _known_variable_sets(confidential, released, spec.known)
    attacks = [
        (kind, rows, sides, name)
        for kind, rows in _attacked_rows(confidential, confidential.controls, spec, rng).items()
        for sides in [_AttackTables.from_rows(confidential, *rows, *tables, independent_stream(rng))]
        for name in spec.sensitive
    ]
    # A stream for each kind and name: the order of the variables must not choose it.
    streams = dict(zip(sorted((kind, name) for kind, _, _, name in attacks), rng.spawn(len(attacks)), strict=True))
    for kind, (own, others), sides, name in attacks:
        params = {} if kind == "random" else {"people": kind}
        try:
            if not len(others):
                raise NotComputable("no control record is as vulnerable as the people who are attacked")
            found = sides.attack_variable(name, spec, choices)
        except NotComputable as error:
            estimates += [Estimate.not_computed(output.name, error.reason, name, **params) for output in OUTPUTS]
            continue
        if kind == "random":
            said = [
                _sample_text("records are attacked", own, confidential),
                _sample_text("outsiders", others, confidential.controls),
            ]
        else:
            said = [
                f"the {len(own):,} most vulnerable of {len(confidential):,} records, and {len(others):,} controls as vulnerable"
            ]
        share = spec.confident if kind == "random" else None
        estimates += found.estimates(
            name, share, [*said, *sides.missing_value_remarks(name)], params, streams[kind, name]
        )
        at = own[found.rows]
        chance = found.training.right
        worse = ~(right[at] > chance) & ~((right[at] == chance) & (before[at] <= found.from_controls))
        right[at[worse]], before[at[worse]] = chance[worse], found.from_controls[worse]
        candidates[at] = found.training.candidates
    arrays = {"candidates": candidates, "right": right, "from_controls": before}
    return Measure(tuple(estimates), {} if np.isnan(right).all() else arrays)
