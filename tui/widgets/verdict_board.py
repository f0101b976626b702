"""The verdict board: an overall line, then every threshold with what was observed; a cursor goes from verdict to verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region
from textual.message import Message

from sfumato.engine.recipe.outcomes import worst
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.tui.widgets.text import cut, fit
from sfumato.workspace.reporting.words import (
    NOTHING,
    Apart,
    limit_text,
    mark,
    measured,
    number,
    outcome_text,
    thresholds_text,
)
from sfumato.workspace.visible_text import printable

from .lines import Scroll


def gauge(observed: float | None, limit: float, width: int, style: str) -> Content:
    """A bar of ``width`` cells from 0 to twice the limit, filled up to what was observed, and its share of the limit.

    Empty where there is nothing to compare: nothing observed, a negative number, or a limit that is not positive.
    """
    said = len("  0.0067 % of the limit")
    half = (width - said - 1) // 2
    if observed is None or observed < 0 or limit <= 0 or half < 4:
        return Content("")
    share = observed / limit
    filled = min(2 * half, round(half * share))
    before, after = min(filled, half), max(filled - half, 0)
    return Content.assemble(
        (mark("bar") * before, style),
        (mark("track") * (half - before), "$text-muted"),
        (mark("limit"), "bold"),
        (mark("bar") * after, style),
        (mark("track") * (half - after), "$text-muted"),
        (f"  {_percent(share)} % of the limit", "$text-muted"),
    )


def _percent(share: float) -> str:
    """Two digits, so that 99.96 % of a limit is not called all of it."""
    percent = 100 * share
    if percent > 999:
        return ">999"
    return (
        f"{percent:.0f}"
        if abs(share - 1) > 0.005 and percent >= 1
        else f"{percent:.2g}"
        if percent < 1
        else f"{percent:.4g}"
    )


STYLES = {
    "met": "$success bold",
    "not met": "$error bold",
    "undecided": "$warning bold",
    "not computed": "$warning bold",
}
NAME_LEAST = 30
OUTCOME, NUMBER, LIMIT = 14, 10, 27
GAUGE = 64
INDENT = OUTCOME + 2


def overall(verdicts: Sequence[Verdict]) -> Content:
    """``✗ not met  1 of 6 thresholds is not met``: the worst outcome of all; only ``met`` of every threshold is met."""
    found = worst(one.outcome for one in verdicts)
    return Content.assemble((outcome_text(found), STYLES[found]), f"  {thresholds_text(verdicts)}")


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
    limit = fit(limit_text(verdict.bound, verdict.limit, verdict.value), LIMIT)
    return Content.assemble(
        (fit(outcome_text(verdict.outcome), OUTCOME), STYLES[verdict.outcome]),
        f"  {_name_in(verdict, name, of)}  {number(verdict.observed):>{NUMBER}}  {limit} {number(verdict.margin):>{NUMBER}}",
    )


def _narrow(verdict: Verdict, width: int, of: str) -> list[Content]:
    outcome = (fit(outcome_text(verdict.outcome), OUTCOME), STYLES[verdict.outcome])
    limit, margin = limit_text(verdict.bound, verdict.limit, verdict.value), number(verdict.margin)
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


class VerdictBoard(Scroll):
    """Every verdict of a run; one of them is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "ask", "Explain", id="verdicts.explain")]

    @dataclass
    class Asked(Message):
        verdict: Verdict

    class Moved(Message):
        """Another verdict may be chosen now."""

    def __init__(self) -> None:
        super().__init__()
        self._verdicts: Sequence[Verdict] = ()
        self._at = 0

    def lay_out(self, verdicts: Sequence[Verdict], width: int, apart: Apart = NOTHING) -> None:
        """Show these verdicts in ``width`` cells; the cursor stays at its place where there is one."""
        if not self._verdicts:
            self.call_after_refresh(self.refresh_bindings)
        self._verdicts, self._width, self._apart = verdicts, width, apart
        self._at = max(0, min(self._at, len(verdicts) - 1))
        self._paint()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing can be asked where there are no verdicts."""
        return action != "ask" or bool(self._verdicts)

    def clear(self, text: str) -> None:
        if self._verdicts:
            self.call_after_refresh(self.refresh_bindings)
        self._verdicts = ()
        self.show(text)

    def action_lines(self, lines: int) -> None:
        """Go to the next verdict or the one before, or scroll where there are none."""
        if not self._verdicts:
            super().action_lines(lines)
            return
        at = max(0, min(self._at + lines, len(self._verdicts) - 1))
        if at != self._at:
            self._at = at
            self._paint()
        first, height = self._places[at]
        self.scroll_to_region(Region(0, first, 1, height), animate=False)

    def action_ends(self, end: int) -> None:
        """Go to the first (0) or the last (1) verdict."""
        if self._verdicts:
            self._at = end * (len(self._verdicts) - 1)
            self._paint()
        super().action_ends(end)

    def action_ask(self) -> None:
        """Ask what the chosen verdict means."""
        if self.chosen is not None:
            self.post_message(self.Asked(self.chosen))

    @property
    def chosen(self) -> Verdict | None:
        """The verdict under the cursor; None without any."""
        return self._verdicts[self._at] if self._verdicts else None

    def _paint(self) -> None:
        self.post_message(self.Moved())
        above = [overall(self._verdicts), Content(""), *heads(self._width)]
        texts = blocks(self._verdicts, self._width, self._apart)
        self._places, first = [], len(above)
        for text in texts:
            height = text.plain.count("\n") + 1
            self._places.append((first, height))
            first += height
        end = texts[self._at].plain.find("\n")
        texts[self._at] = texts[self._at].stylize("reverse", 0, None if end < 0 else end)
        self.show(Content("\n").join([*above, *texts]))
