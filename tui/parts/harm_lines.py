"""Lines of the list of findings and limits: state, name, what was found, gauge and limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose
from typing import TYPE_CHECKING, Literal, TypeAlias

from rich.cells import cell_len
from textual.content import Content

from sfumato.engine.methods.labels import labels_of
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import format_percent
from sfumato.tui.terminal.text import cut_text, fit_text
from sfumato.workspace.reporting.findings import (
    BEYOND,
    SHARE,
    brief_message,
    compact_finding_cells,
    compared_text,
    finding_limit_text,
    scale_name,
    scaled_text,
    state_text,
)
from sfumato.workspace.reporting.harm import BRIEFLY_NOT_ENOUGH, DECIDES, NOT_ENOUGH
from sfumato.workspace.reporting.words import (
    brief_limit_text,
    brief_observed_text,
    limit_text,
    observed_text,
    outcome_text,
    shorten_names,
)
from sfumato.workspace.visible_text import replace_unprintable

from ..widgets.facts import wrap_text
from .gate_lines import ALSO_SEEN, INKS, title_with_witnesses
from .gauges import GAUGE, STYLES, draw_range, draw_share

if TYPE_CHECKING:
    from sfumato.workspace.gate.gate import Finding

    HarmEntry: TypeAlias = "Finding | Verdict"

GAP = "  "
FOUND = "found"
LEAST_NAME = 12
LEAST_TOLD = 6
"""Number of the layouts that show what was found, with its share of the people, and its limit."""
HIGH = 14
"""Lines of a list from which on titles are whole though its last lines have to be scrolled to."""
MOST_VALUE = 30
MOST_LIMIT = 34
BRIEFEST = 5
"""Place of the last of these, with the shortest words."""
MOST_LONG = 0.34
"""Largest share of the names that may have lines of their own."""
FEW_LONG = 2
"""Number of names that may have them however short the list is."""
MOST_OF_NOTE = 3
"""Lines at most of a sentence below what is open; the explanation beside the list says more."""
SAME_NOTE = "For the same reason."
ALIKE = 0.02
"""Largest relative difference of shares that a reader takes for one."""
WAIVED = "waived"
STATE_WORDS = {
    "to be judged": "judge",
    "not checked": "unchecked",
    "does not apply": "n/a",
    "not met": "unmet",
    "not computed": "missing",
}
"""The one word of a state in the list, by its words elsewhere."""
PROBABILITY = "probability"
BRIEF_SCALES = {PROBABILITY: "chance"}
"""The short word of a scale that has to be named in a narrow list, too."""
LIMIT, GATE_LIMIT = "limit", "gate's limit"
"""Head of the limits, and of limits none of which is one of the plan."""
BEYOND_CHANCE = "beyond chance"
"""What has been taken off a number of people."""
NO_GAUGE = Content(" " * GAUGE)


def fit_harm_counts(told: str, room: int) -> str:
    """Return the counts of a list of findings in at most ``room`` cells, the least harmful left out where it is too narrow."""
    # The words between the numbers yield before a number does. Limits that are met never stand without the words that they
    # are not enough: a reader would take them for the answer.
    for words, briefly in ((DECIDES, ""), (NOT_ENOUGH, BRIEFLY_NOT_ENOUGH)):
        told = told if cell_len(told) <= room else told.replace(words, briefly)
    parts = told.split(" · ")
    while len(parts) > 1 and cell_len(" · ".join(parts)) > room:
        parts.pop()
    return " · ".join(parts)


@dataclass(frozen=True)
class _Cells:
    """Cells of an entry.

    state, ink: state with its sign, and its style
    name: name in words
    value, brief_value: what was found, in full and short
    limit, brief_limit: limit, in full and short
    gauge: gauge; blank without a limit to draw
    note: what was found, in a sentence
    is_finding: whether it is a finding of the gate and not a limit
    """

    state: str
    ink: str
    name: str
    value: str
    brief_value: str
    limit: str
    brief_limit: str
    gauge: Content
    note: str
    is_finding: bool


def harm_lines(
    entries: Sequence[HarmEntry],
    width: int,
    records: int | None = None,
    *,
    people: int | None = None,
    witnesses: Mapping[str, Sequence[Finding]],
    waived: frozenset[str] = frozenset(),
    safe: bool = False,
    height: int = 0,
) -> tuple[Content, list[Content]]:
    """Return the heads of the columns, and for each entry its line of ``width`` cells, or two lines where there is room.

    In a narrow list the gauge is left out, then words are shortened, then shares of the people, what was found and the
    limit are left out. A name uses the cells of empty columns beside it. Limits that are met are green only with
    ``safe``. Within ``height`` lines, if all entries fit, a name that would be cut goes on in a second line, and a whole
    sentence stands below what is open, in up to ``MOST_OF_NOTE`` lines.

    records: number of confidential records
    people: number of people whom findings count, units where the records are theirs; by default the records
    """
    cells = _entry_cells(entries, records, records if people is None else people, witnesses, waived, safe=safe)
    state = max((cell_len(one.state) for one in cells), default=0)
    inner = max(1, width - state - len(GAP))
    layout = _choose_layout(cells, inner, height - 1)
    layout = replace(layout, are_of_gate=all(one.is_finding for one in cells if one.limit))
    names = _short_names(cells, layout.room)
    # A name that would be cut has a second line, where all of them can have one.
    is_tall = _has_lines_for(cells, layout, height - 1)
    n_lines = len(cells) + is_tall * layout.count_long_names(cells)
    notes = _note_lines([one.note for one in cells], inner, min(height - 1 - n_lines, height), MOST_OF_NOTE)
    lines = []
    for place, one in enumerate(cells):
        start, blank = Content.assemble((fit_text(one.state, state), one.ink), GAP), " " * (state + len(GAP))
        if is_tall and not layout.has_room_for(place, one.name):
            # The numbers of all entries stand in the line of their state.
            first, second = _two_lines_of_name(one.name, layout.room_for(place), inner)
            line = Content.assemble(start, layout.line_text(place, first, first))
            line = Content.assemble(line, "\n", blank, second) if second else line
        else:
            line = Content.assemble(start, layout.line_text(place, one.name, names[one.name]))
        for told in notes[place]:
            line = Content.assemble(line, "\n", blank, (told, "$text-muted"))
        lines.append(line)
    heads = fit_text(f"{fit_text('state', state)}{GAP}{layout.heads_text()}", width)
    return Content.styled(heads, "$text-muted"), lines


@dataclass(frozen=True)
class _Layout:
    """Layout of the columns beside the names.

    room: cells of a name
    values, gauges, limits: columns, each of one width; empty where left out
    are_of_gate: whether none of the limits is one of the plan
    """

    room: int
    values: Sequence[str]
    gauges: Sequence[Content]
    limits: Sequence[str]
    are_of_gate: bool = False

    @property
    def _columns(self) -> list[tuple[str, Sequence[str | Content]]]:
        """Return the columns that are shown, with their heads."""
        columns: list[tuple[str, Sequence[str | Content]]] = [
            (FOUND, self.values),
            ("", self.gauges),
            (LIMIT, self.limits),
        ]
        return [(head, cells) for head, cells in columns if any(str(one).strip() for one in cells)]

    def room_for(self, place: int) -> int:
        """Return the cells of an entry's name: those of its column, and of blank columns beside it."""
        room = self.room
        for _, cells in self._columns:
            if str(cells[place]).strip():
                break
            room += len(GAP) + cell_len(str(cells[place]))
        return room

    def has_room_for(self, place: int, name: str) -> bool:
        """Return whether an entry's line has room for its whole name."""
        return cell_len(name) <= self.room_for(place)

    def count_long_names(self, cells: Sequence[_Cells]) -> int:
        """Return how many names their lines have no room for."""
        return sum(not self.has_room_for(place, one.name) for place, one in enumerate(cells))

    def line_text(self, place: int, name: str, short: str) -> Content:
        """Return an entry's name, or its short form, and its columns in one line."""
        room, columns = self.room, [cells[place] for _, cells in self._columns]
        while columns and cell_len(name) > room and not str(columns[0]).strip():
            room += len(GAP) + cell_len(str(columns.pop(0)))
        if cell_len(name) > room:
            name = short if room == self.room else cut_text(name.partition(ALSO_SEEN)[0], room)
        return Content.assemble(fit_text(name, room), *(part for cell in columns for part in (GAP, cell)))

    def heads_text(self) -> str:
        """Return the heads of the columns."""
        heads = []
        for head, cells in self._columns:
            width = cell_len(str(cells[0]))
            told = GATE_LIMIT if head == LIMIT and self.are_of_gate and cell_len(GATE_LIMIT) <= width else head
            heads.append(fit_text(told, width, "right" if head == FOUND else "left"))
        return GAP.join([fit_text("what", self.room), *heads])


def _two_lines_of_name(name: str, room: int, inner: int) -> tuple[str, str]:
    """Return a long name in two lines, the first of ``room`` cells beside the numbers, the second of ``inner`` cells.

    How many others see the same is said where there is room; it alone has no line of its own.
    """
    if cell_len(name.partition(ALSO_SEEN)[0]) <= room:
        return name.partition(ALSO_SEEN)[0], ""
    for told in (name, name.partition(ALSO_SEEN)[0]):
        first = wrap_text(told, room, "", "")[0]
        rest = told[len(first) :].strip()
        if cell_len(rest) <= inner:
            break
    return first, cut_text(rest, inner)


def _note_lines(notes: Sequence[str], width: int, room: int, most: int) -> list[list[str]]:
    """Return the lines of each note, the first first: all of them, or none where they are more than ``most``, or than is
    left of ``room`` lines. A note that repeats the one before it says only that.
    """
    shown, before = list[list[str]](), ""
    for note in notes:
        told = SAME_NOTE if note and note == before else note
        lines = wrap_text(told, width, "", "") if told else []
        # A sentence that is cut says less than none: the explanation has it.
        lines = lines if len(lines) <= min(most, room) else []
        # What is not shown is no reason that another line can name.
        room, before = room - len(lines), note if lines else ""
        shown.append(lines)
    return shown


def _short_names(cells: Sequence[_Cells], room: int) -> dict[str, str]:
    """Return names in ``room`` cells by name: those of limits differ however short, and a title says how many others
    see the same only where it is whole.
    """
    short = shorten_names(list(dict.fromkeys(one.name for one in cells if not one.is_finding)), room)
    for one in cells:
        if one.is_finding:
            is_whole = cell_len(one.name) <= room
            short[one.name] = one.name if is_whole else cut_text(one.name.partition(ALSO_SEEN)[0], room)
    return dict(short)


def _choose_layout(cells: Sequence[_Cells], width: int, height: int) -> _Layout:
    """Return the richest layout in which all names fit, else the richest that has ``height`` lines for long names to stand
    in two, else one in brief words.
    """
    values, briefer = (
        _aligned_cells(one, MOST_VALUE, least=len(FOUND))
        for one in ([c.value for c in cells], [c.brief_value for c in cells])
    )
    limits, least = (
        _aligned_cells(one, MOST_LIMIT, "left") for one in ([c.limit for c in cells], [c.brief_limit for c in cells])
    )
    bare = _aligned_cells([c.brief_value.partition(" (")[0] for c in cells], MOST_VALUE, least=len(FOUND))
    gauges = [one.gauge for one in cells]
    choices: list[tuple[Sequence[str], Sequence[Content], Sequence[str]]] = [
        (values, gauges, limits), (values, gauges, least), (briefer, gauges, least), (values, (), limits), (values, (), least),
        (briefer, (), least), (bare, (), least), ((), (), least), ((), (), ()),
    ]  # fmt: skip
    layouts = [
        _Layout(width - sum(len(GAP) + cell_len(str(one[0])) for one in choice if _is_filled(one)), *choice)
        for choice in choices
    ]
    told = [one for one in layouts[:LEAST_TOLD] if one.room >= LEAST_NAME]
    # A name in its line reads better than a gauge below it.
    fitting = [one for one in told if not one.count_long_names(cells)]
    tall = [one for one in told if _has_lines_for(cells, one, height)]
    fitting += sorted(tall, key=lambda one: one.count_long_names(cells))
    brief = [one for one in layouts[BRIEFEST:] if one.room >= LEAST_NAME]
    # A title that is whole says more than the share of the people, which the answer above has.
    whole = [one for one in brief if _is_filled(one.values) and not one.count_long_names(cells)]
    return next(iter([*fitting, *whole, *brief]), _Layout(max(1, width), (), (), ()))


def _has_lines_for(cells: Sequence[_Cells], layout: _Layout, height: int) -> bool:
    """Return whether ``height`` lines are enough for long names to stand in lines of their own, and these are few."""
    n_long = layout.count_long_names(cells)
    # In a high list a title is whole, and what passes is scrolled to.
    has_lines = len(cells) + n_long <= height or height >= HIGH
    return has_lines and n_long <= max(FEW_LONG, MOST_LONG * len(cells))


def _is_filled(column: Sequence[str | Content]) -> bool:
    """Return whether a column has something to show."""
    return any(str(one).strip() for one in column)


def _aligned_cells(
    texts: Sequence[str], most: int, side: Literal["left", "right"] = "right", least: int = 0
) -> list[str]:
    """Return texts of one width, cut if they are very long; blanks of no width where all are empty."""
    widest = max(map(cell_len, texts), default=0)
    width = min(max(widest, least if widest else 0), most)
    return [fit_text(one, width, side) for one in texts]


def _entry_cells(
    entries: Sequence[HarmEntry],
    records: int | None,
    people: int | None,
    witnesses: Mapping[str, Sequence[Finding]],
    waived: frozenset[str],
    *,
    safe: bool,
) -> list[_Cells]:
    """Return the cells of all entries."""
    verdicts = [one for one in entries if isinstance(one, Verdict)]
    labels = dict(zip(map(id, verdicts), labels_of(verdicts), strict=True))
    return [
        _verdict_cells(one, labels[id(one)], records, safe=safe)
        if isinstance(one, Verdict)
        else _finding_cells(one, witnesses.get(one.check, ()), one.check in waived, people)
        for one in entries
    ]


def _finding_cells(finding: Finding, witnesses: Sequence[Finding], is_waived: bool, people: int | None) -> _Cells:
    """Return the cells of a finding."""
    is_open = finding.applies and finding.status != "pass"
    value, brief = compared_text(finding), compact_finding_cells(finding)["compared_value"]
    limit, brief_limit = finding_limit_text(finding), compact_finding_cells(finding)["limit"]
    if finding.people and is_open:
        if finding.limit is not None and not _is_number_of_people(finding, people):
            # The limit is of another number than these people, which stands beside it.
            most = brief_limit.partition(" ")[2]
            if scale_name(finding.unit) == PROBABILITY and isclose(
                finding.compared_value or 0.0, finding.limit, rel_tol=1e-9
            ):
                # the gate counts those above its limit, and the number itself says no more
                brief_limit = f"none above {most}"
                limit = brief_limit
            else:
                limit = f"{scaled_text(brief, finding.unit)}, limit {most}"
                # without its name a probability beside people reads like their share
                named = f"{BRIEF_SCALES.get(scale_name(finding.unit), '')} {brief}".lstrip()
                brief_limit = f"{named}, limit {most}"
        value = brief = f"{finding.people:,}"
        if BEYOND in finding.unit:
            limit, brief_limit = _limit_beyond_chance(limit), _limit_beyond_chance(brief_limit)
        if people and finding.people <= people:
            share = format_percent(finding.people / people)
            value, brief = f"{value} of {people:,} ({share})", f"{value} ({share})"
    # A check that was not made has no limit here: there is nothing to compare.
    is_measured = finding.compared_value is not None
    ink = "$text-muted" if is_waived else INKS[finding.status] if finding.applies else "$text-muted"
    return _Cells(
        WAIVED if is_waived else _brief_state(state_text(finding)),
        ink,
        title_with_witnesses(finding, witnesses),
        replace_unprintable(value if is_measured else ""),
        replace_unprintable(brief if is_measured else ""),
        replace_unprintable(limit if is_measured else ""),
        replace_unprintable(brief_limit if is_measured else ""),
        _finding_gauge(finding, people, ink) if is_measured and is_open else NO_GAUGE,
        replace_unprintable(brief_message(finding.message)) if is_open else "",
        True,
    )


def _finding_gauge(finding: Finding, people: int | None, ink: str) -> Content:
    """Return the gauge of a finding; a limit of 0, which nothing is twice of, stands on a gauge of all people."""
    value, limit = finding.compared_value or 0.0, finding.limit
    if limit == 0 and finding.people:
        whole = 1.0 if finding.unit.startswith(SHARE) else float(people or 0)
        return draw_share(value, whole, limit, ink) if value <= whole else NO_GAUGE
    return draw_range(finding.compared_value, limit or 0.0, ink)


def _limit_beyond_chance(limit: str) -> str:
    """Return a limit on people with what has been taken off in place of what they are: ``at most 4 beyond chance``."""
    words = limit.split()
    at = next((at for at, word in enumerate(words) if word[:1].isdigit()), len(words) - 1)
    return f"{' '.join(words[: at + 1])} {BEYOND_CHANCE}".strip()


def _is_number_of_people(finding: Finding, people: int | None) -> bool:
    """Return whether the number that is compared with the limit is that of the people whom a finding is about."""
    compared_value = finding.compared_value or 0.0
    if finding.unit.startswith(SHARE):
        return people is not None and isclose((finding.people or 0) / people, compared_value, rel_tol=ALIKE)
    # Of people beyond chance the finding has a whole number.
    return BEYOND in finding.unit or compared_value == finding.people


def finding_row_cells(finding: Finding, *, is_waived: bool, people: int | None) -> dict[str, str]:
    """Return the cells of a finding in the same words as in the list, in short: state, what, found and limit.

    How many others see the same is said by its explanation: a list of short lines would cut it.
    """
    cells = _finding_cells(finding, (), is_waived, people)
    # A number that counts nothing has no meaning without its scale, and the limit beside it may have no room.
    scale = "" if finding.people else scale_name(finding.unit)
    found = f"{BRIEF_SCALES.get(scale, scale)} {cells.brief_value}".strip() if cells.brief_value else ""
    return {"state": cells.state, "what": cells.name, FOUND: found, "limit": cells.brief_limit}


def _brief_state(state: str) -> str:
    """Return a state with its sign and one word: ``! judge`` for ``! to be judged``."""
    sign, _, words = state.partition(" ")
    return f"{sign} {STATE_WORDS.get(words, words)}"


def _verdict_cells(verdict: Verdict, label: str, records: int | None, *, safe: bool) -> _Cells:
    """Return the cells of a verdict."""
    ink = "$success bold" if safe and verdict.outcome == "met" else STYLES[verdict.outcome]
    limit = limit_text(verdict.bound, verdict.limit, verdict.value)
    return _Cells(
        _brief_state(outcome_text(verdict.outcome)),
        ink,
        replace_unprintable(label),
        observed_text(verdict, records).removesuffix(" of the people"),
        brief_observed_text(verdict),
        limit,
        brief_limit_text(limit),
        draw_range(verdict.observed, verdict.limit, ink, verdict.lower, verdict.upper),
        replace_unprintable(brief_message(verdict.reason)) if verdict.outcome != "met" else "",
        False,
    )
