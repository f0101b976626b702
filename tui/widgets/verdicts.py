"""The verdict board as text: an overall line, then every threshold with what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from textual.content import Content

from tui.console import number
from tui.widgets.text import cut, fit, printable
from tui.words import limit_text, mark, measured, outcome_text
from workspace.findings import VerdictLine

__all__ = ["board", "overall"]

STYLES = {"pass": "$success bold", "fail": "$error bold", "not computed": "$warning bold"}
NAME_LEAST = 30
OUTCOME, NUMBER, LIMIT = 14, 10, 26


def overall(verdicts: Sequence[VerdictLine]) -> Content:
    """``✗ FAIL  1 of 6 thresholds failed``: a release passes only when every threshold is met."""
    counts = {outcome: sum(v.outcome == outcome for v in verdicts) for outcome in STYLES}
    if counts["pass"] == len(verdicts):
        return Content.assemble((outcome_text("pass"), STYLES["pass"]), f"  all {len(verdicts)} thresholds are met")
    worst = "fail" if counts["fail"] else "not computed"
    said = [f"{counts[outcome]} {word}" for outcome, word in
            (("fail", "failed"), ("not computed", "not computed"), ("pass", "passed")) if counts[outcome]]  # fmt: skip
    return Content.assemble((outcome_text(worst), STYLES[worst]), f"  of {len(verdicts)} thresholds {', '.join(said)}")


def board(verdicts: Sequence[VerdictLine], width: int) -> Content:
    """Every verdict in ``width`` cells: one line each where there is room, else two."""
    lines = [overall(verdicts), Content("")]
    name = width - OUTCOME - LIMIT - 2 * NUMBER - 8
    if name >= NAME_LEAST:
        lines.append(Content.styled(_heads(name), "bold"))
    for verdict in verdicts:
        lines += [_wide(verdict, name)] if name >= NAME_LEAST else _narrow(verdict, width)
        lines += _reason(verdict, width)
    return Content("\n").join(lines)


def _heads(name: int) -> str:
    return (
        f"{'verdict':<{OUTCOME}}  {'measure':<{name}}  {'observed':>{NUMBER}}  {'limit':<{LIMIT}} {'margin':>{NUMBER}}"
    )


def _wide(verdict: VerdictLine, name: int) -> Content:
    return Content.assemble(
        (fit(outcome_text(verdict.outcome), OUTCOME), STYLES[verdict.outcome]),
        f"  {fit(_name(verdict), name)}  {number(verdict.observed):>{NUMBER}}  {limit_text(verdict.bound, verdict.limit):<{LIMIT}} ",
        f"{number(verdict.margin):>{NUMBER}}",
    )


def _narrow(verdict: VerdictLine, width: int) -> list[Content]:
    first = Content.assemble(
        (fit(outcome_text(verdict.outcome), OUTCOME), STYLES[verdict.outcome]), f"  {cut(_name(verdict), width - 16)}"
    )
    numbers = f"observed {number(verdict.observed)}, {limit_text(verdict.bound, verdict.limit)}, margin {number(verdict.margin)}"
    return [first, Content(f"{'':<{OUTCOME}}  {cut(numbers, width - 16)}")]


def _name(verdict: VerdictLine) -> str:
    level = "" if verdict.level is None else f" at S = {number(verdict.level)}"
    of = measured(verdict.target, verdict.params)
    return printable(verdict.value + level + (f" ({of})" if of else ""))


def _reason(verdict: VerdictLine, width: int) -> list[Content]:
    lead = " " * (OUTCOME + 2)
    lines = wrap(
        printable(verdict.reason), max(20, width), initial_indent=f"{lead}{mark('into')} ", subsequent_indent=lead
    )
    return [Content.styled(line, "$text-muted") for line in lines if verdict.reason]
