"""The verdict board as text: an overall line, then every threshold with what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from textual.content import Content

from sfumato.engine.thresholds import Verdict
from sfumato.tui.widgets.gauge import gauge
from sfumato.tui.widgets.text import cut, fit
from sfumato.workspace.reporting.words import (
    NOTHING,
    Apart,
    limit_text,
    mark,
    measured,
    number,
    outcome_text,
    printable,
)

__all__ = ["blocks", "board", "heads", "overall"]

STYLES = {"pass": "$success bold", "fail": "$error bold", "not computed": "$warning bold"}
NAME_LEAST = 30
OUTCOME, NUMBER, LIMIT = 14, 10, 27
GAUGE = 64
INDENT = OUTCOME + 2


def overall(verdicts: Sequence[Verdict]) -> Content:
    """``✗ FAIL  1 of 6 thresholds failed``: a release passes only when every threshold is met."""
    counts = {outcome: sum(v.outcome == outcome for v in verdicts) for outcome in STYLES}
    if counts["pass"] == len(verdicts):
        return Content.assemble((outcome_text("pass"), STYLES["pass"]), f"  all {len(verdicts)} thresholds are met")
    worst = "fail" if counts["fail"] else "not computed"
    said = [f"{counts[outcome]} {word}" for outcome, word in
            (("fail", "failed"), ("not computed", "not computed"), ("pass", "passed")) if counts[outcome]]  # fmt: skip
    return Content.assemble((outcome_text(worst), STYLES[worst]), f"  of {len(verdicts)} thresholds {', '.join(said)}")


def board(verdicts: Sequence[Verdict], width: int, apart: Apart = NOTHING) -> Content:
    """Every verdict in ``width`` cells: numbers beside the name where there is room, else below it.

    ``apart`` are the settings in which uses of a method differ.
    """
    return Content("\n").join([overall(verdicts), Content(""), *heads(width), *blocks(verdicts, width, apart)])


def heads(width: int) -> list[Content]:
    """The names of the columns, where the board has columns."""
    name = _name_width(width)
    if name < NAME_LEAST:
        return []
    words = (
        f"{'verdict':<{OUTCOME}}  {'measure':<{name}}  {'observed':>{NUMBER}}  {'limit':<{LIMIT}} {'margin':>{NUMBER}}"
    )
    return [Content.styled(words, "bold")]


def blocks(verdicts: Sequence[Verdict], width: int, apart: Apart = NOTHING) -> list[Content]:
    """The lines of each verdict: name and numbers, how much of its limit is used, and why where it was not computed."""
    name = _name_width(width)
    wide = name >= NAME_LEAST
    found = []
    for verdict in verdicts:
        of = _of(verdict, apart)
        lines = [_wide(verdict, name, of)] if wide else _narrow(verdict, width, of)
        lines += _below(of if len(_name(verdict, of)) > (name if wide else width - INDENT) else "", width)
        used = gauge(verdict.observed, verdict.limit, min(GAUGE, width - INDENT), STYLES[verdict.outcome])
        lines += [Content.assemble(" " * INDENT, used)] if used else []
        lines += _below(f"{mark('into')} {verdict.reason}" if verdict.reason else "", width)
        found.append(Content("\n").join(lines))
    return found


def _name_width(width: int) -> int:
    return width - OUTCOME - LIMIT - 2 * NUMBER - 8


def _wide(verdict: Verdict, name: int, of: str) -> Content:
    limit = fit(limit_text(verdict.bound, verdict.limit), LIMIT)
    return Content.assemble(
        (fit(outcome_text(verdict.outcome), OUTCOME), STYLES[verdict.outcome]),
        f"  {_name_in(verdict, name, of)}  {number(verdict.observed):>{NUMBER}}  {limit} {number(verdict.margin):>{NUMBER}}",
    )


def _narrow(verdict: Verdict, width: int, of: str) -> list[Content]:
    outcome = (fit(outcome_text(verdict.outcome), OUTCOME), STYLES[verdict.outcome])
    limit, margin = limit_text(verdict.bound, verdict.limit), number(verdict.margin)
    numbers = f"observed {number(verdict.observed)}, {limit}, margin {margin}"
    room = width - INDENT
    return [
        Content.assemble(outcome, "  ", _name_in(verdict, room, of)),
        Content(" " * INDENT + cut(numbers, room)),
    ]


def _name_in(verdict: Verdict, width: int, of: str) -> str:
    whole = _name(verdict, of)
    return fit(whole if len(whole) <= width else _measure(verdict), width)


def _name(verdict: Verdict, of: str) -> str:
    return _measure(verdict) + (f" ({of})" if of else "")


def _measure(verdict: Verdict) -> str:
    return printable(verdict.value + ("" if verdict.level is None else f" at S = {number(verdict.level)}"))


def _of(verdict: Verdict, apart: Apart) -> str:
    """What the verdict speaks of: the target, and which use of the method."""
    return printable(measured(verdict.target, verdict.params, apart.get(verdict.value.rpartition(".")[0], {})))


def _below(text: str, width: int) -> list[Content]:
    lead = " " * INDENT
    lines = wrap(printable(text), max(INDENT + 20, width), initial_indent=lead, subsequent_indent=lead)
    return [Content.styled(line, "$text-muted") for line in lines if text]
