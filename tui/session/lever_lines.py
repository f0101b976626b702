"""Levers of a run as lines of text, each tried on a sample: for the command line and plain mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.engine.wording import agreeing_word

from .lever_memory import LeverMemory

if TYPE_CHECKING:
    from sfumato.workspace.gate.gate import Finding
    from sfumato.workspace.service.run_levers import LeverEffect, RunLever, RunLevers


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
        return f"{useless} more {was} tried and {does} not help."
    # beside advice on which changes to combine, this must not read as if nothing could help
    return f"{useless} {was} tried alone and {does} not help there; together, or in a whole run, they may."


def change_after_trials(change: str, helping: tuple[RunLever, LeverEffect] | None) -> str:
    """Return what to change first once all levers were tried, in place of advice ``change`` whose effect nobody knew.

    helping: the first lever that helps, and what it does; None where none does
    """
    if helping is None:
        return f"{NONE_HELPS_ALONE}: {change[:1].lower()}{change[1:]}"
    lever, effect = helping
    return (
        f"{lever.change_text[:1].upper()}{lever.change_text[1:]}: {effect.change.replace(' -> ', ' to ')}, in trials."
    )


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
