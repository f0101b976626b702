"""Verdict board: the gate's answer and findings, then every threshold with its observed value."""

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
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.terminal.text import cut_text, fit_text
from sfumato.workspace.reporting.findings import finding_counts_text, folded_counts_text, is_open
from sfumato.workspace.reporting.words import (
    FAMILY_HEADINGS,
    limit_text,
    observed_text,
    outcome_text,
    shorten_names,
    sign_for,
    thresholds_text,
)
from sfumato.workspace.visible_text import replace_unprintable

from ..widgets.facts import wrap_text
from ..widgets.lines import Scroll
from .gate_lines import answer_lines, cut_lines, finding_lines, most_answer_lines

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.gate.gate import Finding

GAUGE = 18
"""Cells of a gauge with its two ends."""
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
"""Height of a board in lines below which a verdict has only one line."""


def draw_gauge(verdict: Verdict, style: str, width: int = GAUGE) -> Content:
    """Return a gauge such as ``├──■━━━━━┃──┤`` from 0 to twice the limit: value, interval and limit.

    Gauges of least and of largest values run the same way. What lies beyond an end is drawn at it. The gauge is blank
    without an observed value or if the limit is not positive.
    """
    inner = width - 2
    if verdict.observed is None or verdict.limit <= 0 or inner < 6:
        return Content(" " * width)

    def cell_of(value: float) -> int:
        """Return the cell of a value, within the gauge."""
        return max(0, min(inner - 1, round(value / (2 * verdict.limit) * (inner - 1))))

    at, bound = cell_of(verdict.observed), cell_of(verdict.limit)
    first = at if verdict.lower is None else cell_of(verdict.lower)
    last = at if verdict.lower is None else inner - 1 if verdict.upper is None else cell_of(verdict.upper)
    parts: list[tuple[str, str]] = [(sign_for("from"), "$text-muted")]
    for place in range(inner):
        if place == at:
            parts.append((sign_for("value"), style))
        elif place == bound:
            parts.append((sign_for("limit"), "bold"))
        elif first <= place <= last:
            parts.append((sign_for("bar"), style))
        else:
            parts.append((sign_for("track"), "$text-muted"))
    return Content.assemble(*parts, (sign_for("to"), "$text-muted"))


MOST_OF_LIMIT, LEAST_OF_LIMIT = 34, 18
"""Width of a limit in cells, which may name what it is compared with, and its width in a narrow board."""


def overall_line(verdicts: Sequence[Verdict]) -> Content:
    """Return the worst outcome and the number of thresholds with it: ``✗ not met  1 of 6 thresholds is not met``."""
    # Nothing here is green: thresholds that are all met do not mean that the release may leave.
    found = worst_outcome(one.outcome for one in verdicts)
    return Content.assemble((outcome_text(found), STYLES[found]), f"  {thresholds_text(verdicts)}")


def board_text(verdicts: Sequence[Verdict], width: int, records: int | None = None) -> Content:
    """Return the overall line, the heads, and each verdict in a line of ``width`` cells.

    ``records`` is the number of confidential records.
    """
    return Content("\n").join([overall_line(verdicts), Content(""), *verdict_lines(verdicts, width, records)])


def verdict_lines(
    verdicts: Sequence[Verdict], width: int, records: int | None = None, below: bool = False, *, safe: bool = False
) -> list[Content]:
    """Return the heads of the columns and a line for each verdict: state, name, value, gauge and limit.

    Outcomes that are met are green only with ``safe``: if the gate lets the release leave. In a narrow board numbers of
    people are left out of the values, limits are abbreviated, then gauges left out; names are shortened, no two alike.
    With ``below`` gauges and numbers of people that do not fit into the line stand in a second line.
    """
    state = max(map(cell_len, ("verdict", *(outcome_text(one.outcome) for one in verdicts))))
    names, limits = labels_of(verdicts), [limit_text(one.bound, one.limit, one.value) for one in verdicts]
    wanted = min(max(map(cell_len, names), default=0), 60)
    # From the widest layout to the narrowest; the first with enough room for the names is taken.
    for people, gauges, whole in ((records, True, True), (None, True, True), (None, True, False), (None, False, False)):
        values = [observed_text(one, people).removesuffix(" of the people") for one in verdicts]
        bounds = (
            limits
            if whole or max(map(cell_len, limits), default=0) <= LEAST_OF_LIMIT
            else list(map(_abbreviate_limit, limits))
        )
        sizes = [max([len(head), *map(cell_len, cells)]) for head, cells in (("value", values), ("limit", bounds))]
        sizes[1] = min(sizes[1], MOST_OF_LIMIT if whole else LEAST_OF_LIMIT)
        room = width - state - sum(sizes) - 3 * GAP - ((GAUGE + GAP) if gauges else 0)
        if room >= max(NAME_LEAST, wanted if people else 0):
            break
    room = max(room, 8)
    short = shorten_names(names, room)
    gap = " " * GAP
    found = [Content.styled(gap.join(
        [fit_text("verdict", state), fit_text("number", room), f"{'value':>{sizes[0]}}", *([" " * GAUGE] if gauges else []), "limit"]
    ), "bold")]  # fmt: skip
    for verdict, name, value, limit in zip(verdicts, names, values, bounds, strict=True):
        ink = "$success bold" if safe and verdict.outcome == "met" else STYLES[verdict.outcome]
        parts: list[Content | str | tuple[str, str]] = [
            (fit_text(outcome_text(verdict.outcome), state), ink),
            f"{gap}{fit_text(replace_unprintable(short[name]), room)}{gap}{value:>{sizes[0]}}{gap}",
        ]
        parts += [draw_gauge(verdict, ink), gap] if gauges else []
        parts += [cut_text(limit, sizes[1])]
        found.append(Content.assemble(*parts))
        if below and not gauges:
            drawn, counted = draw_gauge(verdict, ink, room), observed_text(verdict, records)
            told = counted if counted != value and verdict.observed is not None else ""
            if told or drawn.plain.strip():
                found[-1] = Content.assemble(
                    found[-1],
                    "\n",
                    " " * (state + GAP),
                    drawn,
                    gap,
                    (cut_text(told, width - state - room - 2 * GAP), "$text-muted"),
                )
    return found


def _abbreviate_limit(limit: str) -> str:
    """Abbreviate a limit: ``≤ 0.65 × conf.`` for ``at most 0.65 × confidential``."""
    for words in ("at most", "at least"):
        limit = limit.replace(words, sign_for(words))
    return limit.replace("confidential", "conf.")


def verdict_name_line(verdict: Verdict, width: int) -> Content:
    """Return the whole name of a verdict and its reason, cut to ``width`` cells."""
    said = " · ".join(part for part in (label_of(verdict), verdict.reason) if part)
    return Content.styled(cut_text(replace_unprintable(f"{sign_for('into')} {said}"), width), "$text-muted")


GROUPS = {family: FAMILY_HEADINGS[family] for family in ("risk", "utility", "quality", "studies", "synthesis")}
"""Groups of a board by the family of the number, in their order; others come last."""


def verdict_group(verdict: Verdict) -> str:
    """Return the name of a verdict's group."""
    return GROUPS.get(verdict.value.partition(".")[0], "Other")


def sort_by_group(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Sort the verdicts by group; within a group they keep their order."""
    order = [*GROUPS.values(), "Other"]
    return sorted(verdicts, key=lambda one: order.index(verdict_group(one)))


def limits_text(verdicts: Sequence[Verdict]) -> str:
    """Return the number of limits that are not met: ``2 of 10 limits not met``, ``all 10 limits met``,
    ``no limits``.
    """
    unmet, total = sum(one.outcome != "met" for one in verdicts), len(verdicts)
    if not total:
        return "no limits"
    if unmet:
        return f"{unmet} of {count_noun(total, 'limit')} not met"
    return "the limit is met" if total == 1 else f"all {total} limits met"


def group_heading(group: str, verdicts: Sequence[Verdict]) -> Content:
    """Return the heading of a group, such as ``Disclosure risk  2 of 7 not met``."""
    own = [one for one in verdicts if verdict_group(one) == group]
    unmet = sum(one.outcome != "met" for one in own)
    said = f"{unmet} of {len(own)} not met" if unmet else f"all {len(own)} met" if len(own) > 1 else "met"
    return Content.assemble((group, "$primary bold"), (f"  {said}", "$text-muted"))


@dataclass(frozen=True)
class GateLines:
    """Gate's answer and findings as the board shows them.

    answer: the answer; None before there is one
    findings: the findings that lead others, the worst first
    witnesses: other findings of the same leak, by the check of the leading one
    waived: checks that block and are waived
    text: text in place of an answer
    """

    answer: ReleaseAnswer | None = None
    findings: Sequence[Finding] = ()
    witnesses: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    waived: frozenset[str] = frozenset()
    text: str = ""

    @property
    def is_safe(self) -> bool:
        """Return whether green is allowed: only if the gate lets the release leave."""
        return self.answer is not None and self.answer.may_leave == "yes"


class BoardFold(Enum):
    """Lines that each stand for several folded lines."""

    PASSES = "passes"
    NUMBERS = "numbers"


Entry: TypeAlias = "Finding | Verdict | BoardFold"
"""Entry of the board that the cursor can be on."""


class VerdictBoard(Scroll):
    """Board with the gate's answer, its findings, then all verdicts in groups; a cursor moves from line to line.

    Findings that pass and all other numbers are folded into one line each.
    """

    DEFAULT_CSS = "VerdictBoard { scrollbar-size: 1 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [bind_act("open", "ask", "Explain", show=True)]

    @dataclass
    class VerdictSelected(Message):
        """Message that the user wants a verdict explained."""

        verdict: Verdict

    @dataclass
    class FindingSelected(Message):
        """Message that the user wants a finding of the gate explained."""

        finding: Finding

    class NumbersSelected(Message):
        """Message that the user wants to see all other numbers."""

    class BoardCursorMoved(Message):
        """Message that another line may be under the cursor."""

    def __init__(self) -> None:
        """Create an empty board."""
        super().__init__()
        self._verdicts: Sequence[Verdict] = ()
        self._entries: Sequence[Entry] = ()
        self._gate = GateLines()
        self._at = self._others = 0
        self._none, self._is_explained, self._is_unfolded = "", False, False

    def show_board(
        self,
        verdicts: Sequence[Verdict],
        width: int,
        records: int | None = None,
        others: int = 0,
        none: str = "",
        explained: bool = False,
        gate: GateLines | None = None,
    ) -> None:
        """Show gate and verdicts in ``width`` cells.

        records: number of confidential records
        others: number of other numbers
        none: why there are no verdicts
        explained: whether the line under the cursor is explained beside the board
        gate: what is shown of the gate

        The cursor stays on its line if that still exists, and on the first line if it was there.
        """
        self._is_explained = explained
        before, chosen = self._last_entry, self._current_entry
        self._verdicts, self._width, self._records, self._others = verdicts, width, records, others
        self._none, self._gate = none, gate or GateLines()
        self._entries = self._list_entries()
        # A cursor on the first line has not been moved by the user, so it stays first when lines are added above.
        if self._at and chosen in self._entries:
            self._at = self._entries.index(chosen)
        self._at = max(0, min(self._at, self._last_entry))
        if before < 0 <= self._last_entry:
            self.call_after_refresh(self.refresh_bindings)
        self._paint_board()

    def _list_entries(self) -> list[Entry]:
        """Return the entries that the cursor can be on, in their order."""
        open_findings, closed = self._open_and_folded_findings
        return [
            *open_findings,
            *([BoardFold.PASSES] if closed else []),
            *(closed if self._is_unfolded else []),
            *self._verdicts,
            *([BoardFold.NUMBERS] if self._others else []),
        ]

    @property
    def _open_and_folded_findings(self) -> tuple[list[Finding], list[Finding]]:
        """Return the findings that always have a line, and those that pass or do not apply."""
        findings = self._gate.findings
        return [one for one in findings if is_open(one)], [one for one in findings if not is_open(one)]

    @property
    def _last_entry(self) -> int:
        """Return the index of the last entry; -1 without entries."""
        return len(self._entries) - 1

    @property
    def _current_entry(self) -> Entry | None:
        """Return the entry under the cursor; None without entries."""
        return self._entries[self._at] if self._at < len(self._entries) else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable explaining if there are entries."""
        return action != "ask" or self._last_entry >= 0

    def show_message(self, text: str) -> None:
        """Show a text in place of the board."""
        if self._last_entry >= 0:
            self.call_after_refresh(self.refresh_bindings)
        self._verdicts, self._entries, self._others, self._gate = (), (), 0, GateLines()
        self.show_text(text)

    def action_lines(self, lines: int) -> None:
        """Move the cursor by lines; without entries scroll."""
        if self._last_entry < 0:
            super().action_lines(lines)
            return
        at = max(0, min(self._at + lines, self._last_entry))
        if at != self._at:
            self._at = at
            self._paint_board()
        if at == 0 and self._rows[0] < self.scrollable_content_region.height:  # above the first line stands the answer
            self.scroll_home(animate=False)
        else:
            self.scroll_to_region(Region(0, self._rows[at], 1, 1), animate=False)

    def action_ends(self, end: int) -> None:
        """Move the cursor to the first line (0) or the last (1)."""
        if self._last_entry >= 0:
            self._at = end * self._last_entry
            self._paint_board()
        super().action_ends(end)

    def action_ask(self) -> None:
        """Explain the line under the cursor, show the other numbers, or unfold findings that pass."""
        entry = self._current_entry
        if entry is BoardFold.PASSES:
            self._is_unfolded = not self._is_unfolded
            self._entries = self._list_entries()
            self._at = self._entries.index(BoardFold.PASSES)
            self._paint_board()
            self.scroll_to_region(Region(0, self._rows[self._at], 1, 1), animate=False)
        elif entry is BoardFold.NUMBERS:
            self.post_message(self.NumbersSelected())
        elif isinstance(entry, Verdict):
            self.post_message(self.VerdictSelected(entry))
        elif entry is not None:
            self.post_message(self.FindingSelected(entry))

    @property
    def chosen_verdict(self) -> Verdict | None:
        """Return the verdict under the cursor; None on another line."""
        return self._current_entry if isinstance(self._current_entry, Verdict) else None

    @property
    def chosen_finding(self) -> Finding | None:
        """Return the finding of the gate under the cursor; None on another line."""
        return None if isinstance(self._current_entry, (Verdict, BoardFold)) else self._current_entry

    def _paint_board(self) -> None:
        """Write all lines of the board and mark the one under the cursor."""
        self.post_message(self.BoardCursorMoved())
        rows: dict[int, int] = {}
        shown: list[Content | str] = self._gate_head()
        about = [] if self._is_explained or self._last_entry < 0 else [self._current_line_text()]
        shown += about
        self._paint_findings(shown, rows)
        if self._verdicts:
            self._paint_verdicts(shown, rows)
        elif self._none:
            shown += [""] * bool(shown) + [self._none]
        if self._others:
            rows[len(rows)] = len(shown) + 1
            shown += ["", f"{sign_for('into')} {self._others:,} {'other ' if self._verdicts else ''}numbers"]
        self._rows = [rows[place] for place in range(len(rows))]
        if self._rows:
            at = self._rows[self._at]
            shown[at] = Content.assemble(shown[at]).stylize("reverse")
        self.show_text(Content("\n").join([line if isinstance(line, Content) else Content(line) for line in shown]))

    def _gate_head(self) -> list[Content | str]:
        """Return the lines of the answer, or why it is missing."""
        if self._gate.answer is not None:
            return [*answer_lines(self._gate.answer, self._width, most_answer_lines(self.app.size.height))]
        if not self._gate.text:
            return []
        most = most_answer_lines(self.app.size.height)
        return [
            Content.styled(line, "bold")
            for line in cut_lines(wrap_text(self._gate.text, self._width), most, self._width)
        ]

    def _paint_findings(self, shown: list[Content | str], rows: dict[int, int]) -> None:
        """Append the findings of the gate to ``shown``, the folded ones last; ``rows`` gets the line of each entry."""
        open_findings, closed = self._open_and_folded_findings
        if not self._gate.findings:
            return
        counts = finding_counts_text(open_findings) or "nothing is open"
        shown.append(Content.assemble(("The gate", "$primary bold"), (f"  {counts}", "$text-muted")))
        listed = [*open_findings, *(closed if self._is_unfolded else [])]
        witnesses = [self._gate.witnesses.get(one.check, ()) for one in listed]
        texts: list[Content | str] = [*finding_lines(listed, witnesses, self._gate.waived, self._width)]
        if closed:
            texts.insert(len(open_findings), f"{sign_for('into')} {folded_counts_text(closed)}")
        for text in texts:
            rows[len(rows)] = len(shown)
            shown.append(text)

    def _current_line_text(self) -> Content | str:
        """Return the text about the line under the cursor, in one line."""
        if self.chosen_verdict is not None:
            return verdict_name_line(self.chosen_verdict, self._width)
        if (finding := self.chosen_finding) is not None:
            return Content.styled(
                cut_text(replace_unprintable(f"{sign_for('into')} {finding.title} · {finding.message}"), self._width),
                "$text-muted",
            )
        return ""

    def _paint_verdicts(self, shown: list[Content | str], rows: dict[int, int]) -> None:
        """Append the verdicts by group to ``shown``; ``rows`` gets the line of each entry."""
        safe = self._gate.is_safe
        heads, *texts = verdict_lines(self._verdicts, self._width, self._records, self._has_two_line_room, safe=safe)
        if shown and self._gate.findings:
            shown.append("")
        shown += [overall_line(self._verdicts), heads]
        group = ""
        for verdict, text in zip(self._verdicts, texts, strict=True):
            if verdict_group(verdict) != group:
                group = verdict_group(verdict)
                shown.append(group_heading(group, self._verdicts))
            rows[len(rows)] = len(shown)
            shown += text.split("\n")

    @property
    def _has_two_line_room(self) -> bool:
        """Return whether every verdict can have two lines; never in a low terminal."""
        groups = len({verdict_group(one) for one in self._verdicts})
        listed = len(self._gate.findings) if self._is_unfolded else len(self._open_and_folded_findings[0])
        above = listed + 3 + most_answer_lines(self.app.size.height) if self._gate.findings else 1
        return max(LEAST_LINES, 2 * len(self._verdicts) + groups + AROUND + above) <= self.size.height
