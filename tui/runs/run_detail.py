"""Text about a run: in brief below the list of runs, and in full beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from sfumato.engine.methods.labels import label_by_key, labels_of
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.outcomes import WORST_FIRST
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun
from sfumato.tui.terminal.text import cut_text, fit_text
from sfumato.tui.widgets.facts import INDENT, ONE_COLUMN, run_in_lines, wrap_text
from sfumato.workspace.reporting.plan_steps import Facts
from sfumato.workspace.reporting.results import TableContext, result_table
from sfumato.workspace.reporting.tables import DisplayTable, format_table, full_cell_text
from sfumato.workspace.reporting.words import (
    PUBLIC_KEY,
    SettingsByMethod,
    duration_text,
    holdout_text,
    limit_text,
    observed_text,
    sign_for,
)
from sfumato.workspace.views.run_detail import RunDetail, TaskPhase
from sfumato.workspace.visible_text import replace_unprintable

if TYPE_CHECKING:
    from sfumato.workspace.views.run_changes import RunChanges

MOST_CHANGES, MOST_CHANGE_LINES, MOST_NUMBERS, LEAST_CHANGE_LINES = 4, 8, 6, 3
"""Most changes of the plan, lines of changes, and numbers that are shown below the list of runs, and the least lines."""
MOST_UNMET = 3
NAME, LONG_NAME = 10, 14
LEAST_TABLE = 76
"""Width in cells below which numbers are sentences: a table would break their names."""
NUMBERS = ("measure", "variable", "confidential", "release")
NUMBERS_OF_RELEASE = tuple(title for title in NUMBERS if title != "confidential")

StyledLines = list[tuple[str, str, str]]
"""Lines as (name, text, style); the name is empty below the first line of a name."""


@dataclass(frozen=True)
class RunBrief:
    """Run in brief.

    detail: its data, tasks and unmet limits
    changes: what changed since the run before it; None for the first run of a project
    plan: its plan in words
    """

    detail: RunDetail
    changes: RunChanges | None
    plan: Facts


def brief_run_text(brief: RunBrief, gate: Sequence[Content], width: int, room: int, *, beside: bool = False) -> Content:
    """Return the gate's answer, what differs from the run before, the run itself, and what room is left for: its plan.

    gate: lines of the gate's answer
    width: cells of a line
    room: greatest number of lines
    beside: whether the run is shown in full elsewhere, so that only what is missing there is shown
    """
    detail, changes = brief.detail, brief.changes
    own = [] if beside else _run_lines(detail)
    unmet = [
        (_verdict_text(one, name), _outcome_style(one.outcome))
        for one, name in zip(detail.unmet_verdicts, detail.verdict_names, strict=True)
    ]
    said = _first_lines("not met", unmet, MOST_UNMET)
    levers = dict.fromkeys(lever for one in detail.unmet_verdicts for lever in label_by_key(one.value).levers)
    said += _first_lines("what to change", [(lever, "") for lever in levers], MOST_UNMET)
    plan = [(name, line, "") for name, line in brief.plan]
    lines = list(gate)
    # The plan is the least urgent part, so it comes only if there is room left.
    for lines_in in (
        partial(_named_content, said, width),
        partial(_change_content, changes, width),
        partial(_named_content, own, width),
        partial(_named_content, plan, width),
    ):
        if part := lines_in(room - len(lines) - bool(lines)):
            lines += [*([Content("")] if lines else []), *part]
    return Content("\n").join(lines[:room])


def _named_content(said: StyledLines, width: int, room: int) -> list[Content]:
    """Return named lines in at most ``room`` lines: each has one, and the first ones more while there is room."""
    text_width, said = max(20, width - LONG_NAME - 1), said[: max(0, room)]
    spare = room - len(said)
    lines: StyledLines = []
    for name, text, style in said:
        broken = wrap_text(text, text_width) or [""]
        if len(broken) - 1 > spare:
            broken = [cut_text(replace_unprintable(text), text_width)]
        spare -= len(broken) - 1
        lines += [("" if at else name, line, style) for at, line in enumerate(broken)]
    return [
        Content.assemble((fit_text(name, LONG_NAME), "$primary"), " ", (line, style)) for name, line, style in lines
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
    """

    detail: RunDetail
    state_words: str
    verdicts: Sequence[Verdict]
    rows: Sequence[Row]
    apart: SettingsByMethod

    def to_lines(self, width: int) -> Content:
        """Return all of it in lines of ``width`` cells: verdicts, unmet ones first, the brief, and the numbers if a
        table fits.
        """
        verdicts = sorted(self.verdicts, key=lambda one: WORST_FIRST.index(one.outcome))
        run, *others = _run_lines(self.detail)
        phases = [(", ".join(map(_phase_text, self.detail.phases)), "")] if self.detail.phases else []
        lines_of = labelled_verdict_lines(verdicts, self.detail.records)
        judged = [(line, _outcome_style(one.outcome)) for one, line in zip(verdicts, lines_of, strict=True)]
        said = [run, ("now", self.state_words, ""), *_first_lines("verdicts", judged, len(judged)), *others]
        said += _first_lines("by phase", phases, 1)
        lines = [
            Content.assemble((f"{'' if place else name:<{NAME}}", "$primary"), (line, style))
            for name, text, style in said
            for place, line in enumerate(wrap_text(text, max(20, width - NAME)))
        ]
        if width < ONE_COLUMN:
            lines = [line for one in said for line in run_in_lines(one[0], one[1], width, one[2])]
        table = result_table(self.rows, TableContext(self.apart, records=self.detail.records))
        if self.rows and width < LEAST_TABLE:
            return Content("\n").join([*lines, Content(""), *_number_lines(table, width)])
        numbers = ""
        # Where even folded names leave too little room, the release alone is shown.
        for titles in (NUMBERS, NUMBERS_OF_RELEASE):
            shown = table.select_columns([i for i, one in enumerate(table.columns) if one.title in titles])
            numbers = format_table(shown, width)
            if max(map(cell_len, numbers.splitlines()), default=0) <= width:
                break
        return Content("\n").join([*lines, Content(""), *map(Content, numbers.splitlines())] if self.rows else lines)


def _number_lines(table: DisplayTable, width: int) -> list[Content]:
    """Return the numbers of a table as sentences: ``Sensitive values disclosed (mdvis): 12 of 16,051, before 40``."""
    places = {column.title: at for at, column in enumerate(table.columns)}
    lines = []
    for row in table.rows:
        name, variable, before, released = (
            full_cell_text(row[places[title]]) if title in places else "" for title in NUMBERS
        )
        values = f"{released}, confidential data {before}" if before else released
        text = f"{name}{f' ({variable})' if variable else ''}: {values}"
        lines += [Content(line) for line in wrap_text(text, width, "", INDENT)]
    return lines


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


def _tasks_text(phases: Sequence[TaskPhase]) -> str:
    """Return the number of tasks with their time and their largest memory: ``66 in 59 s, at most 380 MB``."""
    done, total = sum(one.n_done for one in phases), sum(one.n_tasks for one in phases)
    tasks = f"{done} of {total}" if done < total else f"{total}"
    took = f" in {duration_text(sum(one.seconds for one in phases))} of computing" if done else ""
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
    """Return a verdict in a line: ``✗ Only match is the right one: 88 of 20,190 (0.44 %), at most 0.1 %``."""
    limit = limit_text(verdict.bound, verdict.limit, verdict.value)
    found = verdict.reason if verdict.observed is None else observed_text(verdict, records)
    return f"{sign_for(verdict.outcome)} {name}: {found}, {limit}"
