"""The verdict board: an overall line, then every threshold with what was observed; a cursor goes from verdict to verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Region
from textual.message import Message

from sfumato.engine.methods.labels import label_of, labels_of
from sfumato.engine.recipe.outcomes import worst
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.tui.acts import bind
from sfumato.tui.widgets.text import cut, fit
from sfumato.workspace.reporting.words import (
    FAMILIES,
    limit_text,
    mark,
    observed_text,
    outcome_text,
    shortened,
    thresholds_text,
)
from sfumato.workspace.visible_text import printable

from .lines import Scroll

GAUGE = 18
"""Cells of a gauge, its two ends among them."""


def gauge(verdict: Verdict, style: str, width: int = GAUGE) -> Content:
    """``├──■━━━━━┃──┤``: from 0 to twice the limit, the value as a mark, its interval as a bar, the limit upright.

    Gauges of least and of largest values run the same way. What lies beyond an end is drawn at it. Blank where there is nothing to
    compare: nothing observed, or a limit that is not positive.
    """
    inner = width - 2
    if verdict.observed is None or verdict.limit <= 0 or inner < 6:
        return Content(" " * width)

    def cell(value: float) -> int:
        return max(0, min(inner - 1, round(value / (2 * verdict.limit) * (inner - 1))))

    at, bound = cell(verdict.observed), cell(verdict.limit)
    first = at if verdict.lower is None else cell(verdict.lower)
    last = at if verdict.lower is None else inner - 1 if verdict.upper is None else cell(verdict.upper)
    parts: list[tuple[str, str]] = [(mark("from"), "$text-muted")]
    for place in range(inner):
        if place == at:
            parts.append((mark("value"), style))
        elif place == bound:
            parts.append((mark("limit"), "bold"))
        elif first <= place <= last:
            parts.append((mark("bar"), style))
        else:
            parts.append((mark("track"), "$text-muted"))
    return Content.assemble(*parts, (mark("to"), "$text-muted"))


STYLES = {
    "met": "$success bold",
    "not met": "$error bold",
    "undecided": "$warning bold",
    "not computed": "$text-muted bold",
}
NAME_LEAST = 30
GAP = 2
AROUND = 5
"""Lines of a board that are neither verdicts nor groups."""
LEAST_LINES = 24
"""In a lower board a verdict is one line."""
MOST_OF_LIMIT, LEAST_OF_LIMIT = 34, 18
"""Cells for a limit, which may name what it compares with, and where there is little room."""


def overall(verdicts: Sequence[Verdict]) -> Content:
    """``✗ not met  1 of 6 thresholds is not met``: the worst outcome of all; only ``met`` of every threshold is met."""
    found = worst(one.outcome for one in verdicts)
    return Content.assemble((outcome_text(found), STYLES[found]), f"  {thresholds_text(verdicts)}")


def board(verdicts: Sequence[Verdict], width: int, records: int | None = None) -> Content:
    """The overall line, the heads, and every verdict in a line of ``width`` cells; ``records`` is how many confidential records there are."""
    return Content("\n").join([overall(verdicts), Content(""), *lines(verdicts, width, records)])


def lines(verdicts: Sequence[Verdict], width: int, records: int | None = None, below: bool = False) -> list[Content]:
    """The heads of the columns and a line for each verdict: state, name, value, gauge and limit.

    Where there is little room people are left out of the values, limits are abbreviated, then gauges left out; names are shortened, no
    two alike. With ``below`` gauges and people that the line has no room for make a second line.
    """
    state = max(map(cell_len, ("verdict", *(outcome_text(one.outcome) for one in verdicts))))
    names, limits = labels_of(verdicts), [limit_text(one.bound, one.limit, one.value) for one in verdicts]
    wanted = min(max(map(cell_len, names), default=0), 60)
    for people, gauges, whole in ((records, True, True), (None, True, True), (None, True, False), (None, False, False)):
        values = [observed_text(one, people).removesuffix(" of the people") for one in verdicts]
        bounds = (
            limits if whole or max(map(cell_len, limits), default=0) <= LEAST_OF_LIMIT else list(map(_brief, limits))
        )
        sizes = [max([len(head), *map(cell_len, cells)]) for head, cells in (("value", values), ("limit", bounds))]
        sizes[1] = min(sizes[1], MOST_OF_LIMIT if whole else LEAST_OF_LIMIT)
        room = width - state - sum(sizes) - 3 * GAP - ((GAUGE + GAP) if gauges else 0)
        if room >= max(NAME_LEAST, wanted if people else 0):
            break
    room = max(room, 8)
    short = shortened(names, room)
    gap = " " * GAP
    found = [Content.styled(gap.join(
        [fit("verdict", state), fit("number", room), f"{'value':>{sizes[0]}}", *([" " * GAUGE] if gauges else []), "limit"]
    ), "bold")]  # fmt: skip
    for verdict, name, value, limit in zip(verdicts, names, values, bounds, strict=True):
        parts: list[Content | str | tuple[str, str]] = [
            (fit(outcome_text(verdict.outcome), state), STYLES[verdict.outcome]),
            f"{gap}{fit(printable(short[name]), room)}{gap}{value:>{sizes[0]}}{gap}",
        ]
        parts += [gauge(verdict, STYLES[verdict.outcome]), gap] if gauges else []
        parts += [cut(limit, sizes[1])]
        found.append(Content.assemble(*parts))
        if below and not gauges:
            drawn, counted = gauge(verdict, STYLES[verdict.outcome], room), observed_text(verdict, records)
            told = counted if counted != value and verdict.observed is not None else ""
            if told or drawn.plain.strip():
                found[-1] = Content.assemble(
                    found[-1],
                    "\n",
                    " " * (state + GAP),
                    drawn,
                    gap,
                    (cut(told, width - state - room - 2 * GAP), "$text-muted"),
                )
    return found


def _brief(limit: str) -> str:
    """``≤ 0.65 × conf.`` for ``at most 0.65 × confidential``."""
    for words in ("at most", "at least"):
        limit = limit.replace(words, mark(words))
    return limit.replace("confidential", "conf.")


def chosen_text(verdict: Verdict, width: int) -> Content:
    """The whole name of a verdict, and its reason, as far as there is room."""
    said = " · ".join(part for part in (label_of(verdict), verdict.reason) if part)
    return Content.styled(cut(printable(f"{mark('into')} {said}"), width), "$text-muted")


GROUPS = {family: FAMILIES[family] for family in ("risk", "utility", "quality", "studies", "synthesis")}
"""The groups of a board by the family of the number, in their order; others come last."""


def group_of(verdict: Verdict) -> str:
    return GROUPS.get(verdict.value.partition(".")[0], "Other")


def grouped(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts by group, within a group in their order."""
    order = [*GROUPS.values(), "Other"]
    return sorted(verdicts, key=lambda one: order.index(group_of(one)))


def group_heading(group: str, verdicts: Sequence[Verdict]) -> Content:
    """``Disclosure risk  2 of 7 not met``."""
    own = [one for one in verdicts if group_of(one) == group]
    unmet = sum(one.outcome != "met" for one in own)
    said = f"{unmet} of {len(own)} not met" if unmet else f"all {len(own)} met"
    return Content.assemble((group, "$primary bold"), (f"  {said}", "$text-muted"))


class VerdictBoard(Scroll):
    """Every verdict of a run in groups, one of them chosen; below them all other numbers, folded into one line."""

    DEFAULT_CSS = "VerdictBoard { scrollbar-size: 1 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [bind("open", "ask", "Explain", show=True)]

    @dataclass
    class Asked(Message):
        verdict: Verdict

    class NumbersAsked(Message):
        """The user wants to see all other numbers."""

    class Moved(Message):
        """Another verdict may be chosen now."""

    def __init__(self) -> None:
        super().__init__()
        self._verdicts: Sequence[Verdict] = ()
        self._at = self._others = 0
        self._none, self._is_explained = "", False

    def lay_out(
        self,
        verdicts: Sequence[Verdict],
        width: int,
        records: int | None = None,
        others: int = 0,
        none: str = "",
        explained: bool = False,
    ) -> None:
        """Show these verdicts in ``width`` cells, or why there is ``none``, and the count of the ``others``; the cursor stays at its place where there is one.

        ``explained``: the one under the cursor is explained elsewhere.
        """
        self._is_explained = explained
        if self._last < 0:
            self.call_after_refresh(self.refresh_bindings)
        self._verdicts, self._width, self._records, self._others = verdicts, width, records, others
        self._none = none
        self._at = max(0, min(self._at, self._last))
        self._paint()

    @property
    def _last(self) -> int:
        """The place of the last line that the cursor goes to."""
        return len(self._verdicts) - 1 + bool(self._others)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing can be asked where there are no numbers."""
        return action != "ask" or self._last >= 0

    def clear(self, text: str) -> None:
        if self._last >= 0:
            self.call_after_refresh(self.refresh_bindings)
        self._verdicts, self._others = (), 0
        self.show(text)

    def action_lines(self, lines: int) -> None:
        """Go to the next verdict or the previous one, or scroll where there are none."""
        if self._last < 0:
            super().action_lines(lines)
            return
        at = max(0, min(self._at + lines, self._last))
        if at != self._at:
            self._at = at
            self._paint()
        self.scroll_to_region(Region(0, self._rows[at], 1, 1), animate=False)

    def action_ends(self, end: int) -> None:
        """Go to the first (0) or the last (1) line."""
        if self._last >= 0:
            self._at = end * self._last
            self._paint()
        super().action_ends(end)

    def action_ask(self) -> None:
        """Ask what the chosen verdict means, or for the other numbers."""
        if self.chosen is not None:
            self.post_message(self.Asked(self.chosen))
        elif self._last >= 0:
            self.post_message(self.NumbersAsked())

    @property
    def chosen(self) -> Verdict | None:
        """The verdict under the cursor; None without any, and on the line of the other numbers."""
        return self._verdicts[self._at] if self._at < len(self._verdicts) else None

    def _paint(self) -> None:
        self.post_message(self.Moved())
        shown: list[Content | str] = [self._none]
        texts: list[Content] = []
        if self._verdicts:
            heads, *texts = lines(self._verdicts, self._width, self._records, self._has_room)
            about = [] if self._is_explained else [chosen_text(self.chosen, self._width) if self.chosen else ""]
            shown = [overall(self._verdicts), *about, heads]
        self._rows: list[int] = []
        group = ""
        for verdict, text in zip(self._verdicts, texts, strict=True):
            if group_of(verdict) != group:
                group = group_of(verdict)
                shown.append(group_heading(group, self._verdicts))
            self._rows.append(len(shown))
            shown += text.split("\n")
        if self._others:
            self._rows.append(len(shown) + 1)
            shown += ["", f"{mark('into')} {self._others:,} {'other ' if self._verdicts else ''}numbers"]
        at = self._rows[self._at]
        shown[at] = Content.assemble(shown[at]).stylize("reverse")
        self.show(Content("\n").join([line if isinstance(line, Content) else Content(line) for line in shown]))

    @property
    def _has_room(self) -> bool:
        """Whether there is room for two lines a verdict below what else is shown; never in a low terminal."""
        groups = len({group_of(one) for one in self._verdicts})
        return max(LEAST_LINES, 2 * len(self._verdicts) + groups + AROUND) <= self.size.height
