"""Linkability: how well a release links two sets of variables of one person.

An intruder has two disjoint sets of variables of one person from different sources and does not know that they belong
together. For each set the k nearest released records are found. If a released record is among both, the intruder links
the two (Giomi, Boenisch, Wehmeyer & Tasnádi 2022, §4.3 and Appendix). The attack needs no pairing of rows and so
applies to shuffled and fully synthetic releases.

Links of control records follow from how the variables go together in general; those of people in the data beyond that
are a disclosure. The baseline links k random records on either side. Distances are Gower's by ranks. Records tied with
the k-th nearest are picked at random, and the probability of a link counts (``link_probability``).

``added_risk`` subtracts the links through records of other people (``_attack``, ``OtherPeople``).
``largest_excess_risk`` is the excess with the best subset of the replaced variables, chosen on the other half of the
people (``_best_strategy``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
from scipy.special import gammaln

from ..adversary.nearest_records import NearestRecords
from ..adversary.permuted import exact_p_value
from ..adversary.targets import BOTH_TARGET_KINDS, TargetKind, TargetKinds, VulnerableTargets, draw_vulnerable_rows
from ..data.arrays import Booleans, Floats, Integers
from ..data.microdata import Microdata
from ..data.rows import distinct_rows
from ..data.schema import Role, Schema
from ..errors import BadInput
from ..matching.strategies import IntruderStrategy, make_strategy
from ..methods.drafting import Case, DeclinedOffer, Offer, drafts
from ..methods.intruder import Known
from ..methods.levers import IDENTITY
from ..methods.registry import measure_method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import Param, Spec, Variant
from ..statistics.gower import GowerDistance
from ..wording import count_noun
from ._attack import (
    LARGEST_ADDED,
    WITHOUT_CONTROLS,
    AddedSuccess,
    AttackResult,
    NaiveGuess,
    SuccessRate,
    attack_outputs,
    combine_attacks,
    limits_for_all_variables,
)
from ._attacked_records import OtherPeople, draw_rows, independent_stream, select_rows, units_of_both
from ._best_strategy import kept_variables, largest_excess_estimates, largest_excess_outputs, subsets_to_try

MAX_LINKED_BY_CHANCE = 0.01
"""Upper bound of the linked share below which a strategy is skipped: its excess cannot be larger."""


def _linked_through_others(
    halves: tuple[Microdata, Microdata],
    uses_second: Booleans,
    sides: tuple[tuple[str, ...], tuple[str, ...]],
    neighbours: int,
    attacked: Microdata,
) -> Floats:
    """Return the probability that each attacked person is linked through a half of other people, (q,).

    The half stands in place of the release; ``sides`` are the two sets of variables.
    """
    found = np.zeros(len(attacked))
    for half, learned in enumerate(halves):
        at = np.flatnonzero(uses_second == half)
        if not len(at) or not len(learned):
            continue
        some, k = select_rows(attacked, at), min(neighbours, len(learned))
        near = []
        for names in sides:
            gower = GowerDistance.from_tables([learned], names)
            near.append(
                _NearestOfPlaces.from_places(
                    gower, gower.record_places(some), gower.record_places(learned), k
                ).expand_to_people()
            )
        found[at] = link_probability(*near)
    return found


@dataclass(frozen=True)
class _VariableChoices:
    """Sets of variables that the intruder uses in each strategy.

    pairs: variables of both sides, each sorted; the first pair has all variables
    strategies: the same as strategies with descriptions
    n_possible: number of possible strategies, tried or not
    """

    pairs: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    strategies: tuple[IntruderStrategy, ...]
    n_possible: int

    @classmethod
    def from_tables(cls, confidential: Microdata, released: Microdata, spec: LinkabilitySpec) -> _VariableChoices:
        """List the strategies: all unchanged variables, and subsets of the replaced ones."""
        kept = kept_variables(confidential, released, sorted((*spec.known, *spec.other)))
        known, other = sorted(spec.known), sorted(spec.other)
        replaced = [[name for name in side if name not in kept] for side in (known, other)]
        pairs: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        strategies: list[IntruderStrategy] = []
        for chosen in subsets_to_try(replaced):
            used = kept | chosen
            pair = tuple(name for name in known if name in used), tuple(name for name in other if name in used)
            if all(pair):  # without any variable on a side whoever is linked is linked by chance
                pairs.append(pair)
                strategies.append(make_strategy([*known, *other], used))
        possible = int(np.prod([(1 << len(side)) - (len(side) == len(names)) for side, names in zip(replaced, (known, other), strict=True)]))  # fmt: skip
        return cls(tuple(pairs), tuple(strategies), possible)

    @property
    def variable_sets(self) -> list[tuple[str, ...]]:
        """Return the distinct sets of variables that any side has in any strategy."""
        return list(dict.fromkeys(side for pair in self.pairs for side in pair))


@dataclass(frozen=True, eq=False)
class _NearestOfPeople:
    """Released records that may be among the k nearest of q people: pairs of person and record, sorted by both.

    row: person of each pair, (p,)
    column: released record of each pair, (p,)
    certain: whether the record is certainly among the nearest, (p,)
    n_picked: number of the uncertain pairs of a person that are picked at random, (q,)
    n_released: number of released records
    """

    row: Integers
    column: Integers
    certain: Booleans
    n_picked: Integers
    n_released: int

    @classmethod
    def from_places(cls, gower: GowerDistance, own: Floats, table: Floats, k: int) -> _NearestOfPeople:
        """Find the nearest records of people at the positions ``own``."""
        return _NearestOfPlaces.from_places(gower, own, table, k).expand_to_people()


@dataclass(frozen=True, eq=False)
class _NearestOfPlaces:
    """Released records that may be among the k nearest of distinct positions of people.

    row: position of each pair, (p,)
    column: released record of each pair, (p,)
    certain: whether the record is certainly among the nearest, (p,)
    place_of_person: position of each person, (q,)
    n_places: number of distinct positions
    k: number of nearest records
    n_released: number of released records
    """

    row: Integers
    column: Integers
    certain: Booleans
    place_of_person: Integers
    n_places: int
    k: int
    n_released: int

    @classmethod
    def from_places(cls, gower: GowerDistance, own: Floats, table: Floats, k: int) -> _NearestOfPlaces:
        """Find the nearest records of the distinct positions among ``own``."""
        near = NearestRecords.from_places(gower, own, table, k)
        certain = near.distances < near.kth_distance[near.row]
        row, sure = np.repeat(near.row, near.record_counts), np.repeat(certain, near.record_counts)
        column = near.table.records_of(near.column)
        order = np.lexsort((column, row))
        return cls(
            row[order], column[order], sure[order], near.searched.combination_of, len(near.searched), k, len(table)
        )

    @property
    def max_share_linked(self) -> float:
        """Return an upper bound of the share of people linked, whatever is nearest on the other side."""
        sure = np.bincount(self.row[self.certain], minlength=self.n_places)
        ties = np.bincount(self.row[~self.certain], minlength=self.n_places)
        # The other side has k records; each is among the nearest here with probability picked / ties at most, or
        # certainly.
        each = np.where(sure > 0, 1.0, (self.k - sure) / np.maximum(ties, 1))
        return float(np.mean(np.minimum(1.0, self.k * each)[self.place_of_person]))

    def expand_to_people(self) -> _NearestOfPeople:
        """Return the pairs of each person instead of each distinct position."""
        start = np.searchsorted(self.row, np.arange(self.n_places + 1))
        sizes = np.diff(start)[self.place_of_person]
        person = np.repeat(np.arange(len(self.place_of_person)), sizes)
        at = np.arange(len(person)) + np.repeat(start[self.place_of_person] - np.cumsum(sizes) + sizes, sizes)
        certain = self.certain[at]
        picked = self.k - np.bincount(person[certain], minlength=len(self.place_of_person))
        return _NearestOfPeople(person, self.column[at], certain, picked, self.n_released)


def link_probability(first: _NearestOfPeople, second: _NearestOfPeople) -> Floats:
    """Return the probability that some released record is among the nearest of a person on both sides, (q,).

    S and T are the certain and the uncertain records of the first side, of which a of T are picked; S', T' and b those
    of the second. If S and S' share a record the link is certain. Else, with y of T in S', x of T' in S, and w in T and
    T',

        P(no link) = sum over j of  C(w, j) C(|T| - y - w, a - j) / C(|T|, a)  *  C(|T'| - x - j, b) / C(|T'|, b)
    """
    q = len(first.n_picked)
    sizes = [np.bincount(one.row[~one.certain], minlength=q) for one in (first, second)]
    mine, others = (one.row * one.n_released + one.column for one in (first, second))
    _, ours, theirs = np.intersect1d(mine, others, assume_unique=True, return_indices=True)
    sure, also = first.certain[ours], second.certain[theirs]
    both, y, x, w = (
        np.bincount(first.row[ours[some]], minlength=q)
        for some in (sure & also, ~sure & also, sure & ~also, ~(sure | also))
    )
    cases = np.stack([*sizes, first.n_picked, second.n_picked, y, x, w], axis=1)
    cases[both > 0] = 0  # nothing is left to pick
    # Few distinct cases occur, and each takes a sum of its own.
    different = distinct_rows(cases.T, q)
    found = np.array([min(1.0, max(0.0, 1 - sum(_no_link_terms(*map(int, case))))) for case in cases[different.first]])
    return np.where(both > 0, 1.0, found[different.combination_of])


def _no_link_terms(t: int, u: int, a: int, b: int, y: int, x: int, w: int) -> Iterator[float]:
    """Yield the nonzero terms of P(no link)."""
    for j in range(max(0, a - (t - y - w)), min(w, a) + 1):
        if t - y - w >= a - j >= 0 and u - x - j >= b:
            yield float(np.exp(_log_choose(w, j) + _log_choose(t - y - w, a - j) - _log_choose(t, a)
                               + _log_choose(u - x - j, b) - _log_choose(u, b)))  # fmt: skip


def _log_choose(n: int, k: int) -> float:
    """Return the logarithm of the binomial coefficient."""
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _chance_link(k: int, records: int) -> float:
    """Return the probability that two random samples of k of all ``records`` share a record."""
    if 2 * k > records:
        return 1.0
    return float(1 - np.exp(_log_choose(records - k, k) - _log_choose(records, k)))


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkabilitySpec(Spec):
    """Settings: two sets of variables, and the number of nearest records."""

    known: Annotated[
        Known,
        Variant("variables known of a person from one place; default: the quasi-identifiers that are not in the other"),
    ] = ()
    other: Annotated[
        tuple[str, ...],
        Param(
            "variables known of a person from another place; default: all others but identifiers",
            names="variables",
            reported=True,
        ),
    ] = ()
    neighbours: Annotated[int, Param("released records that are nearest in each set of variables", ge=1)] = 1
    records: Annotated[int, Param("most targets of a kind, and most controls; of more, a random sample", ge=1)] = 2000
    people: TargetKinds = BOTH_TARGET_KINDS
    vulnerable: VulnerableTargets = None

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return these settings with quasi-identifiers on one side and other variables on the other by default."""
        known = self.known or tuple(n for n in schema.names_by_role(Role.QUASI_IDENTIFIER) if n not in self.other)
        other = self.other or tuple(name for name in schema.non_identifiers if name not in known)
        return replace(self, known=known, other=other)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput if a side has no variable, or both have the same one."""
        full = self.for_release(schema, released)
        if not full.known:
            raise BadInput(
                f"{place}.known",
                'nothing is known from the first place; name variables, or give some the role "quasi_identifier"',
            )
        if not full.other:
            raise BadInput(f"{place}.other", "nothing is known from the other place; name variables")
        for name in full.other:
            if name in full.known:
                raise BadInput(f"{place}.other", f'"{name}" is among the known variables')


def _draft_offer(case: Case) -> Offer | DeclinedOffer | None:
    """Offer the measure if records are held out and there are two sets of variables."""
    if case.want != "synthesis":
        return None
    if not case.holdout:
        return DeclinedOffer(WITHOUT_CONTROLS)
    other = [name for name in case.compared_variables if name not in case.known]
    if not case.known or not other:
        return DeclinedOffer(
            "all variables are quasi-identifiers, or none is: there are no two sets of variables to link"
        )
    return Offer(
        "whether quasi-identifiers and other variables of people in the data can be linked through the release more often than those of others",
        {"known": list(case.known)},
        limits=limits_for_all_variables("linkability", case, 0.05, output=LARGEST_ADDED),
    )


SCENE = (
    "An intruder has two lists of the same people with different variables, and does not know which entries belong "
    "together. He looks up the released record nearest to each entry. He succeeds with a person whose two entries lead to "
    "the same record."
)
WITHOUT = "Without the release he looks up the record of an outsider that is nearest to each entry."
OUTPUTS = (
    *attack_outputs(
        "linkage", "guesses", "are linked rightly", ("linkability",), IDENTITY, scene=SCENE, without=WITHOUT,
        naive=NaiveGuess(
            "linked at random",
            "Linked to records picked at random, the two entries of {value} of the people in the data lead to the same one.",
            "entries linked to records picked at random",
        ),
    ),
    *largest_excess_outputs("linkage", ("linkability",), IDENTITY, SCENE, WITHOUT),
)  # fmt: skip


@measure_method(
    "Linkability",
    spec=LinkabilitySpec,
    source="Giomi, Boenisch, Wehmeyer & Tasnádi (2022), arXiv 2211.10459, §3.1 and §4.3",
    outputs=OUTPUTS,
    confidential=True,
    controls=True,
    combine=combine_attacks,
)
@drafts(_draft_offer)
def linkability(confidential: Microdata, released: Microdata, spec: LinkabilitySpec, run: Run) -> Measure:
    """Measure the attack on random and on the most vulnerable people.

    Raises NotComputable if a variable is generalised.
    """
    assert confidential.controls is not None
    rng, controls = run.for_all, confidential.controls
    kinds: dict[TargetKind, tuple[Integers, Integers]] = {
        "random": (draw_rows(confidential, spec.records, rng), draw_rows(controls, spec.records, rng))
    }
    if "vulnerable" in spec.people:
        kinds["vulnerable"] = draw_vulnerable_rows(confidential, controls, spec.vulnerable, spec.records, rng)
    k = min(spec.neighbours, len(released))
    choices = _VariableChoices.from_tables(confidential, released, spec)
    shown = {
        names: (gower := GowerDistance.from_tables([released], names), gower.record_places(released))
        for names in choices.variable_sets
    }
    found: list[Estimate] = []
    for kind, (own, others) in kinds.items():
        if kind not in spec.people:
            continue
        params = {} if kind == "random" else {"people": kind}
        if not len(others):
            why = "no control record is as vulnerable as the people who are attacked"
            found += [Estimate.not_computed(output.name, why, **params) for output in OUTPUTS]
            continue
        attacked = select_rows(confidential, own), select_rows(controls, others)
        near: list[dict[tuple[str, ...], _NearestOfPlaces]] = [
            {n: _NearestOfPlaces.from_places(g, g.record_places(some), table, k) for n, (g, table) in shown.items()}
            for some in attacked
        ]
        tried = [
            at
            for at, pair in enumerate(choices.pairs)
            if not at or min(near[0][side].max_share_linked for side in pair) > MAX_LINKED_BY_CHANCE
        ]
        chances = [
            np.stack(
                [link_probability(*(nearest[side].expand_to_people() for side in choices.pairs[at])) for at in tried]
            )
            for nearest in near
        ]
        units = units_of_both(confidential, own, controls, others)
        of_groups = (None, None) if units is None else (units.own, units.others)
        rates = [SuccessRate.from_chances(of[0], unit_of) for of, unit_of in zip(chances, of_groups, strict=True)]
        side = independent_stream(rng)
        people = OtherPeople.draw(confidential, own, controls, others, side)
        without = [
            _linked_through_others(people.halves, second, choices.pairs[0], spec.neighbours, some)
            for second, some in zip(people.uses_second, attacked, strict=True)
        ]
        by_chance = SuccessRate(len(own) * _chance_link(k, len(released)), len(own))
        words = f"{count_noun(len(own), 'record')} and {count_noun(len(others), 'outsider')} are attacked"
        chance = rng.spawn(1)[0]
        p_value = exact_p_value(chances[0][0], chances[1][0], chance, units=units)
        gain = AddedSuccess.from_differences(chances[0][0] - without[0], chances[1][0] - without[1], side, units)
        result = AttackResult(rates[0], by_chance, rates[1], p_value=p_value, added_success=gain, is_naive=True)
        found += result.estimates(reason=words, **params)
        strategies = [choices.strategies[at] for at in tried]
        # those that are left out as too coarse cannot be the best
        possible = choices.n_possible if choices.n_possible > len(choices.pairs) else len(tried)
        stream = chance.spawn(1)[0]
        found += largest_excess_estimates(
            chances[0], chances[1], strategies, stream,
            n_strategies=possible, without=(without[0], without[1]), params=params, units=units,
        )  # fmt: skip
    return Measure(tuple(found))
