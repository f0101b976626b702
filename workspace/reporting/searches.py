"""Result of a search in words: its finalists, which of them passes, or which limits no finalist meets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sfumato.engine.methods.labels import label_of, measure_name
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.search.space import UNCHANGED_TEXT
from sfumato.engine.wording import count_noun

from .tables import DisplayTable, table_from_titles
from .words import duration_text, limit_text, observed_text

LimitIdentity = tuple[object, ...]
FINALIST_HEADS = ("run", "plan", "limits", "gate", "utility in the search", "utility on all records")
WORDS_OF_VOTES = {1: "better", -1: "worse", 0: "no different"}
MOST_RELAXATIONS = 3


@dataclass(frozen=True)
class SearchFinalist:
    """Plan of a search that was evaluated again on all records.

    run_id, label: its run and its changes
    verdicts: verdicts that hold for all finalists at once
    blocking_findings: checks of the gate that block
    search_utility: utility on the sample by which it was chosen
    full_utility: utility on all records
    """

    run_id: int
    label: str
    verdicts: tuple[Verdict, ...]
    blocking_findings: tuple[str, ...]
    search_utility: float | None
    full_utility: float | None

    @property
    def is_passing(self) -> bool:
        """Return whether every limit is met and no check of the gate blocks."""
        return not self.blocking_findings and all(verdict.outcome == "met" for verdict in self.verdicts)

    @property
    def unmet_verdicts(self) -> tuple[Verdict, ...]:
        """Return the verdicts on limits that are not met."""
        return tuple(verdict for verdict in self.verdicts if verdict.outcome != "met")


@dataclass(frozen=True)
class UtilityChange:
    """Utility of the unchanged plan and of the winning finalist.

    key: its measure
    before, after: its values
    vote: 1 where the finalist is better, -1 where worse, 0 where they do not differ beyond chance
    """

    key: str
    before: float
    after: float
    vote: int


@dataclass(frozen=True)
class BlockingLimit:
    """Limit that the nearest finalist does not meet.

    best_verdict: best verdict on it over all finalists
    n_missed: number of tried plans that miss it
    n_plans: number of tried plans that it applies to
    """

    best_verdict: Verdict
    n_missed: int
    n_plans: int


@dataclass(frozen=True)
class LimitRelaxation:
    """Limits with which a finalist would pass, each with its present verdict."""

    finalist: SearchFinalist
    limits: tuple[tuple[Verdict, float], ...]

    @property
    def change_size(self) -> tuple[int, float]:
        """Return the number of limits that change, and the largest change relative to the limit."""
        # relative to the limit, with a floor, since a limit may be 0
        return len(self.limits), max(abs(limit - one.limit) / max(abs(one.limit), 1e-9) for one, limit in self.limits)


@dataclass(frozen=True)
class SearchOutcome:
    """Result of a search.

    finalists: finalists in the order of the search
    n_tried: number of plans that were tried
    n_failed: number of plans that could not be carried out
    has_ended: whether the search has ended
    missed_limits: for each limit the number of plans that miss it, and of plans that it applies to
    minutes: time limit, where it was used up
    not_begun, not_judged: number of trials and finalists that were then left out
    gains: utilities of the winner compared with those of the unchanged plan
    gate_answer: lines of the gate's answer for the winner
    """

    search_id: int
    project_id: int
    objective: str
    finalists: tuple[SearchFinalist, ...]
    n_tried: int
    n_failed: int
    has_ended: bool = True
    missed_limits: Mapping[LimitIdentity, tuple[int, int]] = field(default_factory=dict)
    minutes: float | None = None
    not_begun: int = 0
    not_judged: int = 0
    gains: tuple[UtilityChange, ...] = ()
    gate_answer: tuple[str, ...] = ()

    @property
    def unchanged_finalist(self) -> SearchFinalist | None:
        """Return the plan that the search began with, where it was evaluated."""
        return next((one for one in self.finalists if one.label == UNCHANGED_TEXT), None)

    @property
    def winner(self) -> SearchFinalist | None:
        """Return the first finalist that passes; None where none does."""
        return next((one for one in self.finalists if one.is_passing), None)

    @property
    def nearest_finalist(self) -> SearchFinalist | None:
        """Return the finalist with the fewest unmet limits and blocking findings."""
        return min(self.finalists, key=lambda one: len(one.blocking_findings) + len(one.unmet_verdicts), default=None)

    def blocking_limits(self) -> list[BlockingLimit]:
        """Return the limits that the nearest finalist does not meet; none where a finalist passes."""
        if self.winner is not None or self.nearest_finalist is None:
            return []
        found = []
        for verdict in self.nearest_finalist.unmet_verdicts:
            own = limit_identity(verdict)
            same = [one for finalist in self.finalists for one in finalist.verdicts if limit_identity(one) == own]
            best = max(same, key=lambda one: float("-inf") if one.margin is None else one.margin)
            missed, plans = self.missed_limits.get(own, (sum(one.outcome != "met" for one in same), len(same)))
            found.append(BlockingLimit(best, missed, plans))
        return found

    def possible_relaxations(self) -> list[LimitRelaxation]:
        """Return other limits with which finalists would pass, the smallest change first; none where a finalist passes."""
        if self.winner is not None:
            return []
        found = []
        for one in self.finalists:
            limits = [(verdict, verdict.limit_needed) for verdict in one.unmet_verdicts]
            # no limit of a plan changes what the gate blocks
            if not one.blocking_findings and all(limit is not None for _, limit in limits):
                found.append(
                    LimitRelaxation(one, tuple((verdict, limit) for verdict, limit in limits if limit is not None))
                )
        return sorted(found, key=lambda one: one.change_size)


@dataclass(frozen=True)
class EndedLook:
    """Look of a search that has ended, in words.

    number: number of the look
    label: what its plan changes
    n_limits, n_missed: limits that it was compared with, and that it misses
    n_blocks: checks of the gate that block; None before the gate was asked
    people: number of people by the limit on risk that is nearest, with its name; empty where the plan has none
    utility: the utility that chooses the best plan, with its name; empty where it was not computed
    was_carried_out: whether the plan could be carried out
    """

    number: int
    label: str
    n_limits: int = 0
    n_missed: int = 0
    n_blocks: int | None = None
    people: str = ""
    utility: str = ""
    was_carried_out: bool = True

    @property
    def text(self) -> str:
        """Return what it changes and found: ``m 3: 5 of 5 limits met; identified: 3 of 1,000 (0.3 %); pMSE ratio: 1.3``."""
        if not self.was_carried_out:
            return f"{self.label}: could not be carried out"
        blocks = self.gate_text if self.n_blocks else ""
        return f"{self.label}: {'; '.join(filter(None, (self.limits_text, blocks, self.people, self.utility)))}"

    @property
    def limits_text(self) -> str:
        """Return how many limits it meets: ``13 of 14 limits met``."""
        return f"{self.n_limits - self.n_missed} of {count_noun(self.n_limits, 'limit')} met"

    @property
    def gate_text(self) -> str:
        """Return how many findings of the gate block its release, or that the gate was not asked yet."""
        if self.n_blocks is None:
            return "not asked yet"
        blocks = "blocks" if self.n_blocks == 1 else "block"
        return f"{count_noun(self.n_blocks, 'finding')} of the gate {blocks} it" if self.n_blocks else "nothing blocks"


@dataclass(frozen=True)
class SearchProgress:
    """How far a search has come.

    n_planned: looks that it makes at most
    ended: numbers of the looks that have ended
    best: best look so far; None before any has ended
    new: looks that have ended since the last report
    seconds_left: estimate; None before there is anything to judge by
    has_ended: whether no look is left
    """

    search_id: int
    n_planned: int
    ended: frozenset[int]
    best: EndedLook | None = None
    new: tuple[EndedLook, ...] = ()
    seconds_left: float | None = None
    has_ended: bool = False

    @property
    def looks_text(self) -> str:
        """Return how many looks have ended: ``12 of 40 looks``."""
        return f"{len(self.ended)} of {count_noun(self.n_planned, 'look')}"

    @property
    def time_left_text(self) -> str:
        """Return the estimated time left: ``about 3 min left``; empty without an estimate."""
        return "" if self.seconds_left is None or self.has_ended else f"about {duration_text(self.seconds_left)} left"

    @property
    def text(self) -> str:
        """Return the progress in a line, the most urgent first."""
        best = "" if self.best is None else f"best so far: {self.best.text}"
        return "; ".join(filter(None, (f"search {self.search_id}: {self.looks_text}", self.time_left_text, best)))

    @property
    def new_look_lines(self) -> list[str]:
        """Return a line for each look that has ended since the last report; the last also names the best and the time."""
        lines = [f"look {one.number} of {self.n_planned}: {one.text}" for one in self.new]
        if lines:
            best = "" if self.best is None else f"best so far: look {self.best.number}"
            lines[-1] = "; ".join(filter(None, (lines[-1], best, self.time_left_text)))
        return lines


def limit_identity(verdict: Verdict) -> LimitIdentity:
    """Return a key for the number and the limit of a verdict, equal for all plans."""
    return verdict.value, verdict.target, verdict.level, verdict.bound, verdict.limit, str(verdict.params)


def finalist_cells(one: SearchFinalist) -> list[str]:
    """Return the cells of a finalist, by the headings ``FINALIST_HEADS``."""
    met = len(one.verdicts) - len(one.unmet_verdicts)
    return [
        str(one.run_id),
        one.label,
        f"{met} of {len(one.verdicts)} met",
        f"{count_noun(len(one.blocking_findings), 'finding')} {'blocks' if len(one.blocking_findings) == 1 else 'block'}"
        if one.blocking_findings
        else "passes",
        "" if one.search_utility is None else f"{one.search_utility:.4g}",
        "" if one.full_utility is None else f"{one.full_utility:.4g}",
    ]


def finalists_table(found: SearchOutcome) -> DisplayTable:
    """Return the table of the finalists."""
    return table_from_titles(FINALIST_HEADS, [finalist_cells(one) for one in found.finalists])


def search_headline(found: SearchOutcome) -> str:
    """Return in a line how many plans were tried."""
    refused = f"; {found.n_failed} could not be carried out" if found.n_failed else ""
    return f"Search {found.search_id}: {count_noun(found.n_tried, 'plan')} looked at{refused}"


def conclusion_lines(found: SearchOutcome) -> list[str]:
    """Return which finalist passes, or which limits the nearest finalist does not meet."""
    lines = [time_limit_text(found)] if found.not_begun or found.not_judged else []
    if not found.finalists:
        return [*lines, "No plan could be carried out on all records."]
    start, winner = found.unchanged_finalist, found.winner
    if start is not None and start.is_passing:
        lines.append(f"The plan passes unchanged: run {start.run_id}.")
    lines.append(f"Utility: {measure_name(found.objective)}. The first finalist that passes is taken.")
    if winner is not None:
        return [
            *lines,
            *utility_change_lines(found),
            f"Run {winner.run_id} passes: {winner.label}.",
            *found.gate_answer,
        ]
    lines.append("No finalist passes. What stops the nearest one:")
    for one in found.blocking_limits():
        verdict = one.best_verdict
        limit = limit_text(verdict.bound, verdict.limit, verdict.value)
        nearest = f"nearest {observed_text(verdict)} ({verdict.outcome})"
        plans = (
            f"all {count_noun(one.n_plans, 'plan')}"
            if one.n_missed == one.n_plans
            else f"{one.n_missed} of {count_noun(one.n_plans, 'plan')}"
        )
        lines.append(
            f"  {label_of(verdict)}: {limit}, {nearest}; {plans} {'misses' if one.n_missed == 1 else 'miss'} it"
        )
    lines += [
        f"  the gate blocks: {check}; no limit of the plan changes that"
        for check in (found.nearest_finalist.blocking_findings if found.nearest_finalist else ())
    ]
    return [*lines, *relaxation_lines(found)]


def utility_change_lines(found: SearchOutcome) -> list[str]:
    """Return how the winner's utilities differ from those of the unchanged plan."""
    start, winner = found.unchanged_finalist, found.winner
    if start is None:
        return []
    if winner is start:
        return ["No finalist was better than it by more measures of utility than it was worse."]
    named = {vote: [_utility_change_text(one) for one in found.gains if one.vote == vote] for vote in (1, -1, 0)}
    said = [f"{word} {', '.join(named[vote])}" for vote, word in WORDS_OF_VOTES.items() if named[vote]]
    fails = "" if start.is_passing else ", which does not pass"
    return [f"In place of the unchanged plan (run {start.run_id}{fails}): {'; '.join(said)}."] if said else []


def _utility_change_text(one: UtilityChange) -> str:
    """Return a utility before and after: ``propensity score 0.12 -> 0.08``."""
    name = measure_name(one.key)
    return f"{name[:1].lower()}{name[1:]} {one.before:.3g} -> {one.after:.3g}"


def time_limit_text(found: SearchOutcome) -> str:
    """Return what a search left out when its time was used up."""
    left = [
        f"{count_noun(count, what)} {'was' if count == 1 else 'were'} not {done}"
        for count, what, done in ((found.not_begun, "look", "begun"), (found.not_judged, "finalist", "judged"))
        if count
    ]
    minutes = found.minutes or 0.0
    return f"The {minutes:g} minute{'' if minutes == 1 else 's'} were used up: {' and '.join(left)}."


def relaxation_lines(found: SearchOutcome) -> list[str]:
    """Return which limits would let which finalist pass, the smallest change first."""
    smallest = found.possible_relaxations()[:MOST_RELAXATIONS]
    if not smallest:
        return ["No other limit would let a finalist pass."] if found.nearest_finalist is not None else []
    lines = ["With these limits it would pass:"]
    for one in smallest:
        limits = "; ".join(
            f"{label_of(verdict)} {limit_text(verdict.bound, round_limit_outward(verdict.bound, limit), verdict.value)}"
            for verdict, limit in one.limits
        )
        utility = "" if one.finalist.full_utility is None else f" (utility {one.finalist.full_utility:.4g})"
        lines.append(f"  run {one.finalist.run_id}{utility}: {limits}")
    return lines


def round_limit_outward(bound: str, limit: float) -> float:
    """Round a limit to three digits so that whatever meets the limit meets the rounded one."""
    if not limit or not math.isfinite(limit):
        return limit
    step = 10.0 ** (math.floor(math.log10(abs(limit))) - 2)
    # 1e-9: the division may miss a whole number by its last digit
    whole = math.floor(limit / step + 1e-9) if bound == "min" else math.ceil(limit / step - 1e-9)
    return float(f"{whole * step:.12g}")
