"""Verdict board: the gate's findings and every threshold in one list, the most harmful first."""

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

from sfumato.engine.methods.labels import labels_of
from sfumato.engine.recipe.outcomes import worst_outcome
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.terminal.text import cut_text, fit_text
from sfumato.workspace.reporting.harm import (
    DOES_NOT_APPLY,
    PASSES,
    harm_rank,
    not_applying_text,
    passes_text,
    sort_by_harm,
)
from sfumato.workspace.reporting.words import (
    FAMILY_HEADINGS,
    brief_limit_text,
    brief_observed_text,
    limit_text,
    observed_text,
    outcome_text,
    shorten_names,
    sign_for,
    thresholds_text,
)
from sfumato.workspace.visible_text import replace_unprintable

from ..widgets.lines import Scroll
from .gauges import GAUGE, STYLES, draw_gauge
from .harm_lines import harm_lines

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.gate.gate import Finding

FAINT = "$text-muted"
NAME_LEAST = 30
GAP = 2
AMPLE = 1000
"""Lines in which every list has room."""
LEAST_LINES = 24
"""Height of a board in lines below which a verdict has only one line."""


WIDE = 100
"""Cells of a board from which names need not be cut, since limits have a short form."""
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
        values = [observed_text(one, people) if people else brief_observed_text(one) for one in verdicts]
        bounds = (
            limits
            if whole or max(map(cell_len, limits), default=0) <= LEAST_OF_LIMIT
            else list(map(brief_limit_text, limits))
        )
        sizes = [max([len(head), *map(cell_len, cells)]) for head, cells in (("value", values), ("limit", bounds))]
        sizes[1] = min(sizes[1], MOST_OF_LIMIT if whole else LEAST_OF_LIMIT)
        room = width - state - sum(sizes) - 3 * GAP - ((GAUGE + GAP) if gauges else 0)
        # Names that are whole come before numbers of people and, with room for gauges, before limits in words.
        if room >= max(NAME_LEAST, wanted if people or (whole and width >= WIDE) else 0):
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
    OTHERS = "others"
    NUMBERS = "numbers"


FOLD_TEXTS = {
    BoardFold.PASSES: "the checks that pass and the limits that are met",
    BoardFold.OTHERS: "the checks that do not apply to this release",
    BoardFold.NUMBERS: "the numbers of the run",
}
"""What a line stands for that stands for others."""
FINDING_STEPS = {
    "block": "explains what blocks and how to fix it",
    "warn": "explains what you have to judge",
    "not_checked": "says why this was not checked",
}
"""What enter does on a finding of the gate, by its status."""
Entry: TypeAlias = "Finding | Verdict | BoardFold"
"""Entry of the board that the cursor can be on."""


class VerdictBoard(Scroll):
    """List of the gate's findings and of the limits, the most harmful first; a cursor moves from entry to entry.

    Checks that pass and limits that are met are folded into one line, those that do not apply into another, and all
    all numbers into a third. Limits that are met are listed where nothing is open.
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
        """Message that the user wants to see all numbers."""

    class BoardCursorMoved(Message):
        """Message that another line may be under the cursor."""

    def __init__(self) -> None:
        """Create an empty board."""
        super().__init__()
        self._verdicts: Sequence[Verdict] = ()
        self._entries: Sequence[Entry] = ()
        self._gate = GateLines()
        self._at = self._numbers = 0
        self._none, self._width = "", 40
        self._needed: tuple[Sequence[Entry], int] = (), 0
        self._records: int | None = None
        self._unfolded: set[BoardFold] = set()
        self._shown_word: str | None = None

    @property
    def open_word(self) -> str | None:
        """Return what enter does on the line under the cursor, as the footer says it; None where it explains."""
        fold = self.chosen_fold
        if fold is BoardFold.NUMBERS:
            return "All numbers"
        return None if fold is None else "Fold" if fold in self._unfolded else "Unfold"

    @property
    def open_step(self) -> str:
        """Return what enter does on the line under the cursor, with the act in braces; empty without lines."""
        entry = self._current_entry
        if isinstance(entry, BoardFold):
            does = "shows" if entry is BoardFold.NUMBERS else "folds" if entry in self._unfolded else "lists"
            return f"{{open}} {does} {FOLD_TEXTS[entry]}"
        if isinstance(entry, Verdict):
            return "{open} explains this number" + ("" if entry.outcome == "met" else " and what to change")
        return "" if entry is None else f"{{open}} {FINDING_STEPS.get(entry.status, 'says what was looked at')}"

    def show_board(
        self,
        verdicts: Sequence[Verdict],
        width: int,
        records: int | None = None,
        numbers: int = 0,
        none: str = "",
        gate: GateLines | None = None,
    ) -> None:
        """Show findings and verdicts in ``width`` cells.

        records: number of confidential records
        numbers: number of lines of the run's numbers
        none: why there are no verdicts
        gate: what is shown of the gate

        The cursor stays on its line if that still exists, and on the first line if it was there.
        """
        before, chosen = self._last_entry, self._current_entry
        self._verdicts, self._width, self._records, self._numbers = verdicts, width, records, numbers
        self._none, self._gate = none, gate or GateLines()
        self._entries = self._list_entries()
        # A cursor on the first line has not been moved by the user, so it stays first when lines are added above.
        if self._at and chosen in self._entries:
            self._at = self._entries.index(chosen)
        self._at = max(0, min(self._at, self._last_entry))
        if before < 0 <= self._last_entry:
            self.call_after_refresh(self.refresh_bindings)
        self._paint_board()

    def on_resize(self) -> None:
        """List what there is room for in the new height."""
        if self._last_entry >= 0:
            chosen = self._current_entry
            self._entries = self._list_entries()
            self._at = self._entries.index(chosen) if self._at and chosen in self._entries else 0
            self._paint_board()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Light the line under the cursor only as long as the keys are the board's."""
        super().watch_has_focus(has_focus)
        if self._last_entry >= 0:
            self._paint_board()

    def _list_entries(self) -> list[Entry]:
        """Return the entries that the cursor can be on, in their order."""
        listed = sort_by_harm(self._gate.findings, self._verdicts, self._records, self._gate.waived)
        ranks = [harm_rank(one, self._gate.waived) for one in listed]
        entries: list[Entry] = [one for one, rank in zip(listed, ranks, strict=True) if rank < PASSES]
        passing = [one for one, rank in zip(listed, ranks, strict=True) if rank == PASSES]
        if passing:
            entries.append(BoardFold.PASSES)
            # Where nothing is open, the limits are what there is to read.
            met = [one for one in passing if isinstance(one, Verdict)] if len(entries) == 1 else []
            entries += passing if BoardFold.PASSES in self._unfolded else met
        others = [one for one, rank in zip(listed, ranks, strict=True) if rank > PASSES]
        if others:
            entries += [BoardFold.OTHERS, *(others if BoardFold.OTHERS in self._unfolded else [])]
        return entries + ([BoardFold.NUMBERS] if self._numbers else [])

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
        self._verdicts, self._entries, self._numbers, self._gate = (), (), 0, GateLines()
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
        if at == 0 and self._rows[0] < self.scrollable_content_region.height:  # above the first line stand the heads
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
        """Explain the line under the cursor, show all numbers, or unfold or fold what passes or does not apply."""
        entry = self._current_entry
        if entry is BoardFold.NUMBERS:
            self.post_message(self.NumbersSelected())
        elif isinstance(entry, BoardFold):
            self._unfolded ^= {entry}
            self._entries = self._list_entries()
            self._at = self._entries.index(entry)
            self._paint_board()
            self.scroll_to_region(Region(0, self._rows[self._at], 1, 1), animate=False)
        elif isinstance(entry, Verdict):
            self.post_message(self.VerdictSelected(entry))
        elif entry is not None:
            self.post_message(self.FindingSelected(entry))

    @property
    def chosen_verdict(self) -> Verdict | None:
        """Return the verdict under the cursor; None on another line."""
        return self._current_entry if isinstance(self._current_entry, Verdict) else None

    @property
    def chosen_fold(self) -> BoardFold | None:
        """Return the line under the cursor that stands for folded ones; None on another line."""
        return self._current_entry if isinstance(self._current_entry, BoardFold) else None

    @property
    def fold_paragraphs(self) -> tuple[str, ...]:
        """Return what the line under the cursor stands for: its titles in words, and what ``enter`` does."""
        fold = self.chosen_fold
        if fold is None:
            return ()
        rank = {BoardFold.PASSES: PASSES, BoardFold.OTHERS: DOES_NOT_APPLY}.get(fold)
        titles = [replace_unprintable(one.title) for one in self._gate.findings if harm_rank(one) == rank]
        said = f"{self.open_step.replace('{open}', 'enter')}."
        return (self._fold_line(fold), "", *titles, *([""] if titles else []), said)

    @property
    def chosen_finding(self) -> Finding | None:
        """Return the finding of the gate under the cursor; None on another line."""
        return None if isinstance(self._current_entry, (Verdict, BoardFold)) else self._current_entry

    def _paint_board(self) -> None:
        """Write all lines of the board and mark the one under the cursor."""
        self.post_message(self.BoardCursorMoved())
        if self.open_word != self._shown_word:
            self._shown_word = self.open_word
            self.refresh_bindings()
        shown, self._rows = self._list_lines(self.size.height)
        if self._rows:
            at = self._rows[self._at]
            line = Content.assemble(shown[at])
            # Faint parts, such as the track of a gauge, would be grey blocks when they are reversed.
            strong = Content(line.plain, [span for span in line.spans if span.style != FAINT])
            shown[at] = strong.stylize("reverse") if self.has_focus else line.stylize("bold underline")
        self.show_text(Content("\n").join([line if isinstance(line, Content) else Content(line) for line in shown]))

    def count_needed_lines(self) -> int:
        """Return how many lines the list needs to tell every entry whole."""
        # Entries are listed anew whenever what they are drawn from changes, and stay while the cursor moves.
        if self._needed[0] is not self._entries:
            self._needed = self._entries, len(self._list_lines(AMPLE)[0])
        return self._needed[1]

    def _list_lines(self, height: int) -> tuple[list[Content | str], list[int]]:
        """Return all lines of the board for a ``height``, and the first line of each entry."""
        shown: list[Content | str] = []
        has_none = bool(self._none) and not self._verdicts
        listed = [one for one in self._entries if not isinstance(one, BoardFold)]
        heads, lines = harm_lines(
            listed,
            self._width,
            self._records,
            people=None if self._gate.answer is None else int(self._gate.answer.records),
            witnesses=self._gate.witnesses,
            waived=self._gate.waived,
            safe=self._gate.is_safe,
            height=height - (len(self._entries) - len(listed)) - 2 * has_none - (height >= LEAST_LINES),
        )
        if listed:
            shown.append(heads)
        texts, rows = iter(lines), list[int]()
        for entry in self._entries:
            # A blank line sets apart what is open from what is folded, where there is room.
            if entry is BoardFold.NUMBERS and has_none:
                shown += ["", self._none]
            if entry is BoardFold.NUMBERS and height >= LEAST_LINES:
                shown.append("")
            rows.append(len(shown))
            shown += [self._fold_line(entry)] if isinstance(entry, BoardFold) else next(texts).split("\n")
        if has_none and not self._numbers:
            shown += ["", self._none]
        return shown, rows

    def _fold_line(self, fold: BoardFold) -> str:
        """Return the line that stands for folded ones."""
        if fold is BoardFold.PASSES:
            return f"{sign_for('into')} {passes_text(self._gate.findings, self._verdicts)}"
        if fold is BoardFold.OTHERS:
            return f"{sign_for('into')} {not_applying_text(self._gate.findings)}"
        return f"{sign_for('into')} all {count_noun(self._numbers, 'number')} of the run"
