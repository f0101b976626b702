"""The verdict board: an overall line, then every threshold with what was observed; a cursor goes from verdict to verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from rich.cells import cell_len
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Region
from textual.message import Message

from sfumato.engine.methods.labels import label_of, labels_of
from sfumato.engine.recipe.outcomes import worst_outcome
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind
from sfumato.tui.terminal.text import cut, fit
from sfumato.workspace.reporting.findings import counts_text, folded_text, is_open
from sfumato.workspace.reporting.words import (
    FAMILIES,
    limit_text,
    mark,
    observed_text,
    outcome_text,
    shortened,
    thresholds_text,
)
from sfumato.workspace.visible_text import replace_unprintable

from ..widgets.facts import wrapped
from ..widgets.lines import Scroll
from .gate_lines import answer_lines, cut_lines, finding_lines, most_answer_lines

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.gate.gate import Finding

GAUGE = 18
"""Cells of a gauge, its two ends among them."""
STYLES = {
    "met": "bold",
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


MOST_OF_LIMIT, LEAST_OF_LIMIT = 34, 18
"""Cells for a limit, which may name what it compares with, and where there is little room."""


def overall(verdicts: Sequence[Verdict]) -> Content:
    """Return the worst outcome of all and how many have it: ``✗ not met  1 of 6 thresholds is not met``.

    Nothing here is green: thresholds that are all met do not say that the release may leave.
    """
    found = worst_outcome(one.outcome for one in verdicts)
    return Content.assemble((outcome_text(found), STYLES[found]), f"  {thresholds_text(verdicts)}")


def board(verdicts: Sequence[Verdict], width: int, records: int | None = None) -> Content:
    """The overall line, the heads, and every verdict in a line of ``width`` cells; ``records`` is how many confidential records there are."""
    return Content("\n").join([overall(verdicts), Content(""), *lines(verdicts, width, records)])


def lines(
    verdicts: Sequence[Verdict], width: int, records: int | None = None, below: bool = False, *, safe: bool = False
) -> list[Content]:
    """The heads of the columns and a line for each verdict: state, name, value, gauge and limit.

    What is met is green only where the release is ``safe``: where the gate lets it leave.

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
        ink = "$success bold" if safe and verdict.outcome == "met" else STYLES[verdict.outcome]
        parts: list[Content | str | tuple[str, str]] = [
            (fit(outcome_text(verdict.outcome), state), ink),
            f"{gap}{fit(replace_unprintable(short[name]), room)}{gap}{value:>{sizes[0]}}{gap}",
        ]
        parts += [gauge(verdict, ink), gap] if gauges else []
        parts += [cut(limit, sizes[1])]
        found.append(Content.assemble(*parts))
        if below and not gauges:
            drawn, counted = gauge(verdict, ink, room), observed_text(verdict, records)
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
    return Content.styled(cut(replace_unprintable(f"{mark('into')} {said}"), width), "$text-muted")


GROUPS = {family: FAMILIES[family] for family in ("risk", "utility", "quality", "studies", "synthesis")}
"""The groups of a board by the family of the number, in their order; others come last."""


def group_of(verdict: Verdict) -> str:
    return GROUPS.get(verdict.value.partition(".")[0], "Other")


def grouped(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts by group, within a group in their order."""
    order = [*GROUPS.values(), "Other"]
    return sorted(verdicts, key=lambda one: order.index(group_of(one)))


def limits_text(verdicts: Sequence[Verdict]) -> str:
    """Return how many limits of the recipe are not met: ``2 of 10 limits not met``, ``all 10 limits met``, ``no limits``."""
    unmet, total = sum(one.outcome != "met" for one in verdicts), len(verdicts)
    if not total:
        return "no limits"
    if unmet:
        return f"{unmet} of {count_noun(total, 'limit')} not met"
    return "the limit is met" if total == 1 else f"all {total} limits met"


def group_heading(group: str, verdicts: Sequence[Verdict]) -> Content:
    """``Disclosure risk  2 of 7 not met``."""
    own = [one for one in verdicts if group_of(one) == group]
    unmet = sum(one.outcome != "met" for one in own)
    said = f"{unmet} of {len(own)} not met" if unmet else f"all {len(own)} met" if len(own) > 1 else "met"
    return Content.assemble((group, "$primary bold"), (f"  {said}", "$text-muted"))


@dataclass(frozen=True)
class GateLines:
    """What the board shows of the gate.

    answer: the answer; None before there is one
    findings: those that stand for themselves, the worst first
    witnesses: the findings that see the same leak, by the check that stands for them
    waived: checks that block and are waived
    text: what stands in place of an answer
    """

    answer: ReleaseAnswer | None = None
    findings: Sequence[Finding] = ()
    witnesses: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    waived: frozenset[str] = frozenset()
    text: str = ""

    @property
    def is_safe(self) -> bool:
        """Return whether green is allowed: only where the gate lets the release leave."""
        return self.answer is not None and self.answer.may_leave == "yes"


class BoardFold(Enum):
    """Lines that stand for others."""

    PASSES = "passes"
    NUMBERS = "numbers"


Entry: TypeAlias = "Finding | Verdict | BoardFold"
"""What the cursor can stand on."""


class VerdictBoard(Scroll):
    """The answer of the gate, its findings, then every verdict in groups; a cursor goes from line to line.

    What passes and all other numbers are folded into one line each.
    """

    DEFAULT_CSS = "VerdictBoard { scrollbar-size: 1 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [bind("open", "ask", "Explain", show=True)]

    @dataclass
    class Asked(Message):
        verdict: Verdict

    @dataclass
    class FindingAsked(Message):
        """The user wants a finding of the gate explained."""

        finding: Finding

    class NumbersAsked(Message):
        """The user wants to see all other numbers."""

    class Moved(Message):
        """Another verdict may be chosen now."""

    def __init__(self) -> None:
        super().__init__()
        self._verdicts: Sequence[Verdict] = ()
        self._entries: Sequence[Entry] = ()
        self._gate = GateLines()
        self._at = self._others = 0
        self._none, self._is_explained, self._is_unfolded = "", False, False

    def lay_out(
        self,
        verdicts: Sequence[Verdict],
        width: int,
        records: int | None = None,
        others: int = 0,
        none: str = "",
        explained: bool = False,
        gate: GateLines | None = None,
    ) -> None:
        """Show gate and verdicts in ``width`` cells, or why there is ``none``, and the count of the ``others``.

        The cursor stays on its line where that is still there, and at the first one where it stood there.

        ``explained``: the line under the cursor is explained elsewhere.
        """
        self._is_explained = explained
        before, chosen = self._last, self._entry
        self._verdicts, self._width, self._records, self._others = verdicts, width, records, others
        self._none, self._gate = none, gate or GateLines()
        self._entries = self._list_entries()
        if self._at and chosen in self._entries:
            self._at = self._entries.index(chosen)
        self._at = max(0, min(self._at, self._last))
        if before < 0 <= self._last:
            self.call_after_refresh(self.refresh_bindings)
        self._paint()

    def _list_entries(self) -> list[Entry]:
        open_findings, closed = self._parted_findings
        return [
            *open_findings,
            *([BoardFold.PASSES] if closed else []),
            *(closed if self._is_unfolded else []),
            *self._verdicts,
            *([BoardFold.NUMBERS] if self._others else []),
        ]

    @property
    def _parted_findings(self) -> tuple[list[Finding], list[Finding]]:
        """The findings that always have a line, and those that pass or do not apply, which are folded into one."""
        findings = self._gate.findings
        return [one for one in findings if is_open(one)], [one for one in findings if not is_open(one)]

    @property
    def _last(self) -> int:
        """The place of the last line that the cursor goes to."""
        return len(self._entries) - 1

    @property
    def _entry(self) -> Entry | None:
        return self._entries[self._at] if self._at < len(self._entries) else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing can be asked where there are no numbers."""
        return action != "ask" or self._last >= 0

    def clear(self, text: str) -> None:
        if self._last >= 0:
            self.call_after_refresh(self.refresh_bindings)
        self._verdicts, self._entries, self._others, self._gate = (), (), 0, GateLines()
        self.show(text)

    def action_lines(self, lines: int) -> None:
        """Go to the next line or the previous one, or scroll where there are none."""
        if self._last < 0:
            super().action_lines(lines)
            return
        at = max(0, min(self._at + lines, self._last))
        if at != self._at:
            self._at = at
            self._paint()
        if at == 0 and self._rows[0] < self.scrollable_content_region.height:  # above the first line stands the answer
            self.scroll_home(animate=False)
        else:
            self.scroll_to_region(Region(0, self._rows[at], 1, 1), animate=False)

    def action_ends(self, end: int) -> None:
        """Go to the first (0) or the last (1) line."""
        if self._last >= 0:
            self._at = end * self._last
            self._paint()
        super().action_ends(end)

    def action_ask(self) -> None:
        """Ask what the chosen line means, for the other numbers, or unfold what passes."""
        entry = self._entry
        if entry is BoardFold.PASSES:
            self._is_unfolded = not self._is_unfolded
            self._entries = self._list_entries()
            self._at = self._entries.index(BoardFold.PASSES)
            self._paint()
            self.scroll_to_region(Region(0, self._rows[self._at], 1, 1), animate=False)
        elif entry is BoardFold.NUMBERS:
            self.post_message(self.NumbersAsked())
        elif isinstance(entry, Verdict):
            self.post_message(self.Asked(entry))
        elif entry is not None:
            self.post_message(self.FindingAsked(entry))

    @property
    def chosen(self) -> Verdict | None:
        """The verdict under the cursor; None where it stands on another line."""
        return self._entry if isinstance(self._entry, Verdict) else None

    @property
    def chosen_finding(self) -> Finding | None:
        """The finding of the gate under the cursor; None where it stands on another line."""
        return None if isinstance(self._entry, (Verdict, BoardFold)) else self._entry

    def _paint(self) -> None:
        self.post_message(self.Moved())
        rows: dict[int, int] = {}
        shown: list[Content | str] = self._gate_head()
        about = [] if self._is_explained or self._last < 0 else [self._about()]
        shown += about
        self._paint_findings(shown, rows)
        if self._verdicts:
            self._paint_verdicts(shown, rows)
        elif self._none:
            shown += [""] * bool(shown) + [self._none]
        if self._others:
            rows[len(rows)] = len(shown) + 1
            shown += ["", f"{mark('into')} {self._others:,} {'other ' if self._verdicts else ''}numbers"]
        self._rows = [rows[place] for place in range(len(rows))]
        if self._rows:
            at = self._rows[self._at]
            shown[at] = Content.assemble(shown[at]).stylize("reverse")
        self.show(Content("\n").join([line if isinstance(line, Content) else Content(line) for line in shown]))

    def _gate_head(self) -> list[Content | str]:
        """The answer, or why there is none."""
        if self._gate.answer is not None:
            return [*answer_lines(self._gate.answer, self._width, most_answer_lines(self.app.size.height))]
        if not self._gate.text:
            return []
        most = most_answer_lines(self.app.size.height)
        return [
            Content.styled(line, "bold") for line in cut_lines(wrapped(self._gate.text, self._width), most, self._width)
        ]

    def _paint_findings(self, shown: list[Content | str], rows: dict[int, int]) -> None:
        """Add the findings of the gate, the folded ones last; ``rows`` has the line of each entry."""
        open_findings, closed = self._parted_findings
        if not self._gate.findings:
            return
        counts = counts_text(open_findings) or "nothing is open"
        shown.append(Content.assemble(("The gate", "$primary bold"), (f"  {counts}", "$text-muted")))
        listed = [*open_findings, *(closed if self._is_unfolded else [])]
        witnesses = [self._gate.witnesses.get(one.check, ()) for one in listed]
        texts: list[Content | str] = [*finding_lines(listed, witnesses, self._gate.waived, self._width)]
        if closed:
            texts.insert(len(open_findings), f"{mark('into')} {folded_text(closed)}")
        for text in texts:
            rows[len(rows)] = len(shown)
            shown.append(text)

    def _about(self) -> Content | str:
        """What there is to say of the line under the cursor, in one line."""
        if self.chosen is not None:
            return chosen_text(self.chosen, self._width)
        if (finding := self.chosen_finding) is not None:
            return Content.styled(
                cut(replace_unprintable(f"{mark('into')} {finding.title} · {finding.said}"), self._width), "$text-muted"
            )
        return ""

    def _paint_verdicts(self, shown: list[Content | str], rows: dict[int, int]) -> None:
        """Add the verdicts by group; ``rows`` has the line of each entry."""
        safe = self._gate.is_safe
        heads, *texts = lines(self._verdicts, self._width, self._records, self._has_room, safe=safe)
        if shown and self._gate.findings:
            shown.append("")
        shown += [overall(self._verdicts), heads]
        group = ""
        for verdict, text in zip(self._verdicts, texts, strict=True):
            if group_of(verdict) != group:
                group = group_of(verdict)
                shown.append(group_heading(group, self._verdicts))
            rows[len(rows)] = len(shown)
            shown += text.split("\n")

    @property
    def _has_room(self) -> bool:
        """Whether there is room for two lines a verdict below what else is shown; never in a low terminal."""
        groups = len({group_of(one) for one in self._verdicts})
        listed = len(self._gate.findings) if self._is_unfolded else len(self._parted_findings[0])
        above = listed + 3 + most_answer_lines(self.app.size.height) if self._gate.findings else 1
        return max(LEAST_LINES, 2 * len(self._verdicts) + groups + AROUND + above) <= self.size.height
