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
OUTCOME, NUMBER, LIMIT = 14, 10, 27
INDENT = OUTCOME + 2


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
    """Every verdict in ``width`` cells: numbers beside the name where there is room, else below it."""
    lines = [overall(verdicts), Content("")]
    name = width - OUTCOME - LIMIT - 2 * NUMBER - 8
    wide = name >= NAME_LEAST
    if wide:
        lines.append(Content.styled(_heads(name), "bold"))
    for verdict in verdicts:
        lines += [_wide(verdict, name)] if wide else _narrow(verdict, width)
        lines += _below(_params(verdict) if len(_name(verdict)) > (name if wide else width - INDENT) else "", width)
        lines += _below(f"{mark('into')} {verdict.reason}" if verdict.reason else "", width)
    return Content("\n").join(lines)


def _heads(name: int) -> str:
    return (
        f"{'verdict':<{OUTCOME}}  {'measure':<{name}}  {'observed':>{NUMBER}}  {'limit':<{LIMIT}} {'margin':>{NUMBER}}"
    )


def _wide(verdict: VerdictLine, name: int) -> Content:
    limit = fit(limit_text(verdict.bound, verdict.limit), LIMIT)
    return Content.assemble(
        (fit(outcome_text(verdict.outcome), OUTCOME), STYLES[verdict.outcome]),
        f"  {_name_in(verdict, name)}  {number(verdict.observed):>{NUMBER}}  {limit} {number(verdict.margin):>{NUMBER}}",
    )


def _narrow(verdict: VerdictLine, width: int) -> list[Content]:
    outcome = (fit(outcome_text(verdict.outcome), OUTCOME), STYLES[verdict.outcome])
    limit, margin = limit_text(verdict.bound, verdict.limit), number(verdict.margin)
    numbers = f"observed {number(verdict.observed)}, {limit}, margin {margin}"
    room = width - INDENT
    return [
        Content.assemble(outcome, "  ", _name_in(verdict, room)),
        Content(" " * INDENT + cut(numbers, room)),
    ]


def _name_in(verdict: VerdictLine, width: int) -> str:
    whole = _name(verdict)
    return fit(whole if len(whole) <= width else _measure(verdict), width)


def _name(verdict: VerdictLine) -> str:
    params = _params(verdict)
    return _measure(verdict) + (f" ({params})" if params else "")


def _measure(verdict: VerdictLine) -> str:
    return printable(verdict.value + ("" if verdict.level is None else f" at S = {number(verdict.level)}"))


def _params(verdict: VerdictLine) -> str:
    return printable(measured(verdict.target, verdict.params))


def _below(text: str, width: int) -> list[Content]:
    lead = " " * INDENT
    lines = wrap(printable(text), max(INDENT + 20, width), initial_indent=lead, subsequent_indent=lead)
    return [Content.styled(line, "dim") for line in lines if text]
