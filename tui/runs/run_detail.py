"""Text about a run: in brief below the list of runs, with meters of its numbers, and in full beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from sfumato.engine.methods.labels import label_by_key, labels_of
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.outcomes import worst_outcome
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun
from sfumato.tui.terminal.text import cut_text, fit_text
from sfumato.tui.widgets.facts import INDENT, ONE_COLUMN, run_in_lines, wrap_text
from sfumato.workspace.reporting.numbers import section_place, section_title
from sfumato.workspace.reporting.plan_steps import Facts
from sfumato.workspace.reporting.results import TableContext, result_table
from sfumato.workspace.reporting.tables import DisplayTable, format_table, full_cell_text
from sfumato.workspace.reporting.words import (
    CONFIDENTIAL_VALUE,
    PUBLIC_KEY,
    SettingsByMethod,
    brief_limit_text,
    brief_value_text,
    duration_text,
    holdout_text,
    limit_text,
    observed_text,
    sign_for,
)
from sfumato.workspace.views.run_detail import RunDetail, TaskPhase
from sfumato.workspace.visible_text import replace_unprintable

from .run_meters import (
    FEW_METERS,
    MOST_METERS,
    ROOM_FOR_MOST,
    MeterContext,
    choose_metered,
    limits_tally,
    meter_lines,
    other_metered,
    sort_verdicts,
)
from .run_numbers import ROOM_FOR_DATA, number_list
from .run_tasks import NamedTask, task_lines

if TYPE_CHECKING:
    from sfumato.workspace.views.run_changes import RunChanges

MOST_CHANGES, MOST_CHANGE_LINES, MOST_NUMBERS, LEAST_CHANGE_LINES = 4, 8, 6, 3
"""Most changes of the plan, lines of changes, and numbers that are shown below the list of runs, and the least lines."""
MOST_UNMET = 3
NAME, LABEL = 10, 16
"""Cells of the column of names beside the list, and of that below it, which the gate's answer has too."""
LEAST_NUMBER, BESIDE = 6, 30
"""Cells left of the values below which they have no columns, and from which long names stay left of them."""
LEAST_TABLE = 76
"""Width in cells below which numbers are sentences: a table would break their names."""
ROOM_FOR_TIME = 16
"""Lines from which the time stands below the limits, apart from them."""
LEAST_LIST = 34
"""Width in cells from which the numbers that say most have columns."""
BY_UNIT, UNITS = "by unit", " units"
"""Words for numbers of units, which are left out where a line is of units alone."""
NUMBERS = ("measure", "variable", "confidential", "release")
NUMBERS_OF_RELEASE = tuple(title for title in NUMBERS if title != "confidential")

StyledLines = list[tuple[str, str, str]]
"""Lines as (name, text, style); the name is empty below the first line of a name."""


@dataclass(frozen=True)
class RunBrief:
    """Run in brief.

    detail: its data, tasks and unmet limits
    changes: what changed since the run before it; None for the first run of a project
    plan: its plan in a few words
    verdicts: the verdicts on its limits
    named: tasks that are computed now, or took longest
    """

    detail: RunDetail
    changes: RunChanges | None
    plan: Facts
    verdicts: Sequence[Verdict] = ()
    named: Sequence[NamedTask] = ()


def brief_run_text(
    brief: RunBrief,
    gate: Sequence[Content],
    width: int,
    room: int,
    *,
    context: MeterContext | None = None,
    beside: bool = False,
) -> Content:
    """Return the gate's answer, meters of the run's numbers, what differs from the run before, and the run itself.

    gate: lines of the gate's answer
    context: what the meters need of the run
    width: cells of a line
    room: greatest number of lines
    beside: whether the run is shown in full elsewhere, so that its tasks are shown in place of the run itself
    """
    detail, changes = brief.detail, brief.changes
    own = _run_lines(detail)
    metered = choose_metered(brief.verdicts, MOST_METERS if room >= ROOM_FOR_MOST else FEW_METERS)
    unmet = [
        (_verdict_text(one, name), _outcome_style(one.outcome))
        for one, name in zip(detail.unmet_verdicts, detail.verdict_names, strict=True)
        if one not in metered
    ]
    said = _first_lines("not met", unmet, MOST_UNMET)
    levers = dict.fromkeys(lever for one in detail.unmet_verdicts for lever in label_by_key(one.value).levers)
    # In few lines the run itself says more than the second way to mend it.
    shown = list(levers)[: None if room >= ROOM_FOR_MOST else 1]
    said += _first_lines("what to change", [(lever, "") for lever in shown], MOST_UNMET)
    plan = [(name, line, "") for name, line in brief.plan]
    tasks = (
        partial(task_lines, detail.phases, brief.named, LABEL, width) if beside else partial(_named_content, own, width)
    )

    def lay_out(shown: Sequence[Verdict]) -> list[Content]:
        """Return the lines with meters of these verdicts."""
        lines = list(gate)
        # The plan is the least urgent part, so it comes only if there is room left.
        for lines_in in (
            partial(_meter_content, brief.verdicts, shown, context or MeterContext(detail.records), width),
            partial(_named_content, said, width),
            partial(_change_content, changes, width),
            tasks,
            partial(_named_content, plan, width),
        ):
            if part := lines_in(room - len(lines) - bool(lines)):
                lines += [*([Content("")] if lines else []), *part]
        return lines

    lines = lay_out(metered)
    # What is left shows the other limits, which one line of their measure stands for.
    if more := other_metered(brief.verdicts, metered, room - len(lines)):
        lines = lay_out([*metered, *more])
    return Content("\n").join(lines[:room])


def _meter_content(
    verdicts: Sequence[Verdict], metered: Sequence[Verdict], context: MeterContext, width: int, room: int
) -> list[Content]:
    """Return how many limits are met, and meters of the numbers that say most, in at most ``room`` lines."""
    shown, lines = metered, meter_lines(metered, context, width)
    # A meter is whole or left out.
    while shown and len(lines) + 1 > room:
        shown = shown[:-1]
        lines = meter_lines(shown, context, width)
    if verdicts:
        worst = worst_outcome(one.outcome for one in verdicts)
        tally, ink = limits_tally(verdicts, ""), f"bold {_outcome_style(worst)}".strip()
        more, key = len(verdicts) - len(shown), f" ({context.place_key})" if context.place_key else ""
        others = f"; {count_noun(more, 'more limit')} in Findings{key}" if shown and more else ""
        others = others if cell_len(tally + others) <= width - LABEL else ""
        head = Content.assemble((fit_text("Limits", LABEL), "$text-muted"), (tally, ink), (others, "$text-muted"))
        lines.insert(0, head)
    if context.time_text:
        # It has no limit, so it stands apart from those that have one.
        apart = [Content("")] if lines else []
        # In few lines, where limits stand, the header of the page has it.
        if len(lines) + len(apart) < room and (not lines or room >= ROOM_FOR_TIME):
            lines += [*apart, Content.assemble((fit_text("Time", LABEL), "$text-muted"), context.time_text)]
    return lines[: max(0, room)]


def _named_content(said: StyledLines, width: int, room: int) -> list[Content]:
    """Return named lines in at most ``room`` lines: each has one, and the first ones more while there is room."""
    text_width, said = max(20, width - LABEL), said[: max(0, room)]
    spare = room - len(said)
    lines: StyledLines = []
    for name, text, style in said:
        broken = wrap_text(text, text_width) or [""]
        if len(broken) - 1 > spare:
            broken = [cut_text(replace_unprintable(text), text_width)]
        spare -= len(broken) - 1
        lines += [("" if at else name, line, style) for at, line in enumerate(broken)]
    # The labels stand below those of the gate's answer and look like them.
    return [
        Content.assemble((fit_text(f"{name[:1].upper()}{name[1:]}", LABEL), "$text-muted"), (line, style))
        for name, line, style in lines
    ]


def _change_content(changes: RunChanges | None, width: int, room: int) -> list[Content]:
    """Return what differs from the run before in at most ``room`` lines: the plan in words, and the numbers that
    changed most.
    """
    if changes is None or room < LEAST_CHANGE_LINES:
        return []
    before = changes.previous_run_id
    lines = [Content.styled(f"What differs from run {before}", "bold")]
    plan = [(line, "") for line in changes.plan_lines] or [(f"the same as that of run {before}", "$text-muted")]
    said = [*_first_lines("plan", plan, MOST_CHANGES), ("numbers", changes.numbers_text, "$text-muted")]
    lines += _named_content(said, width, min(MOST_CHANGE_LINES, room - 1))
    # Half of the room that is left is for the run itself.
    most = min(MOST_NUMBERS, (room - len(lines)) // 2)
    if changes.changed and most > 0:
        table = format_table(changes.numbers_table(most, width - len(INDENT)), width - len(INDENT))
        rows = [line for line in table.splitlines() if not line.startswith("--")]
        lines += [Content.styled(f"{INDENT}{line}", "" if at else "$text-muted") for at, line in enumerate(rows)]
    return lines


@dataclass(frozen=True)
class FullRunDetail:
    """Run in full: its brief, all its verdicts, and the rows of the first of its numbers.

    detail: the brief
    state_words: state of the run
    verdicts: its verdicts
    rows: its first rows of results
    apart: settings that differ between uses of a method
    state_facts: its state by name
    place_key: key of the place that has all numbers
    """

    detail: RunDetail
    state_words: str
    verdicts: Sequence[Verdict]
    rows: Sequence[Row]
    apart: SettingsByMethod
    state_facts: Sequence[tuple[str, str]] = ()
    place_key: str = ""

    def to_lines(self, width: int) -> Content:
        """Return all of it in lines of ``width`` cells: the run, its limits in a line where all are met, else in a table
        with the unmet ones first, and its numbers; in few cells those that count people.
        """
        if LEAST_LIST <= width < LEAST_TABLE and self.rows:
            return Content("\n").join(self._brief_lines(width))
        run, *others = _run_lines(self.detail)
        phases = [(", ".join(map(_phase_text, self.detail.phases)), "")] if self.detail.phases else []
        are_met = bool(self.verdicts) and all(one.outcome == "met" for one in self.verdicts)
        met = [(f"{sign_for('met')} {limits_tally(self.verdicts)}", "")] if are_met else []
        said = [run, ("now", self.state_words, ""), *_first_lines("limits", met, 1), *others]
        lines = _fact_lines(said, width)
        # What a phase took comes after the numbers, which are read more often.
        last = _fact_lines(_first_lines("by phase", phases, 1), width)
        below = [Content(""), *last] if last else []
        if self.verdicts and not are_met:
            lines += [Content(""), *_limit_lines(sort_verdicts(self.verdicts), self.detail.records, width)]
        context = TableContext(self.apart, records=self.detail.records, keys=True)
        # People first, as in Numbers: whom a release exposes decides before what it says of values.
        rows = sorted(_units_first(self.rows), key=lambda row: section_place(section_title(row.key)))
        table = result_table(rows, context)
        if self.rows and width < LEAST_TABLE:
            numbers_of_run = _number_lines(table, width)
            return Content("\n").join([*lines, Content(""), *numbers_of_run, *below])
        numbers = ""
        # Where even folded names leave too little room, the release alone is shown.
        for titles in (NUMBERS, NUMBERS_OF_RELEASE):
            shown = table.select_columns([i for i, one in enumerate(table.columns) if one.title in titles])
            numbers = format_table(shown, width)
            if max(map(cell_len, numbers.splitlines()), default=0) <= width:
                break
        told = [Content(""), *map(Content, numbers.splitlines())] if self.rows else []
        return Content("\n").join([*lines, *told, *below])

    def _brief_lines(self, width: int) -> list[Content]:
        """Return the run in short facts, its limits that are not met, and the numbers that say most, in columns."""
        detail = self.detail
        own = [f"{detail.m}, " if detail.m is not None else "", f"seed {detail.seed}"]
        met = [(f"{sign_for('met')} {limits_tally(self.verdicts, '')}", "")] if self._are_met else []
        facts = [
            ("run", f"{detail.run_id}{f' {detail.name}' if detail.name else ''}", ""),
            *((name, text, "") for name, text in self.state_facts or [("state", self.state_words)]),
            ("data", detail.dataset_name, ""),
            ("records", f"{detail.records:,}", ""),
            *([("held out", f"{detail.n_controls:,}, for attacks", "")] if detail.n_controls else []),
            ("datasets" if detail.m is not None else "drawing", "".join(own), ""),
            *([("key", PUBLIC_KEY, "$warning")] if detail.key_public else []),
            *_first_lines("limits", met, 1),
            # Its first line is the run itself, which the facts above have.
            *(one for one in _run_lines(detail)[1:] if one[0] not in ("controls", "tasks")),
            *_first_lines("tasks", [(_tasks_text(detail.phases, is_brief=True), "")] if detail.phases else [], 1),
        ]
        lines = _aligned_lines(facts, width)
        ordered = sort_verdicts(self.verdicts)
        unmet, others = ([one for one in ordered if (one.outcome == "met") is are_met] for are_met in (False, True))
        if unmet:
            head = wrap_text(f"Limits: {limits_tally(self.verdicts, '')}", width, "", INDENT)
            lines += [Content(""), *(Content.styled(line, "bold") for line in head)]
            lines += _limit_lines(unmet, detail.records, width)
        lines += number_list(self.rows, self.verdicts, detail.records, self.apart, width)
        if unmet and others and width >= ROOM_FOR_DATA:
            lines += [Content(""), Content.styled("Limits that are met", "bold")]
            lines += _limit_lines(others, detail.records, width)
        took = ", ".join(f"{one.kind} {duration_text(one.seconds)}" for one in detail.phases if one.n_done)
        lines += [Content(""), *_aligned_lines([("by phase", took, "")], width)] if took else []
        more = f"More: Numbers, in Findings ({self.place_key})" if self.place_key else ""
        return [*lines, *([Content(""), Content.styled(more, "$text-muted")] if more else [])]

    @property
    def _are_met(self) -> bool:
        """Return whether there are limits and all of them are met."""
        return bool(self.verdicts) and all(one.outcome == "met" for one in self.verdicts)


def _aligned_lines(facts: StyledLines, width: int) -> list[Content]:
    """Return short facts with their names in a column of their own."""
    return [
        Content.assemble((fit_text("" if place else name, NAME), "$primary"), (line, style))
        for name, text, style in facts
        for place, line in enumerate(wrap_text(text, width - NAME) or [""])
    ]


def _fact_lines(said: StyledLines, width: int) -> list[Content]:
    """Return facts in lines of ``width`` cells, each with its name, which has a column of its own if there is room."""
    if width < ONE_COLUMN:
        return [line for one in said for line in run_in_lines(one[0], one[1], width, one[2])]
    return [
        Content.assemble((f"{'' if place else name:<{NAME}}", "$primary"), (line, style))
        for name, text, style in said
        for place, line in enumerate(wrap_text(text, max(20, width - NAME)))
    ]


def _limit_lines(verdicts: Sequence[Verdict], records: int, width: int) -> list[Content]:
    """Return verdicts as a table of number, value and limit; as sentences where the names have too little room."""
    names = [f"{sign_for(one.outcome)} {name}" for one, name in zip(verdicts, labels_of(verdicts), strict=True)]
    rows = [
        (name, observed_text(one, records), brief_limit_text(limit_text(one.bound, one.limit, one.value)))
        for name, one in zip(names, verdicts, strict=True)
    ]
    # What the limit says is no part of the value beside it.
    rows = [(name, found.removesuffix(f" of {CONFIDENTIAL_VALUE}"), limit) for name, found, limit in rows]
    notes = [one.reason if one.observed is None else "" for one in verdicts]
    inks = [_outcome_style(one.outcome) for one in verdicts]
    brief = [(name, brief_value_text(found, is_share=True), limit) for name, found, limit in rows]
    for cells, least in ((rows, BESIDE), (brief, LEAST_NUMBER)):
        if table := _column_lines(("limit", "found", "allowed"), cells, width, least, inks, notes):
            return table
    said = zip(labelled_verdict_lines(verdicts, records), inks, strict=True)
    return [Content.styled(line, ink) for text, ink in said for line in wrap_text(text, width, "", INDENT)]


def _number_lines(table: DisplayTable, width: int) -> list[Content]:
    """Return the numbers of a table in columns, counts without what they are of; as sentences where the names have too
    little room: ``Sensitive values disclosed (mdvis): 12 of 16,051, confidential data 40``.
    """
    places = {column.title: at for at, column in enumerate(table.columns)}
    # One line a number and variable: with every setting it would be a wall of names that are nearly the same.
    found: dict[tuple[str, str], tuple[str, str, str]] = {}
    for row in table.rows:
        key, name, variable, before, released = (
            full_cell_text(row[places[title]]) if title in places else "" for title in ("key", *NUMBERS)
        )
        # The units are the people whom the name speaks of, and come before their records, which then have no line.
        variable = "" if variable == BY_UNIT else variable
        released, before = (text.removesuffix(UNITS) for text in (released, before))
        named = f"{name}{f' ({variable})' if variable else ''}"
        subject = variable.partition(";")[0]
        found.setdefault((key, "" if subject == BY_UNIT else subject), (named, released, before))
    rows = list(found.values())
    # A long name has more lines: cut ones of a measure would look alike.
    brief = [(name, *(brief_value_text(text) or "-" for text in values)) for name, *values in rows]
    if lines := _column_lines(("number", "release", "data"), brief, width, LEAST_NUMBER):
        return lines
    said = [
        f"{name}: {', '.join(filter(None, (released, f'confidential data {before}' if before else '')))}"
        for name, released, before in rows
    ]
    return [Content(line) for text in said for line in wrap_text(text, width, "", INDENT)]


def _column_lines(
    heads: Sequence[str],
    rows: Sequence[tuple[str, ...]],
    width: int,
    least: int,
    inks: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> list[Content]:
    """Return rows of a name and values in columns, long names over several lines, with a note below a row.

    It is empty where the values leave fewer than ``least`` cells. In few cells a name has the whole width, and the
    values stand to the right of its last line.
    """
    sizes = [max(cell_len(row[at]) for row in (heads, *rows)) for at in range(1, len(heads))]
    named = width - sum(sizes) - len(INDENT) * len(sizes)
    if named < least:
        return []
    lines = [_column_line(heads, named, sizes, "$text-muted")]
    for at, (name, *values) in enumerate(rows):
        ink = inks[at] if inks else ""
        if named >= BESIDE:
            first, *rest = wrap_text(name, named, "", INDENT) or [""]
            lines.append(_column_line((first, *values), named, sizes, ink))
            lines += [Content.styled(line, ink) for line in rest]
        else:
            above = wrap_text(name, width, "", INDENT) or [""]
            last = above.pop() if cell_len(above[-1]) <= named else ""
            lines += [Content.styled(line, ink) for line in above]
            lines.append(_column_line((last, *values), named, sizes, ink))
        if notes and notes[at]:
            lines += [Content.styled(line, "$text-muted") for line in wrap_text(notes[at], width, INDENT, INDENT)]
    return lines


def _column_line(cells: Sequence[str], named: int, sizes: Sequence[int], ink: str) -> Content:
    """Return a line of a table: the name to the left, values to the right."""
    values = [fit_text(text, size, "right") for text, size in zip(cells[1:], sizes, strict=True)]
    return Content.styled(INDENT.join([fit_text(cells[0], named), *values]), ink)


def _units_first(rows: Sequence[Row]) -> list[Row]:
    """Return rows with those that count units, such as people, before those of the same number that count records."""
    places = {(row.key, row.target): at for at, row in reversed(list(enumerate(rows)))}
    return sorted(rows, key=lambda row: (places[row.key, row.target], row.params.get("by") != "unit"))


def _run_lines(detail: RunDetail) -> StyledLines:
    """Return what a run is: its data, datasets and seed, its note, and its tasks in a line."""
    made = [] if detail.m is None else [f"m = {detail.m}"]
    key = [PUBLIC_KEY] if detail.key_public else []
    return [
        ("run", ", ".join([f"{detail.run_id}{f' {detail.name}' if detail.name else ''}: {detail.dataset_name}", f"{count_noun(detail.records, 'record')}", *made, f"seed {detail.seed}", *key]), ""),
        *_first_lines("note", [(detail.note, "")] if detail.note else [], 1),
        *_first_lines("file", [(detail.coverage_text, "$warning")] if detail.coverage_text else [], 1),
        *_first_lines("controls", [(holdout_text(detail.n_controls), "")] if detail.n_controls else [], 1),
        *_first_lines("rules", [(detail.redrawn_text, "")] if detail.redrawn_text else [], 1),
        *_first_lines("weights", [(line, "") for line in detail.weight_lines], len(detail.weight_lines)),
        *_first_lines("tasks", [(_tasks_text(detail.phases), "")] if detail.phases else [], 1),
    ]  # fmt: skip


def _outcome_style(outcome: str) -> str:
    """Return the style of an outcome."""
    return {"not met": "$error", "met": ""}.get(outcome, "$warning")


def _first_lines(name: str, lines: Sequence[tuple[str, str]], most: int) -> list[tuple[str, str, str]]:
    """Return the first lines below one name, and the number of others."""
    left = len(lines) - most
    more = [("", f"and {left} more", "$text-muted")] if left > 0 else []
    return [("" if place else name, *line) for place, line in enumerate(lines[:most])] + more


def _tasks_text(phases: Sequence[TaskPhase], *, is_brief: bool = False) -> str:
    """Return the number of tasks with their time and their largest memory: ``66 in 59 s, at most 380 MB``; in brief
    without their time.
    """
    done, total = sum(one.n_done for one in phases), sum(one.n_tasks for one in phases)
    tasks = f"{done} of {total}" if done < total else f"{total}"
    took = f" in {duration_text(sum(one.seconds for one in phases))} of computing" if done and not is_brief else ""
    peak = max((one.peak_bytes for one in phases), default=0)
    return f"{tasks}{took}" + (f", at most {peak / 1e6:.0f} MB" if peak else "")


def _phase_text(phase: TaskPhase) -> str:
    """Return the tasks of a phase with their time and memory: ``fit 2 in 19.3 s (265 MB)``."""
    tasks = f"{phase.n_done}/{phase.n_tasks}" if phase.n_done < phase.n_tasks else f"{phase.n_tasks}"
    took = f" in {duration_text(phase.seconds)}" if phase.n_done else ""
    memory = f" ({phase.peak_bytes / 1e6:.0f} MB)" if phase.peak_bytes else ""
    return f"{phase.kind} {tasks}{took}{memory}"


def labelled_verdict_lines(verdicts: Sequence[Verdict], records: int | None = None) -> list[str]:
    """Return each verdict in a line, with a name that differs from the others."""
    return [_verdict_text(one, name, records) for one, name in zip(verdicts, labels_of(verdicts), strict=True)]


def _verdict_text(verdict: Verdict, name: str, records: int | None = None) -> str:
    """Return a verdict in a line: ``✗ People found for certain: 88 of 20,190 (0.44 %), at most 0.1 %``."""
    limit = limit_text(verdict.bound, verdict.limit, verdict.value)
    found = verdict.reason if verdict.observed is None else observed_text(verdict, records)
    return f"{sign_for(verdict.outcome)} {name}: {found}, {limit}"
