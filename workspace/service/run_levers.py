"""Levers of a finished run: for the gate's findings that block or warn, and for the limits that are not met."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sfumato.engine.execution.record_risk import matched_variables
from sfumato.engine.methods.labels import labels_of, measure_name, method_and_output
from sfumato.engine.methods.outputs import QUESTIONS
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun, format_percent, join_names

from ..errors import NotReady
from ..gate.answer import advised_changes, worst_finding
from ..gate.checks import STATUSES
from ..gate.gate import Finding
from ..gate.questions import key_of_question
from ..plan.change_parts import PartsOfChange
from ..plan.drafts import find_draft, save_draft
from ..plan.edits import draft_to_change_run
from ..plan.levers import (
    COLUMN_CHECKS,
    PlanLever,
    change_words,
    find_column_levers,
    find_finding_levers,
    find_levers,
    find_named_column_levers,
)
from ..policy.policy import read_policy_of_workspace
from ..reporting.words import limit_quantity, number
from ..store.runs import StoredRun, find_run, read_run_records
from ..store.workspace import Workspace
from ..views.records import record_measures
from ..views.results import read_result_rows, read_verdicts
from .lever_trials import ALL_MEASURES, UTILITY_FAMILIES, LeverTrial
from .prepare import enter_plan_run

MOST_TO_COARSEN = 3
"""Columns that are coarsened each by itself at most: those that the gate's answer names."""
MOST_LEVERS = 10
"""Levers of a run at most, so that all of them are tried while somebody reads."""
LIMITS_CHECK = "unmet_thresholds"
"""The check of limits that are not met, which have levers of their own."""
BEST_UTILITY = {"one": ", where 1 is best", "low": ", where less is better", "high": ", where more is better"}
"""What stands behind the utility before and after, by the goal of its measure: without it a number says nothing."""
CHECKS_OF_RECORDS = ("worst_records", "newly_certain", "guessed_beyond_prior", "risk_above_confidential")
MEASURES_OF_CHECKS: Mapping[str, tuple[str, ...]] = {
    **{key_of_question(question): (question,) for question in QUESTIONS},
    **dict.fromkeys(CHECKS_OF_RECORDS, (ALL_MEASURES,)),
}
"""Questions whose measures a check reads, or all measures; other checks read the records and the datasets alone."""


@dataclass(frozen=True, slots=True)
class LeverAim:
    """What a lever is for: a finding of the gate, or a limit that is not met.

    title: its name in words
    check: key of the check; empty for a limit
    value, target, level, bound: the limit; empty for a finding
    """

    title: str
    check: str = ""
    value: str = ""
    target: str = ""
    level: float | None = None
    bound: str = ""

    @property
    def measures(self) -> tuple[str, ...]:
        """Return the measures that a trial needs for it: keys of methods, or questions that these answer."""
        return MEASURES_OF_CHECKS.get(self.check, ()) if self.check else (self.value.rpartition(".")[0],)

    def serves(self, check: str) -> bool:
        """Return whether it is a finding of the gate, or one of the limits that a finding counts."""
        return self.check == check or (not self.check and check == LIMITS_CHECK)


@dataclass(frozen=True, slots=True)
class RunLever:
    """Lever of a run.

    aim: what it is for
    text: the change in words
    toml: the run's recipe with the change; empty if a person has to decide how
    lines: what it changes in the recipe
    parts: what changes, as data
    """

    aim: LeverAim
    text: str
    toml: str = ""
    lines: tuple[str, ...] = ()
    parts: PartsOfChange = ()

    @property
    def change_text(self) -> str:
        """Return the change with the settings that it adds, where these are few."""
        return change_words(self.text, self.lines)

    @property
    def plan_lever(self) -> PlanLever:
        """Return the change of the plan."""
        return PlanLever(self.text, self.toml, self.lines, self.parts)


@dataclass(frozen=True, slots=True)
class RunLevers:
    """Levers of a run, and the recipe that they change.

    run_id: number of the run
    toml: recipe of the run
    levers: the strongest first, of what decides first
    """

    run_id: int
    toml: str
    levers: tuple[RunLever, ...]


@dataclass(frozen=True, slots=True)
class FindingAim:
    """Finding of the gate for which levers are wanted.

    check, status, title: those of the finding
    advised: changes that the answer advises against it, each in its parts, the best first; empty where another decides
    """

    check: str
    status: str
    title: str
    advised: tuple[PartsOfChange, ...] = ()


def finding_aims(findings: Sequence[Finding], waived: Collection[str] = ()) -> tuple[FindingAim, ...]:
    """Return the findings that block or warn as what levers are wanted for: first that which decides the answer, with the
    changes that the answer advises; the checks that were ``waived`` decide nothing.
    """
    left = [one for one in findings if one.status in ("block", "warn")]
    standing = [one for one in left if one.check not in waived]
    decides = worst_finding([one for one in standing if one.status == "block"] or standing) if standing else None
    ordered = left if decides is None else [decides, *(one for one in left if one is not decides)]
    return tuple(
        FindingAim(one.check, one.status, one.title, advised_changes(one) if one is decides else ()) for one in ordered
    )


def find_run_levers(directory: Path, run_id: int, findings: tuple[FindingAim, ...]) -> RunLevers:
    """Find the levers of a run for the first of ``findings``, which decides, then for those that block, then for its
    limits, then for its findings that warn. Those that the first finding advises come first, in its order.

    Each has a change of the recipe. Raises BadInput where this version cannot read the recipe of the run, and NotFound.
    """
    with Workspace.open(directory, read_only=True) as workspace:
        draft = draft_to_change_run(workspace, run_id)
        run = find_run(workspace, run_id)
        policy = read_policy_of_workspace(directory)
        verdicts = [one for one in read_verdicts(workspace, run_id) if one.outcome != "met"]

        def finding_levers(several: Iterable[FindingAim]) -> Iterator[RunLever]:
            """Yield the levers of findings."""
            for one in several:
                aim = LeverAim(one.title, one.check)
                found = find_finding_levers(one.check, draft.toml)
                if one.check in COLUMN_CHECKS:
                    found = [*find_column_levers(draft.toml, read_run_records(workspace, run), policy), *found]
                elif one.check == "worst_records" and (columns := _columns_to_coarsen(workspace, run)):
                    records = read_run_records(workspace, run)
                    found = [*find_named_column_levers(draft.toml, records, policy, columns), *found]
                yield from (_lever_for(aim, lever) for lever in found)

        advised = findings[0].advised if findings else ()
        # What decides has a number of people beside its changes, and the page names them in the same order.
        first = list(finding_levers(findings[:1]))
        first.sort(key=lambda one: advised.index(one.parts) if one.parts in advised else len(advised))
        blocking, warning = ([one for one in findings[1:] if one.status == status] for status in ("block", "warn"))
        limits = _limit_levers(verdicts, draft.toml)
        every = [*first, *finding_levers(blocking), *limits, *finding_levers(warning)]
    # One change may serve several aims: it stands with the worst, in its place.
    unique: dict[str, RunLever] = {}
    for lever in every:
        if lever.toml:
            unique.setdefault(lever.toml, lever)
    return RunLevers(run_id, draft.toml, tuple(unique.values())[:MOST_LEVERS])


def _columns_to_coarsen(workspace: Workspace, run: StoredRun) -> list[str]:
    """Return the kept columns that the gate's answer advises to coarsen first: by the study of what an intruder knows,
    else those by which the first measure of single records matches.
    """
    recipe = run.recipe
    first = [one.target for one in read_result_rows(workspace, run.id) if one.measure == "coarsen_first"]
    matched = (
        list(matched_variables(recipe, one.position)[0])
        for one in record_measures(workspace, run.id)
        if one.is_matching
    )
    return [name for name in first[:1] or next(matched, []) if name not in recipe.released][:MOST_TO_COARSEN]


def _limit_levers(verdicts: Sequence[Verdict], toml: str) -> Iterator[RunLever]:
    """Yield the levers of limits that are not met."""
    for verdict, name in zip(verdicts, labels_of(verdicts), strict=True):
        aim = LeverAim(name, "", verdict.value, verdict.target, verdict.level, verdict.bound)
        yield from (_lever_for(aim, lever) for lever in find_levers(verdict, toml))


def levers_of_verdict(workspace: Workspace, run_id: int, verdict: Verdict) -> RunLevers:
    """Return the levers of one verdict of a run, with those that a person has to decide last.

    Raises BadInput where this version cannot read the recipe of the run.
    """
    toml = draft_to_change_run(workspace, run_id).toml
    return RunLevers(run_id, toml, tuple(_limit_levers([verdict], toml)))


def enter_changed_run(workspace: Workspace, found: RunLevers, lever: RunLever) -> tuple[int, bool]:
    """Enter a run of a run's recipe with the change of a lever; return its number, and whether it is the plan now.

    The plan of the project is left as it is where somebody has edited it since the run. Raises BadInput, NotReady where the
    recipe that the lever changes is another one by now, and what entering a run raises; then nothing was stored.
    """
    draft = draft_to_change_run(workspace, found.run_id)
    if draft.toml != found.toml:
        raise NotReady("the plan was edited since the levers were found; find them again")
    stored, changed = find_draft(workspace, draft.project_id), draft.with_text(lever.toml)
    entered = enter_plan_run(workspace, changed)
    is_own = stored is None or stored == draft
    if is_own:
        save_draft(workspace, changed)
    return entered, is_own


def _lever_for(aim: LeverAim, lever: PlanLever) -> RunLever:
    return RunLever(aim, lever.text, lever.toml, lever.lines, lever.parts)


@dataclass(frozen=True, slots=True)
class LeverEffect:
    """What a lever does to what it is for, and to the utility, on a sample.

    reason: why this is not known; empty where it is
    change: what it is for before and after, such as ``11 % -> 2 % of the people sampled``
    utility: the utility before and after, such as ``utility 1.3 -> 1.6, where 1 is best``
    sample: the records that it was tried on, in a sentence
    helps: whether what it is for became better
    utility_word: whether the utility became ``better`` or ``worse``, or stayed ``the same``; empty where it is not known
    before, after, utility_before, utility_after: the numbers
    utility_name: name of the measure of utility; empty where it is not known
    utility_limit: limit of the plan on it; None without one
    utility_limits, broken_limits: limits of the plan on utility that are met before, and those of them that are not after
    shares, people, noun: shares of the people tried before and after, in words, their number and what they are; empty
        where the change counts nobody
    """

    reason: str = ""
    change: str = ""
    utility: str = ""
    sample: str = ""
    helps: bool = False
    utility_word: str = ""
    before: float | None = None
    after: float | None = None
    utility_before: float | None = None
    utility_after: float | None = None
    utility_name: str = ""
    utility_limit: float | None = None
    utility_limits: int = 0
    broken_limits: int = 0
    shares: tuple[str, ...] = ()
    people: int = 0
    noun: str = ""

    @property
    def cost_text(self) -> str:
        """Return what the change does to the utility: ``It would cost utility: difference as a multiple of chance 1.07 to
        96.82, where 1 is best.``; empty where that is not known.

        Where the plan limits the utility, it says how many limits would be broken, and the number furthest beyond its
        limit.
        """
        if not self.utility_name or not self.utility_word:
            return ""
        name = f"{self.utility_name[:1].lower()}{self.utility_name[1:]}".partition(" (")[0]
        if self.utility_limits:
            limit = "" if self.utility_limit is None else f" (limit {number(self.utility_limit)})"
            figures = f"{name} {number(self.utility_before or 0.0)} to {number(self.utility_after or 0.0)}{limit}"
            beginning, nearest = ("It would cost utility", "worst") if self.broken_limits else ("Utility", "nearest")
            return f"{beginning}: {self.limits_text}; {nearest}: {figures}."
        if self.utility_word == "the same":
            return f"It would cost no utility: {name} stays the same."
        figures = self.utility.removeprefix("utility ").replace(" -> ", " to ")
        return f"It would {'cost utility' if self.utility_word == 'worse' else 'help utility too'}: {name} {figures}."

    @property
    def limits_text(self) -> str:
        """Return how many limits of the plan on utility the change breaks, of those that are met; empty without limits."""
        if not self.utility_limits:
            return ""
        limits = count_noun(self.utility_limits, "limit")
        if self.broken_limits:
            return f"{self.broken_limits} of {limits} on it would be broken"
        return f"all {limits} on it would stay met" if self.utility_limits > 1 else "the limit on it would stay met"

    @property
    def text(self) -> str:
        """Return the effect on one line, of the utility whether its limits hold where it has some."""
        if self.utility_limits and not self.reason:
            return "; ".join(filter(None, (self.change, f"utility: {self.limits_text}")))
        utility = f"{self.utility} ({self.utility_word})" if self.utility and self.utility_word else self.utility
        return self.reason or "; ".join(filter(None, (self.change, utility)))

    @property
    def sentence(self) -> str:
        """Return the effect in words: ``11 % to 2 % of the people sampled: better; utility 1.3 to 1.6, where 1 is best:
        worse``.
        """
        parts = [
            (self.change, "better" if self.helps else "not better"),
            (self.utility, self.utility_word),
            (self.limits_text.replace(" on it", " on utility"), ""),
        ]
        told = "; ".join(f"{text}: {word}" if word else text for text, word in parts if text)
        return self.reason or told.replace(" -> ", " to ")


def compare_trials(aim: LeverAim, before: LeverTrial, after: LeverTrial) -> LeverEffect:
    """Compare a trial of a run's recipe with one of the changed recipe, on the same sample."""
    if reason := before.reason or after.reason:
        return LeverEffect(reason)
    found = _compare_finding(aim, before, after) if aim.check else _compare_limit(aim, before, after)
    met, broken = _utility_limits(before, after)
    key, target, first, second, limit = _common_utility(before, after)
    best = BEST_UTILITY.get(method_and_output(key)[1].goal, "")
    # Without a limit of the plan a number of a scale that nobody knows says neither much nor little.
    best += f"{' and' if best else ','} the plan's limit is {number(limit)}" if limit is not None else ""
    utility = "" if first is None or second is None else f"utility {number(first)} -> {number(second)}{best}"
    name = measure_name(key).partition(" (")[0] if target else measure_name(key) if key else ""
    return replace(
        found,
        utility=utility,
        sample=sample_text(before, after),
        utility_word="worse" if broken else _compare_utility(key, first, second),
        utility_before=first,
        utility_after=second,
        utility_name=f"{name} of {target}" if target and name else name,
        utility_limit=limit,
        utility_limits=met,
        broken_limits=broken,
    )


def _utility_limits(before: LeverTrial, after: LeverTrial) -> tuple[int, int]:
    """Return how many limits on utility are met before, and how many of them are not after."""
    met = [one for one in before.limits if one.outcome == "met" and one.value.startswith(UTILITY_FAMILIES)]
    later = (after.find_limit(one.value, one.target, one.level, one.bound) for one in met)
    return len(met), sum(one is None or one.outcome != "met" for one in later)


def _common_utility(before: LeverTrial, after: LeverTrial) -> tuple[str, str, float | None, float | None, float | None]:
    """Return the utility that both trials have which is furthest beyond its limit after, else the first: its key, its
    target, its values, and the limit of the recipe on it.
    """
    later = {(one.key, one.target): one.value for one in after.utilities}
    common = [
        (one, other)
        for one in before.utilities
        if one.value is not None and (other := later.get((one.key, one.target))) is not None
    ]
    if not common:
        return "", "", None, None, None
    # Of equals the first: numbers without a limit are all equal.
    one, other = max(common, key=lambda pair: _share_of_limit(pair[0].key, pair[1], pair[0].limit))
    return one.key, one.target, one.value, other, one.limit


def _share_of_limit(key: str, value: float, limit: float | None) -> float:
    """Return how much of its limit a number of utility uses up: above 1 beyond it; 0 without a limit."""
    goal = method_and_output(key)[1].goal
    if limit is None or goal == "none":
        return 0.0
    used, room = {"low": (value, limit), "high": (limit, value), "one": (abs(value - 1), abs(limit - 1))}[goal]
    return used / room if room > 0 else (0.0 if used <= 0 else float("inf"))


def _compare_utility(key: str, before: float | None, after: float | None) -> str:
    """Return whether a utility became ``better`` or ``worse``, or stayed ``the same``; empty where that is not known."""
    if before is None or after is None:
        return ""
    goal = method_and_output(key)[1].goal
    if goal == "none":
        return ""
    if before == after:
        return "the same"
    if goal == "one":
        return "better" if abs(after - 1) < abs(before - 1) else "worse"
    return "better" if (after < before) == (goal == "low") else "worse"


def sample_text(trial: LeverTrial, *others: LeverTrial) -> str:
    """Return on what trials were made, in a sentence, and whether a model was accepted that does not fit well."""
    unfitted = list(dict.fromkeys(name for one in (trial, *others) for name in one.unconverged))
    rough = f"; the model of {join_names(unfitted)} had not converged there: they are rough" if unfitted else ""
    if trial.is_whole:
        return f"Estimates from trials on all {count_noun(trial.records, 'record')}, with other random numbers{rough}."
    return f"Estimates from trials on a sample of {count_noun(trial.records, 'record')}; whole runs differ{rough}."


def _of_sample(trial: LeverTrial) -> str:
    """Return that a number is of a sample; empty where a trial has all records."""
    return "" if trial.is_whole else " in the sample"


def _compare_finding(aim: LeverAim, before: LeverTrial, after: LeverTrial) -> LeverEffect:
    """Compare what the gate finds by the check that a lever is for."""
    one, other = before.find_finding(aim.check), after.find_finding(aim.check)
    if one is None or other is None or "not checked" in (one.status, other.status):
        return LeverEffect("not tried: the gate cannot check it on a sample")
    if one.people is not None or other.people is not None:
        first, second = float(one.people or 0), float(other.people or 0)
        shares = tuple(format_percent(people / max(1, before.people)) for people in (first, second))
        of = before.noun if before.is_whole else f"the {before.noun} sampled"
        text, helps, noun = f"{' -> '.join(shares)} of {of}", second < first, before.noun
    else:
        first, second = one.value or 0.0, other.value or 0.0
        shares, noun = (), ""
        text, helps = (
            f"{aim.title}: {number(first)} -> {number(second)}{_of_sample(before)}",
            second > first if one.at_least else second < first,
        )
    # What still warns may have become milder without another number.
    helps = helps or STATUSES.index(other.status) > STATUSES.index(one.status)
    return LeverEffect(
        change=text, helps=helps, before=first, after=second, shares=shares, people=before.people, noun=noun
    )


def _compare_limit(aim: LeverAim, before: LeverTrial, after: LeverTrial) -> LeverEffect:
    """Compare the number of the limit that a lever is for."""
    one, other = (trial.find_limit(aim.value, aim.target, aim.level, aim.bound) for trial in (before, after))
    if one is None or other is None or one.observed is None or other.observed is None:
        return LeverEffect("not tried: the number cannot be computed on a sample")
    first, second = one.observed, other.observed
    text = f"{aim.title}: {' -> '.join(limit_quantity(aim.bound, value, aim.value) for value in (first, second))}{_of_sample(before)}"
    helps = second > first if aim.bound.startswith("min") else second < first
    return LeverEffect(change=text, helps=helps, before=first, after=second)
