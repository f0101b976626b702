"""Findings of the gate and verdicts on limits as one list, the most harmful first, for the app and plain mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import agreeing_word, count_noun

from .findings import ReportableFinding

FindingT = TypeVar("FindingT", bound=ReportableFinding)
STATUS_RANKS = {"block": 0, "warn": 1, "not checked": 2, "pass": 3}
OUTCOME_RANKS = {"not met": 0, "undecided": 1, "not computed": 2, "met": 3}
DECIDES, NOT_ENOUGH, BRIEFLY_NOT_ENOUGH = "decides: ", "not enough alone: ", "not enough: "
"""What precedes the numbers of what is open, which decide the answer, and limits that are met beside it."""
PASSES, DOES_NOT_APPLY = 3, 4
"""Ranks of what passes or is met, and of what does not apply."""


def harm_rank(one: ReportableFinding | Verdict, waived: frozenset[str] = frozenset()) -> int:
    """Return 0 for what blocks or is not met, 1 for what is to be judged, undecided or waived, 2 for what is not known,
    3 for what passes, and 4 for what does not apply.
    """
    if isinstance(one, Verdict):
        return OUTCOME_RANKS[one.outcome]
    if not one.applies:
        return DOES_NOT_APPLY
    return max(STATUS_RANKS[one.status], one.check in waived)


def sort_by_harm(
    findings: Sequence[FindingT],
    verdicts: Sequence[Verdict],
    records: int | None = None,
    waived: frozenset[str] = frozenset(),
) -> list[FindingT | Verdict]:
    """Return findings and verdicts in one list, the most harmful first: those about most people first among equal ranks.

    What passes keeps its order. ``records`` is the number of confidential records; ``waived`` are waived checks.
    """

    def harm_key(one: FindingT | Verdict) -> tuple[int, float]:
        """Return the sorting key of a finding or a verdict."""
        rank = harm_rank(one, waived)
        return rank, -people_concerned(one, records) if rank < PASSES else 0.0

    return sorted([*findings, *verdicts], key=harm_key)


def people_concerned(one: ReportableFinding | Verdict, records: int | None = None) -> float:
    """Return how many people a finding or a verdict is about; 0 where it counts none."""
    if not isinstance(one, Verdict):
        return float(one.people or 0)
    from sfumato.engine.methods.labels import method_and_output

    output = method_and_output(one.value)[1]
    if one.observed is None or not records or output.label.counts != "people" or output.unit != "share":
        return 0.0
    return one.observed * records if one.bound in ("max", "min") else 0.0


def passes_text(findings: Sequence[ReportableFinding], verdicts: Sequence[Verdict]) -> str:
    """Return how many checks pass and limits are met: ``24 checks pass · 9 limits met``; empty for none."""
    passes = sum(harm_rank(one) == PASSES and not one.leak for one in findings)
    met = sum(one.outcome == "met" for one in verdicts)
    checks = f"{count_noun(passes, 'check')} {agreeing_word(passes, 'passes', 'pass')}" if passes else ""
    return " · ".join(filter(None, (checks, f"{count_noun(met, 'limit')} met" if met else "")))


def not_applying_text(findings: Sequence[ReportableFinding]) -> str:
    """Return how many checks do not apply: ``12 checks do not apply``; empty for none."""
    others = sum(not one.applies and not one.leak for one in findings)
    return f"{count_noun(others, 'check')} {agreeing_word(others, 'does not', 'do not')} apply" if others else ""


def harm_counts_text(
    findings: Sequence[ReportableFinding], verdicts: Sequence[Verdict], waived: frozenset[str] = frozenset()
) -> str:
    """Return the number of entries by harm: ``decides: 1 check blocks · then 3 to be judged · 9 of 10 plan limits met``.

    What is to be judged comes after what blocks. Beside what is open, limits that are all met decide nothing, and it says
    so.
    """
    leads = [one for one in findings if not one.leak]
    ranks = [harm_rank(one, waived) for one in leads]
    blocks, judged, unchecked = (ranks.count(rank) for rank in range(3))
    unmet = [one.outcome for one in verdicts if one.outcome != "met"]
    deciding = [
        f"{count_noun(blocks, 'check')} {agreeing_word(blocks, 'blocks', 'block')}" if blocks else "",
        f"{'then ' if blocks else ''}{judged} to be judged" if judged else "",
        f"{unchecked} not checked" if unchecked else "",
    ]
    told = " · ".join(filter(None, deciding))
    limits = _plan_limits_text(len(verdicts) - len(unmet), len(verdicts))
    if not told:
        return limits
    # A reader must not take limits that are met for the answer, which the checks give.
    beside = f"{NOT_ENOUGH}{limits}" if verdicts and not unmet else limits
    return f"{DECIDES}{told} · {beside}"


def _plan_limits_text(met: int, total: int) -> str:
    """Return how many of the limits that the plan sets are met: those of the policy are checks."""
    return f"{met} of {count_noun(total, 'plan limit')} met" if total else "the plan sets no limits"
