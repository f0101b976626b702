"""Looks of a search: which plans it evaluates, in which order, and which become finalists.

The stages are screening on a small sample, a third of the plans on a larger one (successive halving: Jamieson &
Talwalkar 2016), local moves around the best, first of the levers that the missed limits ask for (``guidance``), a
comparison of the finalists on all records, and their judgement on fresh random numbers, against hold-out records that
no look before has read. The first finalist that passes the judgement is taken. All of it depends on the results of the
looks alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ..recipe.thresholds import Verdict
from .dominance import is_non_dominated
from .guidance import relative_miss
from .space import LeverChoice, MovesByLimit, SearchLever, neighbouring_choices, spread_choices

Stage = Literal["screen", "enlarge", "refine", "compare", "judge"]
LOOKS_OF_ROUND = 4
"""Looks of a round of local moves: what a round found says where the next begins."""
FEWEST_RECORDS, SCREENING_DIVISOR = 1000, 16
"""A first look is at a sixteenth of the records, 1,000 or more; a second at three times as many."""
FINALISTS = 5
FEWEST_COMPARED = 4 * FINALISTS
"""Looks of a search at least that compares its finalists on all records: one with fewer has them for trying plans."""
EQUAL_LOSS_SHARE = 0.1
"""Share of the larger of two losses by which they differ at least where one is called better: less is chance."""


def error_divisor(place: int, finalists: int) -> int:
    """Return the divisor of the error of all judgements for the finalist at a place from 0: 2, 4, 8, ..., the last as
    the one before it.
    """
    # A fallback procedure (Wiens 2003, Pharmaceutical Statistics 2): the error of all judgements together is that of
    # one.
    return 1 if finalists <= 1 else 2 ** min(place + 1, finalists - 1)


@dataclass(frozen=True, slots=True)
class SearchLook:
    """A look of a search: a plan to evaluate.

    number: number of the look, from 1
    stage: stage of the search
    choice: option of each lever
    records: records that it is evaluated on; None: all of them, against the hold-out that is kept for the end
    """

    number: int
    stage: Stage
    choice: LeverChoice
    records: int | None

    @property
    def uses_all_records(self) -> bool:
        """Return whether the look uses all records, so that it takes as long as a release."""
        return self.stage in ("compare", "judge")


@dataclass(frozen=True, slots=True)
class LookResult:
    """The result of a look.

    penalty: 0 where every limit is met and nothing blocks, else larger the more is wrong; None where the plan could not be carried out
    cost: loss of utility, lower is better; None where the plan could not be carried out
    moves: moves for each limit that the look misses, the strongest first
    losses: what the release loses by each measure of utility, 0 for nothing, for the comparison with the plan that the search began with;
    empty where the cost alone is compared
    """

    penalty: float | None
    cost: float | None
    moves: MovesByLimit = ()
    losses: tuple[float | None, ...] = ()

    @property
    def rank(self) -> tuple[float, float]:
        """Return the sort key of the result: plans that meet the limits first, by their cost; then by how much is
        wrong.
        """
        return (
            # Sums of misses in another order differ in their last digits.
            math.inf if self.penalty is None else round(self.penalty, 9),
            math.inf if self.cost is None else self.cost,
        )


def loss_majority(ours: Sequence[float | None], theirs: Sequence[float | None]) -> int:
    """Return the number of measures of utility by which ``ours`` loses less than ``theirs``, less the number by which
    it loses more.

    Losses that are within a tenth, or not known, count for neither.
    """
    known = [(own, other) for own, other in zip(ours, theirs, strict=True) if own is not None and other is not None]
    apart = ((own, other) for own, other in known if abs(own - other) > EQUAL_LOSS_SHARE * max(abs(own), abs(other)))
    return sum(1 if own < other else -1 for own, other in apart)


def release_penalty(verdicts: Sequence[Verdict], blocks: int) -> float:
    """Return how far a release is from one that may be released: the relative misses of its limits, and 1 for each
    check that blocks.

    That is for each limit that its value misses between 0 and 1 by its distance in units of the limit, 1 where it
    was not computed, and 1 for each check that blocks.
    """
    return sum(relative_miss(verdict) for verdict in verdicts) + blocks


@dataclass(frozen=True)
class SearchPlan:
    """Levers and size of a search.

    levers: levers that it turns
    n_looks: how many plans it evaluates
    records: records of a release
    seed: seed of the order of plans
    canonical: function that returns the one choice that stands for all choices of the same plan
    repeats_differ: whether a second look at the same records has other random numbers, so that it adds information
    """

    levers: tuple[SearchLever, ...]
    n_looks: int
    records: int
    seed: int
    canonical: Callable[[LeverChoice], LeverChoice] = lambda choice: choice
    repeats_differ: bool = False

    @property
    def sample_sizes(self) -> tuple[int, int]:
        """Return the numbers of records of a first look and of a second."""
        first = min(self.records, max(FEWEST_RECORDS, self.records // SCREENING_DIVISOR))
        return first, min(self.records, 3 * first)

    @property
    def looks_by_stage(self) -> Mapping[Stage, int]:
        """Return the largest number of looks of each stage."""
        tells = self.repeats_differ or self.sample_sizes[1] < self.records
        # A comparison on the records of the second look, with the same random numbers, would say nothing new.
        compared = FINALISTS if tells and self.n_looks >= FEWEST_COMPARED else 0
        left = self.n_looks - FINALISTS - compared
        first = max(2, left * 2 // 5)
        second = max(1, first // 3)
        rest = left - first - second
        return {"screen": first, "enlarge": second, "refine": rest, "compare": compared, "judge": FINALISTS}

    @property
    def stage_rounds(self) -> Iterator[tuple[Stage, int]]:
        """Yield each stage with its largest number of looks, local moves in rounds."""
        for stage, count in self.looks_by_stage.items():
            step = LOOKS_OF_ROUND if stage == "refine" else max(count, 1)
            yield from ((stage, min(step, count - done)) for done in range(0, count, step))

    def next_looks(self, results: Mapping[int, LookResult]) -> list[SearchLook]:
        """Return the looks of the first stage that has not ended; none where the search has ended."""
        # Computed anew from the results, in whatever order they came: a search that was killed continues as if it had
        # not been.
        last = self._looks_of_stages(results)[-1]
        return last if _has_open_looks(last, results) else []

    def all_looks(self, results: Mapping[int, LookResult]) -> list[SearchLook]:
        """Return all looks up to the present stage."""
        return [look for stage in self._looks_of_stages(results) for look in stage]

    def best_look(self, results: Mapping[int, LookResult]) -> SearchLook | None:
        """Return the best look so far, of the larger samples once one has ended there; None before any has ended."""
        known = [look for look in self.all_looks(results) if look.number in results]
        larger = [look for look in known if look.stage != "screen"]
        return next(iter(self._rank_looks(larger, results) or self._rank_looks(known, results)), None)

    def planned_looks(self, results: Mapping[int, LookResult]) -> list[int | None]:
        """Return the number of records of each look that the search makes; None for all, against the hold-out.

        Those of the stages to come are the most that there may be.
        """
        entered = self.all_looks(results)
        reached = entered[-1].stage
        sizes = [look.records for look in entered]
        of_stage = {"screen": self.sample_sizes[0], "compare": self.records, "judge": None}
        stages = list(self.looks_by_stage)
        for stage, count in self.looks_by_stage.items():
            # Local moves are entered in rounds, any other stage at once.
            begun = sum(look.stage == stage for look in entered)
            to_come = stages.index(stage) > stages.index(reached) or (stage == reached == "refine")
            sizes += [of_stage.get(stage, self.sample_sizes[1])] * (max(0, count - begun) if to_come else 0)
        return sizes

    def _looks_of_stages(self, found: Mapping[int, LookResult]) -> list[list[SearchLook]]:
        """Return the looks of each stage, up to the first that has not ended."""
        stages: list[list[SearchLook]] = []
        for stage, wanted in self.stage_rounds:
            stages.append(self._looks_of_stage(stage, wanted, [look for own in stages for look in own], found))
            if _has_open_looks(stages[-1], found):
                break
        return stages

    def _looks_of_stage(
        self, stage: Stage, wanted: int, before: Sequence[SearchLook], found: Mapping[int, LookResult]
    ) -> list[SearchLook]:
        """Return the looks of one stage, after those of the stages ``before``."""
        small, large = self.sample_sizes
        if stage == "screen":
            choices, records = self._screening_choices, small
        elif stage == "enlarge":
            ranked = [look.choice for look in self._rank_looks(before, found)]
            choices, records = self._with_start(ranked, wanted, before, found), large
        elif stage == "compare":
            # The order on a sample is not that on all records.
            choices, records = self._choose_finalists(before, found), self.records
        elif stage == "judge":
            # What was found before decides the order: no fresh figure chooses among finalists, so that the fresh
            # utility of the one that is taken is not the best of several.
            choices, records = self._place_start(self._judging_order(before, found), before, found), None
        else:
            choices, records = self._local_choices(before, found, wanted), large
        return self._number_looks(stage, before, choices, records)

    @cached_property
    def _screening_choices(self) -> Sequence[LeverChoice]:
        """Return the plans of the first stage."""
        return spread_choices(self.levers, self.looks_by_stage["screen"], self.seed, self.canonical)

    @staticmethod
    def _number_looks(
        stage: Stage, before: Sequence[SearchLook], choices: Sequence[LeverChoice], records: int | None
    ) -> list[SearchLook]:
        """Return the looks at these plans, numbered after those before."""
        return [SearchLook(len(before) + at, stage, choice, records) for at, choice in enumerate(choices, start=1)]

    def _local_choices(
        self, before: Sequence[SearchLook], found: Mapping[int, LookResult], wanted: int
    ) -> list[LeverChoice]:
        """Return new plans around the non-dominated ones of the larger sample, the best first, then around the others."""
        large = [look for look in before if look.stage != "screen"]
        seen = {look.choice for look in before}
        taken: list[LeverChoice] = []
        for look in dict.fromkeys([*self._pareto_front(large, found), *self._rank_looks(large, found)]):
            own = found[look.number]
            safer = (own.penalty or 0.0) > 0
            for choice in map(
                self.canonical, neighbouring_choices(self.levers, look.choice, safer=safer, asks=own.moves)
            ):
                if len(taken) == wanted:
                    return taken
                if choice not in seen and choice not in taken:
                    taken.append(choice)
        return taken

    def _choose_finalists(self, before: Sequence[SearchLook], found: Mapping[int, LookResult]) -> list[LeverChoice]:
        """Return the best plans of the larger sample and the most protective one; where these are too few, also the
        best of the small sample.
        """
        large, every = (
            [look.choice for look in self._rank_looks(looks, found)]
            for looks in ([look for look in before if look.stage != "screen"], before)
        )
        ranked = list(dict.fromkeys([*large, *every]))
        safest = max(large or every, key=self._protection_level, default=None)
        best = self._with_start(ranked, FINALISTS - 1, before, found)
        return list(dict.fromkeys([*best, *([] if safest is None else [safest]), *ranked]))[:FINALISTS]

    @property
    def start_choice(self) -> LeverChoice:
        """Return the choice of the plan that the search begins with."""
        return tuple(lever.now for lever in self.levers)

    def _with_start(
        self, ranked: Sequence[LeverChoice], wanted: int, before: Sequence[SearchLook], found: Mapping[int, LookResult]
    ) -> list[LeverChoice]:
        """Return the first ``wanted`` choices, the last of them replaced by the starting plan where that passes so far."""
        first = list(ranked[:wanted])
        if wanted > 1 and self.start_choice not in first and self._last_look_passes(self.start_choice, before, found):
            first[-1:] = [self.start_choice]
        return first

    @staticmethod
    def _last_look_passes(choice: LeverChoice, before: Sequence[SearchLook], found: Mapping[int, LookResult]) -> bool:
        """Return whether the last look at a plan met every limit and no check blocked."""
        last = next((look for look in reversed(before) if look.choice == choice), None)
        return last is not None and found[last.number].penalty == 0

    def _place_start(
        self, choices: Sequence[LeverChoice], before: Sequence[SearchLook], found: Mapping[int, LookResult]
    ) -> list[LeverChoice]:
        """Return the finalists with the starting plan before those that pass and are no better than it."""
        start = self.start_choice
        if start not in choices or not self._last_look_passes(start, before, found):
            return list(choices)
        own, rest = self._best_known_result(start, before, found), [choice for choice in choices if choice != start]
        passing = {choice for choice in rest if self._last_look_passes(choice, before, found)}
        better = [
            # By most measures of utility: one measure alone would be paid for with the others.
            one
            for one in rest
            if one in passing and _is_better(self._best_known_result(one, before, found), own)
        ]
        return list(dict.fromkeys([*better, start, *(one for one in rest if one in passing), *rest]))

    def _best_known_result(
        self, choice: LeverChoice, before: Sequence[SearchLook], found: Mapping[int, LookResult]
    ) -> LookResult:
        """Return the mean result of a plan on all records, or else its last result."""
        every = self._results_on_all_records(choice, before, found)
        return _mean_result(every or [found[look.number] for look in before if look.choice == choice][-1:])

    def _judging_order(self, before: Sequence[SearchLook], found: Mapping[int, LookResult]) -> list[LeverChoice]:
        """Return the finalists by the mean of their results on all records; those without one come last."""
        compared = [look for look in before if look.stage == "compare"]
        if not compared:
            return self._choose_finalists(before, found)
        means = {
            look.number: _mean_result(self._results_on_all_records(look.choice, before, found)) for look in compared
        }
        ranked = self._rank_looks([look for look in compared if found[look.number].penalty is not None], means)
        return list(dict.fromkeys(look.choice for look in [*ranked, *compared]))

    def _results_on_all_records(
        self, choice: LeverChoice, before: Sequence[SearchLook], found: Mapping[int, LookResult]
    ) -> list[LookResult]:
        """Return the results of all looks at a plan on all records."""
        same = (look for look in before if look.choice == choice and look.records == self.records)
        return [found[look.number] for look in same]

    def _rank_looks(self, looks: Sequence[SearchLook], found: Mapping[int, LookResult]) -> list[SearchLook]:
        """Return the last look at each plan that could be carried out, the best first."""
        last = {look.choice: look for look in looks if found[look.number].penalty is not None}

        def sort_key(look: SearchLook) -> tuple[float, ...]:
            """Return the key that is smallest for the best look."""
            penalty, cost = found[look.number].rank
            protection = self._protection_level(look.choice)
            # Of equally useful plans that meet the limits the one that protects less: it changes less than the others
            # need to.
            return penalty, cost, -protection if penalty else protection, look.number

        return sorted(last.values(), key=sort_key)

    def _pareto_front(self, looks: Sequence[SearchLook], found: Mapping[int, LookResult]) -> list[SearchLook]:
        """Return the looks whose penalty and cost no other one dominates, the best first."""
        ranked = self._rank_looks(looks, found)
        if not ranked:
            return []
        costs = np.array([[found[look.number].penalty, found[look.number].rank[1]] for look in ranked], dtype=float)
        return [look for look, kept in zip(ranked, is_non_dominated(costs), strict=True) if kept]

    def _protection_level(self, choice: LeverChoice) -> float:
        """Return the sum over levers of how far each is turned towards protection, from 0 to 1."""
        return sum(
            at / (len(lever.options) - 1)
            for at, lever in zip(choice, self.levers, strict=True)
            if lever.later_protects_more
        )


def _mean_result(found: Sequence[LookResult]) -> LookResult:
    """Return the mean of several results of a plan, without those that could not be carried out."""
    penalties = [one.penalty for one in found if one.penalty is not None]
    costs = [one.cost for one in found if one.cost is not None]
    lost = [one.losses for one in found if one.penalty is not None]
    losses = (_mean_of_known(column) for column in zip(*lost, strict=True))
    return LookResult(_mean_of_known(penalties), _mean_of_known(costs), losses=tuple(losses))


def _mean_of_known(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _is_better(one: LookResult, other: LookResult) -> bool:
    """Return whether a result is better by most measures of utility, or by its cost where losses are not known."""
    if one.losses and other.losses:
        return loss_majority(one.losses, other.losses) > 0
    return one.rank[1] < other.rank[1]


def _has_open_looks(looks: Sequence[SearchLook], found: Mapping[int, LookResult]) -> bool:
    """Return whether some look has no result yet."""
    return any(look.number not in found for look in looks)
