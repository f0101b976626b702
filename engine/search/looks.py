"""Which plans a search looks at, in which order, and which become finalists. It depends on the findings of the looks alone.

Screening on a small sample, a third of the plans on a larger one (successive halving: Jamieson & Talwalkar 2016), local moves around the best, first of
the levers that the missed limits ask for (``guidance``), then finalists. These are compared on all records that releases are made of, since the order on
a sample is not theirs, and then judged on fresh random numbers, against hold-out records that no look before has read. What looks found
before the judgement decides which plans continue and in which order the finalists stand; the first of them that passes the judgement is taken. The error of all judgements together is
that of one: the first finalist has half of it, the next half of what is left, as in a fallback procedure (Wiens 2003, Pharmaceutical Statistics 2).
Since no fresh figure chooses among finalists, the fresh utility of the one that is taken is not the best of several.

The plan that the search begins with is looked at again wherever it passes, and is a finalist. Another one stands before it only where it is better by more
measures of utility than it is worse: one measure alone would be paid for with the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ..recipe.thresholds import Verdict
from .dominance import non_dominated
from .guidance import missed_by
from .space import Asks, Choice, Lever, moves, screened

Stage = Literal["screen", "enlarge", "refine", "compare", "judge"]
A_ROUND = 4
"""Looks of a round of local moves: what a round found says where the next begins."""
FEWEST, SHARE = 1000, 16
"""A first look is at a sixteenth of the records, 1,000 or more; a second at three times as many."""
FINALISTS = 5
FEWEST_COMPARED = 4 * FINALISTS
"""Looks of a search at least that compares its finalists on all records: one with fewer has them for trying plans."""
EQUAL = 0.1
"""Share of the larger of two losses by which they differ at least where one is called better: less is chance."""


def judged_among(place: int, finalists: int) -> int:
    """Of how many releases the finalist at a place, from 0, is judged to be one: 2, 4, 8, ..., the last as the one before it."""
    return 1 if finalists <= 1 else 2 ** min(place + 1, finalists - 1)


@dataclass(frozen=True, slots=True)
class Look:
    """A plan to look at, on so many records (None: all of them, against the hold-out that is kept for the end)."""

    number: int
    stage: Stage
    choice: Choice
    records: int | None

    @property
    def whole(self) -> bool:
        """Whether it takes as long as a release: it is at all records."""
        return self.stage in ("compare", "judge")


@dataclass(frozen=True, slots=True)
class Found:
    """What a look found. ``penalty`` is 0 where every limit is met and nothing blocks, else larger the more is wrong; ``cost`` is the utility's, lower
    is better; both None where the plan could not be carried out. ``asks`` are the moves that each limit which it misses asks for, the strongest first.
    ``losses`` are what the release loses by each measure of utility, 0 for nothing, by which it is held against the plan that the search began with; of
    the cost alone where there are none.
    """

    penalty: float | None
    cost: float | None
    asks: Asks = ()
    losses: tuple[float | None, ...] = ()

    @property
    def rank(self) -> tuple[float, float]:
        """Plans that meet the limits first, of these the most useful; then by how much is wrong."""
        return (
            math.inf if self.penalty is None else round(self.penalty, 9),
            math.inf if self.cost is None else self.cost,
        )


def votes(ours: Sequence[float | None], theirs: Sequence[float | None]) -> int:
    """By how many measures of utility we lose less than they, minus those by which we lose more; losses that are within a tenth, or not known, count for neither."""
    known = [(own, other) for own, other in zip(ours, theirs, strict=True) if own is not None and other is not None]
    apart = ((own, other) for own, other in known if abs(own - other) > EQUAL * max(abs(own), abs(other)))
    return sum(1 if own < other else -1 for own, other in apart)


def penalty_of(verdicts: Sequence[Verdict], blocks: int) -> float:
    """How far a release is from one that may leave: for each limit that its value misses between 0 and 1 by its distance in units of the limit, 1 where it
    was not computed, 1 for each check that blocks.
    """
    return sum(missed_by(verdict) for verdict in verdicts) + blocks


@dataclass(frozen=True)
class SearchPlan:
    """The levers of a search, how many plans it looks at, of how many records it screens, and its seed.

    ``same`` gives the one choice of all that are the same plan. ``repeats`` says that a second look at the same records has other random numbers than the
    first, so that it tells something.
    """

    levers: tuple[Lever, ...]
    looks: int
    records: int
    seed: int
    same: Callable[[Choice], Choice] = lambda choice: choice
    repeats: bool = False

    @property
    def sizes(self) -> tuple[int, int]:
        """Records of a first look and of a second."""
        first = min(self.records, max(FEWEST, self.records // SHARE))
        return first, min(self.records, 3 * first)

    @property
    def counts(self) -> Mapping[Stage, int]:
        """How many plans each stage looks at at most, all rounds of local moves together."""
        tells = self.repeats or self.sizes[1] < self.records
        compared = FINALISTS if tells and self.looks >= FEWEST_COMPARED else 0
        left = self.looks - FINALISTS - compared
        first = max(2, left * 2 // 5)
        second = max(1, first // 3)
        rest = left - first - second
        return {"screen": first, "enlarge": second, "refine": rest, "compare": compared, "judge": FINALISTS}

    @property
    def stages(self) -> Iterator[tuple[Stage, int]]:
        """Each stage with how many plans it looks at at most; local moves in rounds."""
        for stage, count in self.counts.items():
            step = A_ROUND if stage == "refine" else max(count, 1)
            yield from ((stage, min(step, count - done)) for done in range(0, count, step))

    def next_looks(self, found: Mapping[int, Found]) -> list[Look]:
        """The looks of the first stage of which some are not in ``found``; none where the search has ended.

        The same for the same findings, in whatever order these came: a search that was killed continues as if it had not been.
        """
        last = self._stages(found)[-1]
        return last if _is_open(last, found) else []

    def all_looks(self, found: Mapping[int, Found]) -> list[Look]:
        """Every look so far, those of the stage under way included."""
        return [look for stage in self._stages(found) for look in stage]

    def _stages(self, found: Mapping[int, Found]) -> list[list[Look]]:
        """The looks of each stage, up to the first that has not ended."""
        stages: list[list[Look]] = []
        for stage, wanted in self.stages:
            stages.append(self._stage(stage, wanted, [look for own in stages for look in own], found))
            if _is_open(stages[-1], found):
                break
        return stages

    def _stage(self, stage: Stage, wanted: int, before: Sequence[Look], found: Mapping[int, Found]) -> list[Look]:
        small, large = self.sizes
        if stage == "screen":
            choices, records = self._screened, small
        elif stage == "enlarge":
            ranked = [look.choice for look in self._ranked(before, found)]
            choices, records = self._with_start(ranked, wanted, before, found), large
        elif stage == "compare":
            choices, records = self._finalists(before, found), self.records
        elif stage == "judge":
            choices, records = self._after_start(self._in_order(before, found), before, found), None
        else:
            choices, records = self._around(before, found, wanted), large
        return self._numbered(stage, before, choices, records)

    @cached_property
    def _screened(self) -> Sequence[Choice]:
        return screened(self.levers, self.counts["screen"], self.seed, self.same)

    @staticmethod
    def _numbered(stage: Stage, before: Sequence[Look], choices: Sequence[Choice], records: int | None) -> list[Look]:
        return [Look(len(before) + at, stage, choice, records) for at, choice in enumerate(choices, start=1)]

    def _around(self, before: Sequence[Look], found: Mapping[int, Found], wanted: int) -> list[Choice]:
        """Plans around the non-dominated ones of the larger sample, the best first, that were not looked at; then around the others."""
        large = [look for look in before if look.stage != "screen"]
        seen = {look.choice for look in before}
        taken: list[Choice] = []
        for look in dict.fromkeys([*self._front(large, found), *self._ranked(large, found)]):
            own = found[look.number]
            safer = (own.penalty or 0.0) > 0
            for choice in map(self.same, moves(self.levers, look.choice, safer=safer, asks=own.asks)):
                if len(taken) == wanted:
                    return taken
                if choice not in seen and choice not in taken:
                    taken.append(choice)
        return taken

    def _finalists(self, before: Sequence[Look], found: Mapping[int, Found]) -> list[Choice]:
        """The best plans of the larger sample, and the most protective one beside them; where these are too few, the best of the small sample."""
        large, every = (
            [look.choice for look in self._ranked(looks, found)]
            for looks in ([look for look in before if look.stage != "screen"], before)
        )
        ranked = list(dict.fromkeys([*large, *every]))
        safest = max(large or every, key=self._protection, default=None)
        best = self._with_start(ranked, FINALISTS - 1, before, found)
        return list(dict.fromkeys([*best, *([] if safest is None else [safest]), *ranked]))[:FINALISTS]

    @property
    def start(self) -> Choice:
        """The plan that the search begins with."""
        return tuple(lever.now for lever in self.levers)

    def _with_start(
        self, ranked: Sequence[Choice], wanted: int, before: Sequence[Look], found: Mapping[int, Found]
    ) -> list[Choice]:
        """The first choices, so many as wanted; the last one gives way to the plan that the search began with, where that passes so far."""
        first = list(ranked[:wanted])
        if wanted > 1 and self.start not in first and self._passes(self.start, before, found):
            first[-1:] = [self.start]
        return first

    @staticmethod
    def _passes(choice: Choice, before: Sequence[Look], found: Mapping[int, Found]) -> bool:
        """Whether the last look at a plan met every limit, and nothing that was asked there blocks."""
        last = next((look for look in reversed(before) if look.choice == choice), None)
        return last is not None and found[last.number].penalty == 0

    def _after_start(
        self, choices: Sequence[Choice], before: Sequence[Look], found: Mapping[int, Found]
    ) -> list[Choice]:
        """Finalists in their order, but for those that pass as the plan does which the search began with, and are no better: they come after it."""
        start = self.start
        if start not in choices or not self._passes(start, before, found):
            return list(choices)
        own, rest = self._last_found(start, before, found), [choice for choice in choices if choice != start]
        passing = {choice for choice in rest if self._passes(choice, before, found)}
        better = [one for one in rest if one in passing and _is_better(self._last_found(one, before, found), own)]
        return list(dict.fromkeys([*better, start, *(one for one in rest if one in passing), *rest]))

    def _last_found(self, choice: Choice, before: Sequence[Look], found: Mapping[int, Found]) -> Found:
        """What was found of a plan on all records, or else by its last look."""
        every = self._at_all_records(choice, before, found)
        return _mean(every or [found[look.number] for look in before if look.choice == choice][-1:])

    def _in_order(self, before: Sequence[Look], found: Mapping[int, Found]) -> list[Choice]:
        """The finalists as they are judged: by the mean of what their looks at all records found, after these those that were not compared there."""
        compared = [look for look in before if look.stage == "compare"]
        if not compared:
            return self._finalists(before, found)
        means = {look.number: _mean(self._at_all_records(look.choice, before, found)) for look in compared}
        ranked = self._ranked([look for look in compared if found[look.number].penalty is not None], means)
        return list(dict.fromkeys(look.choice for look in [*ranked, *compared]))

    def _at_all_records(self, choice: Choice, before: Sequence[Look], found: Mapping[int, Found]) -> list[Found]:
        same = (look for look in before if look.choice == choice and look.records == self.records)
        return [found[look.number] for look in same]

    def _ranked(self, looks: Sequence[Look], found: Mapping[int, Found]) -> list[Look]:
        """The looks whose plans could be carried out, the best first, of each plan the last look.

        Of plans that are equally useful the one that protects less, where both meet the limits: it changes less than the others need to.
        """
        last = {look.choice: look for look in looks if found[look.number].penalty is not None}

        def key(look: Look) -> tuple[float, ...]:
            penalty, cost = found[look.number].rank
            protection = self._protection(look.choice)
            return penalty, cost, -protection if penalty else protection, look.number

        return sorted(last.values(), key=key)

    def _front(self, looks: Sequence[Look], found: Mapping[int, Found]) -> list[Look]:
        """The looks that none beats in both penalty and cost, the best first."""
        ranked = self._ranked(looks, found)
        if not ranked:
            return []
        costs = np.array([[found[look.number].penalty, found[look.number].rank[1]] for look in ranked], dtype=float)
        return [look for look, kept in zip(ranked, non_dominated(costs), strict=True) if kept]

    def _protection(self, choice: Choice) -> float:
        return sum(at / (len(lever.options) - 1) for at, lever in zip(choice, self.levers, strict=True) if lever.rising)


def _mean(found: Sequence[Found]) -> Found:
    """What several looks at a plan found on average, of those that could be carried out."""
    penalties = [one.penalty for one in found if one.penalty is not None]
    costs = [one.cost for one in found if one.cost is not None]
    lost = [one.losses for one in found if one.penalty is not None]
    losses = (_mean_of(column) for column in zip(*lost, strict=True))
    return Found(_mean_of(penalties), _mean_of(costs), losses=tuple(losses))


def _mean_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _is_better(one: Found, other: Found) -> bool:
    """Whether a plan is better than another by more measures of utility than it is worse; by its cost where losses are not known."""
    if one.losses and other.losses:
        return votes(one.losses, other.losses) > 0
    return one.rank[1] < other.rank[1]


def _is_open(looks: Sequence[Look], found: Mapping[int, Found]) -> bool:
    return any(look.number not in found for look in looks)
