"""What a search found, in words: its finalists, which one may leave, or what stands in the way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sfumato.engine.methods.labels import label_of, measure_name
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.search.space import UNCHANGED_TEXT
from sfumato.engine.wording import count_noun

from .tables import Table, table
from .words import limit_text, observed_text

Limit = tuple[object, ...]
FINALISTS = ("run", "plan", "limits", "gate", "utility in the search", "utility on all records")
WORDS_OF_VOTES = {1: "better", -1: "worse", 0: "no different"}
MOST_RELAXED = 3


@dataclass(frozen=True)
class Finalist:
    """A plan that was judged anew. ``searched`` is its utility on the sample by which it was chosen, ``fresh`` the one found now; the verdicts hold for all finalists at once."""

    run_id: int
    label: str
    verdicts: tuple[Verdict, ...]
    blocks: tuple[str, ...]
    searched: float | None
    fresh: float | None

    @property
    def passes(self) -> bool:
        """Whether every limit is met and no check of the gate blocks."""
        return not self.blocks and all(verdict.outcome == "met" for verdict in self.verdicts)

    @property
    def open(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.outcome != "met")


@dataclass(frozen=True)
class Gain:
    """A utility of the unchanged plan and of the finalist that is taken in its place; ``vote`` is 1 where this one is better, -1 where worse, 0 where they are equal but for chance."""

    key: str
    before: float
    after: float
    vote: int


@dataclass(frozen=True)
class InTheWay:
    """A limit that the nearest finalist does not meet: the best verdict on it over all finalists, and how many of the plans looked at miss it."""

    best: Verdict
    missed: int
    plans: int


@dataclass(frozen=True)
class Relaxation:
    """Limits that would let a finalist pass, each with its verdict now."""

    finalist: Finalist
    limits: tuple[tuple[Verdict, float], ...]

    @property
    def size(self) -> tuple[int, float]:
        """How many limits it moves, and the largest distance in units of the limit."""
        return len(self.limits), max(abs(limit - one.limit) / max(abs(one.limit), 1e-9) for one, limit in self.limits)


@dataclass(frozen=True)
class Outcome:
    """What a search found: the finalists in the order that the search gave them; how many plans were looked at, how many could not be carried out, and whether it has ended.

    ``missed`` has by limit how many of the plans that were judged by it miss it, and how many these are. Where the ``minutes`` were used up,
    ``not_begun`` looks and ``not_judged`` finalists were left out. ``gains`` say what the winner has in place of the unchanged plan, where that was judged.
    ``answer`` are the lines of the gate's answer for the winner.
    """

    search_id: int
    project_id: int
    objective: str
    finalists: tuple[Finalist, ...]
    looked_at: int
    refused: int
    ended: bool = True
    missed: Mapping[Limit, tuple[int, int]] = field(default_factory=dict)
    minutes: float | None = None
    not_begun: int = 0
    not_judged: int = 0
    gains: tuple[Gain, ...] = ()
    answer: tuple[str, ...] = ()

    @property
    def start(self) -> Finalist | None:
        """The plan that the search began with, where it was judged."""
        return next((one for one in self.finalists if one.label == UNCHANGED_TEXT), None)

    @property
    def winner(self) -> Finalist | None:
        """The first finalist that may leave; None where none may."""
        return next((one for one in self.finalists if one.passes), None)

    @property
    def nearest(self) -> Finalist | None:
        """The finalist that is the nearest to leaving."""
        return min(self.finalists, key=lambda one: len(one.blocks) + len(one.open), default=None)

    def in_the_way(self) -> list[InTheWay]:
        """The limits that the nearest finalist does not meet, where none may leave."""
        if self.winner is not None or self.nearest is None:
            return []
        found = []
        for verdict in self.nearest.open:
            own = limit_of(verdict)
            same = [one for finalist in self.finalists for one in finalist.verdicts if limit_of(one) == own]
            best = max(same, key=lambda one: float("-inf") if one.margin is None else one.margin)
            missed, plans = self.missed.get(own, (sum(one.outcome != "met" for one in same), len(same)))
            found.append(InTheWay(best, missed, plans))
        return found

    def relaxations(self) -> list[Relaxation]:
        """By which other limits finalists would pass where none does, the smallest change first; none for one that the gate blocks."""
        if self.winner is not None:
            return []
        found = []
        for one in self.finalists:
            limits = [(verdict, verdict.limit_needed) for verdict in one.open]
            if not one.blocks and all(limit is not None for _, limit in limits):
                found.append(Relaxation(one, tuple((verdict, limit) for verdict, limit in limits if limit is not None)))
        return sorted(found, key=lambda one: one.size)


def limit_of(verdict: Verdict) -> Limit:
    """What a verdict is about: the same of each plan."""
    return verdict.value, verdict.target, verdict.level, verdict.bound, verdict.limit, str(verdict.params)


def finalist_cells(one: Finalist) -> list[str]:
    met = len(one.verdicts) - len(one.open)
    return [
        str(one.run_id),
        one.label,
        f"{met} of {len(one.verdicts)} met",
        f"{count_noun(len(one.blocks), 'finding')} {'blocks' if len(one.blocks) == 1 else 'block'}"
        if one.blocks
        else "passes",
        "" if one.searched is None else f"{one.searched:.4g}",
        "" if one.fresh is None else f"{one.fresh:.4g}",
    ]


def finalists_table(found: Outcome) -> Table:
    return table(FINALISTS, [finalist_cells(one) for one in found.finalists])


def headline(found: Outcome) -> str:
    """How many plans were looked at."""
    refused = f"; {found.refused} could not be carried out" if found.refused else ""
    return f"Search {found.search_id}: {count_noun(found.looked_at, 'plan')} looked at{refused}"


def conclusion(found: Outcome) -> list[str]:
    """Which finalist may leave, or what stands in the way of the nearest one, in lines."""
    lines = [out_of_minutes(found)] if found.not_begun or found.not_judged else []
    if not found.finalists:
        return [*lines, "No plan could be carried out on all records."]
    start, winner = found.start, found.winner
    if start is not None and start.passes:
        lines.append(f"The plan passes as it is: run {start.run_id}.")
    lines.append(f"Utility: {measure_name(found.objective)}. The first finalist that passes is taken.")
    if winner is not None:
        return [*lines, *gained(found), f"Run {winner.run_id} passes: {winner.label}.", *found.answer]
    lines.append("No finalist passes. In the way of the nearest one:")
    for one in found.in_the_way():
        verdict = one.best
        limit = limit_text(verdict.bound, verdict.limit, verdict.value)
        nearest = f"nearest {observed_text(verdict)} ({verdict.outcome})"
        plans = (
            f"all {count_noun(one.plans, 'plan')}"
            if one.missed == one.plans
            else f"{one.missed} of {count_noun(one.plans, 'plan')}"
        )
        lines.append(f"  {label_of(verdict)}: {limit}, {nearest}; {plans} {'misses' if one.missed == 1 else 'miss'} it")
    lines += [
        f"  the gate blocks: {check}; no limit of the plan changes that"
        for check in (found.nearest.blocks if found.nearest else ())
    ]
    return [*lines, *relaxed(found)]


def gained(found: Outcome) -> list[str]:
    """What the finalist that is taken has in place of the unchanged plan, in a line; or that none is better by most measures."""
    start, winner = found.start, found.winner
    if start is None:
        return []
    if winner is start:
        return ["No finalist was better than it by more measures of utility than it was worse."]
    named = {vote: [_change(one) for one in found.gains if one.vote == vote] for vote in (1, -1, 0)}
    said = [f"{word} {', '.join(named[vote])}" for vote, word in WORDS_OF_VOTES.items() if named[vote]]
    fails = "" if start.passes else ", which does not pass"
    return [f"In place of the unchanged plan (run {start.run_id}{fails}): {'; '.join(said)}."] if said else []


def _change(one: Gain) -> str:
    name = measure_name(one.key)
    return f"{name[:1].lower()}{name[1:]} {one.before:.3g} -> {one.after:.3g}"


def out_of_minutes(found: Outcome) -> str:
    """What a search did not do since its minutes were used up."""
    left = [
        f"{count_noun(count, what)} {'was' if count == 1 else 'were'} not {done}"
        for count, what, done in ((found.not_begun, "look", "begun"), (found.not_judged, "finalist", "judged"))
        if count
    ]
    minutes = found.minutes or 0.0
    return f"The {minutes:g} minute{'' if minutes == 1 else 's'} were used up: {' and '.join(left)}."


def relaxed(found: Outcome) -> list[str]:
    """Which limits would let which finalist pass, the smallest change first, in lines."""
    smallest = found.relaxations()[:MOST_RELAXED]
    if not smallest:
        return ["No other limit would let a finalist pass."] if found.nearest is not None else []
    lines = ["With these limits it would pass:"]
    for one in smallest:
        limits = "; ".join(
            f"{label_of(verdict)} {limit_text(verdict.bound, rounded_outward(verdict.bound, limit), verdict.value)}"
            for verdict, limit in one.limits
        )
        utility = "" if one.finalist.fresh is None else f" (utility {one.finalist.fresh:.4g})"
        lines.append(f"  run {one.finalist.run_id}{utility}: {limits}")
    return lines


def rounded_outward(bound: str, limit: float) -> float:
    """A limit to three digits that is met where the limit itself is."""
    if not limit or not math.isfinite(limit):
        return limit
    step = 10.0 ** (math.floor(math.log10(abs(limit))) - 2)
    whole = math.floor(limit / step + 1e-9) if bound == "min" else math.ceil(limit / step - 1e-9)
    return float(f"{whole * step:.12g}")
