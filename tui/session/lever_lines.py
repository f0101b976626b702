"""Levers of a run as lines of text, each tried on a sample: for the command line and plain mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.engine.wording import agreeing_word, count_noun

from .lever_memory import LeverMemory

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.gate.gate import Finding
    from sfumato.workspace.service.run_levers import LeverEffect, RunLever, RunLevers

EffectT = TypeVar("EffectT", "LeverEffect", "LeverEffect | None")

NONE_HELPS_ALONE = "What could be tried alone did not help; together they were not tried"
"""What precedes advice where each of its changes was tried."""


@dataclass(frozen=True)
class TriedLever:
    """Lever of a run with what it does.

    number: its number among the levers of the run, from 1
    """

    number: int
    lever: RunLever
    effect: LeverEffect

    @property
    def is_shown(self) -> bool:
        """Return whether it helps, or it is not known whether it does."""
        return bool(self.effect.reason) or self.effect.helps

    @property
    def text(self) -> str:
        """Return the lever with what it is for and what it does on one line."""
        return f"{self.lever.change_text}; for {self.lever.aim.title}; {self.effect.sentence}"

    def to_table(self) -> dict[str, Any]:
        """Return the lever as ``--json`` writes it."""
        lever, effect = self.lever, self.effect
        aim = lever.aim
        return {
            "number": self.number,
            "change": lever.text,
            "lines": list(lever.lines),
            "for": {
                "title": aim.title,
                "check": aim.check,
                "value": aim.value,
                "target": aim.target,
                "bound": aim.bound,
            },
            "helps": effect.helps,
            "before": effect.before,
            "after": effect.after,
            "utility_before": effect.utility_before,
            "utility_after": effect.utility_after,
            "utility": effect.utility_word,
            "utility_limits": effect.utility_limits,
            "broken_limits": effect.broken_limits,
            "not_tried": effect.reason,
        }


def find_levers_for(directory: Path, run_id: int, findings: list[Finding], memory: LeverMemory) -> RunLevers:
    """Find the levers of a run for its findings and its limits, as the app lists them. Raises BadInput."""
    from sfumato.workspace.jobs.processes import call_in_process
    from sfumato.workspace.reporting.findings import lead_findings
    from sfumato.workspace.service.run_levers import finding_aims

    return memory.find_levers(directory, run_id, finding_aims(lead_findings(findings)), call_in_process)


def try_levers(
    directory: Path, found: RunLevers, memory: LeverMemory, report: Callable[[str], None]
) -> Iterator[TriedLever]:
    """Try the levers of a run one after another, each in another process. A KeyboardInterrupt leaves nothing of a trial."""
    from sfumato.workspace.jobs.processes import call_in_process

    for number, lever in enumerate(found.levers, 1):
        report(f"Trying lever {number} of {len(found.levers)}: {lever.change_text}")
        effect = memory.try_lever(directory, found, lever, call_in_process)
        assert effect is not None
        yield TriedLever(number, lever, effect)


def useless_text(useless: int, shown: int) -> str:
    """Return that so many levers were tried and do not help, beside those that are shown; empty for none."""
    if not useless:
        return ""
    was, does = agreeing_word(useless, "was", "were"), agreeing_word(useless, "does", "do")
    if shown:
        return f"{count_noun(useless, 'other change')} {was} tried and {does} not help."
    # beside advice on which changes to combine, this must not read as if nothing could help
    alone = f"The {count_noun(useless, 'change')} that can be tried alone {does} not help there"
    return f"{alone}; together, or in a whole run, {agreeing_word(useless, 'it', 'they')} may."


def change_after_trials(change: str, helping: tuple[RunLever, LeverEffect] | None, check: str = "") -> str:
    """Return what to change first once levers were tried, in place of advice ``change`` whose effect nobody knew.

    helping: the lever that helps most, and what it does; None where none does
    check: the check that decides, whose people are named above
    """
    if helping is None:
        return f"{NONE_HELPS_ALONE}: {change[:1].lower()}{change[1:]}"
    lever, effect = helping
    text, change = lever.change_text, effect.change.replace(" -> ", " to ")
    if effect.shares and lever.aim.check == check:
        before, after = effect.shares
        change = f"such {effect.noun} would go from {before} to {after} of the {effect.people:,} tried"
    # The name of what becomes better stands in front of its numbers, and must not read as the name of the change.
    elif change.startswith(f"{lever.aim.title}: "):
        change = change.replace(": ", " from ", 1)
    return f"{text[:1].upper()}{text[1:]}: {change}, in trials. {effect.cost_text}".rstrip()


def change_as_tried(
    answer: ReleaseAnswer, levers: Sequence[tuple[RunLever, LeverEffect | None]], *, is_tried: bool
) -> str:
    """Return what an answer advises to change, with what trials of the run's levers show.

    levers: the levers with their effects, in their order; None where one was not tried
    is_tried: whether all that can be tried were
    """
    if answer.change_has_effect:
        return change_with_cost(answer, levers)
    if not answer.change:
        return ""
    known = [(lever, effect) for lever, effect in levers if effect is not None]
    helping = [(lever, effect) for lever, effect in known if effect.helps]
    if helping or is_tried:
        return change_after_trials(answer.change, next(iter(sort_by_effect(helping)), None), answer.check)
    return answer.change


def sort_by_effect(levers: Sequence[tuple[RunLever, EffectT]]) -> list[tuple[RunLever, EffectT]]:
    """Sort levers by what trials show, the same for the list and for what to change first: those that help and break no
    limit on utility, then others that help, then those that were not tried; of equals the order stays.
    """

    def rank(effect: LeverEffect | None) -> int:
        """Return the place of an effect among others."""
        if effect is None or effect.reason:
            return 2
        return (1 if effect.broken_limits else 0) if effect.helps else 3

    return sorted(levers, key=lambda pair: rank(pair[1]))


def known_change(answer: ReleaseAnswer, found: RunLevers, memory: LeverMemory) -> str:
    """Return the same of a run, with what is known of its levers by now."""
    levers = [(one, memory.known_effect(found, one)) for one in found.levers]
    return change_as_tried(answer, levers, is_tried=all(effect is not None for _, effect in levers) and bool(levers))


def change_with_cost(answer: ReleaseAnswer, levers: Sequence[tuple[RunLever, LeverEffect | None]]) -> str:
    """Return what an answer advises to change, whose effect on people it says, with what a trial shows that it costs.

    levers: the levers of the run with their effects, in their order
    """
    first = next((effect for lever, effect in levers if is_advised(lever, answer)), None)
    return f"{answer.change} {first.cost_text}".rstrip() if first is not None else answer.change


def is_advised(lever: RunLever, answer: ReleaseAnswer) -> bool:
    """Return whether a lever makes the very change whose effect an answer names, for what decides it."""
    return lever.aim.check == answer.check and bool(lever.parts) and lever.parts in answer.advised[:1]


def useless_of_tried_text(tried: list[TriedLever]) -> str:
    """Return how many of the levers that were tried do not help; empty for none."""
    shown = sum(one.is_shown for one in tried)
    return useless_text(len(tried) - shown, shown)


def sample_text(tried: list[TriedLever]) -> str:
    """Return on what the levers were tried; empty where none was."""
    return next((one.effect.sample for one in tried if one.effect.sample), "")


def applied_lines(found: RunLevers, lever: RunLever, entered: int, *, is_plan: bool) -> list[str]:
    """Return what a lever changed, and which run it is, in lines."""
    whose = "which is the plan of its project now" if is_plan else "the edited plan of its project is unchanged"
    return [
        f"Run {entered} is run {found.run_id} with a change, {whose}: {lever.change_text}.",
        *(f"  {line}" for line in lever.lines),
    ]
